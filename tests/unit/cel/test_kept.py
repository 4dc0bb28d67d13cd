"""Answers are kept by what an expression reads, values told apart as expressions do; accounts bound fresh work."""

from __future__ import annotations

import gc
import weakref

import pytest

from autoscaler.cel.common.evaluation import CHEAP, COST_LIMIT, Account, BudgetSpentError, Purse, on_account
from autoscaler.cel.common.outcome import Evaluation, Outcome
from autoscaler.cel.common.values import DefaultMap, QuantityCell, StringMap
from autoscaler.cel.interpreter.answer_cache import KEPT, KeptAnswers, part_read
from autoscaler.cel.interpreter.device import _VIEWS, DeviceView
from autoscaler.cel.program import Program, compile_selector
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device

_TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


def _program(expression: str) -> Program:
    program = compile_selector(expression, REFERENCE)
    assert isinstance(program, Program), program
    return program


def _view(**attributes: AttributeValue) -> DeviceView:
    return DeviceView.of("d", Device("x", FrozenMap(attributes)), REFERENCE)


def _nested(mark: str) -> str:
    expression = f"{mark} == {mark}"
    for index in range(4):
        expression = f"{_TEN}.all(x{index}, {expression})"
    return expression


def _account(units: int = 10**9, *, own: int = 0) -> Account:
    return Account(own=own, shared=Purse(units), most=10**9)


def test_devices_alike_in_what_is_read_are_evaluated_once() -> None:
    program = _program(f'{_nested("1")} && device.attributes["d"].model == "kept-1"')
    account = _account()
    with on_account(account):
        answers = {program.evaluate(_view(model="kept-1", serial=number)).outcome for number in range(50)}
        once = account.spent
        program.evaluate(_view(model="other"))
    assert answers == {Outcome.TRUE}
    assert 40_000 < once < 50_000
    assert account.spent > once


def test_an_expression_that_reads_the_whole_device_is_evaluated_for_each() -> None:
    program = _program('device.attributes["d"].exists(name, name == "kept-2")')
    assert program.reads is None
    assert program.evaluate(_view(**{"kept-2": 1})).outcome is Outcome.TRUE
    assert program.evaluate(_view(other=1)).outcome is Outcome.FALSE


@pytest.mark.parametrize(
    "expression",
    ['"kept-4" in device.attributes', 'device.attributes["d"].exists(name, name == "kept-5")'],
)
def test_an_answer_about_a_whole_device_keeps_no_device(expression: str) -> None:
    """It would be kept for every device that there ever was, and the device with it."""
    program = _program(expression)
    before = len(KEPT)
    views = [_view(serial=number) for number in range(100)]
    answers = [program.evaluate(view) for view in views]
    assert [program.evaluate(view) for view in views] == answers
    assert all(program.evaluate(view) is answer for view, answer in zip(views, answers, strict=True))
    assert len(KEPT) == before


@pytest.mark.slow
def test_a_view_lives_as_long_as_a_device_that_it_is_of() -> None:
    gc.collect()
    before = len(_VIEWS)
    one, equal = (Device("x", FrozenMap({"lives": number})) for number in (7, 7))
    first = weakref.ref(DeviceView.of("d", one, REFERENCE))
    assert DeviceView.of("d", one, REFERENCE) is DeviceView.of("d", equal, REFERENCE) is first()
    assert len(_VIEWS) == before + 1
    del one
    assert first() is not None
    del equal
    assert first() is None
    assert len(_VIEWS) == before


def test_what_was_worked_out_of_a_device_is_not_its_copys() -> None:
    device = Device("x", FrozenMap({"copied": 1}))
    view = DeviceView.of("d", device, REFERENCE)
    copy = replace(device, attributes=FrozenMap({"copied": True}))
    assert DeviceView.of("d", copy, REFERENCE) is not view
    assert DeviceView.of("other", device, REFERENCE) is not view
    assert (repr(device), hash(device), device) == (
        repr(replace(device)),
        hash(replace(device)),
        replace(device),
    ), "it is no part of the value"


def test_errors_are_kept_with_their_message() -> None:
    program = _program('device.attributes["d"].kept3 > 1')
    account = _account()
    with on_account(account):
        first = program.evaluate(_view(a=1))
        spent = account.spent
        again = program.evaluate(_view(a=2))
    assert first.outcome is Outcome.ERROR
    assert again is first
    assert account.spent == spent


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (0, False), ("1", 1), (QuantityCell(Quantity.parse("1")), QuantityCell(Quantity.parse("1000m")))],
)
def test_near_equal_values_are_told_apart(one: object, other: object) -> None:
    reads = frozenset({("attributes", "d", "a")})

    def key(value: object) -> object:
        return part_read(StringMap({"attributes": DefaultMap({"d": StringMap({"a": value})})}), reads)

    assert key(one) == key(one)
    assert key(one) != key(other)


def test_a_selector_answers_each_of_near_equal_devices() -> None:
    program = _program('type(device.attributes["d"].a) == bool')
    one, true = (
        DeviceView(StringMap({"attributes": DefaultMap({"d": StringMap({"a": value})})}), "") for value in (1, True)
    )
    answers = [program.evaluate(view).outcome for view in (one, true, one, true)]
    assert answers == [Outcome.FALSE, Outcome.TRUE, Outcome.FALSE, Outcome.TRUE]


def test_amounts_of_one_value_in_two_forms_have_answers_of_their_own() -> None:
    program = _program('device.capacity["d"].c.compareTo(quantity("1")) == 0')
    for text in ("1", "1000m"):
        device = Device("x", capacity=FrozenMap({"c": Capacity(Quantity.parse(text))}))
        assert program.evaluate(DeviceView.of("d", device, REFERENCE)).outcome is Outcome.TRUE


def test_the_memo_is_bounded_and_keeps_what_is_used() -> None:
    kept = KeptAnswers(10)
    answer = Evaluation(Outcome.TRUE)
    for number in range(1000):
        kept.keep(("p", number), answer)
        assert kept.of(("p", 0)) is answer  # asked for again and again
        assert len(kept) <= 22
    assert kept.of(("p", 1)) is None


def test_an_expensive_selector_is_not_begun_without_shared_units() -> None:
    program = _program(f'{_nested("2")} && device.attributes["d"].a == 4')
    account = _account(0, own=10**6)
    with on_account(account), pytest.raises(BudgetSpentError) as spent:
        program.evaluate(_view(a=4))
    assert spent.value.expression == program.expression
    assert account.spent == 0
    assert program.evaluate(_view(a=4)).outcome is Outcome.TRUE  # nothing of the refusal is kept


def test_a_cheap_selector_is_paid_from_what_the_account_has_of_its_own() -> None:
    program = _program('device.attributes["d"].a == 5')
    shared = Purse(0)
    account = Account(own=1000, shared=shared, most=10**6)
    with on_account(account):
        assert program.evaluate(_view(a=5)).outcome is Outcome.TRUE
    assert 0 < account.spent < 100
    assert shared.left == 0
    assert program.worst < CHEAP


def test_what_was_refused_once_is_refused_from_then_on() -> None:
    account = _account(0)
    with pytest.raises(BudgetSpentError):
        account.admit(10)
    account.shared.left = 10**6
    with pytest.raises(BudgetSpentError):
        account.admit(1)


def test_an_account_ends_at_its_own_bound() -> None:
    account = Account(own=0, shared=Purse(10**6), most=100)
    account.admit(50)
    account.pay(101)
    with pytest.raises(BudgetSpentError):
        account.admit(1)


def test_the_worst_case_bounds_what_is_begun() -> None:
    for expression in (_nested("3"), "lists.range(50000).all(x, x >= 0)", 'device.driver == "d"'):
        program = _program(expression)
        found = program.evaluate(_view(a=1))
        assert found.cost <= program.worst <= COST_LIMIT
    assert len(KEPT) > 0
