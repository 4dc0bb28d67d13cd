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
    """Wall and CPU seconds of every counted round, peak resident MiB of the process, against a target in seconds."""

    name: str
    target: float
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]
    peak_mib: float
    exit_code: int

    @property
    def median(self) -> float:
        """The figure to quote."""
        return statistics.median(self.seconds)

    @property
    def cpu(self) -> float:
        """The median of the CPU seconds: the figure to quote of a machine that does other work as well."""
        return statistics.median(self.cpu_seconds)


def measure(name: str, arguments: list[str], *, target: float, rounds: int) -> Measurement:
    """Run `foreslice ARGUMENTS` once to warm up, then `rounds` times: with bytecode, as a package is installed."""
    command = [sys.executable, "-m", "autoscaler.cli", *arguments]
    results = [_run(command) for _ in range(rounds + 1)][1:]
    return Measurement(
        name=name,
        target=target,
        seconds=tuple(seconds for seconds, _, _, _ in results),
        cpu_seconds=tuple(cpu for _, cpu, _, _ in results),
        peak_mib=max(peak for _, _, peak, _ in results),
        exit_code=results[-1][3],
    )


def _run(command: list[str]) -> tuple[float, float, float, int]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode
