"""What the checks before buying found, and what is wrong with overlays, as conditions and in sentences."""

from __future__ import annotations

from typing import Final

from autoscaler.checks.finding import Condition, Finding
from autoscaler.report.reasons import texts_of
from instance_catalog.standing import Refused

_LONGEST: Final = 1024  # characters of a condition's message, as of events
_GOOD: Final = {
    Condition.COEXISTENCE: ("Alone", "no other autoscaler would launch for the same pods"),
    Condition.DRIVERS_WILL_RUN: ("DriversFound", "the drivers will publish the devices of its nodes"),
    Condition.DEVICE_PLUGIN_CONFLICT: ("NoDevicePlugin", "no device plugin will run beside the drivers"),
}


def verdict_of(finding: Finding) -> tuple[str, str, str]:
    """(status, reason, message) of the condition."""
    if finding.good:
        return (finding.status, *_GOOD[finding.condition])
    return (
        finding.status,
        finding.reasons[0].code.value,
        f"the pool only proposes: {texts_of(finding.reasons)}"[:_LONGEST],
    )


def refusal_text(refused: Refused) -> str:
    """Why an InstanceTypeOverlay does not count, and what does instead."""
    instead = "its last good version counts" if refused.kept else "nothing of it counts"
    return f"{instead}; {'; '.join(str(problem) for problem in refused.problems)}"[:_LONGEST]
