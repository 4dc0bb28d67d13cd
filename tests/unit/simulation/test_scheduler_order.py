"""Who comes first in the simulated scheduler's queue: the more important pod, then the older one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.resources import NODES, PODS
from autoscaler.model.pod import Pod
from autoscaler.model.verdict import Verdict
from autoscaler.scheduling.fit import fit_one
from autoscaler.scheduling.schedule import Scheduled, schedule
from autoscaler.scheduling.world import World
from autoscaler.simulation import scheduler
from autoscaler.simulation.simulation import Simulation
from tests.builders import shipped

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def started(*pods: tuple[str, int, int]) -> list[str]:
    """Of pods (name, priority, minutes after the start), those that run on a node that has room for two."""
    simulation = Simulation(catalog=shipped("g6.xlarge"), start=START)
    for name, priority, minutes in pods:
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "1"}}}
        manifest = {"metadata": {"name": name}, "spec": {"priority": priority, "containers": [container]}}
        simulation.api.create(PODS, manifest, since=START + timedelta(minutes=minutes))
    allocatable = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    ready = [{"type": "Ready", "status": "True"}]
    node = {"metadata": {"name": "n"}, "status": {"allocatable": allocatable, "conditions": ready}}
    simulation.api.create(NODES, node)
    simulation.settle_cluster()
    return [pod["metadata"]["name"] for pod in simulation.api.stored(PODS) if pod["spec"].get("nodeName")]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([("a", 0, 3), ("b", 0, 1), ("c", 0, 2)], ["b", "c"]),
        ([("a", 0, 1), ("b", 5, 9), ("c", 0, 2)], ["a", "b"]),
        ([("pod-10", 0, 1), ("pod-2", 0, 0), ("pod-1", 0, 2)], ["pod-10", "pod-2"]),
        ([("c", 0, 1), ("b", 0, 1), ("a", 0, 1)], ["a", "b"]),
    ],
)
def test_the_queue_is_ordered_by_priority_then_age(pods: list[tuple[str, int, int]], expected: list[str]) -> None:
    assert started(*pods) == expected


def test_a_kind_that_fits_nowhere_does_not_hold_up_another() -> None:
    simulation = Simulation(catalog=shipped("g6.xlarge"), start=START)
    for name, cpu in (("large-1", "3"), ("large-2", "3"), ("small-1", "1"), ("small-2", "1"), ("small-3", "1")):
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
        simulation.api.create(PODS, {"metadata": {"name": name}, "spec": {"containers": [container]}})
    allocatable = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    node = {
        "metadata": {"name": "n"},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    simulation.api.create(NODES, node)
    simulation.settle_cluster()
    bound = [pod["metadata"]["name"] for pod in simulation.api.stored(PODS) if pod["spec"].get("nodeName")]
    assert bound == ["small-1", "small-2"]


def test_a_node_that_refused_a_pod_is_asked_again_once_it_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fit(pod: Pod, name: str, world: World) -> Verdict:
        asked.append(name)
        return fit_one(pod, name, world)

    monkeypatch.setattr(scheduler, "fit_one", fit)
    simulation = Simulation(catalog=shipped("g6.xlarge"), start=START)
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "3"}}}
    simulation.api.create(PODS, {"metadata": {"name": "large"}, "spec": {"containers": [container]}})
    for name in ("n", "m"):
        status = {
            "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        simulation.api.create(NODES, {"metadata": {"name": name}, "status": status})
        simulation.settle_cluster()
    assert asked == ["n", "m"]
    simulation.api.patch(NODES, "n", {"status": {"allocatable": {"cpu": "4"}}}, subresource="status")
    simulation.settle_cluster()
    assert asked == ["n", "m", "n"]
    assert [pod["spec"].get("nodeName") for pod in simulation.api.stored(PODS)] == ["n"]


def test_a_pod_that_fits_nowhere_is_tried_again_once_it_may_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def attempt(pods: Sequence[Pod], *others: Any) -> Scheduled:
        tried.extend(pod.name for pod in pods)
        return schedule(pods, *others)

    monkeypatch.setattr(scheduler, "schedule", attempt)
    simulation = Simulation(catalog=shipped("g6.xlarge"), start=START)
    api = simulation.api
    allocatable = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    ready = [{"type": "Ready", "status": "True"}]
    api.create(NODES, {"metadata": {"name": "n"}, "status": {"allocatable": allocatable, "conditions": ready}})

    def attempts(change: Callable[[], object]) -> list[str]:
        tried.clear()
        change()
        simulation.settle_cluster()
        return tried

    def pod(name: str) -> object:
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "2"}}}
        return api.create(PODS, {"metadata": {"name": name}, "spec": {"containers": [container]}})

    def status(name: str, **patch: object) -> object:
        return api.patch(PODS, name, {"status": patch}, namespace="default", subresource="status")

    assert attempts(lambda: pod("first")) == ["first"]
    assert attempts(lambda: pod("second")) == ["second"]
    assert attempts(lambda: status("second", nominatedNodeName="coming")) == []
    assert attempts(lambda: status("first", phase="Running")) == []
    assert attempts(lambda: status("second", nominatedNodeName="n")) == ["second"]
    assert attempts(lambda: status("second", conditions=[])) == ["second"]
    assert attempts(lambda: api.patch(NODES, "n", {"metadata": {"labels": {"a": "b"}}})) == ["second"]
    assert attempts(lambda: status("first", phase="Succeeded")) == ["second"]
    assert api.get(PODS, "second", namespace="default")["spec"]["nodeName"] == "n"
