"""The schema of what of a cloud's machines pods cannot use, as pydantic models. Edge code, as schema.py."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from instance_catalog.files.schema import Entry, ProvenanceEntry, QuantityText, Share, Whole
from instance_catalog.kubernetes.quantity import Quantity


def _nothing() -> Quantity:
    return Quantity.of(0)


def _all() -> Fraction:
    return Fraction(1)


class TierEntry(Entry):
    """The reserved share of an amount up to a bound, beyond the bound of the previous tier."""

    share: Share
    up_to: QuantityText | None = None


class MemoryReservedEntry(Entry):
    """kube-reserved memory: base + perPod x pods + tiers of the nominal memory."""

    base: QuantityText = Field(default_factory=_nothing)
    per_pod: QuantityText = Field(default_factory=_nothing)
    tiers: list[TierEntry] = Field(default_factory=list)


class KernelMemoryEntry(Entry):
    """Memory that nodes never show, beside the share: base + tiers of the nominal memory."""

    base: QuantityText = Field(default_factory=_nothing)
    tiers: list[TierEntry] = Field(default_factory=list)


class DiskReservedEntry(Entry):
    """Kube-reserved, or never shown, of a disk: base + share x disk, at most mostShare of the disk and most."""

    base: QuantityText = Field(default_factory=_nothing)
    share: Share = Field(default_factory=Fraction)
    most_share: Share = Field(default_factory=_all)
    most: QuantityText | None = None


class KubeReservedEntry(Entry):
    """The reservation of kubelet and container runtime; CPU tiers are in cores."""

    memory: MemoryReservedEntry = Field(default_factory=MemoryReservedEntry)
    cpu: list[TierEntry] = Field(default_factory=list)
    disk: DiskReservedEntry = Field(default_factory=DiskReservedEntry)


class EvictionEntry(Entry):
    """Hard eviction thresholds: free memory, and the free share of the disk."""

    memory: QuantityText = Field(default_factory=_nothing)
    disk: Share = Field(default_factory=Fraction)


class PodRangeEntry(Entry):
    """The least and the most number of pods on nodes up to a size."""

    vcpu_up_to: Whole | None = Field(None, gt=0)
    least: Whole = Field(gt=0)
    most: Whole = Field(gt=0)


class LocalDisksEntry(Entry):
    """Machine families whose local disks are the ephemeral storage of nodes unless the node pool overrides it."""

    families: list[str] = Field(min_length=1, description='the part of a type\'s name before "-"')
    reserved: QuantityText = Field(description="of the disks, for the system")


class NodeEntry(Entry):
    """The part of a cloud's machines that pods cannot use."""

    cloud: str
    image: str
    memory_overhead: Share = Field(description="share of the nominal memory that nodes never show")
    kernel_memory: KernelMemoryEntry = Field(default_factory=KernelMemoryEntry)
    kube_reserved: KubeReservedEntry
    eviction: EvictionEntry
    root_disk: QuantityText = Field(description="when the node template says nothing")
    disk_overhead: DiskReservedEntry = Field(default_factory=DiskReservedEntry)
    local_disks: LocalDisksEntry | None = None
    max_pods: list[PodRangeEntry] = Field(min_length=1, description="by size; the last without vcpuUpTo")
    provenance: dict[
        Literal[
            "memoryOverhead",
            "kernelMemory",
            "kubeReserved",
            "eviction",
            "rootDisk",
            "diskOverhead",
            "localDisks",
            "maxPods",
        ],
        ProvenanceEntry,
    ] = Field(default_factory=dict)
