"""The admission policies on a real API server, with the token of the controller's service account.

RBAC alone lets this account replace the image of any pod; what is refused here is refused by the policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any, Final

import pytest
import yaml

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import ForbiddenError
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.cluster.resources import CAPACITY_POOLS, NODES, PODS, RESOURCE_SLICES
from instance_catalog.kubernetes.labels import (
    CA_SCALE_DOWN_DISABLED,
    CA_STATUS_TAINT,
    CAPACITY_ENDS_AT,
    DRAINING_TAINT,
    EXEMPLAR,
    HELD,
    POOL,
    PROVISIONED_NODE,
)
from tests.e2e.harness.control_plane import ApiError, ControlPlane, Json
from tests.e2e.harness.manifests import ROOT

NAMESPACE: Final = "foreslice-system"
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_GROUPS: Final = {"v1": "/api/v1"}
_PLURALS: Final = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
PREVENTED: Final = "ValidatingAdmissionPolicy 'foreslice-"
TEAM_TAINT: Final = {"key": "team", "value": "a", "effect": "NoExecute"}
DRAINING: Final = {"key": DRAINING_TAINT, "effect": "NoSchedule"}
TOLERATED: Final = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
]
POD: Final[Json] = {
    "metadata": {"name": "victim", "labels": {"app": "bank"}, "annotations": {"owner": "team-a"}},
    "spec": {
        "containers": [{"name": "main", "image": "registry.example.com/bank:1", "imagePullPolicy": "IfNotPresent"}],
        "automountServiceAccountToken": False,
        "tolerations": TOLERATED,
        "schedulerName": "nobody",
    },
}
SLICE: Final[Json] = {
    "driver": "gpu.example.com",
    "nodeName": "kwok-1",
    "pool": {"name": "kwok-1", "generation": 1, "resourceSliceCount": 1},
    "devices": [{"name": "gpu-0"}],
}
GPU_POOL: Final[Json] = {
    "apiVersion": "foreslice.dev/v1alpha1",
    "kind": "CapacityPool",
    "metadata": {"name": "gpu"},
    "spec": {"limits": {"nodes": 1}},
}
_TURNS: Final = count()


def node(name: str, *, provider_id: str, **labels: str) -> Json:
    """A Node with a taint that is not Foreslice's."""
    known = {"pool": POOL, "provisioned": PROVISIONED_NODE}
    return {
        "metadata": {"name": name, "labels": {known[key]: value for key, value in labels.items()}},
        "spec": {"providerID": provider_id, "taints": [TEAM_TAINT]},
    }


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane with deploy/crds and deploy/manifests/rbac.yaml, two Nodes and a pod."""
    with ControlPlane() as running:
        for path in sorted((ROOT / "deploy/crds").glob("*.yaml")):
            _post(running, yaml.safe_load(path.read_text(encoding="utf-8")))
        for document in yaml.safe_load_all((ROOT / "deploy/manifests/rbac.yaml").read_text(encoding="utf-8")):
            _post(running, document)
        for made in (
            node("ours", provider_id="aws:///us-east-1a/i-1", pool="gpu"),
            node("foreign", provider_id="aws:///us-east-1a/i-2"),
        ):
            running.call("POST", "/api/v1/nodes", made)
        running.call("POST", "/api/v1/namespaces/default/pods", POD)
        running.wait_until(lambda: _created(running), "a pool")
        running.wait_until(lambda: _enforced(running), "the policies")
        yield running


@pytest.fixture(scope="module")
def controller(cluster: ControlPlane) -> KubernetesClient:
    """A client with the token of the service account."""
    clock = SystemClock()
    return KubernetesClient(connect(clock, kubeconfig=str(cluster.service_account(NAMESPACE, "foreslice"))), clock)


def _post(running: ControlPlane, document: Json) -> None:
    kind, version = document["kind"], document["apiVersion"]
    root = _GROUPS.get(version, f"/apis/{version}")
    namespace = document["metadata"].get("namespace", "")
    inside = f"/namespaces/{namespace}" if namespace else ""
    running.call("POST", f"{root}{inside}/{_PLURALS.get(kind, kind.lower() + 's')}", document)


def _created(running: ControlPlane) -> bool:
    """Whether the custom resource is served by now, and the pool made."""
    with suppress(ApiError):
        return bool(running.call("POST", "/apis/foreslice.dev/v1alpha1/capacitypools", GPU_POOL))
    return False


def _enforced(running: ControlPlane) -> bool:
    """Whether every policy refuses what it refuses; the API server learns of a policy some time after its creation."""
    clock = SystemClock()
    token = running.service_account(NAMESPACE, "foreslice")
    api = KubernetesClient(connect(clock, kubeconfig=str(token)), clock)
    # A patch that changes nothing is allowed, so each attempt writes something new.
    wanted = merge(annotations={"probe": str(next(_TURNS))})
    attempts: list[Callable[[], Any]] = [
        lambda: api.patch(PODS, "victim", wanted, namespace="default"),
        lambda: api.patch(NODES, "foreign", wanted),
        lambda: api.patch(CAPACITY_POOLS, "gpu", wanted),
        lambda: api.try_create(RESOURCE_SLICES, {"metadata": {"name": "probe"}, "spec": SLICE}),
    ]
    return all(_refused(attempt) for attempt in attempts)


def _refused(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except ForbiddenError as error:
        return PREVENTED in str(error)
    return False


def merge(*, labels: Json | None = None, annotations: Json | None = None, **fields: Any) -> Json:
    """A merge patch of metadata and other fields."""
    metadata = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value is not None}
    return {**({"metadata": metadata} if metadata else {}), **fields}


@pytest.mark.parametrize(
    ("subresource", "patch"),
    [
        pytest.param(
            "", {"spec": {"containers": [{**POD["spec"]["containers"][0], "image": "evil/image"}]}}, id="image"
        ),
        pytest.param("", {"spec": {"activeDeadlineSeconds": 1}}, id="deadline"),
        pytest.param("", {"spec": {"tolerations": [*TOLERATED, {"operator": "Exists"}]}}, id="tolerations"),
        pytest.param("", merge(labels={"app": "evil"}), id="label changed"),
        pytest.param("", merge(labels={"app": None}), id="label removed"),
        pytest.param("", merge(labels={"more": "x"}), id="label added"),
        pytest.param("status", merge(labels={"app": "evil"}), id="label through the status"),
        pytest.param("", merge(annotations={"owner": "team-b"}), id="annotation changed"),
        pytest.param("", merge(annotations={"owner": None}), id="annotation removed"),
        pytest.param("", {"metadata": {"annotations": None}}, id="annotations removed"),
        pytest.param("status", merge(annotations={"more": "x"}), id="annotation through the status"),
        pytest.param("", {"metadata": {"finalizers": ["example.com/hold"]}}, id="finalizer"),
        pytest.param(
            "",
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "ours", "uid": "u"}]}},
            id="owner",
        ),
        pytest.param("status", {"status": {"phase": "Failed"}}, id="phase"),
        pytest.param("status", {"status": {"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}}, id="address"),
        pytest.param(
            "status",
            {"status": {"nominatedNodeName": "ours", "conditions": [{"type": "Ready", "status": "True"}]}},
            id="condition beside the nomination",
        ),
    ],
)
def test_nothing_else_of_a_pod_changes(controller: KubernetesClient, subresource: Any, patch: Json) -> None:
    before = controller.list(PODS, namespace="default").items
    # Another spec is another generation, too, which the rule about metadata would refuse.
    judged_by = "does not change the spec of a pod" if "spec" in patch else PREVENTED
    with pytest.raises(ForbiddenError, match=judged_by):
        controller.patch(PODS, "victim", patch, namespace="default", subresource=subresource)
    assert controller.list(PODS, namespace="default").items == before


def test_what_the_controller_does_to_pods_is_allowed(cluster: ControlPlane, controller: KubernetesClient) -> None:
    ends = {CAPACITY_ENDS_AT: "2027-01-31T11:30:00Z"}
    controller.patch(PODS, "victim", merge(annotations=ends), namespace="default")
    controller.patch(
        PODS, "victim", {"status": {"nominatedNodeName": "ours"}}, namespace="default", subresource="status"
    )
    controller.patch(PODS, "victim", {"status": {"nominatedNodeName": None}}, namespace="default", subresource="status")
    controller.patch(PODS, "victim", merge(annotations={CAPACITY_ENDS_AT: None}), namespace="default")
    # Without any annotation the API server stores none at all.
    bare = {"metadata": {"name": "bare"}, "spec": POD["spec"]}
    cluster.call("POST", "/api/v1/namespaces/default/pods", bare)
    found = controller.patch(PODS, "bare", merge(annotations=ends), namespace="default")
    assert found["metadata"]["annotations"] == ends
    controller.evict("bare", namespace="default", uid=found["metadata"]["uid"])
    # It was never bound, so nothing is left to wait for.
    assert [p["metadata"]["name"] for p in controller.list(PODS, namespace="default").items] == ["victim"]


@pytest.mark.parametrize("name", ["ours", "foreign"])
@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(merge(labels={"node-restriction.kubernetes.io/team": "a"}), id="restricted label"),
        pytest.param(merge(labels={POOL: "other"}), id="pool"),
        pytest.param(merge(labels={POOL: None, "x": "y"}), id="labels"),
        pytest.param(merge(annotations={"example.com/x": "y"}), id="annotation"),
        pytest.param({"metadata": {"finalizers": ["example.com/hold"]}}, id="finalizer"),
        pytest.param({"spec": {"unschedulable": True}}, id="cordon"),
        pytest.param({"spec": {"taints": []}}, id="taint of others removed"),
        pytest.param({"spec": {"taints": [{**TEAM_TAINT, "value": "b"}]}}, id="taint of others changed"),
        pytest.param({"spec": {"taints": [TEAM_TAINT, {"key": "x", "effect": "NoExecute"}]}}, id="another taint"),
        pytest.param(
            {"spec": {"taints": [TEAM_TAINT, {"key": DRAINING_TAINT, "effect": "NoExecute"}]}}, id="a taint that evicts"
        ),
    ],
)
def test_nothing_else_of_a_node_changes(controller: KubernetesClient, name: str, patch: Json) -> None:
    before = controller.get(NODES, name)
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.patch(NODES, name, patch)
    assert controller.get(NODES, name) == before


@pytest.mark.parametrize("name", ["ours", "foreign"])
def test_taint_and_marks_come_and_go(controller: KubernetesClient, name: str) -> None:
    marks = {CAPACITY_ENDS_AT: "2027-01-31T11:30:00Z", HELD: "true", CA_SCALE_DOWN_DISABLED: "true"}
    controller.patch(NODES, name, merge(annotations=marks, spec={"taints": [TEAM_TAINT, DRAINING]}))
    assert DRAINING in controller.get(NODES, name)["spec"]["taints"]
    controller.patch(NODES, name, merge(annotations=dict.fromkeys(marks), spec={"taints": [TEAM_TAINT]}))
    assert controller.get(NODES, name)["spec"]["taints"] == [TEAM_TAINT]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(node("kwok-9", provider_id="kwok://kwok-9"), id="without our labels"),
        pytest.param(node("kwok-9", provider_id="kwok://kwok-9", pool="gpu"), id="without the ProvisionedNode"),
        pytest.param(
            node("kwok-9", provider_id="aws:///us-east-1a/i-9", pool="gpu", provisioned="kwok-9"), id="not of KWOK"
        ),
    ],
)
def test_only_nodes_of_kwok_are_created(controller: KubernetesClient, made: Json) -> None:
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.create(NODES, made)


def test_a_machine_of_kwok_comes_and_goes(controller: KubernetesClient) -> None:
    controller.create(NODES, node("kwok-1", provider_id="kwok://kwok-1", pool="gpu", provisioned="kwok-1"))
    labelled = {"name": "kwok-1-gpu", "labels": {PROVISIONED_NODE: "kwok-1"}}
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.create(RESOURCE_SLICES, {"metadata": {"name": "kwok-1-gpu"}, "spec": SLICE})
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.create(RESOURCE_SLICES, {"metadata": labelled, "spec": {**SLICE, "nodeName": "foreign"}})
    controller.create(RESOURCE_SLICES, {"metadata": labelled, "spec": SLICE})
    controller.delete(RESOURCE_SLICES, "kwok-1-gpu")
    controller.delete(NODES, "kwok-1")


def exemplar(name: str = "foreslice-exemplar-1", **changes: Any) -> Json:
    """A Node as it is shown to Cluster Autoscaler; `changes` to its labels, its spec and its label's value."""
    found = node(name, provider_id="", pool="gpu")
    found["metadata"]["labels"] |= {EXEMPLAR: changes.get("label", name)}
    found["spec"] = changes.get("spec", {"taints": [{"key": CA_STATUS_TAINT, "effect": "NoSchedule"}]})
    return found


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(exemplar("node-1"), id="of another name"),
        pytest.param(exemplar(label="foreslice-exemplar-2"), id="with the label of another"),
        pytest.param(exemplar(spec={}), id="where pods may go"),
        pytest.param(
            exemplar(spec={**exemplar()["spec"], "providerID": "aws:///us-east-1a/i-9"}), id="that names a machine"
        ),
    ],
)
def test_only_exemplars_that_take_no_pods_are_created(controller: KubernetesClient, made: Json) -> None:
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.create(NODES, made)


def test_an_exemplar_comes_and_goes(controller: KubernetesClient) -> None:
    name = exemplar()["metadata"]["name"]
    of_node = {**SLICE, "nodeName": name, "pool": {**SLICE["pool"], "name": name}}
    labelled = {"name": "exemplar-gpu", "labels": {EXEMPLAR: name}}
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.create(RESOURCE_SLICES, {"metadata": labelled, "spec": SLICE})
    foreign = {"metadata": {**labelled, "labels": {EXEMPLAR: "foreign"}}, "spec": {**of_node, "nodeName": "foreign"}}
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.create(RESOURCE_SLICES, foreign)
    controller.create(RESOURCE_SLICES, {"metadata": labelled, "spec": of_node})
    made = controller.create(NODES, exemplar())
    controller.delete(NODES, name, uid=made["metadata"]["uid"])
    controller.delete(RESOURCE_SLICES, "exemplar-gpu")


def test_a_foreign_node_and_its_slices_stay(cluster: ControlPlane, controller: KubernetesClient) -> None:
    published = {"metadata": {"name": "of-a-driver"}, "spec": {**SLICE, "nodeName": "foreign"}}
    cluster.call("POST", "/apis/resource.k8s.io/v1/resourceslices", published)
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.delete(NODES, "foreign")
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.delete(RESOURCE_SLICES, "of-a-driver")


def test_of_a_pool_only_finalizers_change(controller: KubernetesClient) -> None:
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.patch(CAPACITY_POOLS, "gpu", {"spec": {"limits": {"nodes": 1000}}})
    with pytest.raises(ForbiddenError, match=PREVENTED):
        controller.patch(CAPACITY_POOLS, "gpu", merge(labels={"x": "y"}))
    controller.patch(CAPACITY_POOLS, "gpu", {"metadata": {"finalizers": ["foreslice.dev/nodes"]}})
    controller.patch(CAPACITY_POOLS, "gpu", {"metadata": {"finalizers": None}})


def test_nobody_else_is_affected(cluster: ControlPlane) -> None:
    merge_patch = "application/merge-patch+json"
    cluster.call("PATCH", "/api/v1/nodes/foreign", merge(labels={"team": "a"}), kind=merge_patch)
    cluster.call("PATCH", "/api/v1/namespaces/default/pods/victim", merge(labels={"team": "a"}), kind=merge_patch)


def test_the_expressions_compile_without_a_warning(cluster: ControlPlane) -> None:
    """The API server types them against the schemas of what they match."""

    def checked() -> bool:
        return all("typeChecking" in found.get("status", {}) for found in cluster.call("GET", POLICIES)["items"])

    cluster.wait_until(checked, "the type check of the policies")
    warnings = {
        found["metadata"]["name"]: found["status"]["typeChecking"].get("expressionWarnings", [])
        for found in cluster.call("GET", POLICIES)["items"]
    }
    assert not any(warnings.values()), warnings
    assert set(warnings) == {"foreslice-pods", "foreslice-nodes", "foreslice-slices", "foreslice-pools"}
