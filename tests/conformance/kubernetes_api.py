"""What every KubernetesApi must do, as checks: the same for the in-memory API server and for a real one.

Each check uses objects of its own names, so that all can run on one cluster, and leaves nothing that hinders another.
"""

from __future__ import annotations

from typing import Final

import pytest

from autoscaler.cluster.api import (
    AlreadyExistsError,
    ConflictError,
    GoneError,
    InvalidError,
    KubernetesApi,
    NotFoundError,
    Object,
    WatchEvent,
    list_all,
)
from autoscaler.cluster.resources import DEVICE_CLASSES, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS, Resource

PATIENCE: Final = 20.0  # seconds; a real watch answers in milliseconds
FINALIZER: Final = "foreslice.dev/conformance"


def claim(name: str, **metadata: object) -> Object:
    """A ResourceClaim."""
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    return {
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def device_class(name: str) -> Object:
    """A DeviceClass."""
    return {"metadata": {"name": name}, "spec": {}}


def pod(name: str) -> Object:
    """A pod that no node will take."""
    spec = {"nodeSelector": {"no": "node"}, "containers": [{"name": "main", "image": "pause"}]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def version(found: Object) -> str:
    """The resourceVersion."""
    return str(found["metadata"]["resourceVersion"])


def test_what_is_created_can_be_read(api: KubernetesApi) -> None:
    created = api.create(RESOURCE_CLAIMS, claim("read", labels={"a": "b"}))
    found = api.get(RESOURCE_CLAIMS, "read", namespace="default")
    assert found == created
    assert (found["apiVersion"], found["kind"]) == ("resource.k8s.io/v1", "ResourceClaim")
    assert found["metadata"]["uid"]
    assert found["metadata"]["creationTimestamp"].endswith("Z")
    assert found["metadata"]["labels"] == {"a": "b"}
    assert "status" not in found or found["status"] == {}


def test_answers_are_the_callers_own(api: KubernetesApi) -> None:
    manifest = claim("own")
    api.create(RESOURCE_CLAIMS, manifest)["metadata"]["labels"] = {"changed": "here"}
    manifest["spec"]["devices"]["requests"].clear()
    found = api.get(RESOURCE_CLAIMS, "own", namespace="default")
    assert "labels" not in found["metadata"]
    assert len(found["spec"]["devices"]["requests"]) == 1


def test_names_are_generated(api: KubernetesApi) -> None:
    manifest = claim("")
    manifest["metadata"] = {"generateName": "generated-", "namespace": "default"}
    names = {api.create(RESOURCE_CLAIMS, manifest)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("generated-") and len(name) > len("generated-") for name in names)


def test_a_name_is_taken_once(api: KubernetesApi) -> None:
    api.create(RESOURCE_CLAIMS, claim("once"))
    with pytest.raises(AlreadyExistsError):
        api.create(RESOURCE_CLAIMS, claim("once"))


def test_a_nameless_object_is_refused(api: KubernetesApi) -> None:
    with pytest.raises(InvalidError):
        api.create(DEVICE_CLASSES, {"metadata": {}, "spec": {}})


def test_what_is_not_there_is_not_found(api: KubernetesApi) -> None:
    with pytest.raises(NotFoundError):
        api.get(RESOURCE_CLAIMS, "missing", namespace="default")
    with pytest.raises(NotFoundError):
        api.patch(RESOURCE_CLAIMS, "missing", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    with pytest.raises(NotFoundError):
        api.delete(RESOURCE_CLAIMS, "missing", namespace="default")
    with pytest.raises(NotFoundError):
        api.evict("missing", namespace="default")


def test_lists_come_in_pages(api: KubernetesApi) -> None:
    names = [f"page-{index}" for index in range(5)]
    for name in reversed(names):
        api.create(DEVICE_CLASSES, device_class(name))
    everything, at = list_all(api, DEVICE_CLASSES)
    page, pages = api.list(DEVICE_CLASSES, limit=2), 1
    found = list(page.items)
    while page.next_page:
        assert len(page.items) == 2
        page, pages = api.list(DEVICE_CLASSES, limit=2, page=page.next_page), pages + 1
        found += page.items
    assert found == list(everything)
    assert [item["metadata"]["name"] for item in found if item["metadata"]["name"] in names] == names
    assert all((item["apiVersion"], item["kind"]) == ("resource.k8s.io/v1", "DeviceClass") for item in found)
    assert pages == (len(everything) + 1) // 2
    assert int(at) > 0


def test_a_list_can_be_of_one_namespace(api: KubernetesApi) -> None:
    api.create(RESOURCE_CLAIMS, claim("here"))
    elsewhere = api.list(RESOURCE_CLAIMS, namespace="kube-system")
    here = api.list(RESOURCE_CLAIMS, namespace="default")
    assert [item for item in elsewhere.items if item["metadata"]["namespace"] != "kube-system"] == []
    assert "here" in {item["metadata"]["name"] for item in here.items}


def test_an_update_needs_the_version_that_was_read(api: KubernetesApi) -> None:
    first = api.create(RESOURCE_CLAIMS, claim("update"))
    second = api.update(RESOURCE_CLAIMS, with_label(first, "one"))
    assert second["metadata"]["labels"] == {"label": "one"}
    assert version(second) != version(first)
    with pytest.raises(ConflictError):
        api.update(RESOURCE_CLAIMS, with_label(first, "two"))
    unread = with_label(second, "three")
    del unread["metadata"]["resourceVersion"]
    with pytest.raises(InvalidError):
        api.update(RESOURCE_CLAIMS, unread)
    assert api.get(RESOURCE_CLAIMS, "update", namespace="default") == second


def with_label(found: Object, value: str) -> Object:
    """The object with another label."""
    return {**found, "metadata": {**found["metadata"], "labels": {"label": value}}}


def test_a_merge_patch_merges_and_removes(api: KubernetesApi) -> None:
    api.create(RESOURCE_CLAIMS, claim("patch", annotations={"stay": "1", "go": "1"}))
    patch = {"metadata": {"annotations": {"go": None, "come": "1"}}}
    patched = api.patch(RESOURCE_CLAIMS, "patch", patch, namespace="default")
    assert patched["metadata"]["annotations"] == {"stay": "1", "come": "1"}


def test_a_patch_is_guarded_by_a_version_inside(api: KubernetesApi) -> None:
    first = api.create(RESOURCE_CLAIMS, claim("guard"))
    api.update(RESOURCE_CLAIMS, with_label(first, "moved"))
    stale = {"metadata": {"resourceVersion": version(first), "labels": {"label": "late"}}}
    with pytest.raises(ConflictError):
        api.patch(RESOURCE_CLAIMS, "guard", stale, namespace="default")


def test_a_write_that_changes_nothing_gives_no_version(api: KubernetesApi) -> None:
    first = api.create(RESOURCE_CLAIMS, claim("idle", labels={"a": "b"}))
    again = api.patch(RESOURCE_CLAIMS, "idle", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    assert version(again) == version(first)


def test_status_is_written_apart(api: KubernetesApi) -> None:
    created = api.create(PODS, {**pod("status"), "status": {"phase": "Running"}})
    assert created["status"]["phase"] == "Pending"
    patch = {"status": {"nominatedNodeName": "n"}}
    api.patch(PODS, "status", patch, namespace="default")
    assert "nominatedNodeName" not in api.get(PODS, "status", namespace="default")["status"]
    api.patch(PODS, "status", patch, namespace="default", subresource="status")
    assert api.get(PODS, "status", namespace="default")["status"]["nominatedNodeName"] == "n"
    api.delete(PODS, "status", namespace="default", grace_seconds=0)


def test_deletion_honours_preconditions(api: KubernetesApi) -> None:
    first = api.create(RESOURCE_CLAIMS, claim("precondition"))
    with pytest.raises(ConflictError):
        api.delete(RESOURCE_CLAIMS, "precondition", namespace="default", uid="11111111-2222-3333-4444-555555555555")
    second = api.update(RESOURCE_CLAIMS, with_label(first, "moved"))
    with pytest.raises(ConflictError):
        api.delete(RESOURCE_CLAIMS, "precondition", namespace="default", resource_version=version(first))
    uid = second["metadata"]["uid"]
    api.delete(RESOURCE_CLAIMS, "precondition", namespace="default", uid=uid, resource_version=version(second))
    with pytest.raises(NotFoundError):
        api.get(RESOURCE_CLAIMS, "precondition", namespace="default")


def test_a_finalizer_holds_what_is_deleted(api: KubernetesApi) -> None:
    api.create(PRIORITY_CLASSES, {"metadata": {"name": "held", "finalizers": [FINALIZER]}, "value": 1})
    api.delete(PRIORITY_CLASSES, "held")
    assert "deletionTimestamp" in api.get(PRIORITY_CLASSES, "held")["metadata"]
    api.patch(PRIORITY_CLASSES, "held", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFoundError):
        api.get(PRIORITY_CLASSES, "held")


def test_an_eviction_without_a_budget_deletes(api: KubernetesApi) -> None:
    created = api.create(PODS, pod("evicted"))
    with pytest.raises(ConflictError):
        api.evict("evicted", namespace="default", uid="11111111-2222-3333-4444-555555555555")
    api.evict("evicted", namespace="default", uid=created["metadata"]["uid"])
    with pytest.raises(NotFoundError):
        api.get(PODS, "evicted", namespace="default")


def test_a_watch_tells_every_change_in_order(api: KubernetesApi) -> None:
    before = api.list(DEVICE_CLASSES).resource_version
    created = api.create(DEVICE_CLASSES, device_class("watched"))
    changed = api.patch(DEVICE_CLASSES, "watched", {"metadata": {"labels": {"a": "b"}}})
    api.delete(DEVICE_CLASSES, "watched")
    events = changes(api, DEVICE_CLASSES, before, count=3)
    assert [(event.type, event.object["metadata"]["name"]) for event in events] == [
        ("ADDED", "watched"),
        ("MODIFIED", "watched"),
        ("DELETED", "watched"),
    ]
    assert [event.object for event in events[:2]] == [created, changed]
    assert [event.resource_version for event in events[:2]] == [version(created), version(changed)]
    assert int(events[2].resource_version) > int(version(changed))


def test_a_watch_goes_on_where_it_was_left(api: KubernetesApi) -> None:
    before = api.list(DEVICE_CLASSES).resource_version
    for name in ("first", "second"):
        api.create(DEVICE_CLASSES, device_class(name))
    (first,) = changes(api, DEVICE_CLASSES, before, count=1)
    (second,) = changes(api, DEVICE_CLASSES, first.resource_version, count=1)
    again = changes(api, DEVICE_CLASSES, before, count=2)
    assert [event.object["metadata"]["name"] for event in (first, second)] == ["first", "second"]
    assert again == [first, second]


def changes(api: KubernetesApi, resource: Resource, since: str, *, count: int) -> list[WatchEvent]:
    """The first changes after a version."""
    found: list[WatchEvent] = []
    for event in api.watch(resource, resource_version=since, timeout_seconds=PATIENCE):
        if event.type != "BOOKMARK":
            found.append(event)
        if len(found) == count:
            break
    return found


def test_a_version_that_expired_is_gone(api: KubernetesApi, expired: tuple[Resource, str]) -> None:
    resource, since = expired
    with pytest.raises(GoneError):
        changes(api, resource, since, count=1)
