"""The device that matches the most of selectors that no device meets, and what it lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from autoscaler.cel.common.outcome import CompileFailure, Outcome
from autoscaler.cel.program import Program, compile_selector
from autoscaler.lint.devices.effort import Effort, EffortExceededError
from autoscaler.lint.devices.offers import Specimen
from autoscaler.lint.devices.readings import readings
from autoscaler.lint.expressions import conditions, words
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.spelling import nearest

_SHOWN_VALUES = 6
_AMOUNT = re.compile(r"\b(quantity|semver)\(")  # amounts that are spelled alike are not near each other


class NearestMiss:
    """Finds closest devices under one profile, as long as there is effort left."""

    def __init__(self, profile: KubernetesProfile, effort: Effort) -> None:
        self._profile = profile
        self._effort = effort

    def of(self, expressions: Sequence[str], devices: Sequence[Specimen]) -> tuple[str, str]:
        """(what the closest device lacks, what to write instead); empty texts where that cannot be said."""
        parts = [part for expression in expressions for part in conditions(expression, self._profile)]
        compiled = (compile_selector(part, self._profile) for part in parts)
        programs = [found for found in compiled if not isinstance(found, CompileFailure)]
        try:
            missed = [[program for program in programs if not self._met(program, one)] for one in devices]
        except EffortExceededError:
            return "", ""
        fewest = min(map(len, missed), default=0)
        if not fewest:  # no devices; or each condition can be met, by values that are not known together
            return "", ""
        closest = [(one, lacks) for one, lacks in zip(devices, missed, strict=True) if len(lacks) == fewest]
        first, lacks = closest[0]
        alike = [one for one, others in closest if lacks == others]
        step, example = _instead(lacks[0], alike) or ("", first)
        missing = "; ".join(_missing(program, example) for program in lacks)
        return f"closest is {example.example}, which does not meet {missing}", step

    def _met(self, program: Program, specimen: Specimen) -> bool:
        return self._effort.evaluate(program, specimen.view).outcome in (Outcome.TRUE, Outcome.UNKNOWN)


def _missing(program: Program, specimen: Specimen) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in readings(specimen.view, program.reads))
    return f"`{program.expression}`" + (f" ({values})" if values else "")


def _instead(program: Program, closest: Sequence[Specimen]) -> tuple[str, Specimen] | None:
    """The correction of the first missed condition, with the values that the closest devices have there, and such a
    device; None if the condition reads several values."""
    found: dict[str, dict[str, Specimen]] = {}
    for specimen in closest:
        for name, value in readings(specimen.view, program.reads):
            found.setdefault(name, {}).setdefault(value, specimen)
    if len(found) != 1:
        return None
    ((name, values),) = found.items()
    near = [guess for word in words(program.expression) for guess in nearest(word, values)]
    if near and not _AMOUNT.search(program.expression):
        return f"did you mean {near[-1]!r}?", values[near[-1]]
    shown = sorted(values)[:_SHOWN_VALUES]
    more = f" and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
    return f"devices that meet the rest have {name} = {', '.join(shown)}{more}", closest[0]
