"""Claims that a driver refuses after scheduling, when the kubelet prepares them.

kube-scheduler does not have these rules and would bind the pod, which would then never start. Foreslice launches no
node for such a pod. The rules are data of the driver profiles (instance_catalog/data/drivers), or of drivers that a
catalog describes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

from autoscaler.dra.inventory.devices import ClusterDevices
from autoscaler.model.node import Node
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import Allocation, ResourceClaim
from instance_catalog.drivers import opaque
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.facts import prepare_rules
from instance_catalog.kubernetes.labels import NVIDIA_COMPUTE_DOMAIN
from instance_catalog.kubernetes.resource_slice import DeviceId


def refusals(
    allocations: Mapping[str, Allocation],
    node: Node,
    devices: ClusterDevices,
    claims: Mapping[str, ResourceClaim],
    described: Collection[CustomDriver] = (),
) -> tuple[Reason, ...]:
    """A reason for every claim (by namespace/name) whose new allocation on the node its driver would refuse.

    `claims` are all claims by namespace/name, as they are without the new allocations; `described` the drivers that
    the catalog describes.
    """
    return (
        *_incomplete(allocations, node, devices, described),
        *_second_domains(allocations, node, claims),
        *_second_values(allocations, node, devices, claims),
        *_refused_configs(allocations, node, claims),
        *_without_domain(allocations, claims),
    )


def _incomplete(
    allocations: Mapping[str, Allocation], node: Node, devices: ClusterDevices, described: Collection[CustomDriver]
) -> Iterator[Reason]:
    """Claims for some of the devices of a node whose driver only allocates all of them."""
    for key, allocation in allocations.items():
        for driver, taken in _by_driver(allocation).items():
            rules = prepare_rules(driver, described)
            if rules.all_devices_of_node and taken != (published := _published(driver, node, devices)):
                counts = {"taken": len(taken), "published": len(published)}
                yield Reason.of(Code.PREPARE_REFUSED, Subject("claim", key), driver=driver, **counts)


def _second_domains(
    allocations: Mapping[str, Allocation], node: Node, claims: Mapping[str, ResourceClaim]
) -> Iterator[Reason]:
    """Claims of a ComputeDomain on a node that belongs to another one (dra-driver-nvidia-gpu v0.4.1 device_state.go).

    The node's label names the domain; the driver sets it with the first channel and removes it with the domain.
    """
    wanted = {
        (key, driver): domain
        for key, allocation in allocations.items()
        for driver in _by_driver(allocation)
        if prepare_rules(driver).one_compute_domain_per_node and (domain := _domain(claims.get(key), driver))
    }
    for (key, driver), domain in wanted.items():
        there = {node.labels.get(NVIDIA_COMPUTE_DOMAIN, ""), *wanted.values(), *_domains_on(node, driver, claims)}
        if others := sorted(there - {"", domain}):
            yield Reason.of(Code.PREPARE_REFUSED, Subject("claim", key), driver=driver, domain=domain, other=others[0])


def _second_values(
    allocations: Mapping[str, Allocation], node: Node, devices: ClusterDevices, claims: Mapping[str, ResourceClaim]
) -> Iterator[Reason]:
    """Claims for devices that differ from those in use, if a node has one value (k8s-gpu-dra-driver partition.go).

    Of claims that are allocated together, none is refused because of a later one.
    """
    earlier: list[Allocation] = []
    for key, allocation in allocations.items():
        for driver, taken in _by_driver(allocation).items():
            attribute = prepare_rules(driver).one_value_on_node
            if not attribute:
                continue
            held = [*(claim.allocation for claim in claims.values() if claim.allocation), *earlier]
            wanted = _values(taken, attribute, node, devices)
            in_use = {id_ for other in held for id_ in _by_driver(other).get(driver, ()) if id_.pool == node.name}
            there = _values(in_use, attribute, node, devices)
            if wanted and len(wanted | there) > 1:
                value = min(wanted - there, default=min(wanted))
                detail = {"attribute": attribute, "value": value, "other": min((wanted | there) - {value})}
                yield Reason.of(Code.PREPARE_REFUSED, Subject("claim", key), driver=driver, **detail)
        earlier.append(allocation)


def _refused_configs(
    allocations: Mapping[str, Allocation], node: Node, claims: Mapping[str, ResourceClaim]
) -> Iterator[Reason]:
    """Claims with a configuration that the driver finds invalid, or a sharing strategy that its options refuse."""
    for key, allocation in allocations.items():
        claim = claims.get(key)
        drivers = _by_driver(allocation)
        for config in claim.config if claim else ():
            if config.driver != opaque.DRIVER or config.driver not in drivers:
                continue
            chosen = opaque.strategy(config.parameters)
            if problem := opaque.refused(config.parameters):
                yield Reason.of(Code.PREPARE_REFUSED, Subject("claim", key), driver=config.driver, problem=problem)
            elif gate := node.refused_sharing.get(chosen):
                yield Reason.of(
                    Code.PREPARE_REFUSED, Subject("claim", key), driver=config.driver, strategy=chosen, gate=gate
                )


def _without_domain(allocations: Mapping[str, Allocation], claims: Mapping[str, ResourceClaim]) -> Iterator[Reason]:
    """Claims of the driver's own class for IMEX channels that name no ComputeDomain: the driver takes its default
    configuration for them, which has no domainID, and finds that invalid (dra-driver-nvidia-gpu 0807eed,
    getConfigResultsMap in device_state.go). Another class may have a configuration of its own, which is not read.
    """
    for key, allocation in allocations.items():
        claim = claims.get(key)
        asked = {request.device_class for request in claim.exact_requests} if claim else set()
        used = opaque.CHANNEL_CLASS in asked and opaque.CHANNEL_DRIVER in _by_driver(allocation)
        if used and not _domain(claim, opaque.CHANNEL_DRIVER):
            problem = (
                "no configuration names a ComputeDomain (domainID); instead of the template or claim, create a "
                "ComputeDomain with its name in spec.channel.resourceClaimTemplate"
            )
            yield Reason.of(Code.PREPARE_REFUSED, Subject("claim", key), driver=opaque.CHANNEL_DRIVER, problem=problem)


def _values(ids: Collection[DeviceId], attribute: str, node: Node, devices: ClusterDevices) -> set[str]:
    """The values of the attribute that the devices publish."""
    pools, _ = devices.pools_of(node)
    found = (pooled.device.attributes.get(attribute) for pooled in pools.devices if pooled.id in ids)
    return {str(value) for value in found if value is not None}


def _domains_on(node: Node, driver: str, claims: Mapping[str, ResourceClaim]) -> set[str]:
    """The ComputeDomains whose claims have devices of the node, which is also the name of the driver's pool."""
    return {
        _domain(claim, driver)
        for claim in claims.values()
        if claim.allocation
        and any(result.driver == driver and result.pool == node.name for result in claim.allocation.devices)
    }


def _domain(claim: ResourceClaim | None, driver: str) -> str:
    """The uid of the ComputeDomain that the claim's configuration names; "" if there is none."""
    for config in claim.config if claim else ():
        if config.driver == driver:
            parameters = json.loads(config.parameters)
            domain = parameters.get("domainID") if isinstance(parameters, dict) else None
            if isinstance(domain, str) and domain:
                return domain
    return ""


def _by_driver(allocation: Allocation) -> dict[str, set[DeviceId]]:
    taken: dict[str, set[DeviceId]] = {}
    for result in allocation.devices:
        taken.setdefault(result.driver, set()).add(DeviceId(result.driver, result.pool, result.device))
    return taken


def _published(driver: str, node: Node, devices: ClusterDevices) -> set[DeviceId]:
    pools, _ = devices.pools_of(node)
    return {pooled.id for pooled in pools.devices if pooled.driver == driver}
