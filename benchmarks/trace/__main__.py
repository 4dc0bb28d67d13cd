"""A trace of months through the production loop: CPU seconds of each policy, its cost, and the gap that it closes.

python -m benchmarks.trace openb_pod_list_gpuspec10.csv [--policies greedy,closing] [--first 800]. A policy may name its
keep-alive time (greedy:1m), otherwise it is 0s. public.py names the files. One process; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

from autoscaler.cli.main import collect_rarely
from autoscaler.report.study.gap import Gap
from autoscaler.report.study.outcome import Outcome
from autoscaler.simulation.study.numbers import span
from autoscaler.simulation.study.prepared import prepare
from autoscaler.simulation.study.run import Run
from autoscaler.simulation.study.task import Study, Variant
from benchmarks.trace.public import study_of
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog

TARGET_SECONDS: Final = 120.0
"""Of each policy, for all 8,152 tasks of cluster-trace-gpu-v2023."""
_EVERY: Final = 800


def changed(study: Study, options: argparse.Namespace) -> Study:
    """Without the tasks of more than so many days, then the first ones, with what they say of themselves."""
    longest = timedelta.max if options.days is None else timedelta(days=options.days)
    tasks = [t for t in study.tasks if t.runs is not None and t.runs <= longest][:: options.every][: options.first]
    checkpoint = None if options.checkpoint is None else timedelta(minutes=options.checkpoint)
    return replace(
        study,
        tasks=tuple(replace(t, checkpoint=checkpoint, says_duration=options.known_durations) for t in tasks),
    )


def main() -> None:
    """Simulate each policy and print a line for it."""
    parser = argparse.ArgumentParser(prog="benchmarks.trace", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "trace",
        type=Path,
        nargs="?",
        help="the CSV file of a trace that public.py names",
    )
    parser.add_argument("--policies", default="greedy,closing", help="policies to simulate, one after the other")
    parser.add_argument("--first", type=int, help="only so many tasks")
    parser.add_argument("--every", type=int, default=1, help="only one task of so many")
    parser.add_argument("--days", type=float, help="without tasks that run for more days")
    parser.add_argument("--checkpoint", type=float, help="tasks may be moved and lose at most so many minutes of work")
    parser.add_argument("--known-durations", action="store_true", help="pods say how long they run")
    options = parser.parse_args()
    if options.trace is None or not options.trace.is_file():
        print(f"no trace is simulated: there is no file {options.trace or 'given'}; pass openb_pod_list_gpuspec10.csv")
        return
    collect_rarely()  # as every command does
    began, catalog = time.process_time(), load_catalog()
    prepared = prepare(changed(study_of(options.trace, catalog), options), catalog, skip=True)
    print(
        f"{len(prepared.study.tasks):,} tasks, prepared in {time.process_time() - began:.1f} s of CPU time", flush=True
    )
    outcomes: list[Outcome] = []
    for policy in options.policies.split(","):
        began = time.process_time()
        name, _, keep_alive = policy.partition(":")
        variant = Variant(name, span(keep_alive) if keep_alive else None)
        outcomes.append(Run(prepared.study, variant, prepared.catalog).outcome(_Progress().say))
        print(line(outcomes, Gap.of(prepared.at_least, outcomes), time.process_time() - began), flush=True)


def line(outcomes: list[Outcome], gap: Gap, seconds: float) -> str:
    """The last of the outcomes, compared with those before it."""
    last = outcomes[-1]
    closed = gap.closed(last)
    share = "-" if closed is None else f"{100 * closed:.0f} %"
    mark = "" if seconds <= TARGET_SECONDS else f"  above target ({TARGET_SECONDS:.0f} s)"
    return (
        f"{last.policy:<8} {last.keep_alive:<4}  CPU {seconds:7.1f} s  {last.reconciles:,} reconciles of"
        f" {1000 * seconds / last.reconciles:.1f} ms  {last.usd:,.2f} $ of {gap.at_least:,.2f}  gap closed {share}"
        f"  wait p95 {last.wait(95)} s  moved {last.moved}  not started {last.never_started}{mark}"
    )


class _Progress:
    """A line on stderr for each 800 tasks that have arrived."""

    def __init__(self) -> None:
        self._said = 0

    def say(self, arrived: int, total: int) -> None:
        """Called at every step."""
        if arrived // _EVERY > self._said:
            self._said = arrived // _EVERY
            seconds = time.process_time()
            print(f"{arrived:,} of {total:,} tasks have arrived, CPU {seconds:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
