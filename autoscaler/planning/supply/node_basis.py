"""What the labels, taints, devices and allocatable resources of a node that does not exist yet follow from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from autoscaler.model.capacity import CapacityBlock, CapacityPool
from autoscaler.model.provisioned_node import OfferingRef
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.types.instance_type import InstanceType


class NodeBasis(Protocol):
    """Either a Candidate, which can be bought, or a Bought, which has been."""

    @property
    def pool(self) -> CapacityPool:
        """Labels, taints and reserved resources of its nodes."""
        ...

    @property
    def instance_type(self) -> InstanceType:
        """The machine."""
        ...

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

    pool: CapacityPool
    instance_type: InstanceType
    drivers: DriverSet
    offering: OfferingRef
    block: CapacityBlock | None = None
