"""The composition root of the controller: which object is made of which, from the settings alone.

Each part is made when another one first asks for it, so the order is that of the dependencies.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Final
from uuid import uuid4

import structlog

from autoscaler.catalog_refresh.periodic import PeriodicSync
from autoscaler.catalog_refresh.prices import PriceWatch
from autoscaler.catalog_refresh.reload import ReloadingCatalog
from autoscaler.cluster.api import ForbiddenError, KubernetesApi, NotFoundError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.intercepted import InterceptedApi, leader_only
from autoscaler.cluster.lease import Election
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.publishing.event_writer import EventWriter
from autoscaler.cluster.resources import CAPACITY_POOLS, NAMESPACES
from autoscaler.composition.external_grpc import ExternalGrpc, external_grpc_of
from autoscaler.composition.listings import listings_of
from autoscaler.composition.process import Process
from autoscaler.composition.providers import AT_ONCE, interruption_announcer, providers_of
from autoscaler.controller.controller import Controller, Wakeup
from autoscaler.controller.interruption_watch import InterruptionWatch
from autoscaler.controller.observers import TickObservers
from autoscaler.controller.periodic_tasks import PeriodicTasks, Task
from autoscaler.errors import ConfigurationError
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop, Stage
from autoscaler.serve.access import RequestAuthorizer
from autoscaler.serve.health import Heartbeat, Sight
from autoscaler.serve.listener import Listener
from autoscaler.serve.recorder import Recorder
from autoscaler.serve.site import LatestTick, health_app, metrics_app, page_app
from autoscaler.serve.tracing import tracing_of
from autoscaler.settings.settings import OFF, Settings
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.types.catalog import Catalog
from providers.contract import Clock, Provider
from providers.plugins import Surroundings

_LOG: Final = structlog.get_logger("foreslice")
_ROLES_READ: Final = 10  # seconds


def controller(settings: Settings, clock: Clock) -> Process:
    """The controller of a cluster. Raises ConfigurationError when the cluster is not prepared, ApiError when unread."""
    return _Parts(settings, clock).process()


def leaders_only(api: KubernetesApi, leads: Callable[[], bool]) -> KubernetesApi:
    """The API for the loop and the providers: a replica that does not lead is refused every write."""
    return InterceptedApi(api, leader_only(leads))


class _Parts:
    """The parts of one process, each made once."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Connects to the cluster. Raises ConfigurationError when it lacks the custom resources."""
        self._settings = settings
        self._clock = clock
        self._wakeup = Wakeup()
        self._heartbeat = Heartbeat(clock)
        self._latest = LatestTick()
        self._tasks = PeriodicTasks(self._wakeup.set)
        self._listings = listings_of(settings, clock)
        self._synced = Path(settings.sync.directory) if self._listings else None
        directories = [Path(directory) for directory in settings.cluster.catalog]
        self._catalog = ReloadingCatalog(directories, clock, synced=self._synced)
        self._client, self._profile = _connected(settings, clock, self._wakeup)
        self._election = Election(self._client, clock, settings.lease, identity=f"{platform.node()}_{uuid4()}")
        release = version("foreslice")
        self._recorder = Recorder(clock, version=release, leads=self._leads)
        self._tracing = tracing_of(settings.tracing, cluster=settings.cluster.name, version=release)

    def process(self) -> Process:
        controller = Controller(
            self._loop,
            self._wakeup,
            self._clock,
            self._settings,
            observers=self._observers,
            leads=self._leads,
            perform=self._perform,
            tasks=self._tasks,
        )
        return Process(
            controller,
            self._settings,
            self._clock,
            listeners=tuple(self._listeners()),
            election=self._election,
            wakeup=self._wakeup,
            heartbeat=self._heartbeat,
            tracing=self._tracing,
            events=EventWriter(self._events, self._clock),
            interruptions=self._interruptions(),
            external_grpc=self._external_grpc,
        )

    @property
    def _leads(self) -> Callable[[], bool]:
        return self._election.leads if self._settings.lease.elect else _always

    @cached_property
    def _counted(self) -> KubernetesApi:
        """The API of threads that only read."""
        return InterceptedApi(self._client, self._recorder.counting)

    @cached_property
    def _api(self) -> KubernetesApi:
        """The API of what acts."""
        return leaders_only(self._counted, self._leads)

    @cached_property
    def _cluster_uid(self) -> str:
        return str(self._counted.get(NAMESPACES, "kube-system")["metadata"]["uid"])

    def _providers(self, catalog: Catalog) -> Mapping[str, Provider]:
        surroundings = Surroundings(self._cluster_uid, self._clock, ProviderObjects(self._api), catalog)
        return providers_of(surroundings, self._profile, self._settings)

    @cached_property
    def _prices(self) -> PriceWatch:
        """It has providers of its own, because it asks them in another thread than the loop."""
        return PriceWatch(
            lambda: self._catalog.catalog,
            lambda catalog: self._providers(catalog).values(),
            self._clock,
            changed=self._wakeup.set,
        )

    @cached_property
    def _sync(self) -> PeriodicSync | None:
        if self._synced is None:
            return None
        return PeriodicSync(
            self._listings,
            self._clock,
            directory=self._synced,
            layers=lambda: self._catalog.layers,
            changed=lambda: self._tasks.mark_due(Task.CATALOG),
            on_outcome=self._recorder.catalog_synced,
        )

    @cached_property
    def _observers(self) -> TickObservers:
        liveness = self._settings.serve.liveness
        observers = TickObservers(self._heartbeat, self._recorder, self._latest, liveness, span=self._tracing.span)
        if self._external_grpc is not None:
            observers.also = self._external_grpc.observed
        return observers

    @cached_property
    def _external_grpc(self) -> ExternalGrpc | None:
        return external_grpc_of(self._settings, self._api, self._recorder, self._clock)

    @cached_property
    def _events(self) -> EventQueue:
        events = EventQueue(self._api)
        self._recorder.watch_events(
            lambda: {fate.value: count for fate, count in events.fates.items()}, lambda: len(events)
        )
        return events

    @cached_property
    def _loop(self) -> Loop:
        def providers(catalog: Catalog) -> Providers:
            return Providers(self._providers(catalog), cluster=self._cluster_uid)

        loop = Loop(
            api=InterceptedApi(self._api, self._observers.request),
            providers=providers(self._catalog.catalog),
            catalog=self._catalog.catalog,
            profile=self._profile,
            clock=self._clock,
            settings=self._settings,
            stage=_both(self._tracing.span, self._recorder.timing_stage),
            layers=lambda: self._catalog.layers,
            quotes=lambda: self._prices.quotes,
            remake=providers,
            at_once=AT_ONCE,
            events=self._events,
            announce=self._observers.recorded,
        )
        self._recorder.follows(loop.ages)
        return loop

    def _perform(self, task: Task) -> None:
        """Perform the part of a due task that precedes the reconcile. RESYNC and BLOCK_CLOCK only need the
        reconcile."""
        if task is Task.SYNC and self._sync is not None:
            self._sync.start()
        elif task is Task.PRICES:
            self._prices.start()
        elif task is Task.CATALOG:
            self._catalog.changed()
            if self._catalog.whole:
                self._recorder.catalog_read()

    def _interruptions(self) -> InterruptionWatch | None:
        """None where no provider announces interruptions."""
        announcer = interruption_announcer(self._settings)
        if announcer is None:
            return None
        # While no pool acts, notices stay in their queue, from which each would be read again and again.
        return InterruptionWatch(announcer, self._wakeup.set, leads=self._acts)

    def _acts(self) -> bool:
        return self._leads() and self._loop.acts

    def _listeners(self) -> Iterator[Listener]:
        serve = self._settings.serve
        authorizer, name = RequestAuthorizer(self._counted), self._settings.cluster.name
        page = page_app(self._latest, authorizer, cluster=name, holder=lambda: self._election.holder)
        probes = health_app(self._heartbeat, Sight(self._loop.ages, self._settings.loop.stale))
        for what, address, app in (
            ("probes", serve.health_address, probes),
            ("metrics", serve.metrics_address, metrics_app(self._recorder.registry)),
            ("page", serve.page_address, page),
        ):
            if address != OFF:
                yield Listener(app, address, serves=what)


def profile_when_ready(client: KubernetesClient, feature_gates: str, clock: Clock) -> KubernetesProfile:
    """The profile that the cluster reports. An API server that has just started forbids everything until it has read
    its roles, which takes a second or two."""
    for _ in range(_ROLES_READ):
        try:
            return client.profile(feature_gates)
        except ForbiddenError:
            clock.wait(1)
    return client.profile(feature_gates)


def _connected(settings: Settings, clock: Clock, wakeup: Wakeup) -> tuple[KubernetesClient, KubernetesProfile]:
    cluster = settings.cluster
    transport = connect(clock, kubeconfig=cluster.kubeconfig, context=cluster.context)
    client = KubernetesClient(transport, clock, ring=wakeup.set)
    profile = profile_when_ready(client, cluster.feature_gates, clock)
    _LOG.info(
        "connected", server=client.server, kubernetes=profile.name, feature_gates="assumed: defaults and settings"
    )
    if profile.note:
        _LOG.warning("kubernetes_version", note=profile.note)
    try:
        client.list(CAPACITY_POOLS, limit=1)
    except NotFoundError as error:
        raise ConfigurationError(
            "the cluster has no CapacityPools",
            next_step="install the custom resources first: kubectl apply --server-side -f deploy/crds",
        ) from error
    return client, profile


def _always() -> bool:
    """Without election the only replica leads."""
    return True


def _both(first: Stage, second: Stage) -> Stage:
    """One stage that is both."""

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        with first(name), second(name):
            yield

    return stage
