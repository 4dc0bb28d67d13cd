"""A journal on an in-memory API server, and a cloud: what every test of the hands needs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from autoscaler.clock import VirtualClock
from autoscaler.cluster.api import list_all
from autoscaler.cluster.journal import Journal
from autoscaler.cluster.resources import CAPACITY_POOLS, LAUNCH_BATCHES, PROVISIONED_NODES
from autoscaler.cluster.status_memory import Backoffs
from autoscaler.execution.launch import Providers
from autoscaler.kube.custom.capacity_pool import parse_pool_status
from autoscaler.kube.custom.launch_batch import parse_launch_batch
from autoscaler.kube.custom.pool_memory import backoffs_of
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node
from autoscaler.model.capacity import CapacityPool, Limits, Mode, NodeTemplateRef
from autoscaler.model.gang import Gang
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.pod import GangRef, Pod
from autoscaler.model.provisioned_node import LaunchBatch, OfferingRef, Prediction, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.simulated.cloud import SimulatedCloud
from providers.simulated.provider import SimulatedProvider

A, B = (
    OfferingRef("p5.48xlarge", zone, CapacityType.ON_DEMAND, Decimal("55.04")) for zone in ("us-east-1a", "us-east-1b")
)
POOL = CapacityPool(
    "gpu", mode=Mode.ACT, node_template=NodeTemplateRef("SimulatedNodeTemplate", "default"), limits=Limits(nodes=10)
)

SPEC = {
    "mode": "Act",
    "nodeTemplateRef": {"kind": "SimulatedNodeTemplate", "name": "default"},
    "limits": {"nodes": 10},
}


def planned(name: str, *offerings: OfferingRef, pods: tuple[str, ...] = ()) -> PlannedNode:
    return PlannedNode(
        name=name,
        pool="gpu",
        drivers=("nvidia",),
        offerings=offerings or (A, B),
        node=Node(name, labels=FrozenMap({"team": "x", "kubernetes.io/hostname": name})),
        predicted=(),
        pods=pods,
        devices_used=(),
        devices_total=8,
        usd_per_hour=Decimal("55.04"),
        prediction=Prediction("p5.48xlarge", ("nvidia",), "c", "s"),
    )


@dataclass
class Desk:
    """Everything a test touches. `restarted` is the same desk with all memory lost."""

    clock: VirtualClock
    api: ApiServer
    cloud: SimulatedCloud
    journal: Journal
    backoffs: Backoffs

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def providers(self) -> Providers:
        return Providers({"SimulatedNodeTemplate": SimulatedProvider(self.cloud)}, cluster="uid-1")

    def record(self, *launches: PlannedNode, gang: bool = False) -> None:
        pods = [
            Pod(*key.split("/"), gang=GangRef("default", "g") if gang else None)
            for launch in launches
            for key in launch.pods
        ]
        gangs = FrozenMap({"default/g": Gang("default", "g", "PodGroup", len(pods))} if gang else {})
        self.journal.record(Plan(launches=launches), Snapshot(pods=tuple(pods), gangs=gangs, pools=(POOL,)), self.now)

    def batches(self) -> tuple[LaunchBatch, ...]:
        return tuple(parse_launch_batch(item) for item in list_all(self.api, LAUNCH_BATCHES)[0])

    def nodes(self) -> tuple[ProvisionedNode, ...]:
        return tuple(parse_provisioned_node(item) for item in list_all(self.api, PROVISIONED_NODES)[0])

    def pool_status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.api.get(CAPACITY_POOLS, "gpu").get("status", {})
        return status

    def restarted(self) -> Desk:
        desk = Desk(self.clock, self.api, self.cloud, Journal(self.api), Backoffs(self.api))
        desk.journal.resume(desk.batches(), desk.nodes(), desk.now)
        pool = desk.api.get(CAPACITY_POOLS, "gpu")
        desk.backoffs.resume(backoffs_of(parse_pool_status(pool), "gpu"))
        return desk


def new_desk() -> Desk:
    """An empty cluster with one pool in mode Act, and a cloud that sells everything."""
    clock = VirtualClock()
    api = ApiServer(clock)
    api.create(CAPACITY_POOLS, {"metadata": {"name": "gpu"}, "spec": SPEC})
    return Desk(clock, api, SimulatedCloud(clock), Journal(api), Backoffs(api))
