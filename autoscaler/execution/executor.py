"""Carries out the pending items, one after the other; an item that fails does not stop the others.

Leaving nodes are first: drains, notices and terminations do not wait for launches, which may be slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from autoscaler.cluster.api import BlockedError, KubernetesApi
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.journal import Journal, Pending
from autoscaler.cluster.status_memory import Backoffs
from autoscaler.errors import ConfigurationError
from autoscaler.execution.drain import (
    cordon,
    evict_all,
    may_all_move,
    occupants_now,
    raise_obstacles,
    stay_after_all,
    uncordon,
)
from autoscaler.execution.finalizers import sync_finalizer
from autoscaler.execution.hold import give_notice, hold, release, withdraw_notice
from autoscaler.execution.launch import Providers, answered, give_up, launch
from autoscaler.execution.observed import Observed, Withheld
from autoscaler.execution.orphans import OwnLaunches, adopt_all, end_all, find_orphans, pool_of, second_controller
from autoscaler.execution.patience import Patience, Until
from autoscaler.execution.slices import ending_with, may_begin_with, may_end_stopped, stays_empty
from autoscaler.execution.terminate import is_alive, remove_objects, terminate
from autoscaler.execution.unclear import Unclear, read_answer
from autoscaler.execution.waiting import end_waiting, may_wait, needed_nodes, unwanted
from autoscaler.lifecycle.absence import absence
from autoscaler.lifecycle.leaving import checked_first, end_postponed, may_evict
from autoscaler.lifecycle.observing import acts_on_nodes, may_touch, may_touch_node
from autoscaler.lifecycle.provisioned_node import Why, can_take
from autoscaler.model.capacity import AtDeadline, CapacityBlock
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.provisioned_node import BatchOutcome, LaunchBatch, Phase, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.reasons import texts_of
from instance_catalog.dataclass import replace
from providers.abilities import NameKeeper
from providers.contract import Clock, Instance, InstanceState, Provider
from providers.errors import RefusedError
from providers.places import same_place

# If something keeps removing the taint, a machine whose pods are evicted is still ended.
_CORDONED_BY: Final = timedelta(minutes=1)
# Launches that take longer than this together go on in the next reconcile, after what has to leave by then. It is
# shorter than the time-out of a call: after one that timed out no other begins.
_LAUNCHING: Final = timedelta(seconds=30)
_WOULD: Final = {
    NodeAction.DRAIN: "drain it",
    NodeAction.HOLD: "mark its Node as held",
    NodeAction.CLOSE: "let no more pods in",
    NodeAction.NOTICE: "warn the pods on it of its end",
}


@dataclass(frozen=True, slots=True)
class Executor:
    api: KubernetesApi
    journal: Journal
    backoffs: Backoffs
    providers: Providers
    clock: Clock
    withheld: list[Withheld] = field(default_factory=list)
    own: OwnLaunches = field(default_factory=OwnLaunches)
    patience: Patience = field(init=False)
    unclear: Unclear = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "patience", Patience(self.clock))
        object.__setattr__(self, "unclear", Unclear(self.clock))

    def carry_out(self, pending: Pending, seen: Observed, now: datetime) -> tuple[Trouble, ...]:
        """Drain, terminate, hold, give notice and launch as recorded. Returns what failed; it is repeated later."""
        self.own.note(self.journal.batches, self.journal.nodes, self.clock)
        providers = tuple(self.providers.by_template.values())
        kept = (*map(_of_sweep, providers), *map(_of_launch, pending.launches), *map(_of_end, pending.launches))
        self.patience.keep({*kept, *(node.name for node in pending.leaving)})
        self.unclear.keep([batch.name for batch in pending.launches if batch.outcome is BatchOutcome.CALLING])
        work: list[tuple[str, str, Callable[[], None]]] = [
            *(("ProvisionedNode", node.name, partial(self._remove, node, seen, now)) for node in pending.leaving),
            *(
                ("ProvisionedNode", n.name, partial(self._apply_decision, n, d, seen, now))
                for n, d in seen.unfinished(pending.decisions)
            ),
            *(
                ("CapacityPool", p.name, partial(sync_finalizer, self.api, p, self._now(seen)))
                for p in seen.snapshot.pools
            ),
            *(("Provider", p.name, partial(self._collect_orphans, p, seen, now)) for p in providers),
            *(("Provider", p.name, partial(self._tell_missing, p, seen, now)) for p in providers),
        ]
        until = Until(self.clock, _LAUNCHING)
        launches, needed = self._in_turn(pending.launches), needed_nodes(pending)
        work += [("LaunchBatch", b.name, partial(self._launch, b, seen, needed, until, now)) for b in launches]
        isolation = Isolation(self.api)
        attempts = (isolation.attempt(kind, name, action) for kind, name, action in work)
        return (*(trouble for trouble in attempts if trouble is not None), *self.backoffs.take_troubles())

    def _in_turn(self, launches: Sequence[LaunchBatch]) -> Iterator[LaunchBatch]:
        """A launch whose failure pauses its pool would, asked first each time, make the pool's others wait for ever:
        with every failure another one is first."""
        by_pool: dict[str, list[LaunchBatch]] = {}
        for batch in launches:
            by_pool.setdefault(batch.pool, []).append(batch)
        for pool, batches in by_pool.items():
            turn = self.backoffs.failures(pool) % len(batches)
            yield from (*batches[turn:], *batches[:turn])

    def _launch(self, batch: LaunchBatch, seen: Observed, needed: frozenset[str], until: Until, now: datetime) -> None:
        """Launches for pools that act. Batches from before their pool observed or was deleted are given up, and so are
        batches that a user deletes."""
        acts = any(pool.name == batch.pool and pool.acts for pool in seen.snapshot.pools)
        if (not acts or batch.deleting) and batch.outcome is BatchOutcome.INTENDED:
            give_up(batch, self.journal, now)
        elif batch.outcome is BatchOutcome.CALLING and not may_touch(batch.pool, seen.snapshot.pools):
            if not self._read_answer(batch, seen, now):
                would = "repeat its call, whose outcome is unknown"
                self._withhold("LaunchBatch", batch.name, batch.uid, batch.pool, would)
        elif batch.name in self.unclear and self._read_answer(batch, seen, now):
            return  # the next offering is requested in the next reconcile
        elif unwanted(batch, seen.snapshot, self.journal.nodes, needed, acts=acts):
            end = partial(end_waiting, batch, providers=self.providers, journal=self.journal, backoffs=self.backoffs)
            self.patience.attempt(_of_end(batch), partial(end, now=now))
        elif not until.over():
            # A call that waits for the end of another one delays no others, least of all that one.
            call = partial(
                launch, batch, providers=self.providers, journal=self.journal, backoffs=self.backoffs, now=now
            )
            self.patience.attempt(_of_launch(batch), partial(self.unclear.repeat, batch.name, call))

    def _read_answer(self, batch: LaunchBatch, seen: Observed, now: datetime) -> bool:
        """Reads the result of a call that is not repeated. Returns True if it is known."""
        provider = self.providers.of(batch)
        waited = self.unclear.waited(batch.name)
        machines = seen.machines.get(provider.name) if same_place(batch.place, provider.place()) else None
        answer = None if machines is None else read_answer(batch, machines, provider.traits, waited=waited)
        if answer is None or (answer.missing and may_wait(batch, provider, cluster=self.providers.cluster)):
            return False
        self.unclear.forget(batch.name)
        answered(batch, answer, journal=self.journal, backoffs=self.backoffs, now=now)
        return True

    def take_withheld(self) -> tuple[Withheld, ...]:
        """The actions since the last call that pools in Observe did not allow."""
        taken = tuple(self.withheld)
        self.withheld.clear()
        return taken

    def _withhold(self, kind: str, name: str, uid: str, pool: str, would: str) -> None:
        self.withheld.append(Withheld(kind, name, uid, pool, would))

    def _remove(self, node: ProvisionedNode, seen: Observed, now: datetime) -> None:
        """Takes one step of a leaving node."""
        if not may_touch_node(node, seen.snapshot.pools):
            self._leave_alone(node, seen)
            return
        provider = self.providers.named(node.provider)
        if self._has_nothing_left(node):
            if (keeper := self._keeper(node)) is not None:
                self.patience.attempt(node.name, partial(keeper.release, (node.provider_id,)))
            remove_objects(node, api=self.api, journal=self.journal)
            return
        machines = seen.machines.get(node.provider, {})
        if node.phase is Phase.TERMINATING and not is_alive(node, machines):
            return
        if node.provider_id and self._may_end(node, seen, now) and provider is not None:
            whole = ending_with(node, machines, seen.own, seen.found_empty, api=self.api, journal=self.journal, now=now)
            if whole is not None:
                end = partial(terminate, provider=provider, machines=machines, journal=self.journal, now=now)
                self.patience.attempt(node.name, partial(end, node, whole=whole))

    def _keeper(self, node: ProvisionedNode) -> NameKeeper | None:
        """The provider that may keep the name of its machine."""
        provider: object = self.providers.named(node.provider)
        return provider if isinstance(provider, NameKeeper) and node.provider_id else None

    def _leave_alone(self, node: ProvisionedNode, seen: Observed) -> None:
        """Reports what will happen to a leaving node once its pool acts. If machine, Node and name in its group are
        gone, only the object is left, which Foreslice may delete."""
        found, keeper = seen.own.of(node), self._keeper(node)
        would = ""
        if self._has_nothing_left(node):
            if found is not None:
                would = f"delete Node {found.name}, whose machine is gone"
            elif keeper is not None and keeper.kept((node.provider_id,)):
                would = f"delete the name of {node.provider_id} from its group, which makes another machine under it"
            else:
                self.journal.forget(node)
                return
        elif is_alive(node, seen.machines.get(node.provider, {})):
            evicts = node.phase is Phase.DRAINING and may_evict(node)
            would = f"{'evict the pods of its Node and ' if evicts else ''}end its machine {node.provider_id}"
        if would:
            self._withhold("ProvisionedNode", node.name, node.uid, node.pool, would)

    def _may_end(self, node: ProvisionedNode, seen: Observed, now: datetime) -> bool:
        """Takes one step before a machine may be ended. Returns True if it may be ended."""
        if can_take(node, Why.END_POSTPONED) and end_postponed(node, _block_of(node, seen), now):
            self.journal.move(node, Why.END_POSTPONED, now, ())
            return False
        if may_evict(node):
            over = node.phase is Phase.TERMINATING and stays_empty(node, seen.own, seen.occupants)
            return over or self._drained(node, seen, now)
        if _stopped_for(node):
            if self._machine_stopped(node, seen):
                return True  # no pod that is bound there runs
            if can_take(node, Why.STARTED_AGAIN) and is_alive(node, seen.machines.get(node.provider, {})):
                self.journal.move(node, Why.STARTED_AGAIN, now, ())
                return False
        found = seen.own.of(node)
        if found is not None and not cordon(self.api, found):
            return False
        pods = occupants_now(self.api, seen.own.name_of(node))
        may_return = node.phase is not Phase.TERMINATING or self._was_refused(node, seen)
        if pods and may_return and can_take(node, Why.POD_FOUND):
            # A new decision follows; if the node stays, the taint is removed.
            self.journal.move(node, Why.POD_FOUND, now, ())
        elif pods and node.phase is Phase.TERMINATING:
            raise BlockedError(
                f"the machine of node {node.node_name} is not ended: {', '.join(pod.key for pod in pods)} run there",
                next_step="wait until they have ended, or delete the ProvisionedNode",
            )
        return not pods

    def _was_refused(self, node: ProvisionedNode, seen: Observed) -> bool:
        """True if the machine certainly stays: the provider refused the last request to end it, which is no lost
        answer, and still lists it as running."""
        machine = seen.machines.get(node.provider, {}).get(node.provider_id)
        runs = machine is not None and machine.state is InstanceState.RUNNING
        return runs and isinstance(self.patience.error(node.name), RefusedError)

    def _machine_stopped(self, node: ProvisionedNode, seen: Observed) -> bool:
        """True if its provider reports it as stopped in this reconcile."""
        machine = seen.machines.get(node.provider, {}).get(node.provider_id)
        return machine is not None and machine.state is InstanceState.STOPPED

    def _drained(self, node: ProvisionedNode, seen: Observed, now: datetime) -> bool:
        """Takes one step of a drain. Returns True if the machine may be ended. BlockedError names the pods that may not
        leave yet."""
        found, name = seen.own.of(node), seen.own.name_of(node)
        cordoned = found is None or cordon(self.api, found) or _long_ago(node.phase_since, now)
        pods = seen.occupants.get(name, ())
        if checked_first(node.reasons) and stay_after_all(node, found, pods, now) and can_take(node, Why.POD_FOUND):
            self.journal.move(node, Why.POD_FOUND, now, ())
            return False
        block = _block_of(node, seen)
        ends_at = block.reclaimed if block else node.reclaim_at
        if node.recreated_as:
            ends_at = now  # the machine that they were on is gone: a mark protects nothing any more
        drained = evict_all(self.api, pods, ends_at=ends_at, now=now)
        if not drained.remaining and cordoned:
            drained = evict_all(self.api, occupants_now(self.api, name), ends_at=ends_at, now=now)
            if not drained.remaining:
                return True
        if block is not None and now >= block.reclaimed and block.drain.at_deadline is AtDeadline.DELETE:
            return True
        if found is not None and ends_at is not None:
            give_notice(self.api, found, pods, ends_at)  # for pods that came after the notice, or stay longer
        raise_obstacles(node, drained)
        return False

    def _tell_missing(self, provider: Provider, seen: Observed, now: datetime) -> None:
        """Report machines that the provider does not list and of which nothing is concluded."""
        listed = seen.machines.get(provider.name)
        if listed is None:
            return
        windows = {provider.name: provider.traits.consistency_window}
        found = absence(self.journal.nodes, seen.own, listed=listed.keys(), windows=windows, now=now)
        missing = found.waiting.get(provider.name, ())
        if missing:
            raise ConfigurationError(
                f"{len(missing)} machines of nodes are not listed by provider {provider.name}, such as {missing[0]}: "
                "their Nodes are Ready, or these are more than max(2, 10 %) of its machines",
                next_step="check its account and region; nothing is concluded until the machines are listed again. "
                "Delete the ProvisionedNodes of those that are gone",
            )

    def _collect_orphans(self, provider: Provider, seen: Observed, now: datetime) -> None:
        """Adopt or terminate a provider's machines that have no object."""
        machines = seen.machines.get(provider.name, {})
        orphans = find_orphans(
            machines,
            journal=self.journal,
            nodes=seen.snapshot.nodes,
            pools=seen.snapshot.pools,
            others=partial(self.own.excludes, clock=self.clock),
            now=now,
        )
        if orphans.of_another:
            raise second_controller(orphans.of_another, provider)
        if orphans.stopped:
            raise ConfigurationError(
                f"more than max(2, 10 %) of the {len(machines)} machines of provider {provider.name} have no object",
                next_step="restore the ProvisionedNodes, or end the machines by hand; none is terminated until then",
            )
        idle = [m for m in orphans.terminate if self._may_sweep(m, pool_of(m), "end", provider, seen)]
        if idle:
            self.patience.attempt(_of_sweep(provider), partial(end_all, idle, provider=provider))
        adopt = [(m, n) for m, n in orphans.adopt if self._may_sweep(m, pool_of(m, n), "adopt", provider, seen)]
        adopt_all(adopt, provider=provider, journal=self.journal, now=now)

    def _may_sweep(self, machine: Instance, pool: str, would: str, provider: Provider, seen: Observed) -> bool:
        if may_touch(pool, seen.snapshot.pools):
            return True
        self._withhold("Provider", provider.name, "", pool, f"{would} machine {machine.id}, which has no object")
        return False

    def _now(self, seen: Observed) -> Snapshot:
        """The observations, with the nodes as the journal has them now."""
        return replace(seen.snapshot, provisioned=self.journal.nodes)

    def _has_nothing_left(self, node: ProvisionedNode) -> bool:
        """True if there is no machine, and none will be started."""
        return node.phase is Phase.GONE or (not node.provider_id and not self._may_still_come(node))

    def _may_still_come(self, node: ProvisionedNode) -> bool:
        """True if a running call may still start the node's machine."""
        return any(batch.name == node.batch and not batch.outcome.finished for batch in self.journal.batches)

    def _apply_decision(self, node: ProvisionedNode, decision: NodeDecision, seen: Observed, now: datetime) -> None:
        """Holds a node, releases it, gives notice on it, or begins a drain that needs an empty node."""
        found, drains = seen.own.of(node), decision.action is NodeAction.DRAIN
        stopped = drains and any(reason.code is Code.NODE_STOPPED for reason in decision.reasons)
        if found is None and not stopped:
            return
        if not may_touch_node(node, seen.snapshot.pools):
            if decision.action in _WOULD:
                would = ": ".join(filter(None, (_WOULD[decision.action], texts_of(decision.reasons))))
                self._withhold("ProvisionedNode", node.name, node.uid, node.pool, would)
            return
        acts = any(pool.name == node.pool and acts_on_nodes(pool) for pool in seen.snapshot.pools)
        if acts and stopped:
            ready = may_end_stopped(node, self.journal.nodes, api=self.api, own=seen.own, occupied=seen.occupants)
            if ready and self._machine_stopped(node, seen):
                self.journal.move(node, Why.UNWANTED, now, decision.reasons)
        if found is None or (acts and stopped):
            return
        if decision.action is NodeAction.CLOSE and acts:
            cordon(self.api, found)
            return
        if drains and acts and checked_first(decision.reasons):
            if cordon(self.api, found) and may_all_move(self.api, found, seen.snapshot.disruption_budgets):
                self.journal.move(node, Why.UNWANTED, now, decision.reasons)
            return
        if drains and acts:
            # A pod that was found and that the plan did not see yet keeps the node with the next plan.
            ready = cordon(self.api, found) and not occupants_now(self.api, found.name)
            if ready and may_begin_with(node, self.journal.nodes, own=seen.own, occupied=seen.occupants):
                self.journal.move(node, Why.UNWANTED, now, decision.reasons)
            return
        # Left over by a drain that was taken back or not decided again, perhaps by a process before this one.
        uncordon(self.api, found)
        if decision.action is not NodeAction.NOTICE:
            withdraw_notice(self.api, found, seen.occupants.get(found.name, ()))
        if decision.action is NodeAction.KEEP:
            release(self.api, found)
        elif decision.action is NodeAction.HOLD:
            hold(self.api, found)
        elif decision.action is NodeAction.NOTICE and decision.deadline is not None:
            give_notice(self.api, found, seen.occupants.get(found.name, ()), decision.deadline)


def _stopped_for(node: ProvisionedNode) -> bool:
    """True if it is removed because its machine was stopped."""
    return any(reason.code is Code.NODE_STOPPED for reason in node.reasons)


def _of_launch(batch: LaunchBatch) -> str:
    """No ProvisionedNode has such a name."""
    return f"launch/{batch.name}"


def _of_end(batch: LaunchBatch) -> str:
    """No ProvisionedNode has such a name."""
    return f"withdraw/{batch.name}"


def _of_sweep(provider: Provider) -> str:
    """No ProvisionedNode has such a name."""
    return f"sweep/{provider.name}"


def _block_of(node: ProvisionedNode, seen: Observed) -> CapacityBlock | None:
    return next((block for block in seen.snapshot.blocks if block.name == node.offering.block), None)


def _long_ago(began: datetime | None, now: datetime) -> bool:
    """True if a drain that evicts no longer waits until its taint is visible."""
    return began is not None and now - began > _CORDONED_BY
