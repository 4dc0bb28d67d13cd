"""References to capacity that machines start in by name: a reservation, or a block or sub-block of one.

A part is read by itself: its hosts, those in use, and their health. A sub-block of A4X is one NVLink domain. Source:
Compute Engine API reference (ReservationBlock, ReservationSubBlock).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from providers.contract import Reservation, ReservationState
from providers.gcp.session import Gcp

# The states of a reservation, or of a part, in which nothing starts any more.
ENDING: Final = frozenset({"DELETING", "INVALID"})


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """A reservation that machines start in. `project` is "" for the adapter's own project. `block` and `sub_block`
    are "" if any part will do."""

    zone: str
    name: str
    project: str = ""
    block: str = ""
    sub_block: str = ""

    @property
    def id(self) -> str:
        """The name in CapacityBlocks and offerings."""
        owner = f"projects/{self.project}/" if self.project else ""
        block = f"/reservationBlocks/{self.block}" if self.block else ""
        sub_block = f"/reservationSubBlocks/{self.sub_block}" if self.sub_block else ""
        return f"{owner}zones/{self.zone}/reservations/{self.name}{block}{sub_block}"

    @property
    def whole(self) -> Ref:
        """The reservation itself, or the one that this is a part of."""
        return replace(self, block="", sub_block="")


def ref_of(zone: str, value: str, project: str) -> Ref:
    """Parse the name in an instance template or a machine: NAME or projects/PROJECT/reservations/NAME, perhaps
    followed by /reservationBlocks/BLOCK and /reservationSubBlocks/SUBBLOCK."""
    parts = value.split("/")
    named = dict(pairwise(parts))
    owner = named.get("projects", "")
    return Ref(
        zone,
        named.get("reservations", parts[0]),
        "" if owner == project else owner,
        named.get("reservationBlocks", ""),
        named.get("reservationSubBlocks", ""),
    )


def read_part(gcp: Gcp, ref: Ref) -> Any:
    """A block or sub-block as Google describes it. Raises ProviderErrors; GoneError if it does not exist."""
    project = {"project": ref.project} if ref.project else {}
    if not ref.sub_block:
        named = {"reservation": ref.name, "reservation_block": ref.block}
        return gcp.call("reservationBlocks.get", about=ref.id, zone=ref.zone, **named, **project).resource
    named = {
        "parent_name": f"reservations/{ref.name}/reservationBlocks/{ref.block}",
        "reservation_sub_block": ref.sub_block,
    }
    return gcp.call("reservationSubBlocks.get", about=ref.id, zone=ref.zone, **named, **project).resource


def of_part(ref: Ref, whole: Reservation, found: Any) -> Reservation:
    """A block or sub-block in which machines start: its own count, and the end of the whole reservation.

    Nothing starts on degraded hosts, and Google does not report whether hosts in use are among them. So the available
    machines are the healthy hosts that are free in every case.
    """
    left, health, status = found.count - found.in_use_count, found.health_info, found.status
    if ref.sub_block and health.degraded_host_count:
        left = min(left, health.healthy_host_count - found.in_use_host_count)
    part = replace(whole, id=ref.id, count=found.count, available=max(min(left, whole.available), 0))
    if status == "READY":
        return replace(part, note=_health_of_part(ref, found))
    state = ReservationState.ENDED if status in ENDING else ReservationState.PENDING
    return replace(part, state=state, available=0, note=f"the status of {found.name} is {status or 'not known'}")


def _health_of_part(ref: Ref, found: Any) -> str:
    """The impaired parts of it. Google moves nothing for them, so a person decides."""
    health = found.health_info
    if ref.sub_block:
        bad, good, what = health.degraded_host_count, health.healthy_host_count, f"hosts of sub-block {found.name}"
    else:
        bad, good = health.degraded_sub_block_count, health.healthy_sub_block_count
        what = f"sub-blocks of block {found.name}"
    if bad:
        return f"{bad} of {bad + good} {what} are degraded: report the faulty hosts"
    if ref.sub_block and health.degraded_infra_count:
        return f"the NVLink domain of sub-block {found.name} is degraded: report the sub-block as faulty"
    return f"{found.name} is degraded: report the faulty hosts" if health.health_status == "DEGRADED" else ""
