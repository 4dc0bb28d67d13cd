"""What a plan without CapacityPools takes for granted about machines and drivers, and a person may know better."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.lint.advice import surprise
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.drivers.images import vendors_without_image
from instance_catalog.drivers.profile import assumed_profile
from instance_catalog.prediction.predict import PREDICTIONS
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.node_allocatable import EPHEMERAL_STORAGE, assumes_root_disk


def supply_advice(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Of plans with pools only the root disks: those say what else the nodes are."""
    yield from _assumed_disk(snapshot, plan, catalog)
    if snapshot.pools:
        return
    used = {profile for node in plan.launches for profile in node.drivers}
    yield from _made_up(used)
    yield from _not_considered(used | set(_missed(plan)), catalog)
    yield from _without_image(plan, catalog)


def _assumed_disk(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """The size of the root disk on which a pod relies, once, for the first node that gets such a pod."""
    asking = {pod.key for pod in snapshot.pods if any(EPHEMERAL_STORAGE in c.requests for c in pod.containers)}
    for node in plan.launches:
        found = catalog.types.get(node.offering.instance_type)
        if found is not None and assumes_root_disk(found) and asking & set(node.pods):
            yield surprise(
                f"instance type {found.name}",
                (),
                f"pods request ephemeral-storage, and its root disk is assumed to have {found.reservation.root_disk}",
                f"if yours differ, say so: `foreslice catalog set {found.name} allocatable.ephemeral-storage=… "
                "--into DIR --reason WHY`",
            )
            return


def _made_up(used: set[str]) -> Iterator[Diagnostic]:
    """Devices of a driver that makes them up: the cheapest machine of all is as good as any."""
    for name in sorted(used & driver_facts().keys()):
        facts = driver_facts()[name]
        if facts.simulated:
            options = ":".join(f"{option}=4" for option, found in facts.options.items() if not found.switch)
            yield surprise(
                f"driver {facts.driver}",
                (),
                "makes up its devices on any machine, so the cheapest of the catalog serves",
                "name your machines in a CapacityPool (spec.requirements), and how the driver is installed in "
                f"spec.drivers.profiles, such as ['{name}:{options}']",
            )


def _missed(plan: Plan) -> Iterator[str]:
    """The profiles of drivers of whose classes some type has no device, as pods without a place need one."""
    misses = [miss.reason.detail for entry in plan.left_out for miss in entry.near_misses]
    named = {str(detail["device_class"]) for detail in misses if "device_class" in detail}
    for facts in driver_facts().values():
        if any(row.name in named for row in facts.device_classes):
            yield facts.profile


def _not_considered(used: set[str], catalog: Catalog) -> Iterator[Diagnostic]:
    """Types that were no choice only because the catalog lacks what an operator's driver publishes there."""
    for name in sorted(used & PREDICTIONS.keys()):
        driver = PREDICTIONS[name]
        if driver.in_implicit_pools or driver.why_unpredictable is None:
            continue
        profile = assumed_profile(name)
        why = {one.name: text for one in catalog if (text := driver.why_unpredictable(one, profile))}
        if why:
            yield surprise(
                f"driver {driver_facts()[name].driver}",
                (),
                f"{len(why)} instance types were not considered and may fit: {next(iter(why.values()))}",
                "a CapacityPool names the profile in spec.drivers.profiles",
            )


def _without_image(plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Nodes with accelerators of a vendor for which the cloud's node images have no driver."""
    told: set[tuple[str, str]] = set()
    for name in dict.fromkeys(node.offering.instance_type for node in plan.launches):
        machine = catalog.get(name)
        card = machine.accelerator
        key = (machine.cloud, card.vendor if card else "")
        if card is None or key not in vendors_without_image() or key in told:
            continue
        told.add(key)
        yield surprise(
            f"instance type {name}",
            (),
            f"the node images of {machine.cloud} have no driver for {card.vendor} accelerators "
            f"(source: {vendors_without_image()[key]})",
            f"build an image with it, and check that the driver and your software support the {card.model}",
        )
