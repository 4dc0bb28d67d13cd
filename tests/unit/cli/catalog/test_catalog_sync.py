"""`foreslice catalog sync` against fakes of both clouds over HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autoscaler import clock as clocks
from autoscaler.cli.catalog.group import catalog
from autoscaler.errors import BadInputError
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import CapacityType
from tests.fakes.ec2.fake import FakeEc2
from tests.fakes.ec2.geography import standard
from tests.fakes.ec2.transport import Server
from tests.fakes.gcp import listing as gcp

CLOCK = clocks.VirtualClock()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeEc2:
    shipped = load_catalog()
    sold = Catalog.of([shipped.get("p5.48xlarge"), shipped.get("g6.xlarge")], shipped.accelerators.values())
    monkeypatch.setattr("autoscaler.cli.catalog.sync.SystemClock", lambda: CLOCK)
    monkeypatch.setattr("autoscaler.cli.aws.sync.SystemClock", lambda: CLOCK)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFAKE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "fake")
    return FakeEc2(CLOCK, geography=replace(standard(), catalog=sold))


@pytest.fixture
def url(fake: FakeEc2) -> Iterator[str]:
    with Server(fake) as server:
        yield server.url


def run(url: str, directory: Path, *arguments: str) -> Result:
    fixed = ["sync", "aws", "--region", "us-east-1", "--endpoint", url, "--into", str(directory)]
    return CliRunner().invoke(catalog, [*fixed, *arguments])


def test_changes_are_shown_and_written_only_when_asked(url: str, tmp_path: Path) -> None:
    shown = run(url, tmp_path)
    assert shown.exit_code == 0, shown.exception
    assert "types: 2\n" in shown.stderr
    assert "instance type p5.48xlarge\n" in shown.stdout
    assert "nothing is written" in shown.stdout
    assert not any(path.suffix == ".yaml" for path in tmp_path.iterdir())

    written = run(url, tmp_path, "--write")
    assert f"{tmp_path / 'synced-aws-us-east-1.yaml'} is written" in written.stdout
    assert "us-east-1a" in load_catalog(extra_dirs=[tmp_path]).get("p5.48xlarge").zones["us-east-1"]
    assert run(url, tmp_path).stdout == "no fact changes\n"


def test_what_people_wrote_is_listed_where_the_cloud_says_otherwise(url: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("types:\n  - {name: p5.48xlarge, network: slow}\n")
    (tmp_path / "below.yaml").write_text("priority: -30\ntypes:\n  - {name: p5.48xlarge, network: fast}\n")
    result = run(url, tmp_path)
    assert "p5.48xlarge  network  3200 Gbps peak  slow" in result.stdout


def test_a_missing_permission_is_named_with_what_to_do(fake: FakeEc2, url: str, tmp_path: Path) -> None:
    fake.denied.add("ec2:DescribeInstanceTypes")
    result = run(url, tmp_path)
    assert isinstance(result.exception, BadInputError)
    assert "aws: ec2:DescribeInstanceTypes is not allowed" in str(result.exception)
    assert "allow ec2:DescribeInstanceTypes for the account that runs the sync" in result.exception.next_step


def test_a_project_of_google_cloud_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoscaler.cli.catalog.sync.SystemClock", lambda: CLOCK)
    place = "us-central1-a"
    google = gcp.FakeGcp(
        accelerators=[("nvidia-l4", place)], machines=[gcp.Machine("g2-standard-4", place, 4, 16384, "nvidia-l4", 1)]
    )
    with gcp.Server(google) as server:
        fixed = ["sync", "gcp", "--project", gcp.PROJECT, "--endpoint", server.url, "--into", str(tmp_path)]
        result = CliRunner().invoke(catalog, [*fixed, "--write"])
        assert result.exit_code == 0, result.exception
        google.denied.add("machineTypes")
        refused = CliRunner().invoke(catalog, fixed)
        google.denied = {"skus"}
        unpriced = CliRunner().invoke(catalog, fixed)
    found = load_catalog(extra_dirs=[tmp_path])
    assert (found.get("g2-standard-4").sold_in(place), found.get("g2-standard-8").sold_in(place)) == (True, False)
    assert "gcp: compute.machineTypes.list is not allowed" in str(refused.exception)
    assert isinstance(refused.exception, BadInputError)
    assert "roles/compute.viewer" in refused.exception.next_step
    assert isinstance(unpriced.exception, BadInputError)
    assert "gcp: services.skus.list of the Cloud Billing API is not allowed" in str(unpriced.exception)
    assert f"gcloud services enable cloudbilling.googleapis.com --project {gcp.PROJECT}" in unpriced.exception.next_step
    assert "give prices in a file" in unpriced.exception.next_step


def test_the_program_itself_lists_a_project_through_google_s_clients(tmp_path: Path) -> None:
    """In a process of its own, as people run it: pages, a call that is throttled, and what it writes is read."""
    zones = ("us-central1-a", "us-east5-b")
    google = gcp.FakeGcp(
        zones=dict.fromkeys(zones, "UP"),
        accelerators=[("nvidia-h100-80gb", zones[0]), ("ct6e", zones[1]), ("nvidia-l4", zones[0])],
        machines=[
            gcp.Machine("a3-highgpu-8g", zones[0], 208, 1872 * 1024, "nvidia-h100-80gb", 8, local_ssds=16),
            gcp.Machine("ct6e-standard-4t", zones[1], 180, 720 * 1024, "ct6e", 4),
            gcp.Machine("z9-new-2g", zones[0], 16, 65536, "nvidia-l4", 2),
        ],
        skus=[
            gcp.Sku("A3 Instance Core running in Americas", "0.03"),
            gcp.Sku("A3 Instance Ram running in Americas", "0.0025", unit="GiBy.h"),
            gcp.Sku("Nvidia H100 80GB GPU running in Americas", "9"),
            gcp.Sku("TpuV6e running in Columbus", "3", regions=("us-east5",)),
            gcp.Sku("Commitment v1: A3 Cpu in Americas for 1 Year", "0.01"),
        ],
        failures=deque([(429, "rateLimitExceeded")]),
    )
    with gcp.Server(google) as server:
        command = [sys.executable, "-m", "autoscaler.cli", "catalog", "sync", "gcp", "--project", gcp.PROJECT]
        command += ["--endpoint", server.url, "--into", str(tmp_path), "--write"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr.split("\n")) == (
        0,
        ["zones: 2", "accelerators: 3", "types: 3", "prices: 4", "", ""],
    )
    assert "instance type z9-new-2g (new)\n" in done.stdout
    assert done.stdout.endswith(f"{tmp_path / f'synced-gcp-{gcp.PROJECT}.yaml'} is written\n")
    found = load_catalog(extra_dirs=[tmp_path])
    a3, v6e = (found.get(name) for name in ("a3-highgpu-8g", "ct6e-standard-4t"))
    prices = [
        price.usd_per_hour
        for one, zone in ((a3, zones[0]), (v6e, zones[1]))
        if (price := one.price_in(zone, CapacityType.ON_DEMAND, region=region_of(zone))) is not None
    ]
    assert prices == [Decimal("82.92"), 12]  # 208 * 0.03 + 1872 * 0.0025 + 8 * 9, and four chips
    assert (a3.sold_in("us-central1-b"), v6e.sold_in(zones[1]), found.get("z9-new-2g").vcpu) == (False, True, 16)
