"""Instance types that a plan without CapacityPools leaves out, as the catalog lacks what a driver publishes there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from autoscaler.lint.advice import reason_of, surprise
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.reason import Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.scheduling.resources import pod_requests, units
from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import DriverFacts, driver_facts
from instance_catalog.drivers.profile import DriverSet, assumed_profile
from instance_catalog.prediction.predict import PREDICTIONS
from instance_catalog.prediction.runnable import why_not_runnable
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.node_allocatable import node_allocatable


def unconsidered(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Reason]:
    """One warning for each driver that an operator installs. Its detail `may_cost_less` is the number of such types
    that cost less than a node of the plan with the driver, if there are any."""
    if snapshot.pools:
        return
    used = {profile for node in plan.launches for profile in node.drivers}
    for name in sorted((used | set(_missed(plan))) & PREDICTIONS.keys()):
        driver, facts = PREDICTIONS[name], driver_facts()[name]
        if driver.in_implicit_pools or driver.why_unpredictable is None:
            continue
        profile = assumed_profile(name)
        why = {one.name: text for one in catalog if (text := driver.why_unpredictable(one, profile))}
        if not why:
            continue
        nodes = [node for node in plan.launches if name in node.drivers and _serves(node, facts, plan)]
        less = {each: price for node in nodes for each, price in _cheaper(node, why, snapshot, catalog)}
        first = why[min(less, key=lambda each: (less[each], each))] if less else next(iter(why.values()))
        only = all(one.accelerator for one in catalog) and any(_serves(node, facts, plan, alone=True) for node in nodes)
        machines = "; all machines of the catalog have accelerators, and one without may cost less: add it by "
        found = surprise(
            f"driver {facts.driver}",
            (),
            f"{len(why)} instance types were not considered and may fit: {first}",
            "a CapacityPool names the profile in spec.drivers.profiles"
            + (f"{machines}`foreslice catalog add`" if only else ""),
        )
        reason = reason_of(found)
        yield replace(reason, detail=reason.detail.with_items({"may_cost_less": len(less)})) if less else reason


def _missed(plan: Plan) -> Iterator[str]:
    """The profiles of drivers of whose classes some type has no device, as pods without a place need one."""
    misses = [miss.reason.detail for entry in plan.left_out for miss in entry.near_misses]
    named = {str(detail["device_class"]) for detail in misses if "device_class" in detail}
    for facts in driver_facts().values():
        if any(row.name in named for row in facts.device_classes):
            yield facts.profile


def _serves(node: PlannedNode, facts: DriverFacts, plan: Plan, *, alone: bool = False) -> bool:
    """True if pods of the node get devices of the driver; `alone`: and of no other, nor simulated ones."""
    placed = (one for one in plan.placements if one.pod in node.pods)
    used = {device.driver for one in placed for found in one.allocations.values() for device in found.devices}
    return used == {facts.driver} and not facts.simulated and not node.handed_out if alone else facts.driver in used


def _cheaper(
    node: PlannedNode, names: Iterable[str], snapshot: Snapshot, catalog: Catalog
) -> Iterator[tuple[str, Decimal]]:
    """Those of the node's cloud that plans offer, cost less where the node is, and have room for each of its pods, with
    their prices."""
    offering, pods = node.offering, [pod_requests(pod) for pod in snapshot.pods if pod.key in node.pods]
    chosen, usual = catalog.types[offering.instance_type], DriverSet((assumed_profile("nvidia"),))
    for one in (catalog.types[name] for name in names):
        price = one.price_in(offering.zone, offering.capacity_type, region=offering.region)
        if one.cloud != chosen.cloud or one.share or why_not_runnable(one, usual):
            continue
        if price and price.usd_per_hour < (offering.usd_per_hour or 0):
            free = {name: units(name, amount) for name, amount in node_allocatable(one).items()}
            if all(amount <= free.get(name, amount) for asked in pods for name, amount in asked.items()):
                yield one.name, price.usd_per_hour
