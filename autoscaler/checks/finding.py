"""What a check finds, as closed conditions and reasons. Text is made in report/."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from autoscaler.model.reason import Code, Reason


class Condition(Enum):
    """The conditions of a CapacityPool that must hold before it acts. The value is their type in its status."""

    READY = "Ready"  # it can be used as it is written, and its provider launches
    COEXISTENCE = "Coexistence"  # no other autoscaler serves the same pods
    DRIVERS_WILL_RUN = "DriversWillRun"  # a driver publishes the devices of the node to be
    DEVICE_PLUGIN_CONFLICT = "DevicePluginConflict"  # True is bad: a device plugin would hand out the same devices


# The status in which a condition lets a pool act.
GOOD: dict[Condition, bool] = {
    Condition.READY: True,
    Condition.COEXISTENCE: True,
    Condition.DRIVERS_WILL_RUN: True,
    Condition.DEVICE_PLUGIN_CONFLICT: False,
}


# What a provider answered may be otherwise at the next attempt: whether one is made is for the back-off to say.
_TRIED_AGAIN = frozenset({Code.LAUNCH_FAILED, Code.PROVIDER_REFUSES})


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition of one pool. `reasons` say what is wrong, and are empty when nothing is."""

    pool: str
    condition: Condition
    reasons: tuple[Reason, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.reasons

    @property
    def stops(self) -> bool:
        """Whether the pool must not act before a person has changed something."""
        return any(reason.code not in _TRIED_AGAIN for reason in self.reasons)

    @property
    def status(self) -> Literal["True", "False", "Unknown"]:
        """What the condition says."""
        if self.reasons and all(reason.code is Code.UNREADABLE for reason in self.reasons):
            return "Unknown"
        return "True" if GOOD[self.condition] is self.good else "False"
