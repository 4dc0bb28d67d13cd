"""The tables of invariants in docs/operations.md: every file, test, check and defect that they name exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from providers.conformance import CHECKS
from tests.mutants.listed import mutants

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
ROWS: Final = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for line in PAGE.splitlines()
    if re.match(r"\| (P?\d)\. ", line)
]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].split(".")[0])
def test_what_a_row_names_exists(row: tuple[str, ...]) -> None:
    _, enforced, tested, found = row
    assert named(enforced)
    assert named(tested)
    assert [
        path for path in named(enforced) if not any((ROOT / top / path).exists() for top in (".", "autoscaler"))
    ] == []
    checks = {check.name for check in CHECKS}
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    missing = [
        name
        for name in named(tested)
        if not (name in checks or (ROOT / name).exists() or ("/" not in name and name in tests))
    ]
    assert missing == []
    assert named(found)
    assert set(named(found)) <= {mutant.id for mutant in mutants()}


def test_both_tables_are_read() -> None:
    assert [row[0].split(".")[0] for row in ROWS] == [*"1234567", *(f"P{number}" for number in range(1, 10))]
