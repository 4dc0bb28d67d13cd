"""A copy of one resource of the cluster as model values, kept by list and watch.

Objects are converted on arrival and dropped. What expired (410 Gone) is listed again; an API that is
not served has no objects; an object that cannot be used keeps nobody else from being seen: it is left out and its
problems are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from autoscaler.cluster.api import GoneError, KubernetesApi, NotFoundError, Object, key_of, list_all
from autoscaler.cluster.resources import Resource
from autoscaler.kube.problem import Problem, Problems

T_co = TypeVar("T_co", covariant=True)


class Mirror(Generic[T_co]):
    """All objects of `resource` as values of `parse`, which answers None for an object that cannot be used."""

    def __init__(
        self, api: KubernetesApi, resource: Resource, parse: Callable[[Object, Problems], T_co | None]
    ) -> None:
        self._api = api
        self._resource = resource
        self._parse = parse
        self._version = ""
        self._values: dict[str, T_co] = {}
        self._problems: dict[str, tuple[Problem, ...]] = {}
        self._ordered: tuple[T_co, ...] | None = None

    @property
    def kind(self) -> str:
        """The kind of the objects, for messages."""
        return self._resource.kind

    @property
    def version(self) -> int:
        """The resourceVersion up to which everything was seen, 0 before the first refresh."""
        return int(self._version or 0)

    @property
    def values(self) -> tuple[T_co, ...]:
        """The values by namespace and name, as of the last refresh."""
        if self._ordered is None:
            self._ordered = tuple(self._values[key] for key in sorted(self._values))
        return self._ordered

    @property
    def problems(self) -> Mapping[str, tuple[Problem, ...]]:
        """What was wrong with objects, by namespace/name."""
        return self._problems

    def refresh(self) -> bool:
        """Take over what changed since the last time; whether anything did."""
        if not self._version:
            return self._list()
        try:
            return self._watch()
        except (GoneError, NotFoundError):
            return self._list()

    def reread(self) -> bool:
        """List everything again, because what the values are converted with has changed."""
        return self._list()

    def _list(self) -> bool:
        items: Iterable[Object] = ()
        try:
            items, self._version = list_all(self._api, self._resource)
        except NotFoundError:
            # The API is not served, as that of gangs without its CRD: it has no objects until it is.
            self._version = ""
        before = self._values
        self._values, self._problems, self._ordered = {}, {}, None
        for item in items:
            self._take(item)
        return before != self._values

    def _watch(self) -> bool:
        changed = False
        for event in self._api.watch(self._resource, resource_version=self._version):
            self._version = event.resource_version
            if event.type in ("ADDED", "MODIFIED"):
                self._take(event.object)
                changed = True
            elif event.type == "DELETED":
                self._drop(key_of(event.object))
                changed = True
        return changed

    def _take(self, item: Object) -> None:
        key, problems = key_of(item), Problems()
        value = self._parse(item, problems)
        self._drop(key)
        if value is not None:
            self._values[key] = value
        if len(problems):
            self._problems[key] = tuple(problems)

    def _drop(self, key: str) -> None:
        self._values.pop(key, None)
        self._problems.pop(key, None)
        self._ordered = None
