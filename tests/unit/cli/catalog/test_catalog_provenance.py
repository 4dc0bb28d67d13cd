"""`foreslice catalog show --provenance`: which layer won for every value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from autoscaler.cli.catalog.group import catalog
from instance_catalog.files.file_entry import type_entry
from instance_catalog.files.loader import load_catalog, value_origins

OVERLAY = """\
types:
  - name: p5.48xlarge
    vcpu: 190
    prices:
      on-demand: {usdPerHour: 50, region: eu-west-1, date: 2026-11}
    pci: {numa: [0, 1]}
    provenance:
      price: {source: our contract, date: 2026-11}
accelerators:
  - {key: nvidia-h100-80gb, memory: 80Gi}
"""


@pytest.fixture
def layers(tmp_path: Path) -> str:
    (tmp_path / "own.yaml").write_text(OVERLAY, encoding="utf-8")
    return str(tmp_path)


def origins(*arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
    result = CliRunner().invoke(catalog, ["show", "p5.48xlarge", "--provenance", "-o", "json", *arguments])
    assert result.exit_code == 0, result.output
    return {(row["entry"], row["field"]): row for row in json.loads(result.stdout)}


def test_the_last_layer_wins_and_the_one_below_is_named(layers: str) -> None:
    found = origins("--catalog", layers)["types", "vcpu"]
    assert (found["value"], Path(found["file"]).name, found["line"]) == (190, "own.yaml", 3)
    (below,) = found["overrides"]
    assert (below["value"], below["file"]) == (192, "data/aws/p5.yaml")


def test_a_value_given_without_provenance_has_no_source(layers: str) -> None:
    found = origins("--catalog", layers)
    assert found["types", "vcpu"]["source"] == "-"
    assert found["types", "memory"]["source"] == origins()["types", "vcpu"]["source"] != "-"
    assert found["types", "prices.on-demand.usdPerHour"]["source"] == "our contract 2026-11"


def test_lists_win_as_a_whole_and_mappings_field_by_field(layers: str) -> None:
    found = origins("--catalog", layers)
    assert found["types", "pci.numa"]["value"] == [0, 1]
    assert found["types", "pci.root"]["file"] == "data/aws/p5.yaml"


def test_the_model_of_the_accelerator_is_explained_too(layers: str) -> None:
    found = origins("--catalog", layers)
    assert found["accelerators", "memory"]["overrides"][0]["value"] == "81559Mi"
    assert found["accelerators", "productName"]["source"] != "-"


def test_lines_point_at_the_values() -> None:
    data = Path(__file__).parents[4] / "instance_catalog"
    for origin in value_origins("g6.4xlarge"):
        line = (data / origin.won.file).read_text(encoding="utf-8").splitlines()[origin.won.line - 1]
        # A bare price stands at its capacity type; pricesAsOf completes it.
        step = "on-demand" if origin.field.startswith("prices.") else origin.field.rpartition(".")[2]
        assert step in line


def test_every_value_of_a_type_is_explained() -> None:
    opened = load_catalog()
    fields = {o.field.partition(".")[0] for o in value_origins("p5.48xlarge") if o.entry == "types"}
    assert fields == set(type_entry(opened.get("p5.48xlarge"), opened.accelerators))


def test_an_attached_accelerator_is_explained() -> None:
    found = {o.field: o.won.file for o in value_origins("n1-standard-8+1xnvidia-tesla-t4")}
    assert found["vcpu"] == "data/gcp/n1.yaml"


def test_the_table_names_file_and_line(layers: str) -> None:
    result = CliRunner().invoke(catalog, ["show", "p5.48xlarge", "--provenance", "--catalog", layers])
    row = next(line for line in result.stdout.splitlines() if line.startswith("vcpu"))
    assert "own.yaml:3" in row
    assert "192 (data/aws/p5.yaml:" in row


def test_an_unknown_name_has_no_origins() -> None:
    assert value_origins("p5.48xlarg") == ()
