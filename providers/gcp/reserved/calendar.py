"""Asks Google when capacity of calendar mode is available. Only a user's command calls it, and it reserves nothing.

Google recommends one window, or none, and gives a reason for every other zone. It names no price. GPUs are reserved by
the machine, TPUs in chips (chips.py). Sources: Compute Engine API reference (advice.calendarMode); documentation of
calendar mode for the limits; gcloud's source for the request for TPUs, read 2026-11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from providers.errors import (
    GoneError,
    PermissionDeniedError,
    RefusedError,
    TemplateError,
    ThrottledError,
    UncertainError,
    understood,
)
from providers.gcp.node_template.tpu import chips_of
from providers.gcp.reserved.chips import SOLD, family_of
from providers.gcp.session import Gcp
from providers.market import CapacityQuery

SHORTEST: Final = timedelta(days=1)
LONGEST: Final = timedelta(days=90)
# The time before its start at which a request must be submitted.
AHEAD: Final = timedelta(hours=87)
TPU_AHEAD: Final = timedelta(hours=6)
_SPEC: Final = "spec"
_ZONE: Final = re.compile(r".+\d-(?:ai\d+)?[a-z]")


@dataclass(frozen=True, slots=True)
class Window:
    """Capacity that can be reserved now, with the command. A user submits it, because Google may refuse to withdraw
    it once it has approved it."""

    zone: str
    starts_at: datetime
    ends_at: datetime
    command: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """Google's recommendations, in order of start, and the reasons why it does not recommend other zones."""

    windows: tuple[Window, ...]
    elsewhere: Mapping[str, str]


def bounded(query: CapacityQuery, now: datetime) -> CapacityQuery:
    """The query within Google's limits. Raises RefusedError."""
    if query.ultraserver:
        raise RefusedError("UltraServers are AWS's", next_step="give --type with a machine type of Google Cloud")
    _check_type(query)
    if not SHORTEST <= query.lasts <= LONGEST:
        step = f"give --hours from {SHORTEST.days * 24} to {LONGEST.days * 24}"
        raise RefusedError(f"calendar capacity lasts 1 to 90 days, not {query.lasts.days}", next_step=step)
    ahead = TPU_AHEAD if chips_of(query.instance_type) else AHEAD
    earliest = max(query.earliest or now, now + ahead)
    latest = query.latest or earliest
    if latest < earliest:
        step = f"give --start and --within so that it may start on {earliest:%Y-%m-%d} or later"
        hours = int(ahead.total_seconds() // 3600)
        raise RefusedError(f"calendar capacity is submitted {hours} hours before its start", next_step=step)
    return replace(query, earliest=earliest, latest=latest)


def _check_type(query: CapacityQuery) -> None:
    """Raises RefusedError for types that calendar mode does not sell."""
    family, tpus = family_of(query.instance_type), chips_of(query.instance_type)
    if "+" in query.instance_type:
        step = "give --type with a machine type that has GPUs of its own, as a3-highgpu-8g"
        raise RefusedError("calendar mode has no machines with attached GPUs", next_step=step)
    if tpus and family not in SOLD:
        step = f"give --type with a machine type of {', '.join(SOLD)}, or with GPUs"
        raise RefusedError(f"calendar mode has no {family} machines", next_step=step)
    if query.workload and not tpus:
        step = "leave --workload out"
        raise RefusedError(f"--workload is for TPUs only, and {query.instance_type} has none", next_step=step)


def advice(gcp: Gcp, region: str, query: CapacityQuery) -> Advice:
    """The available capacity in a region, for a query that `bounded` has returned. Raises ProviderErrors."""
    if _ZONE.fullmatch(region):
        raise RefusedError(f"{region} is a zone", next_step=f"give --region {region.rpartition('-')[0]}")
    asked = {"future_resources_specs": {_SPEC: _spec(query)}}
    try:
        found = gcp.call(
            "advice.calendarMode", about=region, region=region, calendar_mode_advice_request_resource=asked
        )
    except PermissionDeniedError as error:
        if "deploy/gcp" not in error.next_step:
            raise  # credentials are missing, or the API is not enabled
        step = "have the permission compute.advice.calendarMode granted to your account"
        raise PermissionDeniedError(error.message, code=error.code, next_step=step) from error
    except (GoneError, TemplateError) as error:
        step = f"`gcloud compute regions list --project {gcp.project}` lists the regions; or correct what Google names"
        raise RefusedError(error.message, code=error.code, next_step=step) from error
    except (ThrottledError, UncertainError) as error:
        step = "try again; if this stays, check the network to compute.googleapis.com"
        raise RefusedError(error.message, code=error.code, next_step=step) from error
    windows: list[Window] = []
    elsewhere: dict[str, str] = {}
    with understood(f"advice.calendarMode {region}"):
        for recommendation in found.recommendations:
            for one in recommendation.recommendations_per_spec.values():
                if one.location:
                    window = Window(_zone(one.location), _moment(one.start_time), _moment(one.end_time))
                    windows.append(replace(window, command=_command(window, query, gcp.project)))
                for zone, other in one.other_locations.items():
                    elsewhere[_zone(zone)] = other.details or other.status
    return Advice(tuple(sorted(windows, key=lambda one: one.starts_at)), elsewhere)


def _spec(query: CapacityQuery) -> dict[str, Any]:
    lasts = f"{int(query.lasts.total_seconds())}s"
    times = {"min_duration": lasts, "max_duration": lasts}
    if query.earliest and query.latest:
        times |= {
            "start_time_not_earlier_than": _text(query.earliest),
            "start_time_not_later_than": _text(query.latest),
        }
    return {"target_resources": _target(query), "time_range_spec": times, "deployment_type": "DENSE"}


def _target(query: CapacityQuery) -> dict[str, Any]:
    chips = query.count * chips_of(query.instance_type)
    if not chips:
        return {"specific_sku_resources": {"machine_type": query.instance_type, "instance_count": query.count}}
    _, family = SOLD[family_of(query.instance_type)]
    workload = {"workload_type": query.workload} if query.workload else {}
    return {"aggregate_resources": {"accelerator_count": chips, "vm_family": family, **workload}}


def _command(window: Window, query: CapacityQuery, project: str) -> str:
    name = f"{family_of(query.instance_type)}-{window.starts_at:%Y%m%d}"
    return (
        f"gcloud compute future-reservations create {name} --project {project} --zone {window.zone} "
        f"{_reserved(query)} --start-time {_text(window.starts_at)} "
        f"--end-time {_text(window.ends_at)} --reservation-mode CALENDAR --deployment-type DENSE "
        f"--require-specific-reservation --reservation-name {name} --auto-delete-auto-created-reservations "
        "--planning-status SUBMITTED"
    )


def _reserved(query: CapacityQuery) -> str:
    chips = query.count * chips_of(query.instance_type)
    if not chips:
        return f"--machine-type {query.instance_type} --total-count {query.count}"
    version, _ = SOLD[family_of(query.instance_type)]
    workload = f" --workload-type {query.workload}" if query.workload else ""
    return f"--tpu-version {version} --chip-count {chips}{workload}"


def _text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    return found.astimezone(UTC)


def _zone(location: str) -> str:
    return location.rpartition("/")[2]
