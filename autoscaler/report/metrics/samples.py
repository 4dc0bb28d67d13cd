"""The values of the metrics after a reconcile. Pure: serve/recorder.py keeps the counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import product

from autoscaler.lifecycle.boot_times import boot_kind, boot_time
from autoscaler.lifecycle.provisioned_node import EDGES, counts_against_limits, has_machine, is_over
from autoscaler.lifecycle.spending import hours, price_of, spent_today
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import Plan, Target
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.metrics.table import (
    BLOCK_HOURS,
    BLOCK_NODES,
    BOOT_SECONDS,
    CLAIM_COST,
    DEVICES,
    GUARD_BINDING,
    GUARDS,
    LAUNCHES,
    MISPREDICTIONS,
    NODES,
    NODES_USD,
    PENDING_PODS,
    PLAN_WORK,
    PROPOSED_NODES,
    PROPOSED_USD,
    QUARANTINES,
    RECREATED,
    SPENT_TODAY,
    Metric,
    Sample,
)
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.resource_slice import Device, ResourceSlice

_OUTCOMES = frozenset({Phase.LAUNCHED, Phase.READY, Phase.FAILED})
_FAILURES = tuple(dict.fromkeys(edge.why.value for edge in EDGES if edge.target is Phase.FAILED))
_PLACED = {Target.EXISTING: "ExistingNode", Target.COMING: "ComingNode", Target.NEW: "NewNode"}


def gauges_of(snapshot: Snapshot, plan: Plan, now: datetime) -> tuple[Sample, ...]:
    """The values of the gauges at this moment."""
    return (
        *_pending(plan),
        Sample(PLAN_WORK, (), plan.work),
        *_devices(snapshot),
        *_nodes(snapshot.provisioned),
        *_proposals(snapshot, plan),
        *_blocks(snapshot, now),
        *_spending(snapshot, now),
    )


def increments_of(before: Snapshot, after: Snapshot, elapsed_hours: Decimal) -> tuple[Sample, ...]:
    """The increments of the counters between two reconciles of one process."""
    recreated = _recreated(before, after)
    return (*_steps(before, after), *recreated, *_mispredictions(before, after), *claim_costs(before, elapsed_hours))


def begun(pools: Iterable[CapacityPool]) -> Iterator[Sample]:
    """Zeros for counters that alerts use: if a series begins with 1, increase() does not count the 1."""
    for pool in pools:
        yield Sample(MISPREDICTIONS, (pool.name,), 0)
        yield Sample(RECREATED, (pool.name,), 0)
        for capacity_type, why in product(pool.capacity_types, _FAILURES):
            yield Sample(LAUNCHES, (pool.name, capacity_type, Phase.FAILED.value, why), 0)


def boots_of(before: Snapshot, after: Snapshot) -> Iterator[Sample]:
    """The boot times of nodes that became Ready first between two reconciles: observations of a histogram."""
    known = {node.name for node in before.provisioned if boot_time(node) is not None}
    for node in after.provisioned:
        if node.name not in known and (boot := boot_time(node)) is not None:
            instance_type, drivers = boot_kind(node)
            yield Sample(BOOT_SECONDS, (instance_type, ",".join(drivers)), boot[1].total_seconds())


def claim_costs(snapshot: Snapshot, elapsed_hours: Decimal) -> Iterator[Sample]:
    """The cost of claims that have devices of priced nodes, for this time.

    On each node, a claim has a share of the devices of each driver. The largest of these is its share of the node, so a
    NIC beside a GPU changes nothing. Shares with a sum above one are scaled down to one.
    """
    nodes = {node.node_name: node for node in snapshot.provisioned if has_machine(node)}
    cost: dict[tuple[str, str], Decimal] = {}
    for name, shares in _shares(snapshot).items():
        node = nodes.get(name)
        if node is None or not node.offering.usd_per_hour:
            continue
        price = node.offering.usd_per_hour * elapsed_hours / max(sum(shares.values(), Decimal(0)), Decimal(1))
        for claim, share in shares.items():
            key = claim.partition("/")[0], node.pool
            cost[key] = cost.get(key, Decimal(0)) + price * share
    yield from (Sample(CLAIM_COST, key, float(usd)) for key, usd in sorted(cost.items()) if usd)


# -- devices


@dataclass(frozen=True, slots=True)
class _Unit:
    """One physical device: a device of a slice, or all devices that draw from the same set of counters."""

    node: str
    driver: str
    pool: str
    name: str
    product: str


def _units(slices: Iterable[ResourceSlice]) -> Mapping[tuple[str, str, str], _Unit]:
    """The physical device of every published one, by driver, pool and name."""
    found: dict[tuple[str, str, str], _Unit] = {}
    products: dict[tuple[str, str, str], str] = {}
    for slice_ in slices:
        for device in slice_.devices:
            name = device.consumes_counters[0].counter_set if device.consumes_counters else device.name
            product = products.setdefault((slice_.driver, slice_.pool.name, name), _product(device))
            key = (slice_.driver, slice_.pool.name, device.name)
            found[key] = _Unit(slice_.reach.node_name or "", slice_.driver, slice_.pool.name, name, product)
    return found


def _product(device: Device) -> str:
    """The product name; if a driver publishes none, the type."""
    names = (device.attributes.get(name) for name in ("productName", "type"))
    return next((name for name in names if isinstance(name, str)), "")


def _held(claim: ResourceClaim, units: Mapping[tuple[str, str, str], _Unit]) -> Iterator[_Unit]:
    for result in claim.allocation.devices if claim.allocation else ():
        unit = units.get((result.driver, result.pool, result.device))
        if unit is not None and not result.admin_access:
            yield unit


def _shares(snapshot: Snapshot) -> Mapping[str, Mapping[str, Decimal]]:
    """By node and claim, the claim's share of the node."""
    units = _units(snapshot.slices)
    of_driver = Counter((unit.node, unit.driver) for unit in set(units.values()))
    shares: dict[str, dict[str, Decimal]] = {}
    for claim in snapshot.claims.values():
        held = Counter((unit.node, unit.driver) for unit in set(_held(claim, units)))
        for (node, driver), count in held.items():
            share = Decimal(count) / of_driver[node, driver]
            by_claim = shares.setdefault(node, {})
            by_claim[claim.key] = max(by_claim.get(claim.key, Decimal(0)), share)
    return shares


def _devices(snapshot: Snapshot) -> Iterator[Sample]:
    units = _units(snapshot.slices)
    taken = {unit for claim in snapshot.claims.values() for unit in _held(claim, units)}
    counts: Counter[tuple[str, ...]] = Counter()
    for unit in set(units.values()):
        # Both states of a product have a sample, so that a ratio of them never lacks a series.
        counts[unit.driver, unit.product, "allocated"] += unit in taken
        counts[unit.driver, unit.product, "free"] += unit not in taken
    yield from _counted(DEVICES, counts)


# -- pods, nodes, blocks, money


def _pending(plan: Plan) -> Iterator[Sample]:
    reasons = [_PLACED[placement.target] for placement in plan.placements]
    reasons += [left.reasons[0].code.value for left in (*plan.left_out, *plan.outside) if left.reasons]
    # Known reasons are reported with 0, so that an alert does not fire because of a missing series.
    yield from _counted(
        PENDING_PODS, Counter({(name,): 0 for name in _PLACED.values()} | Counter((r,) for r in reasons))
    )


def _nodes(provisioned: Iterable[ProvisionedNode]) -> Iterator[Sample]:
    nodes = [node for node in provisioned if not is_over(node)]
    yield from _counted(NODES, Counter((n.pool, n.offering.capacity_type, n.phase.value) for n in nodes))
    for key in sorted({(node.pool, node.offering.capacity_type) for node in nodes}):
        price = price_of(node for node in nodes if (node.pool, node.offering.capacity_type) == key)
        yield Sample(NODES_USD, key, float(price))


def _proposals(snapshot: Snapshot, plan: Plan) -> Iterator[Sample]:
    for pool in snapshot.pools:
        launches = [launch for launch in plan.launches if launch.pool == pool.name and not pool.acts]
        yield Sample(PROPOSED_NODES, (pool.name,), len(launches))
        price = sum((launch.usd_per_hour or Decimal(0) for launch in launches), Decimal(0))
        yield Sample(PROPOSED_USD, (pool.name,), float(price))


def _blocks(snapshot: Snapshot, now: datetime) -> Iterator[Sample]:
    for block in snapshot.blocks:
        key = (block.name, block.pool)
        held = sum(n.offering.block == block.name and counts_against_limits(n) for n in snapshot.provisioned)
        yield Sample(BLOCK_HOURS, key, float(hours(block.reclaimed - now)))
        yield Sample(BLOCK_NODES, key, held)


def _spending(snapshot: Snapshot, now: datetime) -> Iterator[Sample]:
    yield Sample(SPENT_TODAY, (), float(spent_today(snapshot.spending, now)))
    binding = snapshot.spending.binding if snapshot.spending else ()
    yield from (Sample(GUARD_BINDING, (guard,), guard in binding) for guard in GUARDS)
    quarantined = Counter(q.pool for q in snapshot.quarantines if q.until is not None and q.until > now)
    yield from (Sample(QUARANTINES, (pool.name,), quarantined[pool.name]) for pool in snapshot.pools)


# -- what happened


def _steps(before: Snapshot, after: Snapshot) -> Iterator[Sample]:
    known = {node.name: node.history for node in before.provisioned}
    steps: Counter[tuple[str, ...]] = Counter()
    for node in after.provisioned:
        for phase, moment, why in node.history:
            if phase in _OUTCOMES and (phase, moment, why) not in known.get(node.name, ()):
                steps[node.pool, node.offering.capacity_type, phase.value, why] += 1
    yield from _counted(LAUNCHES, steps)


def _recreated(before: Snapshot, after: Snapshot) -> Iterator[Sample]:
    known = {node.name: node.recreated_as for node in before.provisioned}
    new = (node for node in after.provisioned if node.recreated_as not in ("", known.get(node.name)))
    yield from _counted(RECREATED, Counter((node.pool,) for node in new))


def _mispredictions(before: Snapshot, after: Snapshot) -> Iterator[Sample]:
    """New pieces of evidence; a misprediction that lasts is one."""
    known = {(q.pool, evidence) for q in before.quarantines for evidence in q.mispredictions}
    new = {(q.pool, evidence) for q in after.quarantines for evidence in q.mispredictions} - known
    yield from _counted(MISPREDICTIONS, Counter((pool,) for pool, _ in new))


def _counted(metric: Metric, counts: Mapping[tuple[str, ...], int]) -> Iterator[Sample]:
    yield from (Sample(metric, labels, count) for labels, count in sorted(counts.items()))
