"""One tick: reflect the world, decide, write down, carry out, tell. The same for the controller and the simulation.

It names no provider, reads no clock but the one it is given, and keeps nothing between ticks that a restart would miss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

import structlog

from autoscaler.checks.check import forbidden, held_back, pool_conditions
from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.journal import Journal, Pending
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.publishing.publisher import Publisher
from autoscaler.cluster.publishing.template_status import TemplateStatuses
from autoscaler.cluster.status_memory.account import Account
from autoscaler.cluster.status_memory.backoffs import Backoffs
from autoscaler.cluster.status_memory.quarantines import save_quarantines
from autoscaler.cluster.store import Store
from autoscaler.errors import ConfigurationError
from autoscaler.execution.executor import Executor, Observed
from autoscaler.execution.launch import Providers
from autoscaler.execution.patience import ClockJumps, Patience
from autoscaler.execution.providers_seen import acknowledge, ask, verdicts
from autoscaler.execution.uninstall import stop_while_uninstalling
from autoscaler.kube.custom.spending import CLUSTER
from autoscaler.lifecycle.capacity_block import next_moment
from autoscaler.lifecycle.moments import without_future
from autoscaler.lifecycle.observing import acts_on_nodes
from autoscaler.lifecycle.provisioned_node import (
    awaits_machine,
    awaits_node,
    has_failed,
    has_machine,
    may_take_pods,
    times_out_at,
)
from autoscaler.lifecycle.quarantine import WATCH_SKEW, Drift, Misprediction, mispredicted, quarantined
from autoscaler.lifecycle.reflect import reflect
from autoscaler.lifecycle.spending import moved_on, price_of
from autoscaler.model.capacity import Mode
from autoscaler.model.plan import NodeAction, Plan
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.apart import Odd, plan_apart
from autoscaler.planning.disruption.baseline import windows_of
from autoscaler.planning.disruption.slice_drift import slice_drifts
from autoscaler.planning.planner import plan_for
from autoscaler.planning.supply.drivers import readable
from autoscaler.planning.supply.limits import accelerators_in_use, binding_guards
from autoscaler.planning.warm_up import warm_up
from autoscaler.report.events import drift_event, misprediction_event, not_launched_event, trouble_event, withheld_event
from autoscaler.report.words import advised
from autoscaler.settings.settings import DEFAULTS, LoopSettings, Settings
from instance_catalog.files.last_good import effective_catalog
from instance_catalog.files.layers import Layer
from instance_catalog.files.quotes import Priced, Quote, priced
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.prediction.predict import predict, unpredictable
from instance_catalog.types.catalog import Catalog
from providers.contract import Clock, TemplateStatus
from providers.errors import backoff_of

_LOG: Final = structlog.get_logger("foreslice.loop")


_Item: TypeAlias = tuple[str, str, str]  # kind, namespace and name of what could not be done


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick saw, decided and could not do. `wake_at` is when something falls due without any event."""

    now: datetime
    snapshot: Snapshot
    plan: Plan
    troubles: tuple[Trouble, ...]
    wake_at: datetime | None
    mispredictions: tuple[Misprediction, ...] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    """What a tick is about to do, before it does anything: everything in it is written down in the API."""

    now: datetime
    snapshot: Snapshot
    plan: Plan
    pending: Pending


Stage: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Entered with the name of a part of the tick and left after it: for whoever measures."""


class Loop:
    """The autoscaler. One instance acts at a time (the elected leader)."""

    def __init__(
        self,
        *,
        api: KubernetesApi,
        providers: Providers,
        catalog: Catalog,
        profile: KubernetesProfile,
        clock: Clock,
        settings: Settings = DEFAULTS,
        stage: Stage = nullcontext,
        layers: Callable[[], Sequence[Layer]] | None = None,
        quotes: Callable[[], tuple[Quote, ...]] = tuple,
        remake: Callable[[Catalog], Providers] | None = None,
        at_once: int = 1,
        events: EventQueue | None = None,
        announce: Callable[[Decided], None] = lambda decided: None,
    ) -> None:
        """`layers`: what the catalog is made of now; the cluster's InstanceTypeOverlays then lie over it in each tick.
        Without it the catalog stays as it is. `quotes`: what providers ask for today. `remake` makes the providers of
        another catalog, which they predict with. `at_once`: how many requests that do not depend on each other may be
        under way. `events`: where events wait for somebody else to write them; without it each tick writes its own.
        `announce` is told what is about to be done."""
        self._api = api
        self._stage = stage
        self._providers = providers
        self._catalog = catalog
        self._layers = layers
        self._quotes = quotes
        self._priced: Priced | None = None
        self._remake = remake
        self._made_of = catalog.digest
        self._clock = clock
        self._settings = settings
        self._store = Store(api, profile, clock=clock, stale=settings.loop.stale)
        self._journal = Journal(api, at_once=at_once)
        self._backoffs = Backoffs(api)
        self._executor = Executor(api, self._journal, self._backoffs, providers, clock)
        self._patience = Patience(clock, longest=settings.loop.resync)
        self._jumps = ClockJumps(clock)
        self._account = Account(api)
        self._publisher = Publisher(api, at_once=at_once, events=events)
        self._templates = TemplateStatuses(api)
        self._announce = announce
        self._followed = False
        self.acts = False  # whether a pool is in mode Act, as of the last tick; read by other threads
        self._odd: Mapping[str, Odd] = {}  # the pods on which planning breaks
        self._troubled: Mapping[_Item, int] = {}  # what could not be done, and in how many rounds in a row

    def ages(self) -> dict[str, float]:
        """Seconds since each kind of object was last heard of. May be called from any thread."""
        return self._store.ages()

    def follow(self) -> None:
        """Take over what changed in the cluster while another replica acts, so that the first tick lists little."""
        self._store.refresh()
        self._followed = True

    def warm_up(self) -> None:
        """Work out what the first plan needs, before anybody waits for it: after a tick, or a follow."""
        with self._stage("rehearse"):
            warm_up(self._store.snapshot())

    def tick(self) -> Tick:
        """Observe, reflect, decide, record, carry out, publish."""
        now = self._clock.now()
        with self._stage("observe"):
            snapshot, half = self._read(now)
            unmade = self._remade()
            seen = ask(self._providers, snapshot.provisioned, now=now, patience=self._patience, jumps=self._jumps)
            booting = {n.name: self._drivers(n) for n in snapshot.provisioned if awaits_node(n)}
            batches = frozenset(batch.name for batch in self._journal.batches)
            snapshot = reflect(seen.world(snapshot, booting, batches=batches), now)
            unnoted = self._journal.note(snapshot.provisioned)
            self.acts = any(pool.mode is Mode.ACT for pool in snapshot.pools)
            if self.acts and all(_is_noted(node, self._journal) for node in snapshot.provisioned):
                unnoted = (*unnoted, *acknowledge(self._providers, seen))
        with self._stage("plan"):
            drifts = slice_drifts(snapshot, self._catalog, self._settings.drift.policy, now)
            snapshot, plan, mispredictions, unlearned = self._decide(snapshot, drifts, now)
            found = pool_conditions(
                snapshot, plan, self._catalog, policy=self._settings.policy, now=now, serving=seen.serving
            )
            snapshot = held_back(snapshot, found)
        with self._stage("record"):
            unrecorded = self._record(snapshot, plan, now)
            refused = self._journal.refusal
            if refused is not None:
                found = forbidden(found, snapshot, advised(refused.message, refused.next_step))
                snapshot = held_back(snapshot, found)
        with self._stage("carry_out"):
            pending = self._journal.pending()
            self._announce(Decided(now, snapshot, plan, pending))
            failed = self._executor.carry_out(pending, Observed(snapshot, seen.machines), now)
            troubles = (*half, *unmade, *seen.silent, *seen.doubts, *unnoted, *unlearned, *unrecorded, *failed)
        after = replace(snapshot, provisioned=self._journal.nodes)
        with self._stage("publish"):
            self._publisher.publish(plan, after, now, accelerators=accelerators_in_use(after, self._catalog))
            judged, unjudged = verdicts(self._providers)
            zones = {(verdict.template.kind, verdict.template.name): verdict.zones for verdict in judged}
            self._publisher.judge(after, self._store.problems(), now, zones=zones, objections=plan.warnings)
            self._publisher.check(found, after, now)
            if self._priced is not None:
                self._publisher.overlays(self._priced.effective, now)
            unwritten = self._templates_told(judged, now)
            troubles = (*troubles, *unjudged, *unwritten, *self._publisher.take_troubles())
            self._tell_troubles(troubles, after, now)
            withheld = [
                withheld_event(w.kind, w.name, w.uid, pool=w.pool, would=w.would)
                for w in self._executor.take_withheld()
            ]
            for event in (*map(drift_event, drifts), *map(misprediction_event, mispredictions), *withheld):
                self._publisher.tell(event, now)
        expiring = self._priced.effective.wake_at if self._priced is not None else None
        step = _next_step(plan, after, self._settings.loop, now)
        wakes = (next_wake(after, self._settings.loop, now), step, expiring, self._retry_at(troubles, now))
        wake_at = min((moment for moment in wakes if moment is not None), default=None)
        return Tick(now, after, plan, troubles, wake_at, mispredictions)

    def _record(self, snapshot: Snapshot, plan: Plan, now: datetime) -> tuple[Trouble, ...]:
        """Write down what is decided. Without an account of what it costs, nothing new is launched."""
        uncharged = Isolation().attempt("Spending", CLUSTER, partial(self._charge, snapshot, plan, now))
        if uncharged is None:
            return self._journal.record(plan, snapshot, now)
        return (uncharged, *self._journal.record(replace(plan, launches=()), snapshot, now))

    def _templates_told(self, judged: Iterable[TemplateStatus], now: datetime) -> tuple[Trouble, ...]:
        """The statuses and events of node templates; which could not be written."""
        isolation = Isolation(self._api)

        def write(verdict: TemplateStatus) -> None:
            for event in self._templates.write(verdict, now):
                self._publisher.tell(event, now)

        attempts = (isolation.attempt(v.template.kind, v.template.name, partial(write, v)) for v in judged)
        return tuple(trouble for trouble in attempts if trouble is not None)

    def _tell_troubles(self, troubles: Sequence[Trouble], snapshot: Snapshot, now: datetime) -> None:
        """Events on what could not be done, and on the pods that wait for it."""
        # `kubectl describe` shows the events of a pod's uid.
        uids = {pod.key: pod.uid for pod in snapshot.pods} if troubles else {}
        for trouble in troubles:
            uid = uids.get(f"{trouble.namespace}/{trouble.name}", "") if trouble.namespace else ""
            about = trouble_event(
                trouble.kind, trouble.namespace, trouble.name, uid, reason=trouble.reason, text=trouble.text
            )
            self._publisher.tell(about, now)
            for pod in trouble.pods:
                self._publisher.tell(not_launched_event(pod, uids.get(pod, ""), trouble.name, trouble.reason), now)

    def _retry_at(self, troubles: Sequence[Trouble], now: datetime) -> datetime | None:
        """When to try again what no change in the cluster need announce; ever more rarely as long as it lasts.

        Each item is counted by itself: one that fails for hours does not slow down one that failed just now.
        """
        items = {(trouble.kind, trouble.namespace, trouble.name) for trouble in troubles}
        self._troubled = {item: self._troubled.get(item, 0) + 1 for item in items}
        if not items:
            return None
        loop = self._settings.loop
        return now + min(loop.retry * (1 << min(min(self._troubled.values()) - 1, 10)), loop.resync)

    def _decide(
        self, snapshot: Snapshot, drifts: Sequence[Drift], now: datetime
    ) -> tuple[Snapshot, Plan, tuple[Misprediction, ...], tuple[Trouble, ...]]:
        """The plan, made with what this tick taught about drift and mispredictions; what of that was not saved."""
        plan, odd = self._plan(snapshot, now)
        mispredictions = mispredicted(snapshot, plan, now)
        learned = replace(snapshot, quarantines=quarantined(snapshot, mispredictions, now, drifts=drifts))
        if learned == snapshot:
            return snapshot, plan, mispredictions, odd
        # Written first, so that nothing is launched again on an assumption that has just proved wrong.
        unsaved = save_quarantines(self._api, snapshot.quarantines, learned.quarantines)
        plan, odd = self._plan(learned, now)
        return learned, plan, mispredictions, (*unsaved, *odd)

    def _plan(self, snapshot: Snapshot, now: datetime) -> tuple[Plan, tuple[Trouble, ...]]:
        """The plan, and the pods on which planning breaks. As long as these stay as they are, they are left out."""
        make = partial(plan_for, catalog=self._catalog, policy=self._settings.policy, now=now)
        plan, apart = plan_apart(make, snapshot, self._odd)
        for odd in (odd for key, odd in apart.items() if self._odd.get(key) != odd):
            pod = odd.pod
            _LOG.error("unexpected_error", kind="Pod", name=pod.name, namespace=pod.namespace, exc_info=odd.error)
        self._odd = apart
        return plan, tuple(Trouble("Pod", odd.pod.name, odd.error, odd.pod.namespace) for odd in apart.values())

    def _charge(self, snapshot: Snapshot, plan: Plan, now: datetime) -> None:
        """Bring the account up to date before launching: a crash in between counts too much, never too little."""
        acting = {pool.name for pool in snapshot.pools if pool.acts}
        account = moved_on(
            self._account.current,
            now,
            usd_per_hour=price_of(snapshot.provisioned),
            launched=sum(launch.pool in acting for launch in plan.launches),
            launches_per_hour=self._settings.policy.max_launches_per_hour,
            binding=binding_guards(plan),
        )
        self._account.save(account)

    def _read(self, now: datetime) -> tuple[Snapshot, tuple[Trouble, ...]]:
        """The cluster, with what this process wrote and did not see again yet; what half-written is not complete."""
        self._store.refresh()
        if self._followed:
            # A watch may lag behind what the leader before wrote last, and nothing may be done twice.
            self._store.reread_own()
            self._followed = False
        if self._layers is not None:
            layers = (*self._layers(), *self._store.overlays())
            effective = effective_catalog(
                layers, now=now, before=None if self._priced is None else self._priced.effective
            )
            self._priced = priced(effective, self._quotes(), before=self._priced)
            self._catalog = self._priced.catalog
        snapshot = self._store.snapshot()
        seen_up_to = self._store.seen_up_to()
        half = self._journal.resume(self._store.batches(), snapshot.provisioned, now, seen_up_to=seen_up_to)
        snapshot = replace(snapshot, provisioned=self._journal.nodes)
        stop_while_uninstalling(self._api, snapshot, self._journal.batches)
        snapshot = without_future(snapshot, now, backoff_of)
        self._backoffs.resume(snapshot.backoffs)
        self._account.resume(snapshot.spending)
        return replace(snapshot, spending=self._account.current), half

    def _remade(self) -> tuple[Trouble, ...]:
        """Let the providers know the catalog that is in force; until they can be made of it, the old ones serve."""
        # Prices that are quoted make no other providers: these are who quotes them.
        catalog = self._catalog if self._priced is None else self._priced.effective.catalog
        if self._remake is not None and catalog.digest != self._made_of:
            try:
                self._providers = self._remake(catalog)
            except ConfigurationError as error:
                return (Trouble("Provider", "catalog", error),)
            self._executor = replace(self._executor, providers=self._providers)
            self._made_of = catalog.digest
        return ()

    def _drivers(self, node: ProvisionedNode) -> frozenset[str]:
        """The drivers that were predicted to publish on a node; none for a type or driver that left the catalog."""
        instance_type = self._catalog.types.get(node.offering.instance_type)
        drivers = readable(node.prediction.drivers, custom=self._catalog.drivers)
        if instance_type is None or drivers is None or unpredictable(instance_type, drivers):
            return frozenset()
        slices = predict(instance_type, drivers, kubernetes=self._store.profile, node_name=node.node_name)
        return frozenset(piece.driver for piece in slices)


def next_wake(snapshot: Snapshot, settings: LoopSettings, now: datetime) -> datetime | None:
    """When something falls due that no event announces; None while everything rests."""
    return min((moment for moment in _due(snapshot, settings, now) if moment > now), default=None)


def _is_noted(node: ProvisionedNode, journal: Journal) -> bool:
    """Whether the end that a notice gave the node is written down."""
    written = journal.node(node.name)
    return written is None or written.noticed_at == node.noticed_at


def _next_step(plan: Plan, snapshot: Snapshot, settings: LoopSettings, now: datetime) -> datetime | None:
    """When to look again at a node that was tainted and is not drained before the taint was seen; a watch of Nodes
    wakes a controller earlier."""
    acting = {pool.name for pool in snapshot.pools if acts_on_nodes(pool)}
    drained = {decision.provisioned_node for decision in plan.nodes if decision.action is NodeAction.DRAIN}
    waits = any(n.name in drained and n.pool in acting and may_take_pods(n) for n in snapshot.provisioned)
    return now + settings.retry if waits else None


def _due(snapshot: Snapshot, settings: LoopSettings, now: datetime) -> Iterator[datetime]:
    after = {pool.name: pool.disruption.after for pool in snapshot.pools}
    for pod in snapshot.pods:
        if pod.no_node_before is not None and pod.node_name is None:
            yield pod.no_node_before
    for block in snapshot.blocks:
        moment = next_moment(block, now)
        if moment is not None:
            yield moment
    for backoff in snapshot.backoffs:
        yield backoff.until
    for quarantine in snapshot.quarantines:
        if quarantine.until is not None:
            yield quarantine.until
    for pool in snapshot.pools:
        yield from (window.next_change(now) for window in windows_of(pool))
    for node in snapshot.provisioned:
        timeout = times_out_at(node)
        if timeout is not None:
            yield timeout
        if node.pods and node.phase_since is not None:
            yield node.phase_since + WATCH_SKEW  # what its pods still lack then is bought for
        if node.empty_since is not None and node.pool in after:
            yield node.empty_since + after[node.pool]
        if awaits_machine(node) or (has_failed(node) and not has_machine(node)):
            yield now + settings.retry
        elif node.phase is not Phase.READY:
            yield now + settings.resync
