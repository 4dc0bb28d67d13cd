"""The Google Cloud adapter in a real cluster: the controller calls the fake Compute Engine over HTTP, as Google's REST
clients do, and its machines join as nodes of a GKE node pool.

A machine joins once it runs, under its instance's name, with the labels of its node pool. From then on KWOK plays its
kubelet, and the predicted slices are what its drivers publish.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from autoscaler.cluster.api import NotFoundError
from autoscaler.cluster.resources import (
    DAEMON_SETS,
    GCP_NODE_TEMPLATES,
    LAUNCH_BATCHES,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_SLICES,
)
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from tests.e2e.harness.gpu_pods import TEMPLATE, pod
from tests.e2e.harness.installation import BRISK, Controller, Installation
from tests.e2e.harness.steered import GCE, SteeredClock
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.gke import DRA_LABELS, NodePool
from tests.fakes.gce.server import Server
from tests.fakes.gce.state import PROJECT, Behaviour, Group, Machine
from tests.faults.gcp.world import Inside, booted
from tests.faults.world import DRIVER

POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: GCPNodeTemplate
metadata: {name: gpu}
spec:
  cluster: {name: c1, location: us-central1}
  nodePools: [l4]
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  nodeTemplateRef: {kind: GCPNodeTemplate, name: gpu}
  requirements:
    - {key: topology.kubernetes.io/zone, operator: In, values: [us-central1-a, us-central1-b]}
    - {key: node.kubernetes.io/instance-type, operator: In, values: [g2-standard-4]}
  taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
  disruption: {after: 1s}
"""
TYPE: Final = "g2-standard-4"
ZONES: Final = ("us-central1-a", "us-central1-b")
NODE_POOL: Final = "l4"
# What the node pool was made with, and what GKE adds to it.
LABELS: Final = {
    labels.POOL: "gpu",
    labels.GKE_NODE_POOL: NODE_POOL,
    labels.GKE_ACCELERATOR: "nvidia-l4",
    **DRA_LABELS,
}
# GKE gives it to node pools with GPUs, and adds what tolerates it to pods that ask for an extended resource only.
TAINT: Final = Taint("nvidia.com/gpu", "present", "NoSchedule")
TOLERANT: Final = "  tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n"
# Google takes longer for all of it; nobody waits for that here.
SWIFT: Final = Behaviour(*[timedelta(seconds=0.5)] * 4)


class Zones:
    """A GKE node pool of two zones beside the cluster, and what lets its machines join."""

    def __init__(self, cluster: Installation, clock: SteeredClock) -> None:
        self.cluster = cluster
        self.fake = FakeGce(clock, SWIFT)
        self._clock = clock
        self._server = Server()
        self._server.fake = self.fake
        self._joined: set[int] = set()
        for zone in ZONES:
            base = f"gke-c1-{NODE_POOL}-0a1b2c3{zone[-1]}"
            group = Group(f"{base}-grp", zone, base, TYPE, accelerator="nvidia-l4", accelerators=1)
            group.kube_labels, group.kube_taints = LABELS, (TAINT,)
            self.fake.project.add(group)
        pool = NodePool(tuple(self.fake.project.groups), machine_type=TYPE, labels={**DRA_LABELS, labels.POOL: "gpu"})
        self.fake.clusters.pools[NODE_POOL] = pool

    def controller(self, log: str) -> AbstractContextManager[Controller]:
        """The controller, whose calls end in the fake."""
        return self.cluster.controller(log, clock=self._clock, **{GCE: self._server.url})

    def alive(self) -> list[Machine]:
        """The instances that run or start."""
        with self._server.lock:
            self.fake.project.catch_up()
            return [one for one in self.fake.project.machines.values() if one.ended is None]

    def runs(self, name: str) -> bool:
        """Whether the pod runs, after letting machines that run join."""
        for machine in self.alive():
            if machine.id not in self._joined and self.fake.project.status(machine) == "RUNNING":
                self._joined.add(machine.id)
                inside = Inside(self.fake).launches[str(machine.id)]
                self.cluster.join(inside.request, booted(machine))
        return self.cluster.running(name)

    def is_empty(self) -> bool:
        """Whether no node is left. GKE's cloud controller deletes the Node of an instance that is gone."""
        with self._server.lock:
            self.fake.project.catch_up()
            there = {one.name for one in self.fake.project.machines.values() if self.fake.project.status(one)}
        for node in self.cluster.api.list(NODES).items:
            if node["metadata"]["name"] not in there:
                with suppress(NotFoundError):  # the controller was faster
                    self.cluster.api.delete(NODES, node["metadata"]["name"])
        return self.cluster.is_empty()

    def leave(self, name: str) -> None:
        """The pod goes, and with it everything it caused."""
        api = self.cluster.api
        api.delete(PODS, name, namespace="default")
        self.cluster.wait_until(self.is_empty, "no node")
        for resource in (LAUNCH_BATCHES, RESOURCE_SLICES):
            self.cluster.wait_until(lambda kind=resource: not api.list(kind).items, f"no {resource}")  # type: ignore[misc]
        assert self.alive() == []
        assert all(not group.members for group in self.fake.project.groups.values())


@pytest.fixture(scope="module")
def zones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zones]:
    settings: Any = {**BRISK, "cluster": {"providers": ["gcp"]}, "gcp": {"project": PROJECT}}
    folder: Path = tmp_path_factory.mktemp("gcp")
    with ExitStack() as stack:
        values = {"settings": settings, "rbac": {"gcp": True}}
        cluster = stack.enter_context(Installation(folder, values=values))
        cluster.api.create(DAEMON_SETS, DRIVER)
        cluster.apply(POOL + "---" + TEMPLATE)
        yield Zones(cluster, SteeredClock(folder / "clock"))


def test_a_pod_gets_an_instance_of_the_node_pool_and_gives_it_back(zones: Zones) -> None:
    api, calls = zones.cluster.api, zones.fake.calls
    zones.cluster.apply(pod("work") + TOLERANT)
    with zones.controller("work.log"):
        zones.cluster.wait_until(lambda: zones.runs("work"), "a running pod")
        (machine,) = zones.alive()
        (node,) = api.list(NODES).items
        assert zones.cluster.pods()["work"]["spec"]["nodeName"] == node["metadata"]["name"] == machine.name
        assert {**node["metadata"]["labels"], **LABELS} == node["metadata"]["labels"]
        (known,) = api.list(PROVISIONED_NODES).items
        provider_id = f"gce://{PROJECT}/{machine.zone}/{machine.name}"
        assert known["status"]["providerID"] == node["spec"]["providerID"] == provider_id
        (piece,) = api.list(RESOURCE_SLICES).items
        assert (piece["spec"]["nodeName"], piece["spec"]["driver"]) == (machine.name, "gpu.nvidia.com")
        assert (calls["createInstances"], calls["deleteInstances"]) == (1, 0)
        # The API server keeps what the custom resource declares, and nothing else.
        status: Any = api.get(GCP_NODE_TEMPLATES, "gpu")["status"]
        assert [(one["zone"], one["instanceType"]) for one in status["groups"]] == list(product(ZONES, (TYPE,)))
        assert {one["nodePool"] for one in status["groups"]} == {NODE_POOL}
        zones.leave("work")
        assert calls["deleteInstances"] == 1


def test_a_zone_without_stock_sends_the_purchase_to_the_next(zones: Zones) -> None:
    """Google accepts the call, and says afterwards that nothing is left."""
    first, second = ZONES
    zones.fake.project.stock[TYPE, first, "STANDARD"] = 0
    before = zones.fake.calls["createInstances"]
    zones.cluster.apply(pod("elsewhere") + TOLERANT)
    with zones.controller("elsewhere.log"):
        zones.cluster.wait_until(lambda: zones.runs("elsewhere"), "a running pod")
        (machine,) = zones.alive()
        assert machine.zone == second
        assert zones.fake.calls["createInstances"] == before + 2
        short = next(group for group in zones.fake.project.groups.values() if group.zone == first)
        assert [code for _, _, (code, _) in short.history] == ["ZONE_RESOURCE_POOL_EXHAUSTED"]
        zones.leave("elsewhere")
