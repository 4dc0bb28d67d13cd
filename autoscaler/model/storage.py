"""Volumes, with the parts that bind pods to places."""

from __future__ import annotations

from enum import Enum
from typing import Final

from autoscaler.model.labels import LabelSelector
from autoscaler.model.namespaced import Namespaced
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector
from instance_catalog.kubernetes.quantity import Quantity

_NOTHING = Quantity.of(0)


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """`topology` are its zone and region labels with their values ("a__b" is two); `claim` is namespace/name, and
    `claim_uid` distinguishes it from earlier claims of that name, if it is known.

    `driver` and `handle` are those of a CSI volume; `in_tree` is a volume of a plugin that became a CSI driver, and
    `host_path` a directory of whichever node a pod is on.
    """

    name: str
    node_affinity: NodeSelector | None = None
    topology: FrozenMap[str, tuple[str, ...]] = field(default_factory=FrozenMap)
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    storage_class: str = ""
    attributes_class: str = ""
    capacity: Quantity = _NOTHING
    access_modes: tuple[str, ...] = ()
    block: bool = False
    claim: str = ""
    claim_uid: str = ""
    available: bool = False
    deleting: bool = False
    driver: str = ""
    handle: str = ""
    in_tree: bool = False
    host_path: str = ""
    origin: Origin = field(default=CLUSTER, compare=False)


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim(Namespaced):
    """`volume` is the bound volume's name, None while unbound; one is being created for it at `selected_node`."""

    namespace: str
    name: str
    storage_class: str | None = None
    volume: str | None = None
    access_modes: tuple[str, ...] = ()
    capacity: Quantity = _NOTHING
    selector: LabelSelector | None = None
    block: bool = False
    attributes_class: str = ""
    selected_node: str = ""
    lost: bool = False
    deleting: bool = False
    uid: str = ""
    origin: Origin = field(default=CLUSTER, compare=False)


CLUSTER_DEFAULT: Final = "(the cluster's default)"  # the name of the default class that is not in the snapshot


class VolumeBindingMode(Enum):
    """When the volume of a claim is made and bound."""

    IMMEDIATE = "Immediate"
    WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
    UNKNOWN = ""  # of a class that is not in the snapshot


@dataclass(frozen=True, slots=True)
class StorageClass:
    """`topologies` are allowedTopologies as a node selector; None allows every node."""

    name: str
    binding_mode: VolumeBindingMode = VolumeBindingMode.IMMEDIATE
    topologies: NodeSelector | None = None
    provisioner: str = ""
    default: bool = False
    origin: Origin = field(default=CLUSTER, compare=False)


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """A PersistentVolume that `driver` attaches to a node, whether or not a pod there still uses it."""

    node: str
    driver: str
    volume: str


@dataclass(frozen=True, slots=True)
class StorageCapacity:
    """The free capacity of a StorageClass on some nodes (CSIStorageCapacity); None: no nodes, no capacity."""

    storage_class: str
    nodes: LabelSelector | None
    largest: Quantity | None
