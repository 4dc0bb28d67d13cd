"""Devices of new machines that their pods leave unused."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.model.plan import Plan
from instance_catalog.types.catalog import Catalog


def mostly_idle(plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Each kind of machine, of whose whole accelerators the pods of every such node use less than half."""
    used = {p.pod: sum(len(found.devices) for found in p.allocations.values()) for p in plan.placements}
    most: dict[str, int] = {}
    for node in plan.launches:
        taken = sum(used.get(key, 0) for key in node.pods)
        # Parts of GPUs are other devices than GPUs.
        parts = any("mig" in text or "shares" in text for text in node.drivers)
        name = node.offering.instance_type
        most[name] = max(most.get(name, 0), catalog.types[name].device_count if parts or not taken else taken)
    for name, taken in most.items():
        card, there = catalog.types[name].accelerator, catalog.types[name].device_count
        if card is not None and 2 * taken < there:
            yield f"{there - taken} of {there} {card.model} of each {name} stay free, and are paid for"
