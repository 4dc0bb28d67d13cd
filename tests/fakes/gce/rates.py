"""Rate quotas: so many calls of each group a minute for a project.

Compute Engine counts whole minutes of the clock, each group of methods apart, and refuses the rest of a minute with 403
rateLimitExceeded. 1,500 calls a minute and group is what a project has by default. Source:
cloud.google.com/compute/api-quota, read 2026-11-26. The real groups are more and mostly larger; no call is counted less
here than there. For the container API no figure was found: 60 calls a minute are an assumption, and it says 429.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

LIMITS: Final[Mapping[str, int]] = {
    "reads": 1500,
    "lists": 1500,
    "operation reads": 1500,
    "changes": 1500,
    "container": 60,
}


@dataclass
class Rates:
    """`limits` may be lowered by a test; `most` is the busiest minute of each group so far."""

    limits: dict[str, int] = field(default_factory=lambda: dict(LIMITS))
    most: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    _minute: datetime | None = None
    _used: Counter[str] = field(default_factory=Counter)

    def take(self, method: str, now: datetime) -> bool:
        """Whether the call is still within its group's quota. One that is refused counts for nothing."""
        minute = now.replace(second=0, microsecond=0)
        if minute != self._minute:
            self._minute, self._used = minute, Counter()
        group = group_of(method)
        if self._used[group] >= self.limits[group]:
            self.refused[group] += 1
            return False
        self._used[group] += 1
        self.most[group] = max(self.most[group], self._used[group])
        return True


def group_of(method: str) -> str:
    """The quota of which a method takes; one that is not known to read is a change."""
    service, _, verb = method.rpartition(".")
    if service == "container":
        return "container"
    if service.endswith("Operations") or service == "operations":
        return "operation reads" if verb == "get" else "lists"
    if verb == "get":
        return "reads"
    return "lists" if verb in ("list", "aggregatedList", "listManagedInstances", "listErrors") else "changes"
