"""A KubernetesApi with an interceptor before every request, which counts requests or refuses writes.

It knows verbs and resources, not objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, TypeAlias, TypeVar

from autoscaler.cluster.api import ApiWrapper, KubernetesApi, Request
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import Resource

T = TypeVar("T")
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


class InterceptedApi(ApiWrapper):
    """The same API, with every request passing the interceptor."""

    def __init__(self, api: KubernetesApi, interceptor: Interceptor) -> None:
        self._api = api
        self._intercept = interceptor

    def send(self, request: Request[T]) -> T:
        """Enter the interceptor, then pass the request on."""
        with self._intercept(request.verb, request.resource):
            return request.to(self._api)
