"""What a check finds, as closed conditions and reasons. Text is made in report/."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from autoscaler.model.reason import Code, Reason


class Condition(Enum):
    """The conditions of a CapacityPool that must hold before it acts. The value is their type in its status."""

    COEXISTENCE = "Coexistence"  # no other autoscaler serves the same pods
    DRIVERS_WILL_RUN = "DriversWillRun"  # a driver publishes the devices of the node to be
    DEVICE_PLUGIN_CONFLICT = "DevicePluginConflict"  # True is bad: a device plugin would hand out the same devices


# The status in which a condition lets a pool act.
GOOD: dict[Condition, bool] = {
    Condition.COEXISTENCE: True,
    Condition.DRIVERS_WILL_RUN: True,
    Condition.DEVICE_PLUGIN_CONFLICT: False,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition of one pool. `reasons` say what is wrong, and are empty when nothing is."""

    pool: str
    condition: Condition
    reasons: tuple[Reason, ...] = ()

    @property
    def good(self) -> bool:
        """Whether the pool may act as far as this condition goes."""
        return not self.reasons

    @property
    def status(self) -> Literal["True", "False", "Unknown"]:
        """What the condition says."""
        if self.reasons and all(reason.code is Code.UNREADABLE for reason in self.reasons):
            return "Unknown"
        return "True" if GOOD[self.condition] is self.good else "False"
