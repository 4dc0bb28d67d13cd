"""Nodes whose devices take of their own amounts: facts of upstream's tests (v1.37.2).

pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources_test.go: NodeFitsNativeResources and
ValidatePodLevelResourcesCoverDRA. `fit_one` and `World` around them as kube-scheduler's cycles are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from autoscaler.dra.claims.node_allocatable import ClaimShare
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.reason import NO_SUBJECT, Code
from autoscaler.model.resource_claim import Consumer, DeviceRequest, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import DoesNotFit, Fits
from autoscaler.report.reasons import text_of
from autoscaler.scheduling.claim_amounts import too_little
from autoscaler.scheduling.fit import fit, fit_one
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.resources import pod_requests, scored_requests
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    Device,
    NodeAllocatable,
    NodeMapping,
    NodeOverhead,
    NodeReach,
    Pool,
    ResourceSlice,
)

ON = profile_for("1.37.1").with_gates(node_allocatable_resources=True)


def amounts(**texts: str) -> FrozenMap[str, Quantity]:
    return FrozenMap({name.replace("_", "-"): Quantity.parse(text) for name, text in texts.items()})


def share(mapped: Mapping[str, str] | None = None, *containers: str, **overheads: Mapping[str, str]) -> ClaimShare:
    parts = (mapped or {}, overheads.get("per_pod", {}), overheads.get("per_container", {}))
    return ClaimShare("claim", containers, *({k: Quantity.parse(v) for k, v in part.items()} for part in parts))


def box(name: str = "c1", *, limits: Mapping[str, str] | None = None, **requests: str) -> Container:
    bounds = FrozenMap({key: Quantity.parse(text) for key, text in (limits or {}).items()})
    return Container(name, FrozenMap({**bounds, **amounts(**requests)}), limits=bounds)


def state(*pods: Pod, **allocatable: str) -> NodeState:
    return NodeState.of(Node("n1", allocatable=amounts(**allocatable)), pods)


def short(pod: Pod, where: NodeState, *shares: ClaimShare) -> list[str]:
    return [text_of(replace(reason, subject=NO_SUBJECT)) for reason in too_little(pod, where, shares)]


def plain(*containers: Container, **fields: Any) -> Pod:
    return replace(Pod("ns", "p", "u", containers=containers), **fields)


@pytest.mark.parametrize(
    ("pod", "where", "taken", "expected"),
    [
        pytest.param(plain(box()), state(), share({"cpu": "0"}), [], id="nothing"),
        pytest.param(
            plain(box(cpu="500m", memory="512Mi")),
            state(cpu="2", memory="2Gi"),
            share({"cpu": "1500m", "memory": "1536Mi"}),
            [],
            id="just enough",
        ),
        pytest.param(
            plain(box(cpu="500m")),
            state(cpu="2"),
            share({"cpu": "1501m"}),
            ["Insufficient cpu: 2.001 requested, 1.501 of it by claims, 2 free"],
            id="a thousandth of a core too much",
        ),
        pytest.param(
            plain(box()),
            state(plain(box(memory="4Gi"), node_name="n1"), memory="5Gi"),
            share({"memory": "3Gi"}),
            ["Insufficient memory: 3Gi requested, 3Gi of it by claims, 1Gi free"],
            id="beside another pod",
        ),
        pytest.param(
            plain(box()),
            state(plain(box(), node_name="n1", claim_amounts=amounts(memory="4Gi")), memory="5Gi"),
            share({"memory": "3Gi"}),
            ["Insufficient memory: 3Gi requested, 3Gi of it by claims, 1Gi free"],
            id="beside what the claims of another pod take",
        ),
        pytest.param(
            plain(box(), init_containers=(box("i", cpu="3"),)),
            state(cpu="4"),
            share({"cpu": "2"}),
            ["Insufficient cpu: 5 requested, 2 of it by claims, 4 free"],
            id="on top of the largest init step",
        ),
        pytest.param(
            plain(box(), overhead=amounts(cpu="1")),
            state(cpu="2"),
            share({"cpu": "2"}),
            ["Insufficient cpu: 3 requested, 2 of it by claims, 2 free"],
            id="with the pod's overhead",
        ),
        pytest.param(
            plain(box()),
            state(hugepages_2Mi="1Gi", hugepages_1Gi="2Gi"),
            share({"hugepages-2Mi": "2Gi", "hugepages-1Gi": "2Gi"}),
            ["Insufficient hugepages-2Mi: 2Gi requested, 2Gi of it by claims, 1Gi free"],
            id="huge pages",
        ),
    ],
)
def test_what_the_node_lacks(pod: Pod, where: NodeState, taken: ClaimShare, expected: list[str]) -> None:
    assert short(pod, where, taken) == expected


REQUEST = "pod level request for {} is insufficient to cover the aggregated container and node-allocatable DRA requests"
LIMIT = "pod level limit for memory is insufficient to cover the limit and DRA overhead for container c1"
ROOM = state(cpu="64", memory="256Gi")


@pytest.mark.parametrize(
    ("pod", "taken", "expected"),
    [
        pytest.param(
            plain(box(cpu="1", memory="1Gi"), pod_requests=amounts(cpu="2", memory="2Gi")),
            share({"cpu": "500m", "memory": "512Mi"}),
            [],
            id="enough",
        ),
        pytest.param(
            plain(box(cpu="800m", memory="1Gi"), pod_requests=amounts(cpu="1", memory="2Gi")),
            share({"cpu": "300m", "memory": "512Mi"}),
            [REQUEST.format("cpu")],
            id="too little of one",
        ),
        pytest.param(
            plain(box(cpu="1", memory="1Gi"), pod_requests=amounts(cpu="4", memory="3Gi"), overhead=amounts(cpu="3")),
            share({"cpu": "1", "memory": "1Gi"}),
            [],
            id="the pod's overhead is beside its requests",
        ),
        pytest.param(
            plain(box(cpu="1", memory="1Gi"), pod_requests=amounts(cpu="2", memory="3Gi")),
            share(None, "c1", per_pod={"memory": "1Gi"}, per_container={"memory": "1Gi"}),
            [],
            id="enough for overheads",
        ),
        pytest.param(
            plain(box(cpu="1", memory="1Gi"), pod_requests=amounts(cpu="2", memory="2Gi")),
            share(None, "c1", per_pod={"memory": "1Gi"}, per_container={"memory": "1Gi"}),
            [REQUEST.format("memory")],
            id="too little for overheads",
        ),
        pytest.param(
            plain(box(limits={"memory": "1Gi"}), pod_limits=amounts(memory="2Gi")),
            share(None, "c1", per_container={"memory": "512Mi"}),
            [],
            id="the limit suffices",
        ),
        pytest.param(
            plain(box(limits={"memory": "1536Mi"}), pod_limits=amounts(memory="2Gi")),
            share(None, "c1", per_container={"memory": "1Gi"}),
            [LIMIT],
            id="the limit does not suffice",
        ),
        pytest.param(
            plain(box(limits={"memory": "1536Mi"}), box("c2"), pod_limits=amounts(memory="2Gi")),
            share(None, "c2", per_container={"memory": "1Gi"}),
            [],
            id="another container uses the device",
        ),
        pytest.param(
            plain(box(limits={"memory": "3Gi"}), box("c2", limits={"memory": "3Gi"}), pod_limits=amounts(memory="4Gi")),
            share({"cpu": "1"}),
            [],
            id="limits of containers together may exceed that of the pod",
        ),
    ],
)
def test_what_the_pod_allows_its_containers_and_claims(pod: Pod, taken: ClaimShare, expected: list[str]) -> None:
    assert short(pod, ROOM, taken) == expected


def test_pod_level_requests_stand_for_containers_and_claims() -> None:
    pod = plain(box(cpu="1"), pod_requests=amounts(cpu="4"))
    assert short(pod, state(cpu="4"), share({"cpu": "3"})) == []
    assert short(pod, state(cpu="3"), share({"cpu": "3"})) == [
        "Insufficient cpu: 4 requested, 3 of it by claims, 3 free"
    ]


CPU_CLASS = DeviceClass("cpus")


def node(name: str = "n1", cpu: str = "8") -> Node:
    return Node(name, allocatable=amounts(cpu=cpu, memory="32Gi", pods="10"))


def published(name: str = "n1", count: int = 4, entry: NodeAllocatable | None = None) -> ResourceSlice:
    taken = FrozenMap({"cpu": entry or NodeAllocatable(NodeMapping(per_device=Quantity.of(3)))})
    devices = tuple(Device(f"d{index}", node_allocatable=taken) for index in range(count))
    return ResourceSlice(name, "cpu.example.com", Pool(name), devices, NodeReach(node_name=name))


def claim(name: str, count: int = 1, **fields: Any) -> ResourceClaim:
    return replace(ResourceClaim("ns", name, (DeviceRequest("r", "cpus", count=count),)), **fields)


def user(name: str, claim_name: str = "", *, cpu: str = "1", **fields: Any) -> Pod:
    entry = PodClaim("c", claim_name or name)
    containers = (Container("main", amounts(cpu=cpu), claims=("c",)),)
    return replace(Pod("ns", name, name, containers=containers, claims=(entry,)), **fields)


def world(*claims: ResourceClaim, profile: KubernetesProfile = ON, **fields: Any) -> World:
    scene: dict[str, Any] = {"nodes": (node(),), "slices": (published(),), **fields}
    found = FrozenMap({one.key: one for one in claims})
    return World.of(Snapshot(profile=profile, classes=(CPU_CLASS,), claims=found, **scene))


def placed(pod: Pod, seen: World, name: str = "n1") -> World:
    verdict = fit_one(pod, name, seen)
    assert isinstance(verdict, Fits), verdict.reasons
    return seen.placed((pod,), name, verdict)


def test_pods_fill_a_node_with_what_they_and_their_claims_take() -> None:
    seen = world(claim("a"), claim("b"), claim("c"))
    after = placed(user("b"), placed(user("a"), seen))
    assert after.nodes["n1"].used == {"cpu": 8000, "pods": 2}
    verdict = fit_one(user("c", cpu="0"), "n1", after)
    assert isinstance(verdict, DoesNotFit)
    assert [text_of(reason) for reason in verdict.reasons] == [
        "pod ns/c: Insufficient cpu: 3 requested, 3 of it by claims, 0 free"
    ]


def test_without_the_gate_devices_take_nothing() -> None:
    profile = profile_for("1.37.1")
    seen = world(claim("a"), claim("b"), claim("c"), profile=profile)
    for name in "abc":
        seen = placed(user(name), seen)
    assert seen.nodes["n1"].used == {"cpu": 3000, "pods": 3}
    there = user("d", node_name="n1", claim_amounts=amounts(cpu="7"))
    assert world(profile=profile, pods=(there,)).nodes["n1"].used == {"cpu": 1000, "pods": 1}


@pytest.mark.parametrize("version", ["1.36.3", "1.37.1"])
def test_what_claims_of_running_pods_take_counts(version: str) -> None:
    """In 1.36 as well, although what a device takes has another form there."""
    profile = profile_for(version).with_gates(node_allocatable_resources=True)
    there = user("d", node_name="n1", claim_amounts=amounts(cpu="7"))
    seen = world(profile=profile, pods=(there,))
    assert seen.nodes["n1"].used == {"cpu": 8000, "pods": 1}
    assert [reason.code for reason in fit_one(user("e", cpu="1", claims=()), "n1", seen).reasons] == [
        Code.INSUFFICIENT_RESOURCE
    ]


def test_pods_that_share_a_mapped_claim_do_not_fit_together() -> None:
    verdict = fit((user("a", "shared"), user("b", "shared")), "n1", world(claim("shared")))
    assert [reason.code for reason in verdict.reasons] == [Code.CLAIM_NOT_SHAREABLE]


def test_each_pod_that_shares_a_claim_pays_the_overhead() -> None:
    entry = NodeAllocatable(overhead=NodeOverhead(per_pod=Quantity.of(3)))
    seen = world(claim("shared"), slices=(published(entry=entry),))
    assert isinstance(fit((user("a", "shared"), user("b", "shared")), "n1", seen), Fits)
    three = fit(tuple(user(name, "shared", cpu="0") for name in "abc"), "n1", seen)
    assert [reason.code for reason in three.reasons] == [Code.INSUFFICIENT_WITH_CLAIMS]


def test_a_claim_that_a_running_pod_holds_is_not_shared() -> None:
    seen = placed(user("a"), world(claim("a")))
    held = replace(seen.claims["ns/a"], reserved_for=(Consumer("pods", "a", "a"),))
    verdict = fit_one(user("b", "a"), "n1", world(held, pods=(user("a", node_name="n1"),)))
    assert [reason.code for reason in verdict.reasons] == [Code.CLAIM_NOT_SHAREABLE]


def test_scores_count_what_claims_of_running_pods_take() -> None:
    pod = user("a", cpu="1", node_name="n1", claim_amounts=amounts(cpu="2", memory="1Gi"))
    assert pod_requests(pod) == {"cpu": 3000, "memory": 2**30}
    assert scored_requests(pod, bound=True) == (3000, 2**30 + 200 * 2**20)


def test_an_allocated_claim_counts_again_for_its_pod() -> None:
    """A pod whose claim was allocated in an attempt before, and that was not bound."""
    seen = placed(user("a"), world(claim("a")))
    held = replace(seen.claims["ns/a"], reserved_for=(Consumer("pods", "a", "a"),))
    assert isinstance(fit_one(user("a", cpu="5"), "n1", world(held)), Fits)
    assert [r.code for r in fit_one(user("a", cpu="6"), "n1", world(held)).reasons] == [Code.INSUFFICIENT_WITH_CLAIMS]
