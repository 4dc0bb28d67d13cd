"""Pods that fit nowhere delay nobody by being told of: their events are written beside the rounds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, EVENTS, LAUNCH_BATCHES, PODS
from autoscaler.loop import decision
from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.planner import plan_for
from autoscaler.report.events import Event, Subject
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
    crowd.events.offer(Event(Subject("CapacityPool", "gpu"), "Warning", "MayNotAct", "…"), crowd.simulation.clock.now())
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


def test_a_pod_on_which_planning_breaks_and_that_changes_is_not_searched_for_in_each_reconcile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans = []

    def breaks(seen: Snapshot, **given: Any) -> Plan:
        plans.append(len(seen.pods))
        if any(pod.name == "hopeless-0" for pod in seen.pods):
            raise KeyError("something nobody thought of")
        return Plan()

    monkeypatch.setattr(decision, "plan_for", breaks)
    crowd, made = Crowd(8), []
    for number in range(12):
        (namespace,) = {pod["metadata"]["namespace"] for pod in list_all(crowd.simulation.api, PODS)[0]}
        patch = {"metadata": {"labels": {"n": str(number)}}}
        crowd.simulation.api.patch(PODS, "hopeless-0", patch, namespace=namespace)
        plans.clear()
        tick = crowd.loop.tick()
        made.append(len(plans))
        assert [trouble.name for trouble in tick.troubles] == ["hopeless-0"]
    assert made[0] > 5
    assert made[-1] == 1


def test_pods_that_wait_for_odd_ones_of_their_namespace_are_not_logged_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(seen: Snapshot, **given: Any) -> Plan:
        if any(pod.name.startswith("hopeless") for pod in seen.pods):
            raise KeyError("something nobody thought of")
        return Plan()

    monkeypatch.setattr(decision, "plan_for", breaks)
    crowd = Crowd(40)
    with capture_logs() as lines:
        tick = crowd.loop.tick()
    assert len(tick.troubles) == 40
    assert len([line for line in lines if line["event"] == "unexpected_error"]) == 5


@pytest.mark.parametrize("stage", ["plan_for", "pool_conditions", "mispredicted"])
def test_a_pool_on_which_a_stage_of_deciding_breaks_is_held_back_and_the_other_launches(
    monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    whole = getattr(decision, stage)

    def breaks(seen: Snapshot, *values: Any, **given: Any) -> Any:
        if any(pool.name == "odd" and not pool.deleting for pool in seen.pools):
            raise KeyError("something nobody thought of")
        return whole(seen, *values, **given)

    monkeypatch.setattr(decision, stage, breaks)
    crowd = Crowd(1)
    odd = crowd.simulation.api.get(CAPACITY_POOLS, "gpu")
    crowd.simulation.api.create(CAPACITY_POOLS, {"metadata": {"name": "odd"}, "spec": odd["spec"]})
    crowd.arrive()
    tick = crowd.loop.tick()
    assert [(trouble.kind, trouble.name, trouble.reason) for trouble in tick.troubles] == [
        ("CapacityPool", "odd", "Unexpected")
    ]
    assert [(pool.name, pool.acts) for pool in tick.snapshot.pools] == [("gpu", True), ("odd", False)]
    assert [batch["spec"]["pool"] for batch in list_all(crowd.simulation.api, LAUNCH_BATCHES)[0]] == ["gpu"]
    conditions = crowd.simulation.api.get(CAPACITY_POOLS, "odd")["status"]["conditions"]
    (ready,) = (condition for condition in conditions if condition["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "PlanningFailed")
    assert "unexpected_error" in ready["message"]


def test_nothing_becomes_of_the_nodes_of_a_pool_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(seen: Snapshot, **given: Any) -> Plan:
        if any(pool.name == "gpu" and not pool.deleting for pool in seen.pools):
            raise KeyError("something nobody thought of")
        return plan_for(seen, **given)

    crowd = Crowd(0)
    crowd.arrive()
    monkeypatch.setattr(decision, "plan_for", breaks)
    crowd.simulation.clock.advance(timedelta(hours=3))
    crowd.simulation.api.delete(PODS, "good", namespace="default")
    for _ in range(5):
        crowd.simulation.settle_cluster()
        tick = crowd.loop.tick()
        crowd.simulation.clock.advance(timedelta(minutes=10))
    assert tick.plan.nodes == ()
    assert [node.pool for node in tick.snapshot.provisioned] == ["gpu"]
    assert [machine.ended_at for machine in crowd.simulation.cloud.machines.values()] == [None]
