"""Thousands of random fault schedules and block lives, in several processes: `make faults`.

They run in shares, lives and schedules by turns, and each share that is done is told, so that a run that is cut short
has said something about both. What goes wrong does not end the run: the share that it happened in is shown with the
command that runs it again. Of a schedule that fails the smallest is shown, as the calls of Schedules that replay it.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, zip_longest
from statistics import fmean, median

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.faults.block_lives import AwsBlockWorld, BlockWorld, Life, Story
from tests.faults.both_clouds import BothSchedules
from tests.faults.drawing import AFRESH
from tests.faults.gcp.block_lives import GcpBlockWorld
from tests.faults.gcp.held import HeldSchedules
from tests.faults.gcp.schedules import GcpSchedules
from tests.faults.gcp.slices import SliceSchedules
from tests.faults.schedules import Schedules

# Over Google Cloud more can happen, and each of it as often in a schedule.
STEPS, GCP_STEPS = 16, 24
# A block is usable for so much of the time between its start and its drain, booting apart.
TARGET = 0.95
# So many are a share of a run: the whole is done in no fewer than forty of each.
SCHEDULES, LIVES, GCP_SCHEDULES, GCP_LIVES = 250, 25, 25, 5
KINDS = ("schedules", "lives", "gcp", "gcp-lives", "held", "slices", "both")
# Schedules by what they are called here.
DRAWN: dict[str, type[Schedules] | type[GcpSchedules]] = {
    "schedules": Schedules,
    "gcp": GcpSchedules,
    "held": HeldSchedules,
    "slices": SliceSchedules,
    "both": BothSchedules,
}


@dataclass(frozen=True, slots=True)
class Share:
    """Some lives from number `first` on ("gcp-lives": of Google Cloud), or schedules drawn from the seed `first`
    ("gcp": of Google Cloud, "held" and "slices": of what it holds and of its TPU slices, "both": of both clouds)."""

    what: str
    first: int
    count: int

    @property
    def command(self) -> str:
        """What runs just this share again."""
        others = " ".join(f"--{other} 0" for other in KINDS if other != self.what)
        return f"python -m tests.faults.run --{self.what} {self.count} {others} --first {self.first} --processes 1"

    def run(self) -> Counter[str] | list[Story]:
        """What came of it. Raises AssertionError, or whatever else a schedule met, after showing it."""
        try:
            if self.what in DRAWN:
                return schedules(self.count, self.first, DRAWN[self.what])
            world: type[BlockWorld] = GcpBlockWorld if self.what == "gcp-lives" else AwsBlockWorld
            return [live(self.first + number, world) for number in range(self.count)]
        except BaseException:
            # Shown here, because what goes to another process loses the calls that replay it.
            traceback.print_exc()
            raise


def schedules(examples: int, start: int, kind: type[Schedules] | type[GcpSchedules] = Schedules) -> Counter[str]:
    """Run some schedules; what happened in them. Raises AssertionError with the smallest schedule that fails."""
    google = issubclass(kind, GcpSchedules)
    backend = AFRESH if google else "hypothesis"
    chosen = settings(
        max_examples=examples,
        stateful_step_count=GCP_STEPS if google else STEPS,
        deadline=None,
        database=None,
        derandomize=False,
        backend=backend,
        suppress_health_check=list(HealthCheck),
    )
    kind.told.clear()
    run_state_machine_as_test(seed(start)(kind), settings=chosen)
    return Counter(kind.told)


def live(number: int, world: type[BlockWorld] = AwsBlockWorld) -> Story:
    """Live one life. Raises AssertionError with its number when it went wrong."""
    story = world(Life.number(number)).live()
    wrong = [*story.unwarned, *story.left] or ([] if story.share >= TARGET else [f"only {story.share:.1%} usable"])
    assert not wrong, f"block life {number}: {'; '.join(wrong)}"
    return story


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--lives", type=int, default=1_000)
    parser.add_argument(
        "--google",
        type=int,
        help="schedules over Google Cloud: half of kind gcp, a tenth held, a fifth slices, a fifth both",
    )
    parser.add_argument("--gcp", type=int, help="schedules over Google Cloud [default: a tenth of the others]")
    parser.add_argument("--gcp-lives", type=int, help="lives over Google Cloud [default: a tenth of the others]")
    parser.add_argument(
        "--held", type=int, help="schedules over capacity that Google Cloud holds [default: a twentieth]"
    )
    parser.add_argument("--slices", type=int, help="schedules over TPU slices [default: a twentieth]")
    parser.add_argument("--both", type=int, help="schedules over both clouds [default: a twentieth]")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws others; all of them are repeatable")
    parser.add_argument("--first", type=int, help="the number of the first share of schedules, or of the first life")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    _divide(chosen)
    chosen.gcp = chosen.schedules // 10 if chosen.gcp is None else chosen.gcp
    chosen.held = chosen.schedules // 20 if chosen.held is None else chosen.held
    chosen.slices = chosen.schedules // 20 if chosen.slices is None else chosen.slices
    chosen.both = chosen.schedules // 20 if chosen.both is None else chosen.both
    chosen.gcp_lives = chosen.lives // 10 if chosen.gcp_lives is None else chosen.gcp_lives
    lives = _lives("lives", chosen.lives, LIVES, chosen)
    calendar = _lives("gcp-lives", chosen.gcp_lives, GCP_LIVES, chosen)
    drawn = [list(_drawn(what, getattr(chosen, what), chosen)) for what in DRAWN]
    turns = [share for share in chain.from_iterable(zip_longest(lives, calendar, *drawn)) if share is not None]
    told, stories, failed = _run(turns, chosen.processes)
    _tell_lives(stories)
    _tell_schedules(told)
    for share in failed:
        sys.stdout.write(f"FAILED, shown above; again: {share.command}\n")
    return 1 if failed else 0


def _divide(chosen: argparse.Namespace) -> None:
    """How many of each kind the schedules over Google Cloud are: what takes longest is drawn least."""
    if chosen.google is None:
        return
    for kind, share in (("gcp", 2), ("held", 10), ("slices", 5), ("both", 5)):
        if getattr(chosen, kind) is None:
            setattr(chosen, kind, chosen.google // share)


def _lives(what: str, total: int, size: int, chosen: argparse.Namespace) -> Iterator[Share]:
    return _shares(what, total, size, chosen.seed * total if chosen.first is None else chosen.first)


def _drawn(what: str, total: int, chosen: argparse.Namespace) -> Iterator[Share]:
    """The shares of schedules of one kind, or the one that is named."""
    if chosen.first is None:
        return _shares(what, total, SCHEDULES if what == "schedules" else GCP_SCHEDULES, chosen.seed * 1_000_000)
    return iter([Share(what, chosen.first, total)] if total else [])


def _shares(what: str, total: int, size: int, first: int) -> Iterator[Share]:
    for begin in range(0, total, size):
        yield Share(what, first + (begin if "lives" in what else begin // size), min(size, total - begin))


def _run(shares: list[Share], processes: int) -> tuple[Counter[str], list[Story], list[Share]]:
    told: Counter[str] = Counter()
    stories: list[Story] = []
    failed: list[Share] = []
    begin = time.perf_counter()
    with ThreadPoolExecutor(processes) as threads:
        running = {threads.submit(_in_new_process, share): share for share in shares}
        for done in as_completed(running):
            if done.exception() is not None:
                failed.append(running[done])
            elif isinstance(result := done.result(), Counter):
                told += result
            else:
                stories += result
            sys.stdout.write(
                f"{time.perf_counter() - begin:>7,.0f} s: {len(stories):,} lives and {told['schedules']:,} schedules "
                f"went well, {len(failed)} shares did not\n"
            )
            sys.stdout.flush()
    return told, stories, failed


def _in_new_process(share: Share) -> Counter[str] | list[Story]:
    """What came of a share, in a process of its own: a simulation leaves more than a megabyte in memory."""
    with ProcessPoolExecutor(1, initializer=_settle_in) as pool:
        return pool.submit(share.run).result()


def _settle_in() -> None:
    """Catalogs and service models stay for as long as the process, so that looking for garbage often is for nothing."""
    gc.set_threshold(100_000, 50, 100)


def _tell_schedules(told: Counter[str]) -> None:
    for what, times in sorted(told.items()):
        name, _, of = what.partition(": schedules with ")
        part = f"{times / told[f'{name}: schedules']:>7.1%}  " if of else ""
        sys.stdout.write(f"{times:>11,}  {part}{what}\n")
    sys.stdout.write(f"{told['schedules']:,} schedules: every invariant held\n")


def _tell_lives(stories: Iterable[Story]) -> None:
    found = list(stories)
    if not found:
        return
    shares = [story.share for story in found]
    booted = sum((story.booted for story in found), timedelta(0)) / sum((s.payable for s in found), timedelta(0))
    pods = sum(story.running_at_reclaim for story in found)
    lines = (
        f"{len(found):,} block lives, {sum(story.extended for story in found):,} of them extended",
        f"{sum(story.jobs for story in found):,} jobs; {pods:,} pods ran at the reclaim, all of them had been told",
        f"usable: {fmean(shares):.3%} on average, median {median(shares):.3%}, least {min(shares):.3%}",
        f"booting, apart: {booted:.3%} of what was paid for",
    )
    sys.stdout.write("\n".join(lines) + "\n\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
