"""Closures for comprehensions: loops over lists and maps, and variables bound on first use (cel-go evalFold)."""

from __future__ import annotations

from typing import Final

from autoscaler.cel.common.evaluation import COST, COST_LIMIT, CostExceededError, Frame, Run, charge, spend
from autoscaler.cel.common.values import FAULTS, MAPS, CelMap, Failure, Value
from autoscaler.cel.interpreter.calls import undecided


class _Bound:
    """Marks a variable of cel.bind that is not evaluated yet."""

    __slots__ = ()


BOUND: Final = _Bound()


def bound_variable_run(slot: int, initial: Run) -> Run:
    """A closure for a variable of cel.bind: it is evaluated once, on first use."""

    def read(frame: Frame) -> Value:
        value = frame[slot]
        if value is BOUND:
            value = frame[slot] = initial(frame)
        return value

    return read


def kept_runs(run: Run, slot: int) -> tuple[Run, Run]:
    """Closures for two evaluations in a row, as in optMap: the second returns the stored value and charges the same
    again.

    Otherwise a chain of such macros would take twice the time with every link.
    """

    def first(frame: Frame) -> Value:
        before = frame[COST]
        value = run(frame)
        frame[slot] = value, frame[COST] - before
        return value

    def second(frame: Frame) -> Value:
        value, units = frame[slot]
        if frame[COST] + units > COST_LIMIT:
            return run(frame)  # it stops early, at a cost that has to be right as well
        charge(frame, units)
        return value

    return first, second


def append_run(accumulator: Run, item: Run, created: int) -> Run:
    """accumulator + [item], in place: nothing else refers to the list that a macro is building."""

    def call(frame: Frame) -> Value:
        items = accumulator(frame)
        value = item(frame)
        charge(frame, created)
        charge(frame, 1)
        if type(items) in FAULTS:
            return items
        if type(value) in FAULTS:
            return value
        items.append(value)
        return items

    return call


def fold_run(
    iterated: Run,
    *,
    initial: Value,
    step: Run,
    result: Run,
    slots: tuple[int, int, int | None],
) -> Run:
    """A loop over every element."""
    accumulator, first, second = slots

    def call(frame: Frame) -> Value:
        elements = _elements(iterated(frame), pairs=second is not None)
        if type(elements) in FAULTS:
            return elements
        frame[accumulator] = _fresh(initial)
        for element in elements:
            if second is None:
                frame[first] = element
            else:
                frame[first], frame[second] = element
            frame[accumulator] = step(frame)
        return result(frame)

    return call


def quantifier_run(iterated: Run, predicate: Run, *, decisive: bool, slots: tuple[int, int | None]) -> Run:
    """exists() (`decisive` True) and all(): their fold, without its accumulator.

    Upstream pays two units to read the accumulator (three in exists, which negates it) and one to join it.
    """
    first, second = slots
    look = 3 if decisive else 2

    def call(frame: Frame) -> Value:
        elements = _elements(iterated(frame), pairs=second is not None)
        if type(elements) in FAULTS:
            return elements
        value: Value = not decisive
        for element in elements:
            if second is None:
                frame[first] = element
            else:
                frame[first], frame[second] = element
            if value is decisive:
                _charge_ones(frame, look)
                break
            _charge_ones(frame, look + 1)
            found = predicate(frame)
            if found is decisive:
                value = decisive
            elif type(found) is not bool or type(value) is not bool:
                value = undecided((value, found))
        charge(frame, 1)
        return value

    return call


def _charge_ones(frame: Frame, units: int) -> None:
    """Charge unit by unit: the cost stops right above the limit."""
    cost = frame[COST] = frame[COST] + units
    if cost > COST_LIMIT:
        frame[COST] = COST_LIMIT + 1
        raise CostExceededError


def _elements(source: Value, *, pairs: bool) -> Value:
    """The items of a loop: elements, keys, or pairs with the index or the value. A Failure if it is no list or map."""
    kind = type(source)
    if kind in FAULTS:
        return source
    if kind is not list and kind not in MAPS:
        return Failure(f"got '{kind.__name__}', expected iterable type")
    spend(len(source))
    if kind is list:
        return list(enumerate(source)) if pairs else source
    return list(source.items()) if pairs else list(source.keys())


def _fresh(initial: Value) -> Value:
    if type(initial) is list:
        return []
    return CelMap() if type(initial) is CelMap else initial
