"""What the client learns of a cluster before it reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.clock import SystemClock
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.resources import DEVICE_CLASSES, DEVICE_TAINT_RULES, NATIVE_POD_GROUPS, NODES, PODS
from autoscaler.errors import ConfigurationError
from tests.fakes.http_api import HttpApi, serving


def client(api: HttpApi) -> KubernetesClient:
    clock = SystemClock()
    return KubernetesClient(connect(clock, kubeconfig=api.kubeconfig), clock)


def test_the_profile_is_that_of_the_version_with_the_gates_that_are_named(tmp_path: Path) -> None:
    with serving(tmp_path, version="v1.36.4-eks-1a2b") as api:
        found = client(api).profile("GenericWorkload=true")
    assert (found.name, found.served) == ("v1.36.4", ("v1", "v1beta2", "v1beta1"))
    assert found.gates.generic_workload


@pytest.mark.parametrize(
    ("settings", "gates", "message"),
    [
        pytest.param(
            {"version": "v1.30.4", "served": ()},
            "",
            r"runs Kubernetes v1\.30\.4, which does not serve resource\.k8s\.io; Foreslice needs one of v1, v1beta2, "
            r"v1beta1, v1alpha3\n  upgrade to Kubernetes 1\.34 or later",
            id="no-dra",
        ),
        pytest.param(
            {"version": "v1.30.4", "served": ("v1alpha2",)},
            "",
            r"v1\.30\.4, which serves resource\.k8s\.io only in v1alpha2; Foreslice needs one of",
            id="old-dra",
        ),
        pytest.param({"version": "v1.33.1"}, "", "older than v1.34.0", id="too-old"),
        pytest.param({}, "GenericWorkload", "write GenericWorkload=true", id="unreadable-gates"),
    ],
)
def test_a_cluster_that_cannot_be_used(tmp_path: Path, settings: dict[str, str], gates: str, message: str) -> None:
    with serving(tmp_path, **settings) as api, pytest.raises(ConfigurationError, match=message) as caught:
        client(api).profile(gates)
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("served", "read"),
    [(("v1", "v1beta1"), "v1"), (("v1beta1", "v1beta2"), "v1beta2"), (("v1beta1",), "v1beta1")],
    ids=["v1", "v1beta2", "v1beta1"],
)
def test_the_best_served_version_is_read(tmp_path: Path, served: tuple[str, ...], read: str) -> None:
    with serving(tmp_path, served=served) as api:
        api.objects.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}})
        found = client(api)
        assert found.profile().served[0] == read
        page = found.list(DEVICE_CLASSES)
        found.list(DEVICE_TAINT_RULES)
        found.list(NODES)
    assert f"GET /apis/resource.k8s.io/{read}/deviceclasses?limit=500" in api.requests
    assert f"GET /apis/resource.k8s.io/{read}/devicetaintrules?limit=500" in api.requests
    assert "GET /api/v1/nodes?limit=500" in api.requests
    assert [item["metadata"]["name"] for item in page.items] == ["gpu"]


@pytest.mark.parametrize(
    ("served", "read"),
    [((), "v1alpha2"), (("v1alpha2",), "v1alpha2"), (("v1alpha2", "v1beta1"), "v1beta1")],
    ids=["none", "v1alpha2", "v1beta1"],
)
def test_gangs_are_read_in_the_best_served_version(tmp_path: Path, served: tuple[str, ...], read: str) -> None:
    with serving(tmp_path, gangs=served) as api:
        found = client(api)
        found.profile()
        found.list(NATIVE_POD_GROUPS)
    assert f"GET /apis/scheduling.k8s.io/{read}/podgroups?limit=500" in api.requests


def test_labels_are_selected_by_the_server(tmp_path: Path) -> None:
    with serving(tmp_path) as api:
        client(api).list(PODS, labels={"app": "web", "tier": "gold"})
    assert api.requests == ["GET /api/v1/pods?limit=500&labelSelector=app%3Dweb%2Ctier%3Dgold"]
