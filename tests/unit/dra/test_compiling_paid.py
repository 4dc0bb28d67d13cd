"""Compiling a selector is paid by what it consists of, and what cannot be known beforehand must be affordable."""

from __future__ import annotations

import pytest

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account
from autoscaler.dra.inventory import cel_selectors
from autoscaler.dra.inventory.cel_selectors import CelSelectors
from instance_catalog.kubernetes.profile import REFERENCE

MEMORY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'


def paid(expression: str, *, own: int = 0, shared: int = 2_000_000) -> int:
    account = Account(own=own, shared=Purse(shared), most=5_000_000)
    with on_account(account):
        CelSelectors(REFERENCE).reads([expression])
    return account.spent


@pytest.mark.parametrize(
    ("expression", "least", "most"),
    [
        pytest.param(MEMORY, 2_000, 4_000, id="a usual selector: 0.4 ms"),
        pytest.param("(" * 249 + "true" + ")" * 249, 20_000, 51_200, id="parentheses: 4 ms"),
        pytest.param("-" * 10_000 + "1 > 0", 190_000, 1_001_500, id="signs: 38 ms"),
        pytest.param(f'device.driver == "{"a" * 9_000}"', 11_000, 100_000, id="one text: 2 ms"),
        pytest.param(" && ".join(["+".join(["1"] * 240) + " > 0"] * 20), 810_000, 1_000_000, id="sums: 162 ms"),
        pytest.param("§$%&" * 2_500, 1_000_000, 1_001_000, id="what does not compile"),
    ],
)
def test_compiling_is_paid_by_what_the_text_consists_of(expression: str, least: int, most: int) -> None:
    assert least <= paid(expression) <= most


def test_nothing_is_compiled_that_might_cost_more_than_there_is() -> None:
    with pytest.raises(BudgetSpentError):
        paid(MEMORY, own=4_000, shared=0)
    assert paid(MEMORY, own=10_000, shared=0) < 4_000


def test_selectors_that_differ_in_an_amount_are_paid_in_full_once() -> None:
    engine, account = CelSelectors(REFERENCE), Account(own=0, shared=Purse(2_000_000), most=5_000_000)
    spent: list[int] = []
    with on_account(account):
        # Compiled by another plan of the process before: the price is the same.
        CelSelectors(REFERENCE).reads([MEMORY.replace("40Gi", "41Gi")])
        for least in ("40Gi", "41Gi", "42Gi", "9Gi", "41Gi"):
            before = account.spent
            engine.reads([MEMORY.replace("40Gi", least)])
            spent.append(account.spent - before)
    full, less, again, shorter, known = spent
    assert full == paid(MEMORY)
    assert less == again == full // 5
    assert shorter == full - 5  # of another length, with a character less
    assert known == 0


@pytest.mark.parametrize(
    "pattern",
    [
        MEMORY + ' // quantity("{}")',
        MEMORY + """ && device.driver != 'quantity("{}")'""",
        'device.driver == quantity("{}")',
        'device.quantity("{}")',
    ],
)
def test_what_is_compiled_each_time_is_paid_in_full_each_time(pattern: str) -> None:
    """An amount in a comment or in another text prevents that the syntax tree is kept."""
    engine, account = CelSelectors(REFERENCE), Account(own=0, shared=Purse(2_000_000), most=5_000_000)
    spent: list[int] = []
    with on_account(account):
        for least in ("40Gi", "41Gi"):
            before = account.spent
            engine.reads([pattern.replace("{}", least)])
            spent.append(account.spent - before)
    first, second = spent
    assert first == second


def test_few_outlines_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_selectors, "MOST_OUTLINES", 2)
    engine = CelSelectors(REFERENCE)
    for digits in range(1, 9):
        engine.reads([MEMORY.replace("40Gi", "1" * digits)])
        assert len(engine._outlines) <= 2
