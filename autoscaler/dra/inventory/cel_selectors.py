"""Implements `SelectorEngine` with Kubernetes CEL."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from autoscaler.cel.checker.environment import View, dialect_of
from autoscaler.cel.common.evaluation import admit, pay
from autoscaler.cel.common.kept_texts import KeptTexts
from autoscaler.cel.common.outcome import CompileFailure, Outcome
from autoscaler.cel.interpreter.answer_cache import part_read
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.interpreter.reads import Path
from autoscaler.cel.program import MOST_OUTLINES, Program, compile_selector
from autoscaler.dra.inventory.selectors import NO, YES, Answer, Match
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import Device

# Units of work for compiling one character at most; even the shortest expression takes as long as some characters.
_COMPILATION: Final = 100
_SHORTEST: Final = 10
# Units for each expression in it, for each sign of the text that is no letter, digit or space, and for each character.
# Measured: some 40 µs for an expression, 8 µs for a parenthesis; a usual selector of 70 characters takes 0.4 ms.
_EXPRESSION: Final = 200
_SIGN: Final = 50
_CHARACTER: Final = 5
# The part of these units for a selector that differs only in constants from one that was compiled before: 0.1 ms.
_ALIKE: Final = 5


class CelSelectors:
    """Compiles each expression once per Kubernetes profile. Evaluating raises BudgetSpentError."""

    def __init__(self, profile: KubernetesProfile) -> None:
        self._profile = profile
        self._dialect = dialect_of(profile, View.STORED)
        self._programs: KeptTexts[Program | CompileFailure] = KeptTexts()
        self._outlines: set[str] = set()

    def evaluate(self, expression: str, *, driver: str, device: Device) -> Match:
        """The answer of kube-scheduler's DeviceMatches (k8s.io/dynamic-resource-allocation cel/compile.go, v0.36)."""
        program = self._programs.of(expression) or self._compiled(expression)
        if isinstance(program, CompileFailure):
            return Match(Answer.INVALID, program.message)
        found = program.evaluate(DeviceView.read(driver, device, self._dialect))
        match found.outcome:
            case Outcome.TRUE:
                return YES
            case Outcome.FALSE:
                return NO
            case Outcome.ERROR:
                return Match(Answer.ERROR, found.message, missing_key=found.missing_key)
            case Outcome.UNKNOWN:
                return Match(Answer.UNKNOWN, found.message, found.unknown_attributes)

    def reads(self, expressions: Iterable[str]) -> frozenset[Path] | None:
        """The fields that the texts name."""
        found: frozenset[Path] = frozenset()
        for expression in expressions:
            program = self._programs.of(expression) or self._compiled(expression)
            if isinstance(program, CompileFailure) or program.reads is None:
                return None
            found |= program.reads
        return found

    def seen(self, reads: frozenset[Path], *, driver: str, device: Device) -> Hashable | None:
        """The values of these fields, by type and form."""
        view = DeviceView.read(driver, device, self._dialect)
        return None if view.failure else part_read(view.root, reads)

    def _compiled(self, expression: str) -> Program | CompileFailure:
        most = _COMPILATION * (_SHORTEST + len(expression))
        admit(most, expression)
        program = compile_selector(expression, self._profile)
        self._programs.keep(expression, program, nodes=program.nodes if isinstance(program, Program) else 0)
        work = min(most, _work_of(program)) if isinstance(program, Program) and program.nodes else most
        pay(work // _ALIKE if self._alike(program) else work, expression)
        return program

    def _alike(self, program: Program | CompileFailure) -> bool:
        """True if the program differs only in constants from one that was compiled before. What other plans compiled
        does not count: the same objects cost the same in each process."""
        outline = program.outline if isinstance(program, Program) else ""
        if not outline or outline in self._outlines:
            return bool(outline)
        if len(self._outlines) >= MOST_OUTLINES:
            self._outlines.clear()
        self._outlines.add(outline)
        return False


def _work_of(program: Program) -> int:
    """The cost of compiling the program, in units of work."""
    text = program.expression
    signs = sum(not (character.isalnum() or character.isspace()) for character in text)
    return _EXPRESSION * program.nodes + _SIGN * signs + _CHARACTER * (_COMPILATION + len(text))
