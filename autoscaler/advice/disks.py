"""A larger root disk, where it is all that an instance type lacks: nobody gives up an accelerator for a disk.

How large root disks are is a fact that people decide and the catalog assumes, so the change names both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from math import ceil
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, unchanged
from autoscaler.advice.pod_changes import shortages
from autoscaler.model.plan import Considered, Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.one_cloud import cheaper, cost_of
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.resources import pod_requests
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import facts_of
from instance_catalog.types.instance_type import InstanceType
from instance_catalog.types.node_allocatable import EPHEMERAL_STORAGE, assumes_root_disk, node_allocatable

_STEP: Final = 10 * 2**30  # root disks are asked for in tens of GiB
_LARGEST: Final = 16 * 2**40  # of a volume
_MOST_PODS: Final = 100  # of a plan that is made again only to compare
_DEAREST: Final = Decimal("Infinity")


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
