"""Exemplars: temporary Nodes without machines, from which a Cluster Autoscaler learns a group's ResourceSlices.

A Cluster Autoscaler without the field `resourceSliceBytes` knows slices only of Nodes that it has seen. It requests the
template of a group in every loop until it has seen one, so that request creates an exemplar, and creates it again after
the Cluster Autoscaler has forgotten it.

Facts (kubernetes/autoscaler, tag cluster-autoscaler-1.36.1): processors/nodeinfosprovider/mixed_nodeinfos_processor.go
uses a Node as a template that is Ready for more than a minute, and keeps it while the group is listed;
core/static_autoscaler.go lists Nodes, then calls Refresh, then makes templates, then scales up.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Final

import structlog

from autoscaler.cluster.api import ApiError, ConflictError, KubernetesApi, NotFoundError, Object, list_all
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import NODES, RESOURCE_SLICES, Resource
from autoscaler.kube.metadata import is_exemplar
from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes import labels
from providers.contract import Clock

_LOG: Final = structlog.get_logger("foreslice.externalgrpc")
# Others see these Nodes, too; and each loop of ten seconds teaches that many groups, the cheapest first.
MOST: Final = 3
# The node lifecycle controller calls a Node without heartbeats unreachable after 50 seconds.
LONGEST: Final = 45.0  # seconds
# The first loop that names a Node begins with one Refresh, and its templates are made before the next.
LOOPS: Final = 2
# Limits how often Nodes are created for a caller that forgets them, or never sees them.
PAUSE_SEEN: Final = 120.0  # seconds
PAUSE_UNSEEN: Final = 600.0
NAME: Final = "foreslice-exemplar-"


@dataclass(frozen=True, slots=True)
class Exemplar:
    """The objects that are created for a group: a Node, and the slices that are created before it."""

    group: str
    name: str
    node: Object
    slices: tuple[Object, ...]


@dataclass(slots=True)
class _Shown:
    """An exemplar that is, or will be, in the cluster. `named` is the loop of its first request."""

    group: str
    since: float
    named: int | None = None
    seen: bool = False
    ending: bool = False
    uids: dict[tuple[Resource, str], str] = field(default_factory=dict)


class Exemplars:
    """The exemplars of this process. `work` writes, in a thread of its own; all else is memory and never waits."""

    def __init__(self, api: KubernetesApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._wishes: dict[str, Exemplar] = {}  # by group
        self._shown: dict[str, _Shown] = {}  # by name of the Node
        self._not_before: dict[str, float] = {}  # by group
        self._loop = 0
        self._swept = False
        self._closed = False

    def wants(self, group: str) -> bool:
        """True if an exemplar of the group would be created now."""
        with self._lock:
            there = {shown.group for shown in self._shown.values()} | self._wishes.keys()
            waits = self._clock.monotonic() < self._not_before.get(group, 0.0)
            return not self._closed and not waits and group not in there and len(there) < MOST

    def show(self, exemplar: Exemplar) -> None:
        """Show it with the next `work`."""
        with self._lock:
            self._wishes[exemplar.group] = exemplar

    def refreshed(self, wanting: Collection[str]) -> None:
        """A loop of the caller begins. Exemplars end that it has seen, and those of groups that are not `wanting`."""
        with self._lock:
            self._loop += 1
            self._wishes = {group: wish for group, wish in self._wishes.items() if group in wanting}
            for shown in self._shown.values():
                if shown.named is not None and self._loop - shown.named >= LOOPS:
                    shown.seen = shown.ending = True
                if shown.group not in wanting:
                    shown.ending = True

    def group_of(self, name: str) -> str | None:
        """The group of the Node `name`, which the caller has seen with this question; None if it is none, or ends."""
        with self._lock:
            shown = self._shown.get(name)
            if shown is None or shown.ending:
                return None
            shown.named = self._loop if shown.named is None else shown.named
            return shown.group

    def end(self, *, name: str = "", group: str = "") -> bool:
        """The Node of that name, or of that group, is wanted no more; whether there is one."""
        with self._lock:
            self._wishes.pop(group, None)
            found = [shown for key, shown in self._shown.items() if key == name or shown.group == group]
            for shown in found:
                shown.seen = shown.seen or bool(group)  # it was ordered, so its template is known
                shown.ending = True
            return bool(found)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._wishes.clear()
            for shown in self._shown.values():
                shown.ending = True
        self.work()

    def work(self) -> bool:
        """Creates and deletes what is due. Returns True if all of it succeeded; the rest is tried again the next
        time."""
        with self._working:
            done = True
            for step in (self._sweep, self._end_due, self._show_wished):
                try:
                    step()
                except (ApiError, LeadershipLostError) as error:
                    _LOG.warning("exemplar_trouble", error=str(error))
                    done = False
            return done

    def _sweep(self) -> None:
        """Deletes exemplars that this process does not know: an earlier process ended while they existed."""
        if self._swept:
            return
        for resource in (NODES, RESOURCE_SLICES):  # a Node without its slices would show that it has none
            for found in self._labelled(resource):
                metadata = found["metadata"]
                if metadata["labels"][labels.EXEMPLAR] not in self._shown:
                    self._delete(resource, metadata["name"], metadata["uid"])
                    _LOG.info("exemplar_left_over", kind=resource.kind, name=metadata["name"])
        self._swept = True

    def _labelled(self, resource: Resource) -> list[Object]:
        found, _ = list_all(self._api, resource)
        return [manifest for manifest in found if is_exemplar(manifest)]

    def _end_due(self) -> None:
        now = self._clock.monotonic()
        with self._lock:
            due = [(name, shown) for name, shown in self._shown.items() if shown.ending or now - shown.since >= LONGEST]
            for _, shown in due:
                shown.ending = True
        for name, shown in due:
            for (resource, key), uid in list(shown.uids.items()):  # the Node is first
                self._delete(resource, key, uid)
                del shown.uids[resource, key]
            with self._lock:
                del self._shown[name]
                pause = PAUSE_SEEN if shown.seen else PAUSE_UNSEEN
                self._not_before = {group: until for group, until in self._not_before.items() if until > now}
                self._not_before[shown.group] = now + pause
            _LOG.info("exemplar_ended", name=name, group=shown.group, seen=shown.seen)

    def _show_wished(self) -> None:
        while True:
            with self._lock:
                if not self._wishes:
                    return
                wish = self._wishes.pop(next(iter(self._wishes)))
                # Known before it is written, so that the first question about it finds it.
                self._shown[wish.name] = _Shown(wish.group, self._clock.monotonic())
            self._write(wish, self._shown[wish.name])

    def _write(self, wish: Exemplar, shown: _Shown) -> None:
        try:
            made = {
                (RESOURCE_SLICES, str(manifest["metadata"]["name"])): self._uid_of(RESOURCE_SLICES, manifest)
                for manifest in wish.slices
            }
            uid = self._uid_of(NODES, wish.node)
        except (ApiError, LeadershipLostError):
            # An object that was created without an answer is found by its label.
            with self._lock:
                del self._shown[wish.name]
                self._not_before[wish.group] = self._clock.monotonic() + PAUSE_UNSEEN
            self._swept = False
            raise
        shown.uids = {(NODES, wish.name): uid, **made}
        _LOG.info("exemplar_shown", name=wish.name, group=wish.group, slices=len(wish.slices))

    def _uid_of(self, resource: Resource, manifest: Object) -> str:
        return str(self._api.create(resource, manifest)["metadata"]["uid"])

    def _delete(self, resource: Resource, name: str, uid: str) -> None:
        with suppress(NotFoundError, ConflictError):  # it is gone, and an object with its name now is another one
            self._api.delete(resource, name, uid=uid)
