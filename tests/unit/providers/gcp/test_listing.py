"""Reading Compute Engine's listing with Google's own clients: paging, missing permissions, what comes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from autoscaler.clock import VirtualClock
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.sources.sync import merge_listing
from instance_catalog.types.instance_type import CapacityType
from providers.errors import PermissionDeniedError, TemplateError
from providers.gcp import listing_prices
from providers.gcp.listing import ACCELERATORS, TYPES, ZONES, GcpListing
from providers.gcp.listing_prices import composed, families, prices_of_file, sku_row, slices, tpus
from providers.listing import Progress, fetch
from tests.fakes.gcp.listing import PROJECT, FakeGcp, Machine, Server, Sku

H100 = "nvidia-h100-80gb"
H100_MEGA = "Nvidia H100 Mega 80GB GPU"
A3 = Machine("a3-highgpu-8g", "us-central1-a", 208, 1872 * 1024, H100, 8, local_ssds=16)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def fake() -> FakeGcp:
    return FakeGcp(
        zones={"us-central1-a": "UP", "us-central1-b": "UP", "us-central1-c": "DOWN"},
        accelerators=[(H100, "us-central1-a"), (H100, "us-central1-c"), ("nvidia-l4", "us-central1-b")],
        machines=[
            A3,
            Machine("a3-highgpu-8g", "us-central1-b", 208, 1872 * 1024, H100, 8),
            Machine("a3-highgpu-8g", "us-central1-c", 208, 1872 * 1024, H100, 8),
            Machine("g2-standard-4", "us-central1-b", 4, 16384, "nvidia-l4", 1),
            Machine("n2-standard-4", "us-central1-b", 4, 16384),
            Machine("z9-new-2g", "us-central1-b", 16, 65536, "nvidia-l4", 2, architecture="ARM64"),
        ],
        skus=[
            Sku("A3 Instance Core running in Americas", "0.029"),
            Sku("A3 Instance Ram running in Americas", "0.0025", unit="GiBy.h"),
            Sku("Nvidia H100 80GB GPU running in Americas", "9.8"),
            Sku("Spot Preemptible A3 Instance Core running in Americas", "0.01"),
            Sku("Spot Preemptible A3 Instance Ram running in Americas", "0.001", unit="GiBy.h"),
            Sku("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Americas", "3"),
            Sku("Commitment v1: A3 Cpu in Americas for 1 Year", "0.02"),
            Sku("G2 Instance Core running in Americas", "0.02"),
            Sku("Network Internet Egress from Americas", "0.1", unit="GiBy"),
        ],
    )


@pytest.fixture
def url(fake: FakeGcp) -> Iterator[str]:
    with Server(fake) as server:
        yield server.url


@pytest.fixture
def listing(url: str) -> GcpListing:
    return GcpListing(PROJECT, endpoint=url)


def test_types_zones_and_prices_are_read(fake: FakeGcp, listing: GcpListing, clock: VirtualClock) -> None:
    found = listing.interpreted(fetch(listing, clock).rows, date="2026-11-21")
    assert (found.cloud, found.regions) == ("gcp", ("us-central1",))
    types = {one.name: one for one in found.types}
    assert set(types) == {"a3-highgpu-8g", "g2-standard-4", "z9-new-2g"}
    a3 = types["a3-highgpu-8g"]
    assert (a3.vcpu, str(a3.memory), a3.zones, a3.local_nvme_gb) == (208, "1872Gi", ("us-central1-a",), 6000)
    assert a3.accelerator is not None
    assert (a3.accelerator.api_name, a3.accelerator.count) == (H100, Fraction(8))
    assert types["z9-new-2g"].architecture == "arm64"
    prices = {(p.type_name, p.place, p.capacity_type): p.usd_per_hour for p in found.prices}
    assert prices == {
        ("a3-highgpu-8g", "us-central1", CapacityType.ON_DEMAND): 208 * Decimal("0.029")
        + 1872 * Decimal("0.0025")
        + 8 * Decimal("9.8"),
        ("a3-highgpu-8g", "us-central1", CapacityType.SPOT): Decimal("2.08") + Decimal("1.872") + 24,
    }
    assert fake.calls == {"zones": 2, "acceleratorTypes": 2, "machineTypes": 3, "skus": 5}


def test_it_merges_with_the_catalog(listing: GcpListing, clock: VirtualClock) -> None:
    found = listing.interpreted(fetch(listing, clock).rows, date="2026-11-21")
    result = merge_listing(found, load_catalog())
    entries = {entry["name"]: entry for entry in result.content["types"]}
    assert entries["a3-highgpu-8g"]["zones"] == {"us-central1": ["us-central1-a"]}
    assert entries["a2-highgpu-1g"]["zones"] == {"us-central1": []}
    assert entries["z9-new-2g"]["accelerator"] == {"model": "nvidia-l4", "count": 2}
    assert "vcpu" not in entries["a3-highgpu-8g"]
    assert result.conflicts == ()


def test_types_of_the_catalog_are_listed_whatever_they_have(url: str, clock: VirtualClock) -> None:
    listing = GcpListing(PROJECT, known=["n2-standard-4"], endpoint=url)
    found = listing.interpreted(fetch(listing, clock).rows, date="2026-11-21")
    assert {one.name: one.accelerator for one in found.types}["n2-standard-4"] is None


def test_prices_of_a_file_count_instead_of_the_catalogue(
    fake: FakeGcp, url: str, clock: VirtualClock, tmp_path: Path
) -> None:
    path = tmp_path / "prices.yaml"
    entry = '{instanceType: a3-highgpu-8g, place: us-central1, capacityType: on-demand, usdPerHour: "88.49"}'
    path.write_text(f"prices:\n  - {entry}\n")
    listing = GcpListing(PROJECT, prices=path, endpoint=url)
    (price,) = listing.interpreted(fetch(listing, clock).rows, date="2026-11-21").prices
    assert (price.place, price.usd_per_hour) == ("us-central1", Decimal("88.49"))
    assert fake.calls["skus"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prices: [{instanceType: a, place: b, capacityType: on-demand}]", r"prices\[0\]: KeyError\('usdPerHour'\)"),
        ("prices: [{instanceType: a, place: b, capacityType: cheap, usdPerHour: 1}]", r"'cheap' is not a valid"),
        ("prices: [{instanceType: a, place: b, capacityType: spot, usdPerHour: -1}]", "-1 is not a price"),
        ("prices: [{instanceType: a, place: b, capacityType: spot, usdPerHour: NaN}]", "NaN is not a price"),
        ("price: []", "prices cannot be read"),
        ("prices: [", "prices cannot be read"),
    ],
)
def test_a_defective_price_file_names_the_entry(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(TemplateError, match=message):
        prices_of_file(path)


@pytest.mark.parametrize(
    ("kind", "permission", "step", "done"),
    [
        ("zones", "compute.zones.list", "compute.zones.list", ()),
        ("acceleratorTypes", "compute.acceleratorTypes.list", "compute.acceleratorTypes.list", (ZONES,)),
        ("machineTypes", "compute.machineTypes.list", "compute.machineTypes.list", (ZONES, ACCELERATORS)),
        (
            "skus",
            "services.skus.list of the Cloud Billing API",
            "gcloud services enable cloudbilling.googleapis.com",
            (ZONES, ACCELERATORS, TYPES),
        ),
    ],
)
def test_a_missing_permission_is_named_and_the_rest_goes_on_later(
    fake: FakeGcp,
    listing: GcpListing,
    clock: VirtualClock,
    kind: str,
    permission: str,
    step: str,
    done: tuple[str, ...],
) -> None:
    fake.denied.add(kind)
    told: list[Progress] = []
    with pytest.raises(PermissionDeniedError) as caught:
        fetch(listing, clock, on_page=lambda step, progress: told.append(progress))
    assert permission in caught.value.message
    assert step in caught.value.next_step
    assert (told[-1].done if told else ()) == done

    fake.denied.clear()
    zones = fake.calls["zones"]
    progress = Progress.of_json(told[-1].as_json()) if told else None
    assert fetch(listing, clock, progress=progress).done == listing.steps
    assert fake.calls["zones"] == zones + (0 if done else 2)


@pytest.mark.parametrize(
    "failure", [(429, "Too many"), (403, "Quota exceeded for quota group"), (503, "Backend error")]
)
def test_what_passes_is_waited_out(
    fake: FakeGcp, listing: GcpListing, clock: VirtualClock, failure: tuple[int, str]
) -> None:
    fake.failures.append(failure)
    began = clock.now()
    assert fetch(listing, clock).done == listing.steps
    assert (clock.now() - began).total_seconds() > 2


def test_an_unknown_project_is_named(url: str, clock: VirtualClock) -> None:
    listing = GcpListing("no-project", endpoint=url)
    with pytest.raises(TemplateError) as caught:
        fetch(listing, clock)
    assert "gcloud projects list" in caught.value.next_step


def test_without_credentials_it_says_how_to_get_some(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
    with pytest.raises(PermissionDeniedError) as caught:
        fetch(GcpListing(PROJECT), clock)
    assert "gcloud auth application-default login" in caught.value.next_step


def test_every_family_of_the_catalog_has_a_price_or_is_named_as_one_without() -> None:
    parts = Path(listing_prices.__file__).with_name("price_parts.yaml")
    unknown = yaml.safe_load(parts.read_text(encoding="utf-8"))["unknown"]
    known = [machine for machine in load_catalog() if machine.cloud == "gcp"]
    names = {machine.name.rpartition("-")[0] for machine in known if "+" not in machine.name}
    pairs = {re.sub(r"-\d+\+\d+x", "+", machine.name) for machine in known if "+" in machine.name}
    assert {*families(), *slices(), *tpus()} <= names | pairs
    assert names - {*families(), *slices(), *tpus()} == {*unknown}
    assert pairs <= {*families()}


def test_gpus_that_are_attached_are_priced_with_their_machine(clock: VirtualClock) -> None:
    pair, other = "n1-standard-8+2xnvidia-tesla-t4", "n1-standard-8+1xnvidia-tesla-v100"
    fake = FakeGcp(
        zones={"us-central1-a": "UP", "us-central1-b": "UP"},
        machines=[Machine("n1-standard-8", zone, 8, 30 * 1024) for zone in ("us-central1-a", "us-central1-b")],
        accelerators=[("nvidia-tesla-t4", "us-central1-b"), ("nvidia-l4", "us-central1-a")],
        skus=[
            Sku("N1 Predefined Instance Core running in Americas", "0.03"),
            Sku("N1 Predefined Instance Ram running in Americas", "0.004"),
            Sku("Nvidia Tesla T4 GPU running in Americas", "0.35"),
            Sku("Nvidia Tesla V100 GPU running in Americas", "2.48"),
            Sku("Nvidia Tesla T4 GPU attached to Spot Preemptible VMs running in Americas", "0.11"),
        ],
    )
    with Server(fake) as server:
        listing = GcpListing(PROJECT, known=[pair, other, "a3-highgpu-8g"], endpoint=server.url)
        found = listing.interpreted(fetch(listing, clock).rows, date="2026-11-21")
    assert [(one.name, one.zones) for one in found.types] == [(pair, ("us-central1-b",))]
    (price,) = found.prices
    assert (price.type_name, price.usd_per_hour) == (pair, 8 * Decimal("0.03") + 30 * Decimal("0.004") + Decimal("0.7"))
    result = merge_listing(found, load_catalog())
    assert [entry["name"] for entry in result.content["types"] if entry["name"].startswith("n1-")] == [pair]
    assert result.conflicts == ()


def test_a_gpu_that_is_billed_with_its_share_of_the_machine(clock: VirtualClock) -> None:
    fake = FakeGcp(
        machines=[Machine("a4-highgpu-8g", "us-central1-b", 224, 3968 * 1024, "nvidia-b200", 8)],
        accelerators=[("nvidia-b200", "us-central1-b")],
        skus=[
            Sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "16.11"),
            Sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "4.9542"),
            Sku("Commitment v1: A4 Nvidia B200 (1 gpu slice) in Americas for 1 Year", "9"),
        ],
    )
    with Server(fake) as server:
        listing = GcpListing(PROJECT, endpoint=server.url)
        found = listing.interpreted(fetch(listing, clock).rows, date="2026-11-21")
    assert {price.capacity_type: price.usd_per_hour for price in found.prices} == {
        CapacityType.ON_DEMAND: Decimal("128.88"),
        CapacityType.SPOT: Decimal("39.6336"),
    }


def test_tpus_are_priced_by_the_chip(clock: VirtualClock) -> None:
    """Of the SKUs that have the word, only those of Spot and of machines that anybody starts are prices here."""
    fake = FakeGcp(
        machines=[Machine("ct6e-standard-4t", "us-central1-b", 180, 720 * 1024)],
        skus=[
            Sku("TpuV6e running in Americas", "2.7"),
            Sku("TpuV6e attached to Spot Preemptible VMs running in Americas", "0.54421"),
            Sku("TpuV6e DWS Defined Duration running in Americas", "1.89"),
            Sku("Calendar Mode TpuV6e running in Americas", "2.1"),
            Sku("Commitment v1: TpuV6e in Americas for 1 Year", "1.5"),
            Sku("TpuV5e running in Americas", "1.2"),
        ],
    )
    with Server(fake) as server:
        listing = GcpListing(PROJECT, known=["ct6e-standard-4t"], endpoint=server.url)
        found = listing.interpreted(fetch(listing, clock).rows, date="2026-11-21")
    assert {(p.place, p.capacity_type.value): p.usd_per_hour for p in found.prices} == {
        ("us-central1", "on-demand"): Decimal("10.8"),
        ("us-central1", "spot"): Decimal("2.17684"),
    }
    assert found.prices_are_guesses


def test_a_part_with_two_names_counts_once_and_one_with_two_prices_not_at_all(
    listing: GcpListing, clock: VirtualClock
) -> None:
    (a3,) = [one for one in listing.interpreted(fetch(listing, clock).rows, date="").types if "a3" in one.name]
    mega = replace(a3, name="a3-megagpu-8g")
    parts = [("A3Plus Instance Core", "0.03"), ("A3Plus Instance Ram", "0.0025"), ("Nvidia H100 80GB Plus GPU", "9")]
    rows = [sku_row(f"{name} running in Americas", ["us-central1"], Decimal(usd)) for name, usd in parts]
    assert all(rows)
    (price,) = composed([mega], [row for row in rows if row])
    assert price.usd_per_hour == 208 * Decimal("0.03") + 1872 * Decimal("0.0025") + 8 * 9
    again = sku_row("Nvidia H100 80GB Mega GPU running in Americas", ["us-central1"], Decimal(10))
    assert list(composed([mega], [row for row in (*rows, again) if row])) == []


def test_flex_start_has_the_price_of_its_own_skus(listing: GcpListing, clock: VirtualClock) -> None:
    """The catalogue words them otherwise than the others; calendar capacity and commitments are no flex-start."""
    (a3,) = [one for one in listing.interpreted(fetch(listing, clock).rows, date="").types if "a3" in one.name]
    parts = [
        ("DWS Defined Duration A3 Core", "0.01"),
        ("DWS Defined Duration A3 Ram", "0.001"),
        ("Nvidia H100 80GB GPU attached to DWS Defined Duration VMs", "4"),
        ("Nvidia H100 80GB GPU attached to DWS Calendar Mode VMs", "5"),
    ]
    rows = [sku_row(f"{name} running in Americas", ["us-central1"], Decimal(usd)) for name, usd in parts]
    assert rows[-1] is None
    found = list(composed([replace(a3, name="a3-highgpu-8g")], [row for row in rows if row]))
    assert [(one.capacity_type.value, one.usd_per_hour) for one in found] == [
        ("flex-start", 208 * Decimal("0.01") + 1872 * Decimal("0.001") + 8 * 4)
    ]
    assert list(composed([replace(a3, name="a3-highgpu-8g")], [row for row in rows[1:] if row])) == []
    tpu = sku_row("DWS Defined Duration V6e running in Columbus", ["us-east5"], Decimal("1.35"))
    assert tpu is not None
    assert (tpu["part"], tpu["kind"]) == ("TpuV6e", "flex-start")


@pytest.mark.parametrize(
    ("description", "part", "kind"),
    [
        ("TPU7x running in Americas", "TPU7x", "on-demand"),
        ("Nvidia H100 Mega 80GB GPU attached to DWS Defined Duration VMs running in Seoul", H100_MEGA, "flex-start"),
    ],
)
def test_names_that_the_catalogue_was_seen_to_have(description: str, part: str, kind: str) -> None:
    row = sku_row(description, ["us-central1"], Decimal(12))
    assert row is not None
    assert (row["part"], row["kind"]) == (part, kind)
    assert part in {*tpus().values(), *families()["a3-megagpu"].gpus}
