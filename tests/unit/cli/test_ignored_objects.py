"""Objects without influence on where pods fit take one line of an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from autoscaler.cli.plan import plan
from autoscaler.report.words import counted_kind

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"


def _object(version: str, kind: str, name: str) -> str:
    return f'apiVersion: {version}\nkind: {kind}\nmetadata: {{name: "{name}"}}\n---\n'


MANIFEST = (
    _object("v1", "ServiceAccount", "one")
    + _object("rbac.authorization.k8s.io/v1", "ClusterRole", "reader")
    + _object("v1", "ServiceAccount", "two")
    + _object("node.k8s.io/v1", "RuntimeClass", "kata")
)


def _stderr(tmp_path: Path, text: str) -> str:
    file = tmp_path / "all.yaml"
    file.write_text(text)
    found = CliRunner().invoke(plan, ["-f", str(file)])
    return f"{found.stderr}{found.exception}"


def test_objects_without_influence_are_named_together(tmp_path: Path) -> None:
    told = _stderr(tmp_path, MANIFEST + POD).splitlines()
    assert "note: ignored, no influence on where pods fit: 2 ServiceAccounts, ClusterRole reader" in told
    assert [line.partition(": ")[0] for line in told if "ignored" in line] == ["warning", "note"]
    assert "RuntimeClass kata: ignored: its node selector" in told[0]


def test_an_error_counts_without_them(tmp_path: Path) -> None:
    told = _stderr(tmp_path, MANIFEST + POD.replace("name: p}", "name: P}"))
    assert "1 error and 1 warning in the manifests" in told
    assert "2 ServiceAccounts" in told


def test_a_line_break_in_a_name_begins_no_line(tmp_path: Path) -> None:
    assert "ServiceAccount a\\nb" in _stderr(tmp_path, _object("v1", "ServiceAccount", "a\\nb") + POD)


@pytest.mark.parametrize(
    ("kind", "both"),
    [
        ("Secret", "Secrets"),
        ("NetworkPolicy", "NetworkPolicies"),
        ("Ingress", "Ingresses"),
        ("Gateway", "Gateways"),
        ("Endpoints", "Endpoints"),
    ],
)
def test_the_plural_of_a_kind(kind: str, both: str) -> None:
    assert (counted_kind(1, kind), counted_kind(2, kind)) == (f"1 {kind}", f"2 {both}")
