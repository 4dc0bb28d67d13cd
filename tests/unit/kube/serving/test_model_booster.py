"""ModelBooster of Kthena becomes the pods of the ModelServing that its controller makes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaler.manifests.load import Loaded
from tests.unit.manifests.texts import loaded, messages

GPU = "nvidia.com/gpu"


def worker(kind: str, gpus: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "image": "vllm",
        "resources": {"limits": {GPU: gpus}},
        "config": {"a": ""},
        "replicas": 1,
        **more,
    }


def booster(*workers: dict[str, Any], kind: str = "vLLM", **backend: Any) -> Loaded:
    made = {
        "name": "B",
        "type": kind,
        "modelURI": "hf://org/Model-7B",
        "replicas": 1,
        "workers": list(workers),
        **backend,
    }
    version = "workload.serving.volcano.sh/v1alpha1"
    value = {"apiVersion": version, "kind": "ModelBooster", "metadata": {"name": "m"}, "spec": {"backend": made}}
    return loaded(json.dumps(value))


def names(found: Loaded) -> list[str]:
    assert found.ok, messages(found)
    return sorted(pod.name for pod in found.snapshot.pods)


def test_a_server_is_a_leader_with_its_workers() -> None:
    found = booster(worker("server", 8, pods=2, tolerations=[{"operator": "Exists"}]), replicas=2)
    assert names(found) == ["m-b-0-leader-0-0", "m-b-0-leader-0-1", "m-b-1-leader-0-0", "m-b-1-leader-0-1"]
    pod = found.snapshot.pods[0]
    assert (str(pod.containers[1].requests[GPU]), len(pod.tolerations), pod.scheduler_name) == ("8", 1, "volcano")
    assert pod.containers[1].model_billions == 7
    assert len(found.snapshot.gangs) == 2
    assert messages(found) == []


def test_prefill_and_decode_are_roles() -> None:
    both = booster(
        worker("prefill", replicas=2), worker("decode"), kind="vLLMDisaggregated", schedulerName="default-scheduler"
    )
    assert names(both) == ["m-b-0-decode-0-0", "m-b-0-prefill-0-0", "m-b-0-prefill-1-0"]
    assert {pod.scheduler_name for pod in both.snapshot.pods} == {"default-scheduler"}


def test_a_worker_without_replicas_has_no_pods() -> None:
    found = booster(worker("server", replicas=None))
    assert names(found) == []
    assert "0: it has no pods now" in messages(found)[0]


def test_a_cache_is_a_volume() -> None:
    found = booster(worker("server"), cacheURI="pvc://models")
    assert found.snapshot.pods[0].volumes == ("models",)
    assert booster(worker("server"), cacheURI="hostpath://tmp/cache").snapshot.pods[0].volumes == ()


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (booster(worker("server"), kind="MindIE"), "'MindIE' is no type for which Kthena makes pods"),
        (booster(worker("decode"), kind="vLLMDisaggregated"), "has no worker of type prefill"),
    ],
)
def test_what_kthena_makes_no_pods_of_is_an_error(found: Loaded, said: str) -> None:
    assert said in "".join(messages(found))
    assert not found.ok


def test_missing_workers_are_told_in_the_order_of_their_roles() -> None:
    first, second = messages(booster(kind="vLLMDisaggregated"))
    assert "type prefill" in first
    assert "type decode" in second
