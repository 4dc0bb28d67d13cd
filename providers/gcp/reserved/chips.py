"""Reserved TPUs: a number of chips of one machine family, for any machine type of that family.

An aggregate reservation names no machine type. The groups that start machines in it have one, and the reservation is
counted in machines of this type. Sources: google-cloud-compute 1.56.0 (AllocationAggregateReservation, its VmFamily,
and FutureResourcesSpecAggregateResources); gcloud's source for the names of TPU versions in `compute advice
calendar-mode` and `compute future-reservations create`, read 2026-11.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from providers.contract import Reservation, ReservationState
from providers.gcp.node_template.tpu import chips_of

# The TPUs of calendar mode, by the family at the start of machine types: gcloud's --tpu-version, and vmFamily.
SOLD: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "ct5lp": ("V5E", "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT5LP"),
        "ct5p": ("V5P", "VM_FAMILY_CLOUD_TPU_POD_SLICE_CT5P"),
        "ct6e": ("V6E", "VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E"),
        "tpu7x": ("TPU7X", "VM_FAMILY_CLOUD_TPU_POD_SLICE_TPU7X"),
    }
)


@dataclass(frozen=True, slots=True)
class Chips:
    """A number of chips for machines whose types begin with `family`, which is "" if Google does not name it."""

    family: str
    reserved: int
    used: int = 0

    def refuses(self, machine_type: str) -> str:
        """The reason why machines of a type cannot start in it; "" if they can."""
        if chips_of(machine_type) and family_of(machine_type) == self.family:
            return ""
        return f"it holds {self.reserved} TPU chips for {self.family or 'unnamed'} machines, and not {machine_type}"


def family_of(machine_type: str) -> str:
    """The family of a machine type, such as "ct6e" of ct6e-standard-4t."""
    return machine_type.partition("-")[0]


def reserved_chips(found: Any) -> Chips | None:
    """The chips of a reservation or future reservation; None if it has machines of one type."""
    if "aggregate_reservation" not in found:
        return None
    aggregate = found.aggregate_reservation
    family = aggregate.vm_family.rpartition("_")[2].lower()  # VM_FAMILY_CLOUD_TPU_LITE_POD_SLICE_CT6E
    return Chips(family, _sum(aggregate.reserved_resources), _sum(aggregate.in_use_resources))


def together(parts: Collection[Chips], known: Chips) -> Chips:
    """The chips of all reservations that Google has created for a future one; `known` has the family."""
    return replace(known, reserved=sum(one.reserved for one in parts), used=sum(one.used for one in parts))


def in_machines(found: Reservation, chips: Chips, types: Collection[str]) -> Reservation:
    """The reservation counted in machines of these types, which groups start in it."""
    fitting = sorted({one for one in types if not chips.refuses(one)})
    if len(fitting) == 1:
        (machine_type,) = fitting
        each = chips_of(machine_type)
        left = max(chips.reserved - chips.used, 0) // each if found.state is ReservationState.ACTIVE else 0
        return replace(found, instance_type=machine_type, count=chips.reserved // each, available=left)
    if fitting:
        why = f"groups start {' and '.join(fitting)} in it, and its chips are counted in machines of one type"
    else:
        why = f"it holds {chips.reserved} TPU chips, and no group starts {chips.family or 'such'} machines in it"
    state = ReservationState.PENDING if found.state is ReservationState.ACTIVE else found.state
    return replace(found, state=state, count=0, available=0, note=found.note or why)


def _sum(resources: Any) -> int:
    return sum(one.accelerator.accelerator_count for one in resources)
