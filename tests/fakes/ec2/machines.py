"""Machines as EC2 sees them: states that follow from the clock, and what each of them occupies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How slowly things happen.

    `pending` and `shutting_down` are how long an instance is in those states. `visibility`: how long after its launch
    no answer but the launch's shows it. `release`: how long its place stays taken once it has terminated.
    `counting`: how far AvailableInstanceCount lags behind. `remembered`: how long a terminated instance is shown.
    `page` is the most of one page. `shows_interfaces`: whether instances are shown with their network interfaces, which
    makes answers ten times as long. `leaves_out`: the seed by which optional members of answers are left out; 0: none.
    `refuses_templates`: whether CreateFleet answers what is wrong with a launch template, or with what it names, as the
    error of the whole call; otherwise as a row of Errors in a 200 answer. Source: moto does the former, and Karpenter
    (AWS 1.14, pkg/providers/instance) handles both.
    """

    pending: timedelta = timedelta(seconds=20)
    shutting_down: timedelta = timedelta(seconds=40)
    visibility: timedelta = timedelta(0)
    release: timedelta = timedelta(0)
    counting: timedelta = timedelta(0)
    remembered: timedelta = timedelta(hours=1)
    page: int = 1000
    shows_interfaces: bool = False
    leaves_out: int = 0
    refuses_templates: bool = False


PROMPT: Final = Behaviour()
# As slow as AWS says it may be: minutes until a place is free again, a launch that describes do not show at first.
SLUGGISH: Final = Behaviour(
    visibility=timedelta(seconds=30), release=timedelta(minutes=4), counting=timedelta(minutes=2), page=100
)

STATE_CODES: Final = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopped": 80}


@dataclass(frozen=True, slots=True)
class Order:
    """Machines of one kind that are asked for: parameters and launch template, merged.

    `market` is on-demand, spot, capacity-block or interruptible-capacity-reservation. `preference` says whether open
    reservations may serve it. `launch` has the merged parameters as the API spells them.
    """

    instance_type: str
    subnet: str
    zone: str
    image: str
    market: str = "on-demand"
    reservation: str = ""
    preference: str = "open"
    tags: Mapping[str, str] = field(default_factory=dict)
    launch: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Machine:
    """An instance. `order` is what it was launched by; `reservation` the capacity reservation it runs in, or ""."""

    id: str
    index: int
    launch_index: int
    launch_id: str  # EC2's "reservation", r-…
    order: Order
    reservation: str
    token: str
    launched_at: datetime
    address: str
    tags: dict[str, str]
    ends_at: datetime | None = None  # when shutting down begins, known or past
    reason: tuple[str, str] = ("", "")
    group: str = ""
    stopped: bool = False
    hidden: bool = False  # lists leave it out; who names its id finds it
    protected: bool = False  # DisableApiTermination

    @property
    def key(self) -> str:
        """Its place in listings: by launch."""
        return f"{self.index:08d}"

    def end(self, at: datetime, code: str, message: str) -> None:
        """Begin to shut down at `at`, unless it does so earlier."""
        if self.ends_at is None or at < self.ends_at:
            self.ends_at, self.reason = at, (code, message)

    def state(self, now: datetime, behaviour: Behaviour) -> str:
        """pending, running, stopped, shutting-down or terminated."""
        if self.ends_at is not None and now >= self.ends_at:
            return "terminated" if now >= self.ends_at + behaviour.shutting_down else "shutting-down"
        if self.stopped:
            return "stopped"
        return "running" if now >= self.launched_at + behaviour.pending else "pending"

    def alive(self, now: datetime) -> bool:
        """Not shutting down yet."""
        return self.ends_at is None or now < self.ends_at

    def visible(self, now: datetime, behaviour: Behaviour) -> bool:
        """Whether calls other than its launch know it."""
        if now < self.launched_at + behaviour.visibility:
            return False
        forgotten = behaviour.shutting_down + behaviour.remembered
        return self.ends_at is None or now < self.ends_at + forgotten

    def occupies(self, now: datetime, behaviour: Behaviour) -> bool:
        """Whether its place cannot be had yet."""
        return self.ends_at is None or now < self.ends_at + behaviour.shutting_down + behaviour.release

    def counted(self, now: datetime, behaviour: Behaviour) -> bool:
        """Whether AvailableInstanceCount already, or still, says that its place is taken."""
        if now < self.launched_at + behaviour.counting:
            return False
        return self.ends_at is None or now < (
            self.ends_at + behaviour.shutting_down + max(behaviour.release, behaviour.counting)
        )
