"""Reservations and future reservations: what they are follows from the clock, as do the machines that they stop."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from google.cloud import compute_v1

Write = Callable[[datetime], str]


@dataclass
class SubBlock:
    """Hosts of one NVLink domain, a machine on each. `degraded` hosts start nothing; `broken`: the domain itself."""

    name: str
    hosts: int
    degraded: int = 0
    broken: bool = False
    status: str = "READY"


@dataclass
class Block:
    """A block of a reservation."""

    name: str
    sub_blocks: tuple[SubBlock, ...]

    @property
    def hosts(self) -> int:
        """Of all its sub-blocks."""
        return sum(one.hosts for one in self.sub_blocks)


@dataclass(frozen=True, slots=True)
class Named:
    """What an instance template names: NAME or projects/OWNER/reservations/NAME, and perhaps a block and sub-block."""

    name: str
    owner: str = ""
    block: str = ""
    sub_block: str = ""

    def within(self, block: str, sub_block: str = "") -> bool:
        """Whether it is this block or sub-block, or a part of it."""
        return self.block == block and sub_block in ("", self.sub_block)


_NAMED: Final = re.compile(
    r"(?:projects/(?P<owner>[^/]+)/reservations/)?(?P<name>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<sub_block>[^/]+))?)?"
)


def named(text: str) -> Named:
    """What it says."""
    found = _NAMED.fullmatch(text)
    assert found is not None, f"no reservation is named like {text!r}"
    return Named(**{key: value or "" for key, value in found.groupdict().items()})


@dataclass
class Holding:
    """A reservation. `future` is the name of the future reservation that makes it, "" for one that somebody made.

    `mode` is that future reservation's: CALENDAR stops the machines at the end, DEFAULT leaves them. `late` is how long
    after its start it is delivered. `told`: the future reservation says beforehand what its reservation is called.
    `taken` is what somebody else uses. `override` is a procurement status set by hand. `owner` is another project that
    shares it, "" for the own. `degraded` are blocks of it that are not healthy. `blocks` are its parts, where a test
    names some. `chips`: it holds so many TPU chips, whichever machines of the family of `machine_type` start in it, and
    `count` and `taken` count for nothing; `used_chips` is what somebody else uses. `usable` are those of `count` that
    can be used now, where it is not all of them.
    """

    name: str
    zone: str
    machine_type: str
    count: int
    created: datetime
    starts: datetime
    ends: datetime | None = None
    future: str = ""
    mode: str = "CALENDAR"
    late: timedelta = timedelta(0)
    told: bool = True
    taken: int = 0
    override: str = ""
    owner: str = ""
    status: str = "READY"
    degraded: int = 0
    blocks: tuple[Block, ...] = ()
    chips: int = 0
    used_chips: int = 0
    usable: int | None = None
    deleted_after: timedelta | None = None  # how long after its creation Google deletes it, where it says that alone
    asked: tuple[datetime, int] | None = None  # the end and the machines of a change that is under review

    @property
    def family(self) -> str:
        """What names of its machine types begin with."""
        return self.machine_type.partition("-")[0]

    @property
    def bound(self) -> bool:
        """Whether machines live no longer than it."""
        return bool(self.future) and self.mode == "CALENDAR"

    def exists(self, now: datetime) -> bool:
        """Whether there is a reservation, as opposed to a future one."""
        if self.override not in ("", "FULFILLED", "FAILED_PARTIALLY_FULFILLED"):
            return False
        return self.starts + self.late <= now and (self.ends is None or now < self.ends)

    def procurement(self, now: datetime) -> str:
        """FutureReservation.status.procurementStatus."""
        if self.override:
            return self.override
        if now < self.starts - timedelta(hours=1):
            return "COMMITTED"
        if now < self.starts:
            return "PROCURING"
        return "PROVISIONING" if now < self.starts + self.late else "FULFILLED"

    def refusal(self, machine_type: str, model: str, used: int, now: datetime) -> tuple[str, str] | None:
        """Why a machine cannot be started in it."""
        if not self.exists(now):
            return "INVALID_USAGE", f"Specified reservations [{self.name}] do not exist."
        if self.status != "READY":
            return "RESOURCE_NOT_READY", f"it requires reservation to be in READY state: {self.name}"
        if machine_type != self.machine_type and not (self.chips and machine_type.startswith(f"{self.family}-")):
            return "INVALID_USAGE", f"No available resources in specified reservations {self.name} for {machine_type}"
        if self.bound and model != "RESERVATION_BOUND":
            return "INVALID_FIELD_VALUE", f"{self.name} needs provisioningModel RESERVATION_BOUND"
        full = used + self.taken >= self.count
        if self.chips:
            full = used + self.used_chips + chips_of(machine_type) > self.chips
        if full:
            text = f"Specified reservation '{self.name}' does not have available resources for the request."
            return "INVALID_USAGE", text
        return None


def chips_of(machine_type: str) -> int:
    """How many TPU chips a machine has."""
    found = re.search(r"-(\d+)t$", machine_type)
    assert found is not None, machine_type
    return int(found[1])


def _aggregate(found: Holding, used: int) -> compute_v1.AllocationAggregateReservation:
    """Chips as reservations name them."""
    families = compute_v1.AllocationAggregateReservation.VmFamily
    family = next(one.name for one in families if one.name.endswith(f"_{found.family.upper()}"))

    def accelerators(count: int) -> list[compute_v1.AllocationAggregateReservationReservedResourceInfo]:
        of = compute_v1.AllocationAggregateReservationReservedResourceInfoAccelerator(accelerator_count=count)
        return [compute_v1.AllocationAggregateReservationReservedResourceInfo(accelerator=of)]

    used = min(used + found.used_chips, found.chips)
    return compute_v1.AllocationAggregateReservation(
        vm_family=family,
        workload_type="BATCH",
        reserved_resources=accelerators(found.chips),
        in_use_resources=accelerators(used) if used else [],
    )


def reservation(found: Holding, used: int, zone_url: str, write: Write) -> compute_v1.Reservation:
    """As reservations.get answers. `write` writes times."""
    health = compute_v1.AllocationResourceStatusHealthInfo(
        degraded_block_count=found.degraded,
        healthy_block_count=1,
        health_status="DEGRADED" if found.degraded else "HEALTHY",
    )
    machines = compute_v1.AllocationSpecificSKUReservation(
        count=found.count,
        assured_count=found.count if found.usable is None else found.usable,
        in_use_count=min(used + found.taken, found.count),
        instance_properties=compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(
            machine_type=found.machine_type
        ),
    )
    held = {"aggregate_reservation": _aggregate(found, used)} if found.chips else {"specific_reservation": machines}
    after = found.deleted_after
    return compute_v1.Reservation(
        id=zlib.crc32(f"{found.owner}/{found.zone}/{found.name}/{found.created}".encode()) + 1,
        name=found.name,
        zone=zone_url,
        status=found.status,
        creation_timestamp=write(found.created if not found.future else found.starts),
        delete_at_time=write(found.ends) if found.ends is not None and after is None else "",
        delete_after_duration=compute_v1.Duration(seconds=int(found.deleted_after.total_seconds()))
        if found.deleted_after
        else None,
        deployment_type="DENSE" if found.future else "",
        specific_reservation_required=True,
        resource_status=compute_v1.AllocationResourceStatus(health_info=health),
        **held,
    )


def future_reservation(found: Holding, now: datetime, zone_url: str, write: Write) -> compute_v1.FutureReservation:
    """As futureReservations.list answers."""
    assert found.ends is not None
    made = now >= found.starts + found.late
    ends, count = found.asked or (found.ends, found.count)
    machines = _machines(found, count)
    held = {"aggregate_reservation": _aggregate(found, 0)} if found.chips else {"specific_sku_properties": machines}
    return compute_v1.FutureReservation(
        name=found.future,
        zone=zone_url,
        reservation_mode=found.mode,
        planning_status="SUBMITTED",
        reservation_name=found.name if found.told else "",
        deployment_type="DENSE",
        time_window=compute_v1.FutureReservationTimeWindow(start_time=write(found.starts), end_time=write(ends)),
        **held,
        status=compute_v1.FutureReservationStatus(
            **(_in_review(found, write) if found.asked else {}),
            procurement_status=found.procurement(now),
            auto_created_reservations=[f"{zone_url}/reservations/{found.name}"] if made else [],
            fulfilled_count=found.count if made else 0,
        ),
    )


def _machines(found: Holding, count: int) -> compute_v1.FutureReservationSpecificSKUProperties:
    of = compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(machine_type=found.machine_type)
    return compute_v1.FutureReservationSpecificSKUProperties(total_count=count, instance_properties=of)


def _in_review(found: Holding, write: Write) -> Mapping[str, Any]:
    """What a status has besides while a change is under review: what holds until then."""
    assert found.ends is not None
    window = compute_v1.FutureReservationTimeWindow(start_time=write(found.starts), end_time=write(found.ends))
    specs = compute_v1.FutureReservationStatusLastKnownGoodStateFutureReservationSpecs(
        time_window=window, specific_sku_properties=_machines(found, found.count)
    )
    known = compute_v1.FutureReservationStatusLastKnownGoodState(future_reservation_specs=specs)
    return {"amendment_status": "AMENDMENT_IN_REVIEW", "last_known_good_state": known}
