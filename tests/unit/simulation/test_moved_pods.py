"""Pods that are moved to save money get the place that was planned for them, and stay there."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from autoscaler.cluster.api import BlockedError, Object
from autoscaler.cluster.resources import NODES, PODS, Resource
from autoscaler.simulation.kubelets import RUNS_FOR
from tests.unit.simulation.moving_pods import AtOnce, with_spec
from tests.unit.simulation.test_consolidation import HOUR, LARGE, MINUTE, SMALL, pod

EVERY_TAINT: Object = {"operator": "Exists"}
ONE_PER_NODE: Object = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["c", "d"]}]},
}


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
