"""The KubernetesApi on a real API server: paths and verbs, raw JSON.

Watches run in the background from their first use on (client/watch.py), so that a reconcile uses what has arrived and
does not wait; `ring` is called on each arrival. client/transport.py has errors and repetitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from autoscaler.cluster.api import (
    NO_FIELDS,
    NO_LABELS,
    InvalidError,
    MalformedAnswerError,
    NotFoundError,
    Object,
    Page,
    Subresource,
    WatchEvent,
    key_of,
)
from autoscaler.cluster.client.answers import part
from autoscaler.cluster.client.transport import JITTER, MERGE_PATCH, Transport
from autoscaler.cluster.client.watch import Stream
from autoscaler.cluster.resources import NODES, PODS, Resource
from autoscaler.errors import ConfigurationError
from autoscaler.report.printable import one_line
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.feature_gates import FeatureGateError, parse_feature_gates
from instance_catalog.kubernetes.profile import KubernetesProfile, UnknownVersionError, profile_for
from providers.contract import Clock

_DRA: Final = "resource.k8s.io"
# Best first; the converters of autoscaler/kube read all of them. DeviceTaintRules began in v1alpha3.
_DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")
# PodGroups are v1alpha2 in 1.36 and newer later; the group's v1 has none.
_GANGS: Final = "scheduling.k8s.io"
_GANG_VERSIONS: Final = ("v1beta1", "v1alpha3", "v1alpha2")


def _silent() -> None:
    """No thread waits for changes."""


class KubernetesClient:
    """One cluster. One consumer a resource: a watch from another version replaces the one that runs."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        ring: Callable[[], None] = _silent,
        draw: Callable[[], float] = JITTER,
    ) -> None:
        """`draw` gives the numbers from 0 to 1 that waits of watches are spread with."""
        self._transport = transport
        self._clock = clock
        self._ring = ring
        self._draw = draw
        self._streams: dict[Resource, Stream] = {}
        self._versions: dict[tuple[str, str], str] = {}

    @property
    def server(self) -> str:
        """The API server's address without secrets."""
        return self._transport.server

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self._object("GET", _path(self._as_served(resource), namespace, name))

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
        query = {
            "limit": str(limit),
            "continue": page,
            "labelSelector": ",".join(f"{key}={value}" for key, value in labels.items()),
            "fieldSelector": ",".join(f"{path}={value}" for path, value in fields.items()),
        }
        query = {name: value for name, value in query.items() if value}
        resource = self._as_served(resource)
        path = _path(resource, namespace)
        answer = self._object("GET", path, query=query)
        # In a list, objects do not repeat their kind.
        typed = {"apiVersion": resource.api_version, "kind": resource.kind}
        request, seen = f"GET {path}", f"what {self.server} answered"
        metadata = part(answer, "metadata", dict, request, seen=seen)
        version: str = part(metadata, "resourceVersion", str, request, seen=f"{seen}, its metadata,")
        listed: list[object] = part({"items": answer.get("items") or []}, "items", list, request, seen=seen)
        items = tuple({**typed, **_named(item, request, seen)} for item in listed)
        return Page(items, version, str(metadata.get("continue") or ""))

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        stream = self._streams.get(resource)
        # A refusal need not last: an API server that has just started does not know its roles yet.
        if stream is None or stream.over or stream.delivered != resource_version:
            if stream is not None:
                stream.close()
            stream = Stream(
                self._transport,
                _path(self._as_served(resource), ""),
                resource_version,
                clock=self._clock,
                ring=self._ring,
                beats=resource == NODES,
                failures=0 if stream is None else stream.failures,
                draw=self._draw,
            )
            self._streams[resource] = stream
        return stream.take(timeout_seconds)

    def create(self, resource: Resource, manifest: Object) -> Object:
        namespace = manifest.get("metadata", {}).get("namespace", "default") if resource.namespaced else ""
        return self._object("POST", _path(resource, namespace), body=_typed(resource, manifest))

    def try_create(self, resource: Resource, manifest: Object) -> Object:
        """The object as it would have been created: a dry run on the server. Errors are those of create."""
        namespace = manifest.get("metadata", {}).get("namespace", "default") if resource.namespaced else ""
        body = _typed(resource, manifest)
        return self._object("POST", _path(resource, namespace), query={"dryRun": "All"}, body=body)

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        metadata = manifest["metadata"]
        if not metadata.get("resourceVersion"):
            # The API server would take it and overwrite whatever is there.
            raise InvalidError(
                f"{resource} {key_of(manifest)!r}: metadata.resourceVersion must be specified for an update",
                next_step="read the object and change what was read",
            )
        path = _path(resource, metadata.get("namespace", ""), metadata["name"], subresource)
        return self._object("PUT", path, body=_typed(resource, manifest))

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        path = _path(resource, namespace, name, subresource)
        return self._object("PATCH", path, body=patch, content_type=MERGE_PATCH)

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
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        preconditions = _preconditions(uid, resource_version)
        if preconditions:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        self._object("DELETE", _path(resource, namespace, name), body=options)

    def evict(self, name: str, *, namespace: str, uid: str = "") -> None:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": _preconditions(uid, "")} if uid else {},
        }
        self._object("POST", _path(PODS, namespace, name, "eviction"), body=eviction)

    def profile(self, feature_gates: str = "") -> KubernetesProfile:
        """The profile of the server's version. The client then uses the versions of resource.k8s.io that it serves.

        Its feature gates are assumed: the defaults of the version, except for those in `feature_gates`, in the form of
        the flag. Raises ConfigurationError for a cluster without DRA and for gates that cannot be read.
        """
        version = self._version()
        served = self._discover(version)
        try:
            return replace(profile_for(version).with_gates(**parse_feature_gates(feature_gates)), served=served)
        except UnknownVersionError as error:
            raise ConfigurationError(str(error), next_step="upgrade to Kubernetes 1.34 or later") from error
        except FeatureGateError as error:
            raise ConfigurationError(str(error), next_step="correct the setting cluster.featureGates") from error

    def _version(self) -> str:
        request, seen = "GET /version", f"what {self.server} answered"
        try:
            found: str = part(self._object("GET", "/version"), "gitVersion", str, request, seen=seen)
        except NotFoundError as error:
            # Every API server has one.
            raise MalformedAnswerError(
                f"{self.server} is no Kubernetes API server: {error.message}",
                next_step="give the API server's own address (--kubeconfig, --context)",
            ) from error
        return found

    def _discover(self, version: str) -> tuple[str, ...]:
        """The served versions of resource.k8s.io, best first; each of its resources, and of those of gangs, is read in
        the best that has it."""
        found = self._offered(_DRA)
        served = tuple(known for known in _DRA_VERSIONS if known in found)
        if not served:
            serves = f"serves {_DRA} only in {', '.join(sorted(found))}" if found else f"does not serve {_DRA}"
            raise ConfigurationError(
                f"{self.server} runs Kubernetes {one_line(version)}, which {serves}; Foreslice needs one of "
                f"{', '.join(_DRA_VERSIONS)}",
                next_step="upgrade to Kubernetes 1.34 or later, where Dynamic Resource Allocation is on by default",
            )
        self._prefer(_DRA, served)
        offered = self._offered(_GANGS)
        self._prefer(_GANGS, [known for known in _GANG_VERSIONS if known in offered])
        return served

    def _offered(self, group: str) -> frozenset[str]:
        """The versions of a group that are served."""
        try:
            answer = self._object("GET", f"/apis/{group}")
        except NotFoundError:
            return frozenset()
        return frozenset(entry["version"] for entry in _entries(answer, "versions", "version"))

    def _prefer(self, group: str, versions: Sequence[str]) -> None:
        """Read each resource of a group in the first of the versions that has it."""
        for candidate in reversed(versions):
            answer = self._object("GET", f"/apis/{group}/{candidate}")
            for entry in _entries(answer, "resources", "name"):
                self._versions[group, entry["name"]] = candidate

    def _as_served(self, resource: Resource) -> Resource:
        """The resource in the version in which it is read. Writes use the version of the manifests."""
        version = self._versions.get((resource.group, resource.plural))
        return resource if version in (None, resource.version) else replace(resource, version=version)

    def _object(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        return self._transport.request(method, path, query=query, body=body, content_type=content_type)


def _typed(resource: Resource, manifest: Object) -> Object:
    return {**manifest, "apiVersion": resource.api_version, "kind": resource.kind}


def _named(item: object, request: str, seen: str) -> dict[str, Any]:
    """An object of a list, which has at least a name. MalformedAnswerError."""
    found: dict[str, Any] = part({"items[]": item}, "items[]", dict, request, seen=seen)
    part(part(found, "metadata", dict, request, seen=f"an object in {seen}"), "name", str, request, seen=seen)
    return found


def _entries(answer: Mapping[str, Any], field: str, name: str) -> list[dict[str, Any]]:
    """The named entries that discovery lists under a field."""
    found = answer.get(field)
    listed = found if isinstance(found, list) else ()
    return [entry for entry in listed if isinstance(entry, dict) and isinstance(entry.get(name), str)]


def _preconditions(uid: str, resource_version: str) -> dict[str, str]:
    wanted = {"uid": uid, "resourceVersion": resource_version}
    return {field: value for field, value in wanted.items() if value}


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    ends = "".join(f"/{quote(part, safe='')}" for part in (name, subresource) if part)
    return f"{root}{inside}/{resource.plural}{ends}"
