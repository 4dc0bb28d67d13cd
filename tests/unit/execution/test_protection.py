"""Marks on pods, pools that are deleted, and resources that are uninstalled: what must not end because of us."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import KubernetesApi, NotFoundError
from autoscaler.cluster.intents import batches_of
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NODES,
    PODS,
    PROVISIONED_NODES,
)
from autoscaler.errors import ConfigurationError
from autoscaler.execution.drain import Drained, evict_all
from autoscaler.execution.finalizers import stop_while_uninstalling, sync_finalizer
from autoscaler.execution.hold import hold, release
from autoscaler.kube.node import parse_node
from autoscaler.kube.pod import parse_pod
from autoscaler.model.capacity import DeletionPolicy, Mode
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from tests.desk import POOL, Desk, planned


def created(desk: Desk, **annotations: str) -> Pod:

    spec = {"nodeName": "n1", "containers": [{"name": "main"}], "terminationGracePeriodSeconds": 60}
    metadata = {"name": "work", "namespace": "default", "annotations": annotations}
    return parse_pod(desk.api.create(PODS, {"metadata": metadata, "spec": spec}))


MARKS = [
    pytest.param({labels.DO_NOT_DISRUPT: "true"}, True, id="ours"),
    pytest.param({labels.KARPENTER_DO_NOT_DISRUPT: "true"}, True, id="karpenters"),
    pytest.param({labels.KARPENTER_DO_NOT_DISRUPT: "2h"}, True, id="karpenters-duration"),
    pytest.param({labels.CA_SAFE_TO_EVICT: "false"}, True, id="cluster-autoscalers"),
    pytest.param({labels.CA_SAFE_TO_EVICT: "true"}, False, id="explicitly-safe"),
    pytest.param({labels.KARPENTER_DO_NOT_DISRUPT: "false"}, False, id="explicitly-not-marked"),
    pytest.param({}, False, id="unmarked"),
]


@pytest.mark.parametrize(("annotations", "marked"), MARKS)
def test_a_marked_pod_is_not_evicted(desk: Desk, annotations: dict[str, str], marked: bool) -> None:
    pod = created(desk, **annotations)
    drained = evict_all(desk.api, [pod], ends_at=None, now=desk.now)
    assert drained == Drained((pod.key,), (), (pod.key,) if marked else ())


@pytest.mark.parametrize(
    ("left", "marked"),
    [
        pytest.param(timedelta(minutes=10), True, id="plenty-of-time"),
        pytest.param(timedelta(minutes=3), False, id="just-enough-to-stop-it"),
    ],
)
def test_a_mark_cannot_stop_the_end_of_a_machine(desk: Desk, left: timedelta, marked: bool) -> None:
    pod = created(desk, **{labels.DO_NOT_DISRUPT: "true"})
    drained = evict_all(desk.api, [pod], ends_at=desk.now + left, now=desk.now)
    assert drained.marked == ((pod.key,) if marked else ())


@pytest.mark.parametrize("grace", [10**11, 2**63 - 1], ids=["beyond-all-dates", "the-longest"])
def test_a_grace_period_of_ages_takes_no_time_from_other_pods(desk: Desk, grace: int) -> None:
    metadata = {"name": "aged", "namespace": "default", "annotations": {labels.DO_NOT_DISRUPT: "true"}}
    spec = {"containers": [{"name": "main"}], "terminationGracePeriodSeconds": grace}
    pods = [parse_pod(desk.api.create(PODS, {"metadata": metadata, "spec": spec})), created(desk)]
    drained = evict_all(desk.api, pods, ends_at=desk.now + timedelta(hours=1), now=desk.now)
    assert drained == Drained(tuple(pod.key for pod in pods))  # both are asked to stop


def test_marks_of_a_held_node_go_with_the_hold(desk: Desk) -> None:
    desk.api.create(NODES, {"metadata": {"name": "n1", "annotations": {"theirs": "x"}}})
    hold(desk.api, parse_node(desk.api.get(NODES, "n1")))
    held = parse_node(desk.api.get(NODES, "n1"))
    assert dict(held.annotations) == {"theirs": "x", labels.CA_SCALE_DOWN_DISABLED: "true", labels.HELD: "true"}
    release(desk.api, held)
    assert dict(parse_node(desk.api.get(NODES, "n1")).annotations) == {"theirs": "x"}


def test_a_mark_that_somebody_else_set_stays(desk: Desk) -> None:
    desk.api.create(NODES, {"metadata": {"name": "n1", "annotations": {labels.CA_SCALE_DOWN_DISABLED: "true"}}})
    node = parse_node(desk.api.get(NODES, "n1"))
    writes = desk.api.writes
    release(desk.api, node)
    assert desk.api.writes == writes


def with_a_node(desk: Desk) -> Snapshot:
    desk.record(planned("n1"))
    return Snapshot(provisioned=desk.nodes())


def finalizers(desk: Desk) -> list[str]:
    found: list[str] = desk.api.get(CAPACITY_POOLS, "gpu")["metadata"].get("finalizers", [])
    return found


def test_a_pool_with_nodes_is_held_by_a_finalizer_until_they_are_gone(desk: Desk) -> None:
    snapshot = with_a_node(desk)
    sync_finalizer(desk.api, POOL, snapshot)
    assert finalizers(desk) == ["foreslice.dev/nodes"]
    desk.api.delete(CAPACITY_POOLS, "gpu")
    deleting = replace(POOL, guarded=True, deleting=True)
    sync_finalizer(desk.api, deleting, snapshot)
    assert finalizers(desk) == ["foreslice.dev/nodes"]
    sync_finalizer(desk.api, deleting, Snapshot(provisioned=tuple(replace(n, phase=Phase.GONE) for n in desk.nodes())))
    with pytest.raises(NotFoundError):
        desk.api.get(CAPACITY_POOLS, "gpu")


def test_a_pool_that_retains_its_nodes_goes_at_once(desk: Desk) -> None:
    snapshot = with_a_node(desk)
    pool = replace(POOL, deletion_policy=DeletionPolicy.RETAIN)
    sync_finalizer(desk.api, pool, snapshot)
    assert finalizers(desk) == []
    desk.api.patch(CAPACITY_POOLS, "gpu", {"metadata": {"finalizers": ["theirs", "foreslice.dev/nodes"]}})
    sync_finalizer(desk.api, replace(pool, guarded=True), snapshot)
    assert finalizers(desk) == ["theirs"]


def test_who_deletes_a_pool_orders_the_end_of_its_nodes_also_when_it_observes(desk: Desk) -> None:
    snapshot = with_a_node(desk)
    sync_finalizer(desk.api, replace(POOL, mode=Mode.OBSERVE), snapshot)
    assert finalizers(desk) == ["foreslice.dev/nodes"]


def define(api: KubernetesApi, **metadata: Any) -> None:
    name = str(PROVISIONED_NODES)
    manifest = {"metadata": {"name": name, "finalizers": ["customresourcecleanup"], **metadata}, "spec": {}}
    api.create(CUSTOM_RESOURCE_DEFINITIONS, manifest)


def test_nodes_that_go_with_their_definition_are_let_go_without_ending_machines(desk: Desk) -> None:
    define(desk.api)
    with_a_node(desk)
    desk.api.delete(PROVISIONED_NODES, "n1")
    deleting = Snapshot(provisioned=desk.nodes())
    stop_while_uninstalling(desk.api, deleting)  # a person's order: the definition stays
    assert [node.deleting for node in desk.nodes()] == [True]
    desk.api.delete(CUSTOM_RESOURCE_DEFINITIONS, str(PROVISIONED_NODES))
    with pytest.raises(ConfigurationError, match="all machines stay"):
        stop_while_uninstalling(desk.api, deleting)
    assert desk.nodes() == ()


def test_startup_taints_are_asked_for_with_the_others() -> None:
    starting = Taint("cilium", "", "NoSchedule")
    pool = replace(POOL, startup_taints=(starting,))
    launch = planned("n1")
    node = replace(launch.node, taints=(Taint("team", "x", "NoSchedule"),))
    (batch,) = batches_of([replace(launch, node=node)], Snapshot(pools=(pool,)))
    assert batch.taints == (*node.taints, starting)
