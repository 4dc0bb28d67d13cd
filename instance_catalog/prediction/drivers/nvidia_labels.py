"""The node labels of NVIDIA GPU feature discovery, which the GPU Operator runs and many manifests select.

Read at k8s-device-plugin v0.20.0 (internal/lm/resource.go, nvml.go): one set of labels for whole, unshared GPUs. A
label whose value is uncertain is left out, so that no pod is planned for a node because of it. Node feature discovery
beside it names PCI devices by their vendor alone (nfd.worker.config in the chart's values.yaml).
"""

from __future__ import annotations

import re
from typing import Final

from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import Accelerator, InstanceType

OPTION: Final = "feature-discovery"
_FAMILIES: Final = {"Ada Lovelace": "ada-lovelace"}
_UNWRITABLE: Final = re.compile(r"[^A-Za-z0-9-_. ]")
_MEBI: Final = 2**20


def discovered(instance_type: InstanceType, *, partitioned: bool) -> dict[str, str]:
    """The labels of a node of the type; for partitioned GPUs only those that do not depend on the MIG strategy."""
    card = instance_type.accelerator
    if card is None:
        return {}
    found = {labels.NVIDIA_PCI_PRESENT: "true", labels.NVIDIA_MIG_CAPABLE: str(card.mig).lower()}
    if card.architecture:
        found[labels.NVIDIA_GPU_FAMILY] = _FAMILIES.get(card.architecture, card.architecture.lower())
    if card.cuda_compute_capability:
        major, minor, *_ = card.cuda_compute_capability.split(".")
        found |= {labels.NVIDIA_COMPUTE_MAJOR: major, labels.NVIDIA_COMPUTE_MINOR: minor}
    if partitioned:
        return found
    found |= {labels.NVIDIA_GPU_SHARING: "none", labels.NVIDIA_MPS_CAPABLE: "false"}
    found |= {labels.NVIDIA_GPU_COUNT: str(instance_type.device_count), labels.NVIDIA_GPU_REPLICAS: "1"}
    if card.product_name:
        found[labels.NVIDIA_GPU_PRODUCT] = product_label(card)
    if card.memory is not None and card.memory_bounds is None:
        found[labels.NVIDIA_GPU_MEMORY] = str(card.memory.int64_value() // _MEBI)
    return found


def product_label(card: Accelerator) -> str:
    """The name of the product as the value of a label; "" if unknown."""
    return "-".join(_UNWRITABLE.sub("", card.product_name or "").split())
