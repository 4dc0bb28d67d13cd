"""The resources of a future node that pods can use: cpu, memory, ephemeral-storage and pods.

Allocatable = capacity - kube-reserved - hard eviction thresholds (kubernetes/kubernetes pkg/kubelet/cm
node_container_manager_linux.go, v1.36), with the cloud's NodeReservation for each. Conservative: a bound that is a
range counts at its worse end, so that a pod that fits here fits on the node. Values measured on a node
(InstanceType.allocatable) have priority. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final, TypeAlias

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.instance_type import InstanceType
from instance_catalog.types.node_reservation import DiskReservation, NodeReservation, PodRange, Tier

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
_KIBI: Final = 1024
# Whole numbers stay whole: a plan works out hundreds of machines, and fractions take ten times as long.
Amount: TypeAlias = int | Fraction
_NOTHING_ELSE: Final[FrozenMap[str, Quantity]] = FrozenMap()


def node_allocatable(
    instance_type: InstanceType,
    *,
    reserved: Mapping[str, Quantity] = _NOTHING_ELSE,
    root_disk: Quantity | None = None,
) -> FrozenMap[str, Quantity]:
    """Allocatable cpu (cores), memory, ephemeral-storage (bytes) and pods of a node of this type.

    `reserved` replaces the image's kube-reserved, resource by resource; `root_disk` its default. Without `root_disk`,
    local disks are the ephemeral storage if the image uses them so.
    """
    model = instance_type.reservation
    pods = _pod_range(model, instance_type.vcpu)
    disk = model.root_disk if root_disk is None else root_disk
    local = _local_disk(instance_type) if root_disk is None else None
    kube = {
        CPU: Quantity(_cpu_millis(model, instance_type.vcpu), -3),
        MEMORY: _bytes(_kube_memory(model, _amount(instance_type.memory), pods.most)),
        EPHEMERAL_STORAGE: _bytes(
            _of_disk(model.disk, _amount(disk)) if local is None else _amount(model.local_disks.reserved)
        ),
        **reserved,
    }
    memory = _shown_memory(model, _amount(instance_type.memory))
    predicted = {
        CPU: Quantity(max(0, instance_type.vcpu * 1000 - kube[CPU].milli()), -3),
        MEMORY: _whole(memory - _amount(kube[MEMORY]) - _amount(model.eviction_memory)),
        EPHEMERAL_STORAGE: _whole(
            (_amount(disk) - _of_disk(model.disk_overhead, _amount(disk)) if local is None else local)
            * (1 - model.eviction_disk)
            - _amount(kube[EPHEMERAL_STORAGE])
        ),
        PODS: Quantity.of(pods.least),
    }
    return FrozenMap({**predicted, **instance_type.allocatable})


def assumes_root_disk(instance_type: InstanceType) -> bool:
    """True if its ephemeral storage is a root disk of unknown size."""
    measured = EPHEMERAL_STORAGE in instance_type.allocatable
    return not measured and _local_disk(instance_type) is None and instance_type.reservation.root_disk.value > 0


def _local_disk(instance_type: InstanceType) -> int | None:
    """Bytes of the local disks that are the node's ephemeral storage; None where its root disk is."""
    family = instance_type.name.partition("-")[0]
    if family not in instance_type.reservation.local_disks.families or not instance_type.local_nvme_gb:
        return None
    return instance_type.local_nvme_gb * 10**9


def _amount(quantity: Quantity) -> Amount:
    return quantity.value if quantity.scale < 0 else quantity.ceil()


def _cpu_millis(model: NodeReservation, vcpu: int) -> int:
    return ceil(_tiered(model.cpu_tiers, vcpu) * 1000)


def _shown_memory(model: NodeReservation, memory: Amount) -> Amount:
    return memory * (1 - model.memory_overhead) - _amount(model.kernel_base) - _tiered(model.kernel_tiers, memory)


def _kube_memory(model: NodeReservation, memory: Amount, pods: int) -> Amount:
    return _amount(model.memory_base) + _amount(model.memory_per_pod) * pods + _tiered(model.memory_tiers, memory)


def _of_disk(model: DiskReservation, disk: Amount) -> Amount:
    bounds: list[Amount] = [_amount(model.base) + model.share * disk, model.most_share * disk]
    if model.most is not None:
        bounds.append(_amount(model.most))
    return min(bounds)


def _tiered(tiers: tuple[Tier, ...], amount: Amount) -> Amount:
    total: Amount = 0
    covered: Amount = 0
    for tier in tiers:
        if covered >= amount:
            break
        upper = amount if tier.up_to is None else min(amount, _amount(tier.up_to))
        if upper > covered:
            total, covered = total + (upper - covered) * tier.share, upper
    return total


def _pod_range(model: NodeReservation, vcpu: int) -> PodRange:
    return next(range_ for range_ in model.pods if range_.vcpu_up_to is None or vcpu <= range_.vcpu_up_to)


def _bytes(amount: Amount) -> Quantity:
    return Quantity.of(ceil(amount), "BinarySI")


def _whole(amount: Amount) -> Quantity:
    """Bytes rounded down to KiB, as nodes show them; never less than nothing."""
    return Quantity.of(max(0, amount // _KIBI) * _KIBI, "BinarySI")
