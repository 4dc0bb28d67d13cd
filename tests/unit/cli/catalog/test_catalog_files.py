"""`foreslice catalog import`, `diff` and `export`: entries shown, compared and written."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from autoscaler.cli.catalog.group import catalog
from autoscaler.errors import BadInputError
from instance_catalog.files.loader import load_catalog

PROBE = """\
apiVersion: foreslice.dev/v1alpha1
kind: Probe
takenOn: '2026-11-21'
host: {architecture: amd64, vcpu: 48, memoryKiB: 1000000000}
driverVersion: 580.126.09
gpus:
- index: 0
  minor: 0
  uuid: GPU-0
  productName: NVIDIA L4
  brand: Nvidia
  architecture: Ada Lovelace
  cudaComputeCapability: 8.9.0
  memoryBytes: 24152899584
  pci: {address: '0000:31:00.0', root: 'pci0000:30', numaNode: 0}
"""


@pytest.fixture
def probe(tmp_path: Path) -> str:
    path = tmp_path / "probe.yaml"
    path.write_text(PROBE, encoding="utf-8")
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(catalog, list(arguments))


def test_an_import_shows_the_entry_and_what_it_changes(probe: str) -> None:
    result = run("import", probe, "--as", "my.gpu", "--cloud", "aws")
    assert result.exit_code == 0, result.output
    entry, _, changes = result.stdout.partition("\n# What it changes (a new type):\n")
    assert yaml.safe_load(entry)["types"][0]["accelerator"] == {"model": "nvidia-l4", "count": 1}
    assert changes.startswith("instance type my.gpu (new)\n  +name: my.gpu\n")


def test_an_import_of_a_known_type_shows_the_difference(probe: str) -> None:
    result = run("import", probe, "--as", "g6.4xlarge", "--cloud", "aws")
    changes = result.stdout.partition("# What it changes:\n")[2].splitlines()
    assert changes[0] == "instance type g6.4xlarge"
    assert "  -  - pci0000:34" in changes
    assert "  +  - pci0000:30" in changes


def test_an_import_writes_only_when_told(probe: str, tmp_path: Path) -> None:
    target = tmp_path / "my-types"
    run("import", probe, "--as", "my.gpu", "--cloud", "aws")
    assert not target.exists()
    assert run("import", probe, "--as", "my.gpu", "--cloud", "aws", "--write", str(target)).exit_code == 0
    written = load_catalog(extra_dirs=[target]).get("my.gpu")
    assert (written.vcpu, written.placements[0].pcie_root) == (48, "pci0000:30")
    again = run("import", probe, "--as", "my.gpu", "--cloud", "aws", "--write", str(target))
    assert isinstance(again.exception, BadInputError)
    assert "exists" in str(again.exception)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: [", "probe.yaml:2: found text that is no YAML"),
        ("", "probe.yaml:1: found null; allowed: a mapping"),
        (PROBE.replace("kind: Probe", "kind: Pod"), "probe.yaml:2: kind: found 'Pod'; allowed: 'Probe'"),
        (PROBE.replace("minor: 0", "minor: x"), "probe.yaml:8: gpus[0].minor: found 'x'; allowed: a whole number"),
        (PROBE.replace("minor: 0", "minr: 0"), "probe.yaml:8: gpus[0].minr: found an unknown field; allowed: index, "),
        (PROBE.replace("minor: 0", "minr: 0"), "did you mean 'minor'?"),
    ],
    ids=["not yaml", "nothing", "not a probe", "a wrong value", "an unknown field", "what was meant"],
)
def test_a_bad_record_names_file_and_field(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "probe.yaml"
    path.write_text(text, encoding="utf-8")
    result = run("import", str(path), "--as", "my.gpu", "--cloud", "aws")
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)
    assert "foreslice probe" in str(result.exception)


def test_an_import_that_breaks_the_directory_is_not_written(probe: str, tmp_path: Path) -> None:
    target = tmp_path / "my-types"
    target.mkdir()
    (target / "mine.yaml").write_text("types: [{name: g6.4xlarge, vcpu: 15}]\n", encoding="utf-8")
    result = run("import", probe, "--as", "g6.4xlarge", "--cloud", "aws", "--write", str(target))
    assert isinstance(result.exception, BadInputError)
    assert "is not written:" in str(result.exception)
    assert "found a second entry of this name" in str(result.exception)
    assert [path.name for path in target.iterdir()] == ["mine.yaml"]


def test_a_type_stays_in_its_cloud(probe: str) -> None:
    result = run("import", probe, "--as", "p5.48xlarge", "--cloud", "gcp")
    assert "--cloud aws" in str(result.exception)


def test_diff_shows_changed_facts(tmp_path: Path) -> None:
    (tmp_path / "o.yaml").write_text(
        "types: [{name: p5.48xlarge, vcpu: 190}]\naccelerators: [{key: nvidia-l4, memory: 23Gi}]\n", encoding="utf-8"
    )
    lines = run("diff", str(tmp_path)).stdout.splitlines()
    assert lines[0] == "accelerator nvidia-l4"
    assert {"  -memory: 23034Mi", "  +memory: 23Gi", "  -vcpu: 192", "  +vcpu: 190"} <= set(lines)
    assert "instance type p5.48xlarge" in lines


def test_diff_of_what_is_known_already(tmp_path: Path) -> None:
    (tmp_path / "o.yaml").write_text("types: [{name: p5.48xlarge, vcpu: 192}]\n", encoding="utf-8")
    assert run("diff", str(tmp_path)).stdout == "no fact changes\n"


def test_an_export_is_a_catalog_file(tmp_path: Path) -> None:
    (tmp_path / "p5.yaml").write_text(run("export", "p5.48xlarge", "g6f.large").stdout, encoding="utf-8")
    assert run("diff", str(tmp_path)).stdout == "no fact changes\n"
    content = yaml.safe_load((tmp_path / "p5.yaml").read_text(encoding="utf-8"))
    assert [entry["name"] for entry in content["types"]] == ["p5.48xlarge", "g6f.large"]
    assert "nvidia-h100-80gb" in [entry["key"] for entry in content["accelerators"]]


def test_everything_is_exported_without_names() -> None:
    assert len(yaml.load(run("export").stdout, Loader=yaml.CSafeLoader)["types"]) == len(load_catalog())


def test_an_unknown_type_is_not_exported() -> None:
    assert "did you mean 'p5.48xlarge'" in str(run("export", "p5.48xlarg").exception)
