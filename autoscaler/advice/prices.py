"""Facts that a user adds to a plan: the price of a type without one, or the CapacityBlock for a type that is sold only
for a period, such as a4-highgpu-8g.

They come before other changes: a missing number, or a block that is bought already, is no reason to give up an
accelerator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, unchanged
from autoscaler.advice.situation import Situation
from autoscaler.model.capacity import CapacityBlock, CapacityPool
from autoscaler.model.plan import Considered, ConsideredOutcome, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.one_cloud import cheaper
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import NVIDIA_GPU_CLIQUE, REGION, ZONE
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import facts_of
from instance_catalog.types.instance_type import CapacityType, InstanceType, Price

# Only that there is one matters: where something else fits at a known price, nothing is asked.
_STAND_IN: Final = Price(Decimal(1), "", "", guess=True)
_NAME: Final = "bought"
_MOST_PODS: Final = 100  # a plan for more takes seconds, and this one is made beside it
_BOUGHT: Final = frozenset({CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED})
# Longer than any pod says that it runs: how long people buy is theirs to decide.
_BEGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
_END: Final = datetime(2200, 1, 1, tzinfo=UTC)


def prices(asked: Situation) -> Iterator[Change]:
    """For the smallest type that fits: its list price, or its price in the region that the pod names.

    Of a pool or a command line with regions, the reason names the command.
    """
    yield from _prices(asked, regional=not (asked.where.regions or any(map(_names_places, asked.pools))))


def unpriced(plan: Plan, kinds: Iterable[CapacityType], catalog: Catalog) -> Iterator[tuple[str, Change]]:
    """The clouds of which the catalog has no price of one of the kinds, if the plan buys only others: each with the
    missing price of a type that it buys, or of another one that fits."""
    bought = {node.offering.capacity_type for node in plan.launches}
    types = {node.offering.instance_type for node in plan.launches}
    considered = [entry for demand in plan.demands for entry in demand.considered]
    lacking = [entry.offering for entry in considered if entry.outcome.fits and _lacks_price(entry)]
    lacking.sort(key=lambda offering: (offering.instance_type not in types, offering.instance_type, offering.region))
    for kind in kinds if bought else ():
        found = next((offering for offering in lacking if offering.capacity_type is kind), None)
        if found is not None and kind not in bought:
            known = catalog.types[found.instance_type]
            if not _has_price(catalog, known.cloud, found.region, kind):
                yield known.cloud, costing(known, found.region, kind)


@dataclass(frozen=True, slots=True)
class ElsewherePriced:
    """The cost and launches of the plan if `types`, which have no price in the region, cost there what they cost in the
    region of their list price."""

    cloud: str
    region: str
    types: tuple[str, ...]
    regions: tuple[str, ...]  # of the list prices
    usd_per_hour: Decimal
    launches: tuple[tuple[str, int], ...]  # instance types with the number of nodes


def cheaper_at_list_prices(
    plan: Plan, snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime
) -> ElsewherePriced | None:
    """The plan with list prices of other regions where its own has none; None where that is not cheaper, since then no
    price that is missing matters."""
    regions = {node.offering.region for node in plan.launches} - {""}
    if len(regions) != 1 or len(plan.placements) > _MOST_PODS:
        return None
    (region,) = regions
    kinds = frozenset(node.offering.capacity_type for node in plan.launches)
    clouds = {catalog.types[node.offering.instance_type].cloud for node in plan.launches}
    stand_ins = {one.name: listed for one in catalog if one.cloud in clouds and (listed := _listed(one, region, kinds))}
    found = cheaper(plan, snapshot, _at_list_prices(catalog, region, stand_ins), policy, now) if stand_ins else None
    if found is None:
        return None
    cost, counts = found
    types = tuple(sorted(counts.keys() & stand_ins.keys()))
    listed_in = tuple(sorted({price.region for name in types for price in stand_ins[name].values()}))
    return ElsewherePriced(min(clouds), region, types, listed_in, cost, tuple(sorted(counts.items())))


def _listed(known: InstanceType, region: str, kinds: Iterable[CapacityType]) -> FrozenMap[CapacityType, Price]:
    """Its list prices of the kinds of which it has no price in the region, nor in a zone there."""
    there = {kind for found in known.zone_prices.values() for kind, price in found.items() if price.region == region}
    wanted = [kind for kind in sorted(kinds) if kind not in there and kind in known.prices]
    return FrozenMap({kind: known.prices[kind] for kind in wanted if known.prices[kind].region != region})


def _at_list_prices(catalog: Catalog, region: str, found: Mapping[str, FrozenMap[CapacityType, Price]]) -> Catalog:
    priced = {}
    for name, prices in found.items():
        known = catalog.types[name]
        there = known.zone_prices.get(region, FrozenMap()).with_items(prices)
        priced[name] = replace(known, zone_prices=known.zone_prices.with_items({region: there}))
    return replace(catalog, types=catalog.types.with_items(priced), digest=f"{catalog.digest}/{region}/listed")


def _has_price(catalog: Catalog, cloud: str, region: str, kind: CapacityType) -> bool:
    """True if any type of the cloud has one there; without a region, anywhere."""
    prices = (
        known.get(kind) for one in catalog if one.cloud == cloud for known in (one.prices, *one.zone_prices.values())
    )
    return any(price is not None and (not region or price.region == region) for price in prices)


def _lacks_price(entry: Considered) -> bool:
    return any(reason.code is Code.NO_PRICE for reason in entry.reasons)


def prices_after(asked: Situation) -> Iterator[Change]:
    """The same after another change, before which no reason says that a price is missing."""
    yield from _prices(asked, regional=True)


def _prices(asked: Situation, *, regional: bool) -> Iterator[Change]:
    unpriced = dict.fromkeys(
        (entry.offering.region, entry.offering.instance_type, entry.offering.capacity_type)
        for entry in asked.considered
        if entry.outcome is ConsideredOutcome.FITS and _lacks_price(entry)
    )
    anywhere = [(asked.catalog.types[name], kind) for region, name, kind in unpriced if not region]
    listed = [(known, kind) for known, kind in anywhere if kind not in known.prices]
    if listed:
        known, kind = min(listed, key=lambda found: (found[1] is not CapacityType.ON_DEMAND, _size(found[0])))
        yield costing(known, "", kind)
    there = sorted((_size(asked.catalog.types[name]), kind.value, region) for region, name, kind in unpriced if region)
    if not listed and there and regional:
        size, sold_as, region = there[0]
        yield costing(asked.catalog.types[size[-1]], region, CapacityType(sold_as))


def _names_places(pool: CapacityPool) -> bool:
    return any(requirement.key in (REGION, ZONE) for requirement in pool.requirements)


def costing(known: InstanceType, region: str, kind: CapacityType) -> Change:
    """`price` is the field as `foreslice catalog set` names it: beside a list price it needs no place. `sold_as` says
    how the machine is bought, where that is not on demand."""
    kinds = () if kind is CapacityType.ON_DEMAND else (kind.value,)
    place = region or ("" if known.price else "REGION")
    field = ".".join(("price", *filter(None, (place,)), *kinds))
    plan_with = "--catalog DIR --region REGION" if place == "REGION" else "--catalog DIR"
    detail = {"instance_type": known.name, "price": field, "plan_with": plan_with} | (
        {"sold_as": f"{kind.value} in {region}" if region else kind.value, "cloud": known.cloud} if kinds else {}
    )
    found = Change.of(ChangeKind.SET_PRICE, "", unchanged, **detail)
    return replace(found, catalog=partial(_priced, name=known.name, region=region, kind=kind))


def _size(instance_type: InstanceType) -> tuple[int, int, str]:
    return instance_type.device_count, instance_type.vcpu, instance_type.name


def _priced(catalog: Catalog, name: str, region: str, kind: CapacityType) -> Catalog:
    known, price = catalog.types[name], {kind: _STAND_IN}
    if region:
        there = known.zone_prices.get(region, FrozenMap()).with_items(price)
        changed = replace(known, zone_prices=known.zone_prices.with_items({region: there}))
    else:
        changed = replace(known, prices=known.prices.with_items(price))
    digest = f"{catalog.digest}/{name}/{region}/{kind}/priced"
    return replace(catalog, types=catalog.types.with_items({name: changed}), digest=digest)


def capacity_blocks(asked: Situation) -> Iterator[Change]:
    """For the smallest type that fits and that nobody sells by the hour; none where something else fits, if only its
    price were known."""
    fitting = [entry for entry in asked.considered if entry.outcome is ConsideredOutcome.FITS]
    entries = [entry for entry in fitting if any(r.code is Code.NEEDS_RESERVATION for r in entry.reasons)]
    blocks = [entry for entry in entries if entry.offering.capacity_type in _BOUGHT]
    if blocks and len(entries) == len(fitting):
        found = min(blocks, key=lambda entry: _size(asked.catalog.types[entry.offering.instance_type]))
        known = asked.catalog.types[found.offering.instance_type]
        counts = tuple(_domains(asked.pods)) or (len(asked.pods),)
        edit = partial(_holding, offering=found.offering, cloud=known.cloud, counts=counts)
        others = [kind.value for kind in sorted(known.capacity_types) if not kind.needs_reservation]
        only = " or ".join(kind.value for kind in sorted(known.capacity_types))
        sold = {"sold_as": " or ".join(others), "cloud": known.cloud} if others else {"only": only}
        domains = {"domains": len(counts)} if len(counts) > 1 else {}
        yield Change.of(ChangeKind.ADD_BLOCK, "", edit, instance_type=known.name, **sold, **domains)


def _domains(pods: tuple[Pod, ...]) -> list[int]:
    """The number of pods of each workload, if one must not be in the NVLink domain of another: a block is one."""
    owners = Counter(pod.owner or pod.key for pod in pods)
    apart = (
        term.selector is not None and term.selector.matches(other.labels)
        for pod in pods
        for term in pod.pod_anti_affinity
        for other in pods
        if term.topology_key == NVIDIA_GPU_CLIQUE and other.owner != pod.owner
    )
    return list(owners.values()) if any(apart) else []


def _holding(snapshot: Snapshot, offering: OfferingRef, cloud: str, counts: tuple[int, ...]) -> Snapshot:
    """With a block for each domain, of as many machines as there are pods; more are never needed."""
    first = facts_of(cloud).first_zone  # any zone of the region stands for the one of the block
    zone = f"{offering.region}{first}" if offering.region and first else offering.zone
    blocks = (
        CapacityBlock(f"{_NAME}-{number}" if number else _NAME, offering.instance_type, zone, count, _BEGIN, _END)
        for number, count in enumerate(counts)
    )
    return replace(snapshot, blocks=(*snapshot.blocks, *blocks))
