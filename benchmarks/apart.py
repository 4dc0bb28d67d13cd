"""The API server in memory, in a process of its own: so that the memory of this process is the controller's alone.

What it holds answers calls by name over a pipe. Calls and answers are pickled, which takes about as long as JSON does.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any, Protocol

from autoscaler.cluster.api import KubernetesApi, Object, Page, WatchEvent
from autoscaler.cluster.resources import Resource
from autoscaler.errors import ForesliceError
from autoscaler.simulation.api_server import ApiServer


class HasApi(Protocol):
    """What the other process holds."""

    api: ApiServer


class Apart:
    """The object that `make` makes from the arguments, in another process. `api` is its API server."""

    def __init__(self, make: Callable[..., HasApi], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would share, and count, what this process holds
        self._pipe, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, make, arguments), daemon=True)
        process.start()
        theirs.close()
        self.api: KubernetesApi = _Api(self)

    def call(self, name: str, *arguments: object, **named: object) -> Any:
        """The answer of the object's method; `api.list` is one of its API server."""
        self._pipe.send((name, arguments, named))
        answer, error = self._pipe.recv()
        if error is not None:
            raise error
        return answer

    def close(self) -> None:
        """End the other process."""
        self._pipe.close()


def _serve(pipe: Connection, make: Callable[..., HasApi], arguments: tuple[object, ...]) -> None:
    held = make(*arguments)
    while True:
        try:
            name, given, named = pipe.recv()
        except EOFError:
            return
        holder, _, method = name.rpartition(".")
        try:
            found = getattr(held.api if holder else held, method)
            answer = found(*given, **named) if callable(found) else found
            pipe.send((list(answer) if isinstance(answer, Iterator) else answer, None))
        except ForesliceError as error:
            pipe.send((None, error))


class _Api(KubernetesApi):
    """The calls of the loop and its provider."""

    def __init__(self, apart: Apart) -> None:
        self._ask = apart.call

    def get(self, resource: Resource, name: str, **named: Any) -> Object:
        found: Object = self._ask("api.get", resource, name, **named)
        return found

    def list(self, resource: Resource, **named: Any) -> Page:
        plain = {key: dict(value) if isinstance(value, Mapping) else value for key, value in named.items()}
        found: Page = self._ask("api.list", resource, **plain)  # read-only views cannot be pickled
        return found

    def watch(self, resource: Resource, **named: Any) -> Iterator[WatchEvent]:
        yield from self._ask("api.watch", resource, **named)

    def create(self, resource: Resource, manifest: Object) -> Object:
        found: Object = self._ask("api.create", resource, manifest)
        return found

    def update(self, resource: Resource, manifest: Object, **named: Any) -> Object:
        found: Object = self._ask("api.update", resource, manifest, **named)
        return found

    def patch(self, resource: Resource, name: str, patch: Object, **named: Any) -> Object:
        found: Object = self._ask("api.patch", resource, name, patch, **named)
        return found

    def delete(self, resource: Resource, name: str, **named: Any) -> None:
        self._ask("api.delete", resource, name, **named)

    def evict(self, name: str, **named: Any) -> None:
        self._ask("api.evict", name, **named)
