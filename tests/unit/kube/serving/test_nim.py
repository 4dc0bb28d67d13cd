"""NIMService, NIMPipeline and NIMCache become the pods that NVIDIA's NIM Operator makes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaler.manifests.load import Loaded
from tests.unit.manifests.texts import loaded, messages

GPU = "nvidia.com/gpu"
SERVICE: dict[str, Any] = {
    "image": {"repository": "nvcr.io/nim/meta/llama", "tag": "1.0"},
    "authSecret": "s",
    "storage": {"emptyDir": {}},
    "expose": {"service": {"port": 8000}},
}


def text(kind: str, name: str, spec: dict[str, Any]) -> str:
    value = {"apiVersion": "apps.nvidia.com/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return json.dumps(value)


def service(**spec: Any) -> str:
    return text("NIMService", "n", {**SERVICE, "resources": {"limits": {GPU: 2}}, **spec})


def cache(**storage: Any) -> str:
    pvc = {"create": True, "size": "5Gi", "storageClass": "fast", "volumeAccessMode": "ReadWriteMany", **storage}
    return text("NIMCache", "c", {"source": {"ngc": {}}, "storage": {"pvc": pvc}, "resources": {"cpu": "2"}})


def names(found: Loaded) -> list[str]:
    assert found.ok, messages(found)
    return [pod.name for pod in found.snapshot.pods]


def test_a_service_is_its_replicas_with_the_fields_of_their_pods() -> None:
    found = loaded(
        service(
            replicas=2,
            nodeSelector={"a": "b"},
            tolerations=[{"operator": "Exists"}],
            schedulerName="s",
            runtimeClassName="",
            sidecarContainers=[{"name": "side", "image": {"repository": "i", "tag": 1}}],
        )
    )
    assert names(found) == ["n-0", "n-1"]
    pod = found.snapshot.pods[0]
    assert (dict(pod.node_selector), pod.scheduler_name, len(pod.tolerations)) == ({"a": "b"}, "s", 1)
    assert [one.name for one in pod.containers] == ["n-ctr", "side"]
    assert pod.containers[0].image == "nvcr.io/nim/meta/llama:1.0"
    assert str(pod.containers[0].requests[GPU]) == "2"
    assert messages(found) == []


def test_a_service_that_scales_has_its_least_replicas() -> None:
    assert len(names(loaded(service(scale={"enabled": True, "hpa": {"minReplicas": 3, "maxReplicas": 4}})))) == 3


def test_several_nodes_are_groups_whose_pods_have_parts_of_one_model() -> None:
    parallel = {"parallelism": {"pipeline": 2, "tensor": 8}}
    found = loaded(service(replicas=2, multiNode=parallel, affinity={"nodeAffinity": {}}))
    assert names(found) == ["n-lws-0", "n-lws-0-1", "n-lws-1", "n-lws-1-1"]
    assert all(pod.containers[0].model_spread for pod in found.snapshot.pods)
    assert all(pod.affinity is None for pod in found.snapshot.pods)


@pytest.mark.parametrize(("tensor", "unread"), [(8, False), (None, True)])
def test_gpus_that_the_profile_of_the_cache_decides_are_unknown(tensor: int | None, *, unread: bool) -> None:
    multi = {"multiNode": {"parallelism": {"pipeline": 2, "tensor": tensor}}} if tensor else {}
    found = loaded(cache(), service(resources={"limits": {"cpu": 4}}, storage={"nimCache": {"name": "c"}}, **multi))
    pod = next(pod for pod in found.snapshot.pods if pod.name != "c-job-0")
    assert (pod.unread is not None) is unread
    assert (GPU in pod.containers[0].requests) is not unread


def test_claims_are_made_of_dra_resources() -> None:
    device = {
        "name": "gpu",
        "deviceClassName": "gpu.nvidia.com",
        "driverName": "gpu.nvidia.com",
        "count": 2,
        "attributeSelectors": [
            {"key": "architecture", "op": "Equal", "value": {"stringValue": "Ampere"}},
            {"key": "other.com/driverVersion", "op": "GreaterThanOrEqual", "value": {"versionValue": "1.2.3"}},
        ],
        "capacitySelectors": [{"key": "memory", "op": "GreaterThan", "value": "40Gi"}],
        "celExpressions": ["true"],
    }
    found = loaded(service(resources=None, draResources=[{"claimCreationSpec": {"devices": [device]}}]))
    (pod,) = found.snapshot.pods
    (entry,) = pod.claims
    (request,) = found.snapshot.claim_templates[f"default/{entry.template}"].spec.exact_requests
    assert request.device_class == "gpu.nvidia.com"
    assert [one.expression for one in request.selectors] == [
        'device.attributes["gpu.nvidia.com"].architecture == "Ampere"',
        '(device.attributes["other.com"].driverVersion).compareTo(semver("1.2.3")) >= 0',
        '(device.capacity["gpu.nvidia.com"].memory).compareTo(quantity("40Gi")) > 0',
        "true",
    ]
    assert messages(found) == []


def test_claims_of_others_are_named_and_the_domain_of_a_service_has_its_channel() -> None:
    domain = {"parallelism": {"pipeline": 2, "tensor": 4}, "computeDomain": {"create": True}}
    found = loaded(service(draResources=[{"resourceClaimName": "mine"}], multiNode=domain))
    (missing,) = [message for message in messages(found) if "there is no" in message]
    assert "spec.draResources[0].resourceClaimName: there is no ResourceClaim 'mine'" in missing
    mine, channel = found.snapshot.pods[0].claims
    assert (mine.claim, channel.template) == ("mine", "n-cd-claimtemplate")
    assert "default/n-cd-claimtemplate" in found.snapshot.claim_templates
    domain["computeDomain"] = {"name": "other"}
    assert (
        "names a ComputeDomain whose channel template is not followed" in messages(loaded(service(multiNode=domain)))[0]
    )


@pytest.mark.parametrize(("given", "claim"), [({}, "c-pvc"), ({"name": "own"}, "own")])
def test_a_cache_is_a_pod_that_fills_the_volume_of_services(given: dict[str, str], claim: str) -> None:
    found = loaded(cache(**given), service(storage={"nimCache": {"name": "c", "profile": ""}}))
    assert names(found) == ["c-job-0", "n-0"]
    assert {pod.volumes for pod in found.snapshot.pods} == {(claim,)}
    assert found.snapshot.volume_claims[f"default/{claim}"].storage_class == "fast"
    assert str(found.snapshot.pods[0].containers[0].requests["cpu"]) == "2"


@pytest.mark.parametrize(
    ("source", "billions", "bits"),
    [
        ({"hf": {"modelName": "Some-Model-8B-v1", "modelPuller": "nvcr.io/nim/nvidia/llm-nim:1"}}, 8, 16),
        ({"dataStore": {"modelName": "some-model-3b"}}, 3, 16),
        ({"ngc": {"modelPuller": "nvcr.io/nim/some/model-70b-instruct:1.8"}}, 70, 16),
        ({"ngc": {"modelPuller": "nvcr.io/nim/some/model-70b:1", "model": {"precision": "fp8"}}}, 70, 8),
        ({"ngc": {"modelPuller": "nvcr.io/nim/nvidia/llm-nim:1"}}, None, 16),
    ],
)
def test_the_model_of_a_service_is_that_of_its_cache(source: dict[str, Any], billions: float | None, bits: int) -> None:
    storage = {"storage": {"pvc": {"name": "c", "create": True, "size": "5Gi", "storageClass": "fast"}}}
    found = loaded(
        text("NIMCache", "c", {"source": source, **storage}),
        service(storage={"nimCache": {"name": "c"}}, env=[{"name": "A", "value": "b"}]),
    )
    assert names(found) == ["c-job-0", "n-0"]
    (container,) = found.snapshot.pods[1].containers
    assert (container.model_billions, container.model_bits) == (billions, bits)


def test_a_cache_that_is_not_given_is_asked_for_by_its_claim() -> None:
    (problem,) = messages(loaded(service(storage={"nimCache": {"name": "c"}})))
    assert "there is no PersistentVolumeClaim 'c-pvc' in the files" in problem


def test_services_together_have_a_limit() -> None:
    many = {**SERVICE, "resources": {"limits": {GPU: 1}}, "replicas": 6000}
    services = [{"name": name, "enabled": True, "spec": many} for name in ("a", "b")]
    assert (
        "spec.services: more than 10000 pods" in messages(loaded(text("NIMPipeline", "p", {"services": services})))[0]
    )


def test_a_pipeline_is_its_enabled_services() -> None:
    one = {**SERVICE, "resources": {"limits": {GPU: 1}}}
    services = [
        {"name": "a", "enabled": True, "spec": one},
        {"name": "b", "enabled": False, "spec": one},
        {"name": "c", "spec": one},
    ]
    assert names(loaded(text("NIMPipeline", "p", {"services": services}))) == ["a-0"]
