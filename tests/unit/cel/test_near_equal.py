"""Devices whose values Python takes for equal and Kubernetes does not: the answer never is that of another device."""

from __future__ import annotations

from itertools import permutations

import pytest

from autoscaler.cel.common.outcome import Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import Program, compile_selector
from autoscaler.dra.allocation.constraints import state_key
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    Device,
    ListValue,
    RequestPolicy,
    ValidRange,
    Version,
    exact,
)

ATTRIBUTE = 'device.attributes["d"].x'
CAPACITY = 'device.capacity["d"].m'


def answer(expression: str, device: Device) -> Outcome:
    program = compile_selector(expression, REFERENCE)
    assert isinstance(program, Program), program
    return program.evaluate(DeviceView.of("d", device, REFERENCE)).outcome


def attribute(value: AttributeValue) -> Device:
    return Device("a", attributes=FrozenMap({"x": value}))


def amount(text: str) -> Device:
    return Device("a", capacity=FrozenMap({"m": Capacity(Quantity.parse(text))}))


@pytest.mark.parametrize("order", list(permutations(range(6))), ids=str)
def test_kinds_of_attributes(order: tuple[int, ...]) -> None:
    values: list[tuple[AttributeValue, str]] = [
        (1, f"{ATTRIBUTE} == 1"),
        (True, f"{ATTRIBUTE} == true"),
        ("1", f'{ATTRIBUTE} == "1"'),
        (Version("1.0.0"), f"{ATTRIBUTE} == semver('1.0.0')"),
        ("1.0.0", f'{ATTRIBUTE} == "1.0.0"'),
        (0, f"{ATTRIBUTE} == 0"),
    ]
    for index in order:
        value, own = values[index]
        found = [expression for _, expression in values if answer(expression, attribute(value)) is Outcome.TRUE]
        assert found == [own]


@pytest.mark.parametrize("texts", list(permutations(["1000m", "1", "1.0"])), ids=str)
def test_forms_of_an_amount(texts: tuple[str, ...]) -> None:
    found = {text: answer(f"{CAPACITY}.isInteger()", amount(text)) for text in texts}
    assert found == {"1": Outcome.TRUE, "1.0": Outcome.FALSE, "1000m": Outcome.FALSE}


@pytest.mark.parametrize("texts", list(permutations(["1.5Gi", "1536Mi"])), ids=str)
def test_forms_of_a_binary_amount(texts: tuple[str, ...]) -> None:
    found = {text: answer(f"{CAPACITY}.isInteger()", amount(text)) for text in texts}
    assert found == {"1536Mi": Outcome.TRUE, "1.5Gi": Outcome.FALSE}


def test_devices_differ() -> None:
    assert attribute(1) != attribute(True)
    assert attribute(0) != attribute(False)
    assert attribute(1) == attribute(1)
    assert len({attribute(value) for value in (1, True, "1", Version("1"), 0, False, "True", "true")}) == 8
    assert attribute(ListValue("int", (1,))) != attribute(ListValue("bool", (True,)))


def test_a_map_with_true_is_no_map_with_1() -> None:
    assert FrozenMap({"a": True}) != {"a": 1}
    assert FrozenMap({"a": 0}) != FrozenMap({"a": False})
    assert FrozenMap({"a": 0, "b": False}) == {"b": False, "a": 0}


def test_keys_of_values_and_states() -> None:
    assert exact(1) != exact(True)
    assert state_key((1, True)) != state_key((1, 1))
    assert state_key((1, (("r", 0),))) != state_key((1, (("r", False),)))
    assert state_key((2, "x")) == state_key((2, "x"))


def test_forms_of_capacities() -> None:
    gib, mib = Quantity.parse("1Gi"), Quantity.parse("1024Mi")
    assert Capacity(gib) == Capacity(mib)
    assert Capacity(gib).form != Capacity(mib).form
    assert Capacity(gib, RequestPolicy(gib)).form != Capacity(gib, RequestPolicy(mib)).form
    assert Capacity(gib, RequestPolicy(None, (gib,))).form != Capacity(gib, RequestPolicy(gib)).form
    limited = RequestPolicy(None, (), ValidRange(gib))
    assert Capacity(gib, limited).form != Capacity(gib, RequestPolicy(None, (), ValidRange(mib))).form
