"""Thousands of random fault schedules and block lives, in several processes: `make faults`.

Prints what was tried, how fast, and how it came out. A schedule that leaks or doubles a machine ends the run with the
smallest one that does, as the calls of Schedules that replay it; a bad life ends it with its number.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from statistics import fmean, median

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.faults.block_lives import BlockWorld, Life, Story
from tests.faults.schedules import Schedules

STEPS = 16
# A block is usable for so much of the time between its start and its drain, booting apart.
TARGET = 0.95


def schedules(share: tuple[int, int]) -> Counter[str]:
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
    Schedules.told.clear()
    run_state_machine_as_test(seed(start)(Schedules), settings=chosen)
    return Counter(Schedules.told)


def live(number: int) -> Story:
    """Live one life. Raises AssertionError with its number when it went wrong."""
    story = BlockWorld(Life.number(number)).live()
    wrong = [*story.unwarned, *story.left] or ([] if story.share >= TARGET else [f"only {story.share:.1%} usable"])
    assert not wrong, f"block life {number}: {'; '.join(wrong)}"
    return story


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--lives", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    with ProcessPoolExecutor(chosen.processes) as pool:
        begin = time.perf_counter()
        # Hypothesis runs each share from its beginning; equal shares keep all processes busy to the end.
        shares = [(chosen.schedules // chosen.processes, chosen.seed + n) for n in range(chosen.processes)]
        told = sum(pool.map(schedules, shares), Counter())
        between = time.perf_counter()
        _tell_schedules(told, between - begin)
        first = chosen.seed * chosen.lives
        stories = list(pool.map(live, range(first, first + chosen.lives), chunksize=5))
        _tell_lives(stories, time.perf_counter() - between)
    return 0


def _tell_schedules(told: Counter[str], seconds: float) -> None:
    for what, times in sorted(told.items()):
        sys.stdout.write(f"{times:>11,}  {what}\n")
    rate = told["schedules"] / seconds
    sys.stdout.write(
        f"{told['schedules']:,} schedules in {seconds:.0f} s ({rate:.1f}/s): none leaked, none doubled\n\n"
    )


def _tell_lives(stories: Iterable[Story], seconds: float) -> None:
    found = list(stories)
    if not found:
        return
    shares = [story.share for story in found]
    booted = sum((story.booted for story in found), timedelta(0)) / sum((s.payable for s in found), timedelta(0))
    pods = sum(story.running_at_reclaim for story in found)
    lines = (
        f"{len(found):,} block lives in {seconds:.0f} s, {sum(story.extended for story in found):,} of them extended",
        f"{sum(story.jobs for story in found):,} jobs; {pods:,} pods ran at the reclaim, all of them had been told",
        f"usable: {fmean(shares):.3%} on average, median {median(shares):.3%}, least {min(shares):.3%}",
        f"booting, apart: {booted:.3%} of what was paid for",
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
