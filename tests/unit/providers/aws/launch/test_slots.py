"""The tag that remembers who changes a group's size; anybody may write another text under its key."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from instance_catalog.dataclass import replace
from providers.aws.node_groups.groups import SLOT_TAG, Slot, slot_of

SLOT = Slot("token", 3, datetime(2026, 1, 1, tzinfo=UTC), "-")


@pytest.mark.parametrize(
    "slot", [SLOT, replace(SLOT, by_instances=True), replace(SLOT, open=False)], ids=["size", "instances", "closed"]
)
def test_a_slot_is_read_as_it_was_written(slot: Slot) -> None:
    assert slot_of({SLOT_TAG: slot.text}) == slot


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("token three 2026-01-01T00:00:00+00:00 - open", id="no number"),
        pytest.param("token 3 yesterday - open", id="no moment"),
        pytest.param("token 3 2026-01-01T00:00:00 - open", id="no time zone"),
        pytest.param("five words of somebody else", id="other words"),
    ],
)
def test_another_text_is_no_slot(text: str) -> None:
    assert slot_of({SLOT_TAG: text}) is None
