"""Exemplars on a real control plane, with the chart's rights and admission policies; the test is Cluster Autoscaler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, RESOURCE_SLICES, Resource
from autoscaler.externalgrpc.messages import METHODS, PROVIDER
from autoscaler.externalgrpc.wire import Json, decode, encode
from autoscaler.kube.metadata import is_exemplar
from instance_catalog.kubernetes import labels
from tests.e2e.harness.audit import answered
from tests.e2e.harness.control_plane import PATIENCE
from tests.e2e.harness.gpu_pods import TEMPLATE, pod, pool
from tests.e2e.harness.installation import ACCOUNT, BRISK, Controller, Installation

POOL = pool("g6.xlarge", launcher="ClusterAutoscaler", mode="Act", limits={"nodes": 1}, disruption=None)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    settings = {**BRISK, "serve": {**BRISK["serve"], "externalGrpc": "127.0.0.1:0"}, "grpc": {"exemplars": True}}
    with Installation(tmp_path_factory.mktemp("exemplars"), values={"settings": settings}, jobs_end=False) as installed:
        installed.apply(POOL + "---" + TEMPLATE + "---" + pod("work"))
        yield installed


def shown(cluster: Installation, resource: Resource) -> list[Object]:
    return [found for found in cluster.api.list(resource).items if is_exemplar(found)]


def is_ready(node: Object) -> bool:
    """Whether Kubernetes has taken off the taint that every new Node gets."""
    return all(taint["key"] != labels.NOT_READY_TAINT for taint in node["spec"]["taints"])


def port_of(controller: Controller) -> int:
    """Where it answers, 0 while it does not."""
    lines = [json.loads(line) for line in controller.log.splitlines() if line.startswith("{")]
    return next((line["port"] for line in lines if line.get("serves") == PROVIDER), 0)


def test_an_exemplar_is_shown_for_a_group_without_a_node_and_goes(cluster: Installation) -> None:
    with cluster.controller() as controller:
        cluster.wait_until(lambda: bool(port_of(controller)), "the address of the cloud provider")
        channel = grpc.insecure_channel(f"127.0.0.1:{port_of(controller)}")

        def call(method: str, **asked: Any) -> Json:
            question, answer = METHODS[method]
            send = channel.unary_unary(f"/{PROVIDER}/{method}")
            return decode(answer, send(encode(question, asked), timeout=PATIENCE))

        def groups() -> list[Json]:
            call("Refresh")
            found: list[Json] = call("NodeGroups").get("nodeGroups", [])
            return found

        cluster.wait_until(lambda: bool(groups()), "a group for the pod")
        (group,) = groups()
        call("NodeGroupTemplateNodeInfo", id=group["id"])
        cluster.wait_until(lambda: any(map(is_ready, shown(cluster, NODES))), "an exemplar that is ready")
        (node,), (piece,) = shown(cluster, NODES), shown(cluster, RESOURCE_SLICES)
        name = node["metadata"]["name"]
        assert {taint["key"] for taint in node["spec"]["taints"]} == {labels.CA_STATUS_TAINT}
        assert (piece["spec"]["nodeName"], piece["spec"]["driver"]) == (name, "gpu.nvidia.com")
        assert call("NodeGroupForNode", node={"name": name})["nodeGroup"]["id"] == group["id"]
        assert cluster.api.list(LAUNCH_BATCHES).items == ()
        call("NodeGroupIncreaseSize", id=group["id"], delta=1)
        assert call("NodeGroupForNode", node={"name": name}).get("nodeGroup", {}).get("id", "") == ""
        cluster.wait_until(lambda: not shown(cluster, NODES) + shown(cluster, RESOURCE_SLICES), "its end")
        cluster.wait_until(lambda: cluster.running("work"), "the pod on the node that was ordered")
        channel.close()
    (left,) = cluster.api.list(NODES).items
    assert not is_exemplar(left)
    _, refused = answered(
        [(right, code) for right, code in cluster.control_plane.asked(ACCOUNT) if right.resource != "leases"]
    )
    assert sorted(refused) == []
