"""Thousands of random fault schedules, in several processes: `make faults`, with N schedules and the SEED of a run.

Prints what was tried, how fast, and nothing leaked or doubled; or the smallest schedule that breaks it, as the calls
of Schedules that replay it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.faults.schedules import Schedules

STEPS = 16


def work(share: tuple[int, int]) -> Counter[str]:
    """Run some schedules; what happened in them. Raises AssertionError with the smallest schedule that fails."""
    examples, start = share
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(start)(Schedules), settings=chosen)
    return Schedules.told


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    # Hypothesis runs each share from the beginning; shares of equal size keep all processes busy to the end.
    shares = [(chosen.schedules // chosen.processes, chosen.seed + number) for number in range(chosen.processes)]
    begin = time.perf_counter()
    with ProcessPoolExecutor(chosen.processes) as pool:
        told = sum(pool.map(work, shares), Counter())
    seconds = time.perf_counter() - begin
    for what, times in sorted(told.items()):
        sys.stdout.write(f"{times:>9,}  {what}\n")
    rate = told["schedules"] / seconds
    sys.stdout.write(f"{told['schedules']:,} schedules in {seconds:.0f} s ({rate:.1f}/s): none leaked, none doubled\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
