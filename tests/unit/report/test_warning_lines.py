"""Warnings of a plan: what is wrong, about how many objects, and the next step apart from it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from autoscaler.cli.common.plan_output import print_plan
from autoscaler.lint.advice import reason_of, surprise
from autoscaler.model.plan import Plan
from autoscaler.model.reason import Code, Reason
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.plan_document import reasons_document
from autoscaler.report.reasons import text_of
from autoscaler.report.tables.given import WITH_POOLS
from autoscaler.report.tables.plan_summary import Line, summary_of
from instance_catalog.dataclass import replace
from tests.builders import CATALOG, snapshot

NOW = datetime(2026, 11, 21, tzinfo=UTC)
WRONG = "asks for `x` and | requests no cpu: the smallest machine with the device is enough for it"


def about(name: str, *, others: int = 0) -> Reason:
    return reason_of(surprise(f"Pod default/{name}", ("spec",), WRONG, "request the cpu", others=others))


def warnings(*found: Reason) -> list[Line]:
    return [line for line in summary_of(plan_with(*found)) if line.level == "warning"]


def plan_with(*found: Reason) -> Plan:
    return replace(plan_for(snapshot([]), CATALOG, Policy(), NOW), warnings=found)


def test_the_next_step_is_apart() -> None:
    assert warnings(about("a", others=2)) == [
        Line(f"warning: Pod default/a and 2 more: spec: {WRONG}", "warning", "request the cpu")
    ]


def test_warnings_that_differ_in_the_subject_alone_are_one() -> None:
    assert [line.text for line in warnings(about("a", others=2), about("b"))] == [
        f"warning: Pod default/a and 3 more: spec: {WRONG}"
    ]


def test_the_document_has_the_subject_without_the_number() -> None:
    (entry,) = reasons_document([about("a", others=2)])
    assert (entry["subject"], entry["others"]) == ("Pod default/a", 2)
    assert entry["message"] == f"Pod default/a and 2 more: spec: {WRONG}; request the cpu"
    assert "others" not in reasons_document([about("a")])[0]


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("table", ("warning: Pod default/a: spec: asks for `x` and | requests", "  to do: request the cpu")),
        (
            "markdown",
            ("- warning: Pod default/a: spec: asks for \\`x\\` and \\| requests", "  - to do: request the cpu"),
        ),
    ],
)
def test_it_has_a_line_of_its_own(form: str, lines: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(plan_with(about("a")), form, WITH_POOLS)
    shown = capsys.readouterr().out.splitlines()
    first = next(number for number, line in enumerate(shown) if "warning" in line)
    assert shown[first].startswith(lines[0])
    assert lines[1] in shown[first + 1 : first + 3]


def test_a_word_that_no_name_is_as_long_as_is_cut() -> None:
    """The API server takes any text as a value of a node affinity."""
    named = "k/" + "x" * 300
    found = Reason.of(Code.NODE_AFFINITY_MISMATCH, wanted=f"{named} In [{'v' * 240_000}] or more")
    assert text_of(found) == f"node affinity wants {named} In [{'v' * 59}… or more"
