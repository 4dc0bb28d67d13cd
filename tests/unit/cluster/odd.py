"""The Kubernetes API that fails one kind of request, for one kind of object or for objects of some name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from autoscaler.cluster.api import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    Object,
    Subresource,
    UnavailableError,
)
from autoscaler.cluster.intercepted import InterceptedApi
from autoscaler.cluster.resources import Resource
from autoscaler.simulation.api_server import ApiServer

# What an API server answers, and what happens in front of it and in this process.
FAULTS: dict[str, Callable[[], Exception]] = {
    "403": lambda: ForbiddenError("exceeded quota: team-quota"),
    "404": lambda: NotFoundError("not found"),
    "409": lambda: ConflictError("the object has been modified"),
    "409 exists": lambda: AlreadyExistsError("already exists"),
    "422": lambda: InvalidError("spec.pods[0][0]: Too long: may not be more than 253 bytes"),
    "429": lambda: UnavailableError("too many requests (429)"),
    "500": lambda: UnavailableError("etcdserver: request timed out (500)"),
    "webhook": lambda: InvalidError('admission webhook "policy.example" denied the request: no (400)'),
    "time-out": lambda: UnavailableError("no answer"),
    "bug": lambda: KeyError("something nobody thought of"),
}
MAY_BE = (ApiError, KeyError)


@dataclass
class OddApi(InterceptedApi):
    """`fails` decides by verb, resource and the manifest or name that is written; `failed` counts."""

    inner: ApiServer
    fails: Callable[[str, Resource, str], bool] = lambda verb, resource, text: False
    fault: Callable[[], Exception] = FAULTS["422"]
    failed: int = 0
    written: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.inner, self._stand)

    def _stand(self, verb: str, resource: Resource) -> AbstractContextManager[None]:
        self._meet(verb, resource, "")
        return nullcontext()

    def create(self, resource: Resource, manifest: Object) -> Object:
        self._meet("create", resource, repr(manifest))
        return self.inner.create(resource, manifest)

    def update(self, resource: Resource, manifest: Object, *, subresource: Subresource = "") -> Object:
        self._meet("update", resource, repr(manifest))
        return self.inner.update(resource, manifest, subresource=subresource)

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        self._meet("patch", resource, f"{name} {patch}")
        return self.inner.patch(resource, name, patch, namespace=namespace, subresource=subresource)

    def _meet(self, verb: str, resource: Resource, text: str) -> None:
        if verb not in ("get", "list", "watch"):
            self.written.append((verb, resource.plural))
        if self.fails(verb, resource, text):
            self.failed += 1
            raise self.fault()
