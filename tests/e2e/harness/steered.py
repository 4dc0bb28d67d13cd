"""`foreslice run` with a clock that a test sets: hours of a block's life pass without anybody waiting for them.

A composition root beside autoscaler/cli/run.py, for tests only. What moves is `now`, in all processes that read the
same file; Leases, rates and waiting go by the monotonic clock, which nobody sets.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from autoscaler.clock import SystemClock
from autoscaler.composition.build import controller
from autoscaler.serve.logs import log_to_stderr
from autoscaler.settings.load import read_settings
from instance_catalog.dataclass import replace
from tests.fakes.clocks import ShiftedClock

# Where a process asks for Google Cloud, if not at Google: the clients have no variable for it, as boto3 has.
GCE: Final = "TESTS_GCE_URL"


class SteeredClock:
    """The system's clock, its `now` moved by the seconds in a file once there is one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._clock = SystemClock()

    def now(self) -> datetime:
        """The time that the test has set."""
        seconds = float(self.file.read_text(encoding="ascii")) if self.file.exists() else 0.0
        return ShiftedClock(self._clock, timedelta(seconds=seconds)).now()

    def monotonic(self) -> float:
        """The system's."""
        return self._clock.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait as long as it takes."""
        self._clock.wait(seconds)

    def move_to(self, moment: datetime) -> None:
        """Set the clock, for whoever reads the file. Readers see the old time or the new one, never half a file."""
        written = self.file.with_suffix(".new")
        written.write_text(str((moment - self._clock.now()).total_seconds()), encoding="ascii")
        written.replace(self.file)


def main(kubeconfig: str, config: str, clock: str) -> None:
    """Run the controller until SIGTERM."""
    settings = read_settings(Path(config), flags={"--cluster-kubeconfig": kubeconfig})
    log_to_stderr(settings.log)
    if GCE in os.environ:
        _ask_for_gce_at(os.environ[GCE])
    running = controller(settings, SteeredClock(Path(clock)))
    signal.signal(signal.SIGTERM, lambda *_: running.stop())
    running.run()


def _ask_for_gce_at(url: str) -> None:
    """Its lists do not lag, so a machine that they lack is gone: nobody waits for three minutes."""
    from autoscaler.composition import gcp  # with its clients, which other processes need not load
    from providers.gcp import provider

    elsewhere: Any = partial(gcp.Gcp, endpoint=url)
    gcp.Gcp = elsewhere  # type: ignore[misc]
    provider.TRAITS = replace(provider.TRAITS, consistency_window=timedelta(seconds=1))  # type: ignore[misc]


if __name__ == "__main__":
    main(*sys.argv[1:])
