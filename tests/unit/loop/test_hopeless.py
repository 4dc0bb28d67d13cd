"""Pods that fit nowhere delay nobody by being told of: their events are written beside the rounds."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import EVENTS
from autoscaler.loop import decision
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.report.events import Event
from tests.crowd import Crowd

FEW, MANY = 3, 300


def test_the_writes_before_a_launch_do_not_grow_with_the_pods_that_fit_nowhere() -> None:
    alone, crowded = Crowd(0), Crowd(MANY)
    for crowd in (alone, crowded):
        crowd.loop.tick()
        crowd.arrive()
    assert crowded.before_launch == alone.before_launch
    assert sum(crowded.before_launch.values()) <= 5


def test_no_write_of_a_round_grows_with_them_and_all_are_told_in_the_end() -> None:
    crowds = [Crowd(FEW), Crowd(MANY)]
    for crowd in crowds:
        crowd.loop.tick()
    assert crowds[0].api.written == crowds[1].api.written
    assert [len(crowd.events) for crowd in crowds] == [FEW, MANY]
    crowds[1].events.drain()
    assert len(list_all(crowds[1].simulation.api, EVENTS)[0]) == MANY


def test_an_event_of_another_kind_does_not_wait_for_theirs() -> None:
    crowd = Crowd(MANY)
    crowd.loop.tick()
    crowd.events.offer(Event("CapacityPool", "", "gpu", "", "Warning", "MayNotAct", "…"), crowd.simulation.clock.now())
    crowd.events.write_next()
    crowd.events.write_next()
    assert "MayNotAct" in {event["reason"] for event in list_all(crowd.simulation.api, EVENTS)[0]}


def test_a_pod_on_which_planning_breaks_is_told_and_the_other_gets_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(seen: Snapshot, **given: Any) -> Plan:
        if any(pod.name == "hopeless-0" for pod in seen.pods):
            raise KeyError("something nobody thought of")
        return plan_for(seen, **given)

    monkeypatch.setattr(decision, "plan_for", breaks)
    crowd = Crowd(1)
    with capture_logs() as lines:
        crowd.arrive()
        tick = crowd.loop.tick()
    assert [line["name"] for line in lines if line["event"] == "unexpected_error"] == ["hopeless-0"]
    assert [(trouble.kind, trouble.name, trouble.reason) for trouble in tick.troubles] == [
        ("Pod", "hopeless-0", "Unexpected")
    ]
    crowd.events.drain()
    told = [event for event in list_all(crowd.simulation.api, EVENTS)[0] if event["reason"] == "Unexpected"]
    assert [event["involvedObject"]["name"] for event in told] == ["hopeless-0"]
    assert told[0]["involvedObject"]["uid"]
    assert "report it" in told[0]["message"]
    assert "nobody thought of" not in told[0]["message"]
