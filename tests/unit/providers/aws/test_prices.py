"""Prices come from the list and the history; what only the customer knows lies over them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from botocore.loaders import Loader

from instance_catalog.types.instance_type import CapacityType, partition_of
from providers.aws.sales.prices import Override, Prices, load_overrides
from providers.errors import TemplateError
from tests.aws import Rig, catalog


def prices(rig: Rig, *overrides: Override) -> Prices:
    return Prices(rig.aws, rig.clock, catalog(), overrides)


def test_the_list_price_is_read_once() -> None:
    rig = Rig()
    found = prices(rig)
    assert found.on_demand("p5.48xlarge") == Decimal("55.04")
    assert found.on_demand("p5.48xlarge") == Decimal("55.04")
    assert rig.fake.calls["GetProducts"] == 1


def test_a_type_that_is_not_sold_on_demand_has_no_price() -> None:
    assert prices(Rig()).on_demand("p6e-gb200.36xlarge") is None


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eusc-de-east-1"])
def test_other_partitions_have_no_price_of_the_commercial_regions(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    monkeypatch.setattr(type(rig.aws), "region", region)
    assert prices(rig).on_demand("p5.48xlarge") is None
    assert list(prices(rig).listed(["p5.48xlarge"])) == []
    assert rig.fake.calls["GetProducts"] == 0
    known = catalog().types["p5.48xlarge"]
    assert known.offering(CapacityType.ON_DEMAND, zone=f"{region}a").usd_per_hour is None
    assert known.offering(CapacityType.ON_DEMAND, zone="us-east-1a").usd_per_hour == Decimal("55.04")


@pytest.mark.parametrize("region", ["cn-north-1", "eusc-de-east-1"])
def test_spot_prices_in_other_currencies_are_not_taken_for_dollars(
    region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig()
    rig.fake.account.stock.spot_price("p5.48xlarge", "us-east-1b", "17.5")
    monkeypatch.setattr(type(rig.aws), "region", region)
    assert prices(rig).spot() == ()
    assert rig.fake.calls["DescribeSpotPriceHistory"] == 0


def test_the_separate_partitions_are_those_that_botocore_knows() -> None:
    for partition in Loader().load_data("partitions")["partitions"]:
        regions = [name for name in partition["regions"] if not name.endswith("-global")]
        assert all(bool(partition_of(name)) == (partition["id"] != "aws") for name in regions), partition["id"]


def test_spot_costs_what_the_history_says_last() -> None:
    rig = Rig()
    rig.fake.account.stock.spot_price("p5.48xlarge", "us-east-1b", "17.5")
    found = {(one.offering.instance_type, one.offering.zone): one.usd_per_hour for one in prices(rig).spot()}
    assert found["p5.48xlarge", "us-east-1b"] == Decimal("17.5")


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        pytest.param([Override("p5.*", "on-demand", factor=Decimal("0.5"))], "27.52", id="a share"),
        pytest.param([Override("p5.48xlarge", "on-demand", usd_per_hour=Decimal(30))], "30", id="a price"),
        pytest.param(
            [
                Override("*", "on-demand", factor=Decimal("0.5")),
                Override("p5.*", "on-demand", usd_per_hour=Decimal(40)),
            ],
            "40",
            id="the last one wins",
        ),
        pytest.param([Override("p5.*", "spot", factor=Decimal("0.5"))], "55.04", id="another capacity type"),
        pytest.param([Override("g6.*", "on-demand", factor=Decimal("0.5"))], "55.04", id="another family"),
    ],
)
def test_an_override_lies_over_the_list(overrides: list[Override], expected: str) -> None:
    assert prices(Rig(), *overrides).on_demand("p5.48xlarge") == Decimal(expected)


def test_overrides_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        'prices:\n- {instanceType: p5.48xlarge, capacityType: on-demand, usdPerHour: "38.50"}\n'
        '- {instanceType: "g6.*", capacityType: spot, factor: "0.72"}\n'
    )
    assert load_overrides(tmp_path / "p.yaml") == (
        Override("p5.48xlarge", "on-demand", usd_per_hour=Decimal("38.50")),
        Override("g6.*", "spot", factor=Decimal("0.72")),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "cannot be read", id="empty"),
        pytest.param("prices: 3", "cannot be read", id="no list"),
        pytest.param("prices: [a]", "cannot be read", id="no entry"),
        pytest.param("[", "cannot be read", id="no YAML"),
        pytest.param("prices: [{instanceType: a, capacityType: on-demand}]", r"prices\[0\]", id="no amount"),
        pytest.param(
            "prices: [{instanceType: a, capacityType: on-demand, factor: 1, usdPerHour: 2}]", r"prices\[0\]", id="two"
        ),
        pytest.param("prices: [{instanceType: a, capacityType: cheap, factor: 1}]", "cheap", id="capacity type"),
        pytest.param("prices: [{capacityType: spot, factor: 1}]", r"prices\[0\] lacks instanceType", id="no type"),
        pytest.param(
            "prices: [{instanceType: a, capacityType: spot, factor: 1, zone: b}]",
            r"prices\[0\]\.zone",
            id="unknown key",
        ),
        pytest.param("prices: [{instanceType: a, capacityType: spot, factor: much}]", r"prices\[0\]", id="no number"),
        pytest.param("prices: [{instanceType: a, capacityType: spot, factor: -1}]", "is not an amount", id="negative"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(TemplateError, match=message) as caught:
        load_overrides(tmp_path / "p.yaml")
    assert caught.value.next_step


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="cannot be read"):
        load_overrides(tmp_path / "none.yaml")


def test_one_look_reads_a_few_list_prices_and_old_ones_hold_meanwhile() -> None:
    rig = Rig()
    types = [name for name, one in catalog().types.items() if one.cloud == "aws"]
    found = prices(rig, Override("p5.48xlarge", "on-demand", usd_per_hour=Decimal(30)))
    known = [len(list(found.listed(types))) for _ in types]
    assert known == sorted(known)
    assert 0 < known[0] < known[-1]
    assert known[-1] == len([name for name in types if found.on_demand(name) is not None])
    rig.clock.advance(timedelta(hours=13))
    asked = rig.fake.calls["GetProducts"]
    assert len(list(found.listed(types))) == known[-1]
    assert rig.fake.calls["GetProducts"] - asked == 8


def test_offerings_have_prices_and_reservations_cost_nothing_more() -> None:
    rig = Rig()
    block = rig.fake.account.reserve("p5.48xlarge", "us-east-1a", 2)
    for _ in catalog().types:
        found = {one.offering: one for one in rig.provider.offerings()}
    held = next(one for key, one in found.items() if key.reservation == block.id)
    assert (held.usd_per_hour, held.available) == (Decimal(0), 2)
    listed = [
        one for key, one in found.items() if (key.instance_type, key.capacity_type) == ("p5.48xlarge", "on-demand")
    ]
    assert [one.usd_per_hour for one in listed] == [Decimal("55.04")]
