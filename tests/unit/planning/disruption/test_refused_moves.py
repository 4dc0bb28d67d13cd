"""After which changes a node whose move was refused is tried again before its six hours are over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.model.capacity import Limits
from autoscaler.model.plan import Placement, Plan, Target
from autoscaler.model.pod import Container, PodAffinityTerm, PodClaim, TopologySpread, WhenUnsatisfiable
from autoscaler.model.resource_claim import (
    AllocatedDevice,
    Allocation,
    Consumer,
    DeviceRequest,
    FirstAvailable,
    Request,
)
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.model.storage import VolumeAttachment
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice
from instance_catalog.kubernetes.taint import Taint
from tests.builders import NOW, claim, gpus, pod
from tests.unit.planning.disruption.gpu_nodes import Cluster, gpu_node, gpu_slice
from tests.unit.planning.disruption.moving import DEAR, POOL, launch, moved, node, present, served, step

FIVE = timedelta(minutes=5)


def cluster(request: Request | None = None, count: int = 1, **fields: Any) -> Cluster:
    """The pod that may move runs on `old`. `full` has 4 cores and no GPU left, `half` has one, `idle` has all."""
    made = Cluster()
    made.node("old")
    made.node("full", count=2)
    made.node("half", count=2)
    made.node("idle", count=1, cpu="8")
    made.runs("web", "old", count, request, **fields)
    made.runs("a", "full", cpu="40")
    made.runs("b", "full", cpu="20")
    made.runs("h", "half")
    return made


def seen_by_loop(made: Cluster) -> Snapshot:
    """One ProvisionedNode may be tried."""
    return made.snapshot(pools=(POOL,), provisioned=(node("old"),))


def tries(before: Snapshot, after: Snapshot, answer: Plan | None = None) -> int:
    """How often the node is tried five minutes after the first try, when the cluster has changed."""
    seen: list[Snapshot] = []

    def tried(without: Snapshot) -> Plan:
        seen.append(without)
        return answer or Plan()

    first = step(before, tried, plan=present(before))
    assert len(seen) == 1
    step(after, tried, first.tried, plan=present(after), later=FIVE)
    return len(seen) - 1


def ended(name: str) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        made.pods = [replace(pod, phase="Succeeded") if pod.name == name else pod for pod in made.pods]

    return change


def runs(name: str, on: str) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        made.runs(name, on)

    return change


def serves(on: str) -> Callable[[Cluster], None]:
    return lambda made: made.pods.append(served("c", on))


def comes(name: str, **fields: Any) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        made.nodes.append(gpu_node(name, **fields))
        made.slices.append(gpu_slice(name, 1))

    return change


def goes(name: str) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        made.nodes = [found for found in made.nodes if found.name != name]
        made.slices = [found for found in made.slices if found.reach.node_name != name]

    return change


def tainted(name: str) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        taints = (Taint("team", "a", "NoSchedule"),)
        made.nodes = [replace(found, taints=taints) if found.name == name else found for found in made.nodes]

    return change


def larger(name: str) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        made.nodes = [gpu_node(name, "96") if found.name == name else found for found in made.nodes]

    return change


def more_devices(name: str) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        made.slices = [gpu_slice(name, 3) if found.pool.name == name else found for found in made.slices]

    return change


def nothing(_: Cluster) -> None:
    pass


def resized(name: str, cpu: str) -> Callable[[Cluster], None]:
    """In place: the pod keeps its uid."""
    containers = pod(name, cpu=cpu).containers

    def change(made: Cluster) -> None:
        made.pods = [replace(one, containers=containers) if one.name == name else one for one in made.pods]

    return change


def gone(name: str) -> Callable[[Cluster], None]:
    """The claim of a pod that was deleted before."""

    def change(made: Cluster) -> None:
        made.claims = [found for found in made.claims if found.name != f"{name}-gpu"]

    return change


def deleted(name: str) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        made.pods = [found for found in made.pods if found.name != name]

    return change


def limits_known(name: str) -> Callable[[Cluster], None]:
    def change(made: Cluster) -> None:
        found: dict[str, Any] = {"volume_limits": FrozenMap({"disk": 9})}
        made.nodes = [replace(one, **found) if one.name == name else one for one in made.nodes]

    return change


def with_network_cards(made: Cluster) -> Cluster:
    """Pod `a` on `full` has two of them beside its GPU."""
    cards = AllocatedDevice("card", "net", "net", "card-0"), AllocatedDevice("card", "net", "net", "card-1")
    made.claims.append(replace(claim("a-net"), allocation=Allocation(cards)))
    made.pods = [
        replace(found, claims=(*found.claims, PodClaim("net", "a-net"))) if found.name == "a" else found
        for found in made.pods
    ]
    return made


def with_daemon(made: Cluster) -> Cluster:
    made.pods.append(served("log", "half", owner="DaemonSet/log"))
    return made


def orphaned(made: Cluster) -> Cluster:
    deleted("b")(made)
    return made


def with_plugin(made: Cluster) -> Cluster:
    """The node once had a device plugin; its GPUs are served by a DeviceClass now."""
    none, one = FrozenMap({"example.com/gpu": Quantity.of(0)}), FrozenMap({"example.com/gpu": Quantity.of(1)})
    made.nodes = [replace(found, allocatable=found.allocatable.with_items(dict(none.items()))) for found in made.nodes]
    made.pods[0] = replace(made.pods[0], claims=(), containers=(Container("main", one),))
    return made


OTHER_PODS: dict[str, Any] = {"pod_affinity": (PodAffinityTerm(None, "kubernetes.io/hostname"),)}
ZONES = TopologySpread(1, "topology.kubernetes.io/zone", WhenUnsatisfiable.DO_NOT_SCHEDULE, None)
SPREAD: dict[str, Any] = {"topology_spread": (ZONES,)}
ZONE = "topology.kubernetes.io/zone"
APART: dict[str, Any] = {"pod_anti_affinity": (PodAffinityTerm(None, ZONE),)}
ALONE: dict[str, Any] = {"pod_anti_affinity": (PodAffinityTerm(None, "kubernetes.io/hostname"),)}
LOOSE: dict[str, Any] = {"topology_spread": (replace(ZONES, when_unsatisfiable=WhenUnsatisfiable.SCHEDULE_ANYWAY),)}
ONE_OR_TWO = FirstAvailable("gpu", (gpus(2, name="two"), gpus(name="one")))


@pytest.mark.parametrize(
    ("made", "change", "again"),
    [
        pytest.param(cluster(), nothing, False, id="all is as it was"),
        pytest.param(cluster(), ended("b"), True, id="a pod ended, and there is room"),
        pytest.param(cluster(count=2), ended("b"), False, id="one GPU is free, two are needed"),
        pytest.param(cluster(ONE_OR_TWO), ended("b"), True, id="one of two alternatives may fit"),
        pytest.param(cluster(cpu="30"), ended("b"), False, id="too little CPU is free"),
        pytest.param(cluster(cpu="24"), ended("b"), True, id="as much CPU is free as is needed"),
        pytest.param(cluster(), runs("c", "old"), True, id="it has another pod itself"),
        pytest.param(cluster(), runs("c", "full"), False, id="a node is fuller"),
        pytest.param(cluster(), serves("half"), False, id="a node is fuller, and still has room"),
        pytest.param(cluster(**OTHER_PODS), runs("c", "full"), True, id="a pod came that it may have to be with"),
        pytest.param(cluster(**SPREAD), runs("c", "full"), True, id="a pod came where it is spread"),
        pytest.param(cluster(**LOOSE), runs("c", "full"), False, id="how it is spread is a wish"),
        pytest.param(cluster(cpu="30", **APART), ended("b"), True, id="a pod went from the zone of other nodes"),
        pytest.param(cluster(cpu="30", **ALONE), ended("b"), False, id="a pod went that only its own node matters to"),
        pytest.param(cluster(cpu="30"), resized("web", "2"), True, id="it became smaller itself"),
        pytest.param(cluster(), resized("h", "0.5"), True, id="a pod on a node with room became smaller"),
        pytest.param(cluster(), resized("a", "0.5"), False, id="a pod on a node without GPUs became smaller"),
        pytest.param(orphaned(cluster()), gone("b"), True, id="the claim of a deleted pod was released"),
        pytest.param(with_network_cards(cluster()), ended("b"), True, id="a GPU is free beside the cards of others"),
        pytest.param(with_daemon(cluster()), deleted("log"), True, id="a DaemonSet ended"),
        pytest.param(with_plugin(cluster()), ended("h"), True, id="a DeviceClass serves the extended resource"),
        pytest.param(cluster(), limits_known("half"), True, id="a node publishes its attach limits"),
        pytest.param(cluster(), runs("c", "idle"), False, id="an empty node stays now, without a GPU left"),
        pytest.param(cluster(), serves("idle"), True, id="an empty node stays now"),
        pytest.param(cluster(), comes("new"), True, id="a node came"),
        pytest.param(cluster(), comes("new", cpu="0"), False, id="a node came with too little CPU"),
        pytest.param(cluster(count=2), comes("new"), False, id="a node came with too few GPUs"),
        pytest.param(cluster(), goes("idle"), True, id="a node went, perhaps a limit allows another one now"),
        pytest.param(cluster(), tainted("idle"), True, id="a node has another taint"),
        pytest.param(cluster(), tainted("full"), False, id="a full node has another taint"),
        pytest.param(cluster(), larger("idle"), True, id="a node has more CPU"),
        pytest.param(cluster(), more_devices("full"), True, id="a node has more devices"),
    ],
)
def test_changes(made: Cluster, change: Callable[[Cluster], None], again: bool) -> None:
    before = seen_by_loop(made)
    change(made)
    assert tries(before, seen_by_loop(made)) == again


def test_a_node_that_goes_makes_no_move_cheaper() -> None:
    before = seen_by_loop(made := cluster())
    goes("idle")(made)
    assert tries(before, seen_by_loop(made), moved(launch(price=DEAR))) == 0


@pytest.mark.parametrize(
    ("limits", "again"),
    [
        (Limits(nodes=2), True),
        (Limits(nodes=20), False),
        (Limits(accelerators=16), True),
        (Limits(accelerators=160), False),
        (Limits(usd_per_hour=Decimal(90)), True),
        (Limits(usd_per_hour=Decimal(900)), False),
    ],
)
def test_a_node_that_goes_lets_a_cheaper_one_come_where_a_limit_is_reached(limits: Limits, again: bool) -> None:
    def seen(*names: str) -> Snapshot:
        pools = (replace(POOL, limits=limits),)
        return made.snapshot(pools=pools, provisioned=tuple(map(node, names)))

    made = cluster()
    before = seen("old", "idle")
    goes("idle")(made)
    assert tries(before, seen("old"), moved(launch(price=DEAR))) == again


def test_a_move_that_pods_in_line_prevent_is_tried_again() -> None:
    """They wait at a limit, and would get the place."""
    before = seen_by_loop(made := cluster())
    placed = moved(launch(), pods=["default/web", "default/waiting"])
    assert tries(before, seen_by_loop(made), placed) == 1


def shares(made: Cluster) -> None:
    """A claim of the pod that may move is also that of a pod elsewhere."""
    name = "web-gpu"
    second = Consumer("pods", "c", "uid-c")
    made.claims = [
        replace(found, reserved_for=(*found.reserved_for, second)) if found.name == name else found
        for found in made.claims
    ]


def test_a_claim_that_others_hold_can_be_released_by_any_change() -> None:
    made = cluster()
    shares(made)
    before = seen_by_loop(made)
    runs("c", "full")(made)
    assert tries(before, seen_by_loop(made)) == 1


def test_devices_that_several_claims_share_may_have_room() -> None:
    made = cluster()
    devices = [Device(f"gpu-{i}", allow_multiple_allocations=True) for i in range(2)]
    made.slices[1] = gpu_slice("full", 2, devices=devices)
    made.pods.append(served("c", "full"))
    before = seen_by_loop(made)
    ended("c")(made)
    assert tries(before, seen_by_loop(made)) == 1


def test_access_for_administrators_takes_no_device() -> None:
    made = cluster(DeviceRequest("gpu", "gpu.nvidia.com", count=2, admin_access=True))
    made.pods.append(served("c", "full"))
    before = seen_by_loop(made)
    ended("c")(made)
    assert tries(before, seen_by_loop(made)) == 1


def test_an_anti_affinity_of_a_pod_elsewhere() -> None:
    """It keeps pods out of a whole zone."""
    made = cluster(cpu="30")
    made.pods = [replace(found, **APART) if found.name == "b" else found for found in made.pods]
    before = seen_by_loop(made)
    deleted("b")(made)
    assert tries(before, seen_by_loop(made)) == 1


def test_a_volume_that_is_detached_after_its_pod() -> None:
    after = seen_by_loop(cluster())
    before = replace(after, attachments=(VolumeAttachment("half", "disk", "volume"),))
    assert tries(before, after) == 1
    assert tries(after, before) == 0


def test_a_waiting_pod_gives_its_place_up() -> None:
    state, seen = seen_by_loop(cluster()), list[Snapshot]()

    def tried(without: Snapshot) -> Plan:
        seen.append(without)
        return Plan()

    places = present(state, placements=(Placement("default/waits", Target.EXISTING, "half"),))
    first = step(state, tried, plan=places)
    second = step(state, tried, first.tried, plan=places, later=FIVE)
    assert len(seen) == 1
    step(state, tried, second.tried, plan=present(state), later=2 * FIVE)
    assert len(seen) == 2


def test_devices_of_no_single_node() -> None:
    """A pod on a full node may hold one that a pod can use on every node."""
    made = cluster(cpu="30")
    network = ResourceSlice("net", "net", Pool("net"), (Device("card-0"),), NodeReach(all_nodes=True))

    def seen() -> Snapshot:
        found = seen_by_loop(made)
        return replace(found, slices=(*found.slices, network))

    before = seen()
    ended("b")(made)
    assert tries(before, seen()) == 1
    assert tries(seen(), seen_by_loop(made)) == 1


def test_a_pod_that_outlives_its_expected_duration_may_run_for_long() -> None:
    def seen(minutes: int) -> Snapshot:
        expected: dict[str, Any] = {"created": NOW.timestamp(), "expected_duration": timedelta(minutes=minutes)}
        return seen_by_loop(cluster(**expected))

    assert tries(short := seen(4), short, moved(launch(price=DEAR))) == 1
    assert tries(long := seen(40), long, moved(launch(price=DEAR))) == 0


@pytest.mark.parametrize(
    "changed",
    [{"classes": ()}, {"taint_rules": ("rule",)}, {"daemon_sets": (DaemonSet("default", "log", pod("log")),)}],
)
def test_whatever_every_answer_depends_on(changed: dict[str, Any]) -> None:
    before = seen_by_loop(cluster())
    assert tries(before, replace(before, **changed)) == 1
