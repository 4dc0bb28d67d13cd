"""A change tried: the plan is made again with it, and counts only if it places the pods and takes no other's place."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from autoscaler.advice.change import Change, ChangeKind, as_assumed, as_created
from autoscaler.advice.cheaper_types import Smaller, never_on_demand, oversized
from autoscaler.advice.models.context import Unfit, unfit_models
from autoscaler.advice.models.memory import TooSmall, selecting
from autoscaler.advice.named_models import of_other_memory
from autoscaler.advice.pool_opening import in_one_layout, pools_of_block, with_nvlink
from autoscaler.advice.situation import Situation
from autoscaler.lifecycle.provisioned_node import counts_against_limits
from autoscaler.lint.pods.cloud_nodes import untolerated, untolerated_architecture
from autoscaler.lint.pods.disk_space import empty_paths
from autoscaler.lint.pods.rdma_cards import cards_unasked, rdma_of
from autoscaler.lint.supply_advice import advised_assumptions, advised_gpu
from autoscaler.model.capacity import CapacityBlock, CapacityPool
from autoscaler.model.plan import Placement, Plan, PlannedNode, Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import Consumer
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.planning.one_cloud import plan_in_one_cloud
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.architecture import unaware
from autoscaler.planning.supply.limits import accelerators_in_use
from autoscaler.planning.supply.unprepared import not_working, unprepared
from autoscaler.planning.unusable_fields import guessed_types
from autoscaler.scheduling.world import with_claim_amounts
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.prediction.runnable import NeedsMore
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType

_SMALL = 24  # pending pods that can be planned again as a whole
_EVERYTHING = 1_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """The result of the plan with the change for the pods: nodes to launch by offering, or existing nodes. `hosts`: the
    number of nodes of a slice that is bought as a whole. `smaller`: machines with fewer of the same accelerators,
    enough for the pods, that are never sold on demand. `needs`: by instance type, what its nodes need before their
    accelerators work, besides the change. `queue`: the queue in which Kueue holds the pods of files, which `requested`
    their machines by a ProvisioningRequest. `models` that the GPUs do not hold, or on which they stop. `rdma`: by
    instance type, its network cards for RDMA, for which pods that use some do not ask (`cards_unasked`). `cloud`: of
    the first launch. `drivers` that a plan without CapacityPools assumes on the nodes. `taints` that the cloud gives
    the nodes and the pods with claims do not tolerate. `useless`: why pods do not work there, with the next step.
    `any_gpu`: that pods name no GPU and get the cheapest. `guessed`: instance types whose price is a guess.
    `architecture`: that an image may lack that of the machine. `paths`: that directories of new nodes are empty.
    `oversized`: a machine with fewer of the accelerators that does for smaller requests. `assumed`: of the machines.
    """

    launches: tuple[tuple[OfferingRef, int], ...]
    usd_per_hour: Decimal | None
    nodes: tuple[str, ...]
    hosts: int = 1
    smaller: tuple[str, ...] = ()
    needs: tuple[tuple[str, NeedsMore], ...] = ()
    queue: str = ""
    requested: bool = False
    models: tuple[Unfit, ...] = ()
    rdma: tuple[str, ...] = ()
    cloud: str = ""
    drivers: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    useless: tuple[str, ...] = ()
    any_gpu: str = ""
    guessed: tuple[str, ...] = ()
    architecture: str = ""
    paths: str = ""
    cards_unasked: bool = False
    oversized: Smaller | None = None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """A change, and what the plan with it does for the pods; `instead`: dearer ones that keep more of what they ask."""

    change: Change
    result: Result
    instead: tuple[Advice, ...] = ()


@dataclasses.dataclass(slots=True)
class Budget:
    """The number of plans that may still be made to find changes."""

    plans: int = 12
    spent: int = dataclasses.field(default=0, init=False)

    def take(self) -> bool:
        """True if one more may be made; it counts as made."""
        if self.spent >= self.plans:
            return False
        self.spent += 1
        return True


@dataclass(frozen=True)
class Replanner:
    """Plans with changes for one situation."""

    asked: Situation
    policy: Policy
    now: datetime

    @property
    def small(self) -> bool:
        """True if the plan can be made again for everybody."""
        return len(self.asked.plan.placements) + len(self.asked.plan.left_out) <= _SMALL

    def tries(self, change: Change) -> bool:
        """True if the change can be tried: what concerns others needs the whole plan."""
        return self.small or not self._concerns_others(change)

    def _concerns_others(self, change: Change) -> bool:
        return change.concerns_others or self.asked.beside_others

    def creates_pool(self, change: Change) -> bool:
        """True if the change has somebody create a CapacityPool that does not say which drivers its nodes run."""
        after = change.edit(self.asked.snapshot)
        return any(pool.name == IMPLICIT.name and not pool.drivers for pool in after.pools)

    def plan(self, change: Change, *, thorough: bool = False, assuming: bool = False) -> Plan:
        """The plan after the change, in which everybody else keeps the place that the plan without it gave.

        `thorough` looks at all offerings, even at those that are dearer; `assuming`, at all drivers that a pool which
        somebody has yet to create could have.
        """
        snapshot = with_nvlink(change.edit(self.asked.snapshot), self.asked)
        snapshot = as_assumed(snapshot) if assuming else replace(snapshot, pools=tuple(map(as_created, snapshot.pools)))
        if not self._concerns_others(change):
            snapshot = _others_settled(self.asked, snapshot)
        seen = _EVERYTHING if thorough else 0
        where = change.where(self.policy.where)
        if len(self.asked.clouds) == 1 and not (where.clouds or self.asked.snapshot.pools):
            where = replace(where, clouds=tuple(self.asked.clouds))
        policy = replace(self.policy, considered=seen, shown_fits=seen, explains=False, where=where)
        return plan_in_one_cloud(snapshot, change.catalog(self.asked.catalog), policy, self.now)[0]

    def after(self, change: Change) -> Replanner | None:
        """Plans with further changes beside this one; None where the plan with it leaves nothing to ask for."""
        snapshot, catalog = change.edit(self.asked.snapshot), change.catalog(self.asked.catalog)
        pods = {pod.key: pod for pod in snapshot.pods}
        where = change.where(self.policy.where)
        plan = self.plan(change, thorough=True)
        found = Situation.of(pods[self.asked.pod.key], snapshot, catalog, plan, where)
        if found is None:
            return None
        left = {entry.pod for entry in (*plan.left_out, *plan.outside)} - found.keys
        others = tuple(pods[one.key] for one in self.asked.pods if one.key in left)
        found = replace(found, pods=(*found.pods, *others))
        return Replanner(found, replace(self.policy, where=where), self.now)

    def tried(self, change: Change) -> Result | None:
        """The result of the change; a price that users have yet to look up counts as none."""
        plan = self.plan(change)
        found = self.result(plan)
        if found is None:
            return None
        snapshot = change.edit(self.asked.snapshot)
        pods = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.key in self.asked.keys))
        taints = self._taken_tolerations(pods, plan)
        reasons = not_working(pods, plan, self.asked.catalog)
        useless = tuple(f"{one.subject.name}: {one.detail['problem']}; {one.detail['next_step']}" for one in reasons)
        unpriced = any(part.kind is ChangeKind.SET_PRICE for part in change.steps)
        price = None if unpriced else found.usd_per_hour
        other = unaware(pods, plan)
        architecture, paths = other.text if other is not None else "", empty_paths(pods, plan)
        large = oversized(plan, pods, self.asked.catalog)
        assumed = advised_assumptions(pods, plan, self.asked.catalog, idle=not large)
        found = replace(found, oversized=large[min(large)] if large else None, assumed=assumed)
        found = replace(found, any_gpu=advised_gpu(pods, plan, self.asked.catalog))
        found = replace(found, usd_per_hour=price, taints=taints, useless=useless)
        return replace(found, architecture=architecture, paths=paths, cards_unasked=any(cards_unasked(pods, plan)))

    def _taken_tolerations(self, after: Snapshot, plan: Plan) -> tuple[Taint, ...]:
        """The taints of a cloud whose toleration pods lose with the request that the change replaces by a claim, unless
        a pool says which taints its nodes have; and those of architectures."""
        claimed = {pod.key for pod in self.asked.pods if pod.claims}
        pods = replace(after, pods=tuple(pod for pod in after.pods if pod.key not in claimed))
        lost = () if self.asked.snapshot.pools else untolerated(pods, plan, self.asked.catalog)
        return (*lost, *untolerated_architecture(after, plan, self.asked.catalog))

    def result(self, plan: Plan) -> Result | None:
        """The places of the pods in the plan; None if it does not place all of them, or displaces another pod."""
        placed = {placement.pod: placement for placement in plan.placements}
        before = {placement.pod for placement in self.asked.plan.placements}
        displaced = before & {entry.pod for entry in plan.left_out}
        if displaced or not placed.keys() >= self.asked.keys:
            return None
        return _result(plan, [placed[key] for key in sorted(self.asked.keys)], self.asked)


def refined(advice: Advice, trials: Replanner, budget: Budget) -> Advice:
    """The cheapest of the same change with GPUs of other memory, where there is a choice, and one in which the pods
    select GPUs that hold their models, where those that they would get surely do not."""
    found = [advice]
    for change in of_other_memory(advice.change, trials.asked):
        if budget.take() and (result := trials.tried(change)) is not None:
            found.append(Advice(change, result))
    best = min(found, key=_preference)
    best = best if best is advice else replace(best, instead=(advice,))
    best = _in_one_layout(best, trials, budget)
    small = _surely_small(best.result)
    best = best if small is None else _holding(best, small, trials, budget) or best
    if (large := best.result.oversized) is not None:
        after = trials.tried(Change.together(best.change, large.change(trials.asked))) if budget.take() else None
        fits = after is not None and large.machine.name in {ref.instance_type for ref, _ in after.launches}
        best = best if fits else replace(best, result=replace(best.result, oversized=None))
    return _with_pool_of_block(best, trials)


def _with_pool_of_block(advice: Advice, trials: Replanner) -> Advice:
    """The advice with the pool that its block needs, in which the pods get the same machines; as it is if it adds no
    block, or there is a pool."""
    for change in pools_of_block(advice.change, advice.result.drivers, trials.asked):
        found = trials.tried(change)
        if found is not None and _machines(found) == _machines(advice.result):
            return replace(advice, change=change, result=found)
    return advice


def _machines(result: Result) -> list[tuple[str, CapacityType, int]]:
    return sorted((ref.instance_type, ref.capacity_type, count) for ref, count in result.launches)


def _in_one_layout(advice: Advice, trials: Replanner, budget: Budget) -> Advice:
    """The advice with the drivers that divide GPUs into parts of the one kind that is claimed, where that costs no
    more: a pod alone does with any layout, and a pool with that one has room for those of the next workload."""
    change, result = in_one_layout(advice.change, trials.asked), advice.result
    if change is None or not budget.take() or (found := trials.tried(change)) is None:
        return advice
    same = (found.launches, found.usd_per_hour) == (result.launches, result.usd_per_hour)
    return replace(advice, result=replace(result, drivers=found.drivers)) if same else advice


def _preference(advice: Advice) -> tuple[bool, bool, Decimal]:
    price = advice.result.usd_per_hour
    return (_surely_small(advice.result) is not None, price is None, price or Decimal(0))


def _surely_small(result: Result) -> TooSmall | None:
    return next((found for found in result.models if isinstance(found, TooSmall) and found.surely), None)


def _holding(advice: Advice, small: TooSmall, trials: Replanner, budget: Budget) -> Advice | None:
    """The advice with the cheapest GPUs that hold the models; None where the pods get no place on them."""
    keys: Sequence[str] = [key for key, _ in small.accelerators]
    while keys and budget.take():
        change = Change.together(selecting(small, keys), advice.change)
        result = trials.tried(change)
        if result is None or _surely_small(result) is not None:
            return None
        cards = (trials.asked.catalog.types[ref.instance_type].accelerator for ref, _ in result.launches)
        chosen = sorted({card.key for card in cards if card is not None} & {*keys})
        if chosen == sorted(keys):
            return Advice(change, result)
        keys = chosen
    return None


def _result(plan: Plan, placements: list[Placement], asked: Situation) -> Result:
    names = dict.fromkeys(p.node for p in placements if p.target is Target.NEW)
    sliced = {node.name: found for node in plan.launches for found in node.reasons if found.code is Code.WHOLE_SLICE}
    # A host that nothing goes to is paid for as well.
    launches = [node for node in plan.launches if node.name in names or (node.name in sliced and not node.pods)]
    counts = Counter(node.offering for node in launches)
    prices = [node.usd_per_hour for node in launches]
    total = None if None in prices else sum((price for price in prices if price is not None), Decimal(0))
    there = dict.fromkeys(p.node for p in placements if p.target is not Target.NEW)
    hosts = max((int(str(found.detail["hosts"])) for name, found in sliced.items() if name in names), default=1)
    used = sum(len(allocation.devices) for p in placements for allocation in p.allocations.values())
    smaller = tuple(never_on_demand(launches[0], used, asked.catalog)) if len(launches) == 1 and used else ()
    needs = tuple(unprepared(launches, asked.snapshot.pools, asked.catalog).items())
    queue = asked.pod.annotations.get(labels.KUEUE_QUEUE, "")
    requested = any(name.startswith(labels.PROVREQ_PREFIX) for name in asked.pod.annotations)
    models = tuple(unfit_models(plan, asked.keys, asked.snapshot, asked.catalog))
    types = dict.fromkeys(ref.instance_type for ref in counts)
    rdma = tuple(rdma_of(asked.catalog.types[name], asked.catalog) for name in types)
    cloud = next((asked.catalog.types[name].cloud for name in types), "")
    assumed = {node.drivers for node in launches if node.pool == IMPLICIT.name}
    guessed = guessed_types(launches, asked.catalog)
    return Result(
        tuple(counts.items()),
        total,
        tuple(there),
        hosts,
        smaller,
        needs,
        queue,
        requested,
        models,
        rdma,
        cloud,
        guessed=guessed,
        drivers=min(assumed) if len(assumed) == 1 else (),
    )


def _others_settled(asked: Situation, snapshot: Snapshot) -> Snapshot:
    """The snapshot in which pods that have a place on a node that exists are there, and those that get a new node are
    gone, with what their nodes take of limits and blocks.

    Pods whose devices belong to no claim of the snapshot (extended resources) stay pending: bound, they would hold
    none.
    """
    plan = asked.plan
    settled = {
        p.pod: p
        for p in plan.placements
        if p.target is Target.EXISTING and p.allocations.keys() <= snapshot.claims.keys()
    }
    away = {p.pod for p in plan.placements if p.target is Target.NEW}
    # A gang does not start without those of its pods that any node runs.
    gangs = {pod.gang for pod in asked.pods if pod.gang}
    beside = {pod.key for pod in snapshot.pods if pod.gang in gangs}
    away |= {entry.pod for entry in (*plan.left_out, *plan.outside)} - asked.keys - beside
    pods = tuple(_bound(pod, settled) for pod in snapshot.pods if pod.key not in away)
    claims = dict(snapshot.claims.items())
    by_key = {pod.key: pod for pod in snapshot.pods}
    for placement in settled.values():
        for key, allocation in placement.allocations.items():
            if key in claims:
                user = by_key[placement.pod]
                claims[key] = replace(
                    claims[key], allocation=allocation, reserved_for=(Consumer("pods", user.name, user.uid),)
                )
    # What is launched without pods, such as the rest of a CapacityBlock, takes nothing from those that are asked about.
    launches = tuple(node for node in plan.launches if node.pods or node.whole)
    settled_all = replace(
        snapshot,
        pods=pods,
        claims=FrozenMap(claims),
        pools=tuple(_less(pool, launches, asked.catalog) for pool in snapshot.pools),
        blocks=tuple(_used(block, launches) for block in snapshot.blocks),
    )
    return with_claim_amounts(settled_all, settled.keys())


def _bound(pod: Pod, settled: Mapping[str, Placement]) -> Pod:
    return replace(pod, node_name=settled[pod.key].node) if pod.key in settled else pod


def _less(pool: CapacityPool, launches: tuple[PlannedNode, ...], catalog: Catalog) -> CapacityPool:
    own = [node for node in launches if node.pool == pool.name]
    counted = sum((_accelerators(node, catalog) for node in own), Decimal(0))
    accelerators, nodes, usd = pool.limits.accelerators, pool.limits.nodes, pool.limits.usd_per_hour
    limits = replace(
        pool.limits,
        accelerators=None
        if accelerators is None
        else max(0, accelerators - int(counted.to_integral_value("ROUND_UP"))),
        nodes=None if nodes is None else max(0, nodes - len(own)),
        usd_per_hour=None if usd is None else max(Decimal(0), usd - _price(own)),
    )
    return replace(pool, limits=limits)


def _price(launches: list[PlannedNode]) -> Decimal:
    return sum((node.usd_per_hour or Decimal(0) for node in launches), Decimal(0))


def _accelerators(node: PlannedNode, catalog: Catalog) -> Decimal:
    count = catalog.types[node.offering.instance_type].accelerator_count
    return Decimal(count.numerator) / Decimal(count.denominator)


def _used(block: CapacityBlock, launches: tuple[PlannedNode, ...]) -> CapacityBlock:
    taken = sum(1 for node in launches if node.offering.block == block.name)
    available = None if block.available is None else max(0, block.available - taken)
    return replace(block, count=max(0, block.count - taken), available=available)


def in_use(asked: Situation, pool: CapacityPool, resource: str, launches: tuple[PlannedNode, ...]) -> Decimal:
    """The part of a pool's limit that its nodes and these launches use."""
    own = [node for node in launches if node.pool == pool.name]
    alive = [node for node in asked.snapshot.provisioned if node.pool == pool.name and counts_against_limits(node)]
    match resource:
        case "accelerators":
            there = Decimal(accelerators_in_use(asked.snapshot, asked.catalog).get(pool.name, 0))
            return there + sum((_accelerators(node, asked.catalog) for node in own), Decimal(0))
        case "nodes":
            return Decimal(len(alive) + len(own))
        case _:
            paid = sum((node.offering.usd_per_hour or Decimal(0) for node in alive), Decimal(0))
            return paid + _price(own)
