"""The composition root of simulations: a cluster and a cloud in memory, under the production loop, on a virtual clock.

Time moves from event to event: at each moment cluster and loop act until nothing changes, then the clock jumps to the
next moment at which something falls due. Nothing ever sleeps, so a day takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import KubernetesApi, Object
from autoscaler.cluster.parsed import Parsed
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.resources import DEVICE_CLASSES, NAMESPACES, Resource
from autoscaler.cluster.store import Store
from autoscaler.errors import InternalError
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop, Recorded, Tick
from autoscaler.scheduling.schedule import Choice, first
from autoscaler.settings.settings import DEFAULTS, Settings
from autoscaler.simulation.api_server import ApiServer
from autoscaler.simulation.controllers import Controllers
from autoscaler.simulation.kubelets import Kubelets
from autoscaler.simulation.scenario import Scenario, moment_of
from autoscaler.simulation.scheduler import Scheduler
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.drivers.terms import DeviceClassFacts
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile
from instance_catalog.types.catalog import Catalog
from providers.simulated.cloud import SimulatedCloud
from providers.simulated.machines import Behaviour
from providers.simulated.provider import SimulatedProvider

TEMPLATE_KIND: Final = "SimulatedNodeTemplate"
# A GPU machine takes minutes from the call to its Ready node.
ORDINARY: Final = Behaviour(boot=timedelta(seconds=150))
# If a time needs more rounds than this, the simulation does not settle.
_ROUNDS: Final = 100


class Simulation:
    """A cluster, a cloud and the autoscaler. `api` may be wrapped by tests that interrupt the loop's writes.

    `choose` breaks the scheduler's ties between equally good nodes. `tidy`: pods that have succeeded are deleted at
    once, as those of a Job with ttlSecondsAfterFinished: 0. `explains`: somebody reads the reasons in plans.
    """

    def __init__(
        self,
        *,
        catalog: Catalog,
        start: datetime,
        profile: KubernetesProfile = REFERENCE,
        behaviour: Behaviour = ORDINARY,
        settings: Settings = DEFAULTS,
        choose: Choice = first,
        tidy: bool = False,
        explains: bool = True,
    ) -> None:
        self.clock = VirtualClock(start)
        self.api = ApiServer(self.clock)
        self.cloud = SimulatedCloud(self.clock, behaviour)
        self._catalog = catalog
        self._profile = profile
        self._settings, self._explains = settings, explains
        self._arrivals: list[tuple[datetime, Resource, Object]] = []
        self._wake_at: datetime | None = None
        self._at_rest = -1  # the newest change at which controllers and scheduler had nothing left to do
        self._parsed = Parsed()
        store = Store(self.api, profile, own=False, parsed=self._parsed)
        self._controllers = Controllers(self.api)
        self._scheduler = Scheduler(self.api, store, choose)
        self._kubelets = Kubelets(self.api, store, self.cloud, catalog, self.clock, tidy=tidy)
        self._uid = self._install()
        self.loop = self.new_loop()

    def new_loop(
        self,
        api: KubernetesApi | None = None,
        *,
        catalog: Catalog | None = None,
        events: EventQueue | None = None,
        announce: Callable[[Recorded], None] = lambda recorded: None,
    ) -> Loop:
        """The production loop with empty memory, as after a restart. `catalog`: the one that it uses, if not the true
        one.

        `events` and `announce` are the loop's: without the former, it writes events at the end of each reconcile.
        """
        self.loop = Loop(
            api=api or self.api,
            providers=Providers({TEMPLATE_KIND: SimulatedProvider(self.cloud)}, cluster=self._uid),
            catalog=catalog or self._catalog,
            profile=self._profile,
            clock=self.clock,
            settings=self._settings,
            events=events,
            announce=announce,
            closes=True,
            explains=self._explains,
            parsed=self._parsed,
        )
        return self.loop

    def add(self, scenario: Scenario) -> None:
        """Adds the scenario's objects, which arrive at their times from now."""
        self._arrivals += [(moment_of(a, self.clock.now()), a.resource, a.manifest) for a in scenario.arrivals]
        self._arrivals.sort(key=lambda arrival: arrival[0])

    def run(self, until: datetime, observe: Callable[[Tick], None] = lambda tick: None) -> None:
        """Live until `until`; `observe` sees every reconcile of the loop."""
        while True:
            self.settle(observe)
            moment = self.next_moment()
            if moment is None or moment > until:
                self.clock.advance_to(until)
                return
            self.clock.advance_to(moment)

    def settle_cluster(self) -> bool:
        """Runs everything but the autoscaler until nothing changes. Returns True if anything did."""
        self._arrive()
        changed = False
        for _ in range(_ROUNDS):
            if not (self._react() | self._kubelets.step()):
                return changed
            changed = True
        raise InternalError(f"the simulated cluster does not settle at {self.clock.now():%H:%M:%S}")

    def _react(self) -> bool:
        """Runs the components that depend on objects alone, unless no object that they know has changed since they last
        found nothing to do. They do not know Foreslice's."""
        changed = self.api.changed_at(but=labels.GROUP)
        if changed == self._at_rest:
            return False
        if self._controllers.step() | self._scheduler.step():
            return True
        self._at_rest = changed
        return False

    def settle(self, observe: Callable[[Tick], None] = lambda tick: None) -> None:
        """Runs cluster and autoscaler at this time until nothing changes."""
        self.settle_cluster()
        for _ in range(_ROUNDS):
            tick = self.loop.tick()
            self._wake_at = tick.wake_at
            observe(tick)
            if not self.settle_cluster():
                return
        raise InternalError(f"autoscaler and cluster do not settle at {self.clock.now():%H:%M:%S}")

    def _arrive(self) -> None:
        while self._arrivals and self._arrivals[0][0] <= self.clock.now():
            _, resource, manifest = self._arrivals.pop(0)
            created = self.api.create(resource, manifest)
            if "status" in manifest and "status" not in created:
                # The status that a controller outside the simulation would have written, such as a budget's allowance.
                self._write_status(resource, created, manifest["status"])

    def _write_status(self, resource: Resource, created: Object, status: Object) -> None:
        metadata = created["metadata"]
        namespace = metadata.get("namespace", "")
        self.api.patch(resource, metadata["name"], {"status": status}, namespace=namespace, subresource="status")

    def next_moment(self) -> datetime | None:
        """The time of the next change, if there is one."""
        return min((moment for moment in self._moments() if moment > self.clock.now()), default=None)

    def _moments(self) -> Iterator[datetime]:
        for moment in (self._wake_at, self._kubelets.next_moment()):
            if moment is not None:
                yield moment
        if self._arrivals:
            yield self._arrivals[0][0]

    def _install(self) -> str:
        """Creates the initial objects of a cluster: namespaces, and the classes of the drivers' charts."""
        system = self.api.create(NAMESPACES, {"metadata": {"name": "kube-system"}})
        self.api.create(NAMESPACES, {"metadata": {"name": "default"}})
        for facts in builtin_device_classes(self._profile):
            self.api.create(DEVICE_CLASSES, _device_class(facts))
        return str(system["metadata"]["uid"])


def _device_class(facts: DeviceClassFacts) -> Object:
    spec: Object = {"selectors": [{"cel": {"expression": expression}} for expression in facts.selectors]}
    if facts.extended_resource_name:
        spec["extendedResourceName"] = facts.extended_resource_name
    return {"metadata": {"name": facts.name}, "spec": spec}
