"""Pods that are moved to save money get the place that was planned for them, and stay there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import pytest

from autoscaler.cluster.api import BlockedError, Object
from autoscaler.cluster.resources import NODES, PODS, Resource
from autoscaler.simulation.kubelets import RUNS_FOR, Kubelets
from instance_catalog.dataclass import replace
from tests.unit.simulation.test_consolidation import HOUR, LARGE, MINUTE, SMALL, Cluster, pod

EVERY_TAINT: Object = {"operator": "Exists"}
ONE_PER_NODE: Object = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["c", "d"]}]},
}


class AtOnce(Cluster):
    """A ReplicaSet creates the next pod when one is evicted, a StatefulSet when it has stopped. `evicted`: the pods'
    apps, in order. `stopping`: how long each pod takes to stop."""

    stopping: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.evicted: list[str] = []
        self.last_node = ""
        self._stops: dict[str, datetime] = {}
        mock.patch.object(self.api, "evict", self._then_created(self.api.evict)).start()

    def serve_pod(self, name: str, make: Callable[[str], Object]) -> None:
        self.wanted[name] = make
        self._create_missing()

    def slow_to_end(self, shutdown: timedelta) -> None:
        """Machines need so long to end; their Nodes are there until then."""
        self.simulation.cloud.behaviour = replace(self.simulation.cloud.behaviour, shutdown=shutdown)

    def live(self, span: timedelta) -> None:
        step = Kubelets._run_pod

        def unless_stopping(kubelets: Kubelets, known: Any, now: datetime) -> bool:
            stopping = now < self._stops.get(known.pod["metadata"]["name"], now)
            return not stopping and step(kubelets, known, now)

        with mock.patch.object(Kubelets, "_run_pod", unless_stopping):
            super().live(span)

    def _then_created(self, evict: Callable[..., None]) -> Callable[..., None]:
        def evicted(name: str, *, namespace: str, uid: str = "") -> None:
            self.last_node = self.api.get(PODS, name, namespace=namespace)["spec"]["nodeName"]
            self.evicted.append(name.partition("-")[0])
            assert len(self.evicted) < 100
            self._stops[name] = self.simulation.clock.now() + self.stopping
            evict(name, namespace=namespace, uid=uid)
            self._create_missing()

        return evicted

    def _create_missing(self) -> None:
        present = {found["metadata"]["labels"]["app"] for found in self.api.list(PODS).items if _counts(found)}
        for name in sorted(self.wanted.keys() - present):
            self._born += 1
            self.api.create(PODS, self.wanted[name](f"{name}-{self._born}"))


def _counts(found: Object) -> bool:
    """True if its controller creates no other pod in its place yet."""
    (owner,) = found["metadata"]["ownerReferences"]
    return owner["kind"] == "StatefulSet" or "deletionTimestamp" not in found["metadata"]


def with_spec(size: str, owner: str = "ReplicaSet", **spec: Any) -> Callable[[str], Object]:
    """Makes pods of this size with more fields in their spec."""

    def made(name: str) -> Object:
        found = pod(name, size, owner=owner)
        found["spec"] |= spec
        return found

    return made


def half_empty(cluster: AtOnce, size: str = "small", **spec: Any) -> AtOnce:
    """Two machines of four GPUs, each with one pod: the pods that needed three have ended."""
    for name in ("a", "b"):
        cluster.api.create(PODS, pod(f"first-{name}", "large", annotations={RUNS_FOR: "20m"}))
    cluster.live(5 * MINUTE)
    for name in ("c", "d"):
        cluster.serve_pod(name, with_spec(size, **spec))
    cluster.live(MINUTE)
    assert cluster.types() == [LARGE, LARGE]
    return cluster


def test_a_pod_that_tolerates_every_taint_is_not_moved() -> None:
    """kube-scheduler would bind the next pod to the same node, where that one is evicted again."""
    cluster = half_empty(AtOnce(), tolerations=[EVERY_TAINT])
    cluster.live(HOUR)
    assert cluster.evicted == []
    assert any("it tolerates taint foreslice.dev/draining" in message for message in cluster.events("NotMoved"))


def test_pods_that_come_back_are_not_evicted_again_and_again() -> None:
    """A template with spec.nodeName binds its pods to the node past kube-scheduler and all taints."""
    cluster = half_empty(AtOnce())
    create = cluster.api.create

    def on_the_node(resource: Resource, body: Object, **options: Any) -> Object:
        if resource == PODS and cluster.evicted:
            body["spec"] |= {"nodeName": cluster.last_node, "resourceClaims": [], "containers": [{"name": "main"}]}
        return create(resource, body, **options)

    with mock.patch.object(cluster.api, "create", on_the_node):
        cluster.live(30 * MINUTE)
    assert len(cluster.evicted) <= 3


def test_the_node_that_drains_counts_as_a_domain_until_it_is_gone() -> None:
    """There the other node has one pod more than the empty one, and the pod would wait for another machine. That one
    would be removed in the same way, again and again."""
    cluster = AtOnce()
    cluster.slow_to_end(4 * MINUTE)
    half_empty(cluster, topologySpreadConstraints=[ONE_PER_NODE])
    cluster.waited = timedelta(0)
    cluster.live(2 * HOUR)
    assert cluster.types() == [SMALL, SMALL]
    assert cluster.evicted == ["c", "d"]
    assert cluster.waited == timedelta(0)


@pytest.mark.parametrize("grace", [90, 2400])
def test_an_empty_node_stays_for_a_pod_that_is_not_created_again_yet(grace: int) -> None:
    """A StatefulSet waits until the old pod has stopped. Meanwhile its place has been empty for `after`."""
    cluster = AtOnce({"after": "380s"})
    cluster.stopping = timedelta(seconds=grace)
    cluster.slow_to_end(MINUTE)
    cluster.api.create(PODS, pod("first", "large", annotations={RUNS_FOR: "20m"}))
    cluster.live(5 * MINUTE)
    cluster.serve_pod("c", with_spec("small", "StatefulSet", terminationGracePeriodSeconds=grace))
    cluster.live(MINUTE)
    other = pod("x", "small", annotations={RUNS_FOR: "570s"})
    other["metadata"]["annotations"]["foreslice.dev/do-not-disrupt"] = "true"
    cluster.api.create(PODS, other)
    cluster.live(4 * MINUTE)
    cluster.waited = timedelta(0)
    cluster.live(HOUR)
    assert (cluster.types(), cluster.evicted) == ([SMALL], ["c"])
    assert len(cluster.launched) == 2
    assert cluster.waited <= MINUTE


def test_a_mark_on_a_node_stops_its_drain() -> None:
    """Somebody saw the drain, which waits for a PodDisruptionBudget."""
    cluster = half_empty(AtOnce())
    evict, marked = cluster.api.evict, list[str]()

    def blocked_once(name: str, *, namespace: str, uid: str = "") -> None:
        if marked:
            evict(name, namespace=namespace, uid=uid)
            return
        marked.append(cluster.api.get(PODS, name, namespace=namespace)["spec"]["nodeName"])
        mark = {"metadata": {"annotations": {"foreslice.dev/do-not-disrupt": "true"}}}
        cluster.api.patch(NODES, marked[0], mark)
        raise BlockedError("the budget allows no disruption", next_step="wait")

    with mock.patch.object(cluster.api, "evict", blocked_once):
        cluster.live(30 * MINUTE)
    (left,) = (node["metadata"]["name"] for node in cluster.api.list(NODES).items)
    assert left == marked[0]
    assert cluster.evicted == ["d"]
    assert cluster.running() == {"c", "d"}
