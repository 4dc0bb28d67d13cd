"""The HTTP endpoints of the process: three small applications, one for each address in the settings.

Probes and metrics are for machines and contain nothing about pods. The status page and /explain are for users and
require a token (access.py). Every route is a GET and changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.page import explanation, status_page
from autoscaler.serve.access import RequestAuthorizer, UnauthenticatedError, UnauthorizedError, UndecidedError, User
from autoscaler.serve.health import Heartbeat, Sight
from autoscaler.serve.html import rendered, style_sheet
from instance_catalog.dataclass import dataclass

_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# A browser asks for the password when it reads Basic; the password is the token.
_CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="Foreslice: any name, a token as password", charset="UTF-8"'}


@dataclass(frozen=True, slots=True)
class Tick:
    """The observations and decisions of a reconcile."""

    snapshot: Snapshot
    plan: Plan
    now: datetime


class LatestTick:
    """The latest reconcile. The loop's thread writes it, request threads read it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tick: Tick | None = None

    def set(self, snapshot: Snapshot, plan: Plan, now: datetime) -> None:
        """A reconcile has ended."""
        with self._lock:
            self._tick = Tick(snapshot, plan, now)

    def get(self) -> Tick | None:
        """None before the first reconcile, and on replicas that do not lead."""
        with self._lock:
            return self._tick


def health_app(heartbeat: Heartbeat, sight: Sight) -> Starlette:
    """/healthz and /readyz: 200, or 503 with the problem."""

    def healthz(request: Request) -> Response:
        problem = heartbeat.problem
        return PlainTextResponse(problem or "ok", 503 if problem else 200, headers=_HEADERS)

    def readyz(request: Request) -> Response:
        problem = sight.problem if heartbeat.is_ready else "the cluster was not read yet"
        return PlainTextResponse(problem or "ok", 503 if problem else 200, headers=_HEADERS)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)])


def metrics_app(registry: CollectorRegistry) -> Starlette:
    """/metrics, in the format that the scraper requests."""

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), media_type=content_type)

    return Starlette(routes=[Route("/metrics", metrics)])


def page_app(
    latest: LatestTick, authorizer: RequestAuthorizer, *, cluster: str = "", holder: Callable[[], str] = str
) -> Starlette:
    """/, /explain/<namespace>/<pod>. `holder` names the replica that acts, for pages of one that waits."""
    pages = _Pages(latest, authorizer, cluster, holder)
    return Starlette(
        routes=[
            Route("/", pages.status),
            Route("/explain/{namespace}/{pod}", pages.pod),
            Route("/style.css", pages.style),
        ],
        exception_handlers={
            UnauthenticatedError: pages.refused,
            UnauthorizedError: pages.refused,
            UndecidedError: pages.refused,
        },
    )


class _Pages:
    """The handlers. They run in worker threads, so a request to the API server blocks no other."""

    def __init__(
        self, latest: LatestTick, authorizer: RequestAuthorizer, cluster: str, holder: Callable[[], str]
    ) -> None:
        self._latest = latest
        self._authorizer = authorizer
        self._cluster = cluster
        self._holder = holder

    def status(self, request: Request) -> Response:
        """Pools, nodes, blocks, proposals and pending pods."""
        namespace = request.query_params.get("namespace", "").strip()
        self._authorizer.require(self._user(request), "list", namespace=namespace)
        shown = self._latest.get()
        if shown is None:
            return self._waiting()
        page = status_page(shown.snapshot, shown.plan, shown.now, namespace=namespace)
        return self._html("status.html", page=page, shown=namespace)

    def pod(self, request: Request) -> Response:
        """Explains why one pod waits. Only users who may read the pod learn that it does not exist."""
        namespace, name = request.path_params["namespace"], request.path_params["pod"]
        self._authorizer.require(self._user(request), "get", namespace=namespace, name=name)
        shown = self._latest.get()
        if shown is None:
            return self._waiting()
        found = explanation(shown.snapshot, shown.plan, shown.now, pod=f"{namespace}/{name}")
        if found is None:
            step = (
                f"kubectl get pod {name} -n {namespace} shows whether it exists; a new one is known after a few seconds"
            )
            return self._notice(HTTPStatus.NOT_FOUND, f"There is no pod {namespace}/{name} here.", step)
        return self._html("pod.html", pod=found, shown=namespace)

    def style(self, request: Request) -> Response:
        """The style sheet, without a token."""
        return Response(style_sheet(), media_type="text/css", headers=_HEADERS)

    def refused(self, request: Request, error: Exception) -> Response:
        """The next step alone."""
        match error:
            case UnauthenticatedError():
                return self._notice(HTTPStatus.UNAUTHORIZED, error.message, error.next_step, headers=_CHALLENGE)
            case UnauthorizedError():
                return self._notice(HTTPStatus.FORBIDDEN, error.message, error.next_step)
            case UndecidedError():
                return self._notice(HTTPStatus.SERVICE_UNAVAILABLE, error.message, error.next_step)
        raise error

    def _user(self, request: Request) -> User:
        return self._authorizer.user(request.headers.get("authorization", ""))

    def _waiting(self) -> Response:
        holder = self._holder()
        step = f"{holder} acts: ask that replica" if holder else "reload the page in a few seconds"
        return self._notice(HTTPStatus.SERVICE_UNAVAILABLE, "This replica has not looked at the cluster.", step)

    def _notice(
        self, status: HTTPStatus, message: str, next_step: str, *, headers: dict[str, str] | None = None
    ) -> Response:
        texts = {"title": status.phrase, "message": message, "next_step": next_step}
        return self._html("notice.html", status=status, headers=headers, **texts)

    def _html(
        self,
        template: str,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        shown: str = "",
        **values: object,
    ) -> Response:
        text = rendered(template, cluster=self._cluster, shown=shown, values=values)
        return Response(text, status, media_type="text/html", headers={**_HEADERS, **(headers or {})})
