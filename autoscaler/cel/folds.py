"""Closures for comprehensions: loops over lists and maps, and variables bound on first use (cel-go evalFold)."""

from __future__ import annotations

from typing import Final

from autoscaler.cel.frame import Frame, Run, charge
from autoscaler.cel.values import FAULTS, MAPS, CelMap, Failure, Value
from autoscaler.cel.work import spend


class _Bound:
    """Marks a variable of cel.bind whose value nobody has asked for yet."""

    __slots__ = ()


BOUND: Final = _Bound()


def bound_variable_run(slot: int, initial: Run) -> Run:
    """Reads a variable of cel.bind: evaluated once, when first used."""

    def read(frame: Frame) -> Value:
        value = frame[slot]
        if value is BOUND:
            value = frame[slot] = initial(frame)
        return value

    return read


def append_run(accumulator: Run, item: Run, created: int) -> Run:
    """accumulator + [item], in place: nobody else sees the list that a macro is building."""

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
    condition: Run | None,
    step: Run,
    result: Run,
    slots: tuple[int, int, int | None],
) -> Run:
    """A loop. Without `condition` it visits every element; a condition that errs does not stop it."""
    accumulator, first, second = slots

    def call(frame: Frame) -> Value:
        source = iterated(frame)
        kind = type(source)
        if kind in FAULTS:
            return source
        if kind is list:
            elements = enumerate(source) if second is not None else source
        elif kind in MAPS:
            elements = list(source.items()) if second is not None else list(source.keys())
        else:
            return Failure(f"got '{kind.__name__}', expected iterable type")
        spend(len(source))
        frame[accumulator] = _fresh(initial)
        for element in elements:
            if second is None:
                frame[first] = element
            else:
                frame[first], frame[second] = element
            if condition is not None and condition(frame) is False:
                break
            frame[accumulator] = step(frame)
        return result(frame)

    return call


def _fresh(initial: Value) -> Value:
    if type(initial) is list:
        return []
    return CelMap() if type(initial) is CelMap else initial
