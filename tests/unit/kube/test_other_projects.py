"""Workloads of other projects become the pods of the templates that they hold."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.other_projects import (
    expand_dynamo_graph,
    expand_knative_service,
    expand_pod_clique_set,
    templates_at,
)
from autoscaler.kube.workloads.stamping import Expansion
from instance_catalog.kubernetes.quantity import Quantity

GPU = "nvidia.com/gpu"


def pod_spec(number: int, **fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"limits": {GPU: number}}}], **fields}


def expanded(expand: Any, spec: dict[str, Any]) -> tuple[Expansion, list[str]]:
    problems = Problems()
    found = expand({"kind": "K", "metadata": {"name": "s", "namespace": "ns"}, "spec": spec}, problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


def gpus(found: Expansion) -> dict[str, int]:
    amounts = {pod.name: pod.containers[0].requests.get(GPU) for pod in found.pods}
    return {name: amount.ceil() if amount else 0 for name, amount in amounts.items()}


def test_a_template_is_stamped_as_often_as_replicas_say() -> None:
    found, problems = expanded(
        templates_at("template"), {"replicas": 2, "strategy": {}, "template": {"spec": pod_spec(1)}}
    )
    assert (gpus(found), problems) == ({"s-0": 1, "s-1": 1}, [])
    found, problems = expanded(templates_at("template"), {"workloadRef": {"name": "d"}})
    assert not found.pods
    assert any("another object says what the pods are" in problem for problem in problems)


def test_the_sidecar_of_a_game_server_is_counted() -> None:
    """Its template is within the one of the GameServer, and a Fleet that does not say how many has none."""
    fleet = templates_at("template", "spec", "template", least=0, sidecar={"side": "30m"})
    template = {"spec": {"ports": [], "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec(1)}}}
    found, problems = expanded(fleet, {"replicas": 1, "template": template})
    (pod,) = found.pods
    assert ([c.name for c in pod.containers], pod.labels["a"], problems) == (["main", "side"], "b", [])
    assert pod.containers[1].requests["cpu"] == Quantity.parse("30m")
    found, problems = expanded(fleet, {"template": template})
    assert (found.pods, problems) == ((), ["spec.replicas: 0: it has no pods now"])


@pytest.mark.parametrize(
    ("annotations", "number"),
    [({}, 1), ({"min-scale": "0"}, 1), ({"minScale": "3"}, 3), ({"min-scale": "2", "initial-scale": "4"}, 4)],
)
def test_a_knative_service_has_the_pods_that_it_keeps(annotations: dict[str, str], number: int) -> None:
    told = {f"autoscaling.knative.dev/{name}": value for name, value in annotations.items()}
    spec = pod_spec(1, containerConcurrency=2, timeoutSeconds=9)
    del spec["containers"][0]["name"]
    found, problems = expanded(expand_knative_service, {"template": {"metadata": {"annotations": told}, "spec": spec}})
    assert (len(found.pods), problems) == (number, [])
    assert [container.name for container in found.pods[0].containers] == ["user-container-0", "queue-proxy"]
    assert found.pods[0].containers[1].requests["cpu"] == Quantity.parse("25m")


def test_cliques_of_a_scaling_group_are_there_for_each_of_its_replicas() -> None:
    cliques = [
        {"name": "router", "spec": {"roleName": "r", "podSpec": pod_spec(0)}},
        {"name": "leader", "labels": {"a": "b"}, "spec": {"replicas": 1, "minAvailable": 1, "podSpec": pod_spec(8)}},
        {"name": "worker", "spec": {"replicas": 2, "podSpec": pod_spec(4)}},
    ]
    groups = [{"name": "model", "cliqueNames": ["leader", "worker"], "replicas": 2}]
    spec = {"replicas": 1, "template": {"cliques": cliques, "podCliqueScalingGroups": groups}}
    found, problems = expanded(expand_pod_clique_set, spec)
    assert gpus(found) == {
        "s-0-router-0-0": 0,
        **{f"s-0-leader-{group}-0": 8 for group in range(2)},
        **{f"s-0-worker-{group}-{index}": 4 for group in range(2) for index in range(2)},
    }
    assert (found.pods[1].labels["a"], problems) == ("b", [])


def test_a_set_of_cliques_without_replicas_has_no_pods() -> None:
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": 1, "podSpec": pod_spec(1)}}
    found, problems = expanded(expand_pod_clique_set, {"template": {"cliques": [clique]}})
    assert (found.pods, problems) == ((), ["spec.replicas: 0: it has no pods now"])


def test_what_grove_shares_between_cliques_is_refused() -> None:
    _, problems = expanded(
        expand_pod_clique_set, {"replicas": 1, "template": {"cliques": [], "resourceSharing": [{"name": "x"}]}}
    )
    assert problems == ["spec.template.resourceSharing: changes the pods or their devices in ways that are not read"]


def test_components_of_dynamo_have_a_pod_for_each_node_of_each_replica() -> None:
    components = [
        {"name": "Frontend", "type": "frontend", "podTemplate": {"spec": pod_spec(0)}},
        {"name": "decode", "replicas": 2, "multinode": {"nodeCount": 2}, "podTemplate": {"spec": pod_spec(8)}},
    ]
    found, problems = expanded(expand_dynamo_graph, {"backendFramework": "vllm", "components": components})
    assert gpus(found) == {"s-frontend-0": 0, **{f"s-decode-{index}": 8 for index in range(4)}}
    assert [one.containers[0].model_spread for one in found.pods] == [False, True, True, True, True]
    assert problems == [
        "spec.components: planned with what is written here: what Dynamo's operator adds to the pods is not read"
    ]


def test_what_dynamo_scales_together_is_refused() -> None:
    _, problems = expanded(expand_dynamo_graph, {"experimental": {"componentGroups": [{"name": "g", "replicas": 2}]}})
    assert [problem.partition(":")[0] for problem in problems] == ["spec.experimental.componentGroups"]
    _, problems = expanded(expand_dynamo_graph, {"experimental": {"kvTransferPolicy": {}}, "providerOverride": {}})
    assert [problem.partition(":")[0] for problem in problems] == ["spec.providerOverride"]


def test_a_service_of_dynamo_gives_its_resources_to_the_main_container() -> None:
    main = {"image": "i", "args": ["--model", "org/m"]}
    services: dict[str, dict[str, Any]] = {
        "decode": {
            "componentType": "worker",
            "resources": {"requests": {"cpu": "4"}, "limits": {"gpu": "2", "custom": {"rdma/ib": "1"}}},
            "extraPodMetadata": {"labels": {"a": "b"}},
            "extraPodSpec": {"mainContainer": main, "nodeSelector": {"k": "v"}, "containers": [{"name": "side"}]},
        },
        "amd": {"resources": {"limits": {"gpu": "1", "gpuType": "amd.com/gpu"}}, "replicas": 1},
    }
    services["decode"]["volumeMounts"] = [{"name": "models"}, {"name": "made"}]
    claims = [{"name": "models", "create": False}, {"name": "made", "create": True}]
    found, _ = expanded(expand_dynamo_graph, {"services": services, "pvcs": claims})
    decode, amd = found.pods
    assert decode.volumes == ("models",)
    assert [container.name for container in decode.containers] == ["main", "side"]
    assert decode.containers[0].requests == {
        "cpu": Quantity.of(4),
        GPU: Quantity.of(2),
        "rdma/ib": Quantity.of(1),
    }
    assert decode.node_selector == {"k": "v"}
    assert decode.labels["a"] == "b"
    assert amd.containers[0].requests == {"amd.com/gpu": Quantity.of(1)}


def test_devices_that_dynamo_shares_between_pods_are_refused() -> None:
    _, problems = expanded(expand_dynamo_graph, {"services": {"a": {"gpuMemoryService": {"enabled": True}}}})
    assert problems[0].startswith("spec.services.a.gpuMemoryService: changes the pods or their devices")
