"""dra.networking.k8s.aws: the RDMA cards of AWS machines, as AWS's own driver publishes them.

The driver is not open source; data/drivers/dra.networking.k8s.aws.yaml has the measured facts and their sources. A fact
that was not measured is a gap of the catalog, so that a claim which reads it is unknown. Must not know DRANET, which
publishes the same cards in another way.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device
from instance_catalog.prediction.driver import Prediction, SliceContents
from instance_catalog.prediction.pci import PCIE_ROOT, pcie_root
from instance_catalog.prediction.tokens import catalog_gap
from instance_catalog.types.instance_type import InstanceType, NetworkCard

AWS: Final = "aws"
DRIVER: Final = "dra.networking.k8s.aws"
DEVICE_TYPE: Final = "dra.vpc.amazonaws.com/deviceType"
# NetworkCard.kind → the value that nodes published.
DEVICE_TYPES: Final = {"rdma": "roce"}


def runs_on(instance_type: InstanceType) -> bool:
    """True if the type is one of AWS with RDMA cards."""
    return bool(_cards(instance_type))


def in_auto_pools(instance_type: InstanceType) -> bool:
    """True if all its RDMA cards are of a kind whose devices were measured."""
    return all(card.kind in DEVICE_TYPES for card in _cards(instance_type))


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice, a device for each RDMA card."""
    del profile, kubernetes
    cards = _cards(instance_type)
    devices = tuple(_device(instance_type, card, f"{card.kind}-{index:02d}") for index, card in enumerate(cards))
    return (SliceContents(devices),) if devices else ()


def _cards(instance_type: InstanceType) -> list[NetworkCard]:
    if instance_type.cloud != AWS:
        return []
    return [card for card in instance_type.network_cards if card.rdma and not card.primary]


def _device(instance_type: InstanceType, card: NetworkCard, name: str) -> Device:
    """Its real name is that of the RDMA device. No selector can read names, so it may be made up."""
    known = DEVICE_TYPES.get(card.kind)
    values: dict[str, AttributeValue] = {
        DEVICE_TYPE: known or catalog_gap("string", DRIVER, card.kind, "deviceType"),
        PCIE_ROOT: pcie_root(instance_type, card.placement.pcie_root, name),
    }
    return Device(name, FrozenMap(values))


PREDICTION: Final = Prediction(runs_on, contents, in_implicit_pools=False, in_auto_pools=in_auto_pools)
