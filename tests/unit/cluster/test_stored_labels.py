"""Objects that an earlier version stored with what is no label hurt themselves alone."""

from __future__ import annotations

from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import CAPACITY_POOLS, LAUNCH_BATCHES, PROVISIONED_NODES
from autoscaler.cluster.store import Store
from autoscaler.kube.custom.launch_batch import write_launch_batch
from autoscaler.kube.custom.provisioned_node import write_provisioned_node
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.kubernetes.profile import REFERENCE
from tests.e2e.harness.custom_objects import BATCH, FULL, NODE

FLAG = "x --anonymous-auth=true"


def test_a_pool_is_left_out_with_the_field_and_all_else_is_seen() -> None:
    api = ApiServer(VirtualClock())
    spec = FULL["CapacityPool"]
    api.create(CAPACITY_POOLS, {"metadata": {"name": "bad"}, "spec": {**spec, "labels": {"team": FLAG}}})
    api.create(CAPACITY_POOLS, {"metadata": {"name": "good"}, "spec": spec})
    node, batch = write_provisioned_node(NODE), write_launch_batch(BATCH)
    node["spec"]["labels"] = batch["spec"]["labels"] = {"team": FLAG}
    for resource, manifest in ((PROVISIONED_NODES, node), (LAUNCH_BATCHES, batch)):
        manifest["metadata"] = {"name": manifest["metadata"]["name"]}
        api.create(resource, manifest)
    store = Store(api, REFERENCE)
    store.refresh()
    snapshot = store.snapshot()
    assert [pool.name for pool in snapshot.pools] == ["good"]
    assert [dict(found.labels) for found in snapshot.provisioned] == [{"team": FLAG}]
    assert [dict(found.labels) for found in store.batches()] == [{"team": FLAG}]
    told = [(kind, name, problem.field) for kind, name, problem in store.problems() if kind == "CapacityPool"]
    assert told == [("CapacityPool", "bad", "spec.labels.team")]
