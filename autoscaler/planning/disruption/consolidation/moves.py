"""Computes the saving of moving the pods of some nodes, with a plan of the cluster without these nodes.

A move is used only if every pod has a place in that plan, none gets a less preferred alternative of its claims, no
other pod loses or gains a place, and the saving is large enough. The nodes are paid for while their pods do not work:
that is the cost of a move.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.lifecycle.movable import by_namespace, mark_of_node, obstacle
from autoscaler.lifecycle.observing import acts_on_nodes
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import is_coming, is_leaving
from autoscaler.model.capacity import CapacityPool, Saving
from autoscaler.model.plan import NodeAction, Plan, PlannedNode, Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import is_virtual
from autoscaler.planning.disruption.running import NOT_FOR_MOVES, expected_rest, preference_now
from autoscaler.planning.disruption.without_nodes import without_nodes
from instance_catalog.dataclass import dataclass, field, replace

_HOUR: Final = timedelta(hours=1)
_YEAR: Final = 8766.0  # hours; what pays only after more is not waited for
# Seconds after which a pod with a place that is still not bound no longer counts as about to be bound.
_BINDING: Final = 600


@dataclass(frozen=True, slots=True)
class Move:
    """The pods of `nodes` move to existing nodes and to `launches`. `saved`, in USD per hour, leaves out the price of
    the nodes `made_for_them`, which were launched for an earlier step of this move."""

    nodes: tuple[ProvisionedNode, ...]
    launches: tuple[PlannedNode, ...]
    saved: Decimal
    made_for_them: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedTry:
    """Why pods do not move. `again`: the time after which the saving pays for the move if the pods still run; None if
    time alone changes nothing."""

    reason: Reason
    again: timedelta | None = None


def is_quiet(plan: Plan, snapshot: Snapshot, now: datetime) -> bool:
    """True if nothing is in progress in pools that act: no launch, no node that starts or is removed, and no pod that
    is about to be bound.

    A provider may hold machines for weeks, and so may a pod have a place without being bound: these do not count.
    """
    acting = {pool.name for pool in snapshot.pools if acts_on_nodes(pool)}
    young = {pod.key for pod in snapshot.pods if pod.node_name is None and pod.created > now.timestamp() - _BINDING}
    here = {n.name: n for n in snapshot.provisioned if n.pool in acting and n.name not in snapshot.waiting}
    launching = any(launch.pool in acting for launch in plan.launches)
    placed = any(p.target is not Target.NEW and p.pod in young and not is_virtual(p.pod) for p in plan.placements)
    going = any(d.action in (NodeAction.DRAIN, NodeAction.NOTICE) and d.provisioned_node in here for d in plan.nodes)
    return not (launching or placed or going or any(is_coming(node) or is_leaving(node) for node in here.values()))


@dataclass(frozen=True, slots=True)
class MoveContext:
    """The input of moves. `plan` is that of the present cluster. `make` makes another plan, `attempt` the same one
    without alternatives and explanations, at a lower price. `stuck` returns the key of a moved pod that may get no
    place when kube-scheduler chooses nodes, or "": see placement/replay.py.

    By name of a ProvisionedNode: `prices`, in USD per hour, and `saving`, the minimum that its pool requires. By name
    of a Node: `pods`, those that not every node has, `idle`, prices of own nodes that no pod needs and that would end,
    and `closed`, nodes that nothing moves to. `first` are keys of pods for which replacements were launched. `known`
    are names of launches without any move, for pools in mode Observe. `fits` remembers which replacements of several
    nodes, by name, take the pods of all of them.
    """

    snapshot: Snapshot
    plan: Plan
    make: Callable[[Snapshot], Plan]
    attempt: Callable[[Snapshot], Plan]
    prices: Mapping[str, Decimal]
    saving: Mapping[str, Saving]
    pods: Mapping[str, Sequence[Pod]]
    idle: Mapping[str, Decimal]
    closed: frozenset[str]
    first: frozenset[str]
    now: datetime
    known: frozenset[str] = frozenset()
    fits: dict[str, bool] = field(default_factory=dict)
    stuck: Callable[[Plan, Snapshot, Sequence[Pod]], str] = lambda plan, snapshot, pods: ""

    def pods_of(self, nodes: Iterable[ProvisionedNode]) -> list[Pod]:
        """All pods that would have to move."""
        return [pod for node in nodes for pod in self.pods[node.node_name]]


def try_move(nodes: Sequence[ProvisionedNode], context: MoveContext) -> Move | RefusedTry:
    """The move of the nodes' pods, or the reason why it is not made."""
    pods = context.pods_of(nodes)
    without = without_nodes(context.snapshot, nodes, pods, context.first)
    found = _judged(context.attempt(without), nodes, pods, context)
    if isinstance(found, RefusedTry):
        return found
    plan = context.make(without)
    found = _judged(plan, nodes, pods, context)
    stuck = "" if isinstance(found, RefusedTry) else context.stuck(plan, without, pods)
    return _no_place(stuck) if stuck else found


def _judged(
    tried: Plan, nodes: Sequence[ProvisionedNode], pods: Sequence[Pod], context: MoveContext
) -> Move | RefusedTry:
    """The move, if the plan without the nodes is cheaper and gives every pod a place."""
    plan = context.plan
    homeless = _homeless(pods, plan, tried, context)
    if homeless:
        return _no_place(homeless)
    fresh = [launch for launch in tried.launches if launch.name not in context.known]
    priced = [launch.usd_per_hour for launch in fresh if launch.usd_per_hour is not None]
    kinds = {launch.offering.capacity_type for launch in fresh}
    if len(priced) != len(fresh) or kinds & NOT_FOR_MOVES or any(launch.whole for launch in fresh):
        return _no_place(pods[0].key)
    keys = {pod.key for pod in pods}
    there = {placement.node for placement in tried.placements if placement.pod in keys}
    kept = there & context.idle.keys()
    kept -= _launched_for(nodes, context) if kept else set()  # their price was compared with that of all they replace
    old = sum((context.prices[node.name] for node in nodes), Decimal(0))
    new = sum([*priced, *(context.idle[name] for name in kept)], Decimal(0))
    asked = strictest(context.saving[node.name] for node in nodes)
    here = (expected_rest(node, context.pods[node.node_name], asked.payback, context.now) for node in nodes)
    within = min(*here, *_rests_there(tried, nodes, keys, context), timedelta.max)
    share, cost = _share_and_cost(nodes, pods, asked, prices=context.prices, new=new)
    slack = _slack(old - new, share, cost, within, asked)
    if isinstance(slack, RefusedTry):
        return slack
    names = tuple(sorted(node.name for node in nodes))
    launches = tuple(
        replace(
            launch,
            offerings=_within(launch, slack / len(fresh)),
            reasons=(Reason.of(Code.NODE_REPLACES, replaced=names), *launch.reasons),
            replaces=names,
        )
        for launch in fresh
    )
    return Move(tuple(nodes), launches, old - new, tuple(sorted(there & _replacing(nodes, context).keys())))


def _slack(saved: Decimal, share: Decimal, cost: Decimal, within: timedelta, asked: Saving) -> Decimal | RefusedTry:
    """The part of what the move saves that it need not save, in USD per hour: it saves the `share`, and pays for its
    `cost` in USD `within` the time for which the pods stay."""
    if saved <= 0:
        return RefusedTry(Reason.of(Code.NOT_CHEAPER))
    least, text = max(share, _each_hour(cost, within)), f"{saved:.2f}"
    if saved >= least:
        return saved - least
    if saved < share or within >= asked.payback:
        least = max(share, _each_hour(cost, max(within, asked.payback)))
        reason = Reason.of(Code.NOT_CHEAPER, saved=text, least=f"{least:.2f}")
    else:
        minutes = int(within.total_seconds() // 60)
        reason = Reason.of(Code.NOT_CHEAPER, saved=text, cost=f"{cost:.2f}", minutes=minutes)
    return RefusedTry(reason, None if saved < share else _HOUR * min(float(cost / saved), _YEAR) - within)


def _each_hour(cost: Decimal, within: timedelta) -> Decimal:
    return cost / max(_hours(within), Decimal("0.01"))


def _no_place(pod: str) -> RefusedTry:
    return RefusedTry(Reason.of(Code.NO_OTHER_PLACE, pod=pod))


def _rests_there(
    tried: Plan, nodes: Sequence[ProvisionedNode], keys: Collection[str], context: MoveContext
) -> Iterator[timedelta]:
    """The time for which the other pods of each node that the pods move to are expected to run: it costs nothing only
    while it is there for them. A node that was launched for these stays in any case."""
    names = {node.name for node in nodes}
    there = {placement.node for placement in tried.placements if placement.pod in keys}
    for node in context.snapshot.provisioned:
        others = context.pods.get(node.node_name)
        if others and node.node_name in there and names.isdisjoint(node.replaces):
            yield expected_rest(node, others, timedelta(0), context.now)


def _launched_for(nodes: Sequence[ProvisionedNode], context: MoveContext) -> set[str]:
    """The names of the Nodes that were launched to replace some of these, while all others that they replace, and that
    have pods, may go as well: the price was compared with that of all."""
    names = frozenset(node.name for node in nodes)
    launched = _replacing(nodes, context)
    there = {node.name for node in context.snapshot.provisioned if context.pods.get(node.node_name)}
    others = there.intersection(name for node in launched.values() for name in node.replaces) - names
    stay = others.difference(_may_go(others, context) if others else ())
    return {
        name for name, node in launched.items() if stay.isdisjoint(node.replaces) and _still_pays(node, names, context)
    }


def _replacing(nodes: Sequence[ProvisionedNode], context: MoveContext) -> dict[str, ProvisionedNode]:
    """By name of the Node, those that were launched to replace some of these."""
    names = {node.name for node in nodes}
    return {node.node_name: node for node in context.snapshot.provisioned if names.intersection(node.replaces)}


def _still_pays(new: ProvisionedNode, names: frozenset[str], context: MoveContext) -> bool:
    """True if all nodes that the machine was launched for still cost more than it, and their pods still fit without
    another machine: the devices that it publishes, the pods of these nodes or prices may differ from the plan of the
    launch."""
    olds = [node for node in context.snapshot.provisioned if node.name in new.replaces and node.name in context.prices]
    if sum((context.prices[node.name] for node in olds), Decimal(0)) < context.idle.get(new.node_name, Decimal(0)):
        return False
    if names.issuperset(node.name for node in olds):
        return True
    if new.name not in context.fits:
        pods = context.pods_of(olds)
        tried = context.attempt(without_nodes(context.snapshot, olds, pods, context.first))
        more = {launch.name for launch in tried.launches} - context.known
        context.fits[new.name] = not more and not _homeless(pods, context.plan, tried, context)
    return context.fits[new.name]


def _may_go(names: Collection[str], context: MoveContext) -> Iterator[str]:
    """Those of the ProvisionedNodes whose pods may still be moved."""
    found, own = context.snapshot, OwnNodes(context.snapshot.nodes)
    budgets = by_namespace(found.disruption_budgets)
    for one in found.provisioned:
        if one.name in names and one.name in context.prices:
            node = own.of(one)
            if not (node and mark_of_node(node)) and obstacle(context.pods[one.node_name], budgets) is None:
                yield one.name


def text_of(move: Move) -> Reason:
    """The reason of the nodes' end, for reports."""
    saved = f"{move.saved:.2f}"
    if move.made_for_them and not move.launches:
        return Reason.of(Code.NODE_DISPENSABLE, to=move.made_for_them)
    if not move.launches:
        return Reason.of(Code.NODE_DISPENSABLE, saved=saved)
    types = tuple(sorted(launch.offering.instance_type for launch in move.launches))
    if len(move.nodes) == 1:
        return Reason.of(Code.NODE_REPLACED, saved=saved, by=types)
    return Reason.of(Code.NODE_REPLACED, saved=saved, by=types, together=len(move.nodes))


def strictest(asked: Iterable[Saving]) -> Saving:
    """The strictest of the requirements of several pools."""
    every = tuple(asked)
    return Saving(
        max(one.percent for one in every), min(one.payback for one in every), max(one.restart for one in every)
    )


def by_acting_pools(move: Move, pools: Mapping[str, CapacityPool]) -> bool:
    """True if all pools of the move act."""
    names = {node.pool for node in move.nodes} | {launch.pool for launch in move.launches}
    return all(name in pools and pools[name].acts for name in names)


def _homeless(pods: Sequence[Pod], plan: Plan, tried: Plan, context: MoveContext) -> str:
    """A pod that prevents the move; "" if there is none.

    A pod with a place must keep one. No other pod may get a place that is free only because of the move: pods that wait
    at a limit have precedence, and the next plan places them.
    """
    moved = {pod.key: pod for pod in pods}
    before = {placement.pod for placement in plan.placements}
    placed = {placement.pod: placement for placement in tried.placements}
    for key, pod in moved.items():
        if key not in placed or placed[key].preference > preference_now(pod, context.snapshot.claims):
            return key
        if placed[key].node in context.closed:
            return key
    return min((placed.keys() - moved.keys()) ^ before, default="")


def _share_and_cost(
    nodes: Sequence[ProvisionedNode],
    pods: Iterable[Pod],
    saving: Saving,
    *,
    prices: Mapping[str, Decimal],
    new: Decimal,
) -> tuple[Decimal, Decimal]:
    """The least saving in USD per hour as a share of the nodes' price, and the cost of the move in USD: what is paid
    while pods do not work."""
    lost: dict[str | None, timedelta] = {}
    for pod in pods:
        interval = pod.checkpoint_interval or timedelta(0)
        lost[pod.node_name] = max(lost.get(pod.node_name, timedelta(0)), interval)
    cost = sum(
        (prices[node.name] * _hours(saving.restart + lost.get(node.node_name, timedelta(0))) for node in nodes),
        new * _hours(saving.restart),
    )
    return sum((prices[node.name] for node in nodes), Decimal(0)) * saving.percent / 100, cost


def _hours(span: timedelta) -> Decimal:
    return Decimal(str(span / _HOUR))


def _within(launch: PlannedNode, slack: Decimal) -> tuple[OfferingRef, ...]:
    """The offerings with which the saving is still large enough, if an earlier offering is not available."""
    highest = (launch.usd_per_hour or Decimal(0)) + slack
    return tuple(
        offering
        for offering in launch.offerings
        if offering.usd_per_hour is not None and offering.usd_per_hour <= highest
        if offering.capacity_type not in NOT_FOR_MOVES
    )
