"""The life of a Capacity Block in docs/aws-block.md is one that was lived: find, buy, hold, jobs, extension, notice,
drain, end, with the real commands, loop, adapter and SDK over the fake EC2. UPDATE_GOLDEN=1 rewrites the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from autoscaler.simulation.scenario import parse_scenario
from tests.aws import FakeAws
from tests.faults.block_lives import p5_catalog
from tests.faults.world import AwsSimulation
from tests.golden.lived import JOB, JOBS, RUNS_FOR, Lived, compare, store_of, typed
from tests.golden.test_examples import ROOT

PAGE = ROOT / "docs/aws-block.md"
START = datetime(2027, 2, 1, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
QUERY = "--type p5.48xlarge --count 2 --hours 24"
POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: prepaid}
spec:
  mode: Act
  capacityTypes: [capacity-block]
  nodeTemplateRef: {kind: AWSNodeTemplate, name: gpu}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 2}
"""


class Life:
    """One life, told in the parts of the page."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.simulation = AwsSimulation(catalog=p5_catalog(), start=START)
        self.account = self.simulation.fake.account
        self.journal = folder / "purchases.jsonl"
        patch.setattr("autoscaler.composition.aws.Aws", lambda *_, **__: FakeAws())
        for command in ("blocks.market", "blocks.list"):
            patch.setattr(f"autoscaler.cli.{command}.SystemClock", lambda: self.simulation.clock)
        patch.setattr("autoscaler.cli.blocks.list.connected", lambda *_: self.simulation.api)
        patch.setattr("autoscaler.cli.blocks.list.read_store", store_of)
        for zone, days, fee in (
            ("us-east-1a", 0, "1920.00"),
            ("us-east-1b", 0, "2112.00"),
            ("us-east-1a", 2, "1728.00"),
        ):
            starts_in = timedelta(days=days, hours=3.5)
            self.account.sell_block("p5.48xlarge", zone, 2, starts_in=starts_in, lasts=timedelta(days=1), fee=fee)
        self.lived = Lived(self.simulation)

    def parts(self) -> Iterator[tuple[str, str]]:
        """Each part of the page by its name."""
        yield "find", self._typed(f"blocks find {QUERY} --within 7")
        limit = f"blocks buy cb-{1:017x} {QUERY} --within 7 --max-price 2000 --pool prepaid"
        yield "look", self._typed(limit)
        bought = self._typed(f"{limit} --yes")
        yield "buy", bought
        manifest = bought.partition("\n")[2].partition("\n")[2]
        self.simulation.add(parse_scenario(f"{POOL}---{JOBS}---\n{manifest}"))
        self.lived.passes(HOUR)
        yield "wait", self.lived.said()
        self.lived.passes(3 * HOUR)
        yield "hold", self.lived.said()
        yield "list", self._typed("blocks list")
        job = JOB.format(name="finetune", at="0s", title="Eight GPUs for six hours", more=RUNS_FOR.format("6h"))
        late = JOB.format(name="pretrain", at="1h", title="Eight GPUs for as long as there are any", more="")
        self.simulation.add(parse_scenario(f"{job}---{late}"))
        self.lived.passes(8 * HOUR)
        yield "jobs", self.lived.said()
        yield "extend", self._extended()
        self.lived.passes(20 * HOUR)
        yield "extended", self.lived.said()
        self.lived.passes(20 * HOUR - timedelta(minutes=15))
        yield "end", self.lived.said()
        assert self.account.alive() == []

    def _typed(self, line: str) -> str:
        return typed(line, hidden=["--journal", str(self.journal)] if " buy " in line else [])

    def _extended(self) -> str:
        """With the vendor's own tool: Foreslice never buys by itself, and an extension is a purchase."""
        ec2, (reservation,) = self.simulation.fake.client("ec2"), self.account.holdings
        asked = {"CapacityReservationId": reservation}
        (offer,) = ec2.describe_capacity_block_extension_offerings(CapacityBlockExtensionDurationHours=24, **asked)[
            "CapacityBlockExtensionOfferings"
        ]
        name = offer["CapacityBlockExtensionOfferingId"]
        ec2.purchase_capacity_block_extension(CapacityBlockExtensionOfferingId=name, **asked)
        return (
            f"$ aws ec2 purchase-capacity-block-extension --capacity-reservation-id {reservation} \\\n"
            f"    --capacity-block-extension-offering-id {name}\n"
        )


def test_the_life_on_the_page_was_lived(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parts = dict(Life(monkeypatch, tmp_path).parts())
    compare(PAGE, parts)
