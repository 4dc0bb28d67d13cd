"""One reconcile: observe, decide, record, carry out, publish. The same for the controller and the simulation.

It names no provider, reads only the clock that it is given, and keeps nothing between reconciles that a restart would
miss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Final, TypeAlias

import structlog

from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.journal import REFUSALS, Journal, Pending
from autoscaler.cluster.parsed import Parsed, Written
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.publishing.tick_report import TickPublisher, TickReport
from autoscaler.cluster.resources import LAUNCH_BATCHES
from autoscaler.cluster.status_memory import Account, Backoffs, save_quarantines
from autoscaler.cluster.store import Store
from autoscaler.execution.executor import Executor
from autoscaler.execution.launch import Providers
from autoscaler.execution.observed import Observed, Withheld
from autoscaler.execution.providers_seen import verdicts, with_groups, with_unserved
from autoscaler.kube.custom.spending import CLUSTER
from autoscaler.lifecycle.observing import awaits_order
from autoscaler.lifecycle.quarantine import Misprediction
from autoscaler.lifecycle.spending import given_back
from autoscaler.loop.catalog import CatalogInForce
from autoscaler.loop.decision import Decisions, changed_pairs, charged, decide, forbid, without_pairs
from autoscaler.loop.observation import Observation, Observer
from autoscaler.loop.wake import Retries, earliest, next_step, next_wake
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.provisioned_node import LaunchBatch
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.virtual_pods import without_virtual_pods
from autoscaler.planning.disruption.consolidation.tried_moves import NOTHING_TRIED
from autoscaler.planning.failing_objects import FailingObject, Searched
from autoscaler.planning.memory import PlanMemory
from autoscaler.planning.request_state import NO_REQUEST_STATE
from autoscaler.planning.supply.limits import accelerators_in_use
from autoscaler.planning.warm_up import warm_up
from autoscaler.report.events import Event, drift_event, misprediction_event, withheld_event
from autoscaler.report.words import advised
from autoscaler.settings.settings import DEFAULTS, Settings
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.files.layers import Layer
from instance_catalog.files.quotes import Quote
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.types.catalog import Catalog
from providers.contract import Clock, TemplateStatus

_LOG: Final = structlog.get_logger("foreslice.loop")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The intents of a reconcile before it carries any out: all of them are stored in the API."""

    decisions: Decisions
    pending: Pending
    troubles: tuple[Trouble, ...] = ()  # objects that could not be written


@dataclass(frozen=True, slots=True)
class Tick:
    """The outcome of one reconcile. `wake_at` is when something falls due without any event."""

    now: datetime
    snapshot: Snapshot
    plan: Plan
    troubles: tuple[Trouble, ...]
    wake_at: datetime | None
    mispredictions: tuple[Misprediction, ...] = ()
    catalog: Catalog | None = None  # the one that was planned with
    batches: frozenset[str] = frozenset()  # names of the recorded LaunchBatches


Stage: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Entered with the name of a part of the reconcile and left after it: for measurements."""


class Loop:
    """The autoscaler. One instance acts at a time (the elected leader)."""

    acts = False  # true if a pool was in mode Act at the last reconcile; read by other threads
    _templates: tuple[TemplateStatus, ...] = ()  # as their providers judged them in this reconcile
    _unjudged: tuple[Trouble, ...] = ()
    _seen = NO_REQUEST_STATE  # since when requests cannot be met, and when those that ask were looked at
    _moves = NOTHING_TRIED  # the running pods whose move was tried
    _charged_up_to = Decimal(0)  # launches of the account that was saved last
    _charged: frozenset[str] = frozenset()  # LaunchBatches of Cluster Autoscaler that the account counts

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
        announce: Callable[[Recorded], None] = lambda recorded: None,
        closes: bool = False,
        explains: bool = True,
        parsed: Parsed | None = None,
    ) -> None:
        """`layers`, `quotes` and `remake`: see CatalogInForce. `at_once`: the number of independent requests that may
        run in parallel. `events`: a queue that another thread writes; without it each reconcile writes its own.
        `announce` is called before each action. `closes`: pools with `consolidate: Close` close nodes, which so far
        only simulations do. `explains`: see decide. `parsed`: see Store."""
        self._api = api
        self._stage = stage
        self._clock = clock
        self._settings = settings
        written = Written()
        self._store = Store(api, profile, clock=clock, stale=settings.loop.stale, parsed=parsed, written=written)
        self._journal = Journal(api, at_once=at_once, written=written)
        self._backoffs, self._account = Backoffs(api), Account(api)
        catalogs = CatalogInForce(catalog, providers, layers=layers, quotes=quotes, remake=remake)
        self._observer = Observer(
            api, self._store, self._journal, self._backoffs, self._account, catalogs, clock, settings.loop
        )
        self._executor = Executor(api, self._journal, self._backoffs, providers, clock)
        self._publisher = TickPublisher(api, at_once=at_once, events=events)
        self._announce = announce
        self._retries = Retries(settings.loop)
        self._failing: Mapping[str, FailingObject] = {}  # the objects on which planning fails
        self._searched: Searched = {}  # when pods among them were found
        self._memory = PlanMemory()
        self._closes, self._explains = closes, explains

    def ages(self) -> dict[str, float]:
        """Seconds since each kind of object was last heard of. May be called from any thread."""
        return self._store.ages()

    def follow(self) -> None:
        """Take over what changed in the cluster while another replica acts, so that the first reconcile lists
        little."""
        self._observer.follow()

    def warm_up(self) -> None:
        """Computes the inputs of the first plan before a pod needs it: after a reconcile, or a follow."""
        with self._stage("warm_up"):
            warm_up(self._store.snapshot(), self._memory.world)

    def tick(self) -> Tick:
        now = self._clock.now()
        with self._stage("observe"):
            observed = self._observe(now)
        with self._stage("plan"):
            decisions = self._decide(observed)
        with self._stage("record"):
            recorded = self._record(observed, decisions)
        with self._stage("carry_out"):
            failed = self._carry_out(observed, recorded)
        with self._stage("publish"):
            report = self._report(observed, recorded, failed)
            unpublished = self._publisher.publish(report)
        tick = self._finished(report, unpublished, decisions)
        batches = frozenset(batch.name for batch in self._journal.batches)
        return replace(tick, catalog=observed.catalog, batches=batches)

    def _observe(self, now: datetime) -> Observation:
        observed = self._observer.observe(now)
        observed = replace(observed, snapshot=self._publisher.newest(observed.snapshot))
        self.acts = observed.acts
        if observed.providers is not self._executor.providers:
            self._executor = replace(self._executor, providers=observed.providers)
        self._templates, self._unjudged = verdicts(observed.providers)
        pools = with_groups(observed.snapshot.pools, self._templates)
        blocks = with_unserved(observed.snapshot.blocks, pools)
        return replace(observed, snapshot=replace(observed.snapshot, pools=pools, blocks=blocks))

    def _decide(self, observed: Observation) -> Decisions:
        """Decide, and log each object on which deciding breaks once, with its traceback."""
        decisions = decide(
            observed.snapshot,
            observed.catalog,
            self._settings,
            observed.now,
            serving=observed.seen.serving,
            failing=self._failing,
            searched=self._searched,
            seen=self._seen,
            moves=self._moves,
            memory=self._memory,
            closes=self._closes,
            explains=self._explains,
        )
        logged = {id(entry.error) for entry in self._failing.values()}
        for entry in (one for one in decisions.failing.values() if not one.waits and id(one.error) not in logged):
            name = entry.subject.name
            _LOG.error("unexpected_error", kind=entry.kind, name=name, namespace=entry.namespace, exc_info=entry.error)
        if decisions.unmoved is not None:
            _LOG.error("consolidation_failed", exc_info=decisions.unmoved)
        self._failing, self._searched = decisions.failing, decisions.searched
        self._seen, self._moves = decisions.seen, decisions.moves
        return decisions

    def _record(self, observed: Observation, decisions: Decisions) -> Recorded:
        """Writes the observations, the costs, and then the decisions. A launch that depends on a failed write is
        withheld."""
        before, after = observed.snapshot.quarantines, decisions.snapshot.quarantines
        unsaved = save_quarantines(self._api, before, after)
        if unsaved:
            pools = {trouble.name for trouble in unsaved}
            pairs = {pair for pair in changed_pairs(before, after) if pair[0] in pools}
            decisions = without_pairs(decisions, pairs)
        ordered = self._ordered(decisions.snapshot)
        uncharged = Isolation().attempt("Spending", CLUSTER, partial(self._charge, decisions, ordered))
        launches = decisions.launches if uncharged is None else ()
        plan = replace(decisions.plan, launches=launches)
        unrecorded = self._journal.record(plan, decisions.snapshot, decisions.now)
        refund = self._refund(launches, decisions, unrecorded) if uncharged is None else None
        refusal = self._journal.refusal
        if refusal is not None:
            decisions = forbid(decisions, advised(refusal.message, refusal.next_step))
        charge = tuple(trouble for trouble in (uncharged, refund) if trouble is not None)
        withheld = frozenset(batch.name for batch in ordered) if uncharged is not None else frozenset()
        pending = self._without(withheld, decisions)
        return Recorded(decisions, pending, (*unsaved, *charge, *unrecorded))

    def _ordered(self, snapshot: Snapshot) -> tuple[LaunchBatch, ...]:
        """Cluster Autoscaler's orders since the last reconcile: written by serve.externalGrpc, in another thread, and
        not requested yet. After a restart one may be counted twice, but none is missed."""
        pools = {pool.name for pool in snapshot.pools if pool.ordered}
        batches = [batch for batch in self._journal.batches if batch.pool in pools] if pools else []
        self._charged &= {batch.name for batch in batches}
        return tuple(batch for batch in batches if not batch.asked and batch.name not in self._charged)

    def _charge(self, decisions: Decisions, ordered: Sequence[LaunchBatch]) -> None:
        nodes = sum(len(batch.members) for batch in ordered)
        account = charged(decisions, self._settings.policy, ordered=nodes)
        self._charged_up_to = account.recent_launches
        self._account.save(account)
        self._charged |= {batch.name for batch in ordered}

    def _refund(
        self, launches: Sequence[PlannedNode], decisions: Decisions, troubles: Sequence[Trouble]
    ) -> Trouble | None:
        """Removes launches that the API server refused from the account: otherwise every attempt uses up the launches
        of an hour."""
        if not launches:
            return None
        acting = {pool.name for pool in decisions.snapshot.pools if pool.acts}
        # Names follow from pods: a batch that was asked for earlier may have had a node of the same name.
        written = {name for batch in self._journal.batches if not batch.asked for name in batch.nodes}
        unwritten = [each for each in launches if each.pool in acting and each.name not in written]
        account = self._account.current
        # A write without an answer may still have happened, and is then launched by the next reconcile.
        certain = all(isinstance(t.error, REFUSALS) for t in troubles if t.kind == LAUNCH_BATCHES.kind)
        # An account that is not the last saved one was written by another process meanwhile.
        if not unwritten or not certain or account is None or account.recent_launches != self._charged_up_to:
            return None
        save = partial(self._account.save, given_back(account, len(unwritten)))
        return Isolation().attempt("Spending", CLUSTER, save)

    def _without(self, withheld: frozenset[str], decisions: Decisions) -> Pending:
        """The pending items, except for launches that the account does not count, and for failed nodes whose failure
        Cluster Autoscaler must see first."""
        pending, pools = self._journal.pending(), decisions.snapshot.pools
        launches = tuple(batch for batch in pending.launches if batch.name not in withheld)
        if not pending.leaving:
            return replace(pending, launches=launches)
        batches = {batch.name for batch in self._journal.batches if not batch.deleting}  # the others were withdrawn
        waiting = {n.name for n in pending.leaving if n.batch in batches and awaits_order(n, pools, decisions.now)}
        leaving = tuple(node for node in pending.leaving if node.name not in waiting)
        return replace(pending, launches=launches, leaving=leaving)

    def _carry_out(self, observed: Observation, recorded: Recorded) -> tuple[Trouble, ...]:
        self._announce(recorded)
        seen = Observed(recorded.decisions.snapshot, observed.seen.machines)
        return self._executor.carry_out(recorded.pending, seen, observed.now)

    def _report(self, observed: Observation, recorded: Recorded, failed: tuple[Trouble, ...]) -> TickReport:
        decisions = recorded.decisions
        after = without_virtual_pods(decisions.snapshot)
        after = replace(after, provisioned=self._journal.nodes, backoffs=self._backoffs.current)
        failing = tuple(
            Trouble(entry.kind, entry.subject.name, entry.error, entry.namespace)
            for entry in decisions.failing.values()
        )
        return TickReport(
            now=observed.now,
            snapshot=after,
            plan=decisions.plan,
            conditions=decisions.conditions,
            templates=self._templates,
            problems=observed.problems,
            accelerators=accelerators_in_use(after, observed.catalog),
            effective=observed.effective,
            requests=decisions.requests,
            buffers=decisions.buffers,
            troubles=(*observed.troubles, *failing, *recorded.troubles, *failed, *self._unjudged),
            events=(
                *map(drift_event, decisions.drifts),
                *map(misprediction_event, decisions.mispredictions),
                *map(_event_of, self._executor.take_withheld()),
            ),
        )

    def _finished(self, report: TickReport, unpublished: tuple[Trouble, ...], decisions: Decisions) -> Tick:
        troubles = (*report.troubles, *unpublished)
        loop, now = self._settings.loop, report.now
        wake_at = earliest(
            next_wake(report.snapshot, loop, now),
            next_step(report.plan, report.snapshot, loop, now),
            decisions.answer_at,
            decisions.move_at,
            None if report.effective is None else report.effective.wake_at,
            self._retries.next(troubles, now),
        )
        return Tick(now, report.snapshot, report.plan, troubles, wake_at, decisions.mispredictions)


def _event_of(withheld: Withheld) -> Event:
    return withheld_event(withheld.kind, withheld.name, withheld.uid, pool=withheld.pool, would=withheld.would)
