"""The resources of a future node that pods can use: cpu, memory, ephemeral-storage and pods.

Allocatable = capacity - kube-reserved - hard eviction thresholds (kubernetes/kubernetes pkg/kubelet/cm
node_container_manager_linux.go, v1.36), with the cloud's NodeReservation for each. Conservative: a bound that is a
range counts at its worse end, so that a pod that fits here fits on the node. Values measured on a node
(InstanceType.allocatable) have priority. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Final

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.instance_type import InstanceType
from instance_catalog.types.node_reservation import DiskReservation, NodeReservation, PodRange, Tier

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
_KIBI: Final = 1024
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
        MEMORY: _bytes(_kube_memory(model, instance_type.memory.value, pods.most)),
        EPHEMERAL_STORAGE: _bytes(
            _of_disk(model.disk, disk.value) if local is None else model.local_disks.reserved.value
        ),
        **reserved,
    }
    memory = instance_type.memory.value * (1 - model.memory_overhead)
    predicted = {
        CPU: Quantity(max(0, instance_type.vcpu * 1000 - kube[CPU].milli()), -3),
        MEMORY: _whole(memory - kube[MEMORY].value - model.eviction_memory.value),
        EPHEMERAL_STORAGE: _whole(
            (disk.value - _of_disk(model.disk_overhead, disk.value) if local is None else local)
            * (1 - model.eviction_disk)
            - kube[EPHEMERAL_STORAGE].value
        ),
        PODS: Quantity.of(pods.least),
    }
    return FrozenMap({**predicted, **instance_type.allocatable})


def assumes_root_disk(instance_type: InstanceType) -> bool:
    """True if its ephemeral storage is a root disk of unknown size."""
    measured = EPHEMERAL_STORAGE in instance_type.allocatable
    return not measured and _local_disk(instance_type) is None and instance_type.reservation.root_disk.value > 0


def _local_disk(instance_type: InstanceType) -> Fraction | None:
    """Bytes of the local disks that are the node's ephemeral storage; None where its root disk is."""
    family = instance_type.name.partition("-")[0]
    if family not in instance_type.reservation.local_disks.families or not instance_type.local_nvme_gb:
        return None
    return Fraction(instance_type.local_nvme_gb * 10**9)


def _cpu_millis(model: NodeReservation, vcpu: int) -> int:
    return ceil(_tiered(model.cpu_tiers, Fraction(vcpu)) * 1000)


def _kube_memory(model: NodeReservation, memory: Fraction, pods: int) -> Fraction:
    return model.memory_base.value + model.memory_per_pod.value * pods + _tiered(model.memory_tiers, memory)


def _of_disk(model: DiskReservation, disk: Fraction) -> Fraction:
    bounds = [model.base.value + model.share * disk, model.most_share * disk]
    if model.most is not None:
        bounds.append(model.most.value)
    return min(bounds)


def _tiered(tiers: tuple[Tier, ...], amount: Fraction) -> Fraction:
    total, covered = Fraction(0), Fraction(0)
    for tier in tiers:
        if covered >= amount:
            break
        upper = amount if tier.up_to is None else min(amount, tier.up_to.value)
        if upper > covered:
            total, covered = total + (upper - covered) * tier.share, upper
    return total


def _pod_range(model: NodeReservation, vcpu: int) -> PodRange:
    return next(range_ for range_ in model.pods if range_.vcpu_up_to is None or vcpu <= range_.vcpu_up_to)


def _bytes(amount: Fraction) -> Quantity:
    return Quantity.of(ceil(amount), "BinarySI")


def _whole(amount: Fraction) -> Quantity:
    """Bytes rounded down to KiB, as nodes show them; never less than nothing."""
    return Quantity.of(max(0, floor(amount / _KIBI)) * _KIBI, "BinarySI")
