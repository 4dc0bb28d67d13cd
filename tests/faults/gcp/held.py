"""Random schedules with capacity that is held: flex-start machines, and a CapacityBlock in a reservation of any kind.

What must hold beside the invariants of all schedules: no more machines than the reservation has are in it, and none of
ours stays after its end. Machines of flex-start end by themselves, and those of calendar capacity when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from functools import cache, cached_property
from typing import Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from autoscaler.simulation.scenario import parse_scenario
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from tests.crash.life import START, small_catalog
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.holdings import Holding
from tests.fakes.gce.state import PROMPT, SLUGGISH, Behaviour, Group
from tests.faults import invariants
from tests.faults.gcp.schedules import CALLS, CHEAPEST, FAULTS, POOLS, GcpSchedules
from tests.faults.gcp.world import ACCELERATORS, KIND, ZONES, GcpSimulation
from tests.gcp import Written

FLEX: Final = "a2-highgpu-1g"
HELD: Final = "a2-highgpu-1g"
ZONE: Final = "us-central1-a"
OWN_CALLS: Final = ("reservations.aggregatedList", "futureReservations.aggregatedList", "reservations.get")
# What Google calls them: a future reservation in calendar mode, one in default mode, or one that somebody made.
CALENDAR, DEFAULT, MADE = KINDS = ("calendar", "default", "made")
# Google ends the machines of a calendar block itself; others are drained, throttled, cut, and gone.
CLEAN_UP: Final = timedelta(minutes=45)
BLOCK: Final = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {{name: prepaid}}
spec:
  mode: Act
  capacityTypes: [capacity-block, reserved]
  nodeTemplateRef: {{kind: {kind}, name: gpu}}
  drivers: {{profiles: [nvidia]}}
  limits: {{nodes: {count}}}
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityBlock
metadata: {{name: block}}
spec:
  pool: prepaid
  reservation: {reservation}
  instanceType: {instance_type}
  zone: {zone}
  count: {count}
  startsAt: "{starts_at:%Y-%m-%dT%H:%M:%SZ}"
  endsAt: "{ends_at:%Y-%m-%dT%H:%M:%SZ}"
  drain: {{notice: 10m, budget: 5m, atDeadline: Delete}}
"""
WORK: Final = """
apiVersion: v1
kind: Pod
metadata:
  name: held-{number}
  annotations: {{simulation.foreslice.dev/copies: "{copies}", simulation.foreslice.dev/runs-for: {minutes}m}}
spec:
  tolerations: [{{key: foreslice.dev/capacity-block, operator: Exists}}]
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: gpu}}]
  containers: [{{name: main, image: pause, resources: {{claims: [{{name: gpu}}], requests: {{cpu: "1"}}}}}}]
"""


@cache
def priced_catalog() -> Catalog:
    """The catalog of the other schedules, with a price of flex-start, without which none is bought."""
    catalog = small_catalog(*ACCELERATORS)
    found = catalog.types[FLEX]
    price = replace(found.prices[CapacityType.ON_DEMAND], usd_per_hour=Decimal("0.3"))
    prices = FrozenMap({**found.prices, CapacityType.FLEX_START: price})
    return replace(catalog, types=FrozenMap({**catalog.types, FLEX: replace(found, prices=prices)}))


class HeldSimulation(GcpSimulation):
    """A project with the groups of the other schedules, one of flex-start machines, and one in the reservation."""

    @cached_property
    def fake(self) -> FakeGce:
        fake: FakeGce = super().fake
        own = {labels.CLOUD: "gcp", labels.NVIDIA_GPU_PRESENT: "true"}
        flex = {**own, labels.POOL: "gpu", labels.CAPACITY_TYPE: "flex-start", labels.ACCELERATOR: ACCELERATORS[FLEX]}
        fake.project.add(Group("flex-grp", ZONE, "flex", FLEX, "FLEX_START", kube_labels=flex))
        return fake

    @cached_property
    def template(self) -> Written:
        tried = frozenset({GroupRef(ZONE, "flex-grp")})
        return Written(GroupTemplate("gpu", groups=self.groups, flex_start=timedelta(minutes=40), tried=tried))

    def hold(self, kind: str, count: int, starts_in: timedelta, lasts: timedelta) -> Holding:
        """A reservation, and the group that starts machines in it."""
        starts = START + starts_in
        ends = None if kind == MADE else starts + lasts
        future = "" if kind == MADE else "block"
        mode = "CALENDAR" if kind == CALENDAR else "DEFAULT"
        held = Holding("block-res", ZONE, HELD, count, START, starts, ends, future=future, mode=mode)
        self.fake.project.holdings.append(held)
        own = {
            labels.POOL: "prepaid",
            labels.CAPACITY_BLOCK: "block",
            labels.CAPACITY_TYPE: "capacity-block" if held.bound else "reserved",
            labels.CLOUD: "gcp",
            labels.NVIDIA_GPU_PRESENT: "true",
            labels.ACCELERATOR: ACCELERATORS[HELD],
        }
        model = "RESERVATION_BOUND" if held.bound else "STANDARD"
        group = Group("held-grp", ZONE, "held", HELD, model, reservation="block-res", kube_labels=own)
        group.kube_taints = (Taint(labels.CAPACITY_BLOCK, "block"),)
        self.fake.project.add(group)
        self.template.found = replace(self.template.found, groups=self.groups)
        of = f"futureReservations/{future}" if future else "reservations/block-res"
        text = BLOCK.format(
            kind=KIND,
            reservation=f"zones/{ZONE}/{of}",
            instance_type=HELD,
            zone=ZONE,
            count=count,
            starts_at=starts,
            ends_at=starts + lasts,
        )
        self.add(parse_scenario(text))
        return held


class HeldSchedules(GcpSchedules):
    """Capacity that is held, to which things happen."""

    name: ClassVar[str] = "held capacity"
    told: ClassVar[Counter[str]] = Counter()
    world: ClassVar[type[GcpSimulation]] = HeldSimulation
    calls: ClassVar[tuple[str, ...]] = (*CALLS, *OWN_CALLS)
    pools: ClassVar[str] = POOLS.replace("[spot, on-demand]", "[flex-start, spot, on-demand]")

    @initialize(
        pace=st.sampled_from([PROMPT, SLUGGISH]),
        copies=st.integers(1, 3),
        lead=st.sampled_from([1, 30, 200, 600]),
        kind=st.sampled_from(KINDS),
        count=st.integers(1, 3),
        starts_in=st.sampled_from([0, 5, 20, 60]),
        lasts=st.sampled_from([30, 60, 120]),
        scarce=st.sampled_from([9, 1, 0]),
    )
    def begin(  # another schedule, which draws more
        self, pace: Behaviour, copies: int, lead: int, kind: str, count: int, starts_in: int, lasts: int, scarce: int
    ) -> None:
        """`scarce`: so many machines of flex-start, and of the cheapest in each zone, are there."""
        self.scarce = {(CHEAPEST, zone, "SPOT"): scarce for zone in ZONES} | {(FLEX, ZONE, "FLEX_START"): scarce}
        self.holds = (kind, count, timedelta(minutes=starts_in), timedelta(minutes=lasts))
        self.worked = 0
        self.start(pace, copies=copies, lead=lead, queues=True)
        self.seen.add(f"a reservation: {kind}")

    def catalog(self) -> Catalog:
        return priced_catalog()

    def prepare(self) -> None:
        simulation: Any = self.simulation
        self.held = simulation.hold(*self.holds)
        self.ends = START + self.holds[2] + self.holds[3]

    @rule(copies=st.integers(1, 3), minutes=st.integers(5, 90))
    def submit_to_the_block(self, copies: int, minutes: int) -> None:
        """Pods that may run in the block, and elsewhere."""
        if self.worked == 3:
            return
        self.worked += 1
        self.simulation.add(parse_scenario(WORK.format(number=self.worked, copies=copies, minutes=minutes)))
        self.live(timedelta(seconds=1))

    @rule(call=st.sampled_from(OWN_CALLS), name=st.sampled_from(sorted(FAULTS)), times=st.integers(1, 4))
    def trouble_with_reservations(self, call: str, name: str, times: int) -> None:
        self.simulation.fake.faults.inject(call, *[FAULTS[name]] * times)
        self.saw("trouble with reservations")

    @rule(taken=st.integers(0, 3))
    def others_use_it(self, taken: int) -> None:
        """Somebody else starts machines in the reservation, or ends them."""
        self.held.taken = min(taken, self.held.count)
        self.saw("a reservation that others use")

    @rule(machines=st.integers(0, 2))
    def limits_flex_start(self, machines: int) -> None:
        self.simulation.fake.project.stock[FLEX, ZONE, "FLEX_START"] = machines
        self.saw("a limit of flex-start machines")

    def strange(self) -> Iterator[str]:
        """What is wrong with what is held."""
        project = self.simulation.fake.project
        inside = [one for one in self.simulation.ours() if one.reservation]
        if len([one for one in inside if one.ended is None]) > self.held.count:
            yield f"invariant 2: {len(inside)} machines are in a reservation of {self.held.count}"
        late = self.simulation.clock.now() - self.ends > CLEAN_UP
        for machine in inside if late else ():
            if machine.ended is None:
                yield f"invariant 9: {machine.name} runs after the end of its block"
        for machine in project.machines.values():
            if machine.model == "FLEX_START":
                self.seen.add("a flex-start machine")
            elif machine.reservation:
                self.seen.add("a machine in a reservation")

    def _look(self, tick: Any) -> None:
        super()._look(tick)
        invariants.hold([*self.strange()])

    def mend(self) -> None:
        self.held.taken = 0
        super().mend()
