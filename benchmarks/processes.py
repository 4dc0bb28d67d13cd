"""Whole-process timings: what a user waits for, interpreter start included."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Measurement:
    """Wall seconds of every counted round, peak resident MiB of the process, against a target in seconds."""

    name: str
    target: float
    seconds: tuple[float, ...]
    peak_mib: float
    exit_code: int

    @property
    def median(self) -> float:
        """The figure to quote."""
        return statistics.median(self.seconds)


def measure(name: str, arguments: list[str], *, target: float, rounds: int) -> Measurement:
    """Run `foreslice ARGUMENTS` once to warm up, then `rounds` times."""
    command = [sys.executable, "-m", "autoscaler.cli", *arguments]
    results = [_run(command) for _ in range(rounds + 1)][1:]
    return Measurement(
        name=name,
        target=target,
        seconds=tuple(seconds for seconds, _, _ in results),
        peak_mib=max(peak for _, peak, _ in results),
        exit_code=results[-1][2],
    )


def _run(command: list[str]) -> tuple[float, float, int]:
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    return seconds, usage.ru_maxrss / 1024, process.returncode
