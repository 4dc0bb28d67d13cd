"""The outcomes of a study side by side, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from autoscaler.report.study.gap import Gap
from autoscaler.report.study.outcome import Outcome
from autoscaler.report.words import counted

COLUMNS: Final = (
    "policy",
    "keep-alive",
    "cost $",
    "gap closed",
    "wait p50",
    "p95",
    "p99",
    "GPU-h paid",
    "alloc",
    "start",
    "idle",
    "used",
    "frag",
    "nodes",
    "not started",
)
_LEAST: Final = 0.005  # of the gap: less is printed as 0%


def outcome_rows(outcomes: Sequence[Outcome], gap: Gap) -> list[tuple[str, ...]]:
    """One row for each variant, in the given order."""
    return [_row(outcome, gap) for outcome in outcomes]


def _row(outcome: Outcome, gap: Gap) -> tuple[str, ...]:
    closed = gap.closed(outcome)
    return (
        outcome.policy,
        outcome.keep_alive,
        f"{outcome.usd:,.2f}",
        "-" if closed is None else f"{round(closed, 2) or 0.0:.0%}",
        *(wait_text(outcome.wait(percent)) for percent in (50, 95, 99)),
        f"{outcome.gpu_hours_paid:,.1f}",
        f"{outcome.gpu_hours_allocated:,.1f}",
        f"{outcome.gpu_hours_starting:,.1f}",
        f"{outcome.gpu_hours_idle:,.1f}",
        f"{outcome.utilization:.0%}",
        f"{outcome.fragmentation:.1%}",
        str(outcome.launched),
        str(outcome.never_started),
    )


def wait_text(seconds: float | None) -> str:
    """ "45s", "2m30s", "1h05m"; "-" if a pod that never started is at that rank."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def summary_lines(name: str, outcomes: Sequence[Outcome], gap: Gap) -> Iterator[str]:
    """The facts that the table lacks: the size of the study, its lower bound, and the cheapest variant."""
    if not outcomes:
        return
    first = outcomes[0]
    yield f"{name}: {counted(first.pods, 'pod')} over {first.hours:,.1f} hours of virtual time"
    yield f"at least: {gap.at_least:,.2f} $, each task's devices at the cheapest price that fits"
    for cut in (outcome for outcome in outcomes if outcome.usd < gap.at_least and outcome.complete):
        yield f"{cut.name} costs less than that: the time ended before the pods that had waited did, so they ran less"
    yield from map(_never_started, (outcome for outcome in outcomes if outcome.never_started))
    yield from map(_interrupted, (outcome for outcome in outcomes if outcome.interrupted))
    yield from _best_of_others(outcomes, gap)
    for moving in (outcome for outcome in outcomes if outcome.moved):
        yield f"{moving.name}: {counted(moving.moved, 'pod')} moved to where they cost less"
    for ending in (outcome for outcome in outcomes if outcome.evicted):
        yield f"{ending.name}: {counted(ending.evicted, 'pod')} evicted before a block ended, and created again"
    complete = [outcome for outcome in outcomes if outcome.complete]
    if len(complete) < 2:
        return
    cheapest = min(complete, key=lambda outcome: outcome.usd)
    dearest = max(complete, key=lambda outcome: outcome.usd)
    if dearest.usd > 0 and cheapest.usd < dearest.usd:
        less = 1 - cheapest.usd / dearest.usd
        yield f"cheapest: {cheapest.name}, {less:.1%} less than {dearest.name}"
    quick = [outcome for outcome in complete if outcome.wait(95) is not None]
    if len({outcome.wait(95) for outcome in quick}) > 1:
        best = min(quick, key=lambda outcome: outcome.wait(95) or 0.0)
        yield f"shortest waiting (p95): {best.name}, {wait_text(best.wait(95))}"


def _never_started(outcome: Outcome) -> str:
    """How many pods never started, and why: the cost of such a run is that of less work."""
    why = "; ".join(outcome.left_out) or "the time ended before their nodes were ready"
    return f"{outcome.name}: {counted(outcome.never_started, 'pod')} never started, and the cost is without them: {why}"


def _interrupted(outcome: Outcome) -> str:
    """How many pods did not finish because their machines ended: the cost of such a run is that of less work."""
    one = outcome.interrupted == 1
    whose, machine = ("was interrupted when its", "machine") if one else ("were interrupted when their", "machines")
    return (
        f"{outcome.name}: {counted(outcome.interrupted, 'pod')} {whose} {machine} ended, and did not finish; "
        f"the cost is without the rest of {'its' if one else 'their'} work"
    )


def _best_of_others(outcomes: Sequence[Outcome], gap: Gap) -> Iterator[str]:
    """The run that closes most of the gap without longer waiting, of those that are not greedy; or that none does."""
    shares = [(outcome, gap.closed(outcome)) for outcome in outcomes if outcome.policy != "greedy"]
    found = [(share, outcome) for outcome, share in shares if share is not None and gap.as_quick(outcome)]
    if gap.greedy is None or not found:
        return
    share, best = max(found, key=lambda each: each[0])
    closing = f"{best.name} closes {share:.0%}" if share >= _LEAST else "no other run closes a part"
    yield f"{closing} of the gap between that and {gap.greedy.name}, with waiting (p95) no longer"
