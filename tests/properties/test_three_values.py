"""What a selector answers for a device that is known in part never contradicts a device that it could be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.cel.common.outcome import Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import Program, compile_selector
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Capacity, Device, RuntimeOnly

DRIVER = "gpu.example.com"
NAMES = ("T4", "Tesla T4", "H100", "NVIDIA H100", "L4")
CAPACITIES = ("memory", "disk")
ATTRIBUTES = ("name", "label")

amounts = st.integers(0, 12)
names = st.sampled_from(NAMES)


@st.composite
def partly_known(draw: Any) -> tuple[Device, Device]:
    """A device with bounds and choices, and one that it could be."""
    bounds = {name: tuple(sorted((draw(amounts), draw(amounts)))) for name in CAPACITIES}
    real = {name: draw(st.integers(low, high)) for name, (low, high) in bounds.items()}
    choices = {name: tuple(draw(st.lists(names, min_size=1, max_size=3, unique=True))) for name in ATTRIBUTES}
    attributes = {name: RuntimeOnly("string", f"catalog:x/{name}", one_of) for name, one_of in choices.items()}
    capacity = {
        name: Capacity(_gi(real[name]), guess=True, bounds=(_gi(low), _gi(high)))
        for name, (low, high) in bounds.items()
    }
    truth = {name: draw(st.sampled_from(one_of)) for name, one_of in choices.items()}
    return (
        Device("gpu-0", FrozenMap(attributes), FrozenMap(capacity)),
        Device("gpu-0", FrozenMap(truth), FrozenMap({name: Capacity(_gi(real[name])) for name in CAPACITIES})),
    )


def _gi(amount: int) -> Quantity:
    return Quantity.parse(f"{amount}Gi")


def _capacity(draw: Any) -> str:
    plain = f'device.capacity["{DRIVER}"].{draw(st.sampled_from(CAPACITIES))}'
    form = draw(
        st.sampled_from(("{0}", "{0}", "{0}", "(true ? {0} : {1})", "[{1}, {0}][0]", "[{0}][0]", "{0}.add({1})"))
    )
    return form.format(plain, f'quantity("{draw(amounts)}Gi")')


def _amount(draw: Any) -> str:
    return draw(st.one_of(st.just(f'quantity("{draw(amounts)}Gi")'), st.just(_capacity(draw))))


def _attribute(draw: Any) -> str:
    return f'device.attributes["{DRIVER}"].{draw(st.sampled_from(ATTRIBUTES))}'


def _term(draw: Any) -> str:
    kind = draw(st.integers(0, 6))
    if kind == 0:
        function = draw(st.sampled_from(("isGreaterThan", "isLessThan")))
        return f"{_capacity(draw)}.{function}({_amount(draw)})"
    if kind == 1:
        operator = draw(st.sampled_from(("<", "<=", ">", ">=", "==", "!=")))
        compared = f"{_capacity(draw)}.compareTo({_amount(draw)})"
        form = draw(st.sampled_from(("{0}", "{0}", "-{0}", "({0} + 1)", "(-1 * {0})")))
        return f"{form.format(compared)} {operator} {draw(st.integers(-1, 1))}"
    if kind == 2:
        return f"{_capacity(draw)} {draw(st.sampled_from(('==', '!=')))} {_amount(draw)}"
    if kind == 3:
        return f'{_attribute(draw)} {draw(st.sampled_from(("==", "!=")))} "{draw(names)}"'
    if kind == 4:
        function = draw(st.sampled_from(("contains", "startsWith", "matches")))
        return f'{_attribute(draw)}.{function}("{draw(names)}")'
    if kind == 5:
        return f'{_attribute(draw)} in ["{draw(names)}", "{draw(names)}"]'
    return f"{_attribute(draw)}.size() > {draw(st.integers(0, 9))}"


@st.composite
def selectors(draw: Any) -> str:
    terms = [f"({_term(draw)})" for _ in range(draw(st.integers(1, 4)))]
    found = terms[0]
    for term in terms[1:]:
        found = f"({found} {draw(st.sampled_from(('&&', '||')))} {draw(st.sampled_from(('', '!')))}{term})"
    return found


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(partly_known(), selectors())
def test_an_answer_holds_for_every_device_that_it_could_be(devices: tuple[Device, Device], selector: str) -> None:
    program = compile_selector(selector, REFERENCE)
    assert isinstance(program, Program), program
    known, real = (program.evaluate(DeviceView.of(DRIVER, device, REFERENCE)) for device in devices)
    assert known.outcome in (Outcome.UNKNOWN, real.outcome)


def about_12gi() -> DeviceView:
    """A device of which the memory is known to be 12Gi to 13Gi."""
    capacity = Capacity(_gi(12), guess=True, bounds=(_gi(12), _gi(13)))
    return DeviceView.of(DRIVER, Device("gpu-0", FrozenMap(), FrozenMap({"memory": capacity})), REFERENCE)


@pytest.mark.parametrize(
    ("selector", "outcome"),
    [
        ("{0}.isLessThan(quantity('14Gi'))", Outcome.TRUE),
        ("{0}.isGreaterThan(quantity('14Gi'))", Outcome.FALSE),
        ("{0}.isGreaterThan(quantity('12Gi'))", Outcome.UNKNOWN),
        ("{0}.compareTo(quantity('14Gi')) < 0", Outcome.TRUE),
        ("{0}.add(quantity('5Gi')).isLessThan(quantity('14Gi'))", Outcome.UNKNOWN),
        ("{0}.sub(quantity('5Gi')).isGreaterThan(quantity('10Gi'))", Outcome.UNKNOWN),
        ("{0}.add(quantity('5Gi')).compareTo(quantity('14Gi')) < 0", Outcome.UNKNOWN),
        ("(true ? {0} : quantity('1Gi')).isLessThan(quantity('14Gi'))", Outcome.UNKNOWN),
        ("-({0}.compareTo(quantity('12Gi'))) < 0", Outcome.UNKNOWN),
    ],
)
def test_bounds_decide_a_capacity_and_nothing_that_is_computed_from_it(selector: str, outcome: Outcome) -> None:
    program = compile_selector(selector.format(f'device.capacity["{DRIVER}"].memory'), REFERENCE)
    assert isinstance(program, Program), program
    assert program.evaluate(about_12gi()).outcome is outcome
