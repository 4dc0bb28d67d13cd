"""Request rates: EC2's token buckets of one account and region, with the documented sizes and refills per second.

Source: "Request throttling for the Amazon EC2 API", 2026. AWS keeps one bucket an action for some categories and a
shared one for others, and does not say which; the fake shares one in each category, which is never milder. The other
services have no buckets here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from providers.contract import Clock
from tests.fakes.ec2.errors import ApiError


@dataclass(frozen=True, slots=True)
class Rate:
    """A bucket of `size` tokens that gains `refill` of them a second."""

    size: float
    refill: float


FILTERED: Final = Rate(100, 20)
UNFILTERED: Final = Rate(50, 10)
MUTATING: Final = Rate(50, 5)
BLOCKS: Final = Rate(10, 0.15)
# Buckets of single actions, counted in requests and, where AWS says so, in instances too.
REQUESTS: Final[Mapping[str, Rate]] = {
    "RunInstances": Rate(5, 2),
    "TerminateInstances": Rate(100, 5),
    "CreateLaunchTemplateVersion": Rate(100, 5),
    "CreateTags": Rate(100, 10),
    "DescribeInstanceTopology": Rate(1, 1),
    "DescribeCapacityBlockOfferings": BLOCKS,
    "DescribeCapacityBlockExtensionOfferings": BLOCKS,
    "PurchaseCapacityBlock": BLOCKS,
    "PurchaseCapacityBlockExtension": BLOCKS,
}
INSTANCES: Final[Mapping[str, Rate]] = {"RunInstances": Rate(1000, 2), "TerminateInstances": Rate(1000, 20)}
_UNBOUNDED: Final = frozenset(
    {"DescribeInstances", "DescribeInstanceStatus", "DescribeVolumes", "DescribeSecurityGroups", "DescribeImages"}
)


class Buckets:
    """The buckets, full at first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}

    def charge(self, operation: str, params: Mapping[str, Any]) -> None:
        """Take the tokens of a call. Raises RequestLimitExceeded, and takes none, when a bucket holds too few."""
        costs = [(*_bucket(operation, params), 1.0)]
        if operation in INSTANCES:
            costs.append((f"{operation} instances", INSTANCES[operation], _instances(params)))
        if any(self._level(name, rate) < cost for name, rate, cost in costs):
            raise ApiError("RequestLimitExceeded", "Request limit exceeded.", status=503)
        now = self._clock.monotonic()
        for name, rate, cost in costs:
            self._levels[name] = (self._level(name, rate) - cost, now)

    def _level(self, name: str, rate: Rate) -> float:
        level, since = self._levels.get(name, (rate.size, self._clock.monotonic()))
        return min(rate.size, level + (self._clock.monotonic() - since) * rate.refill)


def _bucket(operation: str, params: Mapping[str, Any]) -> tuple[str, Rate]:
    if operation in REQUESTS:
        return operation, REQUESTS[operation]
    if not operation.startswith(("Describe", "Get")):
        return "mutating", MUTATING
    bounded = params.keys() - {"DryRun", "NextToken"}
    if operation in _UNBOUNDED and not bounded:
        return "unfiltered and unpaginated", UNFILTERED
    return "filtered or paginated", FILTERED


def _instances(params: Mapping[str, Any]) -> float:
    return float(len(params.get("InstanceIds", ())) or params.get("MaxCount", 1))
