"""Selectors by themselves: whether the API server takes them, whether the answer is reliable, which names exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.cel.checker.environment import View
from autoscaler.cel.common.evaluation import COST_LIMIT
from autoscaler.cel.common.outcome import CompileFailure
from autoscaler.cel.program import Program, compile_selector, estimated_cost
from autoscaler.lint.expressions import drivers_named
from autoscaler.lint.guards import QUANTITY_LITERAL, quantity_mistake
from autoscaler.lint.published_names import PublishedNames
from autoscaler.lint.rules import (
    CEL_COMPILE,
    CEL_COST,
    CEL_SIZE,
    CEL_UNRELIABLE,
    INVALID_QUANTITY,
    UNKNOWN_ATTRIBUTE,
    Finding,
)
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes.profile import KubernetesProfile

_MAX_SIZE: Final = 10 * 1024  # bytes (k8s.io/api resource/v1 CELSelectorExpressionMaxLength)


def check_selector(
    name: str, path: Path, expression: str, *, stored: bool, profile: KubernetesProfile, known: PublishedNames
) -> Iterator[Finding]:
    """Everything about one expression at `path` of the object `name`."""
    size = len(expression.encode())
    if size > _MAX_SIZE:
        step = "split the conditions over several selectors: all of them must be met"
        yield Finding.of(CEL_SIZE, name, path, f"{size} bytes; the API allows {_MAX_SIZE}", step)
    compiled = compile_selector(expression, profile, view=View.STORED if stored else View.NEW)
    if isinstance(compiled, CompileFailure):
        step = compiled.hint or "correct the expression; `foreslice cel` shows the place"
        yield Finding.of(CEL_COMPILE, name, path, f"does not compile at {_place(compiled)}: {compiled.message}", step)
        return
    if not stored:
        yield from _cost(name, path, expression, profile)
    for written in QUANTITY_LITERAL.findall(expression):
        if (right := quantity_mistake(written)) is not None:
            yield Finding.of(INVALID_QUANTITY, name, path, f'quantity("{written}") fails on every device', right)
    if compiled.warning:
        step = "compare with isGreaterThan, isLessThan or compareTo instead"
        yield Finding.of(CEL_UNRELIABLE, name, path, compiled.warning, step)
    for wrong in misnamed(compiled, known):
        yield Finding.of(UNKNOWN_ATTRIBUTE, name, path, *wrong)


def _cost(name: str, path: Path, expression: str, profile: KubernetesProfile) -> Iterator[Finding]:
    cost = estimated_cost(expression, profile)
    if isinstance(cost, int) and cost > COST_LIMIT:
        message = f"the estimated cost exceeds the limit of {COST_LIMIT:,} units (estimate: {min(cost, 2**63):,})"
        step = "avoid nested loops; write !(a == b) for a != b on quantities; limit lists with literals"
        yield Finding.of(CEL_COST, name, path, message, step)


def misnamed(program: Program, known: PublishedNames) -> Iterator[tuple[str, str]]:
    """The errors in names that a selector reads, with their corrections."""
    if drivers_named((program.expression,)) - known.drivers:
        return  # what other drivers publish is not known
    for group, domain, identifier in sorted(program.reads or ()):
        wrong = known.judge(group, domain, identifier) if identifier else None
        if wrong:
            yield wrong


def _place(failure: CompileFailure) -> str:
    several = "\n" in failure.expression.strip()
    return f"line {failure.line}, column {failure.column}" if several else f"column {failure.column}"
