"""The composition root of the controller: the real client, the providers, the loop, and everything that runs beside it.

Threads: the controller's own (the caller of `Process.run`), the election, the agenda, one for each HTTP address, one
for each watch, one for a cloud's notices. Only the first one decides and writes; the others ring its bell or read what
it has shown.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final
from uuid import uuid4

import structlog

from autoscaler.catalog_refresh.periodic import PeriodicSync
from autoscaler.catalog_refresh.prices import PriceWatch
from autoscaler.catalog_refresh.reload import ReloadingCatalog
from autoscaler.cluster.api import KubernetesApi, NotFoundError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.intercepted import InterceptedApi, leader_only
from autoscaler.cluster.lease import Election, campaign
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.publishing.event_writer import EventWriter
from autoscaler.cluster.resources import CAPACITY_POOLS, KWOK_NODE_TEMPLATES, NAMESPACES
from autoscaler.composition.kwok import KwokMachines
from autoscaler.composition.listings import listings_of
from autoscaler.controller.controller import Controller, Wakeup
from autoscaler.controller.interruption_watch import NoticeWatch
from autoscaler.controller.observers import TickObservers
from autoscaler.controller.periodic_tasks import Task, Timetable, periods_of
from autoscaler.errors import ConfigurationError
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop, Stage
from autoscaler.serve.access import RequestAuthorizer
from autoscaler.serve.health import Heartbeat, Sight
from autoscaler.serve.listener import Listener
from autoscaler.serve.recorder import Recorder
from autoscaler.serve.site import LatestTick, health_app, metrics_app, page_app
from autoscaler.serve.tracing import Tracing, tracing_of
from autoscaler.settings.settings import OFF, LeaseSettings, Settings
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.catalog import Catalog
from providers.contract import Clock, Provider
from providers.kwok.provider import KwokProvider
from providers.plugins import PluginError, Surroundings, installed, plugged_in

_LOG: Final = structlog.get_logger("foreslice")
# Requests to the API server under way: its connections beside those of the watches (client/transport.py).
_AT_ONCE: Final = 8


class Process:
    """The controller with its servers, its scheduler and its candidacy. `run` returns when it was told to stop."""

    def __init__(
        self,
        controller: Controller,
        settings: Settings,
        *,
        listeners: tuple[Listener, ...],
        election: Election,
        bell: Wakeup,
        heartbeat: Heartbeat,
        tracing: Tracing,
        clock: Clock,
        notices: NoticeWatch | None = None,
        events: EventWriter | None = None,
    ) -> None:
        self.listeners = listeners
        self._clock = clock
        self._notices = notices
        self._events = events
        self._controller = controller
        self._settings = settings
        self._election = election
        self._bell = bell
        self._heartbeat = heartbeat
        self._tracing = tracing

    def stop(self) -> None:
        """End after the round that is under way. May be called from signal handlers."""
        self._heartbeat.unready()
        self._controller.stop()

    def run(self) -> None:
        """Until stopped; the Lease is given up first, so that another replica need not wait. LeadershipLostError."""
        with ExitStack() as stack:
            stack.callback(self._tracing.close)
            for listener in self.listeners:
                listener.start()
                _LOG.info("listening", serves=listener.serves, address=listener.address)
                stack.callback(listener.stop)
            periods = periods_of(self._settings)
            for duty in periods.keys() & {Task.SYNC, Task.PRICES}:
                self._controller.mark(duty)  # the others may wait for their first time
            timetable = Timetable(periods, self._controller.mark, self._clock)
            timetable.start()
            stack.callback(timetable.stop)
            self._heartbeat.depend_on("agenda", timetable.is_alive)
            if self._notices is not None:
                self._notices.start()
                stack.callback(self._notices.stop)
            if self._settings.lease.elect:
                candidacy = _candidacy(self._election, self._settings.lease, self._bell)
                self._heartbeat.depend_on("election", stack.enter_context(candidacy).is_alive)
            if self._events is not None:
                self._events.start()
                stack.callback(self._events.stop)  # before the Lease is given up
            self._controller.run()
        _LOG.info("ended")


@contextmanager
def _candidacy(election: Election, settings: LeaseSettings, bell: Wakeup) -> Iterator[threading.Thread]:
    """Attempt in a thread of its own: a long round must not keep the Lease from being renewed."""
    ended = threading.Event()
    thread = threading.Thread(
        target=campaign,
        args=(election, settings),
        kwargs={"ended": ended, "changed": bell.ring},
        name="election",
        daemon=True,
    )
    thread.start()
    try:
        yield thread
    finally:
        ended.set()
        thread.join(timeout=settings.renew_deadline.total_seconds())
        election.release()


def controller(settings: Settings, clock: Clock) -> Process:
    """The controller of a cluster. Raises ConfigurationError when the cluster is not prepared, ApiError when unread."""
    listings = listings_of(settings, clock)
    own = Path(settings.sync.directory) if listings else None
    shelf = ReloadingCatalog([Path(directory) for directory in settings.cluster.catalog], clock, synced=own)
    bell, heartbeat, latest = Wakeup(), Heartbeat(clock), LatestTick()
    cluster = settings.cluster
    client = KubernetesClient(
        connect(clock, kubeconfig=cluster.kubeconfig, context=cluster.context), clock, ring=bell.ring
    )
    profile = client.profile(cluster.feature_gates)
    _LOG.info(
        "connected", server=client.server, kubernetes=profile.name, feature_gates="assumed: defaults and settings"
    )
    if profile.note:
        _LOG.warning("kubernetes_version", note=profile.note)
    _require_crds(client)

    release = version("foreslice")
    election = Election(client, clock, settings.lease, identity=f"{platform.node()}_{uuid4()}")
    leads = election.leads if settings.lease.elect else _always
    recorder = Recorder(clock, version=release, leads=leads)
    tracing = tracing_of(settings.tracing, cluster=cluster.name, version=release)
    counted = InterceptedApi(client, recorder.counting)
    api = leaders_only(counted, leads)
    uid = str(counted.get(NAMESPACES, "kube-system")["metadata"]["uid"])

    def providers(catalog: Catalog) -> Providers:
        """Made of the catalog that is in force."""
        surroundings = Surroundings(uid, clock, ProviderObjects(api), catalog)
        return Providers(_providers(surroundings, profile, settings), cluster=uid)

    # Apart from the loop's own, because they are asked in another thread.
    prices = PriceWatch(
        lambda: shelf.catalog, lambda catalog: providers(catalog).by_template.values(), clock, changed=bell.ring
    )
    observers = TickObservers(heartbeat, recorder, latest, settings.serve.liveness, span=tracing.span)
    events = EventQueue(api)
    recorder.watch_events(lambda: {fate.value: count for fate, count in events.fates.items()}, lambda: len(events))
    loop = Loop(
        api=InterceptedApi(api, observers.request),
        providers=providers(shelf.catalog),
        catalog=shelf.catalog,
        profile=profile,
        clock=clock,
        settings=settings,
        stage=_both(tracing.span, recorder.timing_stage),
        layers=lambda: shelf.layers,
        quotes=lambda: prices.quotes,
        remake=providers,
        at_once=_AT_ONCE,
        events=events,
        announce=observers.decided,
    )
    recorder.follows(loop.ages)
    sync: PeriodicSync | None = None

    def perform(duty: Task) -> None:
        """What a duty asks for besides another round."""
        if duty is Task.SYNC and sync is not None:
            sync.start()
        if duty is Task.PRICES:
            prices.start()
        if duty is Task.CATALOG:
            shelf.changed()
            if shelf.whole:
                recorder.catalog_read()

    ticking = Controller(
        loop,
        bell,
        clock,
        settings,
        observers=observers,
        leads=leads,
        perform=perform,
    )
    if own is not None:
        sync = PeriodicSync(
            listings,
            clock,
            directory=own,
            layers=lambda: shelf.layers,
            changed=lambda: ticking.mark(Task.CATALOG),
            told=recorder.catalog_synced,
        )
    page = page_app(latest, RequestAuthorizer(counted), cluster=cluster.name, holder=lambda: election.holder)
    addresses = (
        ("probes", settings.serve.health_address, health_app(heartbeat, Sight(loop.ages, settings.loop.stale))),
        ("metrics", settings.serve.metrics_address, metrics_app(recorder.registry)),
        ("page", settings.serve.page_address, page),
    )
    listeners = tuple(Listener(app, address, serves=what) for what, address, app in addresses if address != OFF)
    return Process(
        ticking,
        settings,
        listeners=listeners,
        election=election,
        bell=bell,
        heartbeat=heartbeat,
        tracing=tracing,
        clock=clock,
        notices=_notices(settings, bell, leads),
        events=EventWriter(events, clock),
    )


def leaders_only(api: KubernetesApi, leads: Callable[[], bool]) -> KubernetesApi:
    """The API as the loop and the providers get it: a replica that does not lead any more writes nothing."""
    return InterceptedApi(api, leader_only(leads))


def _notices(settings: Settings, bell: Wakeup, leads: Callable[[], bool]) -> NoticeWatch | None:
    """The thread that hears of a cloud's notices; None where nothing announces any."""
    if "aws" not in settings.cluster.providers or not settings.aws.queue:
        return None
    from autoscaler.composition.aws import aws_announcer  # boto3 is an extra

    announcer = aws_announcer(settings.aws)
    return None if announcer is None else NoticeWatch(announcer, bell.ring, leads=leads)


def _kwok(surroundings: Surroundings, profile: KubernetesProfile, _: Settings) -> Mapping[str, Provider]:
    machines = KwokMachines(surroundings.objects, surroundings.catalog, profile)
    return {KWOK_NODE_TEMPLATES.kind: KwokProvider(surroundings.objects, machines, at_once=_AT_ONCE)}


def _aws(surroundings: Surroundings, _: KubernetesProfile, settings: Settings) -> Mapping[str, Provider]:
    try:
        from autoscaler.composition.aws import aws_providers  # boto3 is an extra
    except ModuleNotFoundError as error:
        step = "install foreslice[aws]"
        raise ConfigurationError(f"the provider aws cannot be used: {error}", next_step=step) from error
    return aws_providers(surroundings, settings.aws)


_BUILT_IN: Final = {"aws": _aws, "kwok": _kwok}


def _providers(surroundings: Surroundings, profile: KubernetesProfile, settings: Settings) -> Mapping[str, Provider]:
    """The providers that the settings name, by the kinds of their node templates. Raises ConfigurationError."""
    found: dict[str, Provider] = {}
    third_parties = installed()
    for name in settings.cluster.providers:
        if name in _BUILT_IN:
            found |= _BUILT_IN[name](surroundings, profile, settings)
        elif name in third_parties:
            try:
                found |= plugged_in(surroundings, [third_parties[name]], taken=found)
            except PluginError as error:
                step = "or take it out of cluster.providers"
                raise ConfigurationError(str(error), next_step=step) from error
        else:
            known = sorted({*_BUILT_IN, *third_parties})
            step = did_you_mean(name, known, f"the providers are: {', '.join(known)}")
            raise ConfigurationError(f"cluster.providers names {name!r}, which does not exist", next_step=step)
    return found


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


def _require_crds(api: KubernetesApi) -> None:
    try:
        api.list(CAPACITY_POOLS, limit=1)
    except NotFoundError as error:
        raise ConfigurationError(
            "the cluster does not know CapacityPools",
            next_step="install the custom resources first: kubectl apply --server-side -f deploy/crds",
        ) from error
