"""A few random lives of blocks on every run of the tests; `make faults` lives a thousand."""

from __future__ import annotations

import pytest

from autoscaler.execution import executor
from tests.faults.block_lives import AwsBlockWorld, Life

# A life whose pods cannot be evicted, so that they run until EC2 takes the machine.
STUBBORN = 14


# Lives that once went wrong: a job that is bound when the drain begins, and a block that is extended during its drain.
LATE, EXTENDED = 40155, 40321


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, LATE, EXTENDED])
def test_every_pod_has_a_notice_and_the_block_is_used(number: int) -> None:
    story = AwsBlockWorld(Life.number(number)).live()
    assert story.unwarned == []
    assert story.share >= 0.95
    assert story.left == []


def test_pods_that_nobody_may_evict_run_to_the_end_and_were_told() -> None:
    story = AwsBlockWorld(Life.number(STUBBORN)).live()
    assert story.running_at_reclaim > 0
    assert story.unwarned == []


def test_a_controller_that_tells_nobody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "give_notice", lambda *_, **__: None)
    story = AwsBlockWorld(Life.number(STUBBORN)).live()
    assert len(story.unwarned) == story.running_at_reclaim > 0
