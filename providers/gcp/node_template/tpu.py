"""Recognises TPU slices of several hosts by the machine type and the topology label of GKE's nodes.

GKE writes the labels of a node pool's nodes into its instance template, and each machine has them in its metadata. So a
group and a machine of it give the same answer, and no policy is read. Source: GKE, multi-host TPU slice node pools.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from instance_catalog.kubernetes import labels

# ct6e-standard-4t has four chips.
_CHIPS: Final = re.compile(r"(?:ct|tpu)\w+-[a-z]+-(\d{1,2})t\Z")
_TOPOLOGY: Final = re.compile(r"\d{1,4}(?:x\d{1,4}){1,2}\Z")


def chips_of(machine_type: str) -> int:
    """The number of chips of a machine; 0 if it is no TPU machine."""
    found = _CHIPS.match(machine_type)
    return int(found[1]) if found is not None else 0


def hosts_of(machine_type: str, topology: str) -> int:
    """The number of machines that form a slice of this topology and exist only together; 1 for all other machines."""
    chips = chips_of(machine_type)
    if not chips or not _TOPOLOGY.match(topology):
        return 1
    return max(1, math.prod(map(int, topology.split("x"))) // chips)


def slice_topology(machine_type: str, placement: Mapping[str, Any]) -> str:
    """The topology in a node pool's placement policy if it is a slice of several hosts; "" for all other node pools.

    A policy places the machines of TPU7x, and names no topology here.
    """
    topology = str(placement.get("tpuTopology", ""))
    if not chips_of(machine_type) or not (topology or placement.get("policyName")):
        return ""
    alone = topology and hosts_of(machine_type, topology) == 1
    return "" if alone else topology or f"policy {placement['policyName']}"


def kube_labels(metadata: Any) -> dict[str, str]:
    """The labels of GKE's nodes, from the metadata of an instance template or a machine."""
    text = next((item.value for item in metadata.items if item.key == "kube-labels"), "")
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {key: value for key, _, value in pairs}


def topology_of(found: Mapping[str, str]) -> str:
    """The topology in labels; "" if there is none."""
    return found.get(labels.GKE_TPU_TOPOLOGY, "")
