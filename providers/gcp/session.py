"""Clients of Google Cloud: REST, one attempt per call, and only the calls that calls.py lists.

Google's clients would repeat some calls, and poll operations at an address that ignores the endpoint. So calls that
change something use the `_unary` methods, and operations are read one by one. An import has no effect: credentials are
looked up at the first call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import google.auth
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud import compute_v1

from providers.errors import PermissionDeniedError, TemplateError, UnclassifiedError
from providers.gcp.calls import BY_NAME
from providers.gcp.errors import of_http, translated

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_CONTAINER: Final = "https://container.googleapis.com"
_RESOURCES: Final = "https://cloudresourcemanager.googleapis.com"
_SECONDS: Final = 60.0
_PAGE: Final = 500
# Codes of warnings that mean that a list, or a scope of it, is complete. Other warnings of a list are remarks.
_NOTHING: Final = frozenset({"", "NO_RESULTS_ON_PAGE"})
_MISSING: Final = frozenset({"UNREACHABLE", "PARTIAL_SUCCESS", "LIST_OVERHEAD_QUOTA_EXCEED"})
# The API's name of a method, with the client and its method.
_METHODS: Final[Mapping[str, tuple[Callable[..., Any], str]]] = {
    "instanceGroupManagers.get": (compute_v1.InstanceGroupManagersClient, "get"),
    "instanceGroupManagers.list": (compute_v1.InstanceGroupManagersClient, "list"),
    "instanceGroupManagers.aggregatedList": (compute_v1.InstanceGroupManagersClient, "aggregated_list"),
    "instanceGroupManagers.listManagedInstances": (
        compute_v1.InstanceGroupManagersClient,
        "list_managed_instances",
    ),
    "instanceGroupManagers.listErrors": (compute_v1.InstanceGroupManagersClient, "list_errors"),
    "instanceGroupManagers.createInstances": (compute_v1.InstanceGroupManagersClient, "create_instances_unary"),
    "instanceGroupManagers.deleteInstances": (compute_v1.InstanceGroupManagersClient, "delete_instances_unary"),
    "instanceGroupManagers.resize": (compute_v1.InstanceGroupManagersClient, "resize_unary"),
    "instanceGroupManagerResizeRequests.get": (compute_v1.InstanceGroupManagerResizeRequestsClient, "get"),
    "instanceGroupManagerResizeRequests.list": (compute_v1.InstanceGroupManagerResizeRequestsClient, "list"),
    "instanceGroupManagerResizeRequests.insert": (compute_v1.InstanceGroupManagerResizeRequestsClient, "insert_unary"),
    "instanceGroupManagerResizeRequests.cancel": (compute_v1.InstanceGroupManagerResizeRequestsClient, "cancel_unary"),
    "instanceGroupManagerResizeRequests.delete": (compute_v1.InstanceGroupManagerResizeRequestsClient, "delete_unary"),
    "machineTypes.aggregatedList": (compute_v1.MachineTypesClient, "aggregated_list"),
    "acceleratorTypes.aggregatedList": (compute_v1.AcceleratorTypesClient, "aggregated_list"),
    "advice.calendarMode": (compute_v1.AdviceClient, "calendar_mode"),
    "reservations.aggregatedList": (compute_v1.ReservationsClient, "aggregated_list"),
    "reservations.get": (compute_v1.ReservationsClient, "get"),
    "reservationBlocks.get": (compute_v1.ReservationBlocksClient, "get"),
    "reservationSubBlocks.get": (compute_v1.ReservationSubBlocksClient, "get"),
    "futureReservations.aggregatedList": (compute_v1.FutureReservationsClient, "aggregated_list"),
    "resourcePolicies.get": (compute_v1.ResourcePoliciesClient, "get"),
    "instanceTemplates.get": (compute_v1.InstanceTemplatesClient, "get"),
    "regionInstanceTemplates.get": (compute_v1.RegionInstanceTemplatesClient, "get"),
    "instances.get": (compute_v1.InstancesClient, "get"),
    "instances.aggregatedList": (compute_v1.InstancesClient, "aggregated_list"),
    "globalOperations.aggregatedList": (compute_v1.GlobalOperationsClient, "aggregated_list"),
    "zoneOperations.get": (compute_v1.ZoneOperationsClient, "get"),
}


class UnlistedCallError(AssertionError):
    """A call that no role permits; list it in providers/gcp/calls.py and in deploy/gcp."""


class Gcp:
    """One project. `endpoint` replaces Google in tests, without credentials."""

    def __init__(self, project: str = "", *, endpoint: str = "") -> None:
        self._project = project or os.environ.get("GOOGLE_CLOUD_PROJECT", "")
        self._endpoint = endpoint
        self._clients: dict[Callable[..., Any], Any] = {}

    @property
    def project(self) -> str:
        """The id of the project of all calls.

        Raises PermissionDeniedError if none is configured, and TemplateError for a project number: the API accepts a
        number, but the provider ids of Nodes contain the id, so no machine would match its Node.
        """
        if not self._project:
            self._project = str(self._found[1] or "")
        if not self._project:
            step = "set gcp.project of the settings, GOOGLE_CLOUD_PROJECT, or --project where a command has it"
            raise PermissionDeniedError("no Google Cloud project is configured", code="NoProject", next_step=step)
        if self._project.isdecimal():
            step = f"set gcp.project to the id: gcloud projects describe {self._project} --format 'value(projectId)'"
            text = f"gcp.project is the number {self._project}, and the provider ids of Nodes have the id"
            raise TemplateError(text, code="ProjectNumber", next_step=step)
        return self._project

    def call(self, method: str, *, about: str = "", **request: Any) -> Any:
        """Make one call and return its answer. Raises ProviderErrors."""
        if method == "instanceGroupManagers.resize" and request.get("size") != 0:
            raise UnlistedCallError(f"{method} to {request.get('size')}: Google would choose which machines end")
        what = f"{method} {about}".strip()
        with translated(what):
            return self._method(method)(request={"project": self.project, **request}, retry=None, timeout=_SECONDS)

    def pages(self, method: str, *, about: str = "", **request: Any) -> Iterator[Any]:
        """The pages of a list, one call each. Raises ProviderErrors; UnclassifiedError if the list is incomplete."""
        what = f"{method} {about}".strip()
        page = ""
        while True:
            asked = {"max_results": _PAGE, "page_token": page, **request}
            with translated(what):
                found = next(iter(self.call(method, about=about, **asked).pages))
            missing = list(_unreachable(found))
            if missing:
                step = "nothing is concluded from this list; it is read again"
                text = f"{what}: {', '.join(missing)} did not answer"
                raise UnclassifiedError(text, code="PartialAnswer", next_step=step)
            yield found
            page = found.next_page_token
            if not page:
                return

    def container(self, method: str, path: str) -> Mapping[str, Any]:
        """GKE's answer about a cluster or a node pool. Google has no client for this that speaks REST."""
        _listed(method)
        url = f"{self._endpoint or _CONTAINER}/v1/projects/{self.project}/{path}"
        with translated(method):
            return _read(method, self._http.get(url, timeout=_SECONDS))

    def granted(self, permissions: Iterable[str]) -> frozenset[str]:
        """The permissions, of those given, that the caller has in the project, inherited ones included. Raises
        ProviderErrors.

        The call needs no permission. Source: Resource Manager API v1, projects.testIamPermissions, read 2026-11-27.
        """
        method = "projects.testIamPermissions"
        _listed(method)
        url = f"{self._endpoint or _RESOURCES}/v1/projects/{self.project}:testIamPermissions"
        body, headers = json.dumps({"permissions": sorted(permissions)}), {"Content-Type": "application/json"}
        with translated(method):
            found = _read(method, self._http.post(url, data=body, headers=headers, timeout=_SECONDS))
        return frozenset(found.get("permissions", ()))

    def _method(self, method: str) -> Any:
        _listed(method)
        kind, name = _METHODS[method]
        if kind not in self._clients:
            options = {"api_endpoint": self._endpoint} if self._endpoint else None
            self._clients[kind] = kind(credentials=self._found[0], transport="rest", client_options=options)
        return getattr(self._clients[kind], name)

    @cached_property
    def _http(self) -> Any:
        return AuthorizedSession(self._found[0])  # type: ignore[no-untyped-call]  # not annotated

    @cached_property
    def _found(self) -> tuple[Any, str | None]:
        """The credentials, and the project that they contain."""
        if self._endpoint:
            return AnonymousCredentials(), None  # type: ignore[no-untyped-call]  # not annotated
        with translated("credentials"):
            return google.auth.default(scopes=_SCOPES)


def _listed(method: str) -> None:
    if method not in BY_NAME:
        raise UnlistedCallError(f"{method} is missing in providers/gcp/calls.py and in deploy/gcp")


def _read(method: str, answer: Any) -> Mapping[str, Any]:
    """The JSON of an answer. Raises ProviderErrors."""
    found = answer.json()
    if answer.status_code != 200:
        error = found.get("error", {}) if isinstance(found, Mapping) else {}
        rows = error.get("errors") or [{}]
        raise of_http(method, answer.status_code, rows[0].get("reason", ""), str(error.get("message", "")))
    return found if isinstance(found, Mapping) else {}


def _unreachable(page: Any) -> Iterator[str]:
    """The parts that are missing in a list. An empty scope has a warning of its own that means nothing."""
    yield from getattr(page, "unreachables", ())
    code = getattr(getattr(page, "warning", None), "code", "")
    if code in _MISSING:
        yield f"a part of it ({code})"
    scopes = getattr(page, "items", None)
    for name, scoped in scopes.items() if isinstance(scopes, Mapping) else ():
        if scoped.warning.code not in _NOTHING:
            yield f"{name} ({scoped.warning.code})"
