"""Calendar mode: windows that are free, and what Google recommends of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from google.cloud import compute_v1

from tests.fakes.gce.errors import ApiError

# Capacity is submitted so long before its start.
AHEAD = timedelta(hours=87)
TPU_AHEAD = timedelta(hours=6)
_FAMILIES = frozenset(one.name for one in compute_v1.FutureResourcesSpecAggregateResources.VmFamily)


@dataclass(frozen=True, slots=True)
class Free:
    """So many machines that nobody has reserved; of TPUs chips, with the family as the machine type."""

    zone: str
    machine_type: str
    count: int
    starts: datetime
    ends: datetime


def recommended(
    asked: compute_v1.CalendarModeAdviceRequest, free: Iterable[Free], now: datetime, write: Callable[[datetime], str]
) -> compute_v1.CalendarModeAdviceResponse:
    """The earliest window that fits; of the other zones that nothing does. Raises ApiError for what Google refuses."""
    if len(asked.future_resources_specs) != 1:
        raise ApiError(400, "invalid", "futureResourcesSpecs must have exactly one entry")
    ((key, spec),) = asked.future_resources_specs.items()
    times, (kind, wanted, ahead) = spec.time_range_spec, _wanted(spec.target_resources)
    earliest = _read(times.start_time_not_earlier_than, "startTimeNotEarlierThan")
    latest = _read(times.start_time_not_later_than, "startTimeNotLaterThan")
    lasts = timedelta(seconds=_seconds(times.min_duration))
    if earliest < now + ahead or not timedelta(days=1) <= lasts <= timedelta(days=90) or earliest > latest:
        raise ApiError(400, "invalid", "Invalid value for field 'timeRangeSpec': outside of what calendar mode sells")
    if spec.deployment_type != "DENSE" or not kind or wanted <= 0:
        raise ApiError(400, "invalid", "Invalid value for field 'futureResourcesSpecs'")
    fits: list[tuple[datetime, str]] = []
    zones = set()
    for one in free:
        starts = max(one.starts, earliest)
        zones.add(one.zone)
        enough = one.machine_type == kind and one.count >= wanted
        if enough and starts <= latest and starts + lasts <= one.ends:
            fits.append((starts, one.zone))
    answer: dict[str, Any] = {}
    if fits:
        starts, zone = min(fits)
        zones.discard(zone)
        answer = {"location": f"zones/{zone}", "start_time": write(starts), "end_time": write(starts + lasts)}
    others = {
        f"zones/{zone}": compute_v1.FutureResourcesRecommendationOtherLocation(status="NO_CAPACITY")
        for zone in sorted(zones)
    }
    one = compute_v1.FutureResourcesRecommendation(
        recommendation_type="FUTURE_RESERVATION", other_locations=others, **answer
    )
    per_spec = compute_v1.CalendarModeRecommendation(recommendations_per_spec={key: one})
    return compute_v1.CalendarModeAdviceResponse(recommendations=[per_spec])


def _wanted(target: compute_v1.FutureResourcesSpecTargetResources) -> tuple[str, int, timedelta]:
    """What is asked for, how many of it, and how long ahead."""
    if "aggregate_resources" not in target:
        machines = target.specific_sku_resources
        return machines.machine_type, machines.instance_count, AHEAD
    chips = target.aggregate_resources
    if "specific_sku_resources" in target or chips.vm_family not in _FAMILIES:
        raise ApiError(400, "invalid", "Invalid value for field 'targetResources'")
    if chips.workload_type not in ("", "BATCH", "SERVING"):
        raise ApiError(400, "invalid", f"Invalid value for field 'workloadType': '{chips.workload_type}'")
    return chips.vm_family.rpartition("_")[2].lower(), chips.accelerator_count, TPU_AHEAD


def _read(text: str, field: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ApiError(400, "invalid", f"Invalid value for field '{field}': '{text}'") from error


def _seconds(text: str) -> int:
    if not text.endswith("s") or not text[:-1].isdecimal():
        raise ApiError(400, "invalid", f"Invalid value for field 'minDuration': '{text}'")
    return int(text[:-1])
