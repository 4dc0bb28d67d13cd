"""Machines whose accelerators no pod uses, bought for network cards or for CPUs alone, and configuration of claims that
only their driver reads.

The catalog's machines have accelerators: what needs none is bought with some all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.demand.scope import network_card_alone
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers import opaque
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.prediction.device_plugins import EFA
from instance_catalog.types.catalog import Catalog

# Drivers of which a plan reads the configuration: what it makes of their devices, or refuses.
_READ: Final = frozenset({opaque.DRIVER, opaque.CHANNEL_DRIVER})


def network_advice(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    yield from _idle_accelerators(snapshot, plan, catalog)
    yield from _card_alone(snapshot)
    yield from _unread_configuration(snapshot)


def _idle_accelerators(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """The first new machine with accelerators of which its pods use none."""
    cards = {facts.driver for facts in driver_facts().values() if facts.cards}
    idle = [node for node in plan.launches if _uses_alone(node, cards) and catalog.get(_type_of(node)).accelerator]
    for node in idle[:1]:
        machine = catalog.get(_type_of(node))
        model = machine.accelerator.model if machine.accelerator else ""
        price = f" at {node.usd_per_hour:.2f} $/h" if node.usd_per_hour else ""
        rest = f" and {len(idle) - 1} more" if len(idle) > 1 else ""
        unused = f"{machine.share or machine.device_count} × {model}"
        what = "claim network cards alone" if node.devices_used else "ask for no device"
        plain = any(one.accelerator is None for one in catalog)
        only = "no machine without accelerators that is on offer takes them"
        why = only if plain else "all machines of the catalog have accelerators"
        yield surprise(
            f"instance type {machine.name}",
            (),
            f"pods that {what} get this machine{price}{rest} and do not use its {unused}: {why}",
            "add your machines without accelerators by `foreslice catalog add`, or give the existing nodes",
        )


def _card_alone(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """The first pod that asks a device plugin for a network card, and nobody for an accelerator."""
    found = [pod for pod in snapshot.pods if not pod.bound and network_card_alone(pod)]
    for pod in found[:1]:
        yield surprise(
            f"Pod {pod.key}",
            ("spec", "containers", "resources"),
            f"asks for {EFA} and for no accelerator: a plan buys machines with accelerators, and none of them "
            "for a network card alone",
            "if its programs run on CPUs, leave it to a node group of a type with EFA; if not, let it ask for its "
            "accelerators as well",
            pod.origin,
            others=len(found) - 1,
        )


def _type_of(node: PlannedNode) -> str:
    return node.offering.instance_type


def _uses_alone(node: PlannedNode, drivers: Collection[str]) -> bool:
    """True if these drivers publish all devices that its pods use, if any, and no device plugin hands one out."""
    used = {device.driver for device in node.devices_used}
    return bool(node.pods) and used <= set(drivers) and not any(found.used for found in node.handed_out)


def _unread_configuration(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Once for each driver: what a pending claim configures for it."""
    seen: set[str] = set()
    for pod in snapshot.pods:
        found = (snapshot.claims.get(key) for key in claim_keys(pod)) if not pod.bound else ()
        for claim in (claim for claim in found if claim is not None):
            for index, config in enumerate(claim.config):
                if config.driver not in _READ | seen:
                    seen.add(config.driver)
                    yield surprise(
                        f"ResourceClaim {claim.key}",
                        ("spec", "devices", "config", index, "opaque"),
                        f"is for driver {config.driver} alone: a plan does not evaluate it, and whether the driver "
                        "takes it shows when the pod starts",
                        "check it against the driver's documentation",
                        claim.origin,
                    )
