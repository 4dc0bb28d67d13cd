"""Reading EC2's listing with the real boto3: paging, interruptions, missing permissions, what comes of it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import pytest

from autoscaler.clock import VirtualClock
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.aws.sales.listing import PRICES, SPOT, TYPES, ZONES, AwsListing
from providers.aws.session import Aws
from providers.errors import PermissionDeniedError, ThrottledError
from providers.listing import Progress, fetch
from tests.fakes.ec2.fake import FakeEc2
from tests.fakes.ec2.faults import THROTTLED
from tests.fakes.ec2.geography import standard

NAMES = ("p5.48xlarge", "p4d.24xlarge", "g6.xlarge", "trn2.48xlarge")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def fake(clock: VirtualClock) -> FakeEc2:
    shipped = load_catalog()
    sold = Catalog.of([shipped.get(name) for name in NAMES], shipped.accelerators.values())
    return FakeEc2(clock, geography=replace(standard(), catalog=sold))


@pytest.fixture
def listing(fake: FakeEc2, clock: VirtualClock) -> AwsListing:
    aws = Aws("us-east-1", aws_access_key_id="AKIAFAKE", aws_secret_access_key="fake")
    fake.wire.attach(aws.ec2)
    fake.wire.attach(aws.pricing)
    return AwsListing(aws, clock)


def test_types_zones_and_prices_are_read(fake: FakeEc2, listing: AwsListing, clock: VirtualClock) -> None:
    found = listing.interpreted(fetch(listing, clock).rows, date="2026-11-21")
    assert (found.cloud, found.regions) == ("aws", ("us-east-1",))
    types = {one.name: one for one in found.types}
    assert set(types) == set(NAMES)
    p5 = types["p5.48xlarge"]
    assert p5.accelerator is not None
    assert (p5.vcpu, str(p5.memory), p5.architecture, p5.rdma_cards) == (192, "2Ti", "amd64", 32)
    assert (p5.accelerator.api_name, p5.accelerator.count, str(p5.accelerator.memory)) == ("H100", Fraction(8), "80Gi")
    assert set(p5.zones) <= set(fake.account.geography.zones)
    trn2 = types["trn2.48xlarge"].accelerator
    assert trn2 is not None
    assert trn2.vendor == "AWS"
    prices = {(p.type_name, p.place, p.capacity_type): p.usd_per_hour for p in found.prices}
    assert prices["p5.48xlarge", "us-east-1", CapacityType.ON_DEMAND] == Decimal("55.04")
    assert {place for name, place, kind in prices if kind is CapacityType.SPOT} <= set(fake.account.geography.zones)


def test_spot_prices_can_be_left_out(fake: FakeEc2, listing: AwsListing, clock: VirtualClock) -> None:
    without = AwsListing(listing._aws, clock, spot=False)
    assert without.steps == (TYPES, ZONES, PRICES)
    fetch(without, clock)
    assert fake.calls["DescribeSpotPriceHistory"] == 0


@pytest.mark.parametrize(
    ("action", "steps_done"),
    [
        ("ec2:DescribeInstanceTypes", ()),
        ("ec2:DescribeInstanceTypeOfferings", (TYPES,)),
        ("ec2:DescribeSpotPriceHistory", (TYPES, ZONES)),
        ("pricing:GetProducts", (TYPES, ZONES, SPOT)),
    ],
)
def test_a_missing_permission_is_named_and_the_rest_goes_on_later(
    fake: FakeEc2, listing: AwsListing, clock: VirtualClock, action: str, steps_done: tuple[str, ...]
) -> None:
    fake.denied.add(action)
    told: list[Progress] = []
    with pytest.raises(PermissionDeniedError, match=action) as caught:
        fetch(listing, clock, on_page=lambda step, progress: told.append(progress))
    assert f"allow {action}" in caught.value.next_step
    assert (told[-1].done if told else ()) == steps_done

    fake.denied.clear()
    calls = dict(fake.calls)
    progress = Progress.of_json(told[-1].as_json()) if told else None
    again = fetch(listing, clock, progress=progress)
    assert again.done == listing.steps
    if TYPES in steps_done:
        assert fake.calls["DescribeInstanceTypes"] == calls["DescribeInstanceTypes"]


def test_throttled_calls_are_waited_out(fake: FakeEc2, listing: AwsListing, clock: VirtualClock) -> None:
    fake.faults.inject("DescribeInstanceTypes", THROTTLED, THROTTLED)
    began = clock.now()
    assert fetch(listing, clock).done == listing.steps
    assert fake.calls["DescribeInstanceTypes"] == 3
    assert (clock.now() - began).total_seconds() > 2 + 4


def test_a_cloud_that_stays_throttled_ends_the_sync(fake: FakeEc2, listing: AwsListing, clock: VirtualClock) -> None:
    fake.faults.inject("DescribeInstanceTypes", *[THROTTLED] * 10)
    with pytest.raises(ThrottledError):
        fetch(listing, clock)
    assert fake.calls["DescribeInstanceTypes"] == 6


def test_a_listing_that_is_too_old_begins_anew(fake: FakeEc2, listing: AwsListing, clock: VirtualClock) -> None:
    progress = fetch(listing, clock)
    clock.wait(3600)
    fetch(listing, clock, progress=progress)
    assert fake.calls["DescribeInstanceTypes"] == 2


def test_without_credentials_it_says_how_to_give_some(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(PermissionDeniedError) as caught:
        fetch(AwsListing(Aws("us-east-1"), clock), clock)
    assert "credentials" in caught.value.next_step


class _OneType:
    """A client that lists one type as EC2 would."""

    region = "us-east-1"

    def __init__(self, **differs: Any) -> None:
        self._found = {
            "InstanceType": "x.large",
            "ProcessorInfo": {"SupportedArchitectures": ["i386", "x86_64"]},
            "VCpuInfo": {"DefaultVCpus": 2},
            "MemoryInfo": {"SizeInMiB": 8192},
            "SupportedUsageClasses": ["on-demand"],
            **differs,
        }

    @property
    def ec2(self) -> _OneType:
        return self

    def describe_instance_types(self, **_: Any) -> dict[str, Any]:
        return {"InstanceTypes": [self._found]}


def gpus(**gpu: Any) -> dict[str, Any]:
    return {"Gpus": [{"Name": "L4", "Manufacturer": "NVIDIA", "MemoryInfo": {"SizeInMiB": 2861}, **gpu}]}


@pytest.mark.parametrize(
    ("differs", "count"),
    [
        pytest.param({"GpuInfo": gpus(Count=4)}, ["4"], id="whole cards"),
        pytest.param({"GpuInfo": gpus(Count=0, GpuPartitionSize=0.125)}, ["1/8"], id="a part of a card, as g6f has"),
        pytest.param({"GpuInfo": gpus(Count=0)}, [], id="nothing"),
        pytest.param({}, [], id="no accelerator"),
        pytest.param({"GpuInfo": gpus(Count=1, Manufacturer="Acme")}, [], id="a maker the catalog does not know"),
        pytest.param(
            {"GpuInfo": gpus(Count=1), "ProcessorInfo": {"SupportedArchitectures": ["arm64_mac"]}}, [], id="no Linux"
        ),
    ],
)
def test_which_types_are_listed(clock: VirtualClock, differs: dict[str, Any], count: list[str]) -> None:
    listing = AwsListing(cast("Aws", _OneType(**differs)), clock)
    assert [row["count"] for row in listing.page(TYPES, "", {}).rows] == count
