"""A cluster with many pods that fit nowhere, and one that comes beside them; in memory, under the production loop."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.resources import CAPACITY_POOLS, CLAIM_TEMPLATES, LAUNCH_BATCHES, PODS, Resource
from autoscaler.loop.loop import Loop, Recorded
from autoscaler.simulation.simulation import TEMPLATE_KIND, Simulation
from tests.crash.life import START, small_catalog
from tests.unit.cluster.odd import OddApi

_POOL: Final[Object] = {
    "metadata": {"name": "gpu"},
    "spec": {
        "mode": "Act",
        "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}],
        "nodeTemplateRef": {"kind": TEMPLATE_KIND, "name": "gpu"},
        "drivers": {"profiles": ["nvidia"]},
        "limits": {"nodes": 4},
    },
}


def _template(name: str, count: int) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": count}}
    return {"metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": [request]}}}}


def _pod(name: str, template: str) -> Object:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return {"metadata": {"name": name}, "spec": {"containers": [container], "resourceClaims": claims}}


@dataclass
class Crowd:
    """A cluster with so many pods that fit nowhere; `events` wait until somebody writes them."""

    pods: int
    simulation: Simulation = field(init=False)
    api: OddApi = field(init=False)
    events: EventQueue = field(init=False)
    loop: Loop = field(init=False)
    before_launch: Counter[tuple[str, str]] = field(default_factory=Counter)
    announced_at: float = 0.0

    def __post_init__(self) -> None:
        self.simulation = Simulation(catalog=small_catalog(), start=START)
        self.api = OddApi(self.simulation.api)
        self.events = EventQueue(self.api)
        self.loop = self.simulation.new_loop(self.api, events=self.events, announce=self._announce)
        self._create(CAPACITY_POOLS, _POOL)
        self._create(CLAIM_TEMPLATES, _template("hopeless", 500))
        self._create(CLAIM_TEMPLATES, _template("one", 1))
        for number in range(self.pods):
            self._create(PODS, _pod(f"hopeless-{number}", "hopeless"))
        self.simulation.settle_cluster()

    def _create(self, resource: Resource, manifest: Object) -> None:
        self.simulation.api.create(resource, manifest)

    def _announce(self, recorded: Recorded) -> None:
        """Right before something is launched."""
        if recorded.pending.launches and not self.before_launch:
            self.before_launch = Counter(self.api.written)
            self.announced_at = time.process_time()

    def arrive(self) -> float:
        """A pod that can be helped comes; CPU seconds from the beginning of the round to its launch."""
        self._create(PODS, _pod("good", "one"))
        self.simulation.settle_cluster()
        self.api.written.clear()
        began = time.process_time()
        self.loop.tick()
        assert self.simulation.api.list(LAUNCH_BATCHES).items
        return self.announced_at - began
