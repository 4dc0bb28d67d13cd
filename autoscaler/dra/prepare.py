"""What a driver refuses after scheduling, when the kubelet prepares a claim.

kube-scheduler does not know these rules and would bind the pod; it would then never start. Foreslice buys no node for
that. The rules are data of the driver profiles (instance_catalog/data/drivers).
"""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.dra.devices import ClusterDevices
from autoscaler.model.node import Node
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import Allocation
from instance_catalog.driver_data import prepare_rules
from instance_catalog.resource_slice import DeviceId


def refusals(allocations: Mapping[str, Allocation], node: Node, devices: ClusterDevices) -> tuple[Reason, ...]:
    """A reason for every claim (by namespace/name) whose new allocation on the node its driver would refuse."""
    return tuple(
        Reason.of(Code.PREPARE_REFUSED, f"claim {key}", driver=driver, taken=len(taken), published=len(published))
        for key, allocation in allocations.items()
        for driver, taken in _by_driver(allocation).items()
        if prepare_rules(driver).all_devices_of_node and taken != (published := _published(driver, node, devices))
    )


def _by_driver(allocation: Allocation) -> dict[str, set[DeviceId]]:
    taken: dict[str, set[DeviceId]] = {}
    for result in allocation.devices:
        taken.setdefault(result.driver, set()).add(DeviceId(result.driver, result.pool, result.device))
    return taken


def _published(driver: str, node: Node, devices: ClusterDevices) -> set[DeviceId]:
    pools, _ = devices.pools_of(node)
    return {pooled.id for pooled in pools.devices if pooled.driver == driver}
