"""Every happening has lines, a place in the order and a JSON form; the summary names what went wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import get_args

import pytest

from autoscaler.model.device_class import Selector
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, MatchAttribute, ResourceClaim
from autoscaler.report.timeline import (
    Arrived,
    Bound,
    Change,
    Chosen,
    Draining,
    Ended,
    Gone,
    Held,
    Launched,
    Noticed,
    NotPlaced,
    Occurrence,
    PodResult,
    Published,
    Registered,
    Reused,
    Summary,
    TimelineEvent,
    Trigger,
    asked_lines,
    document_of,
    lines_of,
    mark_of,
    order_of,
    summary_document,
    summary_lines,
)
from instance_catalog.types.instance_type import CapacityType

AT = datetime(2026, 11, 2, 9, tzinfo=UTC)
P5 = OfferingRef("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND, Decimal("55.04"))
DEVICES = tuple(f"gpu.nvidia.com/gpu-{index}" for index in range(8))
EXAMPLES: tuple[tuple[Occurrence, str], ...] = (
    (Arrived("default/a", "One GPU", ("gpu: 1 × gpu.nvidia.com",)), "pod default/a is pending: One GPU"),
    (Reused("default/a", "n1", "coming"), "decided: pod default/a fits node n1, no launch"),
    (
        Chosen(("n1", "n2"), "gpu", P5, Decimal("55.04"), ("default/a", "default/b"), "cheapest", ("also fits: x",)),
        "decided: 2 × p5.48xlarge in us-east-1a (on-demand) at 55.04 $/h for default/a, default/b",
    ),
    (NotPlaced("default/a", "none fits", "16 of 17"), "no node for default/a: none fits"),
    (Launched("n1", P5), "the provider launches p5.48xlarge in us-east-1a (on-demand) as n1"),
    (Registered("n1"), "node n1 has registered"),
    (
        Published("n1", (("dra.net", 1), ("gpu.nvidia.com", 8))),
        "drivers on n1 have published 1 device of dra.net, 8 devices of gpu.nvidia.com",
    ),
    (Bound("default/a", "n1", DEVICES), "pod default/a runs on n1"),
    (Ended("default/a", "Succeeded"), "pod default/a has ended: Succeeded"),
    (Held("n1", "the block lasts"), "node n1 is kept while empty: the block lasts"),
    (Noticed("n1", AT), "node n1 and its pods get a notice: the machine ends at 09:00"),
    (Draining("n1", "empty"), "node n1 is being removed: empty"),
    (Gone("n1", 0.5, Decimal("27.52")), "node n1 is gone after 0.50 h, 27.52 $"),
)


@pytest.mark.parametrize(("what", "headline"), EXAMPLES, ids=[type(what).__name__ for what, _ in EXAMPLES])
def test_headlines(what: Occurrence, headline: str) -> None:
    assert lines_of(what)[0] == headline


def test_every_kind_of_happening_has_an_example() -> None:
    assert {type(what) for what, _ in EXAMPLES} == {*get_args(Trigger), *get_args(Change)}


def test_causes_come_before_effects() -> None:
    assert [order_of(what) for what, _ in EXAMPLES] == sorted(order_of(what) for what, _ in EXAMPLES)
    assert len({order_of(what) for what, _ in EXAMPLES}) == len(EXAMPLES)


def test_only_what_people_wait_for_is_marked() -> None:
    assert {type(what).__name__: mark_of(what) for what, _ in EXAMPLES if mark_of(what) != " "} == {
        "Arrived": "+",
        "Reused": "*",
        "Chosen": "*",
        "NotPlaced": "!",
        "Bound": "·",
        "Ended": "·",
    }


def test_long_lists_of_devices_are_cut() -> None:
    assert lines_of(Bound("default/a", "n1", DEVICES))[1].endswith("gpu.nvidia.com/gpu-3 and 4 more")


@pytest.mark.parametrize("what", [what for what, _ in EXAMPLES], ids=lambda what: type(what).__name__)
def test_json_says_when_and_what(what: Occurrence) -> None:
    document = json.loads(json.dumps(document_of(TimelineEvent(AT, what))))
    assert document["at"] == "2026-11-02T09:00:00+00:00"
    assert document["event"] == what.event


def test_json_holds_money_as_text_and_times_as_seconds() -> None:
    document = document_of(TimelineEvent(AT, Gone("n1", 0.5, Decimal("27.52"))))
    assert (document["usd"], document["hours"]) == ("27.52", 0.5)
    waited = PodResult("default/a", "Succeeded", "Succeeded", waited=timedelta(seconds=165))
    summary = summary_document(Summary(1, 1, 0, Decimal(1), (waited,)))
    assert summary["succeeded"] is True
    assert summary["pods"][0]["waited"] == 165


def test_the_summary_says_when_all_is_well() -> None:
    fine = PodResult("default/a", "Succeeded", "Succeeded", "n1", DEVICES, timedelta(seconds=5))
    summary = Summary(1, 1, 0, Decimal("1.5"), (fine,))
    lines = summary_lines(summary)
    assert summary.succeeded
    assert lines[0] == "1 node launched, 1 terminated, 0 still running; 1.50 $ spent"
    assert lines[-1] == "All results are as expected."


def test_the_summary_names_what_did_not_come_out() -> None:
    wrong = PodResult("default/a", "Pending", "Succeeded")
    summary = Summary(0, 0, 0, Decimal(0), (wrong,))
    assert not summary.succeeded
    assert "  default/a: expected Succeeded, found Pending" in summary_lines(summary)


def test_what_a_claim_asks_for() -> None:
    selector = Selector("x > 1")
    claim = ResourceClaim(
        "default",
        "c",
        (
            DeviceRequest("one", "gpu.nvidia.com", (selector,)),
            DeviceRequest("all", "nic", allocation_mode="All"),
            FirstAvailable("best", (DeviceRequest("a", "big"), DeviceRequest("b", "small", count=2))),
        ),
        (MatchAttribute("root", ("one", "all")),),
    )
    assert asked_lines(claim) == (
        "1 × gpu.nvidia.com where x > 1",
        "all nic",
        "best 1 × big",
        "or else 2 × small",
        "all with the same root",
    )
