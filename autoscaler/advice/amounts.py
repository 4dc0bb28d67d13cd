"""Amounts that an instance type lacks: lower requests, or a larger root disk where it is all that is lacking, since
nobody gives up an accelerator for a disk.

How large root disks are is a fact that people decide and the catalog assumes, so the change names both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from math import ceil
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, on_pods, unchanged
from autoscaler.advice.situation import Situation
from autoscaler.model.plan import Considered, Plan
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import SHORT_AMOUNTS, Fact, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.one_cloud import cheaper, cost_of
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.resources import pod_requests
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.device_plugins import is_plugin_resource
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import facts_of
from instance_catalog.types.instance_type import InstanceType
from instance_catalog.types.node_allocatable import CPU, EPHEMERAL_STORAGE, MEMORY, assumes_root_disk, node_allocatable

_STEP: Final = 10 * 2**30  # root disks are asked for in tens of GiB
_LARGEST: Final = 16 * 2**40  # of a volume
_MOST_PODS: Final = 100  # of a plan that is made again only to compare
_DEAREST: Final = Decimal("Infinity")
_LOWERED: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
_SMALL_CUT: Final = 0.05  # of a request: models of what nodes reserve are no better
_ESTIMATED: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})  # unless they were measured on a node
_MEBI: Final = 2**20
_GIBI: Final = 2**30


def larger_disks(entries: Collection[Considered], catalog: Catalog) -> Iterator[Change]:
    """For the cheapest of these offerings that lack nothing but ephemeral storage."""
    short = [(entry, found[EPHEMERAL_STORAGE]) for entry in entries if (found := _short_of_disk(entry)) is not None]
    for entry, (free, wanted) in sorted(short, key=_cheapest_first):
        change = _enlarged(catalog.types[entry.offering.instance_type], wanted - free)
        if change is not None:
            yield change
            return


@dataclass(frozen=True, slots=True)
class Cheaper:
    """The cost and launches of the plan with the root disks that the changes of `types` set."""

    usd_per_hour: Decimal
    launches: tuple[tuple[str, int], ...]  # instance types with the number of nodes
    types: tuple[Change, ...]


def cheaper_with_larger_disks(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime
) -> Cheaper | None:
    """The plan with larger root disks, where types that cost less were left out for those that the catalog assumes;
    None where that changes nothing, or no pod asks for much."""
    if len(plan.placements) > _MOST_PODS:
        return None
    changes = tuple(_short_and_cheaper(plan, snapshot, catalog))
    if not changes or cost_of(plan) is None:
        return None
    found = cheaper(plan, snapshot, Change.together(*changes).catalog(catalog), policy, now)
    if found is None:
        return None
    cost, counts = found
    used = tuple(change for change in changes if change.detail["instance_type"] in counts)
    return Cheaper(cost, tuple(sorted(counts.items())), used) if used else None


def _short_and_cheaper(plan: Plan, snapshot: Snapshot, catalog: Catalog) -> Iterator[Change]:
    """A larger disk for each type whose assumed one is too small for a pod that gets a dearer machine."""
    price_of = {pod: node.usd_per_hour or Decimal(0) for node in plan.launches for pod in node.pods}
    pods = (pod for pod in snapshot.pods if pod.key in price_of)
    asking = [(pod_requests(pod).get(EPHEMERAL_STORAGE, 0), price_of[pod.key]) for pod in pods]
    for instance_type in catalog if any(wanted for wanted, _ in asking) else ():
        price = instance_type.price.usd_per_hour if instance_type.price else None
        if price is None or not assumes_root_disk(instance_type):
            continue
        free = node_allocatable(instance_type)[EPHEMERAL_STORAGE].int64_value()
        most = max((wanted for wanted, paid in asking if paid > price), default=0)
        change = _enlarged(instance_type, most - free) if most > free else None
        if change is not None:
            yield change


def _short_of_disk(entry: Considered) -> Mapping[str, tuple[int, int]] | None:
    found = shortages(entry.reasons)
    return found if found is not None and found.keys() == {EPHEMERAL_STORAGE} else None


def _cheapest_first(short: tuple[Considered, tuple[int, int]]) -> tuple[Decimal, str]:
    price = short[0].offering.usd_per_hour
    return (_DEAREST if price is None else price), short[0].offering.instance_type


def _enlarged(instance_type: InstanceType, more: int) -> Change | None:
    """None where its ephemeral storage was measured, or is on local disks, or no disk is large enough."""
    now = node_allocatable(instance_type)[EPHEMERAL_STORAGE].int64_value()
    allocatable = ceil((now + more) / 2**30) * 2**30
    disk = _disk_for(instance_type, allocatable)
    if disk is None or EPHEMERAL_STORAGE in instance_type.allocatable:
        return None
    amount = Quantity.parse(f"{allocatable // 2**30}Gi")
    change = Change.of(
        ChangeKind.ENLARGE_DISK,
        "",
        unchanged,
        instance_type=instance_type.name,
        disk=f"{disk // 2**30}Gi",
        setting=facts_of(instance_type.cloud).root_disk,
        allocatable=str(amount),
    )
    return replace(change, catalog=partial(_knowing, name=instance_type.name, amount=amount))


def _disk_for(instance_type: InstanceType, allocatable: int) -> int | None:
    """The smallest disk of whole tens of GiB that leaves so much to pods."""
    low, high = 0, _LARGEST // _STEP
    if _left_by(instance_type, high) < allocatable:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _left_by(instance_type, middle) >= allocatable else (middle + 1, high)
    return low * _STEP


def _left_by(instance_type: InstanceType, steps: int) -> int:
    disk = Quantity.of(steps * _STEP, "BinarySI")
    return node_allocatable(instance_type, root_disk=disk)[EPHEMERAL_STORAGE].int64_value()


def _knowing(catalog: Catalog, name: str, amount: Quantity) -> Catalog:
    """The catalog as `foreslice catalog set` would leave it."""
    known = catalog.types[name]
    corrected = replace(known, allocatable=known.allocatable.with_items({EPHEMERAL_STORAGE: amount}))
    digest = f"{catalog.digest}/{name}/{amount}"
    return replace(catalog, types=catalog.types.with_items({name: corrected}), digest=digest)


def short_resources(asked: Situation) -> tuple[str, ...]:
    """The resources of which some instance type has some but too little, and that people request less of."""
    short = (r.detail for r in asked.reasons if r.code in SHORT_AMOUNTS)
    found = {str(detail.get("resource")) for detail in short if detail.get("free") != 0}
    return tuple(sorted(filter(_lowered, found)))


def _lowered(resource: str) -> bool:
    return resource in _LOWERED or resource.startswith(_HUGE_PAGES) or is_plugin_resource(resource)


def without_requests(asked: Situation, resources: tuple[str, ...]) -> Change:
    """For a first look only: does the pod fit anywhere when it asks for nothing of these resources, or for one device?
    Of a device plugin that nobody asks for none is assumed."""
    least = {resource: Quantity.of(1 if is_plugin_resource(resource) else 0) for resource in resources}

    def edit(pod: Pod) -> Pod:
        kept = tuple(_asking(c, least) for c in pod.containers)
        before = tuple(_asking(c, least) for c in pod.init_containers)  # sidecars among them, which clouds add
        return replace(pod, containers=kept, init_containers=before, pod_requests=None)

    return Change.of(ChangeKind.LOWER_REQUEST, asked.subject, on_pods(asked.keys, edit))


def as_requested(asked: Situation) -> Change:
    """No change, to see all offerings that lack something."""
    return Change.of(ChangeKind.LOWER_REQUEST, asked.subject, unchanged)


def shortages(reasons: Sequence[Reason]) -> Mapping[str, tuple[int, int]] | None:
    """(free, wanted) of each resource that an offering has too little of; None if it lacks more than that."""
    found: dict[str, tuple[int, int]] = {}
    for reason in reasons:
        free, wanted = reason.detail.get("free"), reason.detail.get("wanted")
        if reason.code not in SHORT_AMOUNTS or not isinstance(free, int) or not isinstance(wanted, int):
            return None
        if free <= 0 or not _lowered(str(reason.detail.get("resource"))):
            return None
        found[str(reason.detail["resource"])] = (free, wanted)
    return found or None


def depth_of_cut(shortages: Mapping[str, tuple[int, int]]) -> tuple[float, ...]:
    """The deepest cut first: what it leaves of the request decides."""
    return tuple(sorted((1 - free / wanted for free, wanted in shortages.values()), reverse=True))


def is_small_cut(change: Change) -> bool:
    """True if it lowers requests by so little that nobody wants another machine instead."""
    return change.kind is ChangeKind.LOWER_REQUEST and change.detail.get("small") is True


@dataclass(frozen=True, slots=True)
class Lowered:
    """Smaller amounts by container and resource, and the same in words."""

    amounts: Mapping[str, Mapping[str, Quantity]]
    texts: tuple[str, ...]

    def edit(self, pod: Pod) -> Pod:
        """The pod, or one like it, with these requests."""
        return replace(pod, containers=tuple(_asking(c, self.amounts.get(c.name, {})) for c in pod.containers))


def lowered(pod: Pod, short: Mapping[str, tuple[int, int]]) -> Lowered | None:
    """For each resource, the container that asks for most asks for so much less that the pod asks for what is free.

    None where that would leave nothing, or where the containers do not decide what the pod requests.
    """
    amounts: dict[str, dict[str, Quantity]] = {}
    texts: list[str] = []
    for resource, (free, wanted) in short.items():
        asking = [c for c in pod.containers if resource in c.requests]
        if not asking or pod.pod_requests is not None:
            return None
        largest = max(asking, key=lambda c: c.requests[resource].value)
        before = _units(resource, largest.requests[resource])
        after = _rounded(resource, before - (wanted - free))
        if not 0 < after < before:
            return None
        amount = _quantity(resource, after)
        amounts.setdefault(largest.name, {})[resource] = amount
        texts.append(f"{resource} {largest.requests[resource]} → {amount} (container {largest.name})")
    return Lowered(amounts, tuple(texts))


def lower_requests(asked: Situation, short: Mapping[str, tuple[int, int]], machine: InstanceType) -> Change | None:
    """The pods with what the machine has free; None as of `lowered`."""
    found = lowered(asked.pod, short)
    if found is None:
        return None
    facts: dict[str, Fact] = {"requests": found.texts, "small": depth_of_cut(short)[0] <= _SMALL_CUT}
    estimated = sorted(short.keys() & _ESTIMATED - machine.allocatable.keys())
    if facts["small"] and estimated:
        facts |= {"instance_type": machine.name, "estimated": estimated[0]}
    return Change.of(ChangeKind.LOWER_REQUEST, asked.subject, on_pods(asked.keys, found.edit), **facts)


def _asking(container: Container, amounts: Mapping[str, Quantity]) -> Container:
    given = {key: value for key, value in amounts.items() if key in container.requests}
    return replace(container, requests=container.requests.with_items(given)) if given else container


def _units(resource: str, amount: Quantity) -> int:
    """Thousandths of a core, or bytes, as the scheduler counts."""
    value = amount.value * 1000 if resource == "cpu" else amount.value
    return -int(-value // 1)


def _rounded(resource: str, units: int) -> int:
    """Down to what people write: tenths of a core, whole cores from ten on; Mi, whole Gi from ten on; whole devices."""
    if is_plugin_resource(resource):
        return units
    fine, coarse = (100, 1000) if resource == "cpu" else (_MEBI, _GIBI)
    step = coarse if units >= 10 * coarse else fine
    return units // step * step


def _quantity(resource: str, units: int) -> Quantity:
    if resource == "cpu":
        return Quantity.parse(str(units // 1000) if units % 1000 == 0 else f"{units}m")
    if is_plugin_resource(resource):
        return Quantity.of(units)
    return Quantity.parse(f"{units // _GIBI}Gi" if units % _GIBI == 0 else f"{units // _MEBI}Mi")
