"""Small clusters with GPU nodes: what runs there holds devices, what is pending asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer, Request, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.placement.existing import Present, present_nodes
from autoscaler.scheduling.world import World
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice
from tests.builders import CATALOG, claim, gpus, pod, snapshot

MODEL = "Large L9"


def gpu_node(name: str, cpu: str = "64", **fields: Any) -> Node:
    amounts = {"cpu": cpu, "memory": "512Gi", "pods": "110"}
    return Node(name, allocatable=FrozenMap({key: Quantity.parse(value) for key, value in amounts.items()}), **fields)


def gpu_slice(name: str, count: int, model: str = MODEL, devices: Sequence[Device] = ()) -> ResourceSlice:
    """What NVIDIA's driver would publish on a node with so many whole GPUs."""
    attributes: FrozenMap[str, Any] = FrozenMap({"type": "gpu", "productName": model})
    whole = tuple(Device(f"gpu-{i}", attributes=attributes) for i in range(count))
    return ResourceSlice(f"{name}-gpu", "gpu.nvidia.com", Pool(name), tuple(devices) or whole, NodeReach(name))


@dataclass
class Cluster:
    """Nodes with GPUs, filled pod by pod."""

    nodes: list[Node] = field(default_factory=list)
    slices: list[ResourceSlice] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    claims: list[ResourceClaim] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)

    def node(self, name: str, count: int = 8, cpu: str = "64", model: str = MODEL, **fields: Any) -> None:
        self.nodes.append(gpu_node(name, cpu, **fields))
        self.slices.append(gpu_slice(name, count, model))

    def runs(self, name: str, on: str, count: int = 1, request: Request | None = None, **fields: Any) -> Pod:
        """A running pod with the next devices of the node."""
        first = self.taken.get(on, 0)
        self.taken[on] = first + count
        devices = tuple(AllocatedDevice("gpu", "gpu.nvidia.com", on, f"gpu-{first + i}") for i in range(count))
        asked = claim(f"{name}-gpu", request or gpus(count))
        given: dict[str, Any] = {"owner": f"ReplicaSet/{name}", "node_name": on, "phase": "Running"}
        made = pod(name, asked.name, **(given | fields))
        consumer = Consumer("pods", name, made.uid)
        held = ResourceClaim(
            "default",
            asked.name,
            asked.requests,
            uid=asked.uid,
            allocation=Allocation(devices),
            reserved_for=(consumer,),
        )
        self.pods.append(made)
        self.claims.append(held)
        return made

    def waits(self, name: str, count: int = 1, request: Request | None = None, **fields: Any) -> Pod:
        made = pod(name, f"{name}-gpu", **fields)
        self.pods.append(made)
        self.claims.append(claim(f"{name}-gpu", request or gpus(count)))
        return made

    def snapshot(self, more: Iterable[Pod] = (), **fields: Any) -> Snapshot:
        return snapshot((*self.pods, *more), self.claims, nodes=tuple(self.nodes), slices=tuple(self.slices), **fields)


def present(state: Snapshot) -> Present:
    return present_nodes(state, CATALOG, World.of(state))
