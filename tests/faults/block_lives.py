"""Random lives of Capacity Blocks: held from start to end over the AWS adapter and the fake, with jobs of any length.

Life number n is always the same life. What counts: whether a pod runs at the moment EC2 takes the machines without
having been told, and how much of what was paid for could be used. Booting is reported apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, cached_property
from random import Random
from typing import Any, Final

from autoscaler.cluster.api import Object, list_all
from autoscaler.cluster.resources import PODS
from autoscaler.loop.loop import Tick
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.simulation.scenario import parse_scenario
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import CAPACITY_ENDS_AT
from instance_catalog.types.catalog import Catalog
from tests.crash.life import START
from tests.fakes.ec2 import CUT_AFTER, INTERNAL_ERROR, PROMPT, SLUGGISH, THROTTLED, TIMEOUT_AFTER, Behaviour
from tests.faults.world import AwsSimulation

HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
SECOND: Final = timedelta(seconds=1)
# Nothing is drawn for the last minutes of a block: until an hour before its end it can be extended.
LAST: Final = 61
# The controller looks at the cloud at least so often, whatever happens in the cluster.
RESYNC: Final = timedelta(minutes=30)
BLOCK = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {{name: prepaid}}
spec:
  mode: Act
  capacityTypes: [capacity-block]
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
  drain: {{notice: {notice}m, budget: {budget}m, atDeadline: {at_deadline}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpus}}
spec: {{spec: {{devices: {{requests: [{{name: gpus, exactly: {{deviceClassName: gpu.nvidia.com, count: 4}}}}]}}}}}}
"""
BUDGET = """
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: jobs, namespace: default}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: job}}}
status: {disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0}
"""
JOB = """
---
apiVersion: v1
kind: Pod
metadata:
  name: job-{number}
  labels: {{app: job}}
  annotations: {{simulation.foreslice.dev/at: {at}m{runs_for}}}
spec:
  tolerations: [{{key: foreslice.dev/capacity-block, operator: Exists}}]
  resourceClaims: [{{name: gpus, resourceClaimTemplateName: gpus}}]
  containers: [{{name: main, image: pause, resources: {{claims: [{{name: gpus}}], requests: {{cpu: "1"}}}}}}]
"""


@dataclass(frozen=True, slots=True)
class Life:
    """What is drawn for one life. Times in minutes; a job's length of 0 is one that never ends by itself.

    `protected`: a PodDisruptionBudget forbids every eviction.
    """

    count: int
    ultraserver: bool
    starts_in: int
    days: int
    notice: int
    budget: int
    at_deadline: str
    jobs: tuple[tuple[int, int], ...]
    extended_at: int | None
    restarts: tuple[int, ...]
    protected: bool
    faults: int
    pace: Behaviour

    @staticmethod
    def number(number: int) -> Life:
        """The life of this number."""
        draw = Random(number)
        days = draw.randint(1, 3)
        length = 60 * 24 * days
        arrivals = sorted(draw.randint(0, length) for _ in range(draw.randint(0, 8)))
        return Life(
            count=draw.randint(1, 3),
            ultraserver=draw.random() < 0.2,
            starts_in=draw.randint(30, 300),
            days=days,
            notice=draw.choice((10, 30, 60)),
            budget=draw.choice((5, 15, 30)),
            at_deadline=draw.choice(("Delete", "Leave")),
            jobs=tuple((at, draw.choice((0, draw.randint(5, length)))) for at in arrivals),
            extended_at=draw.randint(0, length - LAST) if draw.random() < 0.4 else None,
            restarts=tuple(sorted(draw.randint(0, length - LAST) for _ in range(draw.randint(0, 3)))),
            protected=draw.random() < 0.3,
            faults=draw.randint(0, 12),
            pace=draw.choice((PROMPT, SLUGGISH)),
        )


@dataclass(slots=True)
class Story:
    """How a life came out. `unwarned` are pods that ran at the reclaim and had not been told.

    `payable` is machine time from start to the last moment before the drain, `booted` what of it machines needed to
    start, `usable` what they were Ready for.
    """

    unwarned: list[str] = field(default_factory=list)
    running_at_reclaim: int = 0
    payable: timedelta = timedelta(0)
    booted: timedelta = timedelta(0)
    usable: timedelta = timedelta(0)
    left: list[str] = field(default_factory=list)
    jobs: int = 0
    extended: bool = False

    @property
    def share(self) -> float:
        """The usable part of what was paid for, booting apart."""
        return self.usable / (self.payable - self.booted)


@cache
def p5_catalog() -> Catalog:
    """Only what the block needs, which makes planning quick."""
    catalog = load_catalog()
    return replace(catalog, types=FrozenMap({"p5.48xlarge": catalog.types["p5.48xlarge"]}))


@dataclass(frozen=True, slots=True)
class Held:
    """The reservation of a life, as its CapacityBlock names it."""

    reservation: str
    kind: str
    instance_type: str
    zone: str
    starts_at: datetime
    ends_at: datetime


class BlockWorld(ABC):
    """The cluster of one life, and what is noted as it goes on. Each cloud's class says how blocks are held there."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.story = Story(jobs=len(life.jobs))
        # A block that is extended during its drain gets its machines again, under the names they had.
        self.nodes: dict[tuple[str, datetime | None], ProvisionedNode] = {}
        self.held = self.hold()
        self.simulation.add(parse_scenario(self._manifests(self.held)))

    @property
    @abstractmethod
    def simulation(self) -> Any:
        """The cluster with the production loop over the cloud's adapter."""

    @abstractmethod
    def hold(self) -> Held:
        """Reserve what the life needs."""

    @abstractmethod
    def reclaim(self) -> datetime:
        """When the cloud takes the machines, as things are now."""

    @abstractmethod
    def extend(self) -> None:
        """Move the end by a day, if the cloud allows it now."""

    @abstractmethod
    def trouble(self) -> None:
        """A handful of calls that go wrong from now on."""

    @abstractmethod
    def left(self) -> list[str]:
        """Machines that still cost money."""

    def _manifests(self, held: Held) -> str:
        life = self.life
        jobs = [
            JOB.format(
                number=number,
                at=life.starts_in + at,
                runs_for=f", simulation.foreslice.dev/runs-for: {length}m" if length else "",
            )
            for number, (at, length) in enumerate(life.jobs)
        ]
        block = BLOCK.format(
            count=life.count,
            reservation=held.reservation,
            kind=held.kind,
            instance_type=held.instance_type,
            zone=held.zone,
            starts_at=held.starts_at,
            ends_at=held.ends_at,
            notice=life.notice,
            budget=life.budget,
            at_deadline=life.at_deadline,
        )
        return block + (BUDGET if life.protected else "") + "".join(jobs)

    def live(self) -> Story:
        """The whole life, and what came of it."""
        moments = [(self.held.starts_at + at * MINUTE, "restart") for at in self.life.restarts]
        if self.life.extended_at is not None:
            moments.append((self.held.starts_at + self.life.extended_at * MINUTE, "extension"))
        self.trouble()
        for moment, what in sorted(moments):
            self._until(moment)
            if what == "restart":
                self.simulation.new_loop()
                self.trouble()
            else:
                self.extend()
        self._until(self.reclaim() - SECOND)
        self._look()
        self._until(self.reclaim() + 2 * HOUR)
        self._sum_up()
        return self.story

    @property
    def now(self) -> datetime:
        return self.simulation.clock.now()

    def _until(self, moment: datetime) -> None:
        while self.now < moment:
            self.simulation.run(min(self.now + RESYNC, moment), self._observe)

    def _observe(self, tick: Tick) -> None:
        self.nodes.update({(node.name, _first(node, Phase.LAUNCHED)): node for node in tick.snapshot.provisioned})

    def _look(self) -> None:
        """At the last moment before the reclaim: who is still there, and was told."""
        pods: list[Object] = [
            pod for pod in list_all(self.simulation.api, PODS)[0] if pod.get("status", {}).get("phase") == "Running"
        ]
        self.story.running_at_reclaim += len(pods)
        for pod in pods:
            told = pod["metadata"].get("annotations", {}).get(CAPACITY_ENDS_AT)
            if told is None or datetime.fromisoformat(told) != self.reclaim():
                self.story.unwarned.append(f"{pod['metadata']['name']} was told {told}")

    def _sum_up(self) -> None:
        begin, drain = self.held.starts_at, self.reclaim() - self.life.budget * MINUTE
        self.story.payable = (drain - begin) * self.life.count
        for node in self.nodes.values():
            launched = _first(node, Phase.LAUNCHED)
            ready = _first(node, Phase.READY)
            if launched is not None and ready is not None:
                self.story.booted += ready - launched
                self.story.usable += sum((_shared(span, (begin, drain)) for span in _usable(node, drain)), timedelta(0))
        self.story.left = self.left()


class AwsBlockWorld(BlockWorld):
    """A Capacity Block of EC2."""

    @cached_property
    def simulation(self) -> AwsSimulation:
        return AwsSimulation(catalog=p5_catalog(), start=START, ec2=self.life.pace)

    def hold(self) -> Held:
        self.holding = self.simulation.fake.account.block(
            "p5.48xlarge",
            "us-east-1a",
            self.life.count,
            starts_in=self.life.starts_in * MINUTE,
            lasts=self.life.days * 24 * HOUR,
            ultraserver="u-p6e-gb200x36" if self.life.ultraserver else "",
        )
        ends_at = self.holding.ends_at
        assert ends_at is not None
        starts_at = self.holding.starts_at
        return Held(self.holding.id, "AWSNodeTemplate", "p5.48xlarge", "us-east-1a", starts_at, ends_at)

    def reclaim(self) -> datetime:
        reclaim = self.holding.reclaim_at(self.now)
        assert reclaim is not None
        return reclaim

    def extend(self) -> None:
        """Buy another day where EC2 allows it: until an hour before the end."""
        end = self.holding.end(self.now)
        if end is not None and end - self.now >= HOUR:
            self.simulation.fake.account.extend(self.holding, 24 * HOUR)
            self.story.extended = True

    def trouble(self) -> None:
        draw = Random(self.life.faults)
        for _ in range(self.life.faults):
            call = draw.choice(("RunInstances", "DescribeInstances", "DescribeCapacityReservations"))
            fault = draw.choice((TIMEOUT_AFTER, CUT_AFTER, INTERNAL_ERROR, THROTTLED))
            self.simulation.fake.faults.inject(call, fault)

    def left(self) -> list[str]:
        return [machine.id for machine in self.simulation.fake.account.alive()]


def _usable(node: ProvisionedNode, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """From each moment at which a node became Ready to the drain after it. A drain may be taken back."""
    began: datetime | None = None
    for phase, moment, _ in node.history:
        if phase is Phase.READY and began is None:
            began = moment
        elif phase in (Phase.DRAINING, Phase.TERMINATING, Phase.GONE) and began is not None:
            yield began, moment
            began = None
    if began is not None:
        yield began, end


def _shared(one: tuple[datetime, datetime], other: tuple[datetime, datetime]) -> timedelta:
    """How long two spans have in common."""
    return max(min(one[1], other[1]) - max(one[0], other[0]), timedelta(0))


def _first(node: ProvisionedNode, phase: Phase) -> datetime | None:
    return next((moment for entered, moment, _ in node.history if entered is phase), None)
