"""The production loop over the Google Cloud adapter: a simulated cluster whose machines are those of the fake.

The adapter, Google's REST clients and everything above them are the real ones. Machines register with the labels of
their group, under their instance's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from itertools import product
from typing import Any, Final

from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import DAEMON_SETS
from autoscaler.cluster.store import Store
from autoscaler.composition.gcp import written_batches
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop, Tick
from autoscaler.simulation.kubelets import Kubelets
from autoscaler.simulation.simulation import Simulation
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import TAG_CLUSTER, LaunchRequest, OfferingKey
from providers.gcp.names import read
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.provider import GcpProvider, Project
from providers.simulated.cloud import Launch
from providers.simulated.machines import Behaviour as Pace
from providers.simulated.machines import Machine
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.state import PROJECT, PROMPT, Behaviour, Group
from tests.fakes.gce.state import Machine as GceMachine
from tests.faults.world import DRIVER, Skewed
from tests.gcp import Written, in_process

BOOT: Final = timedelta(seconds=150)
RESYNC: Final = timedelta(minutes=5)
KIND: Final = "GCPNodeTemplate"
ACCELERATORS: Final = {"g2-standard-4": "nvidia-l4", "a2-highgpu-1g": "nvidia-a100-40gb"}
ZONES: Final = ("us-central1-a", "us-central1-b")
MODELS: Final = {"STANDARD": "on-demand", "SPOT": "spot"}
_CAPACITY: Final = {**MODELS, "RESERVATION_BOUND": "capacity-block", "FLEX_START": "flex-start"}


# The instances that were shown last, by id: nothing else of them changes.
_BOOTED: Final[dict[int, tuple[GceMachine, Booted]]] = {}
_MOST: Final = 1000


class Booted(Machine):
    """An instance as Kubernetes knows it."""

    @property
    def provider_id(self) -> str:
        return f"gce://{PROJECT}/{self.offering.zone}/{self.node}"


def booted(machine: GceMachine) -> Booted:
    """An instance of the fake as such a machine."""
    ended_at = None if machine.stopped and not machine.deleting else machine.ended
    known = _BOOTED.get(machine.id)
    if known is None or known[0] is not machine or (known[1].ended_at, known[1].stopped) != (ended_at, machine.stopped):
        if len(_BOOTED) >= _MOST:
            _BOOTED.clear()
        known = _BOOTED[machine.id] = machine, _booted(machine, ended_at)
    return known[1]


def _booted(machine: GceMachine, ended_at: datetime | None) -> Booted:
    reserved = machine.reservation and machine.model == "STANDARD"
    return Booted(
        id=str(machine.id),
        node=machine.name,
        offering=OfferingKey(
            machine.machine_type,
            machine.zone,
            CapacityType.RESERVED if reserved else CapacityType(_CAPACITY[machine.model]),
        ),
        launched_at=machine.created,
        tags=FrozenMap({}),
        ended_at=ended_at,
        stopped=machine.stopped,
    )


class Inside:
    """What kubelets need to know of machines, read from the fake."""

    def __init__(self, fake: FakeGce) -> None:
        self._fake = fake
        self._requests: dict[str, LaunchRequest] = {}

    @property
    def behaviour(self) -> Pace:
        """How long machines take."""
        return Pace(boot=BOOT, shutdown=self._fake.behaviour.stopping)

    @property
    def machines(self) -> Mapping[str, Booted]:
        """The newest machine of each name: the Node of one that was made anew is the same object."""
        self._fake.project.catch_up()
        newest = {machine.name: machine for machine in self._fake.project.machines.values()}
        return {str(machine.id): booted(machine) for machine in newest.values()}

    @property
    def launches(self) -> Mapping[str, Launch]:
        """Each machine with what its group makes of it."""
        self._fake.project.catch_up()
        newest = {machine.name: machine for machine in self._fake.project.machines.values()}
        return {str(one.id): Launch(self._requested(one), (str(one.id),), ()) for one in newest.values()}

    def reclaim_at(self, _: Machine) -> datetime | None:
        """Nothing is taken back at a moment that is known before."""
        return None

    def _requested(self, machine: GceMachine) -> LaunchRequest:
        key = str(machine.id)
        if key not in self._requests:
            self._requests[key] = self._request(booted(machine))
        return self._requests[key]

    def _request(self, machine: Booted) -> LaunchRequest:
        groups = self._fake.project.groups.values()
        group = next(one for one in groups if machine.node.startswith(f"{one.base}-"))
        return LaunchRequest(
            token=machine.id,
            nodes=(machine.node,),
            offerings=(machine.offering,),
            tags=FrozenMap({TAG_CLUSTER: "-"}),
            labels=FrozenMap(group.kube_labels),
            taints=group.kube_taints,
            drivers=("tpu:topology=4x4",) if group.slice_of else ("nvidia",),
        )


class GcpSimulation(Simulation):
    """A cluster, the fake, and the autoscaler with the Google Cloud adapter between them.

    `sleeps`: as in production, the controller looks only when an object has changed, when it said that it would, or
    when it has not looked for RESYNC, longer than `loop.resync`; and not whenever somebody lets time pass.
    """

    sleeps: bool = False
    _looked: tuple[Loop, int, datetime] | None = None

    def __init__(self, *, catalog: Catalog, start: datetime, gce: Behaviour = PROMPT, **options: Any) -> None:
        self._pace = gce
        super().__init__(catalog=catalog, start=start, **options)
        self.api.create(DAEMON_SETS, DRIVER)
        inside: Any = Inside(self.fake)
        self._kubelets = Kubelets(self.api, Store(self.api, self._profile), inside, catalog, self.clock)

    @cached_property
    def fake(self) -> FakeGce:
        """The project, with a group for everything that a pool may ask for."""
        fake = FakeGce(self.clock, self._pace)
        for kind, zone, model in product(ACCELERATORS, ZONES, MODELS):
            own = {
                labels.POOL: "gpu",
                labels.CAPACITY_TYPE: MODELS[model],
                labels.ACCELERATOR: ACCELERATORS[kind],
                labels.CLOUD: "gcp",
                "nvidia.com/gpu.present": "true",
            }
            base = f"{kind}-{zone[-1]}-{model.lower()}"
            fake.project.add(Group(f"{base}-grp", zone, base, kind, model, kube_labels=own))
        return fake

    @cached_property
    def template(self) -> Written:
        """The GCPNodeTemplate, with all groups until a test takes some away."""
        return Written(GroupTemplate("gpu", groups=self.groups))

    @property
    def groups(self) -> tuple[GroupRef, ...]:
        """All groups of the project."""
        return tuple(GroupRef(*key) for key in self.fake.project.groups)

    @property
    def uid(self) -> str:
        """The cluster's."""
        return self._uid

    def new_loop(self, api: KubernetesApi | None = None, **_: Any) -> Loop:
        """The production loop over the adapter, both with empty memory."""
        in_process().session.fake = self.fake
        objects = ProviderObjects(api or self.api)
        provider = GcpProvider(
            Project(in_process(), self.ours_clock, self._uid), self.template, written=lambda: written_batches(objects)
        )
        self.loop = Loop(
            api=api or self.api,
            providers=Providers({KIND: provider}, cluster=self._uid),
            catalog=self._catalog,
            profile=self._profile,
            clock=self.ours_clock,
            settings=self._settings,
        )
        return self.loop

    @cached_property
    def ours_clock(self) -> Skewed:
        """The controller's clock."""
        return Skewed(self.clock)

    def run(self, until: datetime, observe: Callable[[Tick], None] = lambda tick: None) -> None:
        """Live until `until` by everybody else's clock."""

        def seen(tick: Tick) -> None:
            if tick.wake_at is not None:
                self._wake_at = tick.wake_at - self.ours_clock.offset
            observe(tick)

        super().run(until, seen)

    def settle(self, observe: Callable[[Tick], None] = lambda tick: None) -> None:
        if self.sleeps and self._looked is not None and not self.settle_cluster():
            loop, version, at = self._looked
            due = min(at + RESYNC, self._wake_at or at + RESYNC)
            if loop is self.loop and version == self.api.version and self.clock.now() < due:
                return
        super().settle(observe)
        self._looked = self.loop, self.api.version, self.clock.now()

    def ours(self) -> list[GceMachine]:
        """The machines of ours that cost money."""
        self.fake.project.catch_up()
        status = self.fake.project.status
        return [m for m in self.fake.project.machines.values() if status(m) and read(m.name, self._uid) is not None]


def machines_run(simulation: GcpSimulation) -> dict[str, bool]:
    """By provider id, whether a machine of ours runs there."""
    found: dict[str, bool] = {}
    for machine in simulation.fake.project.machines.values():
        if read(machine.name, simulation.uid) is not None:
            key = booted(machine).provider_id
            alive = simulation.fake.project.status(machine) in ("PROVISIONING", "STAGING", "RUNNING")
            found[key] = found.get(key, False) or alive
    return found
