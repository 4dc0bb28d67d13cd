"""Advice on one line, as tests compare it."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.advice.change import Change
from autoscaler.advice.trial import Advice
from autoscaler.report.advised import listed
from autoscaler.report.advised.change_steps import change_steps


def advice_lines(found: Iterable[Advice]) -> list[str]:
    """ "(1) step; (2) step → result; note; note" of each advice."""
    return [_one_line(listed.advice_lines(advice)) for advice in found]


def change_text(change: Change) -> str:
    return "; ".join(change_steps(change))


def _one_line(lines: list[str]) -> str:
    result = next(number for number, line in enumerate(lines) if line.startswith("→ "))
    notes = (line.removeprefix("note: ") for line in lines[result + 1 :])
    return f"{'; '.join(lines[:result])} {'; '.join((lines[result], *notes))}"
