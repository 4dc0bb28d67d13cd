"""What docs/install.md tells people to apply can be read, and gives the node that its transcript shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from autoscaler.settings.load import read_settings
from tests.golden.test_examples import ROOT, run

PAGE = (ROOT / "docs/install.md").read_text(encoding="utf-8")
VALUES, MANIFESTS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_manifests_give_the_node_of_the_transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = re.search(r"^gpu +(?P<offering>\S+ in \S+ \(\S+\)) +(?P<price>\S+) +1$", PAGE, re.MULTILINE)
    assert shown is not None
    # `run` names files relative to the repository.
    monkeypatch.setattr("tests.golden.test_examples.ROOT", tmp_path)
    (tmp_path / "try.yaml").write_text(MANIFESTS, encoding="utf-8")
    code, text = run(tmp_path / "try.yaml", monkeypatch=monkeypatch)
    assert code == 0, text
    kind, zone, capacity = re.split(r" in | \(", shown["offering"].rstrip(")"))
    row = rf"^1 × {kind} +gpu-\S+ +{zone} +{capacity} +{re.escape(shown['price'])} "
    assert re.search(row, text, re.MULTILINE), text


def test_the_settings_among_the_values_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(VALUES)["settings"]), encoding="utf-8")
    settings = read_settings(file, environment={})
    assert (settings.cluster.providers, settings.aws.region) == (("aws",), "eu-west-1")
