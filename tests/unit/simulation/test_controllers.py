"""Claims are made from templates, given back when nobody uses them, and go with their pods."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import NotFoundError, list_all
from autoscaler.cluster.resources import CLAIM_TEMPLATES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from autoscaler.simulation.api_server import ApiServer
from autoscaler.simulation.controllers import Controllers

SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}


@pytest.fixture
def api() -> ApiServer:
    api = ApiServer(VirtualClock())
    api.create(CLAIM_TEMPLATES, {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": SPEC}})
    return api


@pytest.fixture
def controllers(api: ApiServer) -> Controllers:
    """The same ones for a whole test: they remember what they have checked."""
    return Controllers(api)


def settle(controllers: Controllers) -> None:
    for _ in range(10):
        if not controllers.step():
            return
    raise AssertionError("the controllers do not settle")


def pod(api: ApiServer, name: str = "p", **spec: Any) -> dict[str, Any]:
    return api.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def claims(api: ApiServer) -> list[dict[str, Any]]:
    return list(list_all(api, RESOURCE_CLAIMS)[0])


def finish(api: ApiServer, name: str) -> None:
    api.patch(PODS, name, {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")


def reserve(api: ApiServer, claim: str, *pods: dict[str, Any]) -> None:
    reserved = [{"resource": "pods", "name": p["metadata"]["name"], "uid": p["metadata"]["uid"]} for p in pods]
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": reserved}
    api.patch(RESOURCE_CLAIMS, claim, {"status": status}, namespace="default", subresource="status")


def test_a_claim_is_made_once_for_each_entry_and_noted_in_the_pod(api: ApiServer, controllers: Controllers) -> None:
    owner = pod(api, resourceClaims=[{"name": "x", "resourceClaimTemplateName": "t"}])
    settle(controllers)
    (claim,) = claims(api)
    assert claim["spec"] == SPEC
    assert claim["metadata"]["name"].startswith("p-x-")
    assert claim["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    status = api.get(PODS, "p", namespace="default")["status"]
    assert status["resourceClaimStatuses"] == [{"name": "x", "resourceClaimName": claim["metadata"]["name"]}]


def test_without_its_template_a_pod_waits(api: ApiServer, controllers: Controllers) -> None:
    pod(api, resourceClaims=[{"name": "x", "resourceClaimTemplateName": "missing"}])
    settle(controllers)
    assert claims(api) == []
    api.create(CLAIM_TEMPLATES, {"metadata": {"name": "missing", "namespace": "default"}, "spec": {"spec": SPEC}})
    settle(controllers)
    assert len(claims(api)) == 1


@pytest.mark.parametrize("end", ["finished", "deleted"])
def test_a_generated_claim_goes_with_its_pod(api: ApiServer, controllers: Controllers, end: str) -> None:
    pod(api, resourceClaims=[{"name": "x", "resourceClaimTemplateName": "t"}])
    settle(controllers)
    if end == "finished":
        finish(api, "p")
    else:
        api.delete(PODS, "p", namespace="default")
    settle(controllers)
    assert claims(api) == []


def test_a_shared_claim_is_given_back_when_its_last_user_ends(api: ApiServer, controllers: Controllers) -> None:
    api.create(RESOURCE_CLAIMS, {"metadata": {"name": "c", "namespace": "default"}, "spec": SPEC})
    reserve(api, "c", pod(api, "p"), pod(api, "q"))
    finish(api, "p")
    settle(controllers)
    (claim,) = claims(api)
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["q"]
    assert "allocation" in claim["status"]
    finish(api, "q")
    settle(controllers)
    assert claims(api)[0]["status"] == {"reservedFor": []}


def test_consumers_that_are_no_pods_keep_their_claims(api: ApiServer, controllers: Controllers) -> None:
    api.create(RESOURCE_CLAIMS, {"metadata": {"name": "c", "namespace": "default"}, "spec": SPEC})
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
    status = {"allocation": {"devices": {"results": []}}, "reservedFor": [group]}
    api.patch(RESOURCE_CLAIMS, "c", {"status": status}, namespace="default", subresource="status")
    settle(controllers)
    assert claims(api)[0]["status"] == status


def test_a_node_that_is_gone_takes_its_pods_and_slices_along(api: ApiServer, controllers: Controllers) -> None:
    api.create(NODES, {"metadata": {"name": "n"}})
    pod(api, nodeName="n")
    for name, spec in (("mine", {"nodeName": "n"}), ("everywhere", {"allNodes": True})):
        api.create(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec})
    settle(controllers)
    assert len(list_all(api, PODS)[0]) == 1
    api.delete(NODES, "n")
    settle(controllers)
    with pytest.raises(NotFoundError):
        api.get(PODS, "p", namespace="default")
    assert [piece["metadata"]["name"] for piece in list_all(api, RESOURCE_SLICES)[0]] == ["everywhere"]


def test_only_what_changed_is_checked_again(
    api: ApiServer, controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    clean = Controllers._clean

    def noted(self: Controllers, claim: dict[str, Any], users: set[str]) -> bool:
        checked.append(claim["metadata"]["name"])
        return clean(self, claim, users)

    for name in ("c", "d"):
        api.create(RESOURCE_CLAIMS, {"metadata": {"name": name, "namespace": "default"}, "spec": SPEC})
    user = pod(api)
    settle(controllers)
    monkeypatch.setattr(Controllers, "_clean", noted)
    reserve(api, "d", user)
    settle(controllers)
    assert checked == ["d"]
    finish(api, "p")
    settle(controllers)
    assert checked == ["d", "c", "d", "d"]
