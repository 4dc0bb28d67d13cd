"""Shared parts of `aws trial` and `gcp trial`: limits, outcomes as lines, a report, and a clean-up that always runs."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import click

from autoscaler.catalog_refresh.atomic_write import replace_file
from autoscaler.errors import BadInputError
from providers.trials import Outcome

FAILED = 3


def check_cost(cost: Decimal, max_usd: float) -> None:
    """Raises BadInputError if the trial may cost more than the user allows."""
    if cost > Decimal(str(max_usd)):
        step = "choose a smaller type with --type, or raise --max-usd"
        raise BadInputError(f"the trial may cost ${cost}, more than --max-usd {max_usd:g}", next_step=step)


def carried_out(
    run: Callable[[], None], outcomes: Sequence[Outcome], *, report: str, about: dict[str, object], sdks: Sequence[str]
) -> int:
    """Run a trial and write its report, also after an error. The exit code."""
    try:
        with _ended_like_ctrl_c():
            run()
    finally:
        versions = {name: version(name) for name in ("foreslice", *sdks)}
        rows = [{"check": o.name, "passed": o.passed, "message": o.message, "seconds": o.seconds} for o in outcomes]
        text = json.dumps({"versions": versions, **about, "outcomes": rows}, indent=2) + "\n"
        replace_file(Path(report), text)
        click.echo(f"report: {report}")
    return FAILED if any(one.passed is False for one in outcomes) else 0


def show(outcome: Outcome) -> None:
    mark = {True: "ok", False: "NOT AS EXPECTED", None: "note"}[outcome.passed]
    click.echo(f"{mark:<16}{outcome.name} ({outcome.seconds:g} s): {outcome.message}")


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """SIGTERM and a closed terminal end the command as Ctrl-C does, so that the machines are ended first."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
