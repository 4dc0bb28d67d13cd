"""Layers: which count, in which order, and what stands while one of them is defective."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from instance_catalog.files.findings import CatalogError
from instance_catalog.files.last_good import effective_catalog
from instance_catalog.files.layers import Corrections, Layer, content_layer, text_layer
from instance_catalog.files.loader import directory_layers, shipped_layers
from instance_catalog.files.merging import catalog_of, disputes_of, origins_of
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import CapacityType

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HEAD = "pricesAsOf: {region: us-east-1, date: 2026-11-20}\n"


@pytest.fixture(scope="module")
def shipped() -> tuple[Layer, ...]:
    return shipped_layers()


def priced(name: str, dollars: str, head: str = "") -> Layer:
    text = f"{head}{HEAD}types:\n  - {{name: p5.48xlarge, prices: {{on-demand: {dollars}}}}}\n"
    return text_layer(name, "directory", text)


def price(catalog: Catalog) -> Decimal:
    return catalog.get("p5.48xlarge").prices[CapacityType.ON_DEMAND].usd_per_hour


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param([priced("a", "1")], "1", id="a file overrides what is shipped"),
        pytest.param(
            [priced("a", "1", "reason: deal\n"), priced("b", "2", "reason: deal\n")], "2", id="the later wins"
        ),
        pytest.param([priced("a", "1", "priority: 5\n"), priced("b", "2")], "1", id="the higher priority wins"),
        pytest.param([priced("a", "1"), priced("b", "2", "priority: -5\n")], "1", id="a negative priority gives way"),
        pytest.param(
            [priced("a", "1"), priced("b", "2", "expires: 2026-11-21\n")], "1", id="over since the start of its day"
        ),
        pytest.param(
            [priced("a", "1"), priced("b", "2", "expires: 2026-11-21T13:00:00+00:00\n")], "2", id="not over yet"
        ),
        pytest.param(
            [priced("a", "1"), priced("b", "2", "expires: 2026-11-21T12:30:00+02:00\n")], "1", id="over in its zone"
        ),
    ],
)
def test_the_layer_that_wins(shipped: tuple[Layer, ...], layers: list[Layer], expected: str) -> None:
    assert price(catalog_of([*shipped, *layers], now=NOW)) == Decimal(expected)


def test_files_without_a_header_may_not_say_the_same_entry_twice(shipped: tuple[Layer, ...]) -> None:
    with pytest.raises(CatalogError, match=r"b:3: instance type p5.48xlarge: found a second entry of this name"):
        catalog_of([*shipped, priced("a", "1"), priced("b", "2")])


@pytest.mark.parametrize(
    ("layers", "lost"),
    [
        pytest.param([priced("a", "1", "reason: x\n"), priced("b", "2", "reason: y\n")], "a", id="two overlays"),
        pytest.param([priced("a", "1", "reason: x\n"), priced("b", "2")], "a", id="a plain file over an overlay"),
        pytest.param([priced("a", "1"), priced("b", "2", "reason: y\n")], None, id="an overlay over a plain file"),
        pytest.param([priced("a", "1", "priority: 5\n"), priced("b", "2", "reason: y\n")], None, id="by priority"),
        pytest.param([priced("a", "1", "reason: x\n"), priced("b", "1", "reason: y\n")], None, id="of one mind"),
        pytest.param([priced("a", "1", "expires: 2020-01-01\n"), priced("b", "2", "reason: y\n")], None, id="over"),
    ],
)
def test_only_order_decides_between_overlays(shipped: tuple[Layer, ...], layers: list[Layer], lost: str | None) -> None:
    found = disputes_of([*shipped, *layers], now=NOW)
    assert [dispute.lost.file for dispute in found] == ([lost] if lost else [])
    assert all((d.name, d.field) == ("p5.48xlarge", "prices.on-demand.usdPerHour") for d in found)


def test_the_origin_of_a_value_names_priority_reason_and_end(shipped: tuple[Layer, ...]) -> None:
    overlay = priced("deal.yaml", "30", "priority: 7\nreason: contract 12\nexpires: 2026-12-31\n")
    found = {o.field: o for o in origins_of("p5.48xlarge", [*shipped, overlay], now=NOW) if o.entry == "types"}
    won = found["prices.on-demand.usdPerHour"].won
    assert (won.file, won.line, won.value, won.priority, won.reason) == ("deal.yaml", 6, 30, 7, "contract 12")
    assert won.expires == datetime(2026, 12, 31, tzinfo=UTC)
    assert [place.file for place in found["prices.on-demand.usdPerHour"].overridden] == ["data/aws/p5.yaml"]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        pytest.param("expires: tomorrow\n", "allowed: a day such as 2026-12-31", id="expiry is no time"),
        pytest.param("expires: 2026-12-31T11:30:00\n", "allowed: a time with its zone", id="expiry without zone"),
        pytest.param("priority: 1001\n", "allowed: less than or equal to 1000", id="priority out of bounds"),
        pytest.param("priorty: 1\n", "did you mean 'priority'", id="header misspelled"),
    ],
)
def test_a_bad_header_is_named(head: str, message: str) -> None:
    layer = priced("a.yaml", "1", head)
    assert layer.file is None
    assert [str(problem).startswith("a.yaml:1: ") for problem in layer.problems] == [True]
    assert message in str(layer.problems[0])


DEFECTS = {
    "no YAML": "types: [",
    "an unknown field": "types:\n  - {name: p5.48xlarge, vcpus: 3}\n",
    "a wrong value": "types:\n  - {name: p5.48xlarge, vcpu: many}\n",
    "a contradiction with shipped facts": "types:\n  - {name: p5.48xlarge, accelerator: {count: 7}}\n",
    "a new type of which too little is said": "types:\n  - {name: p9.48xlarge, vcpu: 3}\n",
}


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS.keys())
def test_a_defective_layer_leaves_the_last_good_one_standing(shipped: tuple[Layer, ...], defect: str) -> None:
    good = [*shipped, priced("a.yaml", "1"), priced("b.yaml", "2", "reason: deal\n")]
    first = effective_catalog(good, now=NOW)
    assert price(first.catalog) == 2
    assert first.refused == ()

    broken = [*shipped, priced("a.yaml", "1"), text_layer("b.yaml", "directory", defect)]
    second = effective_catalog(broken, now=NOW, before=first)
    assert second.catalog.digest == first.catalog.digest
    assert [(refused.layer, refused.kept) for refused in second.refused] == [("b.yaml", True)]
    assert second.refused[0].problems

    third = effective_catalog(good, now=NOW, before=second)
    assert third.refused == ()


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS.keys())
def test_a_layer_that_was_never_good_is_left_out_alone(shipped: tuple[Layer, ...], defect: str) -> None:
    overlay = priced("b.yaml", "2", "reason: deal\n")
    found = effective_catalog([*shipped, text_layer("a.yaml", "directory", defect), overlay], now=NOW)
    assert price(found.catalog) == 2
    assert [(refused.layer, refused.kept) for refused in found.refused] == [("a.yaml", False)]


def test_an_innocent_layer_of_the_same_type_stays(shipped: tuple[Layer, ...]) -> None:
    wrong = text_layer(
        "a.yaml", "directory", "reason: typo\ntypes:\n  - {name: p5.48xlarge, accelerator: {count: 7}}\n"
    )
    found = effective_catalog([*shipped, wrong, priced("b.yaml", "2", "reason: deal\n")], now=NOW)
    assert price(found.catalog) == 2
    assert [refused.layer for refused in found.refused] == ["a.yaml"]


def test_nothing_is_merged_again_when_nothing_changed(shipped: tuple[Layer, ...]) -> None:
    overlay = priced("a.yaml", "1", "expires: 2026-11-22\n")
    first = effective_catalog([*shipped, overlay], now=NOW)
    assert effective_catalog([*shipped, overlay], now=NOW, before=first) is first
    assert first.wake_at == datetime(2026, 11, 22, tzinfo=UTC)

    later = effective_catalog([*shipped, overlay], now=datetime(2026, 11, 22, tzinfo=UTC), before=first)
    assert price(later.catalog) != 1
    assert later.wake_at is None


def test_an_expired_version_is_not_kept(shipped: tuple[Layer, ...]) -> None:
    first = effective_catalog([*shipped, priced("a.yaml", "1", "expires: 2026-11-22\n")], now=NOW)
    broken = text_layer("a.yaml", "directory", "types: [")
    later = effective_catalog([*shipped, broken], now=datetime(2026, 11, 23, tzinfo=UTC), before=first)
    assert price(later.catalog) != 1
    assert [(refused.layer, refused.kept) for refused in later.refused] == [("a.yaml", False)]


def test_a_directory_that_vanishes_leaves_its_files_standing(shipped: tuple[Layer, ...], tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(priced("", "1").text)
    first = effective_catalog([*shipped, *directory_layers(tmp_path)], now=NOW)
    (tmp_path / "a.yaml").unlink()
    second = effective_catalog([*shipped, *directory_layers(tmp_path)], now=NOW, before=first)
    assert price(second.catalog) == 1
    assert [(refused.layer, refused.kept) for refused in second.refused] == [(str(tmp_path), True)]


def test_a_file_cut_off_within_a_line_is_not_settled(shipped: tuple[Layer, ...], tmp_path: Path) -> None:
    whole = f"{HEAD}types:\n- name: p5.48xlarge\n  prices:\n    on-demand: 55.04\n"
    (tmp_path / "a.yaml").write_text(whole)
    first = effective_catalog([*shipped, *directory_layers(tmp_path, settled=True)], now=NOW)
    (tmp_path / "a.yaml").write_text(whole.removesuffix("5.04\n"))
    second = effective_catalog([*shipped, *directory_layers(tmp_path, settled=True)], now=NOW, before=first)
    assert price(second.catalog) == Decimal("55.04")
    assert "ends within a line" in str(second.refused[0].problems[0])


def test_temporary_files_of_editors_are_no_layers(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("types: []\n")
    (tmp_path / ".a.yaml").write_text("types: [")
    assert [layer.name for layer in directory_layers(tmp_path)] == [str(tmp_path / "a.yaml")]


def test_defective_shipped_data_is_an_error(shipped: tuple[Layer, ...]) -> None:
    broken = text_layer("data/x.yaml", "shipped", "types: [")
    with pytest.raises(CatalogError, match=r"data/x\.yaml:2: found"):
        effective_catalog([*shipped, broken], now=NOW)


def test_corrections_are_layers_of_their_own(shipped: tuple[Layer, ...]) -> None:
    content = {"priority": 3, "types": [{"name": "p5.48xlarge", "vcpu": 3}]}
    layers = [content_layer(Corrections(name, 1, content)) for name in ("one", "two")]
    assert catalog_of([*shipped, *layers]).get("p5.48xlarge").vcpu == 3


ZONED = """
pricesAsOf: {region: us-east-1, date: 2026-11-20}
types:
  - name: p5.48xlarge
    zones: {us-east-1: [us-east-1a, us-east-1b], us-west-2: [], us-east-1-atl-2a: [us-east-1-atl-2a]}
    prices: {on-demand: 55}
    zonePrices:
      us-east-1a: {spot: 20.5}
      us-east-1: {spot: 21}
      eu-north-1: {on-demand: 60}
"""


@pytest.mark.parametrize(
    ("zone", "capacity_type", "expected"),
    [
        pytest.param("us-east-1a", CapacityType.SPOT, "20.5", id="of the zone"),
        pytest.param("us-east-1b", CapacityType.SPOT, "21", id="of its region"),
        pytest.param("us-east-1-atl-2a", CapacityType.SPOT, None, id="a Local Zone is no part of the region"),
        pytest.param("us-east-1a", CapacityType.ON_DEMAND, "55", id="list price"),
        pytest.param("eu-north-1c", CapacityType.ON_DEMAND, "60", id="of another region"),
        pytest.param("any", CapacityType.ON_DEMAND, "55", id="anywhere"),
    ],
)
def test_prices_are_of_the_nearest_place(
    shipped: tuple[Layer, ...], zone: str, capacity_type: CapacityType, expected: str | None
) -> None:
    machine = catalog_of([*shipped, text_layer("a", "d", ZONED)]).get("p5.48xlarge")
    found = machine.offering(capacity_type, zone=zone)
    assert found.usd_per_hour == (None if expected is None else Decimal(expected))


def test_zones_that_do_not_have_a_type_are_not_offered(shipped: tuple[Layer, ...]) -> None:
    machine = catalog_of([*shipped, text_layer("a", "d", ZONED)]).get("p5.48xlarge")
    asked = ["us-east-1a", "us-east-1c", "us-east-1-atl-2a", "us-west-2a", "eu-north-1c"]
    assert {o.zone for o in machine.offerings(asked)} == {"us-east-1a", "us-east-1-atl-2a", "eu-north-1c"}


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east-1a", "us-east-1"),
        ("us-central1-a", "us-central1"),
        ("us-central1-ai1a", "us-central1"),  # an AI zone of Google Cloud
        ("us-east-1-atl-2a",) * 2,
        ("any", "any"),
    ],
)
def test_the_region_of_a_zone(zone: str, region: str) -> None:
    assert region_of(zone) == region
