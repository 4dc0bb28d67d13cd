"""The part of a node's own amounts, such as cpu, that a pod's claims take with their devices (KEP-5517).

Upstream: kube-scheduler's plugin dynamicresources, nodeallocatabledynamicresources.go, v1.37.2, with the gate
DRANodeAllocatableResources. Without it the API server drops the field of devices, and this module is not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from autoscaler.dra.claims.pod_groups import reserved_for
from autoscaler.dra.inventory.devices import ClusterDevices
from autoscaler.dra.inventory.pools import reaches
from autoscaler.dra.outcome import FatalError
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.requests import add
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, ResourceClaim
from autoscaler.model.verdict import DoesNotFit, Unknown
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes.node_selector import BadSelectorError
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, DeviceId, NodeMapping, NodeReach, ResourceSlice

NODE_ALLOCATABLE_GATE: Final = "DRANodeAllocatableResources"  # alpha and off in 1.36 and 1.37
_ONE: Final = Quantity.of(1)


@dataclass(frozen=True, slots=True)
class ClaimShare:
    """The amounts that one claim takes for one pod, by resource, as in status.nodeAllocatableResourceClaimStatuses.

    `containers` are those that name the claim, once for each time.
    """

    claim: str
    containers: tuple[str, ...]
    mapped: Mapping[str, Quantity]
    per_pod: Mapping[str, Quantity]
    per_container: Mapping[str, Quantity]

    def of_pod(self) -> dict[str, Quantity]:
        """The amounts in addition to the pod's own requests."""
        total = dict(self.mapped)
        add(total, self.per_pod)
        references = Quantity.of(len(self.containers))  # 0 is an amount, which a negative rest of a node does not cover
        add(total, {name: amount.times(references) for name, amount in self.per_container.items()})
        return total

    def of_container(self) -> dict[str, Quantity]:
        """The amounts in addition to the limits of each container that names the claim."""
        total = dict(self.mapped)
        add(total, self.per_pod)
        add(total, self.per_container)
        return total


def amounts_of(shares: Iterable[ClaimShare]) -> dict[str, Quantity]:
    """The sum of the shares."""
    total: dict[str, Quantity] = {}
    for share in shares:
        add(total, share.of_pod())
    return total


def not_shareable(claim: ResourceClaim, pod: Pod, devices: ClusterDevices) -> DoesNotFit | Unknown | None:
    """The reason why the pod cannot use an allocated claim that another pod uses: the claim's devices are a part of the
    node's own amounts, which counts for one pod. Devices that only have an overhead may be shared.

    Unknown for claims of PodGroups: it depends on whether both pods are scheduled in one cycle.
    """
    if not claim.reserved_for or claim.allocation is None or not _has_mapping(claim.allocation, devices):
        return None
    if not reserved_for(claim, pod, devices.profile):
        return DoesNotFit((Reason.of(Code.CLAIM_NOT_SHAREABLE, Subject("claim", claim.key), claim=claim.name),))
    if all(consumer.uid != pod.uid for consumer in claim.reserved_for):
        feature = "a device with nodeAllocatableResources in a claim of a PodGroup"
        return Unknown((Reason.of(Code.UNSUPPORTED, Subject("claim", claim.key), feature=feature),))
    return None


def shares_of(
    pod: Pod, node: Node, allocated: Sequence[tuple[ResourceClaim, Allocation]], devices: ClusterDevices
) -> tuple[ClaimShare, ...]:
    """The amounts that each of the pod's claims takes with these allocations, without claims that take nothing.

    Raises FatalError, as kube-scheduler aborts the attempt, if a claim has such a device and another one that the node
    cannot access, or if an allocation lacks the capacity that counts.
    """
    found = (_share(pod, node, claim, allocation, devices) for claim, allocation in allocated)
    return tuple(share for share in found if share is not None)


def guessed(
    node: Node, allocated: Sequence[tuple[ResourceClaim, Allocation]], devices: ClusterDevices
) -> Iterator[Reason]:
    """Capacities that the catalog only estimates, if an amount of the node follows from them."""
    for _, allocation in allocated:
        for result in allocation.devices:
            device = _published(result, devices, node)
            for entry in device.node_allocatable.values() if device else ():
                name = (entry.mapping.capacity if entry.mapping else None) or ""
                if device and name in device.capacity and device.capacity[name].guess:
                    subject = Subject("device", str(DeviceId(result.driver, result.pool, result.device)))
                    yield Reason.of(Code.CATALOG_UNKNOWN, subject, attributes=(name,))


def _has_mapping(allocation: Allocation, devices: ClusterDevices) -> bool:
    found = (_published(result, devices) for result in allocation.devices)
    return any(entry.mapping is not None for device in found if device for entry in device.node_allocatable.values())


def _share(
    pod: Pod, node: Node, claim: ResourceClaim, allocation: Allocation, devices: ClusterDevices
) -> ClaimShare | None:
    seen = [(result, _published(result, devices, node)) for result in allocation.devices]
    if not any(device is not None and device.node_allocatable for _, device in seen):
        return None
    names = {entry.name for entry in pod.claims if entry.claim == claim.name}
    containers = (*pod.init_containers, *pod.containers)
    share = ClaimShare(claim.name, tuple(c.name for c in containers for name in c.claims if name in names), {}, {}, {})
    mapped, per_pod, per_container = dict[str, Quantity](), dict[str, Quantity](), dict[str, Quantity]()
    for result, device in seen:
        if device is None:
            raise _error(claim, result, f"not found in pool {result.pool} for driver {result.driver}")
        for resource, entry in device.node_allocatable.items():
            if entry.mapping is not None:
                add(mapped, _mapped(claim, result, resource, entry.mapping))
            if entry.overhead is not None:
                add(per_pod, _given(resource, entry.overhead.per_pod))
                add(per_container, _given(resource, entry.overhead.per_container))
    taken = mapped or per_pod or per_container
    return replace(share, mapped=mapped, per_pod=per_pod, per_container=per_container) if taken else None


def _mapped(
    claim: ResourceClaim, result: AllocatedDevice, resource: str, mapping: NodeMapping
) -> Mapping[str, Quantity]:
    if not mapping.capacity:
        return _given(resource, mapping.per_device)
    if result.consumed_capacity is None:
        raise _error(claim, result, f"ConsumedCapacity is nil, but {resource} follows from capacity {mapping.capacity}")
    consumed = result.consumed_capacity.get(mapping.capacity)
    if consumed is None:
        return {}
    factor = mapping.multiplier
    return {resource: consumed if factor is None or factor == _ONE else consumed.times(factor)}


def _given(resource: str, amount: Quantity | None) -> Mapping[str, Quantity]:
    return {} if amount is None else {resource: amount}


def _error(claim: ResourceClaim, result: AllocatedDevice, problem: str) -> FatalError:
    return FatalError.of(Code.NODE_AMOUNT_UNDECIDED, Subject("claim", claim.key), device=result.device, problem=problem)


def _published(result: AllocatedDevice, devices: ClusterDevices, node: Node | None = None) -> Device | None:
    """The device of an allocation; None if no slice has it, or none that is visible on `node`.

    While a pool is replaced, its newest generation counts, from which devices are allocated; upstream takes either.
    """
    slices = sorted(devices.layers.of_pool(result.driver, result.pool), key=lambda slice_: -slice_.pool.generation)
    for slice_ in slices:
        if node is not None and not slice_.per_device_node_selection and not _sees(node, slice_.reach):
            continue
        for device in _named(slice_, result.device):
            hidden = node is not None and slice_.per_device_node_selection and not _sees(node, device.reach)
            return None if hidden else device
    return None


def _named(slice_: ResourceSlice, name: str) -> Iterator[Device]:
    return (device for device in slice_.devices if device.name == name)


def _sees(node: Node, reach: NodeReach) -> bool:
    try:
        return reaches(reach, node)
    except BadSelectorError:
        return False
