"""Pods of one template share what they have in common, and stay small."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from autoscaler.cluster.interning import PodInterner
from autoscaler.kube.pod import parse_pod
from autoscaler.model.pod import Pod
from autoscaler.model.requests import NOTHING
from instance_catalog.frozen_map import FrozenMap

PODS = 200
MOST_BYTES = 3_000


def raw(number: int) -> Any:
    """A bound pod as an API server sends it, about 6 kB: every value is an object of its own."""
    requirement = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    main = {
        "name": "main",
        "image": "registry.example.com/train:v1",
        "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "claims": [{"name": "gpu"}]},
        "env": [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(20)],
    }
    pod = {
        "metadata": {
            "name": f"train-{number}",
            "namespace": "team",
            "uid": f"uid-{number}",
            "labels": {"app": "train", "batch.kubernetes.io/job-completion-index": str(number)},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "x" * 2000 + str(number),
                "karpenter.sh/do-not-disrupt": "true",
            },
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
        },
        "spec": {
            "nodeName": f"node-{number % 100}",
            "containers": [main],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        },
        "status": {
            "phase": "Running",
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"train-{number}-gpu"}],
        },
    }
    return json.loads(json.dumps(pod))


def test_equal_parts_are_held_once_and_the_pod_is_the_same() -> None:
    interned = PodInterner()
    plain = [parse_pod(raw(number)) for number in (1, 2)]
    first, second = (interned.of(pod) for pod in plain)
    assert first.containers is second.containers
    assert first.tolerations is second.tolerations
    assert first.affinity is second.affinity
    assert first.annotations is second.annotations
    assert (first.labels, first.claims, first.node_name) == (plain[0].labels, plain[0].claims, plain[0].node_name)
    assert first.containers == plain[0].containers


def test_empty_parts_are_recognised_without_a_search() -> None:
    interned = PodInterner()
    pods = [interned.of(Pod("default", f"pod-{number}", claim_amounts=FrozenMap())) for number in (1, 2)]
    assert all(pod.claim_amounts is NOTHING and pod.node_selector is NOTHING for pod in pods)
    assert pods[0] == Pod("default", "pod-1")
    assert interned._parts == {(type(NOTHING), NOTHING): NOTHING}


@pytest.mark.parametrize(("value", "kept"), [("37", ""), ("Ascend 310P3", "ascend"), ("x" * 100_000, "")])
@pytest.mark.parametrize("key", ["tensor-fusion.ai/gpu-model", "example.com/npu-type"])
def test_of_an_annotation_that_asks_another_system_for_a_device_a_word_is_kept(key: str, value: str, kept: str) -> None:
    asking = raw(1)
    asking["metadata"]["annotations"][key] = value
    assert PodInterner().of(parse_pod(asking)).annotations[key] == kept


def test_annotations_that_nobody_reads_are_dropped() -> None:
    assert dict(PodInterner().of(parse_pod(raw(1))).annotations) == {"karpenter.sh/do-not-disrupt": "true"}


def bytes_of_a_pod() -> float:
    """What each of many bound pods takes, once what all have in common is there."""
    interned = PodInterner()
    held = interned.of(parse_pod(raw(0)))
    tracemalloc.start()
    pods = [interned.of(parse_pod(raw(number))) for number in range(PODS)]
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    assert pods[0] == held
    return used / len(pods)


def test_a_bound_pod_takes_little_memory() -> None:
    """In a process of its own: what other tests left running allocates, too."""
    program = f"from {Path(__file__).stem} import bytes_of_a_pod; print(bytes_of_a_pod())"
    place = {**os.environ, "PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), str(Path(__file__).parents[3])))}
    done = subprocess.run([sys.executable, "-c", program], env=place, capture_output=True, text=True, check=True)
    assert 0 < float(done.stdout) < MOST_BYTES
