"""The store follows the cluster by watches, survives forgotten history, and is not stopped by one bad object."""

from __future__ import annotations

from operator import is_

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    COMPUTE_CLASSES,
    CSI_DRIVERS,
    CSI_NODES,
    DEPLOYMENTS,
    LAUNCH_BATCHES,
    NAMESPACES,
    NATIVE_POD_GROUPS,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
)
from autoscaler.cluster.store import Store
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.kubernetes.profile import REFERENCE


@pytest.fixture
def api() -> ApiServer:
    return ApiServer(VirtualClock())


@pytest.fixture
def store(api: ApiServer) -> Store:
    return Store(api, REFERENCE)


def pod(name: str, **spec: object) -> dict[str, object]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": containers, **spec}}


def test_what_changes_is_seen_at_the_next_refresh(api: ApiServer, store: Store) -> None:
    api.create(PODS, pod("b"))
    assert store.refresh()
    api.create(PODS, pod("a"))
    assert [found.name for found in store.snapshot().pods] == ["b"]
    assert store.refresh()
    assert [found.name for found in store.snapshot().pods] == ["a", "b"]
    api.delete(PODS, "b", namespace="default")
    assert store.refresh()
    assert [found.name for found in store.snapshot().pods] == ["a"]
    assert not store.refresh()


def test_gangs_of_kubernetes_and_of_coscheduling_are_seen(api: ApiServer, store: Store) -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": 4}}}
    for resource, spec in ((NATIVE_POD_GROUPS, policy), (POD_GROUPS, {"minMember": 2})):
        metadata = {"name": resource.version, "namespace": "default"}
        api.create(resource, {"apiVersion": resource.api_version, "metadata": metadata, "spec": spec})
    store.refresh()
    assert {key: gang.min_count for key, gang in store.snapshot().gangs.items()} == {
        "default/v1alpha1": 2,
        "default/v1alpha2": 4,
    }


def test_the_machines_of_compute_classes_are_seen(api: ApiServer, store: Store) -> None:
    spec = {"priorities": [{"machineType": "g2-standard-4"}, {"gpu": {"type": "nvidia-l4", "count": 1}}]}
    api.create(COMPUTE_CLASSES, {"metadata": {"name": "l4"}, "spec": spec})
    store.refresh()
    (found,) = store.snapshot().compute_classes.values()
    assert [(one.machine_type, one.gpu) for one in found.rules] == [("g2-standard-4", ""), ("", "nvidia-l4")]


def test_forgotten_history_is_listed_again(api: ApiServer, store: Store) -> None:
    api.create(PODS, pod("a"))
    api.create(PODS, pod("b"))
    store.refresh()
    api.delete(PODS, "a", namespace="default")
    api.create(PODS, pod("c"))
    api.compact()
    assert store.refresh()
    assert [found.name for found in store.snapshot().pods] == ["b", "c"]


def test_values_of_untouched_objects_stay_the_same_ones(api: ApiServer, store: Store) -> None:
    api.create(PODS, pod("a"))
    store.refresh()
    (before,) = store.snapshot().pods
    api.create(PODS, pod("b"))
    store.refresh()
    assert store.snapshot().pods[0] is before


def test_claims_are_found_by_keys_that_stay_the_same_objects(api: ApiServer, store: Store) -> None:
    for name in ("b", "a"):
        api.create(RESOURCE_CLAIMS, {"metadata": {"name": name, "namespace": "team"}, "spec": {}})
    store.refresh()
    before = store.snapshot().claims
    assert [(key, claim.key) for key, claim in before.items()] == [("team/a", "team/a"), ("team/b", "team/b")]
    api.delete(RESOURCE_CLAIMS, "b", namespace="team")
    store.refresh()
    (key,) = store.snapshot().claims
    assert key is next(iter(before))


def test_a_new_priority_class_is_applied_to_pods_that_were_there(api: ApiServer, store: Store) -> None:
    api.create(PODS, pod("a", priorityClassName="high"))
    store.refresh()
    api.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    store.refresh()
    assert store.snapshot().pods[0].priority == 1000


def test_a_pool_that_cannot_be_used_is_told_and_others_are_seen(api: ApiServer, store: Store) -> None:
    api.create(CAPACITY_POOLS, {"metadata": {"name": "bad"}, "spec": {"mode": "Perhaps"}})
    api.create(CAPACITY_POOLS, {"metadata": {"name": "good"}, "spec": {"limits": {"nodes": 1}}})
    store.refresh()
    assert [pool.name for pool in store.snapshot().pools] == ["good"]
    told = {(kind, key, problem.field) for kind, key, problem in store.problems()}
    assert ("CapacityPool", "bad", "spec.mode") in told


def test_who_does_not_know_our_own_objects_reads_none_of_them(api: ApiServer) -> None:
    api.create(CAPACITY_POOLS, {"metadata": {"name": "gpu"}, "spec": {"limits": {"nodes": 1}}})
    api.create(LAUNCH_BATCHES, {"metadata": {"name": "odd"}, "spec": {}})
    api.create(PODS, pod("a"))
    store = Store(api, REFERENCE, own=False)
    store.refresh()
    assert ([found.name for found in store.snapshot().pods], store.snapshot().pools) == (["a"], ())
    assert not list(store.problems())


def test_a_batch_that_nobody_wrote_is_told(api: ApiServer, store: Store) -> None:
    api.create(LAUNCH_BATCHES, {"metadata": {"name": "odd"}, "spec": {}})
    store.refresh()
    assert store.batches() == ()
    assert {(kind, key) for kind, key, _ in store.problems()} == {("LaunchBatch", "odd")}


def test_back_offs_are_read_from_the_status_of_pools(api: ApiServer, store: Store) -> None:
    api.create(CAPACITY_POOLS, {"metadata": {"name": "p"}, "spec": {"limits": {"nodes": 1}}})
    backoff = {"until": "2026-01-01T01:00:00Z", "zone": "z", "reason": "Shortage"}
    api.patch(CAPACITY_POOLS, "p", {"status": {"backoffs": [backoff]}}, subresource="status")
    store.refresh()
    (found,) = store.snapshot().backoffs
    assert (found.pool, found.zone, found.reason, found.until.hour) == ("p", "z", "Shortage", 1)


def test_everything_else_finds_its_place_in_the_snapshot(api: ApiServer, store: Store) -> None:
    api.create(NAMESPACES, {"metadata": {"name": "team", "labels": {"tier": "gold"}}})
    api.create(NODES, {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}})
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}}
    api.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": {**spec, "devices": []}})
    store.refresh()
    snapshot = store.snapshot()
    assert snapshot.namespaces["team"] == {"tier": "gold"}
    assert [node.name for node in snapshot.nodes] == ["n"]
    assert [piece.name for piece in snapshot.slices] == ["s"]
    assert snapshot.profile is REFERENCE


def test_nodes_have_the_volume_limits_that_their_csi_drivers_gave(api: ApiServer, store: Store) -> None:
    for name in ("a", "b"):
        api.create(NODES, {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "1"}}})
    driver = {"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}}
    api.create(CSI_NODES, {"metadata": {"name": "b"}, "spec": {"drivers": [driver]}})
    store.refresh()
    before = store.snapshot().nodes
    assert [node.volume_limits for node in before] == [None, {"ebs.csi.aws.com": 25}]
    store.refresh()
    assert all(map(is_, store.snapshot().nodes, before))
    api.patch(CSI_NODES, "b", {"spec": {"drivers": [driver | {"allocatable": {"count": 9}}]}})
    store.refresh()
    assert [node.volume_limits for node in store.snapshot().nodes] == [None, {"ebs.csi.aws.com": 9}]
    api.patch(NODES, "b", {"spec": {"unschedulable": True}})
    store.refresh()
    changed = store.snapshot().nodes[1]
    assert changed.unschedulable
    assert changed.volume_limits == {"ebs.csi.aws.com": 9}
    api.delete(CSI_NODES, "b")
    store.refresh()
    assert [node.volume_limits for node in store.snapshot().nodes] == [None, None]


def test_what_volumes_find_on_nodes_comes_along(api: ApiServer, store: Store) -> None:
    for name, tracks in (("local.example.com", True), ("ebs.csi.aws.com", False)):
        api.create(CSI_DRIVERS, {"metadata": {"name": name}, "spec": {"storageCapacity": tracks}})
    room = {"metadata": {"name": "r"}, "storageClassName": "local", "nodeTopology": {}, "capacity": "3Gi"}
    api.create(STORAGE_CAPACITIES, room)
    api.create(STORAGE_CAPACITIES, {**room, "metadata": {"name": "s"}, "maximumVolumeSize": "1Gi"})
    attached = {"attacher": "ebs.csi.aws.com", "nodeName": "n"}
    for name, volume in (("a", {"persistentVolumeName": "v"}), ("b", {})):
        api.create(VOLUME_ATTACHMENTS, {"metadata": {"name": name}, "spec": {**attached, "source": volume}})
    store.refresh()
    snapshot = store.snapshot()
    assert snapshot.capacity_trackers == {"local.example.com"}
    assert [str(found.largest) for found in snapshot.storage_capacities] == ["3Gi", "1Gi"]
    assert [found.volume for found in snapshot.attachments] == ["v"]


def test_what_did_not_change_is_the_same_object_in_the_next_snapshot(api: ApiServer, store: Store) -> None:
    claim = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}
    api.create(RESOURCE_CLAIMS, {"metadata": {"name": "c", "namespace": "default"}, **claim})
    api.create(NODES, {"metadata": {"name": "n1"}})
    store.refresh()
    before = store.snapshot()
    api.create(NODES, {"metadata": {"name": "n2"}})
    store.refresh()
    after = store.snapshot()
    assert after.claims is before.claims
    assert [node.name for node in after.nodes] == ["n1", "n2"]
    assert after.nodes[0] is before.nodes[0]


def test_a_deployment_is_an_autoscaler_or_a_workload(api: ApiServer, store: Store) -> None:
    for name, image in (("web", "nginx"), ("karpenter", "public.ecr.aws/karpenter/controller:1.0")):
        template = {"spec": {"containers": [{"name": "controller", "image": image}]}}
        metadata = {"name": name, "namespace": "default", "labels": {"app.kubernetes.io/name": name}}
        api.create(DEPLOYMENTS, {"metadata": metadata, "spec": {"replicas": 1, "template": template}})
    store.refresh()
    snapshot = store.snapshot()
    assert [found.name for found in snapshot.scalables] == ["web"]
    assert len(snapshot.autoscalers) == 1
