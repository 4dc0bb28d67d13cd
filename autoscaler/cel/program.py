"""Compiles selectors and evaluates them: the entry point of this package.

Programs are immutable and cached by text and dialect, failures included. An evaluation keeps its state in a frame of
its own, so programs may be used from several threads.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, cast

from lark import UnexpectedInput, UnexpectedToken

from autoscaler.cel.checker.checker import Checker
from autoscaler.cel.checker.environment import Dialect, Environment, View, dialect_of, environment
from autoscaler.cel.checker.validator import validate
from autoscaler.cel.common import types
from autoscaler.cel.common.ast import Call, Expression, ExpressionError, Mistake
from autoscaler.cel.common.evaluation import (
    ACCOUNT,
    ALLOWANCE,
    COST,
    COST_LIMIT,
    DEVICE,
    FIRST_SLOT,
    STEPS,
    Allowance,
    CostExceededError,
    Frame,
    Run,
    WorkExceededError,
)
from autoscaler.cel.common.kept_texts import KeptTexts
from autoscaler.cel.common.outcome import CompileFailure, Evaluation, Outcome
from autoscaler.cel.common.types import NestingError, Type
from autoscaler.cel.common.values import Failure, PanicError, Unknown, Value
from autoscaler.cel.cost.estimate import estimated_max_cost
from autoscaler.cel.hints import hint_for
from autoscaler.cel.interpreter.answer_cache import KEPT, part_read
from autoscaler.cel.interpreter.demands import Demand, demands
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.interpreter.planner import Planner
from autoscaler.cel.interpreter.reads import Path, paths_read
from autoscaler.cel.library.conversions import type_of
from autoscaler.cel.outlines import outline_of, places_of
from autoscaler.cel.parser.grammar import parser
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.kubernetes.profile import KubernetesProfile

MAX_CODE_POINTS: Final = 100_000
DEFECT: Final = "foreslice failed to evaluate it; report this as a defect"
# Places of defects that are in the log already: a selector with a defect is evaluated for every device.
_LOGGED: Final[set[tuple[type[Exception], str | None, int | None]]] = set()
_MOST_CHOICES: Final = 32  # combinations of attributes with several possible values that are tried
_MOST_PER_VIEW: Final = 512  # answers cached with a device
MOST_OUTLINES: Final = 256
_LONGEST_OUTLINED: Final = 1_000  # characters; the syntax tree of a longer text is not kept
_LEAST: Final = 20  # units for starting an evaluation, whatever its cost
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled selector.

    `reads` lists the device fields it may read, or is None if they are computed. `warning` is the reason why Kubernetes
    itself does not answer reliably, or empty. `worst` is the greatest expected cost of an evaluation. `nodes` is the
    number of its expressions, with macros expanded; 0 if it was not planned. `outline` is the text under which its
    syntax tree is kept for further selectors, or empty.
    """

    expression: str
    reads: frozenset[Path] | None
    warning: str
    worst: int
    _run: Run
    _slots: int
    _observes_quantities: bool
    _loops: bool
    nodes: int = 0
    outline: str = ""
    mark: object = field(default_factory=object)  # for it in caches of answers, which must not keep it

    def evaluate(self, view: DeviceView) -> Evaluation:
        """The selector's answer for one device, cached for all devices with the same values of the fields that it
        reads.

        New work is paid from the current account. Raises BudgetSpentError if that is empty, and nothing else.
        """
        answer = view.answers.get(self.mark)
        if answer is None:
            answer = self._kept(view)
            if len(view.answers) >= _MOST_PER_VIEW:
                view.answers.clear()
            view.answers[self.mark] = answer
        return answer

    def _kept(self, view: DeviceView) -> Evaluation:
        if view.failure:
            return Evaluation(Outcome.ERROR, view.failure)
        read = part_read(view.root, self.reads)
        if read is None:
            return self._paid(view)
        key = (self.mark, *read)
        answer = KEPT.of(key)
        if answer is None:
            answer = self._paid(view)
            KEPT.keep(key, answer)
        return answer

    def _paid(self, view: DeviceView) -> Evaluation:
        account = ACCOUNT.get()
        if account is None:
            return self._evaluate(view, Allowance() if self._loops else None)
        account.admit(self.worst, self.expression)
        allowance = Allowance() if self._loops else None
        answer = self._evaluate(view, allowance)
        # Steps that Kubernetes' cost does not count are work as well.
        account.pay(_LEAST + max(answer.cost, STEPS - allowance.steps if allowance is not None else 0))
        return answer

    def _evaluate(self, view: DeviceView, allowance: Allowance | None) -> Evaluation:
        """The answer; if it depends on attributes with known possible values, the answer that these have in common."""
        answer = self._once(view, allowance)
        if answer.outcome is not Outcome.UNKNOWN or not answer.unknown_attributes:
            return answer
        possible = [self._once(one, allowance) for one in view.chosen(answer.unknown_attributes, _MOST_CHOICES)]
        if not possible:
            return answer
        cost = answer.cost + sum(one.cost for one in possible)
        agreed = len({one.outcome for one in possible}) == 1 and possible[0].outcome is not Outcome.UNKNOWN
        return replace(possible[0] if agreed else answer, cost=cost)

    def _once(self, view: DeviceView, allowance: Allowance | None) -> Evaluation:
        frame: Frame = [0, None, *[None] * self._slots]
        token = ALLOWANCE.set(allowance) if allowance is not None else None
        try:
            frame[DEVICE] = view.fresh() if self._observes_quantities else view.root
            value = self._run(frame)
            if value is True or value is False:
                return _decided(value, frame[COST])
            return _not_a_bool(value, frame[COST])
        except WorkExceededError:
            return Evaluation(Outcome.UNKNOWN, "more work than a selector may need", cost=frame[COST])
        except CostExceededError:
            return Evaluation(Outcome.ERROR, "operation cancelled: actual cost limit exceeded", cost=frame[COST])
        except PanicError as panic:
            return Evaluation(Outcome.ERROR, f"internal error: {panic}", cost=frame[COST])
        except Exception as defect:  # noqa: BLE001  # anyone may write a selector: see _failed
            return _failed(self.expression, defect, frame[COST])
        finally:
            if token is not None:
                ALLOWANCE.reset(token)


def _failed(expression: str, defect: Exception, cost: int) -> Evaluation:
    """The answer for a defect: it must not end the reconcile for others, and it is no answer of Kubernetes either."""
    last = defect.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = type(defect), last and last.tb_frame.f_code.co_filename, last and last.tb_lineno
    if where not in _LOGGED:
        _LOGGED.add(where)
        _LOG.error("cannot evaluate the selector %.200r", expression, exc_info=defect)
    return Evaluation(Outcome.UNKNOWN, f"{DEFECT} ({type(defect).__name__}: {defect!s:.150})", cost=cost)


@lru_cache(maxsize=1024)
def _decided(value: bool, cost: int) -> Evaluation:  # noqa: FBT001 - the value is the answer
    """The evaluation, cached: creating one costs as much as a short selector."""
    return Evaluation(Outcome.TRUE if value else Outcome.FALSE, cost=cost)


def _not_a_bool(value: object, cost: int) -> Evaluation:
    if type(value) is Unknown:
        names = tuple(sorted(value.attributes))
        reason = value.reason or f"depends on {', '.join(names)}, which exists only once the node runs"
        return Evaluation(Outcome.UNKNOWN, reason, names, cost)
    if type(value) is Failure:
        return Evaluation(Outcome.ERROR, value.message, cost=cost, missing_key=value.missing_key)
    return Evaluation(
        Outcome.ERROR, f"CEL result of type {type_of(value).name} could not be converted to bool", cost=cost
    )


_COMPILED: Final[KeptTexts[Program | CompileFailure]] = KeptTexts()


def compile_selector(
    expression: str, profile: KubernetesProfile, *, view: View = View.STORED
) -> Program | CompileFailure:
    """The program of a selector, or its compile error. `view` NEW: as the API server accepts it in new objects."""
    return _compiled(expression, dialect_of(profile, view))


def estimated_cost(expression: str, profile: KubernetesProfile, *, view: View = View.NEW) -> int | CompileFailure:
    """The static worst case of a selector: the API server refuses new ones above COST_LIMIT, the scheduler does not."""
    compiled = compile_selector(expression, profile, view=view)
    if isinstance(compiled, CompileFailure):
        return compiled
    dialect = dialect_of(profile, view)
    root = parse(expression, dialect)
    Checker(environment(dialect)).check(root)
    return estimated_max_cost(root, modern=dialect.modern)


@lru_cache(maxsize=1024)
def demands_of(expression: str, profile: KubernetesProfile) -> tuple[Demand, ...]:
    """The values that a selector requires; () for one that does not compile."""
    if isinstance(compile_selector(expression, profile), CompileFailure):
        return ()
    return tuple(demands(parse(expression, dialect_of(profile, View.STORED))))


def _compiled(expression: str, dialect: Dialect) -> Program | CompileFailure:
    found = _COMPILED.of(expression, dialect)
    if found is None:
        found = _compile(expression, environment(dialect))
        _COMPILED.keep(expression, found, dialect, nodes=found.nodes if isinstance(found, Program) else 0)
    return found


def _compile(expression: str, declared: Environment) -> Program | CompileFailure:
    try:
        return _program(expression, declared)
    except UnexpectedInput as error:
        # An unexpected end is a token to lark, with the position of the previous token.
        ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
        offset = len(expression) if ended else _offset(error.pos_in_stream, len(expression))
        return _failure(expression, _unexpected(expression, offset), declared)
    except PanicError as panic:  # upstream panics while it creates a constant map
        return _failure(expression, ExpressionError(f"internal error: {panic}", 0), declared)
    except NestingError:
        too_deep = ExpressionError("expression recursion limit exceeded: types nest too deeply", 0)
        return _failure(expression, too_deep, declared)
    except ExpressionError as error:
        return _failure(expression, error, declared)
    except Exception as error:  # noqa: BLE001  # as in Program.evaluate
        return _unplanned(expression, error)


def _unplanned(expression: str, defect: Exception) -> Program:
    """A program for an expression that could not be planned: every evaluation raises the defect."""

    where = defect.__traceback__

    def run(_: Frame) -> Value:
        raise defect.with_traceback(where)  # without it, each call adds the frames that it passes

    return Program(expression, None, "", _LEAST, run, FIRST_SLOT, _observes_quantities=False, _loops=False)


def _offset(position: int | None, length: int) -> int:
    """The offset; lark has no position for some unexpected ends."""
    return length if position is None or position < 0 else position


def _unexpected(expression: str, offset: int) -> ExpressionError:
    character = expression[offset : offset + 1]
    found = repr(character) if character else "end of the expression"
    return ExpressionError(f"Syntax error: unexpected {found}", offset, Mistake.SYNTAX, name=character)


def _failure(expression: str, error: ExpressionError, declared: Environment) -> CompileFailure:
    before = expression[: error.position]
    line, column = before.count("\n") + 1, error.position - before.rfind("\n")
    return CompileFailure(expression, error.message, line, column, hint_for(expression, error, declared.functions))


@dataclass(frozen=True, slots=True)
class _Checked:
    """An expression without syntax or type errors, and what does not depend on its constants of an outline.

    `places`: by identity of such a literal, its offset in the text.
    """

    root: Expression
    calls: list[Call]
    reads: frozenset[Path] | None
    warning: str
    worst: int
    nodes: int
    places: Mapping[int, int]


# By outline and dialect.
_OUTLINES: Final[dict[tuple[str, Dialect], _Checked]] = {}


def _program(expression: str, declared: Environment) -> Program:
    outlined = outline_of(expression) if len(expression) <= _LONGEST_OUTLINED else None
    if outlined is None:
        return _planned(expression, _checked(expression, declared, {}), declared, {})
    outline, constants = outlined
    known = _OUTLINES.get((outline, declared.dialect))
    if known is None:
        known = _checked(expression, declared, constants)
        if known.places:
            if len(_OUTLINES) >= MOST_OUTLINES:
                _OUTLINES.clear()
            _OUTLINES[outline, declared.dialect] = known
    return _planned(expression, known, declared, constants, outline if known.places else "")


def _checked(expression: str, declared: Environment, constants: Mapping[int, str]) -> _Checked:
    root = parse(expression, declared.dialect)
    checker = Checker(declared)
    result = checker.check(root)
    validate(checker.calls, checker.aggregates)
    if not _is_selector(result, declared.dialect):
        text = f"must evaluate to bool or the unknown type, not {result}"
        raise ExpressionError(text, 0, Mistake.NO_CONDITION)
    reads = paths_read(root)
    return _Checked(
        root,
        checker.calls,
        reads,
        warning=_warning(checker.calls, reads) if declared.dialect.add_mutates else "",
        worst=min(estimated_max_cost(root, modern=declared.dialect.modern), COST_LIMIT),
        nodes=checker.nodes,
        places=places_of(checker.calls, constants) or {},
    )


def _planned(
    expression: str,
    checked: _Checked,
    declared: Environment,
    constants: Mapping[int, str],
    outline: str = "",
) -> Program:
    planner = Planner(declared, checked.calls, {literal: constants[at] for literal, at in checked.places.items()})
    run = planner.plan(checked.root)
    return Program(
        expression,
        checked.reads,
        checked.warning,
        checked.worst,
        run,
        planner.slots,
        planner.observes_quantities,
        planner.loops,
        nodes=checked.nodes,
        outline=outline,
    )


def _warning(calls: list[Call], reads: frozenset[Path] | None) -> str:
    """The warning if a selector, before Kubernetes 1.37, may change a capacity of about 100Ti or more by arithmetic."""
    capacity = reads is None or any(group == "capacity" for group, _, _ in reads)
    if not capacity or not any(call.function in ("add", "sub") for call in calls):
        return ""
    return "add() and sub() on a capacity of 100Ti or more change it for later evaluations before Kubernetes 1.37"


def parse(expression: str, dialect: Dialect) -> Expression:
    """The syntax of an expression. Raises lark's UnexpectedInput or ExpressionError."""
    if len(expression) > MAX_CODE_POINTS:
        raise ExpressionError(f"expression code point size exceeds limit: size: {len(expression)}", 0)
    # With a transformer lark returns the builder's result, which its annotation does not show.
    parsed: Any = parser(quoted_names=dialect.quoted_names).parse(expression)
    return cast(Expression, parsed)


def _is_selector(result: Type, dialect: Dialect) -> bool:
    if result in (types.BOOL, types.ANY):
        return True
    return dialect.dyn_attributes and types.unwrapped(result) in (types.BOOL, types.DYN)
