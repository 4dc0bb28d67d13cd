"""The input for the labels, taints, devices and allocatable resources of a future node."""

from __future__ import annotations

from typing import Protocol

from autoscaler.model.capacity import NO_TEMPLATE, CapacityBlock, GroupNodes, NodeTemplateRef
from autoscaler.model.provisioned_node import OfferingRef
from instance_catalog.dataclass import dataclass, field
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import InstanceType


class NodeTerms(Protocol):
    """The part of a CapacityPool that its nodes show; a CapacityPool has all of it."""

    @property
    def name(self) -> str:
        """The pool's name, which is a label of the node."""
        ...

    @property
    def implicit(self) -> bool:
        """No CapacityPool exists, so the node has no label with its name."""
        ...

    @property
    def node_template(self) -> NodeTemplateRef:
        """The template of its machines."""
        ...

    @property
    def labels(self) -> FrozenMap[str, str]:
        """Labels in addition to those that every node has."""
        ...

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Taints that stay."""
        ...

    @property
    def startup_taints(self) -> tuple[Taint, ...]:
        """Taints that are removed before pods start."""
        ...

    @property
    def kubelet_reserved(self) -> FrozenMap[str, Quantity]:
        """Resources that pods do not get."""
        ...

    @property
    def drivers(self) -> tuple[str, ...]:
        """Names of driver profiles; () means Auto."""
        ...

    @property
    def registers(self) -> tuple[GroupNodes, ...]:
        """Further labels and taints, by the group of the node."""
        ...


@dataclass(frozen=True, slots=True)
class RecordedTerms:
    """The terms that the launch recorded, for a node whose CapacityPool is deleted or not available."""

    name: str
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    taints: tuple[Taint, ...] = ()
    kubelet_reserved: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    node_template: NodeTemplateRef = NO_TEMPLATE
    startup_taints: tuple[Taint, ...] = ()
    drivers: tuple[str, ...] = ()
    registers: tuple[GroupNodes, ...] = ()
    implicit: bool = False


class NodeBasis(Protocol):
    """Either a Candidate, which can be bought, or a Bought machine."""

    @property
    def pool(self) -> NodeTerms:
        """Labels, taints and reserved resources of its nodes."""
        ...

    @property
    def instance_type(self) -> InstanceType: ...

    @property
    def drivers(self) -> DriverSet:
        """The drivers that publish its devices."""
        ...

    @property
    def offering(self) -> OfferingRef:
        """Zone and capacity type."""
        ...

    @property
    def block(self) -> CapacityBlock | None:
        """The capacity block that it belongs to."""
        ...


@dataclass(frozen=True, slots=True)
class Bought:
    """A machine that was ordered or exists. Its pool may be deleted, so it is no offering and has no rank or price."""

    pool: NodeTerms
    instance_type: InstanceType
    drivers: DriverSet
    offering: OfferingRef
    block: CapacityBlock | None = None
