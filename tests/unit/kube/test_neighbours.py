"""Other autoscalers, device plugins and quotas are recognised by what they run, not by what they are called."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.autoscalers.other_autoscalers import parse_autoscaler, parse_quota
from autoscaler.kube.workloads.daemon_set import parse_daemon_set
from autoscaler.model.other_autoscalers import Autoscaler, AutoscalerKind, Quota

KARPENTER, CA = AutoscalerKind.KARPENTER, AutoscalerKind.CLUSTER_AUTOSCALER
AWS_KARPENTER = "public.ecr.aws/karpenter/controller:1.15.0@sha256:0123"
UPSTREAM_CA = "registry.k8s.io/autoscaling/cluster-autoscaler"


def deployment(image: str, *args: str, env: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    environment = [{"name": name, "value": value} for name, value in (env or {}).items()]
    container = {"name": "main", "image": image, "args": list(args), "env": environment}
    return {
        "kind": "Deployment",
        "metadata": {"name": "it", "namespace": "kube-system"},
        "spec": {"template": {"spec": {"containers": [container]}}, **spec},
    }


@pytest.mark.parametrize(
    ("raw", "kind", "claims"),
    [
        pytest.param(deployment(AWS_KARPENTER), KARPENTER, False, id="karpenter-ignores-claims-by-default"),
        pytest.param(
            deployment(AWS_KARPENTER, env={"IGNORE_DRA_REQUESTS": "false"}),
            KARPENTER,
            True,
            id="karpenter-by-environment",
        ),
        pytest.param(deployment(AWS_KARPENTER, "--ignore-dra-requests=false"), KARPENTER, True, id="karpenter-by-flag"),
        pytest.param(deployment(f"{UPSTREAM_CA}:v1.34.2"), CA, False, id="ca-1.34-has-it-off"),
        pytest.param(
            deployment(f"{UPSTREAM_CA}:v1.34.2", "--enable-dynamic-resource-allocation"), CA, True, id="ca-1.34-on"
        ),
        pytest.param(
            deployment(f"{UPSTREAM_CA}:v1.36.1", "--enable-dynamic-resource-allocation=false"),
            CA,
            True,
            id="ca-1.35-and-later-cannot-turn-it-off",
        ),
        pytest.param(deployment("localhost:5000/cluster-autoscaler-amd64"), CA, False, id="ca-without-a-tag"),
    ],
)
def test_autoscalers_and_whether_they_serve_claims(raw: dict[str, Any], kind: AutoscalerKind, claims: bool) -> None:
    found = parse_autoscaler(raw)
    assert found is not None
    assert (found.kind, found.claims, found.key) == (kind, claims, "kube-system/it")


@pytest.mark.parametrize(
    "raw",
    [
        deployment("nginx:1.29"),
        deployment(f"{UPSTREAM_CA}:v1.36.1", replicas=0),
        deployment("example.com/karpenter-dashboard:1"),
        {"metadata": {"name": "x"}, "spec": "text"},
        {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [1, {"args": 5}]}}}},
    ],
    ids=["other", "scaled-to-zero", "name-only", "poison", "poisoned-containers"],
)
def test_everything_else_is_none(raw: dict[str, Any]) -> None:
    assert parse_autoscaler(raw) is None


def test_the_schedulers_it_is_limited_to() -> None:
    found = parse_autoscaler(deployment(f"{UPSTREAM_CA}:v1.36.1", "--allowed-scheduler-names=web,batch"))
    assert found == Autoscaler(CA, "kube-system", "it", claims=True, schedulers=("web", "batch"), version="v1.36.1")


@pytest.mark.parametrize(
    ("image", "driver"),
    [
        ("nvcr.io/nvidia/k8s-device-plugin:v0.18.0", "gpu.nvidia.com"),
        ("gke.gcr.io/nvidia-gpu-device-plugin@sha256:0123", "gpu.nvidia.com"),
        ("rocm/k8s-device-plugin", "gpu.amd.com"),
        ("localhost:5000/neuron-device-plugin", "neuron.aws.com"),
        ("example.com/not-nvidia/k8s-device-plugin-config:1", ""),
        ("registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1", ""),
    ],
)
def test_device_plugins(image: str, driver: str) -> None:
    raw = deployment(image, "gpu-kubelet-plugin") | {"kind": "DaemonSet"}
    assert parse_daemon_set(raw).device_plugin == driver


def test_a_driver_daemon_set_says_what_it_runs() -> None:
    image = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"
    found = parse_daemon_set(deployment(image, "gpu-kubelet-plugin") | {"kind": "DaemonSet"})
    assert [profile.name for profile in found.drivers.profiles] == ["nvidia"]


def test_a_quota_for_critical_pods() -> None:
    selector = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
    raw = {
        "metadata": {"name": "q", "namespace": "dra"},
        "spec": {"hard": {"pods": "1G"}, "scopeSelector": {"matchExpressions": [selector]}},
    }
    assert parse_quota(raw) == Quota("dra", "q", ("system-node-critical",), 10**9)
    assert parse_quota({"metadata": {"name": "q"}}) == Quota("default", "q")
