"""Controllers that create an evicted pod again as soon as they can, and pods that take their time to stop."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import PODS
from autoscaler.simulation.kubelets import Kubelets
from instance_catalog.dataclass import replace
from tests.unit.simulation.test_consolidation import Cluster, pod


class AtOnce(Cluster):
    """A ReplicaSet creates the next pod when one is evicted, a StatefulSet when it has stopped. `evicted`: the pods'
    apps, in order. `stopping`: how long each pod takes to stop."""

    stopping: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.evicted: list[str] = []
        self.last_node = ""
        self._stops: dict[str, datetime] = {}
        mock.patch.object(self.api, "evict", self._then_created(self.api.evict)).start()

    def serve_pod(self, name: str, make: Callable[[str], Object]) -> None:
        self.wanted[name] = make
        self._create_missing()

    def slow_to_end(self, shutdown: timedelta) -> None:
        """Machines need so long to end; their Nodes are there until then."""
        self.simulation.cloud.behaviour = replace(self.simulation.cloud.behaviour, shutdown=shutdown)

    def live(self, span: timedelta) -> None:
        step = Kubelets._run_pod

        def unless_stopping(kubelets: Kubelets, known: Any, now: datetime) -> bool:
            stopping = now < self._stops.get(known.pod["metadata"]["name"], now)
            return not stopping and step(kubelets, known, now)

        with mock.patch.object(Kubelets, "_run_pod", unless_stopping):
            super().live(span)

    def _then_created(self, evict: Callable[..., None]) -> Callable[..., None]:
        def evicted(name: str, *, namespace: str, uid: str = "") -> None:
            self.last_node = self.api.get(PODS, name, namespace=namespace)["spec"]["nodeName"]
            self.evicted.append(name.partition("-")[0])
            assert len(self.evicted) < 100
            self._stops[name] = self.simulation.clock.now() + self.stopping
            evict(name, namespace=namespace, uid=uid)
            self._create_missing()

        return evicted

    def _create_missing(self) -> None:
        present = {found["metadata"]["labels"]["app"] for found in self.api.list(PODS).items if _counts(found)}
        for name in sorted(self.wanted.keys() - present):
            self._born += 1
            self.api.create(PODS, self.wanted[name](f"{name}-{self._born}"))


def _counts(found: Object) -> bool:
    """True if its controller creates no other pod in its place yet."""
    (owner,) = found["metadata"]["ownerReferences"]
    return owner["kind"] == "StatefulSet" or "deletionTimestamp" not in found["metadata"]


def with_spec(size: str, owner: str = "ReplicaSet", **spec: Any) -> Callable[[str], Object]:
    """Makes pods of this size with more fields in their spec."""

    def made(name: str) -> Object:
        found = pod(name, size, owner=owner)
        found["spec"] |= spec
        return found

    return made
