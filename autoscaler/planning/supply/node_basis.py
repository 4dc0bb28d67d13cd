"""What the labels, taints, devices and allocatable resources of a node that does not exist yet follow from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from autoscaler.model.capacity import NO_TEMPLATE, CapacityBlock, GroupNodes, NodeTemplateRef
from autoscaler.model.provisioned_node import OfferingRef
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
        """No CapacityPool exists, so the node has no label of one."""
        ...

    @property
    def node_template(self) -> NodeTemplateRef:
        """The template that its machines are launched with."""
        ...

    @property
    def labels(self) -> FrozenMap[str, str]:
        """Labels beside those that every node has."""
        ...

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Taints that stay."""
        ...

    @property
    def startup_taints(self) -> tuple[Taint, ...]:
        """Taints that are removed before pods come."""
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
        """Further labels and taints, by the group that starts the node."""
        ...


@dataclass(frozen=True, slots=True)
class RecordedTerms:
    """The terms of a node whose CapacityPool is gone or not at hand, as the launch recorded them."""

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
    """Either a Candidate, which can be bought, or a Bought, which has been."""

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
        """The capacity block that it is part of."""
        ...


@dataclass(frozen=True, slots=True)
class Bought:
    """A machine that was ordered or is there. Its pool may be gone, so it is no offering and has no rank or price."""

    pool: NodeTerms
    instance_type: InstanceType
    drivers: DriverSet
    offering: OfferingRef
    block: CapacityBlock | None = None
