"""`foreslice catalog`: what people and programs see, and how mistakes are answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from autoscaler.cli.catalog.group import catalog
from autoscaler.cli.catalog.listing import SORTS
from autoscaler.errors import BadInputError
from instance_catalog.types.catalog import SORT_ORDERS


def run(*arguments: str) -> Result:
    return CliRunner().invoke(catalog, list(arguments))


def output(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def names(*arguments: str) -> list[str]:
    return [line.split()[0] for line in output("list", *arguments).splitlines()[1:]]


def test_list_shows_one_line_per_type() -> None:
    lines = [line.split() for line in output("list", "--accelerator", "h100", "--cloud", "aws").splitlines()]
    assert lines == [
        ["NAME", "CLOUD", "VCPU", "MEMORY", "ACCELERATOR", "COUNT", "MEMORY/ACC", "$/H"],
        ["p5.48xlarge", "aws", "192", "2Ti", "H100", "8", "81559Mi", "55.0400"],
        ["p5.4xlarge", "aws", "16", "256Gi", "H100", "1", "81559Mi", "6.8800"],
    ]


def test_the_wide_list_says_how_a_type_is_sold() -> None:
    lines = output("list", "--accelerator", "nvidia-gb200", "--cloud", "aws", "-o", "wide").splitlines()
    assert lines[0].split()[-3:] == ["ARCH", "SOLD", "AS"]
    assert lines[1].split()[-4:] == ["-", "nvidia-gb200", "arm64", "capacity-block"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--accelerator", "H100", "--cloud", "gcp", "--sort", "price"], ["a3-highgpu-1g", "a3-highgpu-2g"]),
        (["--accelerator", "H200", "--sort", "price"], ["p5en.48xlarge", "a3-ultragpu-8g", "p5e.48xlarge"]),
        (["--min-memory", "200Gi", "--sort", "memory"], ["a4x-maxgpu-4g-metal", "p6-b300.48xlarge"]),
        (["--accelerator", "nvidia-tesla-t4", "--cloud", "aws", "--sort", "count"], ["g4dn.metal", "g4dn.12xlarge"]),
        (["--accelerator", "tpu-v6e", "--sort", "vcpu"], ["ct6e-standard-8t", "ct6e-standard-4t", "ct6e-standard-1t"]),
    ],
    ids=["price", "unpriced last", "memory", "count", "vcpu"],
)
def test_list_filters_and_sorts(arguments: list[str], expected: list[str]) -> None:
    assert names(*arguments)[: len(expected)] == expected


def test_every_order_of_the_catalog_is_offered() -> None:
    assert set(SORTS) == set(SORT_ORDERS)


def test_a_memory_only_the_cloud_states_is_marked() -> None:
    (line,) = [line for line in output("list", "--accelerator", "gaudi").splitlines() if line.startswith("dl1")]
    assert "~32Gi" in line


@pytest.mark.parametrize(
    ("name", "needs"), [("dl1.24xlarge", "no driver for Habana"), ("inf1.xlarge", "neuronx"), ("g6.xlarge", "")]
)
def test_what_a_type_needs_besides(name: str, needs: str) -> None:
    found = [line for line in output("show", name).splitlines() if line.strip().startswith("needs more")]
    assert [needs in line for line in found] == ([True] if needs else [])


def test_list_as_json_and_yaml_is_the_same_data() -> None:
    arguments = ["list", "--accelerator", "L4-3Q"]
    data: list[dict[str, Any]] = json.loads(output(*arguments, "-o", "json"))
    assert yaml.safe_load(output(*arguments, "-o", "yaml")) == data
    assert [entry["name"] for entry in data] == ["g6f.large", "g6f.xlarge"]
    assert data[0]["accelerator"]["count"] == "1/8"
    assert data[0]["prices"]["on-demand"] == {"usdPerHour": "0.202", "region": "us-east-1", "date": "2026-07-20"}


def test_a_list_that_nothing_meets_says_so() -> None:
    result = run("list", "--min-memory", "1Ti")
    assert (result.exit_code, result.stderr) == (0, "no instance type meets all conditions\n")


def test_show_says_where_facts_come_from_and_what_is_guessed() -> None:
    sheet = output("show", "p5e.48xlarge")
    rows = {line[:30].strip(): line[30:].strip() for line in sheet.splitlines()}
    assert rows["PCIe roots"].startswith("pci0000:44, pci0000:55")
    assert rows["network efa"].endswith("moto 5.2.5 instance_types.json 2026-08")
    assert "Which root serves which EFA device has no source" in sheet
    assert rows["fabric"].startswith("NVLink switch, 900 GB/s each")
    assert "Amazon EC2 P5 product page (NVSwitch)" in rows["fabric"]
    assert rows["CPU layout"].startswith("threads a core: 2")
    assert "EKS AL2023" in rows["allocatable memory"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("p5e.48xlarge", "never bought until an overlay gives one"),
        ("g4-standard-6", "not known (a vGPU has a name of its own"),
        ("g7.2xlarge", "one of NVIDIA RTX PRO 4500 Blackwell Server Edition"),
        ("g3.4xlarge", "EKS AL2023 NVIDIA and Bottlerocket NVIDIA do not support it"),
        ("p2.xlarge", "11441Mi to 12Gi"),
        ("trn2.48xlarge", "no on-demand price is published"),
        ("g7.2xlarge", "595 or newer"),
        ("g6f.large", "1/8 of an L4, one device"),
        ("p6e-gb200.36xlarge", "domains of 9 or 18 nodes"),
        ("p5.48xlarge", "32 at pci0000:44 x4, pci0000:55 x4"),
        ("a3-highgpu-8g", "(guess) Google Cloud documentation, GPU machine types; product name copied from AWS p5"),
        ("n1-standard-8+1xnvidia-tesla-t4", "machine type"),
    ],
)
def test_show_explains(name: str, line: str) -> None:
    assert line in output("show", name)


def test_show_as_data_has_placements_and_allocatable() -> None:
    data = json.loads(output("show", "p5.48xlarge", "-o", "json"))
    assert data["pci"][0] == {"bus": "0000:53:00.0", "root": "pci0000:44", "numa": 0}
    assert data["networkCards"][1] == {"kind": "efa", "subsystem": "efa1", "root": "pci0000:44", "numa": 0}
    assert (data["allocatable"]["cpu"], data["devices"]) == ("191450m", 8)


def test_validate_counts_what_is_right(tmp_path: Path) -> None:
    (tmp_path / "price.yaml").write_text(
        "types:\n  - name: p5e.48xlarge\n    prices: {on-demand: {usdPerHour: 40, region: r, date: 2026}}\n"
    )
    assert (
        output("validate") == output("validate", str(tmp_path)) == "214 instance types, 42 accelerators: no defects\n"
    )
    assert "40.0000" in output("list", "--catalog", str(tmp_path), "--accelerator", "H200")
    assert "40 $/h in r (2026)" in output("show", "p5e.48xlarge", "--catalog", str(tmp_path))


def test_validate_names_overlays_that_do_not_count(tmp_path: Path) -> None:
    for name, head, vcpu in (("a", "reason: x", 1), ("b", "reason: y", 2), ("old", "expires: 2020-01-01", 3)):
        (tmp_path / f"{name}.yaml").write_text(f"{head}\ntypes:\n  - {{name: p5.48xlarge, vcpu: {vcpu}}}\n")
    result = run("validate", str(tmp_path))
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"note: {tmp_path}/old.yaml expired at 2020-01-01 00:00Z and does not count",
        f"note: vcpu of p5.48xlarge is 2 in {tmp_path}/b.yaml:3, which counts because its name comes later, and 1 in "
        f"{tmp_path}/a.yaml:3; give one of them a higher priority",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "p5.48xlrge"], "'p5.48xlrge' is not in the catalog; did you mean 'p5.48xlarge'"),
        (["list", "--accelerator", "H10O"], "no accelerator is called 'H10O'"),
        (["list", "--cloud", "asw"], "no instance type of cloud 'asw'"),
        (["list", "--catalog", "/does/not/exist"], "/does/not/exist:1: found no such directory"),
        (["validate", "/does/not/exist"], "/does/not/exist:1: found no such directory"),
        (["validate", __file__], "found a file; allowed: a directory with catalog files"),
        (["show", "p5"], "did you mean 'p5.4xlarge' or 'p5.48xlarge' or 'p5e.48xlarge'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_answered_with_the_way_out(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, BadInputError)
    assert message in str(result.exception)
    if arguments[0] == "list" and "/" not in arguments[-1]:
        assert result.exception.next_step.startswith("did you mean '")


def test_validate_reports_all_defects(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "types:\n  - {name: p5.48xlarge, vcpu: many}\n  - {name: p4d.24xlarge, vpcu: 1}\n"
    )
    result = run("validate", str(tmp_path))
    assert isinstance(result.exception, BadInputError)
    lines = str(result.exception).splitlines()
    assert lines[0] == "2 problems in the instance catalog; nothing was loaded"
    assert lines[1].startswith(f"  {tmp_path}/bad.yaml:2: instance type p5.48xlarge: vcpu: found 'many'")
    assert lines[2].startswith(f"  {tmp_path}/bad.yaml:3: instance type p4d.24xlarge: vpcu: found an unknown field")
    assert lines[2].endswith("did you mean 'vcpu'?")


@pytest.mark.parametrize("arguments", [["list", "--min-memory", "40GB!"], ["list", "--sort", "colour"], ["show"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2
