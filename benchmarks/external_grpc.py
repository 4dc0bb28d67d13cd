"""What one loop of Cluster Autoscaler costs the controller: every call of a loop over fifty groups, over a real socket.

python -m benchmarks.external_grpc [--groups 50] [--nodes 200]. CPU seconds of this process, client included: the wall
clock of a shared machine says nothing.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from typing import Final

import grpc

from autoscaler.clock import VirtualClock
from autoscaler.cluster.resources import PROVISIONED_NODES
from autoscaler.externalgrpc.messages import METHODS, PROVIDER
from autoscaler.externalgrpc.node_groups import launchable_of
from autoscaler.externalgrpc.server import GrpcServer
from autoscaler.externalgrpc.service import CloudProvider
from autoscaler.externalgrpc.wire import Json, decode, encode
from autoscaler.kube.custom.provisioned_node import write_provisioned_node
from autoscaler.model.capacity import CapacityPool, Launcher, Mode
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.provisioned_node import OfferingRef, Phase, Prediction, ProvisionedNode
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity

NOW: Final = datetime(2026, 11, 21, tzinfo=UTC)
POOL: Final = CapacityPool("gpu", mode=Mode.ACT, launcher=Launcher.CLUSTER_AUTOSCALER, drivers=("nvidia",))


def snapshot() -> Snapshot:
    """A pod that waits for one GPU of any kind, so that every type with one is feasible."""
    classes = tuple(
        DeviceClass(facts.name, tuple(map(Selector, facts.selectors))) for facts in builtin_device_classes(REFERENCE)
    )
    claim = ResourceClaim("default", "c", (DeviceRequest("gpu", "gpu.nvidia.com", (), count=1),), (), uid="c")
    pod = Pod(
        "default",
        "p",
        uid="p",
        containers=(Container("main", FrozenMap({"cpu": Quantity.parse("1")})),),
        claims=(PodClaim("c", "c"),),
    )
    return Snapshot(pods=(pod,), claims=FrozenMap({claim.key: claim}), classes=classes, pools=(POOL,))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--nodes", type=int, default=200, help="nodes of the pool, over all its groups")
    options = parser.parse_args()
    api, catalog, state = ApiServer(VirtualClock(NOW)), load_catalog(), snapshot()
    began = time.process_time()
    launchable = launchable_of(state, catalog, Policy(), NOW, most=options.groups)
    print(f"groups for a pending pod, once a reconcile   {time.process_time() - began:6.2f} CPU s")
    names = list(launchable.feasible)
    for number in range(options.nodes):
        candidate = launchable.candidates[names[number % len(names)]]
        api.create(PROVISIONED_NODES, write_provisioned_node(_node(number, candidate.offering)))
    provider = CloudProvider(api, lambda: "x", slices=True, most=options.groups)
    provider.update(launchable)
    server = GrpcServer.of_provider(provider.call, "127.0.0.1:0", None, lambda method, status: None)
    server.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
    for name in ("first loop", "second loop"):
        began, calls = time.process_time(), _loop(channel)
        print(f"{name:<12} {calls:>4} calls, {options.nodes} nodes    {time.process_time() - began:14.2f} CPU s")
    channel.close()
    server.stop()


def _node(number: int, offering: OfferingRef) -> ProvisionedNode:
    node = ProvisionedNode(
        name=f"gpu-{number:05}",
        pool="gpu",
        node_name=f"gpu-{number:05}",
        batch="b",
        offerings=(replace(offering, region=""),),
        prediction=Prediction(offering.instance_type, ("nvidia",), "", ""),
        phase=Phase.READY,
    )
    return replace(node, provider_id=f"simulated:///{number}")


def _loop(channel: grpc.Channel) -> int:
    """The calls of a loop; how many there were."""
    count = 0

    def call(method: str, **asked: object) -> Json:
        nonlocal count
        count += 1
        question, answer = METHODS[method]
        return decode(answer, channel.unary_unary(f"/{PROVIDER}/{method}")(encode(question, asked), timeout=60))

    call("Refresh")
    for group in call("NodeGroups")["nodeGroups"]:
        for method in ("NodeGroupTargetSize", "NodeGroupTemplateNodeInfo", "NodeGroupGetOptions"):
            call(method, id=group["id"])
        for instance in call("NodeGroupNodes", id=group["id"]).get("instances", []):
            call("NodeGroupForNode", node={"providerID": instance["id"]})
    return count


if __name__ == "__main__":
    main()
