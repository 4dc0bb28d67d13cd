"""Volumes as far as they bind pods to places, PriorityClasses are resolved at the edge and do not appear here."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.node_selector import NodeSelector


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """`zones` are its topology.kubernetes.io/zone label values ("a__b" splits into two)."""

    name: str
    node_affinity: NodeSelector | None = None
    zones: tuple[str, ...] = ()
    origin: Origin = field(default=CLUSTER, compare=False)


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """`volume` is the bound volume's name, None while unbound."""

    namespace: str
    name: str
    storage_class: str | None = None
    volume: str | None = None
    access_modes: tuple[str, ...] = ()
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class StorageClass:
    """`topologies` are allowedTopologies as a node selector; None allows every node."""

    name: str
    binding_mode: str = "Immediate"
    topologies: NodeSelector | None = None
    provisioner: str = ""
    default: bool = False
    origin: Origin = field(default=CLUSTER, compare=False)
