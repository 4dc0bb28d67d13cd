"""The in-memory API server keeps the promises of the KubernetesApi seam."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import (
    AlreadyExistsError,
    BlockedError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    list_all,
)
from autoscaler.cluster.resources import DISRUPTION_BUDGETS, NODES, PODS, PROVISIONED_NODES, RESOURCE_CLAIMS
from autoscaler.simulation.api_server import ApiServer, merged


@pytest.fixture
def api() -> ApiServer:
    return ApiServer(VirtualClock())


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def pnode(name: str = "n", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {"pool": "p"}}


def test_create_sets_what_the_server_owns(api: ApiServer) -> None:
    created = api.create(PODS, pod(image="x") | {"status": {"phase": "Running"}})
    assert created["apiVersion"] == "v1"
    assert created["kind"] == "Pod"
    assert created["status"] == {"phase": "Pending"}
    assert created["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert created["metadata"]["generation"] == 1
    assert api.get(PODS, "a", namespace="default") == created


def test_nodes_keep_the_status_their_kubelet_registers_with(api: ApiServer) -> None:
    created = api.create(NODES, {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}})
    assert created["status"] == {"allocatable": {"cpu": "1"}}


def test_names_are_generated_and_never_repeat(api: ApiServer) -> None:
    manifest = {"metadata": {"generateName": "gpu-", "namespace": "default"}, "spec": {}}
    names = {api.create(RESOURCE_CLAIMS, manifest)["metadata"]["name"] for _ in range(50)}
    assert len(names) == 50
    assert all(name.startswith("gpu-") and len(name) == 9 for name in names)


def test_a_name_is_required(api: ApiServer) -> None:
    with pytest.raises(InvalidError, match="generateName"):
        api.create(PODS, {"metadata": {}})


def test_a_second_object_of_the_name_is_refused(api: ApiServer) -> None:
    api.create(PODS, pod())
    with pytest.raises(AlreadyExistsError):
        api.create(PODS, pod())


def test_a_recreated_object_is_another_one(api: ApiServer) -> None:
    first = api.create(PODS, pod())
    api.delete(PODS, "a", namespace="default")
    assert api.create(PODS, pod())["metadata"]["uid"] != first["metadata"]["uid"]


def test_returned_objects_belong_to_the_caller(api: ApiServer) -> None:
    created = api.create(PODS, pod(nodeName="n"))
    created["spec"]["nodeName"] = "changed"
    assert api.get(PODS, "a", namespace="default")["spec"]["nodeName"] == "n"


def test_an_update_from_an_old_read_conflicts(api: ApiServer) -> None:
    old = api.create(PROVISIONED_NODES, pnode())
    api.patch(PROVISIONED_NODES, "n", {"spec": {"pool": "q"}})
    with pytest.raises(ConflictError, match="modified"):
        api.update(PROVISIONED_NODES, old | {"spec": {"pool": "r"}})
    with pytest.raises(ConflictError):
        api.patch(PROVISIONED_NODES, "n", {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}})


def test_an_update_without_a_version_is_refused(api: ApiServer) -> None:
    api.create(PROVISIONED_NODES, pnode())
    with pytest.raises(InvalidError, match="resourceVersion"):
        api.update(PROVISIONED_NODES, pnode())


def test_status_and_spec_are_written_apart(api: ApiServer) -> None:
    created = api.create(PROVISIONED_NODES, pnode())
    both = {"spec": {"pool": "q"}, "status": {"phase": "Ready"}}
    plain = api.patch(PROVISIONED_NODES, "n", both)
    assert plain["spec"]["pool"] == "q"
    assert "status" not in plain
    status = api.patch(
        PROVISIONED_NODES, "n", {"spec": {"pool": "r"}, "status": {"phase": "Ready"}}, subresource="status"
    )
    assert status["spec"]["pool"] == "q"
    assert status["status"] == {"phase": "Ready"}
    assert (created["metadata"]["generation"], status["metadata"]["generation"]) == (1, 2)


def test_a_write_that_changes_nothing_is_no_write(api: ApiServer) -> None:
    created = api.create(PROVISIONED_NODES, pnode())
    before = api.writes
    assert api.patch(PROVISIONED_NODES, "n", {"spec": {"pool": "p"}}) == created
    assert api.update(PROVISIONED_NODES, created) == created
    assert api.writes == before


def test_a_write_changes_neither_the_objects_before_nor_what_its_writer_holds(api: ApiServer) -> None:
    created = api.create(PROVISIONED_NODES, pnode())
    (before,) = api.stored(PROVISIONED_NODES)
    phase = {"phase": "Ready", "history": [{"at": "1"}]}
    api.patch(PROVISIONED_NODES, "n", {"status": phase}, subresource="status")
    assert (before["metadata"], before.get("status")) == (created["metadata"], None)
    phase["history"].append({"at": "2"})
    held = api.get(PROVISIONED_NODES, "n")
    assert held["status"]["history"] == [{"at": "1"}]
    held["status"]["phase"] = "Draining"
    api.update(PROVISIONED_NODES, held, subresource="status")
    held["status"]["history"].clear()
    (stored,) = api.stored(PROVISIONED_NODES)
    assert stored["status"] == {"phase": "Draining", "history": [{"at": "1"}]}


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"a": None}, {}, id="null removes"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="objects merge"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="nulls in new objects vanish"),
    ],
)
def test_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    assert merged(target, patch) == expected


def test_finalizers_hold_a_deleted_object_until_the_last_is_gone(api: ApiServer) -> None:
    api.create(PROVISIONED_NODES, pnode(finalizers=["a", "b"]))
    api.delete(PROVISIONED_NODES, "n")
    held = api.get(PROVISIONED_NODES, "n")
    assert held["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    api.patch(PROVISIONED_NODES, "n", {"metadata": {"finalizers": ["b"]}})
    assert api.get(PROVISIONED_NODES, "n")["metadata"]["finalizers"] == ["b"]
    api.patch(PROVISIONED_NODES, "n", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFoundError):
        api.get(PROVISIONED_NODES, "n")


@pytest.mark.parametrize("precondition", ["uid", "resource_version"])
def test_delete_preconditions(api: ApiServer, precondition: str) -> None:
    api.create(PROVISIONED_NODES, pnode())
    with pytest.raises(ConflictError, match="precondition"):
        api.delete(PROVISIONED_NODES, "n", **{precondition: "other"})
    assert api.get(PROVISIONED_NODES, "n")


def test_a_pod_on_a_node_is_only_marked_until_its_kubelet_ended_it(api: ApiServer) -> None:
    api.create(PODS, pod(nodeName="n", terminationGracePeriodSeconds=5))
    api.delete(PODS, "a", namespace="default")
    assert api.get(PODS, "a", namespace="default")["metadata"]["deletionGracePeriodSeconds"] == 5
    api.delete(PODS, "a", namespace="default", grace_seconds=0)
    with pytest.raises(NotFoundError):
        api.get(PODS, "a", namespace="default")


def test_a_pod_without_a_node_goes_at_once(api: ApiServer) -> None:
    api.create(PODS, pod())
    api.delete(PODS, "a", namespace="default")
    with pytest.raises(NotFoundError):
        api.get(PODS, "a", namespace="default")


@pytest.mark.parametrize(
    ("selector", "allowed", "blocked"),
    [
        pytest.param({"matchLabels": {"app": "x"}}, 0, True, id="no disruption left"),
        pytest.param({"matchLabels": {"app": "x"}}, 1, False, id="one left"),
        pytest.param({"matchLabels": {"app": "y"}}, 0, False, id="another pod's budget"),
        pytest.param(None, 0, False, id="a budget without selector covers nothing"),
    ],
)
def test_evictions_respect_budgets(api: ApiServer, selector: Any, allowed: int, blocked: bool) -> None:
    api.create(PODS, {"metadata": {"name": "a", "namespace": "default", "labels": {"app": "x"}}, "spec": {}})
    api.create(DISRUPTION_BUDGETS, {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": selector}})
    status = {"status": {"disruptionsAllowed": allowed}}
    api.patch(DISRUPTION_BUDGETS, "b", status, namespace="default", subresource="status")
    if blocked:
        with pytest.raises(BlockedError, match="budget"):
            api.evict("a", namespace="default")
    else:
        api.evict("a", namespace="default")
        with pytest.raises(NotFoundError):
            api.get(PODS, "a", namespace="default")


def test_lists_come_in_pages_and_in_order(api: ApiServer) -> None:
    for name in ("c", "a", "b", "e", "d"):
        api.create(PODS, pod(name))
    first = api.list(PODS, limit=2)
    second = api.list(PODS, limit=2, page=first.next_page)
    last = api.list(PODS, limit=2, page=second.next_page)
    names = [item["metadata"]["name"] for page in (first, second, last) for item in page.items]
    assert names == ["a", "b", "c", "d", "e"]
    assert last.next_page == ""
    assert [item["metadata"]["name"] for item in list_all(api, PODS)[0]] == names
    assert api.list(PODS, namespace="other").items == ()


def test_a_watch_tells_what_happened_since_in_order_and_ends_with_a_bookmark(api: ApiServer) -> None:
    api.create(PROVISIONED_NODES, pnode("before"))
    since = api.list(PROVISIONED_NODES).resource_version
    api.create(PROVISIONED_NODES, pnode("n"))
    api.create(PODS, pod())
    api.patch(PROVISIONED_NODES, "n", {"spec": {"pool": "q"}})
    api.delete(PROVISIONED_NODES, "n")
    events = list(api.watch(PROVISIONED_NODES, resource_version=since))
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    assert list(api.watch(PROVISIONED_NODES, resource_version=events[-1].resource_version))[:-1] == []


def test_forgotten_history_is_gone(api: ApiServer) -> None:
    since = api.list(PODS).resource_version
    for name in ("a", "b", "c"):
        api.create(PODS, pod(name))
    token = api.list(PODS, limit=1).next_page
    api.create(PODS, pod("d"))
    api.compact()
    with pytest.raises(GoneError):
        api.watch(PODS, resource_version=since)
    with pytest.raises(GoneError):
        api.list(PODS, limit=1, page=token)


def test_history_is_bounded() -> None:
    api = ApiServer(VirtualClock(), history=10)
    for index in range(20):
        api.create(PODS, pod(f"p{index}"))
    with pytest.raises(GoneError):
        api.watch(PODS, resource_version="0")
    assert [e.type for e in api.watch(PODS, resource_version="19")] == ["ADDED", "BOOKMARK"]


def test_a_role_without_the_verb_is_forbidden() -> None:
    api = ApiServer(VirtualClock(), forbidden=frozenset({("create", "pods")}))
    with pytest.raises(ForbiddenError, match="create pods"):
        api.create(PODS, pod())
    assert api.list(PODS).items == ()


def test_a_patch_leaves_the_events_before_it_as_they_were(api: ApiServer) -> None:
    """The parts that it does not name are shared by both objects."""
    api.create(PROVISIONED_NODES, pnode())
    api.patch(PROVISIONED_NODES, "n", {"metadata": {"labels": {"a": "b"}}, "spec": {"pool": "q"}})
    events = api.watch(PROVISIONED_NODES, resource_version="0")
    first, second = (event.object for event in events if event.type != "BOOKMARK")
    assert (first["spec"], second["spec"]) == ({"pool": "p"}, {"pool": "q"})
    assert (first["metadata"]["generation"], second["metadata"]["generation"]) == (1, 2)
    assert "labels" not in first["metadata"]


def test_a_watch_without_changes_tells_the_newest_version(api: ApiServer) -> None:
    api.create(PODS, pod())
    for version in (api.version, api.version + 1):
        (bookmark,) = api.watch(NODES, resource_version="0")
        assert (bookmark.type, bookmark.resource_version) == ("BOOKMARK", str(version))
        api.create(PODS, pod(f"b{version}"))


def test_the_newest_change_outside_a_group(api: ApiServer) -> None:
    assert api.changed_at(but="foreslice.dev") == 0
    api.create(PODS, pod())
    api.create(PROVISIONED_NODES, pnode())
    assert (api.changed_at(but="foreslice.dev"), api.changed_at(but="")) == (1, 2)
    assert api.changed_at(but="foreslice.dev", apart=PODS) == 0


def test_stored_objects_are_the_same_tuple_until_one_changes(api: ApiServer) -> None:
    api.create(PODS, pod("b"))
    api.create(PODS, pod())
    before = api.stored(PODS)
    assert [found["metadata"]["name"] for found in before] == ["a", "b"]
    api.create(NODES, {"metadata": {"name": "n"}})
    assert api.stored(PODS) is before
    api.delete(PODS, "b", namespace="default")
    assert [found["metadata"]["name"] for found in api.stored(PODS)] == ["a"]
