"""What the checks before buying found, as conditions of a pool and in sentences."""

from __future__ import annotations

from typing import Final

from autoscaler.checks.finding import Condition, Finding
from autoscaler.report.reasons import texts_of

_GOOD: Final = {
    Condition.COEXISTENCE: ("Alone", "no other autoscaler would launch for the same pods"),
    Condition.DRIVERS_WILL_RUN: ("DriversFound", "the drivers will publish the devices of its nodes"),
    Condition.DEVICE_PLUGIN_CONFLICT: ("NoDevicePlugin", "no device plugin will run beside the drivers"),
}


def verdict_of(finding: Finding) -> tuple[str, str, str]:
    """(status, reason, message) of the condition."""
    status = str(finding.status)
    if finding.good:
        return (status, *_GOOD[finding.condition])
    return (status, finding.reasons[0].code.value, f"the pool only proposes: {texts_of(finding.reasons)}"[:1024])
