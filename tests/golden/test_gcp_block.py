"""The life of calendar capacity in docs/gcp-block.md is one that was lived: wait, late delivery, hold, jobs, notice,
drain, end, with the real loop, adapter and clients over the fake Compute Engine. UPDATE_GOLDEN=1 rewrites the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.simulation.scenario import parse_scenario
from tests.fakes.gce.holdings import Holding
from tests.faults.gcp.block_lives import TYPE, ZONE, BlockSimulation, a3_catalog
from tests.golden.lived import JOB, JOBS, RUNS_FOR, Lived, compare, store_of, typed
from tests.golden.test_examples import ROOT

PAGE = ROOT / "docs/gcp-block.md"
START = datetime(2027, 2, 1, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
BLOCK = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: prepaid}
spec:
  mode: Act
  capacityTypes: [capacity-block]
  nodeTemplateRef: {kind: GCPNodeTemplate, name: gpu}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 2}
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityBlock
metadata: {name: block}
spec:
  pool: prepaid
  reservation: zones/us-central1-a/futureReservations/block
  instanceType: a3-highgpu-8g
  zone: us-central1-a
  count: 2
  startsAt: "2027-02-01T09:00:00Z"
  endsAt: "2027-02-02T09:00:00Z"
"""


def parts(patch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Each part of the page by its name."""
    simulation = BlockSimulation(catalog=a3_catalog(), start=START)
    begins, ends = START + HOUR, START + 25 * HOUR
    holding = Holding("block-res", ZONE, TYPE, 2, START, begins, ends, future="block", late=timedelta(minutes=30))
    simulation.fake.project.holdings.append(holding)
    patch.setattr("autoscaler.cli.blocks.list.SystemClock", lambda: simulation.clock)
    patch.setattr("autoscaler.cli.blocks.list.connected", lambda *_: simulation.api)
    patch.setattr("autoscaler.cli.blocks.list.read_store", store_of)
    lived = Lived(simulation, resync=timedelta(minutes=10))
    yield "manifest", BLOCK.lstrip()
    simulation.add(parse_scenario(f"{BLOCK}---{JOBS}"))
    lived.passes(1.25 * HOUR)
    yield "late", typed("blocks list")
    lived.passes(HOUR)
    yield "hold", lived.said()
    yield "list", typed("blocks list")
    job = JOB.format(name="finetune", at="0s", title="Eight GPUs for six hours", more=RUNS_FOR.format("6h"))
    late = JOB.format(name="pretrain", at="1h", title="Eight GPUs for as long as there are any", more="")
    simulation.add(parse_scenario(f"{job}---{late}"))
    lived.passes(8 * HOUR)
    yield "jobs", lived.said()
    lived.passes(ends - simulation.clock.now() + HOUR)
    yield "end", lived.said()
    assert simulation.ours() == []


def test_the_life_on_the_page_was_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    compare(PAGE, dict(parts(monkeypatch)))
