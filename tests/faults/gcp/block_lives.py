"""Random lives of calendar capacity on Google Cloud: the lives of block_lives.py over this adapter and its fake.

The node pool of a block has the labels and the taint that plans assume, since no launch can add any.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache, cached_property
from random import Random
from typing import Final

from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from tests.crash.life import START
from tests.fakes.ec2 import SLUGGISH as SLOW_EC2
from tests.fakes.gce.errors import CUT_AFTER, THROTTLED, UNAVAILABLE
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.holdings import Holding
from tests.fakes.gce.state import PROMPT, SLUGGISH, Group
from tests.faults.block_lives import HOUR, MINUTE, BlockWorld, Held
from tests.faults.gcp.world import KIND, GcpSimulation

TYPE: Final = "a3-highgpu-8g"
ZONE: Final = "us-central1-a"
CALLS: Final = (
    "createInstances",
    "listManagedInstances",
    "instances.aggregatedList",
    "reservations.aggregatedList",
    "futureReservations.aggregatedList",
)


@cache
def a3_catalog() -> Catalog:
    """Only what the block needs, which makes planning quick."""
    catalog = load_catalog()
    return replace(catalog, types=FrozenMap({TYPE: catalog.types[TYPE]}))


class BlockSimulation(GcpSimulation):
    """A project with one node pool, whose machines are bound to the block's reservation."""

    @cached_property
    def fake(self) -> FakeGce:
        fake = FakeGce(self.clock, self._pace)
        own = {
            labels.POOL: "prepaid",
            labels.CAPACITY_BLOCK: "block",
            labels.CAPACITY_TYPE: "capacity-block",
            labels.CLOUD: "gcp",
            labels.NVIDIA_GPU_PRESENT: "true",
        }
        taints = (Taint(labels.CAPACITY_BLOCK, "block"),)
        group = Group("gke-c1-block-grp", ZONE, "gke-c1-block", TYPE, "RESERVATION_BOUND", kube_labels=own)
        group.reservation, group.kube_taints = "block-res", taints
        fake.project.add(group)
        return fake


class GcpBlockWorld(BlockWorld):
    """Calendar capacity. An extension is an amendment of the future reservation that Google approves at once."""

    @cached_property
    def simulation(self) -> BlockSimulation:
        pace = SLUGGISH if self.life.pace is SLOW_EC2 else PROMPT
        return BlockSimulation(catalog=a3_catalog(), start=START, gce=pace)

    def hold(self) -> Held:
        starts = START + self.life.starts_in * MINUTE
        ends = starts + self.life.days * 24 * HOUR
        self.holding = Holding("block-res", ZONE, TYPE, self.life.count, START, starts, ends, future="block")
        self.simulation.fake.project.holdings.append(self.holding)
        return Held(f"zones/{ZONE}/futureReservations/block", KIND, TYPE, ZONE, starts, ends)

    def reclaim(self) -> datetime:
        assert self.holding.ends is not None
        return self.holding.ends

    def extend(self) -> None:
        if self.reclaim() - self.now >= HOUR:
            self.holding.ends = self.reclaim() + 24 * HOUR
            self.story.extended = True

    def trouble(self) -> None:
        draw = Random(self.life.faults)
        for _ in range(self.life.faults):
            self.simulation.fake.faults.inject(draw.choice(CALLS), draw.choice((CUT_AFTER, UNAVAILABLE, THROTTLED)))

    def left(self) -> list[str]:
        members = [name for group in self.simulation.fake.project.groups.values() for name in group.members]
        return [*members, *(machine.name for machine in self.simulation.ours())]
