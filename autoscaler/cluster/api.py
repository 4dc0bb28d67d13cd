"""The interface to Kubernetes: a Protocol on plain dicts, and its errors.

Everything above it (store, journal, publish) runs unchanged on the real client and on the in-memory API server of
`simulation`. It does not interpret the objects; that is autoscaler/kube.

Guarantees of an implementation:

- Objects returned are the caller's own: changing them changes nothing in the API.
- Every write that changes an object gives it a new `metadata.resourceVersion`; a write that changes nothing gives none.
- `update` and `patch` with a `metadata.resourceVersion` fail with ConflictError if the object has changed since.
- `watch` delivers, in order, every change after `resource_version`, or raises GoneError if it no longer can.
- `list` and `watch` of a resource that the cluster does not serve raise NotFoundError.

Errors:

    ApiError
    ├── NotFoundError          404
    ├── AlreadyExistsError     409 on create
    ├── ConflictError          409 on update, patch, delete: another client was faster; read again
    ├── GoneError              410: the resourceVersion or page token expired; list again
    ├── ForbiddenError         403: the role lacks the verb
    ├── InvalidError           422: the API server refuses the object
    ├── BlockedError           429 on eviction: a PodDisruptionBudget forbids it for now
    └── UnavailableError       the answer is unknown: time-out, connection lost, 5xx
        └── MalformedAnswerError   the answer is not an API server's: a login page, half an object
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from autoscaler.cluster.resources import PODS, Resource
from autoscaler.errors import ForesliceError
from instance_catalog.dataclass import dataclass

Object: TypeAlias = dict[str, Any]
Subresource: TypeAlias = Literal["", "status"]
T = TypeVar("T")
NO_LABELS: Mapping[str, str] = MappingProxyType({})
NO_FIELDS: Mapping[str, str] = MappingProxyType({})


class ApiError(ForesliceError):
    """The API server refused or could not be asked."""

    reason = "Api"


class NotFoundError(ApiError):
    reason = "NotFound"


class AlreadyExistsError(ApiError):
    reason = "AlreadyExists"


class ConflictError(ApiError):
    """The object changed since it was read, or a precondition does not hold."""

    reason = "Conflict"


class GoneError(ApiError):
    """The resourceVersion or the page token is too old: list again."""

    reason = "Gone"


class ForbiddenError(ApiError):
    """The role does not grant the verb on the resource."""

    reason = "Forbidden"


class InvalidError(ApiError):
    """The API server refuses the object."""

    reason = "Invalid"


class BlockedError(ApiError):
    """An eviction that a PodDisruptionBudget forbids for now."""

    reason = "Blocked"


class UnavailableError(ApiError):
    """No usable answer: the request may have been carried out or not."""

    reason = "Unavailable"


class MalformedAnswerError(UnavailableError):
    """The answer is not that of an API server, or it was changed on the way."""

    reason = "MalformedAnswer"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. `resource_version` is that of the whole list; `next_page` is "" on the last page."""

    items: tuple[Object, ...]
    resource_version: str
    next_page: str = ""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A change. A BOOKMARK carries only `resource_version`: nothing up to there was missed."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    resource_version: str
    object: Object


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One call of a KubernetesApi, for wrappers: they look at verb and resource, and pass it on with `to`."""

    verb: str
    resource: Resource
    to: Callable[[KubernetesApi], T]


class KubernetesApi(Protocol):
    """The calls to the Kubernetes API that Foreslice makes. `namespace` is "" for cluster-scoped resources.

    An ApiWrapper inherits these methods, which then make a Request; an API implements them all.
    """

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        """One object, or NotFoundError."""
        return _sent(self, Request("get", resource, lambda api: api.get(resource, name, namespace=namespace)))

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
        """At most `limit` objects, ordered by namespace and name, of one namespace or ("") of all; `page` continues.

        Only objects that carry these labels, and whose `fields` have these values: `spec.nodeName` of pods is one
        that can be asked for.
        """
        ask: dict[str, Any] = {"namespace": namespace, "labels": labels, "fields": fields, "limit": limit, "page": page}
        return _sent(self, Request("list", resource, lambda api: api.list(resource, **ask)))

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        """Changes after `resource_version`, for at most `timeout_seconds` (0: those that are there), or GoneError."""
        ask: dict[str, Any] = {"resource_version": resource_version, "timeout_seconds": timeout_seconds}
        return _sent(self, Request("watch", resource, lambda api: api.watch(resource, **ask)))

    def create(self, resource: Resource, manifest: Object) -> Object:
        """The object as created; `metadata.generateName` is completed. AlreadyExistsError, InvalidError."""
        return _sent(self, Request("create", resource, lambda api: api.create(resource, manifest)))

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        """Replace the object, which must carry the resourceVersion it was read with. ConflictError, NotFoundError."""
        return _sent(
            self, Request("update", resource, lambda api: api.update(resource, manifest, subresource=subresource))
        )

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        """Apply a JSON merge patch (RFC 7386). A resourceVersion inside guards it. ConflictError, NotFoundError."""
        ask: dict[str, Any] = {"namespace": namespace, "subresource": subresource}
        return _sent(self, Request("patch", resource, lambda api: api.patch(resource, name, patch, **ask)))

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
        """Delete, or only mark while finalizers or a pod's grace period hold it. Preconditions: ConflictError."""
        ask: dict[str, Any] = {
            "namespace": namespace,
            "uid": uid,
            "resource_version": resource_version,
            "grace_seconds": grace_seconds,
        }
        _sent(self, Request("delete", resource, lambda api: api.delete(resource, name, **ask)))

    def evict(self, name: str, *, namespace: str, uid: str = "") -> None:
        """Creates an Eviction of a pod. Raises BlockedError if a PodDisruptionBudget forbids it now."""
        _sent(self, Request("evict", PODS, lambda api: api.evict(name, namespace=namespace, uid=uid)))


class ApiWrapper(KubernetesApi):
    """A KubernetesApi before another one: every method arrives at `send`."""

    def send(self, request: Request[T]) -> T:
        """Pass the request on, or do not."""
        raise NotImplementedError


def _sent(api: KubernetesApi, request: Request[T]) -> T:
    assert isinstance(api, ApiWrapper), f"{type(api).__name__} does not implement {request.verb}"
    return api.send(request)


def same_uid(uid: str) -> dict[str, str]:
    """The uid for the metadata of a patch: ConflictError if another object has the name now. Names are used again."""
    return {"uid": uid} if uid else {}


def key_of(manifest: Object) -> str:
    """namespace/name, or the name of a cluster-scoped object."""
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace", "")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def pages(
    api: KubernetesApi,
    resource: Resource,
    *,
    namespace: str = "",
    labels: Mapping[str, str] = NO_LABELS,
    fields: Mapping[str, str] = NO_FIELDS,
) -> Iterator[Page]:
    """The pages of a list, one at a time. Raises GoneError if a page expired: begin again."""
    ask = partial(api.list, resource, namespace=namespace, labels=labels, fields=fields)
    page = ask()
    yield page
    while page.next_page:
        page = ask(page=page.next_page)
        yield page


def list_all(
    api: KubernetesApi,
    resource: Resource,
    *,
    namespace: str = "",
    labels: Mapping[str, str] = NO_LABELS,
    fields: Mapping[str, str] = NO_FIELDS,
) -> tuple[tuple[Object, ...], str]:
    """All objects of a list with the list's resourceVersion. Raises GoneError if a page expired: list again."""
    found = tuple(pages(api, resource, namespace=namespace, labels=labels, fields=fields))
    return tuple(item for page in found for item in page.items), found[-1].resource_version


def set_finalizer(api: KubernetesApi, resource: Resource, name: str, finalizer: str, *, held: bool) -> Object:
    """Adds `finalizer` to the object or removes it. Returns the object after that.

    A merge patch replaces the whole list, so the object is read first and the patch is bound to its resourceVersion.
    Raises NotFoundError, and ConflictError if another client wrote the object in between.
    """
    found = api.get(resource, name)
    metadata = found["metadata"]
    before = metadata.get("finalizers") or []
    others = [one for one in before if one != finalizer]
    wanted = [*others, finalizer] if held else others
    if wanted == before:
        return found
    patch = {"metadata": {"finalizers": wanted or None, "resourceVersion": metadata["resourceVersion"]}}
    return api.patch(resource, name, patch)
