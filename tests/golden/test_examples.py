"""The plan of every example, as a user sees it. UPDATE_GOLDEN=1 rewrites the files; read the diff before you commit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli import plan as planning
from autoscaler.cli.common.decided import Decided
from autoscaler.cli.main import foreslice
from autoscaler.errors import ForesliceError
from autoscaler.manifests.load import Loaded
from autoscaler.model.snapshot import Snapshot

ROOT = Path(__file__).parent.parent.parent
GOLDEN = Path(__file__).parent
EXAMPLES = sorted((ROOT / "docs/examples").glob("*.yaml"))
MISTAKES = sorted((ROOT / "docs/examples/mistakes").glob("*.yaml"))
WARNINGS = sorted((ROOT / "docs/examples/warnings").glob("*.yaml"))
PLACED = {
    "assumed-plugin",
    "network-card-alone",
    "plugin-amounts",
    "sharing",
    "simulated",
    "part-by-annotation",
    "other-scheduler",
    "ray-inferentia",
    "tpu-slices",
    "beta-version",
}
LEFT_OUT = {"block-soon", "block-too-short", "cpu-devices", "unsatisfiable"}
PLACED |= {"image-without-driver", "inferentia", "neuronx"}
PLACED |= {"gpudirect", "patch", "tpu-node", "tpu-generation", "tpu-hosts", "launcher", "workload-identity"}
PLACED |= {"trainjob", "workflow"}


def run(example: Path, *options: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Exit code and output of `foreslice plan` on an example, named relative to the repository."""
    monkeypatch.chdir(ROOT)
    try:
        result = CliRunner().invoke(
            foreslice, ["plan", "-f", str(example.relative_to(ROOT)), *options], catch_exceptions=False
        )
    except ForesliceError as error:  # what main() prints, with exit code 1
        return 1, f"error: {error}\n"
    return result.exit_code, result.output


def compare(name: str, text: str) -> None:
    """Against the recorded text, or record it."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.stem))
def test_plan_of_an_example(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a table and as a document, both of one plan."""
    monkeypatch.setattr(planning, "_decide", once(planning._decide))
    code, text = run(example, monkeypatch=monkeypatch)
    document_code, document = run(example, "-o", "json", monkeypatch=monkeypatch)
    compare(f"{example.stem}/plan.txt", text)
    compare(f"{example.stem}/plan.json", shown(json.loads(document)))
    assert code == document_code == (3 if example.stem in LEFT_OUT else 0)


def once(decide: Callable[..., Decided]) -> Callable[..., Decided]:
    """Decides when it is called first, and gives the same answer, which nobody can change, to the same manifests."""
    found: list[tuple[Snapshot, Decided]] = []

    def decided(loaded: Loaded, *given: object, **options: object) -> Decided:
        if not found:
            found.append((loaded.snapshot, decide(loaded, *given, **options)))
        assert found[0][0] == loaded.snapshot
        return found[0][1]

    return decided


def shown(document: dict[str, Any]) -> str:
    """What is compared of a document."""
    # What was considered is long and changes with every new type of the catalog; the table above shows its head.
    for part in ("demands", "candidates", "catalogDigest"):
        del document[part]
    named = {*_ids(document["launches"], "offering"), *_ids(document["launches"], "alternatives")}
    document["offerings"] = {key: value for key, value in document["offerings"].items() if key in named}
    named = {*_ids(document, "reasons"), *_ids(document, "reason")}
    document["reasons"] = {key: value for key, value in document["reasons"].items() if key in named}
    for launch in document["launches"]:
        del launch["prediction"]["catalogDigest"]
    return json.dumps(document, indent=1) + "\n"


def _ids(value: Any, field: str) -> Iterator[str]:
    """The ids in every field of that name."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key == field and isinstance(part, str):
                yield part
            elif key == field and isinstance(part, list):
                yield from part
            else:
                yield from _ids(part, field)
    elif isinstance(value, list):
        for part in value:
            yield from _ids(part, field)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda path: str(path.stem))
def test_mistake(mistake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run(mistake, monkeypatch=monkeypatch)
    compare(f"mistakes/{mistake.stem}.txt", text)
    assert code == 1


@pytest.mark.parametrize("example", WARNINGS, ids=lambda path: str(path.stem))
def test_what_surprises_is_said_first(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run(example, monkeypatch=monkeypatch)
    compare(f"warnings/{example.stem}.txt", text)
    assert code == (0 if example.stem in PLACED else 3)


@pytest.mark.parametrize("form", ["name", "markdown", "wide"])
def test_forms_of_output(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = run(ROOT / "docs/examples/shared-claim.yaml", "-o", form, monkeypatch=monkeypatch)
    compare(f"forms/{form}.txt", text)


def test_ignored_pods_count_with_strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
    (tmp_path / "pod.yaml").write_text(pod, encoding="utf-8")
    monkeypatch.setattr("tests.golden.test_examples.ROOT", tmp_path)
    assert run(tmp_path / "pod.yaml", monkeypatch=monkeypatch)[0] == 0
    assert run(tmp_path / "pod.yaml", "--strict", monkeypatch=monkeypatch)[0] == 3
