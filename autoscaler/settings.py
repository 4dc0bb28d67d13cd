"""Settings: one dataclass for each concern, every field with unit, default and the reason for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from autoscaler.planning.policy import Policy


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """When the loop looks again without being woken."""

    resync: timedelta = timedelta(minutes=1)
    """While something is under way. Machines report nothing by themselves; a minute is short beside a boot."""

    retry: timedelta = timedelta(seconds=5)
    """After a provider call whose outcome is unknown, or a launch that failed: the pods wait, so it is short."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How long changes are gathered before a tick looks at them, as Karpenter's batch durations."""

    idle: timedelta = timedelta(seconds=1)
    """Without any change for this long, the tick begins: pods of one Job arrive within milliseconds of each other."""

    longest: timedelta = timedelta(seconds=10)
    """However many changes keep coming, the first one waits no longer than this."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator may turn."""

    loop: LoopSettings = field(default_factory=LoopSettings)
    batch: BatchSettings = field(default_factory=BatchSettings)
    policy: Policy = field(default_factory=Policy)


DEFAULTS = Settings()
