"""The catalog as a value: questions, orders, offerings."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog, UnknownInstanceTypeError
from instance_catalog.types.instance_type import (
    Accelerator,
    CapacityType,
    InstanceType,
    Offering,
    Price,
    Provenance,
    provenance_of,
)

Q = Quantity.parse
H100 = Accelerator(
    "nvidia-h100",
    "NVIDIA",
    "H100",
    product_name="NVIDIA H100 80GB HBM3",
    memory=Q("81559Mi"),
    api_memory=Q("80Gi"),
    api_names=FrozenMap({"gcp": "nvidia-h100-80gb"}),
)
TPU = Accelerator("google-tpu", "Google", "TPU v6e")
GAUDI = Accelerator("habana-gaudi", "Habana", "Gaudi", api_memory=Q("32Gi"))


def _type(name: str, accelerator: Accelerator | None, usd: str | None, *sold: CapacityType) -> InstanceType:
    prices = {CapacityType.ON_DEMAND: Price(Decimal(usd), "r", "2026")} if usd else {}
    return InstanceType(
        cloud="gcp" if name.startswith("g") else "aws",
        name=name,
        architecture="arm64" if "arm" in name else "amd64",
        vcpu=len(name),
        memory=Q("8Gi"),
        accelerator=accelerator,
        accelerator_count=Fraction(int(name[-1])),
        capacity_types=sold or (CapacityType.ON_DEMAND,),
        prices=FrozenMap(prices),
    )


CATALOG = Catalog.of(
    [
        _type("a.8", H100, "10"),
        _type("g-arm.1", H100, "2"),
        _type("a.4", TPU, None, CapacityType.RESERVED, CapacityType.SPOT),
        _type("g.2", GAUDI, "1", CapacityType.CAPACITY_BLOCK, CapacityType.ON_DEMAND),
        _type("plain.0", None, "0.5"),
    ]
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({}, ["a.4", "a.8", "g-arm.1", "g.2", "plain.0"]),
        ({"accelerator": "h100"}, ["a.8", "g-arm.1"]),
        ({"accelerator": "HBM3"}, ["a.8", "g-arm.1"]),
        ({"accelerator": "nvidia-h100-80gb"}, ["a.8", "g-arm.1"]),
        ({"accelerator": "H100", "cloud": "aws"}, ["a.8"]),
        ({"min_memory": Q("32Gi")}, ["a.8", "g-arm.1", "g.2"]),
        ({"min_memory": Q("79.7Gi")}, []),
        ({"sort": "price"}, ["plain.0", "g.2", "g-arm.1", "a.8", "a.4"]),
        ({"sort": "memory"}, ["a.8", "g-arm.1", "g.2", "a.4", "plain.0"]),
        ({"sort": "count"}, ["a.8", "a.4", "g.2", "g-arm.1", "plain.0"]),
        ({"sort": "vcpu"}, ["g-arm.1", "plain.0", "a.4", "a.8", "g.2"]),
        ({"sort": "accelerator"}, ["plain.0", "a.4", "g.2", "g-arm.1", "a.8"]),
    ],
    ids=lambda value: ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else None,
)
def test_questions(question: dict[str, object], expected: list[str]) -> None:
    assert [t.name for t in CATALOG.query(**question)] == expected  # type: ignore[arg-type]  # a table of keyword sets


def test_the_drivers_memory_counts_where_known() -> None:
    assert [t.name for t in CATALOG.query(min_memory=Q("80Gi"))] == []
    assert len(CATALOG.query(min_memory=Q("81559Mi"))) == 2


def test_get_suggests_near_names() -> None:
    with pytest.raises(UnknownInstanceTypeError, match=r"'a\.9' is not in the catalog; did you mean 'a\.8'"):
        CATALOG.get("a.9")


def test_no_suggestion_for_something_else_entirely() -> None:
    with pytest.raises(UnknownInstanceTypeError, match="'zzzzzz' is not in the catalog; `foreslice catalog list`"):
        CATALOG.get("zzzzzz")


def test_offerings_are_cheapest_first_and_unpriced_last() -> None:
    offerings = CATALOG.offerings()
    assert [(o.instance_type, o.capacity_type.value, o.usd_per_hour) for o in offerings] == [
        ("plain.0", "on-demand", Decimal("0.5")),
        ("g.2", "on-demand", Decimal(1)),
        ("g-arm.1", "on-demand", Decimal(2)),
        ("a.8", "on-demand", Decimal(10)),
        ("a.4", "reserved", None),
        ("a.4", "spot", None),
        ("g.2", "capacity-block", None),
    ]
    assert {o.zone for o in offerings} == {"any"}


def test_offerings_multiply_by_zone() -> None:
    zones = [o.zone for o in CATALOG.offerings(["z1", "z2"]) if o.instance_type == "a.8"]
    assert zones == ["z1", "z2"]


@pytest.mark.parametrize(
    ("capacity_type", "usd", "reservation", "buyable"),
    [
        (CapacityType.ON_DEMAND, "1", None, True),
        (CapacityType.ON_DEMAND, None, None, False),
        (CapacityType.SPOT, "1", None, True),
        (CapacityType.RESERVED, "1", None, False),
        (CapacityType.RESERVED, "1", "cr-1", True),
        (CapacityType.CAPACITY_BLOCK, "0", None, False),
        (CapacityType.CAPACITY_BLOCK, "0", "cr-1", True),
        (CapacityType.CAPACITY_BLOCK, None, "cr-1", False),
    ],
)
def test_what_can_be_bought(
    capacity_type: CapacityType, usd: str | None, reservation: str | None, buyable: bool
) -> None:
    price = Decimal(usd) if usd else None
    assert Offering("x", "any", capacity_type, price, reservation=reservation).buyable is buyable


def test_an_offering_says_what_its_price_was_read_for() -> None:
    offering = CATALOG.get("a.8").offering(CapacityType.ON_DEMAND, region="r", reservation="cr-1")
    assert offering == Offering("a.8", "any", CapacityType.ON_DEMAND, Decimal(10), "r", "2026", "cr-1", "r")


def test_the_price_of_another_region_is_no_price() -> None:
    machine = CATALOG.get("a.8")
    assert machine.offering(CapacityType.ON_DEMAND, zone="z1").usd_per_hour is None
    assert machine.offering(CapacityType.ON_DEMAND, region="elsewhere").usd_per_hour is None
    assert machine.offering(CapacityType.ON_DEMAND).usd_per_hour == Decimal(10)


def test_the_digest_identifies_the_content() -> None:
    types = list(CATALOG)
    assert Catalog.of(reversed(types)).digest == CATALOG.digest
    assert Catalog.of([replace(types[0], vcpu=99), *types[1:]]).digest != CATALOG.digest
    assert Catalog.of([replace(types[0], origin="elsewhere.yaml"), *types[1:]]).digest == CATALOG.digest


def test_accelerators_of_types_are_part_of_the_catalog() -> None:
    assert list(CATALOG.accelerators) == ["google-tpu", "habana-gaudi", "nvidia-h100"]
    assert len(CATALOG) == 5


@pytest.mark.parametrize(("count", "devices"), [(Fraction(1, 8), 1), (Fraction(8), 8), (Fraction(0), 0)])
def test_a_part_of_a_card_is_one_device(count: Fraction, devices: int) -> None:
    assert replace(CATALOG.get("a.8"), accelerator_count=count).device_count == devices


def test_provenance_of_a_group_or_of_everything() -> None:
    own, rest = Provenance("own"), Provenance("rest")
    assert provenance_of({"price": own, "": rest}, "price") == own
    assert provenance_of({"price": own, "": rest}, "shape") == rest
    assert provenance_of({}, "shape") is None
