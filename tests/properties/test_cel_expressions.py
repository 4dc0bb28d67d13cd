"""Whatever somebody writes into a selector, compiling and evaluating it ends in an answer."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from autoscaler.cel.common.outcome import Evaluation, Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.program import Program, compile_selector
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device, RuntimeOnly, Version

VIEW = DeviceView.of(
    "d",
    Device(
        "gpu",
        attributes=FrozenMap({"i": 3, "s": "text", "b": True, "v": Version("1.2.3"), "u": RuntimeOnly("string", "g")}),
        capacity=FrozenMap({"m": Capacity(Quantity.parse("80Gi"))}),
    ),
    REFERENCE,
)

_ATOMS = st.sampled_from(
    [
        *(f'device.attributes["d"].{name}' for name in "isbvun"),
        'device.capacity["d"].m',
        'device.attributes["d"]',
        "device.driver",
        "1",
        "2u",
        "1.5",
        '"text"',
        "true",
        "null",
        "[1, 2]",
        '{"a": 1}',
        'quantity("1Gi")',
        'semver("1.2.3")',
        "optional.none()",
    ]
)


def _grown(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["==", "!=", "<", ">=", "+", "-", "*", "/", "%", "&&", "||", "in"])
    methods = st.sampled_from(["size()", "isInteger()", "compareTo(x)", "startsWith('t')", "value()", "hasValue()"])
    return st.one_of(
        st.builds("({} {} {})".format, parts, operators, parts),
        st.builds("({} ? {} : {})".format, parts, parts, parts),
        st.builds("dyn({})".format, parts),
        st.builds("!({})".format, parts),
        st.builds("[{}, {}]".format, parts, parts),
        st.builds("cel.bind(x, {}, {})".format, parts, parts),
        st.builds("[{}].exists(x, {})".format, parts, parts),
        st.builds("{}.{}".format, parts, methods),
        st.builds("{}[{}]".format, parts, parts),
    )


EXPRESSIONS = st.recursive(_ATOMS, _grown, max_leaves=8)


# Alike to Python or to the eye; what a selector answers must not depend on which of them was asked before.
NEAR: list[AttributeValue] = [
    0,
    False,
    1,
    True,
    "1",
    "true",
    "True",
    "1.0.0",
    "1.0.0-RC",
    Version("1.0.0"),
    Version("1.0.0-RC"),
]
AMOUNTS = ["1", "1000m", "1.0", "1.5Gi", "1536Mi", "80", "80.0", "100Ti", "109951162777600"]
QUESTIONS = [
    *(f'device.attributes["d"].x == {value}' for value in ("0", "false", "1", "true", '"1"', '"true"', '"1.0.0"')),
    'device.attributes["d"].x == semver("1.0.0")',
    'type(device.attributes["d"].x) == int',
    'device.attributes["d"].x in [dyn(true), dyn("1")]',
    'device.capacity["d"].m.isInteger()',
    'device.capacity["d"].m.asInteger() == 1',
    'device.capacity["d"].m.compareTo(quantity("1")) == 0',
]
NEAR_DEVICES = st.builds(
    lambda value, amount: Device(
        "gpu", FrozenMap({"x": value}), capacity=FrozenMap({"m": Capacity(Quantity.parse(amount))})
    ),
    st.sampled_from(NEAR),
    st.sampled_from(AMOUNTS),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(NEAR_DEVICES, st.sampled_from(QUESTIONS)), max_size=12))
def test_an_answer_is_the_devices_own(asked: list[tuple[Device, str]]) -> None:
    for device, expression in asked:
        program = compile_selector(expression, REFERENCE)
        assert isinstance(program, Program)
        remembered = program.evaluate(DeviceView.of("d", device, REFERENCE))
        # The same device with a driver of its own has a view of its own.
        renamed = compile_selector(expression.replace('"d"', f'"{_fingerprint(device)}"'), REFERENCE)
        assert isinstance(renamed, Program)
        assert remembered == renamed.evaluate(DeviceView.of(_fingerprint(device), device, REFERENCE))


def _fingerprint(device: Device) -> str:
    form = f"{device.attributes['x']!r} {device.capacity['m'].value.form!r}"
    return f"d{sum(ord(character) * 31**place for place, character in enumerate(form))}"


def _answer(expression: str) -> Evaluation | None:
    program = compile_selector(expression, REFERENCE)
    return program.evaluate(VIEW) if isinstance(program, Program) else None


@settings(max_examples=300, deadline=None, derandomize=True)
@given(EXPRESSIONS)
def test_expressions_end_in_an_answer(expression: str) -> None:
    answer = _answer(expression)
    assert answer is None or answer.outcome in Outcome


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(alphabet="()[]{}.,?:!&|=<>+-*/%\"'`\\ abdin019xX_\n@#é", max_size=40))
def test_any_text_ends_in_an_answer(text: str) -> None:
    answer = _answer(text)
    assert answer is None or answer.outcome in Outcome


@settings(max_examples=200, deadline=None, derandomize=True)
@given(EXPRESSIONS)
def test_false_absorbs_and_true_absorbs(expression: str) -> None:
    for operator, decisive in (("&&", "false"), ("||", "true")):
        answer = _answer(f"({expression}) {operator} {decisive}")
        if answer is not None and "limit" not in answer.message and "internal error" not in answer.message:
            assert answer.outcome.value == decisive


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(-(10**21), 10**21), st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Mi", "e3", "e-3"]))
def test_quantities_survive_printing(digits: int, suffix: str) -> None:
    quantity = Quantity.parse(f"{digits}{suffix}")
    # Kubernetes has no decimal suffix beyond E and prints such a number without one: 1000E as "1" (measured, v0.36.3).
    assume(quantity.format != "DecimalSI" or digits == 0 or quantity.value % 10**21 != 0)
    assert Quantity.parse(str(quantity)) == quantity
    assert (quantity + quantity) - quantity == quantity
