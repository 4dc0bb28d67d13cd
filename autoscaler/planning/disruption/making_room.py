"""Finds moves of running pods that make room for pods that no existing node takes.

For a pod, or pods that share a claim, it searches the fewest pods of one node that would have to move. kube-scheduler
must be able to place these on other existing nodes. A gang gets one node after the other. No pod that runs or is about
to be bound loses its place. The rules for movable pods are those of consolidation (lifecycle/movable.py).

It only proposes. While pods move one after the other, their node must be cordoned: otherwise kube-scheduler gives the
first free place to any pod.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import combinations, islice
from typing import Final

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account, pay
from autoscaler.lifecycle.movable import BudgetsByNamespace, by_namespace, deletion_cost, obstacle
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.plan import LeftOutVerdict, Plan, Relocation, RoomMade, Target
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.model.virtual_pods import is_virtual
from autoscaler.planning.demand.bundles import Bundle, bundles_of
from autoscaler.planning.disruption.evicted_pods import PodRemoval, cordoned, uncordoned
from autoscaler.planning.disruption.excluded_nodes import closed_nodes, kept_nodes
from autoscaler.planning.disruption.kinds import uses_devices
from autoscaler.planning.disruption.running import preference_now
from autoscaler.planning.disruption.without_nodes import as_pending
from autoscaler.planning.placement.existing import Present
from autoscaler.planning.placement.replay import as_planned
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.schedule import first, schedule
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap

# The most workloads for which moves are searched, by priority.
_JOBS: Final = 8
# If a node has more movable pods, only one set is tried: the pods that must move if as many as possible stay.
MOST_MOVED: Final = 8
# One check of a node, in units of work.
_LOOK: Final = 200
_AT_ONCE: Final = 100  # checks that are paid for together
# The number of existing nodes for which a workload gets its units of work once more.
_NODES: Final = 1_000
# The most nodes that are checked, those with the fewest pods to move first, and the most for which sets are tried.
_LOOKED: Final = 500
_CANDIDATES: Final = 32


def room_made(plan: Plan, present: Present, snapshot: Snapshot, policy: Policy) -> tuple[RoomMade, ...]:
    """Proposals, each based on the ones before it. `policy` limits the work of each workload separately."""
    jobs = _jobs(plan, present.world, snapshot)[:_JOBS]
    if not jobs or "PodDisruptionBudget" in snapshot.unreadable:
        return ()
    world = as_planned(plan, present)
    budgets = by_namespace(snapshot.disruption_budgets)
    running = {pod.key for pod in snapshot.pods if occupies(pod)}
    search = _Search(budgets, closed=closed_nodes(snapshot), kept=kept_nodes(snapshot), running=running)
    units = policy.work.per_pod * (1 + len(world.nodes) // _NODES)
    found: list[RoomMade] = []
    for job in jobs:
        account = Account(own=units, shared=Purse(policy.work.selectors_per_round // _JOBS), most=units)
        try:
            with on_account(account):
                after = search.place(job, _Step(world))
        except BudgetSpentError:
            continue
        if after is not None and after.moves:
            world = after.world
            running -= {move.pod for move in after.moves}
            keys = tuple(pod.key for bundle in job for pod in bundle.pods)
            found.append(RoomMade(keys, after.moves, FrozenMap(after.devices), _saved(plan, keys)))
    return tuple(found)


def _jobs(plan: Plan, world: World, snapshot: Snapshot) -> list[tuple[Bundle, ...]]:
    """The pods with devices that existing nodes do not take: bundles, and gangs without a topology domain."""
    wanted = {left.pod for left in plan.left_out if left.verdict is LeftOutVerdict.DOES_NOT_FIT}
    wanted |= {placement.pod for placement in plan.placements if placement.target is Target.NEW}
    pods = [pod for pod in snapshot.pods if pod.key in wanted and not is_virtual(pod.key) and uses_devices(pod, world)]
    pods.sort(key=lambda pod: pod.turn)
    jobs: dict[str, tuple[Bundle, ...]] = {}
    for bundle in bundles_of(pods, snapshot.claims):
        key = bundle.gang or bundle.key
        gang = snapshot.gangs.get(bundle.gang or "")
        if gang is None or not gang.topology_key:
            jobs[key] = (*jobs.get(key, ()), bundle)
    return [job for job in jobs.values() if _helps(plan, tuple(pod.key for bundle in job for pod in bundle.pods))]


def _helps(plan: Plan, keys: tuple[str, ...]) -> bool:
    """True if a place for the pods is useful: they have none, or one node less is launched."""
    placed = {placement.pod for placement in plan.placements}
    return not placed.issuperset(keys) or _saved(plan, keys) is not None


def _saved(plan: Plan, keys: tuple[str, ...]) -> Decimal | None:
    alone = [launch for launch in plan.launches if launch.pods and set(launch.pods) <= set(keys)]
    prices = [launch.usd_per_hour for launch in alone if launch.usd_per_hour is not None]
    return sum(prices, Decimal(0)) if prices else None


@dataclass(frozen=True, slots=True)
class _Step:
    """The state of the search: the cluster, the moves so far, and the devices of the job on each node."""

    world: World
    moves: tuple[Relocation, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class _Set:
    """Pods of a node that might move. Sets are tried in order: the smallest first, then those that are easiest to
    move."""

    size: int
    trouble: int
    node: str
    keys: tuple[str, ...]
    pods: tuple[Pod, ...] = dataclasses.field(compare=False)


@dataclass
class _Search:
    """`closed` nodes accept no moved pods; no pod leaves `kept` nodes. `running`: pods that run and have not moved
    for an earlier job; the other pods are not bound yet."""

    budgets: BudgetsByNamespace
    closed: frozenset[str]
    kept: frozenset[str]
    running: set[str]

    def place(self, job: Sequence[Bundle], step: _Step) -> _Step | None:
        """Place every bundle of the job on existing nodes, one after the other; None if one has no room."""
        for bundle in job:
            found = self._placed(bundle, step) or self._placed_after_moves(bundle, step)
            if found is None:
                return None
            step = found
        return step

    def _placed(self, bundle: Bundle, step: _Step) -> _Step | None:
        """The bundle on the node that kube-scheduler chooses now."""
        _pay_looks(len(bundle.pods) * len(step.world.nodes))
        found = schedule(bundle.pods, step.world, first)
        if found.left:
            return None
        devices = dict(step.devices)
        for bound in found.bound:
            count = sum(len(allocation.devices) for allocation in bound.verdict.allocations.values())
            devices[bound.node] = devices.get(bound.node, 0) + count
        return replace(step, world=found.world, devices=devices)

    def _placed_after_moves(self, bundle: Bundle, step: _Step) -> _Step | None:
        removal = PodRemoval(step.world)
        running = self.running - {move.pod for move in step.moves}
        for chosen in sorted(self._sets(bundle, removal, running)):
            if obstacle(chosen.pods, self.budgets) is not None or not _takes(bundle, chosen, removal):
                continue
            gone = self._relocated(chosen, removal, step)
            after = self._placed(bundle, gone) if gone is not None else None
            if after is not None:
                return after
        return None

    def _sets(self, bundle: Bundle, removal: PodRemoval, running: set[str]) -> Iterator[_Set]:
        """The sets to try, for each node that would take the bundle if all movable pods left."""
        nodes = ((name, state) for name, state in removal.world.nodes.items() if name not in self.kept)
        full = (_set_of([p for p in state.pods if self._may_go(p, running)], name) for name, state in nodes)
        looked = sorted(everybody for everybody in full if everybody.pods)[:_LOOKED]
        enough = (everybody for everybody in looked if _takes(bundle, everybody, removal))
        for everybody in islice(enough, _CANDIDATES):
            if everybody.size > MOST_MOVED:
                yield _least(bundle, everybody, removal)
                continue
            for size in range(1, everybody.size + 1):
                yield from (_set_of(chosen, everybody.node) for chosen in combinations(everybody.pods, size))

    def _may_go(self, pod: Pod, running: set[str]) -> bool:
        return pod.key in running and obstacle((pod,), self.budgets) is None

    def _relocated(self, chosen: _Set, removal: PodRemoval, step: _Step) -> _Step | None:
        """The pods of the set on the other nodes that kube-scheduler chooses; None if one has no place or gets less
        preferred devices."""
        world = cordoned(removal.without(chosen.pods, chosen.node), self.closed | {chosen.node})
        _pay_looks(len(chosen.pods) * len(world.nodes))
        pods = sorted(map(as_pending, chosen.pods), key=lambda pod: -pod.priority)
        found = schedule(pods, world, first)
        if found.left:
            return None
        for bound in found.bound:
            if bound.node in self.closed or bound.node == chosen.node:
                return None
            if bound.verdict.preference > preference_now(bound.pod, removal.world.claims):
                return None
        moves = tuple(Relocation(bound.pod.key, chosen.node, bound.node) for bound in found.bound)
        return replace(step, world=uncordoned(found.world, removal.world), moves=(*step.moves, *moves))


def _takes(bundle: Bundle, gone: _Set, removal: PodRemoval) -> bool:
    """True if the node takes the bundle once these pods have left."""
    copied = len(removal.world.nodes) + len(removal.world.claims)
    pay(_LOOK * len(bundle.pods) + copied // 8)
    return isinstance(fit(bundle.pods, gone.node, removal.without(gone.pods, gone.node)), Fits)


def _pay_looks(looks: int) -> None:
    for done in range(0, looks, _AT_ONCE):
        pay(_LOOK * min(_AT_ONCE, looks - done))


def _set_of(pods: Sequence[Pod], node: str) -> _Set:
    ordered = tuple(sorted(pods, key=lambda pod: pod.key))
    return _Set(len(pods), sum(map(deletion_cost, pods)), node, tuple(pod.key for pod in ordered), ordered)


def _least(bundle: Bundle, everybody: _Set, removal: PodRemoval) -> _Set:
    """The pods that must move after each pod that may stay does stay, starting with those that are hardest to move."""
    gone = everybody
    for pod in sorted(everybody.pods, key=lambda pod: (-deletion_cost(pod), pod.key)):
        fewer = _set_of([other for other in gone.pods if other is not pod], gone.node)
        gone = fewer if _takes(bundle, fewer, removal) else gone
    return gone
