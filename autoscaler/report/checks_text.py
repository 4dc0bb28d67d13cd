"""The results of the checks before launches, and the defects of overlays, as conditions and in sentences."""

from __future__ import annotations

from typing import Final

from autoscaler.checks.pool_condition import ConditionType, PoolCondition
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.report.reasons import texts_of
from instance_catalog.files.last_good import RefusedLayer

_MANY: Final = 2
_LONGEST: Final = 1024  # characters of a condition's message, as of events
_GOOD: Final = {
    ConditionType.READY: ("Accepted", "it can be used as it is written"),
    ConditionType.COEXISTENCE: ("Alone", "no other autoscaler would launch for the same pods"),
    ConditionType.DRIVERS_WILL_RUN: ("DriversFound", "the drivers will publish the devices of its nodes"),
    ConditionType.DEVICE_PLUGIN_CONFLICT: ("NoDevicePlugin", "no device plugin will run beside the drivers"),
}


def verdict_of(finding: PoolCondition) -> tuple[str, str, str]:
    """(status, reason, message) of the condition."""
    if finding.good:
        return (finding.status, *_GOOD[finding.type])
    held_back = "the pool only proposes: " if finding.stops else ""
    return (finding.status, finding.reasons[0].code.value, f"{held_back}{what_is_wrong(finding)}"[:_LONGEST])


def what_is_wrong(finding: PoolCondition) -> str:
    """All defects. Missing drivers are listed together, because the next step is the same for all."""
    missing = [reason for reason in finding.reasons if reason.code is Code.NO_DRIVER]
    others = tuple(reason for reason in finding.reasons if reason.code is not Code.NO_DRIVER)
    if len(missing) < _MANY:
        return texts_of(finding.reasons)
    drivers = ", ".join(reason.subject.name for reason in missing)
    profiles = ", ".join(str(reason.detail["profile"]) for reason in missing)
    together = Reason.of(Code.NO_DRIVER, Subject("drivers", drivers), profile=profiles)
    return texts_of((together, *others))


def refusal_text(refused: RefusedLayer) -> str:
    """The reason why an InstanceTypeOverlay does not count, and which version counts instead."""
    instead = "its last good version counts" if refused.kept else "nothing of it counts"
    return f"{instead}; {'; '.join(str(problem) for problem in refused.problems)}"[:_LONGEST]
