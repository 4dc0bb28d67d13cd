"""dra.net: network cards, EFA among them (kubernetes-sigs/dranet v1.4.0 pkg/inventory/db.go).

The card with the default route is never published. The common facts of a kind of card are data (dra.net.yaml, `cards`);
values that only the running interface has (name, addresses) are tokens. Must not know GPUs, except that a card and a
GPU on one PCIe root share its attribute value.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import CardFacts
from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device
from instance_catalog.prediction.driver import Prediction, SliceContents
from instance_catalog.prediction.drivers import aws_neuron
from instance_catalog.prediction.pci import PCIE_ROOT, bus_id, in_name, numa_node, pcie_root
from instance_catalog.prediction.tokens import catalog_gap, of_unit, on_node
from instance_catalog.types.instance_type import InstanceType, NetworkCard

GCP: Final = "gcp"


def runs_on(instance_type: InstanceType) -> bool:
    """True if the type has cards besides the one with the default route."""
    return any(not card.primary for card in instance_type.network_cards)


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice, devices by name."""
    cards = [card for card in _with_neuron_addresses(instance_type) if _passes(card, profile)]
    devices = [_device(instance_type, profile, card, index) for index, card in enumerate(cards)]
    return (SliceContents(tuple(sorted(devices, key=lambda device: device.name))),) if devices else ()


def _passes(card: NetworkCard, profile: DriverProfile) -> bool:
    """True if the driver's filter admits a card."""
    return card.kind != "ena" or not profile.option("no-ena")


def _with_neuron_addresses(instance_type: InstanceType) -> list[NetworkCard]:
    """The cards that are published. EFA cards of Neuron machines sit at the addresses of their device groups."""
    cards = [card for card in instance_type.network_cards if not card.primary]
    addresses = aws_neuron.efa_addresses(instance_type)
    efa = [card for card in cards if card.kind == "efa" and card.placement.bus_id is None]
    if len(efa) != len(addresses):
        return cards
    placed = [
        replace(card, placement=replace(card.placement, bus_id=address))
        for card, address in zip(efa, addresses, strict=True)
    ]
    return [*(card for card in cards if card not in efa), *placed]


def _device(instance_type: InstanceType, profile: DriverProfile, card: NetworkCard, index: int) -> Device:
    address = card.placement.bus_id
    # A device is named by its PCI address. No selector can read names, so one that is not known may be made up.
    name = f"pci-{in_name(address)}" if address else f"{card.kind}-{index:02d}"
    facts = profile.facts.cards[card.kind]
    values = _pci_attributes(instance_type, card, facts, name)
    values |= _interface_attributes(facts, card.kind, name) if facts.netdev else {}
    if card.rdma and not facts.netdev:
        values["dra.net/rdmaDevice"] = _rdma_device(facts, address, name)
    if instance_type.cloud == GCP:
        values |= _gce_attributes(instance_type, name)
    if address is not None and "neuron-device-groups" in profile.features:
        values |= aws_neuron.groups_of_efa(instance_type.name).get(address, {})
    return Device(name, FrozenMap(values))


def _pci_attributes(
    instance_type: InstanceType, card: NetworkCard, facts: CardFacts, name: str
) -> dict[str, AttributeValue]:
    placement = card.placement
    return {
        "dra.net/pciAddress": bus_id(placement.bus_id, name),
        "dra.net/pciVendor": facts.vendor,
        "dra.net/pciDevice": facts.device or catalog_gap("string", card.kind, "pciDevice"),
        "dra.net/pciSubsystem": card.subsystem or facts.subsystem or catalog_gap("string", card.kind, "pciSubsystem"),
        "dra.net/numaNode": numa_node(instance_type, placement.numa_node, name),
        "dra.net/rdma": card.rdma,
        PCIE_ROOT: pcie_root(instance_type, placement.pcie_root, name),
    }


def _interface_attributes(facts: CardFacts, kind: str, name: str) -> dict[str, AttributeValue]:
    """The attributes of a card with a network interface beside its PCI facts (db.go addLinkAttributes)."""
    return {
        "dra.net/ifName": on_node("string", name, "ifName"),
        "dra.net/mac": on_node("string", name, "mac"),
        "dra.net/ipv4": on_node("string", name, "ipv4"),
        "dra.net/mtu": facts.mtu if facts.mtu is not None else on_node("int", name, "mtu"),
        "dra.net/encapsulation": "ether",
        "dra.net/alias": "",
        "dra.net/state": "up",
        "dra.net/type": "device",
        "dra.net/ebpf": False,
        "dra.net/sriov": facts.sriov if facts.sriov is not None else catalog_gap("bool", kind, "sriov"),
        "dra.net/virtual": False,
    }


def _rdma_device(facts: CardFacts, address: str | None, name: str) -> AttributeValue:
    """0000:10:1b.0 → rdmap16s27 on AWS; elsewhere the kernel's choice."""
    if facts.rdma_device is None or address is None:
        return on_node("string", name, "rdmaDevice")
    _, bus, slot = address.partition(".")[0].split(":")
    return facts.rdma_device.format(bus=int(bus, 16), slot=int(slot, 16))


def _gce_attributes(instance_type: InstanceType, name: str) -> dict[str, AttributeValue]:
    """Attributes of Google Cloud (pkg/cloudprovider/gce/gce.go). Block and sub-block are equal on the nodes of one
    placement."""
    return {
        "gce.dra.net/machineType": instance_type.machine_type,
        "gce.dra.net/block": of_unit("string", "placement", "block"),
        "gce.dra.net/subBlock": of_unit("string", "placement", "subBlock"),
        "gce.dra.net/host": on_node("string", "host", "host"),
        "gce.dra.net/networkName": on_node("string", name, "networkName"),
        "gce.dra.net/networkProjectNumber": on_node("int", "project", "networkProjectNumber"),
    }


PREDICTION: Final = Prediction(runs_on, contents)
