"""Compiling a selector is paid by what it consists of, and what cannot be known beforehand must be affordable."""

from __future__ import annotations

import pytest

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account
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
