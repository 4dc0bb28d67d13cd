"""The findings of checks, as closed conditions and reasons. report/ makes the texts."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from autoscaler.model.reason import Code, Reason
from instance_catalog.dataclass import dataclass


class ConditionType(Enum):
    """The conditions of a CapacityPool that must hold before it acts. The value is their type in its status."""

    READY = "Ready"  # it can be used as it is written, and its provider launches
    COEXISTENCE = "Coexistence"  # no other autoscaler serves the same pods or starts the pool's nodes
    DRIVERS_WILL_RUN = "DriversWillRun"  # a driver publishes the devices of the future node
    DEVICE_PLUGIN_CONFLICT = "DevicePluginConflict"  # a device plugin would offer the same devices

    @property
    def good_status(self) -> Literal["True", "False"]:
        """The status with which a pool acts."""
        return "False" if self is ConditionType.DEVICE_PLUGIN_CONFLICT else "True"


# A provider may answer otherwise at the next attempt; the back-off decides when. Groups are read again, and nodes of
# other owners exist already, whatever the pool does.
_GOES_ON = frozenset({Code.LAUNCH_FAILED, Code.PROVIDER_REFUSES, Code.NOT_IN_GROUPS, Code.FOREIGN_NODES})


@dataclass(frozen=True, slots=True)
class PoolCondition:
    """A condition of one pool. `reasons` describe its faults, and are empty if there are none."""

    pool: str
    type: ConditionType
    reasons: tuple[Reason, ...] = ()

    @property
    def good(self) -> bool:
        return not self.reasons

    @property
    def stops(self) -> bool:
        """True if the pool must not act before a person has changed something."""
        return any(reason.code not in _GOES_ON for reason in self.reasons)

    @property
    def status(self) -> Literal["True", "False", "Unknown"]:
        if self.reasons and all(reason.code is Code.UNREADABLE for reason in self.reasons):
            return "Unknown"
        bad: Literal["True", "False"] = "True" if self.type.good_status == "False" else "False"
        return self.type.good_status if self.good else bad
