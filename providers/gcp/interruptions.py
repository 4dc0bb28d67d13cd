"""Reads interruptions of machines: preemption, host errors, repairs, and announced maintenance.

Compute Engine records them as system operations and keeps these for weeks. An operation has the id of the machine, so
an event of an earlier machine with the same name does not apply to the current one. Whether a group has recreated a
machine is decided by its id alone (autoscaler/lifecycle/recreation.py), because not every way to recreate one leaves
such an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from providers.errors import UnclassifiedError
from providers.gcp.session import Gcp

PREEMPTED: Final = "compute.instances.preempted"
RECREATED: Final = "compute.instances.repair.recreateInstance"
MAINTAINED: Final = "compute.instances.terminateOnHostMaintenance"
_KINDS: Final = "preempted|hostError|repair.recreateInstance|terminateOnHostMaintenance"
_FILTER: Final = f'operationType eq "compute.instances.({_KINDS})"'
_ENDS: Final = frozenset({PREEMPTED, RECREATED})
# Starting or running. Not a machine that stops or that Google repairs.
_UP: Final = frozenset({"PROVISIONING", "STAGING", "RUNNING"})


@dataclass(frozen=True, slots=True)
class Event:
    """A system event of the machine with the id `id`."""

    kind: str
    id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Notice:
    """The time at which Google takes, or took, a machine away, and the reason. `over`: it does not start again by
    itself."""

    at: datetime | None = None
    message: str = ""
    over: bool = False


def events(gcp: Gcp) -> Iterator[Event]:
    """The system events of the project."""
    for page in gcp.pages("globalOperations.aggregatedList", filter=_FILTER):
        for scoped in page.items.values():
            for one in scoped.operations:
                if one.target_link.split("/")[-2:-1] == ["instances"]:
                    yield Event(one.operation_type, str(one.target_id), _read(one))


def interrupted(found: Any, happened: Iterable[Event]) -> Notice:
    """The notice of a machine: the earliest one that applies."""
    notices = [_of_event(found, event) for event in happened if event.id == str(found.id)]
    notices += _announced(found)
    known = [(one.at, index) for index, one in enumerate(notices) if one.at is not None]
    return notices[min(known)[1]] if known else Notice()


def _of_event(found: Any, event: Event) -> Notice:
    if event.kind in (*_ENDS, MAINTAINED) and _started_since(found, event.at):
        return Notice()
    if event.kind in _ENDS:
        return Notice(event.at + _warning(found), "Google took the machine back (preempted)", over=True)
    if _restarts(found):
        if event.kind == MAINTAINED:
            return Notice()
        return Notice(event.at, "the machine's host failed; it started again elsewhere, and its devices may differ")
    why = "its host had maintenance" if event.kind == MAINTAINED else "the machine's host failed"
    return Notice(event.at, f"{why}, and Google does not start it again", over=True)


def _restarts(found: Any) -> bool:
    """True if Google starts the machine again after maintenance or an error of its host. It does not start Spot
    machines.

    Source: Scheduling.automaticRestart of Compute Engine's API.
    """
    scheduling = found.scheduling
    return bool("automatic_restart" not in scheduling or scheduling.automatic_restart)


def _started_since(found: Any, at: datetime) -> bool:
    """True if somebody has started the machine again since Google stopped it. Its id stays the same.

    While the machine boots, lastStartTimestamp may still be that of the earlier start; then the machine has stopped
    after `at` and is up. A machine that starts again by itself, after a host error, looks the same: that notice stays.
    Source: Instance.lastStartTimestamp and lastStopTimestamp of Compute Engine's API.
    """
    started, stopped = found.last_start_timestamp, found.last_stop_timestamp
    if started and _moment(started) > at:
        return True
    return found.status in _UP and bool(stopped) and _moment(stopped) >= at


def _warning(found: Any) -> timedelta:
    """The time from the preemption of a Spot machine to the shutdown of its operating system.

    Zero unless the instance template sets it. Source: Scheduling.preemptionNoticeDuration of Compute Engine's API.
    """
    notice = found.scheduling.preemption_notice_duration
    return timedelta(seconds=notice.seconds, microseconds=notice.nanos // 1000)


def _announced(found: Any) -> Iterator[Notice]:
    """The notices of maintenance for which the machine stops, and of the end of its run duration."""
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
        message = f"operation {operation.name} has no readable time: {error}"
        raise UnclassifiedError(message, code="UnreadableAnswer") from error


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
