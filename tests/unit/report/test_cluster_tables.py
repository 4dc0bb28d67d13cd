"""What a cluster holds, as tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.plan import Plan
from autoscaler.model.provisioned_node import OfferingRef, Phase, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.tables.cluster_tables import (
    block_entries,
    blocks_table,
    node_entries,
    status_entry,
    status_lines,
)
from autoscaler.report.words import age_text
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from tests.builders import ours

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
BLOCK = CapacityBlock(
    "november",
    "p5.48xlarge",
    "us-east-1a",
    2,
    starts_at=NOW - timedelta(hours=1),
    ends_at=NOW + timedelta(days=1, hours=3),
    reservation="cr-1",
)


def node(name: str, phase: Phase, block: str = "november") -> ProvisionedNode:
    return ours(
        name,
        phase=phase,
        offering=OfferingRef("p5.48xlarge", "us-east-1a", CapacityType.CAPACITY_BLOCK, Decimal("0"), block=block),
    )


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(days=3, hours=4, minutes=5), "3d4h"),
        (timedelta(days=3, minutes=5), "3d"),
        (timedelta(hours=5, minutes=7), "5h7m"),
        (timedelta(seconds=725), "12m5s"),
        (timedelta(seconds=40), "40s"),
        (timedelta(0), "0s"),
        (timedelta(hours=-1), "0s"),
    ],
    ids=lambda value: str(value),
)
def test_ages_show_their_two_largest_units(span: timedelta, text: str) -> None:
    assert age_text(span) == text


def test_a_block_counts_the_machines_it_still_has() -> None:
    held = (node("a", Phase.READY), node("b", Phase.GONE), node("c", Phase.READY, block="other"))
    (entry,) = block_entries(Snapshot(blocks=(BLOCK,), provisioned=held), NOW)
    assert (entry["phase"], entry["nodes"], entry["count"], entry["left"]) == ("Active", 1, 2, "1d3h")
    assert blocks_table([entry]).rows == (
        ("november", "Active", "p5.48xlarge", "us-east-1a", "1/2", "Always", "1d3h", "cr-1", ""),
    )


def test_a_block_that_has_not_begun_counts_down_to_its_start() -> None:
    (entry,) = block_entries(Snapshot(blocks=(BLOCK,)), NOW - timedelta(hours=3))
    assert (entry["phase"], entry["left"]) == ("Pending", "2h")


def test_a_request_that_waits_at_the_provider_is_shown_as_such() -> None:
    since = NOW - timedelta(days=3, hours=4)
    nodes = (node("a", Phase.LAUNCHING, block=""), node("b", Phase.LAUNCHING, block=""))
    snapshot = Snapshot(provisioned=nodes, waiting=FrozenMap({"a": since}))
    held, other = node_entries(snapshot, NOW)
    assert (held["waitingSince"], other["waitingSince"]) == (since.isoformat(), None)
    assert held["why"].startswith("requested 3d4h ago;")
    assert not other["why"].startswith("requested")
    text = "1 node requested that the provider starts when it has capacity"
    assert any(line.startswith(text) for line in status_lines(status_entry(snapshot, Plan(), (), NOW)))
    none = Snapshot(provisioned=nodes)
    assert not any("when it has capacity" in line for line in status_lines(status_entry(none, Plan(), (), NOW)))
