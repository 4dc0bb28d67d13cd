"""The part of a machine that pods cannot use: a model per cloud and node image, as values.

The numbers are data (data/nodes.yaml) with their sources. Pure; node_allocatable.py applies them to an instance type.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.provenance import Provenance

_NOTHING = Quantity.of(0)


@dataclass(frozen=True, slots=True)
class Tier:
    """The reserved `share` of an amount between the bound of the previous tier and `up_to` (None: no bound)."""

    share: Fraction
    up_to: Quantity | None = None


@dataclass(frozen=True, slots=True)
class PodRange:
    """A node of up to `vcpu_up_to` vCPUs (None: of any size) takes at least `least` and at most `most` pods."""

    least: int
    most: int
    vcpu_up_to: int | None = None


@dataclass(frozen=True, slots=True)
class DiskReservation:
    """A part of a root disk: base + share x size, at most `most_share` of it and `most`."""

    base: Quantity = _NOTHING
    share: Fraction = Fraction(0)
    most_share: Fraction = Fraction(1)
    most: Quantity | None = None


@dataclass(frozen=True, slots=True)
class LocalDisks:
    """Machine families (the part of a type's name before "-") whose local disks, less `reserved`, are the ephemeral
    storage of a node, unless its node pool overrides it."""

    families: tuple[str, ...] = ()
    reserved: Quantity = _NOTHING


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """The reservation of hypervisor, kernel and kubelet. The default reserves nothing.

    `memory_overhead` is the share of the nominal memory that the node never shows as its capacity; beside it,
    `kernel_base` + `kernel_tiers`. kube-reserved memory is `memory_base` + `memory_per_pod` x pods + `memory_tiers`;
    CPU is `cpu_tiers`, in cores. `eviction_memory` and `eviction_disk` (a share) are hard eviction thresholds.
    `root_disk` is the size if the node template sets none; `disk_overhead` is what partitions of the image and the
    tables of the file system take of it.
    """

    image: str = ""
    memory_overhead: Fraction = Fraction(0)
    kernel_base: Quantity = _NOTHING
    kernel_tiers: tuple[Tier, ...] = ()
    memory_base: Quantity = _NOTHING
    memory_per_pod: Quantity = _NOTHING
    memory_tiers: tuple[Tier, ...] = ()
    cpu_tiers: tuple[Tier, ...] = ()
    eviction_memory: Quantity = _NOTHING
    eviction_disk: Fraction = Fraction(0)
    disk: DiskReservation = DiskReservation()
    root_disk: Quantity = _NOTHING
    disk_overhead: DiskReservation = DiskReservation()
    local_disks: LocalDisks = LocalDisks()
    pods: tuple[PodRange, ...] = (PodRange(110, 110),)
    provenance: FrozenMap[str, Provenance] = field(default_factory=FrozenMap)


NOTHING_RESERVED: Final = NodeReservation()
