"""The costs of a run and the waits of its tasks, from the state of cluster and cloud at each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import NODES, PODS, PROVISIONED_NODES
from autoscaler.errors import InternalError
from autoscaler.report.study.outcome import Outcome, Point
from autoscaler.simulation.api_server import ApiServer
from autoscaler.simulation.study.entrance import Waiting, kind_of
from autoscaler.simulation.study.fragmentation import Room, fragmented
from autoscaler.simulation.study.task import Shape, Study, Task, Variant
from autoscaler.simulation.study.timeline import State, Timeline
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.simulated.cloud import SimulatedCloud
from providers.simulated.machines import Machine

_HOUR: Final = 3600
_MIB: Final = 1 << 20
_PREPAID: Final = CapacityType.CAPACITY_BLOCK


@dataclass(slots=True)
class _Node:
    """A machine that is paid: from its launch to its end."""

    machine: Machine
    usd_per_hour: Decimal
    gpus: int
    model: str
    cpu: int = 0  # allocatable, in thousandths
    memory: int = 0  # allocatable, in MiB
    registered: bool = False
    used: list[Shape] = field(default_factory=list)

    @property
    def room(self) -> Room:
        """The resources that no task uses."""
        return Room(
            gpus=self.gpus - sum(shape.gpus for shape in self.used),
            cpu=self.cpu - sum(shape.cpu for shape in self.used),
            memory=self.memory - sum(shape.memory for shape in self.used),
            model=self.model,
        )


@dataclass(slots=True)
class _Pod:
    task: Task
    kind: Hashable
    arrived: datetime
    again: bool = False  # it is the rest of a pod that was evicted
    prepaid: bool = False  # it runs on a machine of a CapacityBlock, and is evicted only before this ends
    node: str = ""
    started: datetime | None = None
    ended: bool = False


class Ledger:
    """Follows one run. `shapes` are those of the workload with their shares, for the fragmentation."""

    def __init__(
        self,
        api: ApiServer,
        cloud: SimulatedCloud,
        catalog: Catalog,
        shapes: Sequence[tuple[Shape, float]],
        start: datetime,
    ) -> None:
        self._api = api
        self._cloud = cloud
        self._catalog = catalog
        self._shapes = shapes
        self._start = start
        self._versions = {resource: str(api.version) for resource in (PROVISIONED_NODES, NODES, PODS)}
        self._prices: dict[str, Decimal] = {}
        self._nodes: dict[str, _Node] = {}  # paid now, by machine
        self._over: set[str] = set()  # machines that have ended
        self._names: dict[str, str] = {}  # machine by node
        self._pods: dict[str, _Pod] = {}
        self._waiting = 0
        self._inside: dict[str, Hashable] = {}  # the pods that wait in the cluster, with their kinds
        self._running = 0
        self._fragments: dict[str, float] = {}
        self._usd = Decimal(0)
        self._launched = Counter[str]()
        self._most = 0
        self._interrupted = 0
        self._evicted: list[Task] = []  # the remaining work of pods that their owners create again
        self._moved = 0
        self._cut: set[str] = set()  # the names of tasks that are the rest of pods whose machine ended
        self._timeline = Timeline(start)
        self.finished = 0

    def expect(self, key: str, task: Task, arrived: datetime, *, again: bool = False) -> None:
        """A pod of the task arrives now; `again`: the rest of an evicted one."""
        self._pods[key] = _Pod(task, kind_of(task), arrived, again)
        self._waiting += 1

    def enter(self, key: str) -> None:
        """An expected pod is in the cluster."""
        self._inside[key] = self._pods[key].kind

    @property
    def inside(self) -> Waiting:
        """Pods that wait in the cluster."""
        return Counter(self._inside.values())

    def kinds(self, keys: Iterable[str]) -> Waiting:
        """The number of these pods of each kind."""
        return Counter(self._pods[key].kind for key in keys if key in self._pods)

    @property
    def active(self) -> int:
        """Pods that run."""
        return self._running

    @property
    def paid_machines(self) -> int:
        """Machines that cost money now."""
        return len(self._nodes)

    def pass_time(self, now: datetime) -> None:
        """Extends the last state until now. Called before anything happens at a new time."""
        self._timeline.hold(self._state(), now)

    def observe(self, now: datetime) -> None:
        """Records the changes at this time."""
        for event in self._api.watch(PROVISIONED_NODES, resource_version=self._versions[PROVISIONED_NODES]):
            self._versions[PROVISIONED_NODES] = event.resource_version
            if event.type == "ADDED":
                self._note_price(event.object)
        self._follow_machines(now)
        for event in self._api.watch(NODES, resource_version=self._versions[NODES]):
            self._versions[NODES] = event.resource_version
            if event.type == "ADDED":
                self._register(event.object)
        for event in self._api.watch(PODS, resource_version=self._versions[PODS]):
            self._versions[PODS] = event.resource_version
            if event.type != "BOOKMARK":
                self._follow_pod(event.object, gone=event.type == "DELETED", now=now)

    def _state(self) -> State:
        """GPUs and dollars as they are now."""
        starting = sum(node.gpus for node in self._nodes.values() if not node.registered)
        paid = sum(node.gpus for node in self._nodes.values())
        allocated = sum(shape.gpus for node in self._nodes.values() for shape in node.used)
        rate = sum((node.usd_per_hour for node in self._nodes.values()), Decimal(0))
        return State(
            rate=float(rate),
            paid=paid,
            starting=starting,
            allocated=allocated,
            fragmented=sum(self._fragments.values()),
            waiting=self._waiting,
        )

    def _note_price(self, raw: Object) -> None:
        """Records the price in a ProvisionedNode, for each offering that it may become."""
        name = raw["metadata"]["name"]
        for offering in raw["spec"]["offerings"]:
            price = offering.get("usdPerHour")
            key = f"{raw['spec'].get('nodeName', name)}/{offering['instanceType']}/{offering['capacityType']}"
            self._prices[key] = Decimal(price) if price else Decimal(0)

    def _follow_machines(self, now: datetime) -> None:
        for machine in self._cloud.machines.values():
            if machine.id not in self._nodes and machine.id not in self._over:
                self._launch(machine)
        for key in [key for key, node in self._nodes.items() if _ended(node.machine, now)]:
            node = self._nodes.pop(key)
            self._fragments.pop(key, None)
            self._over.add(key)
            self._usd += self.cost(node.machine, node.usd_per_hour, now)
            del self._names[node.machine.node]

    def _launch(self, machine: Machine) -> None:
        offering = machine.offering
        found = self._catalog.get(offering.instance_type)
        price = self._prices.get(f"{machine.node}/{offering.instance_type}/{offering.capacity_type}")
        if price is None:
            raise InternalError(f"machine {machine.id} has no ProvisionedNode with its offering")
        model = found.accelerator.model if found.accelerator else ""
        self._nodes[machine.id] = _Node(machine, price, found.device_count, model)
        self._names[machine.node] = machine.id
        self._launched[offering.instance_type] += 1
        self._most = max(self._most, len(self._nodes))

    @staticmethod
    def cost(machine: Machine, usd_per_hour: Decimal, now: datetime) -> Decimal:
        """Dollars from the launch to the machine's end, or until now."""
        until = machine.ended_at if machine.ended_at is not None and machine.ended_at <= now else now
        return usd_per_hour * Decimal((until - machine.launched_at).total_seconds()) / _HOUR

    def _register(self, raw: Object) -> None:
        machine = self._names.get(raw["metadata"]["name"])
        if machine is None:
            return
        node, allocatable = self._nodes[machine], raw.get("status", {}).get("allocatable", {})
        node.registered = True
        node.cpu = int(Quantity.parse(allocatable.get("cpu", "0")).value * 1000)
        node.memory = int(Quantity.parse(allocatable.get("memory", "0")).value / _MIB)
        self._measure(machine)

    def _measure(self, machine: str) -> None:
        self._fragments[machine] = fragmented(self._nodes[machine].room, self._shapes)

    def _follow_pod(self, raw: Object, *, gone: bool, now: datetime) -> None:
        metadata = raw["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        pod = self._pods.get(key)
        if pod is None or pod.ended:
            return
        phase = raw.get("status", {}).get("phase", "")
        if pod.started is None and phase == "Running":
            pod.started, pod.node = now, raw["spec"]["nodeName"]
            del self._inside[key]
            self._waiting -= 1
            self._running += 1
            pod.prepaid = self._is_prepaid(pod.node)
            self._use(pod, add=True)
        if gone or phase in ("Succeeded", "Failed"):
            pod.ended = True
            if phase == "Succeeded":
                self.finished += 1
            elif (rest := _rest_of(pod, now)) is not None:
                name = f"{rest.name.partition('--')[0]}--{self._moved + len(self._cut) + 1}"
                if pod.prepaid:
                    self._cut.add(name)
                else:
                    self._moved += 1
                self._evicted.append(replace(rest, name=name))
            else:
                self._interrupted += 1
            if pod.started is None:
                self._waiting -= 1
                del self._inside[key]
            else:
                self._running -= 1
                self._use(pod, add=False)

    def _is_prepaid(self, node: str) -> bool:
        machine = self._names.get(node)
        return machine is not None and self._nodes[machine].machine.offering.capacity_type is _PREPAID

    def take_evicted(self) -> list[Task]:
        """The remaining work of the pods that were evicted since the last call."""
        taken, self._evicted = self._evicted, []
        return taken

    def _use(self, pod: _Pod, *, add: bool) -> None:
        machine = self._names.get(pod.node)
        if machine is None:
            return  # the node was removed at the same time
        used = self._nodes[machine].used
        used.append(pod.task.shape) if add else used.remove(pod.task.shape)
        self._measure(machine)

    def outcome(self, study: Study, variant: Variant, keep_alive: str, *, now: datetime, reconciles: int) -> Outcome:
        """The result up to now."""
        self.pass_time(now)
        usd = sum((self.cost(node.machine, node.usd_per_hour, now) for node in self._nodes.values()), self._usd)
        first = [pod for pod in self._pods.values() if not pod.again]
        waits = sorted((pod.started - pod.arrived).total_seconds() for pod in first if pod.started)
        hours = self._timeline.hours
        return Outcome(
            policy=variant.policy,
            keep_alive=keep_alive,
            pods=sum(task.replicas for task in study.tasks),
            finished=self.finished,
            running=sum(pod.started is not None and not pod.ended for pod in self._pods.values()),
            never_started=sum(pod.started is None for pod in first),
            interrupted=self._interrupted + self._stranded,
            moved=self._moved,
            evicted=len(self._cut),
            hours=(now - self._start).total_seconds() / _HOUR,
            usd=usd,
            gpu_hours_paid=hours.paid,
            gpu_hours_allocated=hours.allocated,
            gpu_hours_starting=hours.starting,
            gpu_hours_fragmented=hours.fragmented,
            nodes=dict(self._launched),
            most_nodes=self._most,
            waits=tuple(waits),
            reconciles=reconciles,
            timeline=self.points(),
        )

    @property
    def _stranded(self) -> int:
        """Pods whose machine ended, and whose remaining work waits."""
        waiting = (pod for pod in self._pods.values() if pod.started is None and not pod.ended)
        return sum(pod.task.name in self._cut for pod in waiting)

    def points(self) -> tuple[Point, ...]:
        """The pictures' points."""
        return self._timeline.points()


def _rest_of(pod: _Pod, now: datetime) -> Task | None:
    """The remaining work of a pod that is evicted now; None if its work is lost, and its owner does not create it
    again."""
    task = pod.task
    if task.checkpoint is None or pod.started is None or task.gang:
        return None
    done = now - pod.started
    lost = done % task.checkpoint if task.checkpoint else timedelta(0)
    runs = None if task.runs is None else task.runs - (done - lost)
    return replace(task, runs=runs, replicas=1, arrives=timedelta(0))


def _ended(machine: Machine, now: datetime) -> bool:
    return machine.ended_at is not None and machine.ended_at <= now
