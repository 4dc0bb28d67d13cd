"""An API server in memory: optimistic concurrency, watches, finalizers and generated names as in the real one.

It implements the KubernetesApi, so store, journal and publish run on it unchanged. It has no scheduling and no
controllers, validates only names and versions, and reads the time only from the clock it is given.

Source of the rules: k8s.io/apiserver registry/generic/registry/store.go and registry/rest (v1.36).
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from autoscaler.cluster.api import (
    NO_FIELDS,
    NO_LABELS,
    AlreadyExistsError,
    BlockedError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubernetesApi,
    NotFoundError,
    Object,
    Page,
    Subresource,
    WatchEvent,
    key_of,
    list_all,
)
from autoscaler.cluster.resources import DISRUPTION_BUDGETS, NODES, OWN_ACCESS_REVIEWS, PODS, Resource
from autoscaler.kube.fields import Fields
from autoscaler.kube.selectors import parse_label_selector
from providers.contract import Clock

# Everything else loses `status` on create and on plain updates; kubelets register nodes with it.
_STATUS_ON_CREATE = frozenset({NODES})
# Fields that the API server sets itself, and keeps whatever a writer sends.
_SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def copied(value: Any) -> Any:
    """A deep copy of JSON data, many times faster than copy.deepcopy, which looks for cycles."""
    try:
        return marshal.loads(marshal.dumps(value))
    except ValueError:  # something else among it, such as a word of an enum
        return _copied(value)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def merged(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386) applied: null removes, objects merge, everything else replaces. The result shares
    the parts of the target that the patch does not name."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def seen(api: KubernetesApi, resource: Resource) -> Sequence[Object]:
    """All objects, to be read only: those of the API server in memory are not copied."""
    return api.stored(resource) if isinstance(api, ApiServer) else list_all(api, resource)[0]


class ApiServer:
    """The in-memory API server. `forbidden`: (verb, plural) pairs a role does not grant; `history` bounds watches."""

    def __init__(
        self, clock: Clock, *, history: int = 100_000, forbidden: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        self._clock = clock
        self._history = history
        self._forbidden = forbidden
        self._objects: dict[Resource, dict[str, Object]] = {}
        self._version = 0
        self._names = 0
        self._compacted = 0
        self._changed: dict[Resource, int] = {}  # the version at which an object of the resource changed last
        self._stored: dict[Resource, tuple[int, tuple[Object, ...]]] = {}  # with the version as of which it is
        self._log: list[tuple[int, Resource, WatchEvent]] = []
        self._bookmark = WatchEvent("BOOKMARK", "", {})  # at the newest version for which one was sent
        self.writes = 0
        """Number of requests that changed something: what "no write when nothing changed" is measured by."""

    @property
    def version(self) -> int:
        """The newest resourceVersion: as long as it stays, no object has changed."""
        return self._version

    # reading

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        self._authorize("get", resource)
        found: Object = copied(self._find(resource, name, namespace))
        return found

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: Mapping[str, str] = NO_LABELS,
        fields: Mapping[str, str] = NO_FIELDS,
        limit: int = 500,
        page: str = "",
    ) -> Page:
        self._authorize("list", resource)
        version, _, after = page.partition("|")
        if page and int(version) < self._compacted:
            raise GoneError(f"the page token of {resource} expired", next_step="list again from the first page")
        keys = sorted(
            key
            for key, item in self._objects.get(resource, {}).items()
            if (not namespace or item["metadata"].get("namespace") == namespace)
            and labels.items() <= item["metadata"].get("labels", {}).items()
            and all(_field(item, path) == value for path, value in fields.items())
            and key > after
        )
        items = tuple(copied(self._objects[resource][key]) for key in keys[:limit])
        listed_at = version or str(self._version)
        return Page(items, listed_at, f"{listed_at}|{keys[limit - 1]}" if len(keys) > limit else "")

    def stored(self, resource: Resource) -> tuple[Object, ...]:
        """The objects by key, as they are stored and not copied: for parts of the simulation, which only read them.

        The same tuple as before, unless an object of the resource has changed since."""
        version, stored = self._stored.get(resource, (-1, ()))
        if version != (changed := self._changed.get(resource, 0)):
            found = self._objects.get(resource, {})
            stored = tuple(found[key] for key in sorted(found))
            self._stored[resource] = changed, stored
        return stored

    def changed_at(self, *, but: str, apart: Resource | None = None) -> int:
        """The resourceVersion of the newest change of an object that is not of the API group `but`, nor `apart`."""
        others = (version for found, version in self._changed.items() if found.group != but and found != apart)
        return max(others, default=0)

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        """The changes since then. Their objects are those that are stored, and must not be changed."""
        self._authorize("watch", resource)
        since = int(resource_version)
        if since < self._compacted:
            raise GoneError(
                f"too old resource version: {since} ({self._compacted})",
                next_step=f"list {resource} again and watch on",
            )
        # Changes made by the consumer while it iterates are delivered by its next watch.
        if self._bookmark.resource_version != str(self._version):
            upto = str(self._version)
            self._bookmark = WatchEvent("BOOKMARK", upto, {"metadata": {"resourceVersion": upto}})
        if self._changed.get(resource, 0) <= since:  # so it is for most resources, each time they are watched
            return iter((self._bookmark,))
        return iter((*self._changes(resource, since), self._bookmark))

    def _changes(self, resource: Resource, since: int) -> Iterator[WatchEvent]:
        start = len(self._log)
        while start > 0 and self._log[start - 1][0] > since:
            start -= 1
        return (event for _, changed, event in self._log[start:] if changed == resource)

    def compact(self) -> None:
        """Deletes the history: every watch from an older version gets 410 Gone, as after an etcd compaction."""
        self._compacted = self._version
        self._log.clear()

    # writing

    def create(self, resource: Resource, manifest: Object, *, since: datetime | None = None) -> Object:
        """Stores a new object. `since`: the creation time that it shows; by default, now."""
        if resource == OWN_ACCESS_REVIEWS and (asked := Fields(manifest).child("spec").child("resourceAttributes")):
            right = (asked.text("verb"), asked.text("resource"))  # a question, which is answered and not kept
            return {**manifest, "status": {"allowed": right not in self._forbidden}}
        self._authorize("create", resource)
        created: Object = copied(manifest)
        created["apiVersion"], created["kind"] = resource.api_version, resource.kind
        metadata = created.setdefault("metadata", {})
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                raise InvalidError(f"{resource.kind}: name or generateName is required", next_step="set metadata.name")
            metadata["name"] = f"{metadata['generateName']}{self._suffix()}"
        if resource.namespaced:
            metadata.setdefault("namespace", "default")
        key = key_of(created)
        if key in self._objects.get(resource, {}):
            raise AlreadyExistsError(f"{resource} {key!r} already exists", next_step="read it and update it instead")
        if resource.status and resource not in _STATUS_ON_CREATE:
            created.pop("status", None)
        if resource == PODS:
            created["status"] = {"phase": "Pending"}
        self._names += 1
        metadata["uid"] = str(uuid5(NAMESPACE_OID, f"{resource}/{key}/{self._names}"))
        metadata["creationTimestamp"] = _timestamp(since or self._clock.now())
        metadata["generation"] = 1
        for field in ("deletionTimestamp", "resourceVersion"):
            metadata.pop(field, None)
        return self._store(resource, created, "ADDED")

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        self._authorize("update", resource)
        metadata = manifest["metadata"]
        if not metadata.get("resourceVersion"):
            raise InvalidError(
                f"{resource} {key_of(manifest)!r}: metadata.resourceVersion must be specified for an update",
                next_step="read the object and change what was read",
            )
        return self._replace(resource, manifest, subresource)

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        self._authorize("patch", resource)
        current = self._find(resource, name, namespace)
        return self._replace(resource, merged(current, patch), subresource, copy=False)

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        self._authorize("delete", resource)
        current = self._find(resource, name, namespace)
        metadata = current["metadata"]
        for field, wanted in (("uid", uid), ("resourceVersion", resource_version)):
            if wanted and metadata[field] != wanted:
                raise ConflictError(
                    f"precondition failed: {field} in precondition: {wanted}, in object meta: {metadata[field]}",
                    next_step=f"read {resource} {name!r} again",
                )
        # The kubelet ends a pod on a node and then deletes it with a grace period of 0.
        grace = grace_seconds if resource == PODS else 0
        if grace is None:
            grace = current.get("spec", {}).get("terminationGracePeriodSeconds", 30)
        on_node = resource == PODS and bool(current.get("spec", {}).get("nodeName")) and not _finished(current)
        if metadata.get("finalizers") or (on_node and grace > 0):
            if "deletionTimestamp" not in metadata:
                marked: Object = copied(current)
                marked["metadata"]["deletionTimestamp"] = _timestamp(self._clock.now())
                marked["metadata"]["deletionGracePeriodSeconds"] = grace
                self._store(resource, marked, "MODIFIED")
            return
        self._remove(resource, copied(current))

    def evict(self, name: str, *, namespace: str, uid: str = "") -> None:
        self._authorize("create", PODS)
        pod = self._find(PODS, name, namespace)
        labels = pod["metadata"].get("labels", {})
        for budget in self._objects.get(DISRUPTION_BUDGETS, {}).values():
            if budget["metadata"]["namespace"] != namespace:
                continue
            selector = parse_label_selector(Fields(budget["spec"]).optional_child("selector"))
            covered = selector is not None and selector.matches(labels)
            if covered and budget.get("status", {}).get("disruptionsAllowed", 0) < 1:
                raise BlockedError(
                    f"Cannot evict pod {namespace}/{name}: it would violate PodDisruptionBudget "
                    f"{budget['metadata']['name']}",
                    next_step="wait until the budget allows a disruption, or relax it",
                )
        self.delete(PODS, name, namespace=namespace, uid=uid)

    # inside

    def _replace(self, resource: Resource, manifest: Object, subresource: Subresource, *, copy: bool = True) -> Object:
        """`copy`: the manifest belongs to the caller, who may change it later."""
        metadata = manifest["metadata"]
        current = self._find(resource, metadata["name"], metadata.get("namespace", ""))
        was = current["metadata"]
        if metadata.get("resourceVersion") not in (None, "", was["resourceVersion"]):
            raise ConflictError(
                f"Operation cannot be fulfilled on {resource} {key_of(current)!r}: the object has been modified",
                next_step="read it again and apply the change to what is there now",
            )
        if metadata.get("uid") not in (None, "", was["uid"]):
            raise ConflictError(
                f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {was['uid']}",
                next_step="read it again: another object has its name by now",
            )
        if subresource == "status":
            status = manifest.get("status", {})
            # Stored objects are never changed, so the new one may share the rest of the old one.
            updated: Object = {**current, "metadata": dict(was), "status": copied(status) if copy else status}
        else:
            status = current.get("status")
            updated = copied(manifest) if copy else {**manifest, "metadata": dict(metadata)}
            updated["metadata"].update({field: was[field] for field in _SERVER_FIELDS if field in was})
            if resource.status:
                updated.pop("status", None)
                if status is not None:
                    updated["status"] = status
        updated["metadata"]["resourceVersion"] = was["resourceVersion"]
        if updated == current:
            unchanged: Object = copied(current)
            return unchanged
        if updated.get("spec") != current.get("spec"):
            updated["metadata"]["generation"] = was.get("generation", 1) + 1
        if "deletionTimestamp" in was and not updated["metadata"].get("finalizers") and was.get("finalizers"):
            return self._remove(resource, updated)
        return self._store(resource, updated, "MODIFIED")

    def _store(self, resource: Resource, stored: Object, event: Any) -> Object:
        self._version += 1
        self.writes += 1
        stored["metadata"]["resourceVersion"] = str(self._version)
        self._objects.setdefault(resource, {})[key_of(stored)] = stored
        # Stored objects are replaced, never changed, so the log may share them.
        self._append(resource, WatchEvent(event, str(self._version), stored))
        answer: Object = copied(stored)
        return answer

    def _remove(self, resource: Resource, removed: Object) -> Object:
        self._version += 1
        self.writes += 1
        removed["metadata"]["resourceVersion"] = str(self._version)
        del self._objects[resource][key_of(removed)]
        self._append(resource, WatchEvent("DELETED", str(self._version), removed))
        answer: Object = copied(removed)
        return answer

    def _append(self, resource: Resource, event: WatchEvent) -> None:
        self._changed[resource] = self._version
        self._log.append((self._version, resource, event))
        if len(self._log) > self._history:
            dropped = self._log[: self._history // 2]
            del self._log[: len(dropped)]
            self._compacted = dropped[-1][0]

    def _find(self, resource: Resource, name: str, namespace: str) -> Object:
        key = f"{namespace}/{name}" if namespace else name
        found = self._objects.get(resource, {}).get(key)
        if found is None:
            raise NotFoundError(f"{resource} {key!r} not found", next_step="it was deleted, or never created")
        return found

    def _authorize(self, verb: str, resource: Resource) -> None:
        if (verb, resource.plural) in self._forbidden:
            raise ForbiddenError(f"cannot {verb} {resource}", next_step=f"grant {verb} on {resource} to the role")

    def _suffix(self) -> str:
        """Five characters as upstream's generator draws them, here from a counter so that runs repeat."""
        alphabet = "bcdfghjklmnpqrstvwxz2456789"
        self._names += 1
        digest = uuid5(NAMESPACE_OID, str(self._names)).int
        return "".join(alphabet[digest // len(alphabet) ** place % len(alphabet)] for place in range(5))


def _timestamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _field(item: Object, path: str) -> Any:
    """The value that a field selector compares, at a path like spec.nodeName; None if there is none."""
    found: Any = item
    for name in path.split("."):
        found = found.get(name, {})
    return found or None


def _finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
