"""What claims take of the node's own amounts, by the facts of upstream's tests and of its code (v1.37.2).

pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources_test.go: BuildNodeAllocatableDRAInfo,
ValidateNodeAllocatableDRAClaimSharing, FilterSlicesForNode.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from autoscaler.dra.allocation.allocator import ClusterDevices
from autoscaler.dra.claims.extended_resources import extended_resource_classes
from autoscaler.dra.claims.node_allocatable import ClaimShare, amounts_of, shares_of
from autoscaler.dra.filter import Room, filter_claims
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.dra.outcome import FatalError
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.gang import API_GROUP, Gang
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer, ResourceClaim
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.profile import KubernetesProfile, profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    Capacity,
    Device,
    NodeAllocatable,
    NodeMapping,
    NodeOverhead,
    NodeReach,
    ResourceSlice,
)
from tests.unit.dra.build import ANY, DRIVER, NODE, claim, cluster, slice_of

ON = profile_for("1.37.1").with_gates(node_allocatable_resources=True)
OTHER = Node("node-2", labels=FrozenMap({"region": "region-2"}))


def amount(text: str) -> Quantity:
    return Quantity.parse(text)


def each(text: str) -> NodeAllocatable:
    """So much for each device."""
    return NodeAllocatable(NodeMapping(per_device=amount(text)))


def of(capacity: str, multiplier: str | None = "1") -> NodeAllocatable:
    """So much for what is consumed of a capacity."""
    return NodeAllocatable(NodeMapping(capacity, None if multiplier is None else amount(multiplier)))


def overhead(*, per_pod: str = "", per_container: str = "") -> NodeAllocatable:
    return NodeAllocatable(
        overhead=NodeOverhead(
            amount(per_pod) if per_pod else None,
            amount(per_container) if per_container else None,
        )
    )


def taking(name: str = "cpu0", **entries: NodeAllocatable) -> Device:
    return Device(name, node_allocatable=FrozenMap(entries))


def result(name: str = "cpu0", consumed: Mapping[str, str] | None = None, *, driver: str = DRIVER) -> AllocatedDevice:
    amounts = None if consumed is None else FrozenMap({key: amount(text) for key, text in consumed.items()})
    return AllocatedDevice("r", driver, "pool", name, consumed_capacity=amounts)


def has(*results: AllocatedDevice, name: str = "claim", **more: object) -> ResourceClaim:
    """The claim with these devices of node-1."""
    found = Allocation(results, NodeSelector.for_node(NODE.name))
    return replace(claim(name=name), allocation=found, **more)  # type: ignore[arg-type]


def user(*containers: str, claims: tuple[str, ...] = ("claim",), init: tuple[str, ...] = ()) -> Pod:
    """A pod whose containers use the claims, each named with its claims: "c1=a,b"."""

    def made(text: str) -> Container:
        name, _, used = text.partition("=")
        return Container(name, claims=tuple(filter(None, used.split(","))))

    entries = tuple(PodClaim(name, name) for name in claims)
    return Pod(
        "ns", "pod", "uid", containers=(*map(made, containers),), init_containers=(*map(made, init),), claims=entries
    )


def seen(*slices: ResourceSlice, profile: KubernetesProfile = ON) -> ClusterDevices:
    return cluster(*slices, profile=profile)


def shares(pod: Pod, *claims: ResourceClaim, devices: ClusterDevices, node: Node = NODE) -> tuple[ClaimShare, ...]:
    return shares_of(pod, node, [(one, one.allocation) for one in claims if one.allocation], devices)


def texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(found) for name, found in amounts.items()}


ONE = user("c1=claim")


@pytest.mark.parametrize(
    ("device", "consumed", "pod", "expected"),
    [
        pytest.param(taking(cpu=each("1")), None, ONE, {"cpu": "1"}, id="for each device"),
        pytest.param(
            taking(cpu=of("x/cpu"), memory=of("x/memory", None)),
            {"x/cpu": "4", "x/memory": "8Gi"},
            ONE,
            {"cpu": "4", "memory": "8Gi"},
            id="what is consumed",
        ),
        pytest.param(taking(cpu=of("x/cores", "2")), {"x/cores": "4"}, ONE, {"cpu": "8"}, id="times a multiplier"),
        pytest.param(taking(cpu=of("x/cores", "500m")), {"x/cores": "3"}, ONE, {"cpu": "1500m"}, id="by a part of one"),
        pytest.param(taking(cpu=of("x/cpu")), {"x/other": "4"}, ONE, {}, id="another capacity is consumed"),
        pytest.param(Device("cpu0"), None, ONE, {}, id="another device of the same claim"),
        pytest.param(taking(cpu=each("4")), None, user("c1"), {"cpu": "4"}, id="no container names the claim"),
        pytest.param(
            taking(memory=overhead(per_pod="1Gi", per_container="500Mi")),
            None,
            user("c1"),
            {"memory": "1Gi"},
            id="overhead of a claim that no container names",
        ),
        pytest.param(
            taking(memory=overhead(per_container="500Mi")), None, user("c1"), {"memory": "0"}, id="0 for no container"
        ),
        pytest.param(
            taking(memory=overhead(per_pod="1Gi", per_container="512Mi")),
            None,
            user("c1=claim", "c2=claim"),
            {"memory": "2Gi"},
            id="overhead for two containers",
        ),
        pytest.param(
            taking(memory=overhead(per_container="512Mi")),
            None,
            user("c1=claim", init=("i1=claim", "i2")),
            {"memory": "1Gi"},
            id="init containers count",
        ),
        pytest.param(
            Device(
                "cpu0",
                node_allocatable=FrozenMap(
                    {
                        "cpu": NodeAllocatable(
                            NodeMapping(per_device=amount("2")), NodeOverhead(amount("1"), amount("500m"))
                        )
                    }
                ),
            ),
            None,
            ONE,
            {"cpu": "3500m"},
            id="mapping and overhead",
        ),
    ],
)
def test_what_a_claim_takes(
    device: Device, consumed: Mapping[str, str] | None, pod: Pod, expected: Mapping[str, str]
) -> None:
    found = shares(pod, has(result(device.name, consumed)), devices=seen(slice_of([device])))
    assert texts(amounts_of(found)) == expected


def test_devices_of_one_claim_add_up_and_claims_do_as_well() -> None:
    devices = seen(slice_of([taking("a", cpu=each("2")), taking("b", cpu=each("3"), memory=each("4Gi"))]))
    first, second = has(result("a"), result("b"), name="one"), has(result("b"), name="two")
    found = shares(user("c1=one,two", claims=("one", "two")), first, second, devices=devices)
    assert [(share.claim, share.containers, texts(share.mapped)) for share in found] == [
        ("one", ("c1",), {"cpu": "5", "memory": "4Gi"}),
        ("two", ("c1",), {"cpu": "3", "memory": "4Gi"}),
    ]
    assert texts(amounts_of(found)) == {"cpu": "8", "memory": "8Gi"}


def test_a_device_is_one_of_its_driver() -> None:
    """Two drivers may have pools and devices of the same names."""
    a, b = slice_of([taking(cpu=each("1"))]), slice_of([taking(cpu=each("8"))], name="b", driver="b.example.com")
    found = shares(ONE, has(result(driver="b.example.com")), devices=seen(a, b))
    assert texts(amounts_of(found)) == {"cpu": "8"}


def test_the_newest_generation_of_a_pool_counts() -> None:
    old, new = slice_of([taking(cpu=each("1"))]), slice_of([taking(cpu=each("2"))], name="new", generation=2)
    assert texts(amounts_of(shares(ONE, has(result()), devices=seen(old, new)))) == {"cpu": "2"}


IN_REGION_1 = NodeSelector((NodeSelectorTerm((Requirement("region", "In", ("region-1",)),)),))


@pytest.mark.parametrize(
    ("reach", "elsewhere"),
    [
        pytest.param(NodeReach(node_name="node-1"), {}, id="of the node"),
        pytest.param(NodeReach(all_nodes=True), {"cpu": "1"}, id="of all nodes"),
        pytest.param(NodeReach(node_selector=IN_REGION_1), {}, id="of a region"),
    ],
)
@pytest.mark.parametrize("by_device", [False, True])
def test_only_devices_that_the_node_sees_count(
    reach: NodeReach, elsewhere: Mapping[str, str], *, by_device: bool
) -> None:
    device = taking(cpu=each("1"))
    piece = slice_of([replace(device, reach=reach) if by_device else device])
    piece = replace(piece, reach=NodeReach() if by_device else reach, per_device_node_selection=by_device or None)
    devices = seen(piece)
    assert texts(amounts_of(shares(ONE, has(result()), devices=devices))) == {"cpu": "1"}
    assert texts(amounts_of(shares(ONE, has(result()), devices=devices, node=OTHER))) == elsewhere


def test_a_device_that_is_gone_beside_one_that_counts_aborts_the_attempt() -> None:
    devices = seen(slice_of([taking(cpu=each("1"))]))
    assert shares(ONE, has(result("gone")), devices=devices) == ()
    with pytest.raises(FatalError) as raised:
        shares(ONE, has(result(), result("gone")), devices=devices)
    assert text_of(raised.value.reason) == (
        "claim ns/claim: device gone: not found in pool pool for driver gpu.example.com"
    )


def test_an_allocation_that_says_nothing_of_capacities_aborts_the_attempt() -> None:
    with pytest.raises(FatalError) as raised:
        shares(ONE, has(result()), devices=seen(slice_of([taking(cpu=of("x/cpu"))])))
    assert raised.value.reason.code is Code.NODE_AMOUNT_UNDECIDED
    assert "ConsumedCapacity is nil" in text_of(raised.value.reason)


def judge(
    pod: Pod,
    *claims: ResourceClaim,
    where: ClusterDevices,
    node: Node = NODE,
    room: Room = lambda _: (),
    classes: tuple[DeviceClass, ...] = (),
    groups: tuple[Gang, ...] = (),
) -> Verdict:
    return filter_claims(
        pod,
        node,
        claims={one.key: one for one in claims},
        extended_resources=extended_resource_classes(classes),
        devices=where,
        allocated=AllocatedState.of(claims),
        pod_groups={group.key: group for group in groups},
        room=room,
    )


def full(_: tuple[ClaimShare, ...]) -> tuple[Reason, ...]:
    return (Reason.of(Code.INSUFFICIENT_WITH_CLAIMS),)


CPUS = slice_of([taking(cpu=each("1"))])
GPUS = slice_of([taking(memory=overhead(per_container="100"))])
BOTH = slice_of(
    [
        Device(
            "cpu0",
            node_allocatable=FrozenMap(
                {"cpu": NodeAllocatable(NodeMapping(per_device=amount("1")), NodeOverhead(per_container=amount("100")))}
            ),
        )
    ]
)
SOMEBODY = (Consumer("pods", "other", "other-uid"),)
MINE = (Consumer("pods", "pod", "uid"),)


@pytest.mark.parametrize(
    ("piece", "consumers", "refused"),
    [
        pytest.param(CPUS, (), False, id="nobody else has it"),
        pytest.param(CPUS, MINE, False, id="the pod has it"),
        pytest.param(CPUS, SOMEBODY, True, id="another pod has it"),
        pytest.param(GPUS, SOMEBODY, False, id="only an overhead"),
        pytest.param(BOTH, SOMEBODY, True, id="mapping and overhead"),
    ],
)
def test_claims_with_a_mapped_device_are_not_shared(
    piece: ResourceSlice, consumers: tuple[Consumer, ...], *, refused: bool
) -> None:
    verdict = judge(ONE, has(result(), reserved_for=consumers), where=seen(piece))
    assert isinstance(verdict, DoesNotFit if refused else Fits)
    if refused:
        assert [text_of(reason) for reason in verdict.reasons] == [
            "claim ns/claim: node allocatable resource claim claim has a mapped device and cannot be shared across pods"
        ]


def test_a_claim_on_another_node_is_said_to_be_there() -> None:
    verdict = judge(ONE, has(result(), reserved_for=SOMEBODY), where=seen(CPUS), node=OTHER)
    assert [reason.code for reason in verdict.reasons] == [Code.CLAIM_ALLOCATED_ELSEWHERE]


def test_a_refusal_to_share_comes_before_what_the_allocator_says() -> None:
    pod = user("c1=claim,new", claims=("claim", "new"))
    held, new = has(result(), reserved_for=SOMEBODY), claim(name="new")
    verdict = judge(pod, held, new, where=seen(CPUS))
    assert [reason.code for reason in verdict.reasons] == [Code.CLAIM_NOT_SHAREABLE]


def test_claims_of_a_pod_group_with_a_mapped_device_are_unknown_to_its_second_pod() -> None:
    profile = ON.with_gates(workload_resource_claims=True, generic_workload=True)
    group = Gang("ns", "team", "PodGroup", 2)
    consumers = (Consumer("podgroups", "team", "g", API_GROUP),)
    pod = replace(ONE, pod_group="team")
    assert isinstance(judge(pod, claim(), where=seen(CPUS, profile=profile), groups=(group,)), Fits)
    held = has(result(), reserved_for=consumers)
    assert isinstance(judge(pod, held, where=seen(CPUS, profile=profile), groups=(group,)), Unknown)
    assert isinstance(judge(pod, held, where=seen(GPUS, profile=profile), groups=(group,)), Fits)


def test_the_node_is_asked_with_what_new_and_old_allocations_take() -> None:
    asked: list[dict[str, str]] = []

    def room(found: tuple[ClaimShare, ...]) -> tuple[Reason, ...]:
        asked.append(texts(amounts_of(found)))
        return ()

    pieces = (slice_of([taking("a", cpu=each("2"))]), slice_of([taking("b", cpu=each("3"))], name="b", pool="b"))
    old = replace(has(AllocatedDevice("r", DRIVER, "b", "b"), name="old"), reserved_for=MINE)
    pod = user("c1=old,claim", claims=("old", "claim"))
    assert isinstance(judge(pod, old, claim(), where=seen(*pieces), room=room), Fits)
    assert asked == [{"cpu": "5"}]


def test_a_node_that_lacks_the_amounts_does_not_fit() -> None:
    assert judge(ONE, claim(), where=seen(CPUS), room=full) == DoesNotFit(full(()))
    assert isinstance(judge(ONE, claim(), where=seen(slice_of([Device("cpu0")])), room=full), Fits)


@pytest.mark.parametrize("version", ["1.36.3", "1.37.1"])
def test_without_the_gate_the_field_is_ignored(version: str) -> None:
    profile = profile_for(version)
    assert isinstance(judge(ONE, claim(), where=seen(CPUS, profile=profile), room=full), Fits)
    held = has(result(), reserved_for=SOMEBODY)
    assert isinstance(judge(ONE, held, where=seen(CPUS, profile=profile), room=full), Fits)


def test_the_gate_of_1_36_is_about_another_field() -> None:
    profile = profile_for("1.36.3").with_gates(node_allocatable_resources=True)
    assert isinstance(judge(ONE, claim(), where=seen(CPUS, profile=profile), room=full), Fits)


def test_an_error_about_amounts_wins_over_a_claim_that_is_elsewhere() -> None:
    everywhere = replace(slice_of([taking("b", cpu=each("1"))], pool="b", name="b"), reach=NodeReach(all_nodes=True))
    held = has(result(), AllocatedDevice("r", DRIVER, "b", "b"))
    assert isinstance(judge(ONE, held, where=seen(CPUS, everywhere), node=OTHER), Fatal)


def test_extended_resources_served_by_such_devices_are_unknown() -> None:
    """kube-scheduler 1.37.2 writes the name of a claim that no entry of the pod has, and the API server refuses it."""
    served = replace(ANY, extended_resource_name="acme.com/cpu")
    box = Container("c1", FrozenMap({"acme.com/cpu": Quantity.of(1)}))
    pod = Pod("ns", "pod", "uid", containers=(box,))
    verdict = judge(pod, where=cluster(CPUS, profile=ON), classes=(served,))
    assert isinstance(verdict, Unknown)
    assert [reason.code for reason in verdict.reasons] == [Code.UNSUPPORTED]
    plain = cluster(slice_of([Device("cpu0")]), profile=ON)
    assert isinstance(judge(pod, where=plain, classes=(served,)), Fits)


def test_an_amount_that_follows_from_a_guess_is_unknown() -> None:
    device = Device(
        "cpu0",
        capacity=FrozenMap({"memory": Capacity(amount("16Gi"), guess=True)}),
        allow_multiple_allocations=True,
        node_allocatable=FrozenMap({"memory": of("memory")}),
    )
    verdict = judge(ONE, claim(), where=seen(slice_of([device])))
    assert isinstance(verdict, Unknown)
    assert [reason.detail["attributes"] for reason in verdict.reasons] == [("memory",)]
