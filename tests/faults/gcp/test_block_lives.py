"""A few random lives of calendar capacity on every run of the tests; `make faults` lives a hundred."""

from __future__ import annotations

import pytest

from autoscaler.execution import executor
from tests.faults.block_lives import Life
from tests.faults.gcp.block_lives import GcpBlockWorld

# A life whose pods cannot be evicted, so that they run until Google takes the machines; and one with an amendment.
STUBBORN, EXTENDED = 14, 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [EXTENDED, 1])
def test_every_pod_has_a_notice_and_calendar_capacity_is_used(number: int) -> None:
    story = GcpBlockWorld(Life.number(number)).live()
    assert story.unwarned == []
    assert story.share >= 0.95
    assert story.left == []
    assert story.extended is (number == EXTENDED)


def test_pods_that_nobody_may_evict_run_to_the_end_and_were_told() -> None:
    story = GcpBlockWorld(Life.number(STUBBORN)).live()
    assert story.running_at_reclaim > 0
    assert story.unwarned == []
    assert story.left == []


def test_a_controller_that_tells_nobody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "give_notice", lambda *_, **__: None)
    story = GcpBlockWorld(Life.number(STUBBORN)).live()
    assert len(story.unwarned) == story.running_at_reclaim > 0
