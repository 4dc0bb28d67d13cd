"""docs/dra-support.md promises nothing that no test shows, and says nothing of others without a source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.dra_reference import OTHERS, ROWS, UNSAID, Row

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kep}-{row.name}")
def test_what_foreslice_does_is_shown_by_a_test(row: Row) -> None:
    assert row.ours in ("yes", "partly", "not needed")
    if row.ours == "not needed":
        assert not row.test
        return
    path, _, name = row.test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name.startswith("test_")
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kep}-{row.name}")
def test_what_is_said_of_others_has_a_source(row: Row) -> None:
    assert len(row.others) == len(OTHERS)
    assert all(bool(source) != ((answer, source) == UNSAID) for answer, source in row.others)


def test_the_page_has_the_enhancements_that_change_where_pods_fit() -> None:
    """The gates of the profile are those that scheduling depends on, as far as they are beta."""
    assert {4815, 5075, 5055, 4816, 5018, 5007, 5004, 5729, 4671, 5328} <= {row.kep for row in ROWS}
