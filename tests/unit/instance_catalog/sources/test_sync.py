"""A cloud's listing against the catalog: what is written, what stays, what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.files.layers import Corrections, content_layer
from instance_catalog.files.loader import load_catalog, shipped_layers
from instance_catalog.files.merging import catalog_of
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.sources.sync import (
    CloudListing,
    Conflict,
    ListedAccelerator,
    ListedPrice,
    ListedType,
    Merged,
    ShrunkListingError,
    merge_listing,
    overruled,
)
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType

H100 = ListedAccelerator("NVIDIA", "H100", Fraction(8), Quantity.parse("81920Mi"))
P5 = ListedType(
    name="p5.48xlarge",
    architecture="amd64",
    vcpu=192,
    memory=Quantity.parse("2048Gi"),
    accelerator=H100,
    capacity_types=(CapacityType.CAPACITY_BLOCK, CapacityType.SPOT, CapacityType.ON_DEMAND),
    zones=("us-east-1b", "us-east-1a"),
    network="3200 Gbps peak",
    local_nvme_gb=30400,
    rdma_cards=32,
)
NEW = replace(P5, name="p9.48xlarge")
SPOT = ListedPrice("p5.48xlarge", "us-east-1a", CapacityType.SPOT, Decimal("20.5"))


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def listing(*types: ListedType, prices: tuple[ListedPrice, ...] = ()) -> CloudListing:
    return CloudListing("aws", ("us-east-1",), "the API", "2026-11-21", types, prices, "the price list")


def merged(found: CloudListing, catalog: Catalog, **others: Any) -> Merged:
    return merge_listing(found, catalog, **others)


def entries(result: Merged) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in result.content["types"]}


def test_of_a_known_type_only_news_are_written(catalog: Catalog) -> None:
    result = merged(listing(P5, prices=(SPOT,)), catalog)
    dollars = {"usdPerHour": "20.5", "region": "us-east-1", "date": "2026-11-21"}
    assert entries(result)["p5.48xlarge"] == {
        "name": "p5.48xlarge",
        "zones": {"us-east-1": ["us-east-1a", "us-east-1b"]},
        "zonePrices": {"us-east-1a": {"spot": dollars}},
    }
    assert result.conflicts == ()
    assert result.content["reason"] == "synced on 2026-11-21 from the API; prices: the price list"


def test_a_price_that_is_known_is_not_repeated(catalog: Catalog) -> None:
    known = ListedPrice("p5.48xlarge", "us-east-1", CapacityType.ON_DEMAND, Decimal("55.04"))
    assert "zonePrices" not in entries(merged(listing(P5, prices=(known,)), catalog))["p5.48xlarge"]


def test_what_the_cloud_says_otherwise_of_shipped_data_is_taken_over(catalog: Catalog) -> None:
    result = merged(listing(replace(P5, vcpu=190, capacity_types=(CapacityType.ON_DEMAND,))), catalog)
    entry = entries(result)["p5.48xlarge"]
    assert (entry["vcpu"], entry["capacityTypes"]) == (190, ["reserved", "on-demand"])


def test_a_new_type_gets_an_entry_that_loads(catalog: Catalog) -> None:
    result = merged(listing(NEW, prices=(replace(SPOT, type_name="p9.48xlarge"),)), catalog)
    machine = catalog_of([*shipped_layers(), content_layer(Corrections("s", 1, result.content))]).get("p9.48xlarge")
    assert machine.accelerator is not None
    assert (machine.accelerator.key, machine.device_count, len(machine.cards("efa"))) == ("nvidia-h100-80gb", 8, 32)
    assert machine.offering(CapacityType.SPOT, zone="us-east-1a").usd_per_hour == Decimal("20.5")
    assert machine.provenance["shape"].source == "the API"


def test_an_unknown_accelerator_is_described_as_far_as_it_is_known(catalog: Catalog) -> None:
    device = ListedAccelerator("NVIDIA", "Z100", Fraction(1, 4), Quantity.parse("100Gi"))
    result = merged(listing(replace(NEW, accelerator=device)), catalog)
    assert result.notes == (
        "accelerator nvidia-z100 is new: give its productName, architecture and memory as its driver publishes them",
    )
    machine = catalog_of([*shipped_layers(), content_layer(Corrections("s", 1, result.content))]).get("p9.48xlarge")
    assert machine.accelerator is not None
    assert (machine.accelerator.key, machine.accelerator.product_name) == ("nvidia-z100", None)
    assert machine.accelerator_count == Fraction(1, 4)


@pytest.mark.parametrize(
    ("accelerator", "conflict"),
    [
        (replace(H100, count=Fraction(4)), Conflict("p5.48xlarge", "accelerator.count", "4", "8")),
        (
            ListedAccelerator("NVIDIA", "H200", Fraction(8), Quantity.parse("144384Mi")),
            Conflict("p5.48xlarge", "accelerator.model", "H200 (nvidia-h200)", "nvidia-h100-80gb"),
        ),
    ],
    ids=["count", "model"],
)
def test_the_accelerator_of_a_known_type_stays_and_the_conflict_is_told(
    catalog: Catalog, accelerator: ListedAccelerator, conflict: Conflict
) -> None:
    result = merged(listing(replace(P5, accelerator=accelerator)), catalog)
    assert result.conflicts == (conflict,)
    assert "accelerator" not in entries(result)["p5.48xlarge"]


def test_what_a_person_wrote_stays_in_force_and_the_conflict_is_told(catalog: Catalog) -> None:
    mine = content_layer(Corrections("mine", 1, {"types": [{"name": "p5.48xlarge", "vcpu": 96}]}))
    dollars = {"usdPerHour": 3, "region": "us-east-1", "date": "2026-11-01"}
    deal = {"types": [{"name": "p5.48xlarge", "zonePrices": {"us-east-1a": {"spot": dollars}}}]}
    result = merged(listing(replace(P5, vcpu=190), prices=(SPOT,)), catalog)
    layers = [mine, content_layer(Corrections("deal", 1, deal)), content_layer(Corrections("s", 1, result.content))]
    after = catalog_of([*shipped_layers(), *layers])
    assert after.get("p5.48xlarge").vcpu == 96
    assert overruled(result.content, after) == (
        Conflict("p5.48xlarge", "vcpu", "190", "96"),
        Conflict("p5.48xlarge", "zonePrices.us-east-1a.spot", "20.5", "3"),
    )


def test_types_that_the_region_does_not_have_are_marked(catalog: Catalog) -> None:
    result = merged(listing(P5), catalog)
    assert entries(result)["p4d.24xlarge"] == {"name": "p4d.24xlarge", "zones": {"us-east-1": []}}
    assert "a2-highgpu-1g" not in entries(result)
    found = catalog_of([*shipped_layers(), content_layer(Corrections("s", 1, result.content))])
    assert not found.get("p4d.24xlarge").sold_in("us-east-1a")
    assert found.get("p4d.24xlarge").sold_in("us-west-2a")


def many(count: int) -> CloudListing:
    return listing(*(replace(P5, name=f"x{index}.large") for index in range(count)))


@pytest.mark.parametrize(
    ("left", "accept", "refused"),
    [
        pytest.param(10, False, False, id="nothing lost"),
        pytest.param(8, False, False, id="a fifth lost"),
        pytest.param(7, False, True, id="more than a fifth lost"),
        pytest.param(7, True, False, id="more than a fifth lost, and accepted"),
    ],
)
def test_a_listing_that_shrinks_is_not_believed(catalog: Catalog, left: int, accept: bool, refused: bool) -> None:
    last = merged(many(10), catalog).content
    if refused:
        with pytest.raises(
            ShrunkListingError, match=r"3 of 10 types are no longer listed \(x7.large, x8.large, x9.large"
        ):
            merged(many(left), catalog, last=last, accept_removals=accept)
        return
    result = merged(many(left), catalog, last=last, accept_removals=accept)
    assert result.gone == tuple(f"x{index}.large" for index in range(left, 10))


def test_a_guessed_price_is_written_as_one(catalog: Catalog) -> None:
    found = replace(listing(P5, prices=(SPOT,)), prices_are_guesses=True)
    price = entries(merged(found, catalog))["p5.48xlarge"]["zonePrices"]["us-east-1a"]["spot"]
    assert price["guess"] is True
