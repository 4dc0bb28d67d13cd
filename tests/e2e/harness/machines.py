"""Nodes of catalog types, with concrete slices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from autoscaler.model.node import Node
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import HOSTNAME
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.concrete import make_concrete
from instance_catalog.prediction.predict import node_labels, predict
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType
from instance_catalog.types.node_allocatable import node_allocatable


@dataclass(frozen=True, slots=True)
class Machine:
    """A node and what its drivers publish."""

    node: Node
    slices: tuple[ResourceSlice, ...]


def machine(type_name: str, name: str, *, variant: int = 0) -> Machine:
    """A node of the type with one of the driver sets that plans offer: 0 is the plainest, -1 the last."""
    kind = _catalog().types[type_name]
    variants = implicit_driver_sets(kind, REFERENCE)
    return _made(kind, variants[variant % len(variants)], name)


@cache
def _catalog() -> Catalog:
    """Read once: it takes longer than to make a machine of it."""
    return load_catalog()


def _made(kind: InstanceType, drivers: DriverSet, name: str) -> Machine:
    labels = node_labels(kind, drivers).with_items({HOSTNAME: name})
    node = Node(name, labels=labels, allocatable=node_allocatable(kind))
    slices = make_concrete(predict(kind, drivers, kubernetes=REFERENCE, node_name=name), node_name=name)
    return Machine(node, tuple(_published(piece) for piece in slices))


def _published(piece: ResourceSlice) -> ResourceSlice:
    """As it is read back: what a driver has published is no guess any more."""
    return replace(
        piece,
        devices=tuple(
            replace(device, capacity=FrozenMap({k: replace(v, guess=False) for k, v in device.capacity.items()}))
            for device in piece.devices
        ),
    )
