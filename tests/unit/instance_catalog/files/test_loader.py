"""Catalog directories add to the shipped catalog or override it; every defect names its place and the way out."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from instance_catalog.files.findings import CatalogError
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import (
    CapacityType,
    InstanceType,
    Price,
)


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return load_catalog()


MINE = """
cloud: my-dc
types:
  - name: big-box
    architecture: amd64
    vcpu: 64
    memory: 512Gi
    accelerator: {model: nvidia-h100-80gb, count: 2}
    capacityTypes: [on-demand]
    prices:
      on-demand: {usdPerHour: 1, region: cellar, date: 2026-09-01}
"""


def _with(tmp_path: Path, **files: str) -> Catalog:
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return load_catalog(extra_dirs=[tmp_path])


def test_a_directory_adds_a_type(tmp_path: Path, shipped: Catalog) -> None:
    catalog = _with(tmp_path, mine=MINE)
    box = catalog.get("big-box")
    assert (box.cloud, box.price) == ("my-dc", Price(Decimal(1), "cellar", "2026-09-01"))
    assert box.accelerator == shipped.accelerators["nvidia-h100-80gb"]
    assert len(catalog) == len(shipped) + 1
    assert catalog.digest != shipped.digest


def _override(fields: str) -> str:
    return f"types:\n  - name: p5e.48xlarge\n    {fields}\n"


@pytest.mark.parametrize(
    ("fields", "attribute", "value"),
    [
        (
            "prices: {on-demand: {usdPerHour: 60.5, region: us-east-1, date: 2026-09}}",
            "price",
            Price(Decimal("60.5"), "us-east-1", "2026-09"),
        ),
        ("vcpu: 190", "vcpu", 190),
        ("notes: [ours]", "notes", ("ours",)),
        ("accelerator: {count: 4}\n    pci: null\n    networkCards: []", "device_count", 4),
        ("allocatable: {cpu: 190}", "allocatable", {"cpu": Quantity.of(190)}),
    ],
    ids=["price", "number", "list", "nested", "measured"],
)
def test_a_partial_entry_overrides_by_name(
    tmp_path: Path, shipped: Catalog, fields: str, attribute: str, value: object
) -> None:
    changed = _with(tmp_path, mine=_override(fields)).get("p5e.48xlarge")
    assert getattr(changed, attribute) == value
    untouched = shipped.get("p5e.48xlarge")
    assert (changed.memory, changed.accelerator) == (untouched.memory, untouched.accelerator)


def test_a_price_can_be_withdrawn(tmp_path: Path) -> None:
    text = "types:\n  - {name: p5.48xlarge, prices: {on-demand: null}}\n"
    assert _with(tmp_path, mine=text).get("p5.48xlarge").price is None


def test_an_expanded_type_can_be_priced(tmp_path: Path) -> None:
    name = "n1-standard-8+1xnvidia-tesla-t4"
    as_of = "pricesAsOf: {region: us-central1, date: 2026-09-01}\n"
    text = f"{as_of}types:\n  - {{name: {name}, prices: {{on-demand: 0.73}}}}\n"
    assert _with(tmp_path, mine=text).get(name).price == Price(Decimal("0.73"), "us-central1", "2026-09-01")


def test_an_accelerator_fact_changes_for_all_its_types(tmp_path: Path) -> None:
    text = "accelerators:\n  - {key: nvidia-rtx-pro-4500, productName: NVIDIA RTX PRO 4500 Blackwell}\n"
    catalog = _with(tmp_path, mine=text)
    assert {t.accelerator.product_name for t in catalog if t.accelerator and t.name.startswith("g7.")} == {
        "NVIDIA RTX PRO 4500 Blackwell"
    }


def test_later_directories_win(tmp_path: Path) -> None:
    for name, vcpu in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.yml").write_text(_override(f"vcpu: {vcpu}"))
    assert load_catalog(extra_dirs=[tmp_path / "a", tmp_path / "b"]).get("p5e.48xlarge").vcpu == 2
    assert load_catalog(extra_dirs=[tmp_path / "b", tmp_path / "a"]).get("p5e.48xlarge").vcpu == 1


def test_attachments_expand_within_their_bounds(tmp_path: Path) -> None:
    text = """
cloud: my-dc
defaults: {architecture: amd64, capacityTypes: [on-demand]}
machines:
  - {name: small, vcpu: 4, memory: 16Gi}
  - {name: wide, vcpu: 32, memory: 16Gi}
  - {name: fat, vcpu: 4, memory: 900Gi}
attachments:
  - {accelerator: {model: nvidia-l4, count: 2}, maxVcpu: 16, maxMemory: 128Gi}
"""
    mine = [t for t in _with(tmp_path, mine=text) if t.cloud == "my-dc"]
    assert [(t.name, t.machine_type, t.device_count) for t in mine] == [("small+2xnvidia-l4", "small", 2)]


# --- defects ---------------------------------------------------------------------------------------------------------


def _problem(tmp_path: Path, text: str) -> str:
    """The single problem of a file with this text."""
    with pytest.raises(CatalogError) as caught:
        _with(tmp_path, bad=text)
    (problem,) = caught.value.problems
    return str(problem).removeprefix(str(tmp_path) + "/")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("vcpu: 64", "vcpu: many"), "bad.yaml:6: instance type big-box: vcpu: found 'many'; allowed: a whole number"),
        (("vcpu: 64", "vcpu: 0"), "bad.yaml:6: instance type big-box: vcpu: found 0; allowed: greater than 0"),
        (
            ("vcpu: 64", "vcpu: 64\n    vcpus: 64"),
            "bad.yaml:7: instance type big-box: vcpus: found an unknown field; allowed: name, cloud, machine, ",
        ),
        (
            ("memory: 512Gi", "memory: 512GiB"),
            "bad.yaml:7: instance type big-box: memory: found '512GiB'; "
            "allowed: a Kubernetes quantity such as 80Gi or 81559Mi",
        ),
        (
            ("nvidia-h100-80gb", "nvidia-h100-80g"),
            "bad.yaml:8: instance type big-box: accelerator.model: found 'nvidia-h100-80g'; "
            "allowed: the key of an entry under accelerators; did you mean 'nvidia-h100-80gb'",
        ),
        (
            ("count: 2", "count: some"),
            "bad.yaml:8: instance type big-box: accelerator.count: found 'some'; "
            "allowed: a whole number up to 999, or a fraction of a card such as 1/8",
        ),
        (
            ("amd64", "x86_64"),
            "bad.yaml:5: instance type big-box: architecture: found 'x86_64'; allowed: 'amd64' or 'arm64'",
        ),
        (
            ("[on-demand]", "[ondemand]"),
            "bad.yaml:9: instance type big-box: capacityTypes[0]: found 'ondemand'; "
            "allowed: 'capacity-block', 'reserved', 'flex-start', 'spot' or 'on-demand'; did you mean 'on-demand'?",
        ),
        (
            ("      on-demand: {", "      on-demnd: {"),
            "bad.yaml:11: instance type big-box: prices.on-demnd: found 'on-demnd'; "
            "allowed: 'capacity-block', 'reserved', 'flex-start', 'spot' or 'on-demand'; did you mean 'on-demand'?",
        ),
        (
            ("usdPerHour: 1,", ""),
            "bad.yaml:11: instance type big-box: prices.on-demand.usdPerHour: found nothing; allowed: a value; it is",
        ),
        (
            ("{usdPerHour: 1, region: cellar, date: 2026-09-01}", "1.5"),
            "bad.yaml:11: instance type big-box: prices.on-demand: found '1.5'; allowed: a mapping (field: value), "
            "or a number with pricesAsOf at the top of the file",
        ),
        (("cloud: my-dc", ""), "bad.yaml:4: instance type big-box: cloud: found nothing; allowed: a value; it is"),
        (
            ("- name: big-box", "- nam: big-box"),
            "bad.yaml:4: name: found nothing; allowed: the name of the entry, as text",
        ),
        (("types:", "typs:"), "bad.yaml:3: typs: found an unknown field; allowed: priority, reason, expires, cloud, p"),
        (
            ("vcpu: 64", "vcpu: 64\n    vcpu: 65"),
            "bad.yaml:7: found key 'vcpu' is given twice; allowed: YAML, every key once",
        ),
        (("vcpu: 64", "vcpu: [64"), "bad.yaml:7: found text that is no YAML (did not find expected ',' or ']', while"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else None,
)
def test_a_defect_names_place_field_and_way_out(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in MINE
    assert _problem(tmp_path, MINE.replace(*change)).startswith(message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "pci: {root: [pci0000:10, pci0000:20, pci0000:30]}",
            "pci.root: found 3 values for 2 devices; allowed: 2 values",
        ),
        (
            "pci: {root: [pci0000:10], rootGroup: [0, 0]}",
            "pci.rootGroup: found root and rootGroup; allowed: one of them",
        ),
        ('pci: {bus: ["0000:10:00.0"]}', "pci.bus: found 1 values for 2 devices; allowed: 2 values"),
        ('pci: {bus: ["0000:10:00.0", "0000:10:00.0"]}', "pci.bus: found the same address twice; allowed: one address"),
        ("pci: {root: [pci:10]}", "pci.root[0]: found 'pci:10'; allowed: text like ^pci"),
        (
            "networkCards: [{kind: efa, count: 2, numa: [0, 1, 0]}]",
            "networkCards[0].numa: found 3 values for 2 devices",
        ),
        (
            "networkCards: [{kind: ena, primary: true, count: 2}]",
            "networkCards: found several primary cards; allowed: one",
        ),
        (
            "networkCards: [{kind: infiniband}]",
            "networkCards[0].kind: found 'infiniband'; allowed: 'ena', 'efa', 'gvnic'",
        ),
        ("allocatable: {memry: 1Gi}", "allocatable.memry: found 'memry'; allowed: cpu, memory, ephemeral-storage,"),
        ("allocatable: {memory: -1Gi}", "allocatable.memory: found '-1Gi'; allowed: a quantity from 0 to 1Ei"),
        ("allocatable: {memory: 1e99999999}", "allocatable.memory: found '1e99999999'; allowed: a quantity from 0"),
        (
            "networkCards: [{kind: efa, count: 100000}]",
            "networkCards[0].count: found 100000; allowed: less than or equal",
        ),
        ("topology: 2by2", "topology: found '2by2'; allowed: text like"),
        ("minDriver: newest", "minDriver: found 'newest'; allowed: text like"),
        ("localNvmeGB: -1", "localNvmeGB: found -1; allowed: greater than or equal to 0"),
        (
            "provenance: {shap: {source: x, date: 2026}}",
            "provenance.shap: found 'shap'; allowed: 'shape', 'cpu', 'accelerator'",
        ),
        ("provenance: {shape: {source: x, date: today}}", "provenance.shape.date: found 'today'; allowed: text like"),
    ],
)
def test_a_contradiction_is_a_defect(tmp_path: Path, line: str, message: str) -> None:
    text = MINE.replace("    vcpu: 64\n", f"    vcpu: 64\n    {line}\n")
    assert _problem(tmp_path, text).startswith(f"bad.yaml:7: instance type big-box: {message}")


def test_a_partition_table_that_nobody_wrote_is_a_defect(tmp_path: Path) -> None:
    found = _problem(tmp_path, "accelerators: [{key: nvidia-h100-80gb, migTable: h100}]\n")
    # Said once, and not of each of its types.
    assert found.startswith("bad.yaml:1: accelerator nvidia-h100-80gb: migTable: found 'h100'; allowed: a100-40gb, ")
    assert "did you mean 'h100-nvl' or 'h100-80gb' or 'h100-96gb'?" in found


def test_a_shipped_field_that_an_overlay_breaks_names_both_files(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("types:\n  - name: p5.48xlarge\n    accelerator: {count: 7}\n")
    with pytest.raises(CatalogError) as caught:
        load_catalog(extra_dirs=[tmp_path])
    texts = [str(problem) for problem in caught.value.problems]
    assert [text.split(": ")[2] for text in texts] == ["pci.root", "pci.bus", "pci.numa"]
    assert all(text.startswith("data/aws/p5.yaml:") and str(tmp_path / "mine.yaml") in text for text in texts)


def test_a_name_twice_in_one_layer_is_a_defect(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"found a second entry of this name \(the other one is in .*a.yaml:4\)"):
        _with(tmp_path, a=MINE, b=MINE)


def test_all_defects_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        _with(
            tmp_path,
            a=MINE.replace("vcpu: 64", "vcpu: no").replace("512Gi", "x"),
            b="types: 1\n",
            c="a: b: c\n",
            d="- 1\n",
        )
    assert [(Path(p.file).name, p.line, p.field) for p in caught.value.problems] == [
        ("a.yaml", 6, "vcpu"),
        ("a.yaml", 7, "memory"),
        ("b.yaml", 1, "types"),
        ("c.yaml", 1, ""),
        ("d.yaml", 1, ""),
    ]
    assert str(caught.value).startswith("5 problems in the instance catalog; nothing was loaded\n")


@pytest.mark.parametrize(("create", "found"), [(True, "no YAML file"), (False, "no such directory")])
def test_a_directory_without_files_is_a_defect(tmp_path: Path, create: bool, found: str) -> None:
    directory = tmp_path / "empty"
    if create:
        directory.mkdir()
    with pytest.raises(CatalogError, match=found):
        load_catalog(extra_dirs=[directory])


def test_a_file_that_is_no_text_is_a_defect(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CatalogError, match="cannot be read"):
        load_catalog(extra_dirs=[tmp_path])


def test_an_empty_file_is_harmless(tmp_path: Path, shipped: Catalog) -> None:
    assert _with(tmp_path, empty="# nothing yet\n") == shipped


def test_a_type_knows_its_file(tmp_path: Path) -> None:
    catalog = _with(tmp_path, mine=MINE)
    origins = {t.name: t.origin for t in catalog}
    assert origins["big-box"] == str(tmp_path / "mine.yaml")
    assert origins["p5.48xlarge"] == "data/aws/p5.yaml"


def test_equal_facts_from_different_places_are_equal(tmp_path: Path) -> None:
    types: list[InstanceType] = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.yaml").write_text(MINE)
        types.append(load_catalog(extra_dirs=[tmp_path / name]).get("big-box"))
    assert types[0] == types[1]
    assert types[0].origin != types[1].origin


def test_a_missing_accelerator_is_reported_beside_other_defects(tmp_path: Path) -> None:
    text = MINE.replace("h100-80gb", "h1000").replace("vcpu: 64", "vcpu: -8")
    assert text.count("nvidia-h1000") == text.count("-8") == 1
    with pytest.raises(CatalogError) as caught:
        _with(tmp_path, bad=text)
    reported = str(caught.value)
    assert "accelerator.model: found 'nvidia-h1000'" in reported
    assert "vcpu: found -8" in reported


@pytest.mark.parametrize("price", ["31.5", "{usdPerHour: 31.5, region: r, date: 2026}"], ids=["bare", "full"])
def test_a_persons_price_is_no_guess_whatever_it_replaces(tmp_path: Path, price: str) -> None:
    (tmp_path / "a.yaml").write_text(
        f"pricesAsOf: {{region: r, date: 2026}}\ntypes:\n- {{name: a3-ultragpu-8g, prices: {{on-demand: {price}}}}}\n"
    )
    assert load_catalog().get("a3-ultragpu-8g").prices[CapacityType.ON_DEMAND].guess
    assert not load_catalog(extra_dirs=[tmp_path]).get("a3-ultragpu-8g").prices[CapacityType.ON_DEMAND].guess
