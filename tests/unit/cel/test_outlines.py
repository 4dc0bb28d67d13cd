"""A selector that differs from an earlier one only in constants is what it would be if it were compiled alone."""

from __future__ import annotations

import pytest

from autoscaler.cel import program
from autoscaler.cel.checker.environment import Dialect
from autoscaler.cel.common.ast import Expression
from autoscaler.cel.common.outcome import CompileFailure, Outcome
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.outlines import outline_of
from autoscaler.cel.program import Program, compile_selector
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device, Version

MEMORY = 'device.capacity["gpu.example.com"].memory'
LEAST = MEMORY + '.compareTo(quantity("{}")) >= 0'
PUBLISHED: dict[str, AttributeValue] = {"driver": Version("1.2.3"), "text": 'quantity("20Gi")'}
DEVICES = [
    Device(
        f"gpu-{least}",
        attributes=FrozenMap(PUBLISHED),
        capacity=FrozenMap({"memory": Capacity(Quantity.parse(f"{least}Gi"))}),
    )
    for least in (10, 20, 40)
]


@pytest.fixture(autouse=True)
def _nothing_compiled() -> None:
    forget()


def forget() -> None:
    program._COMPILED.clear()
    program._OUTLINES.clear()


def compiled(expression: str) -> tuple[object, ...]:
    """Everything about the selector that can be seen from outside."""
    found = compile_selector(expression, REFERENCE)
    if isinstance(found, CompileFailure):
        return found.message, found.line, found.column
    answers = [found.evaluate(DeviceView.of("gpu.example.com", device, REFERENCE)) for device in DEVICES]
    return found.worst, found.reads, found.warning, found.nodes, answers


@pytest.mark.parametrize(
    "pattern",
    [
        LEAST,
        LEAST.replace('"{}"', "'{}'"),
        LEAST + " // at least that",
        LEAST + ' // quantity("{}")',
        f'{MEMORY}.isGreaterThan(quantity( "{{}}" )) || {MEMORY} == quantity("{{}}")',
        f'[quantity("{{}}"), quantity("25Gi")].exists(least, {MEMORY}.isGreaterThan(least))',
        f'cel.bind(least, quantity("{{}}"), {MEMORY}.compareTo(least) > 0 && {MEMORY}.compareTo(least) < 9)',
        f'{MEMORY}.sub(quantity("{{}}")).sign() > 0',
        'device.attributes["gpu.example.com"].text == \'quantity("{}")\'',
        'device.attributes["gpu.example.com"].?text.orValue("") == \'quantity("{}")\' || ' + LEAST,
        'isQuantity("{}") && quantity("{}").isInteger()',
        'quantity("{}").compareTo(quantity("20Gi"), 1) > 0',
        'semver("{}") > device.attributes["gpu.example.com"].driver',
        'quantity("{}") == "20Gi"',
        'device.quantity("{}") == 1',
    ],
)
@pytest.mark.parametrize("constants", [("15Gi", "20Gi", "0x20", "9.9M"), ("1.2.4", "1.2.3", "1.2.x")])
def test_only_the_constants_differ(pattern: str, constants: tuple[str, ...]) -> None:
    alone = []
    for constant in constants:
        forget()
        alone.append(compiled(pattern.replace("{}", constant)))
    forget()
    assert [compiled(pattern.replace("{}", constant)) for constant in constants] == alone


def test_the_text_is_parsed_and_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = program.parse

    def counted(text: str, dialect: Dialect) -> Expression:
        parsed.append(text)
        return parse(text, dialect)

    monkeypatch.setattr(program, "parse", counted)
    found = [compile_selector(LEAST.format(f"{least}Gi"), REFERENCE) for least in (15, 30, 45, 5)]
    assert parsed == [LEAST.format("15Gi"), LEAST.format("5Gi")]  # a constant of another length may cost more
    views = [DeviceView.of("gpu.example.com", device, REFERENCE) for device in DEVICES]
    yes, no = Outcome.TRUE, Outcome.FALSE
    assert [[one.evaluate(view).outcome for view in views] if isinstance(one, Program) else [] for one in found] == [
        [no, yes, yes],
        [no, no, yes],
        [no, no, no],
        [yes, yes, yes],
    ]


def test_a_long_text_has_no_outline() -> None:
    assert outline_of(LEAST.format("15Gi")) is not None
    assert outline_of(LEAST.format("15Gi") + " " * 1000) is None


def test_few_outlines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MOST_OUTLINES", 3)
    for digits in range(1, 9):
        compile_selector(LEAST.format("1" * digits), REFERENCE)
        assert len(program._OUTLINES) <= 3
