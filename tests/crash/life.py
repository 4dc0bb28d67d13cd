"""A whole life of a node in the simulated cluster, with a controller that dies at chosen writes; and what must hold.

The in-memory API server and the cloud survive; the loop, its journal, its store and the provider do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any, TypeVar

from autoscaler.cluster.api import NO_FIELDS, NO_LABELS, Object, Page, Subresource, WatchEvent, key_of, list_all
from autoscaler.cluster.resources import (
    EVENTS,
    LAUNCH_BATCHES,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
    Resource,
)
from autoscaler.simulation.api_server import ApiServer
from autoscaler.simulation.scenario import Scenario, parse_scenario
from autoscaler.simulation.simulation import Simulation
from autoscaler.simulation.timeline_recorder import TimelineRecorder
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import CAPACITY_ENDS_AT
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import InstanceState, OfferingKey
from tests.crash.plots import BLOCK_BEGINS, BLOCK_LASTS, LAUNCH, SMALL, Plot
from tests.faults.witness import Witness

T = TypeVar("T")
START = datetime(2026, 1, 5, 9, tzinfo=UTC)


class CrashError(BaseException):
    """The process is dead. Not an Exception, so that nothing handles it."""


@dataclass
class Dying:
    """The API as a process sees it that dies before or after its write number `at` (counted from 1)."""

    api: ApiServer
    at: int = 0
    before: bool = False
    step: str = ""
    kinds: list[str] = field(default_factory=list)
    witness: Witness | None = None

    @property
    def writes(self) -> int:
        """How many writes it has begun."""
        return len(self.kinds)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self.api.get(resource, name, namespace=namespace)

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] = NO_LABELS,
        fields: Mapping[str, str] = NO_FIELDS,
        limit: int = 500,
        page: str = "",
    ) -> Page:
        return self.api.list(resource, namespace=namespace, labels=labels, fields=fields, limit=limit, page=page)

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        return self.api.watch(resource, resource_version=resource_version, timeout_seconds=timeout_seconds)

    def create(self, resource: Resource, manifest: Object) -> Object:
        def write() -> Object:
            if self.witness is not None:
                self.witness.creates(resource, manifest)
            return self.api.create(resource, manifest)

        return self._write("create", resource, write)

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        def write() -> Object:
            if self.witness is not None:
                self.witness.updates(resource, manifest)
            return self.api.update(resource, manifest, subresource=subresource)

        if self.witness is not None:
            self.witness.tries(resource, manifest)
        status = manifest.get("status", {})
        reached = status.get("phase") or status.get("outcome")
        return self._write("update", resource, write, manifest["metadata"]["name"], f"to {reached}" if reached else "")

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        def write() -> Object:
            if self.witness is not None:
                self.witness.patches(resource, name)
            return self.api.patch(resource, name, patch, namespace=namespace, subresource=subresource)

        fields = (f"{part}.{name}" for part, inside in patch.items() for name in inside)
        told = ", ".join(path for path in fields if path not in ("metadata.resourceVersion", "metadata.uid"))
        return self._write("patch", resource, write, name, told)

    def delete(self, resource: Resource, name: str, **options: Any) -> None:
        def write() -> None:
            if self.witness is not None:
                self.witness.deletes(resource, name, options.get("uid", ""))
            self.api.delete(resource, name, **options)

        self._write("delete", resource, write, name)

    def evict(self, name: str, *, namespace: str, uid: str = "") -> None:
        def write() -> None:
            if self.witness is not None:
                self.witness.evicts(name, namespace, uid)
            self.api.evict(name, namespace=namespace, uid=uid)

        self._write("evict", PODS, write, name)

    def _write(self, verb: str, resource: Resource, write: Callable[[], T], name: str = "", what: str = "") -> T:
        if resource == EVENTS:  # they tell, nothing follows from them
            return write()
        self.kinds.append(" ".join(part for part in (verb, resource.kind, what) if part))
        dies = self.writes == self.at
        if dies:
            self.step = f"{self.kinds[-1]} {name}"
        if dies and self.before:
            raise CrashError(self.step)
        answer = write()
        if dies:
            raise CrashError(self.step)
        return answer


@cache
def small_catalog(*types: str) -> Catalog:
    """The shipped catalog with these types only, which makes planning quick."""
    catalog = load_catalog()
    return replace(catalog, types=FrozenMap({name: catalog.types[name] for name in types or SMALL}))


def scenario(kind: str = "SimulatedNodeTemplate") -> Scenario:
    """Two pods, each of which needs a node, with nodes of this kind of template."""
    return written(LAUNCH.manifests, kind)


@cache
def written(manifests: str, kind: str, reservation: str = "") -> Scenario:
    """A plot's manifests for a kind of node template."""
    return parse_scenario(manifests.replace("KIND", kind).replace("RESERVATION", reservation))


@dataclass(frozen=True)
class Cloud:
    """Where the machines of a life come from: `kind` of node template, the simulation over it, and its machines.

    `machines` answers, for each machine there ever was, what tells it apart from a double and whether it has ended.
    `runs` answers by provider id whether each of them still does. `block` makes the reservation of a plot that holds
    one and answers its id; None: the cloud reserves nothing.
    """

    kind: str
    simulation: Callable[..., Simulation]
    machines: Callable[[Any], list[tuple[str, bool]]]
    runs: Callable[[Any], Mapping[str, bool]]
    block: Callable[[Any], str] | None = None


def _simulated(simulation: Simulation) -> list[tuple[str, bool]]:
    now, behaviour = simulation.clock.now(), simulation.cloud.behaviour
    machines = simulation.cloud.machines.values()
    return [(machine.node, machine.state(now, behaviour) is InstanceState.TERMINATED) for machine in machines]


def _runs(simulation: Simulation) -> Mapping[str, bool]:
    now, behaviour = simulation.clock.now(), simulation.cloud.behaviour
    ended = (InstanceState.TERMINATING, InstanceState.TERMINATED)
    return {m.provider_id: m.state(now, behaviour) not in ended for m in simulation.cloud.machines.values()}


def _block(simulation: Simulation) -> str:
    offering = OfferingKey("p5.48xlarge", "us-east-1a", CapacityType.CAPACITY_BLOCK)
    begins = START + BLOCK_BEGINS
    return simulation.cloud.reserve(
        "cr-1", offering, count=2, starts_at=begins, ends_at=begins + BLOCK_LASTS
    ).reservation


SIMULATED = Cloud("SimulatedNodeTemplate", Simulation, _simulated, _runs, _block)


def live(
    prepare: Callable[[Any], None], *deaths: tuple[int, bool], cloud: Cloud = SIMULATED, plot: Plot = LAUNCH
) -> tuple[Simulation, list[Dying]]:
    """A whole life, with one process after the other dying before (True) or after its write number …; the last lives.

    Answers the simulation and the controllers' processes in order.
    """
    simulation = cloud.simulation(catalog=small_catalog(*plot.types), start=START)
    prepare(simulation)
    reservation = cloud.block(simulation) if plot.block and cloud.block is not None else ""
    simulation.add(written(plot.manifests, cloud.kind, reservation))
    witness = Witness(simulation.api, partial(cloud.runs, simulation))
    processes = [Dying(simulation.api, at, before, witness=witness) for at, before in (*deaths, (0, False))]
    acts = deque(plot.acts)
    for process in processes:
        witness.follows(simulation.new_loop(process))
        with suppress(CrashError):
            while acts:
                simulation.run(START + acts[0][0], lambda _: witness.looks())
                acts.popleft()[1](simulation.api)
            simulation.run(START + plot.lasts, lambda _: witness.looks())
    return simulation, processes


def check(simulation: Simulation, process: Dying, step: str, *, cloud: Cloud = SIMULATED, plot: Plot = LAUNCH) -> None:
    """Exactly one machine a node, no orphan, no double, no claim lost, nothing left; what the plot says of the pods.

    And everything that tests/faults/invariants.py says of what the controllers did.
    """
    assert process.witness is not None
    assert process.witness.found == [], f"{process.witness.found} after dying at: {step}"
    machines = cloud.machines(simulation)
    names = [name for name, _ in machines]
    assert len(names) == len(set(names)) == 2, f"{names} after dying at: {step}"
    assert all(ended for _, ended in machines), f"{machines} after dying at: {step}"
    seen = list(simulation.api.watch(PODS, resource_version="0"))
    ran = {key_of(event.object) for event in seen if event.object.get("status", {}).get("phase") == "Running"}
    assert len(ran) == 2, f"only {ran} ran after dying at: {step}"
    if plot.block:
        told = {key_of(e.object) for e in seen if CAPACITY_ENDS_AT in e.object["metadata"].get("annotations", {})}
        assert told == ran, f"only {told} were told of the end after dying at: {step}"
    if plot.pods_end:
        recorder = TimelineRecorder(simulation.api)
        recorder.catch_up(simulation.clock.now())
        expected = written(plot.manifests, cloud.kind).expected()
        results = [pod.result for pod in recorder.summary(expected, simulation.clock.now()).pods]
        assert results == ["Succeeded", "Succeeded"], f"{results} after dying at: {step}"
    for resource in (PROVISIONED_NODES, LAUNCH_BATCHES, NODES, RESOURCE_CLAIMS, *(() if plot.pods_end else (PODS,))):
        left = [item["metadata"]["name"] for item in list_all(simulation.api, resource)[0]]
        assert left == [], f"{resource} {left} left after dying at: {step}"
