"""The liveness and readiness of the process, for the kubelet.

Before each action the loop announces by when it will report again; it is alive as long as it reports in time. So a
reconcile that hangs is found, and a long rest is not mistaken for one. An API server that does not answer does not make
the process dead, but its data old, which is readiness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from instance_catalog.dataclass import dataclass
from providers.contract import Clock


class Heartbeat:
    """The loop's announcements, for /healthz and /readyz. Written by one thread, read by others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected_by = clock.monotonic()
        self._doing = "starting"
        self._ready = False
        self._threads: tuple[tuple[str, Callable[[], bool]], ...] = ()
        self.expect(within=60.0, doing="starting")

    def expect(self, *, within: float, doing: str) -> None:
        """Something begins that ends within so many seconds."""
        self._expected_by, self._doing = self._clock.monotonic() + within, doing

    def progress(self, *, within: float) -> None:
        """The present step makes progress: the next report is due within so many seconds, or later if it already
        was."""
        self._expected_by = max(self._expected_by, self._clock.monotonic() + within)

    def depend_on(self, thread: str, alive: Callable[[], bool]) -> None:
        """From now on the process lives only while this thread does."""
        self._threads = (*self._threads, (thread, alive))

    def ready(self) -> None:
        """The cluster was read, or another replica acts and this one waits: in both cases it serves its purpose."""
        self._ready = True

    def unready(self) -> None:
        """It is about to end."""
        self._ready = False

    @property
    def is_ready(self) -> bool:
        """For /readyz."""
        return self._ready

    @property
    def problem(self) -> str:
        """The problem for /healthz: "" while all threads live and the loop reports in time, else the thread that ended,
        or the overdue action."""
        for thread, alive in self._threads:
            if not alive():
                return f"the thread {thread} has ended"
        late = self._clock.monotonic() - self._expected_by
        return f"{self._doing}: overdue for {late:.0f} s" if late > 0 else ""


@dataclass(frozen=True, slots=True)
class Sight:
    """The age of the cluster's data. `ages` returns for each resource the seconds since its last event."""

    ages: Callable[[], Mapping[str, float]] = dict
    longest: timedelta = timedelta.max

    @property
    def problem(self) -> str:
        """The problem for /readyz: "" while no data is too old, else the old data, the oldest first."""
        longest = self.longest.total_seconds()
        old = sorted((-age, resource) for resource, age in self.ages().items() if age > longest)
        return "; ".join(f"{resource}: no event, bookmark or list for {-age:.0f} s" for age, resource in old)
