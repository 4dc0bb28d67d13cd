"""The device that comes closest to selectors which nothing meets, and what it lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from autoscaler.cel.outcome import CompileFailure, Outcome
from autoscaler.cel.program import Program, compile_selector
from autoscaler.kube.problem import did_you_mean
from autoscaler.lint.expressions import conditions, words
from autoscaler.lint.offers import Specimen
from autoscaler.lint.readings import readings
from instance_catalog.kubernetes_profile import KubernetesProfile

_SHOWN_VALUES = 6
_AMOUNT = re.compile(r"\b(quantity|semver)\(")  # amounts that are spelled alike are not near each other


def nearest_miss(
    expressions: Sequence[str], devices: Sequence[Specimen], profile: KubernetesProfile
) -> tuple[str, str]:
    """(what the closest device lacks, what to write instead); empty texts if there are no devices at all."""
    parts = [part for expression in expressions for part in conditions(expression, profile)]
    programs = [found for part in parts if not isinstance(found := compile_selector(part, profile), CompileFailure)]
    if not devices or not programs:
        return "", ""
    scores = [(sum(_met(program, one) for program in programs), one) for one in devices]
    best = max(score for score, _ in scores)
    closest = [one for score, one in scores if score == best]
    example = closest[0]
    missed = [program for program in programs if not _met(program, example)]
    if not missed:  # each condition can be met, by values that are not known together
        return "", ""
    missing = "; ".join(_missing(program, example) for program in missed)
    alike = [one for one in closest if not _met(missed[0], one)]
    return f"closest is {example.example}, which does not meet {missing}", _instead(missed[0], alike)


def _met(program: Program, specimen: Specimen) -> bool:
    return program.evaluate(specimen.view).outcome in (Outcome.TRUE, Outcome.UNKNOWN)


def _missing(program: Program, specimen: Specimen) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in readings(specimen.view, program.reads))
    return f"`{program.expression}`" + (f" ({values})" if values else "")


def _instead(program: Program, closest: Sequence[Specimen]) -> str:
    """The values that the closest devices have where the first missed condition looks."""
    found: dict[str, dict[str, None]] = {}
    for specimen in closest:
        for name, value in readings(specimen.view, program.reads):
            found.setdefault(name, {})[value] = None
    if len(found) != 1:
        return ""
    ((name, values),) = found.items()
    near = [guess for word in words(program.expression) if (guess := did_you_mean(word, values))]
    if near and not _AMOUNT.search(program.expression):
        return f"did you mean {near[-1]!r}?"
    shown = sorted(values)[:_SHOWN_VALUES]
    more = f" and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
    return f"devices that meet the rest have {name} = {', '.join(shown)}{more}"
