"""What LaunchInstances answered, and what EC2 shows of the members of a group. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.aws.describe import state_of
from providers.aws.errors import of_code
from providers.aws.launch import names_nothing, unnamed
from providers.contract import InstanceState, OfferingFailure, OfferingKey


def started(answer: Mapping[str, Any], least: int) -> dict[str, str]:
    """The machines that LaunchInstances started, by id, with their zone ("": not said).

    Raises AmbiguousError for an answer that names fewer than `least` machines and no error: others may run.
    """
    found = {
        key: str(row.get("AvailabilityZone", ""))
        for row in answer.get("Instances", ())
        for key in row.get("InstanceIds", ())
    }
    if names_nothing(answer) or (len(found) < least and not answer.get("Errors")):
        raise unnamed("LaunchInstances")
    return found


def failures_of(answer: Mapping[str, Any], offering: OfferingKey) -> tuple[OfferingFailure, ...]:
    """Why LaunchInstances did not start more: the first error of its answer."""
    rows = answer.get("Errors", ())
    return tuple(
        OfferingFailure(offering, of_code("LaunchInstances", row.get("ErrorCode", ""), row.get("ErrorMessage", "")))
        for row in rows[:1]
    )


def is_alive(found: Mapping[str, Any]) -> bool:
    """Whether a described machine is neither ended nor on its way there."""
    return state_of(found) in (InstanceState.PENDING, InstanceState.RUNNING, None)


def zone_of(found: Mapping[str, Any] | None) -> str:
    """The zone of a described machine; "" if it is not shown."""
    return str(found["Placement"]["AvailabilityZone"]) if found else ""
