"""A KubernetesApi with an interceptor before every request, which counts requests or refuses writes.

It knows verbs and resources, not objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeAlias

from autoscaler.cluster.api import NO_FIELDS, NO_LABELS, KubernetesApi, Object, Page, Subresource, WatchEvent
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import PODS, Resource

Interceptor: TypeAlias = Callable[[str, Resource], AbstractContextManager[None]]
"""Entered with verb and resource before a request, left after it, with its error if it failed."""

_READS: Final = frozenset({"get", "list", "watch"})


def leader_only(leads: Callable[[], bool]) -> Interceptor:
    """Refuses writes with LeadershipLostError once another replica may act; each call of a provider follows a write."""

    @contextmanager
    def refuse(verb: str, resource: Resource) -> Iterator[None]:
        if verb not in _READS and not leads():
            raise LeadershipLostError(f"{verb} {resource} was not sent: another replica may be acting by now")
        yield

    return refuse


class InterceptedApi:
    """The same API, with every request passing the interceptor."""

    def __init__(self, api: KubernetesApi, interceptor: Interceptor) -> None:
        self._api = api
        self._intercept = interceptor

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        with self._intercept("get", resource):
            return self._api.get(resource, name, namespace=namespace)

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
        with self._intercept("list", resource):
            return self._api.list(resource, namespace=namespace, labels=labels, fields=fields, limit=limit, page=page)

    def watch(self, resource: Resource, *, resource_version: str, timeout_seconds: float = 0) -> Iterator[WatchEvent]:
        with self._intercept("watch", resource):
            return self._api.watch(resource, resource_version=resource_version, timeout_seconds=timeout_seconds)

    def create(self, resource: Resource, manifest: Object) -> Object:
        with self._intercept("create", resource):
            return self._api.create(resource, manifest)

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        with self._intercept("update", resource):
            return self._api.update(resource, manifest, subresource=subresource)

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        with self._intercept("patch", resource):
            return self._api.patch(resource, name, patch, namespace=namespace, subresource=subresource)

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
        with self._intercept("delete", resource):
            self._api.delete(
                resource,
                name,
                namespace=namespace,
                uid=uid,
                resource_version=resource_version,
                grace_seconds=grace_seconds,
            )

    def evict(self, name: str, *, namespace: str, uid: str = "") -> None:
        with self._intercept("evict", PODS):
            self._api.evict(name, namespace=namespace, uid=uid)
