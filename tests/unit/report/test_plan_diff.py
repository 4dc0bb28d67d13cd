"""Plans are compared by documents of both versions: launches with their offering, or with the id of one."""

from __future__ import annotations

import pytest

from autoscaler.report.plan_diff import NotAPlanError, PlanFacts, diff_document, diff_summary, lost_places
from autoscaler.report.plan_document import Document, document_of
from tests.builders import claim, gpus, plan, pod, snapshot


def document(count: int) -> Document:
    return document_of(plan(snapshot([pod("p", "c")], [claim("c", gpus(count))])))


def as_earlier(found: Document) -> Document:
    """As v1alpha1 wrote it."""
    launches = [{**launch, "offering": found["offerings"][launch["offering"]]} for launch in found["launches"]]
    return {**{key: value for key, value in found.items() if key != "offerings"}, "launches": launches}


def test_what_differs() -> None:
    found = diff_document(PlanFacts.of(document(1)), PlanFacts.of(document(8)))
    kinds = [(entry["instanceType"], entry["before"], entry["after"], entry["usdPerHour"]) for entry in found["nodes"]]
    assert kinds == [("l8", 0, 1, "+40.00"), ("s1", 1, 0, "-1.00")]
    assert found["pods"] == [{"pod": "default/p", "change": "moved", "before": "new s1", "after": "new l8"}]
    assert diff_summary(found) == "1.00 → 40.00 $/h (+39.00); 1 pod moved"
    assert lost_places(found) == ()


def test_a_place_that_is_lost() -> None:
    found = diff_document(PlanFacts.of(document(1)), PlanFacts.of(document(20)))
    assert lost_places(found) == ("default/p",)


def test_an_earlier_document_is_the_same_plan() -> None:
    assert PlanFacts.of(as_earlier(document(1))) == PlanFacts.of(document(1))


@pytest.mark.parametrize("found", [{"kind": "List"}, {"kind": "Plan"}, {"kind": "Plan", "launches": [{}]}])
def test_what_is_no_plan(found: Document) -> None:
    with pytest.raises(NotAPlanError):
        PlanFacts.of(found)


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "1e999999999", "-1", True, [0, [1], 0], None, "9" * 40])
@pytest.mark.parametrize("where", ["summary", "launch"])
def test_an_amount_that_no_plan_has(amount: object, where: str) -> None:
    found = document(1)
    (found["summary"] if where == "summary" else found["launches"][0])["usdPerHour"] = amount
    with pytest.raises(NotAPlanError):
        PlanFacts.of(found)


def test_a_total_that_hides_the_launches() -> None:
    found = document(8)
    found["summary"]["usdPerHour"] = "0.01"
    with pytest.raises(NotAPlanError, match=r"is 0\.01, and its launches cost 40"):
        PlanFacts.of(found)


@pytest.mark.parametrize("value", [3, None, ["p"], {}])
def test_a_name_that_is_no_text(value: object) -> None:
    found = document(1)
    found["placements"][0]["pod"] = value
    with pytest.raises(NotAPlanError):
        PlanFacts.of(found)
