"""Whether the process lives and is of use, as the kubelet asks it.

The loop says before everything it begins when it will be heard of again; it lives as long as it keeps its word. So a
round that hangs is found, and a long rest is not mistaken for one.
"""

from __future__ import annotations

from providers.contract import Clock


class Heartbeat:
    """The loop's word, kept for /healthz and /readyz. Written by one thread, read by others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._expected_by = clock.monotonic()
        self._doing = "starting"
        self._ready = False
        self.expect(within=60.0, doing="starting")

    def expect(self, *, within: float, doing: str) -> None:
        """Something begins that ends within so many seconds."""
        self._expected_by, self._doing = self._clock.monotonic() + within, doing

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
        """For /healthz: "" while the loop keeps its word, else what it was doing when it should have been heard of."""
        late = self._clock.monotonic() - self._expected_by
        return f"{self._doing}: overdue for {late:.0f} s" if late > 0 else ""
