"""`foreslice catalog learn`: shown, written, and what it says when there is nothing to learn from."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler.cli.catalog.group import catalog
from autoscaler.errors import BadInputError
from instance_catalog.files.loader import load_catalog

P4D = Path(__file__).parents[3] / "data" / "published" / "eks-p4d.yaml"
NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: ip-10-0-1-10.ec2.internal
  labels: {node.kubernetes.io/instance-type: p9.48xlarge, kubernetes.io/arch: amd64}
spec: {providerID: "aws:///us-east-1a/i-0123"}
status:
  allocatable: {cpu: 95690m, memory: 1150000000Ki, pods: "737"}
---
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "saved.yaml"
    path.write_text(NODE + P4D.read_text())
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(catalog, ["learn", *map(str, arguments)])


def test_a_new_type_is_shown_and_written(saved: Path, tmp_path: Path) -> None:
    result = run("--nodes", saved, "--write", tmp_path / "mine")
    assert result.exit_code == 0, result.exception
    assert "instance type p9.48xlarge (new)\n  +name: p9.48xlarge\n" in result.stdout
    assert "note: p9.48xlarge: how the type is sold is assumed" in result.stderr
    found = load_catalog(extra_dirs=[tmp_path / "mine"]).get("p9.48xlarge")
    assert (found.device_count, len(found.network_cards)) == (8, 7)
    again = run("--nodes", saved, "--catalog", tmp_path / "mine")
    assert again.stdout == "p9.48xlarge: as the catalog says\n"


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (("aws:///", "acme://"), (), "providerID 'acme://us-east-1a/i-0123' is of no known cloud\n  give --cloud"),
        (("node.kubernetes.io/instance-type", "x"), (), "no node to learn from; instance types of the nodes: none"),
        (("", ""), ("--type", "p5.48xlarge"), "instance types of the nodes: p9.48xlarge"),
        (("kind: Node", "kind: Nod"), (), "Nod"),
    ],
)
def test_what_cannot_be_used_says_what_to_do(
    saved: Path, change: tuple[str, str], arguments: tuple[str, ...], message: str
) -> None:
    saved.write_text(saved.read_text().replace(*change, 1))
    result = run("--nodes", saved, *arguments)
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)
