"""Pods and nodes come and go for months: what the controller remembers of them does not become more."""

from __future__ import annotations

import gc
from collections import Counter
from datetime import timedelta

import pytest

from autoscaler.cluster.publishing.event_queue import EventQueue
from autoscaler.cluster.resources import CAPACITY_POOLS, CLAIM_TEMPLATES, NODES, PODS
from autoscaler.simulation.simulation import TEMPLATE_KIND, Simulation
from tests.crash.life import START, small_catalog

_ROOMS = ("autoscaler.", "instance_catalog.")
# Not counted: what the simulated API server remembers of every change and the cloud of every machine, and memos of at
# most a few hundred entries.
_OTHERS = (
    "autoscaler.simulation.",
    "autoscaler.cluster.api.WatchEvent",
    "autoscaler.cluster.publishing.event_queue.",
    "autoscaler.kube.custom.",
    "autoscaler.model.provisioned_node.OfferingRef",  # of the same memo
    "instance_catalog.frozen_map.",
    "instance_catalog.kubernetes.node_selector.",
)
_POOL = {
    "metadata": {"name": "gpu"},
    "spec": {
        "mode": "Act",
        "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}],
        "nodeTemplateRef": {"kind": TEMPLATE_KIND, "name": "gpu"},
        "drivers": {"profiles": ["nvidia"]},
        "limits": {"nodes": 100},
        "disruption": {"after": "1s"},
    },
}
_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
_TEMPLATE = {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [_REQUEST]}}}}
_PODS = 3
_HOUR = timedelta(hours=1)


class Churn:
    """A cluster in which pods with claims come and go."""

    def __init__(self) -> None:
        self.simulation = Simulation(catalog=small_catalog(), start=START)
        self.events = EventQueue(self.simulation.api)
        self.simulation.new_loop(events=self.events)
        self.simulation.api.create(CAPACITY_POOLS, _POOL)
        self.simulation.api.create(CLAIM_TEMPLATES, _TEMPLATE)
        self.cycles = 0

    def live(self, cycles: int) -> None:
        """So often pods come, run on nodes of their own and end, and the nodes with them."""
        for _ in range(cycles):
            self.cycles += 1
            names = [f"work-{self.cycles}-{number}" for number in range(_PODS)]
            container = {"name": "main", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}
            spec = {
                "containers": [container],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
            }
            for name in names:
                self.simulation.api.create(PODS, {"metadata": {"name": name}, "spec": spec})
            self._pass()
            phases = {pod["status"]["phase"] for pod in self.simulation.api.list(PODS).items}
            assert phases == {"Running"}
            self.simulation.loop.warm_up()
            for name in names:
                self.simulation.api.delete(PODS, name, namespace="default", grace_seconds=0)
            self._pass()
            assert not self.simulation.api.list(NODES).items
            self.events.drain()

    def _pass(self) -> None:
        self.simulation.run(self.simulation.clock.now() + _HOUR)


def _held() -> Counter[str]:
    """Objects of the controller that are held, by type."""
    gc.collect()
    kinds = (type(found) for found in gc.get_objects())
    names = Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return Counter({n: c for n, c in names.items() if n.startswith(_ROOMS) and not n.startswith(_OTHERS)})


@pytest.mark.slow
def test_what_is_remembered_does_not_grow_with_what_has_been() -> None:
    churn = Churn()
    churn.live(5)  # by then the memos of a few entries are full
    before = _held()
    churn.live(7)
    # Each of the 21 nodes, devices, pods and claims would leave something behind.
    grown = {name: (before[name], count) for name, count in _held().items() if count > before[name] + _PODS}
    assert grown == {}
