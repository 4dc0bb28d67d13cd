"""Labels that pods select in clusters of GKE, EKS and Karpenter, by instance type and by capacity type.

The source of these labels on a node:

    GKE                     its node pools, on every node. The name of a node pool, and labels that users gave it, are
                            unknown here: spec.labels of the CapacityPool has them (docs/gcp.md)
    AWS, direct launches    the launch: kubelet registers with them (--node-labels), which it may for every key outside
                            of kubernetes.io and k8s.io. So a pod that was written for Karpenter's nodes fits them
    AWS, node groups        EKS or the group's own template: unknown here, so nothing is predicted

The id of a zone (topology.k8s.aws/zone-id) is not predicted: which zone has it differs between accounts. Values that
the catalog does not have (hypervisor, maker of the CPU, bandwidths) are left out. Karpenter's keys and values:
aws/karpenter-provider-aws 027ed24 pkg/providers/instancetype/types.go, computeRequirements. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import CapacityType, InstanceType

_FAMILY: Final = re.compile(r"([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.", re.ASCII)
_MEBIBYTE: Final = 2**20
_GPU_VENDORS: Final = frozenset({"NVIDIA", "AMD", "Habana"})  # the others are no GPUs for the EC2 API
_EKS_CAPACITY: Final = {
    CapacityType.CAPACITY_BLOCK: "CAPACITY_BLOCK",
    CapacityType.RESERVED: "ON_DEMAND",
    CapacityType.SPOT: "SPOT",
    CapacityType.ON_DEMAND: "ON_DEMAND",
}

# Reserved capacity has no entry, and flex-start no GKE_PROVISIONING: which value GKE writes for them was not seen.
_GKE_CAPACITY: Final = {
    CapacityType.FLEX_START: FrozenMap({labels.GKE_FLEX_START: "true"}),
    CapacityType.SPOT: FrozenMap({labels.GKE_SPOT: "true", labels.GKE_PROVISIONING: "spot"}),
    CapacityType.ON_DEMAND: FrozenMap({labels.GKE_PROVISIONING: "standard"}),
}


SYSTEM_KEYS: Final = frozenset(
    {
        labels.GKE_ACCELERATOR,
        labels.GKE_ACCELERATOR_COUNT,
        labels.GKE_GPU,
        labels.GKE_METADATA_SERVER,
        labels.GKE_MACHINE_FAMILY,
        labels.GKE_SPOT,
        labels.GKE_FLEX_START,
        labels.GKE_PROVISIONING,
        labels.KARPENTER_CAPACITY_TYPE,
        labels.EKS_CAPACITY_TYPE,
        labels.KARPENTER_FAMILY,
        labels.KARPENTER_SIZE,
        labels.KARPENTER_CATEGORY,
        labels.KARPENTER_GENERATION,
        labels.KARPENTER_CPU,
        labels.KARPENTER_MEMORY,
        labels.KARPENTER_LOCAL_NVME,
        labels.KARPENTER_GPU_NAME,
        labels.KARPENTER_GPU_MANUFACTURER,
        labels.KARPENTER_GPU_COUNT,
        labels.KARPENTER_GPU_MEMORY,
    }
)

# Labels whose value is a model of accelerator, for which a misspelling can be found.
ACCELERATOR_KEYS: Final = (labels.GKE_ACCELERATOR, labels.GKE_TPU_ACCELERATOR)
# A selector with one of these keys chooses the machine.
MACHINE_KEYS: Final = frozenset({labels.GKE_ACCELERATOR, labels.GKE_COMPUTE_CLASS, labels.GKE_MACHINE_FAMILY})
# Labels that nodes with any model, or none, may have: they do not choose a machine.
OF_ANY_MODEL: Final = frozenset(
    {
        *(labels.GKE_NVIDIA_GPU_DRA_DRIVER, labels.GKE_NO_DEVICE_PLUGIN, labels.GKE_TPU_DRA_DRIVER),
        *(labels.GKE_METADATA_SERVER, labels.GKE_GPU),
        *(labels.GKE_SPOT, labels.GKE_FLEX_START, labels.GKE_PROVISIONING),
        *(labels.KARPENTER_CAPACITY_TYPE, labels.EKS_CAPACITY_TYPE),
    }
)


def accelerator_names(key: str, types: Iterable[InstanceType]) -> frozenset[str]:
    """The values of one of ACCELERATOR_KEYS that nodes of these types have."""
    models = [one.accelerator for one in types if one.cloud == "gcp" and one.accelerator is not None]
    if key == labels.GKE_TPU_ACCELERATOR:
        return frozenset(model.node_label for model in models if model.vendor == "Google" and model.node_label)
    return frozenset(
        model.api_names["gcp"] for model in models if model.vendor != "Google" and "gcp" in model.api_names
    )


@lru_cache(maxsize=1024)
def type_labels(instance_type: InstanceType) -> FrozenMap[str, str]:
    make = {"aws": _karpenter, "gcp": _gke}.get(instance_type.cloud)
    return FrozenMap(make(instance_type)) if make else EMPTY


@lru_cache(maxsize=64)
def capacity_labels(cloud: str, capacity_type: CapacityType) -> FrozenMap[str, str]:
    """The labels of a node by its capacity type. Karpenter has no capacity blocks: they are reserved."""
    if cloud == "aws":
        prepaid = capacity_type == CapacityType.CAPACITY_BLOCK
        karpenter = CapacityType.RESERVED if prepaid else capacity_type
        return FrozenMap(
            {
                labels.KARPENTER_CAPACITY_TYPE: karpenter.value,
                labels.EKS_CAPACITY_TYPE: _EKS_CAPACITY.get(capacity_type, "ON_DEMAND"),
            }
        )
    return _GKE_CAPACITY.get(capacity_type, EMPTY) if cloud == "gcp" else EMPTY


@lru_cache(maxsize=8)
def assumed_labels(cloud: str) -> FrozenMap[str, str]:
    """Labels of nodes with an option that any node pool may have and users enabled; plans without a CapacityPool assume
    them.

    GKE sets the label of Workload Identity with --workload-metadata=GKE_METADATA, which Autopilot always has (GKE
    documentation, "Authenticate to Google Cloud APIs from GKE workloads", 2026-11).
    """
    return FrozenMap({labels.GKE_METADATA_SERVER: "true"}) if cloud == "gcp" else EMPTY


def _karpenter(t: InstanceType) -> dict[str, str]:
    family, _, size = t.machine_type.partition(".")
    named = _FAMILY.match(t.machine_type)
    found = {
        labels.KARPENTER_FAMILY: family,
        labels.KARPENTER_SIZE: size,
        labels.KARPENTER_CATEGORY: named[1] if named else "",
        labels.KARPENTER_GENERATION: named[2] if named else "",
        labels.KARPENTER_CPU: str(t.vcpu),
        labels.KARPENTER_MEMORY: str(t.memory.int64_value() // _MEBIBYTE),
        labels.KARPENTER_LOCAL_NVME: str(t.local_nvme_gb) if t.local_nvme_gb else "",
        **_gpu(t),
    }
    return {key: value for key, value in found.items() if value}


def _gpu(t: InstanceType) -> dict[str, str]:
    accelerator = t.accelerator
    if accelerator is None or t.share or accelerator.vendor not in _GPU_VENDORS:
        return {}
    memory = accelerator.api_memory
    size = memory.int64_value() if memory is not None else 0
    return {
        labels.KARPENTER_GPU_NAME: accelerator.api_names.get("aws", "").lower().replace(" ", "-"),
        labels.KARPENTER_GPU_MANUFACTURER: accelerator.vendor.lower(),
        labels.KARPENTER_GPU_COUNT: str(t.device_count),
        labels.KARPENTER_GPU_MEMORY: str(size // _MEBIBYTE) if size and size % _MEBIBYTE == 0 else "",
    }


def _gke(t: InstanceType) -> dict[str, str]:
    found = {labels.GKE_MACHINE_FAMILY: t.machine_type.partition("-")[0]}
    accelerator = t.accelerator
    if accelerator is None or accelerator.vendor != "NVIDIA":
        return found  # of TPUs, prediction/drivers/google_tpu.py knows more: the slice's topology
    found[labels.GKE_GPU] = "true"
    name = accelerator.api_names.get("gcp")
    if name:
        found[labels.GKE_ACCELERATOR] = name
        if not t.share:
            found[labels.GKE_ACCELERATOR_COUNT] = str(t.device_count)
    return found
