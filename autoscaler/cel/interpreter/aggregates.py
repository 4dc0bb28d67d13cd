"""Closures that build lists, maps and messages. The first fault ends the building; creation is charged nevertheless."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from autoscaler.cel.checker import messages
from autoscaler.cel.common.evaluation import Frame, Run, charge
from autoscaler.cel.common.values import FAULTS, MISSING, NONE, CelMap, Failure, OptionalValue, Value, key_of

_NOT_OPTIONAL: Final = Failure("cannot initialize an optional entry from a non-optional value")


def list_run(items: Sequence[tuple[Run, bool]], units: int) -> Run:
    """[a, ?b]: closures of the items, True for optional ones."""

    def build(frame: Frame) -> Value:
        built: list[Value] = []
        for run, optional in items:
            value = _inside(run(frame)) if optional else run(frame)
            if type(value) in FAULTS:
                return value
            if value is not MISSING:
                built.append(value)
        return built

    return _charged(build, units)


def map_run(entries: Sequence[tuple[Run, Run, bool]], units: int) -> Run:
    """{a: b, ?c: d}. A later key replaces an earlier one, an optional without value removes it."""

    def build(frame: Frame) -> Value:
        built: dict[Value, Value] = {}
        for key_run, value_run, optional in entries:
            key = key_run(frame)
            if type(key) in FAULTS:
                return key
            value = _inside(value_run(frame)) if optional else value_run(frame)
            if type(value) in FAULTS:
                return value
            stored = key_of(key)
            if value is MISSING:
                built.pop(stored, None)
            else:
                built[stored] = value
        return CelMap(built)

    return _charged(build, units)


def message_run(name: str, fields: Sequence[tuple[str, Run, bool]], units: int) -> Run:
    """A protobuf message of the type `name`."""

    def build(frame: Frame) -> Value:
        given: dict[str, Value] = {}
        for field, run, optional in fields:
            value = _inside(run(frame)) if optional else run(frame)
            if type(value) in FAULTS:
                return value
            if value is MISSING:
                given.pop(field, None)
            else:
                given[field] = value
        return messages.construct(name, given)

    return _charged(build, units)


def _inside(value: Value) -> Value:
    """The value inside an optional, for the entry; MISSING for one without value."""
    if type(value) in FAULTS:
        return value
    if type(value) is not OptionalValue:
        return _NOT_OPTIONAL
    return MISSING if value is NONE else value.value


def _charged(build: Run, units: int) -> Run:
    def run(frame: Frame) -> Value:
        value = build(frame)
        charge(frame, units)
        return value

    return run
