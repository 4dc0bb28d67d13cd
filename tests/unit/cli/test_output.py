"""Tables on terminals and in pipes."""

from __future__ import annotations

import pytest

from autoscaler.cli.common.output import plain_table

COLUMNS = ("node", "why")
ROWS = [("implicit-687655f656", "an earlier alternative of firstAvailable that costs less"), ("b", "")]


def test_piped_rows_are_one_line_each() -> None:
    assert plain_table(COLUMNS, ROWS) == [
        "NODE                 WHY",
        "implicit-687655f656  an earlier alternative of firstAvailable that costs less",
        "b",
    ]


@pytest.mark.parametrize("width", [10, 55], ids=["too narrow for any text", "narrow"])
def test_texts_are_folded_and_names_are_not(width: int) -> None:
    assert plain_table(COLUMNS, ROWS, width=width) == [
        "NODE                 WHY",
        "implicit-687655f656  an earlier alternative of",
        "                     firstAvailable that costs less",
        "b",
    ]


def test_without_rows_there_are_heads() -> None:
    assert plain_table(COLUMNS, [], width=80) == ["NODE  WHY"]
