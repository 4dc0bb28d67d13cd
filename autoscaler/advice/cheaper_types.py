"""Machines that cost less, and that a plan leaves out: sold only in ways it has to be asked for, such as Spot, without
memory that the catalog guesses, or with less cpu and memory than a pod requests beside few of their accelerators.

How much memory a hypervisor and a kernel keep is a guess of some clouds, on the safe side. Nothing is bought on it; the
plan says which machine to measure. Nor does anybody but its author know what a program needs that requests one of eight
GPUs and a sixth of the cpu of their machine: a plan takes requests as they are, and says what less would cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Final

from autoscaler.advice.amounts import Lowered, depth_of_cut, lowered
from autoscaler.advice.change import Change, ChangeKind, on_pods
from autoscaler.advice.situation import Situation
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.one_cloud import cheaper, cost_of
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.resources import pod_requests
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, InstanceType
from instance_catalog.types.node_allocatable import CPU, MEMORY, node_allocatable

_MOST_PODS: Final = 100  # a plan for more takes seconds, and these are made beside it
_ALLOWED: Final = (CapacityType.SPOT, CapacityType.ON_DEMAND)
_MEBI: Final = 2**20
_GUESSED: Final = "memoryOverhead"
_WORTH: Final = 2  # times the price
_DEEPEST: Final = 2 / 3  # of a request: who asks for more than three times as much means it


@dataclass(frozen=True, slots=True)
class Measured:
    """A type that fits if `needed` of its memory are allocatable, instead of what is `assumed`."""

    instance_type: str
    needed: Quantity
    assumed: Quantity


@dataclass(frozen=True, slots=True)
class IfMeasured:
    """The cost and launches of the plan if nodes of the types have the memory that the pods need."""

    usd_per_hour: Decimal
    launches: tuple[tuple[str, int], ...]  # instance types with the number of nodes
    types: tuple[Measured, ...]


def cheaper_if_measured(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime
) -> IfMeasured | None:
    """The plan with the memory that types would have if a cloud kept none, where types that cost less lack no more
    than that; None where that changes nothing."""
    if cost_of(plan) is None or len(plan.placements) > _MOST_PODS:
        return None
    short = {found.instance_type: found for found in _short(plan, snapshot, catalog, policy)}
    if not short:
        return None
    found = cheaper(plan, snapshot, _corrected(catalog, short), policy, now)
    if found is None:
        return None
    cost, counts = found
    used = tuple(one for name, one in short.items() if name in counts)
    return IfMeasured(cost, tuple(sorted(counts.items())), used) if used else None


def _short(plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy) -> Iterator[Measured]:
    """Each type that lacks no more than the guess for a pod that gets a dearer machine."""
    price_of = {pod: node.usd_per_hour or Decimal(0) for node in plan.launches for pod in node.pods}
    pods = (pod for pod in snapshot.pods if pod.key in price_of)
    asking = [(pod_requests(pod).get(MEMORY, 0), price_of[pod.key]) for pod in pods]
    for known in catalog if any(wanted for wanted, _ in asking) else ():
        price = known.price.usd_per_hour if known.price else None
        elsewhere = policy.where.clouds and known.cloud not in policy.where.clouds
        if price is None or elsewhere or not _guessed(known):
            continue
        assumed = node_allocatable(known)[MEMORY]
        bare = replace(known.reservation, memory_overhead=Fraction(0))
        most = node_allocatable(replace(known, reservation=bare))[MEMORY].int64_value()
        fitting = (wanted for wanted, paid in asking if paid > price and assumed.int64_value() < wanted <= most)
        if needed := max(fitting, default=0):
            yield Measured(known.name, Quantity.parse(f"{-(-needed // _MEBI)}Mi"), assumed)


def _guessed(known: InstanceType) -> bool:
    fact = known.reservation.provenance.get(_GUESSED)
    return MEMORY not in known.allocatable and fact is not None and fact.guess


def _corrected(catalog: Catalog, short: dict[str, Measured]) -> Catalog:
    """The catalog as `foreslice catalog set` would leave it."""
    corrected = {}
    for name, found in short.items():
        known = catalog.types[name]
        corrected[name] = replace(known, allocatable=known.allocatable.with_items({MEMORY: found.needed}))
    digest = f"{catalog.digest}/{'/'.join(f'{name}={found.needed}' for name, found in sorted(short.items()))}"
    return replace(catalog, types=catalog.types.with_items(corrected), digest=digest)


@dataclass(frozen=True, slots=True)
class SoldOtherwise:
    """The cost and launches of the plan if `allowed` are requested; `types` are sold in no other way."""

    types: tuple[str, ...]
    allowed: tuple[CapacityType, ...]
    usd_per_hour: Decimal
    launches: tuple[tuple[str, int], ...]  # instance types with the number of nodes


def cheaper_if_asked_for(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime
) -> SoldOtherwise | None:
    """The plan with Spot, where nobody said how to buy and smaller machines with the same accelerators are never sold
    on demand; None where that changes nothing. What is cheaper only for being Spot is no news."""
    before = cost_of(plan)
    if snapshot.pools or policy.where.capacity_types or before is None or len(plan.placements) > _MOST_PODS:
        return None
    if not _smaller(plan, catalog):
        return None
    asked = replace(policy, where=replace(policy.where, capacity_types=_ALLOWED))
    found = cheaper(plan, snapshot, catalog, asked, now)
    if found is None:
        return None
    cost, counts = found
    types = tuple(sorted(name for name in counts if not catalog.types[name].sold_on_demand))
    return SoldOtherwise(types, _ALLOWED, cost, tuple(sorted(counts.items()))) if types else None


def _smaller(plan: Plan, catalog: Catalog) -> bool:
    """True if a launched machine has more of its accelerators than one that is never sold on demand."""
    most = Counter[tuple[str, str]]()
    for one in (catalog.types[node.offering.instance_type] for node in plan.launches):
        if one.accelerator is not None:
            key = (one.cloud, one.accelerator.key)
            most[key] = max(most[key], one.device_count)
    rare = (one for one in catalog if one.accelerator is not None and not one.sold_on_demand)
    return any(one.device_count < most[one.cloud, one.accelerator.key] for one in rare if one.accelerator)


@dataclass(frozen=True, slots=True)
class Smaller:
    """A machine with enough of the same accelerators for a pod that uses `used` of those of `launched`; and the
    requests with which the pod fits there."""

    machine: InstanceType
    launched: InstanceType
    used: int
    requests: Lowered

    def change(self, asked: Situation) -> Change:
        """The smaller requests, to be tried."""
        return Change.of(ChangeKind.LOWER_REQUEST, asked.subject, on_pods(asked.keys, self.requests.edit))


@dataclass(frozen=True, slots=True)
class Less:
    """The cost and launches of the plan if the pods request less: the first, how many there are, and its `smaller`
    machine."""

    pod: str
    pods: int
    smaller: Smaller
    usd_per_hour: Decimal
    launches: tuple[tuple[str, int], ...]  # instance types with the number of nodes


def cheaper_with_less(plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime) -> Less | None:
    """The plan in which pods alone on a machine with too many accelerators request less; None where it saves little."""
    before = cost_of(plan)
    if before is None or len(plan.placements) > _MOST_PODS:
        return None
    found = oversized(plan, snapshot, catalog)
    if not found:
        return None
    pods = tuple(found[pod.key].requests.edit(pod) if pod.key in found else pod for pod in snapshot.pods)
    again = cheaper(plan, replace(snapshot, pods=pods), catalog, policy, now)
    if again is None or again[0] * _WORTH > before:
        return None
    first = min(found)
    return Less(first, len(found), found[first], again[0], tuple(sorted(again[1].items())))


def oversized(plan: Plan, snapshot: Snapshot, catalog: Catalog) -> dict[str, Smaller]:
    """The pods, by key, that are alone on such a machine."""
    pods = {pod.key: pod for pod in snapshot.pods}
    used = {p.pod: sum(len(found.devices) for found in p.allocations.values()) for p in plan.placements}
    alone = {node.pods[0]: node for node in plan.launches if len(node.pods) == 1}
    found = {
        key: _smaller_machine(node, pods[key], used.get(key, 0), catalog) for key, node in alone.items() if key in pods
    }
    return {key: smaller for key, smaller in found.items() if smaller is not None}


def _smaller_machine(node: PlannedNode, pod: Pod, used: int, catalog: Catalog) -> Smaller | None:
    """The cheapest machine of the cloud that lacks nothing but cpu and memory for the pod."""
    launched, paid = catalog.types.get(node.offering.instance_type), node.usd_per_hour
    on_demand = node.offering.capacity_type is CapacityType.ON_DEMAND
    if launched is None or launched.accelerator is None or not used or not paid or not on_demand:
        return None
    for machine, price in sorted(_alike(launched, used, catalog), key=lambda found: (found[1], found[0].name)):
        short = _lacking(pod, machine)
        if price * _WORTH > paid or not short or depth_of_cut(short)[0] > _DEEPEST:
            continue
        if (requests := lowered(pod, short)) is not None:
            return Smaller(machine, launched, used, requests)
    return None


def _alike(launched: InstanceType, used: int, catalog: Catalog) -> Iterator[tuple[InstanceType, Decimal]]:
    """The machines with fewer of the same accelerators, but as many as are used, and their prices."""
    for one in catalog:
        same = (one.cloud, one.accelerator, one.share) == (launched.cloud, launched.accelerator, launched.share)
        if same and used <= one.device_count < launched.device_count and one.sold_on_demand and one.price is not None:
            yield one, one.price.usd_per_hour


def _lacking(pod: Pod, machine: InstanceType) -> Mapping[str, tuple[int, int]]:
    """(free, wanted) of what the machine has too little of."""
    wanted, there = pod_requests(pod), node_allocatable(machine)
    free = {CPU: there[CPU].milli(), MEMORY: there[MEMORY].int64_value()}
    return {name: (amount, wanted[name]) for name, amount in free.items() if wanted.get(name, 0) > amount}


def never_on_demand(node: PlannedNode, used: int, catalog: Catalog) -> Iterator[str]:
    """Machines of the node's cloud with its accelerators, fewer of them but as many as are used, that nobody can buy on
    demand."""
    launched = catalog.types[node.offering.instance_type]
    if node.offering.capacity_type is CapacityType.ON_DEMAND:
        for one in catalog:
            same = (one.cloud, one.accelerator) == (launched.cloud, launched.accelerator)
            if same and used <= one.device_count < launched.device_count and not one.sold_on_demand:
                yield one.name
