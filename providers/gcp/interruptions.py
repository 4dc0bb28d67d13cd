"""What happens to machines without our asking: preemption, host errors, repairs, and maintenance that is announced.

Compute Engine writes them down as operations that nobody asked for, and keeps them for weeks. They name the machine by
its id: what happened to an earlier machine of the same name says nothing of this one. That a group has made it anew is
seen by its id alone (autoscaler/lifecycle/recreation.py), since not every way to do so leaves such an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from providers.errors import UnclassifiedError
from providers.gcp.session import Gcp

PREEMPTED: Final = "compute.instances.preempted"
RECREATED: Final = "compute.instances.repair.recreateInstance"
MAINTAINED: Final = "compute.instances.terminateOnHostMaintenance"
_KINDS: Final = "preempted|hostError|repair.recreateInstance|terminateOnHostMaintenance"
_FILTER: Final = f'operationType eq "compute.instances.({_KINDS})"'
_ENDS: Final = frozenset({PREEMPTED, RECREATED})
# On its way to run, or running. Neither a machine that stops nor one that Google repairs is.
_UP: Final = frozenset({"PROVISIONING", "STAGING", "RUNNING"})


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the machine `id`."""

    kind: str
    id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Notice:
    """When a machine is, or was, taken from us and why. `over`: it does not start again by itself."""

    at: datetime | None = None
    message: str = ""
    over: bool = False


def events(gcp: Gcp) -> Iterator[Event]:
    """What has happened in the project."""
    for page in gcp.pages("globalOperations.aggregatedList", filter=_FILTER):
        for scoped in page.items.values():
            for one in scoped.operations:
                if one.target_link.split("/")[-2:-1] == ["instances"]:
                    yield Event(one.operation_type, str(one.target_id), _read(one))


def interrupted(found: Any, happened: Iterable[Event]) -> Notice:
    """The notice of a machine: the earliest moment that holds."""
    notices = [_of_event(found, event) for event in happened if event.id == str(found.id)]
    notices += _announced(found)
    known = [(one.at, index) for index, one in enumerate(notices) if one.at is not None]
    return notices[min(known)[1]] if known else Notice()


def _of_event(found: Any, event: Event) -> Notice:
    if event.kind in (*_ENDS, MAINTAINED) and _started_since(found, event.at):
        return Notice()
    if event.kind in _ENDS:
        return Notice(event.at + _warning(found), "Google took the machine back (preempted)", over=True)
    if event.kind == MAINTAINED:
        return _maintained(found, event)
    return Notice(event.at, "the machine's host failed; it started again elsewhere, and its devices may differ")


def _maintained(found: Any, event: Event) -> Notice:
    """Whether a machine starts again after its host's maintenance is up to its scheduling: a Spot machine does not.

    Source: Scheduling.automaticRestart of Compute Engine's API.
    """
    scheduling = found.scheduling
    if "automatic_restart" not in scheduling or scheduling.automatic_restart:
        return Notice()
    return Notice(
        event.at, "Google stopped the machine for the maintenance of its host, and does not start it", over=True
    )


def _started_since(found: Any, at: datetime) -> bool:
    """Whether somebody has started the machine again since Google stopped it: its id stays, and it is no more over.

    lastStartTimestamp may be that of the earlier start while the machine boots; then it has stopped since, and is up.
    Source: Instance.lastStartTimestamp and lastStopTimestamp of Compute Engine's API. A machine that starts again by
    itself, after a host error, looks the same: that notice stays.
    """
    started, stopped = found.last_start_timestamp, found.last_stop_timestamp
    if started and _moment(started) > at:
        return True
    return found.status in _UP and bool(stopped) and _moment(stopped) >= at


def _warning(found: Any) -> timedelta:
    """How long a Spot machine runs on after Google has begun to take it back, before its system is told to shut down.

    Nothing unless its instance template says so. Source: Scheduling.preemptionNoticeDuration of Compute Engine's API.
    """
    notice = found.scheduling.preemption_notice_duration
    return timedelta(seconds=notice.seconds, microseconds=notice.nanos // 1000)


def _announced(found: Any) -> Iterator[Notice]:
    """Maintenance for which the machine stops, and the end of a run duration."""
    upcoming = found.resource_status.upcoming_maintenance
    if upcoming.window_start_time and found.scheduling.on_host_maintenance == "TERMINATE":
        yield Notice(_moment(upcoming.window_start_time), "maintenance of its host is announced")
    ends = found.resource_status.scheduling.termination_timestamp
    if ends:
        yield Notice(_moment(ends), "its run duration ends")


def _read(operation: Any) -> datetime:
    try:
        return _moment(operation.insert_time)
    except ValueError as error:
        message = f"operation {operation.name} has no moment: {error}"
        raise UnclassifiedError(message, code="UnreadableAnswer") from error


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
