"""The position of a device on the PCI bus, as attributes of resource.kubernetes.io (deviceattribute in Kubernetes
1.36).

A value of the catalog is a value; one that only the node has, or the catalog lacks, is a token. Must not know drivers.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.kubernetes.resource_slice import AttributeValue, ListValue
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.instance_type import InstanceType, PcieRoot

PCI_BUS_ID: Final = "resource.kubernetes.io/pciBusID"
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"
NUMA_NODE: Final = "resource.kubernetes.io/numaNode"


def bus_id(address: str | None, device: str) -> AttributeValue:
    """A recorded address, else a token of the node."""
    return address or on_node("string", device, "pciBusID")


def pcie_root(instance_type: InstanceType, root: PcieRoot | None, device: str) -> AttributeValue:
    """A verified root is a value, a group of equal roots a token of the node, an unknown one a gap in the catalog."""
    if root is None:
        return catalog_gap("string", instance_type.name, device, "pcieRoot")
    return root if isinstance(root, str) else on_node("string", str(root.group), "pcieRoot")


def numa_node(instance_type: InstanceType, node: int | None, device: str, *, as_list: bool = False) -> AttributeValue:
    """A recorded NUMA node, on its own or as the only one of a list, else a gap in the catalog."""
    if node is None:
        return catalog_gap("int", instance_type.name, device, "numaNode")
    return ListValue("int", (node,)) if as_list else node


def in_name(address: str) -> str:
    """An address as it stands in device names: 0000:53:00.0 → 0000-53-00-0."""
    return address.replace(":", "-").replace(".", "-")
