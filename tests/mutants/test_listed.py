"""The list of mutants follows the code; whether tests kill them is `make mutants`'s to say."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache

import pytest

from tests.mutants.listed import ROOT, Mutant, StaleMutantError, mutants
from tests.mutants.run import draw, outcome_of

LISTED = mutants()
LEAST = 200
ROOMS = (
    "autoscaler/execution/",
    "autoscaler/cluster/",
    "autoscaler/lifecycle/",
    "autoscaler/planning/",
    "autoscaler/scheduling/",
    "autoscaler/dra/",
    "autoscaler/cel/",
    "providers/aws/",
    "providers/gcp/",
    "autoscaler/loop",
)


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: mutant.id)
def test_the_text_of_a_mutant_is_there_once_and_what_replaces_it_is_python(mutant: Mutant) -> None:
    text, parsed = _before(mutant.file)
    assert ast.dump(ast.parse(mutant.mutated(text))) != parsed
    assert mutant.tests
    assert [path for path in mutant.tests if not (ROOT / path).exists()] == []


@cache
def _before(file: str) -> tuple[str, str]:
    """A file that mutants change, and what it parses to: some have dozens of mutants."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return text, ast.dump(ast.parse(text))


def test_no_two_mutants_have_one_id() -> None:
    assert [name for name, count in Counter(mutant.id for mutant in LISTED).items() if count > 1] == []


def test_every_room_that_keeps_the_cluster_safe_has_mutants() -> None:
    assert len(LISTED) >= LEAST
    assert [room for room in ROOMS if not any(mutant.file.startswith(room) for mutant in LISTED)] == []


@pytest.mark.parametrize("text", ["nothing of it", "a + b and once more a + b"])
def test_a_text_that_is_not_there_once_is_told(text: str) -> None:
    mutant = Mutant("one", "some.py", "a + b", "a - b", "subtracts", ("tests",))
    with pytest.raises(StaleMutantError, match=r"one: some\.py has its text"):
        mutant.mutated(text)


def test_a_commit_draws_the_same_dozen_each_time_and_another_commit_another_one() -> None:
    one, same, other = (draw(LISTED, 12, commit) for commit in ("5188256", "5188256", "8c4264c"))
    assert one == same != other
    assert len(set(one)) == 12


@pytest.mark.parametrize(
    ("code", "hangs", "outcome"),
    [
        (1, False, "killed"),
        (0, False, "SURVIVED"),
        (2, False, "BROKEN"),
        (5, False, "BROKEN"),
        (None, True, "killed"),
        (None, False, "HANGS"),
    ],
)
def test_only_a_failing_test_kills_or_the_time_limit_where_it_is_expected(
    code: int | None, hangs: bool, outcome: str
) -> None:
    mutant = Mutant("one", "some.py", "a", "b", "", ("tests",), hangs=hangs)
    assert outcome_of(mutant, code) == outcome


def invariants() -> list[tuple[str, str, str, str]]:
    """The rows of the tables of invariants: what holds, where it is enforced, its tests, its mutants."""
    text = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    rows = (line.strip("|").split(" | ") for line in text.splitlines() if re.match(r"\| P?\d\. ", line))
    return [(row[0].strip()[:3], *row[1:]) for row in rows if len(row) == 4]


@pytest.mark.parametrize("row", invariants(), ids=lambda row: row[0])
def test_every_invariant_names_code_tests_and_a_defect_that_exist(row: tuple[str, str, str, str]) -> None:
    _, code, tests, defects = row
    folders = [ROOT / "autoscaler", ROOT]
    assert [path for path in re.findall(r"`([^`]+\.py)`", code) if not any((f / path).exists() for f in folders)] == []
    named = re.findall(r"`([^`]+\.py)`", tests)
    assert named or "check `" in tests
    found = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert [path for path in named if not (ROOT / path).exists() and path not in found] == []
    known = {mutant.id for mutant in LISTED}
    files = re.findall(r"`([^`]+\.yaml)`", defects)
    assert [one for one in files if not (ROOT / "tests/mutants" / one.split("/")[-1]).exists()] == []
    ids = [one for one in re.findall(r"`([^`]+)`", defects) if not one.endswith(".yaml")]
    assert ids or files
    assert [one for one in ids if one not in known] == []


def test_all_tables_of_invariants_are_read() -> None:
    assert len(invariants()) == 7 + 9
