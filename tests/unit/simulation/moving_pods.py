"""Controllers that create an evicted pod again at once, like a ReplicaSet, or after its end, like a StatefulSet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from unittest import mock

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import PODS
from instance_catalog.dataclass import replace
from tests.crash.life import START
from tests.unit.simulation.test_consolidation import Cluster, pod


class AtOnce(Cluster):
    """The pod that replaces an evicted one is created before that one has stopped. `evicted`: the pods' apps, in order.

    `stopping`: StatefulSets; the next pod is created only so long after the eviction.
    """

    stopping: timedelta | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.evicted: list[str] = []
        self.last_node = ""
        self._stopped: dict[str, datetime] = {}
        mock.patch.object(self.api, "evict", self._then_created(self.api.evict)).start()

    def serve_pod(self, name: str, make: Callable[[str], Object]) -> None:
        self.wanted[name] = make
        self._create_missing()

    def slow_to_end(self, shutdown: timedelta) -> None:
        """Machines need so long to end; their Nodes are there until then."""
        self.simulation.cloud.behaviour = replace(self.simulation.cloud.behaviour, shutdown=shutdown)

    def _then_created(self, evict: Callable[..., None]) -> Callable[..., None]:
        def evicted(name: str, *, namespace: str, uid: str = "") -> None:
            app = name.partition("-")[0]
            self.last_node = self.api.get(PODS, name, namespace=namespace)["spec"]["nodeName"]
            self.evicted.append(app)
            assert len(self.evicted) < 100
            self._stopped[app] = self.simulation.clock.now() + (self.stopping or timedelta(0))
            evict(name, namespace=namespace, uid=uid)
            self._create_missing()

        return evicted

    def _create_missing(self) -> None:
        pods = self.api.list(PODS).items
        there = [found for found in pods if self.stopping is not None or "deletionTimestamp" not in found["metadata"]]
        present = {found["metadata"]["labels"]["app"] for found in there}
        for name in sorted(self.wanted.keys() - present):
            if self.simulation.clock.now() >= self._stopped.get(name, START):
                self._born += 1
                self.api.create(PODS, self.wanted[name](f"{name}-{self._born}"))


def with_spec(size: str, **spec: object) -> Callable[[str], Object]:
    """Makes pods of this size with more fields in their spec."""

    def made(name: str) -> Object:
        found = pod(name, size)
        found["spec"] |= spec
        return found

    return made
