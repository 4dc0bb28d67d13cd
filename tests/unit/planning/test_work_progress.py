"""Where the units of a round do not suffice for all kinds of pods, every round decides some of them completely."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.model.device_class import Selector
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import PersistentVolumeClaim, StorageClass, VolumeBindingMode
from autoscaler.planning.policy import Policy, WorkLimits
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device, NodeReach, Pool, ResourceSlice
from tests.builders import NOW, TEAM, Pairs, gpus, in_namespace, joined, ours, pairs, plan, snapshot

_NODES = 12
_KINDS = 16
# Enough for four kinds that look at all nodes.
_TIGHT = Policy(work=WorkLimits(per_round=40_000, selectors_per_round=1, per_pod=40_000, hints_per_round=1))
_LATER = StorageClass("later", VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER, provisioner="ebs.csi.aws.com")


def _present(*, cpu: int, devices: int = 1) -> tuple[tuple[Node, ...], tuple[ResourceSlice, ...]]:
    """Nodes with one GPU each; the pods below ask for four, all of a machine."""
    attributes: dict[str, AttributeValue] = {"type": "gpu", "productName": "Small S1"}
    amounts = FrozenMap({"cpu": Quantity.of(cpu), "pods": Quantity.of(9)})
    names = [f"n{i}" for i in range(_NODES)]
    content = tuple(Device(f"gpu-{i}", FrozenMap(attributes)) for i in range(devices))
    slices = (ResourceSlice(n, "gpu.nvidia.com", Pool(n), content, NodeReach(node_name=n)) for n in names)
    return tuple(Node(n, allocatable=amounts, ready=True) for n in names), tuple(slices)


def _kinds(count: int = _KINDS) -> Pairs:
    return joined(*(pairs(1, gpus(4), prefix=f"z{i}-", cpu=f"{1000 + i}m") for i in range(count)))


def _hopeless(count: int, **fields: int) -> Pairs:
    """Pods that no device serves, each with a selector of its own."""
    asking = [DeviceRequest("gpu", "gpu.nvidia.com", (Selector(f"device.driver == 'h{i}'"),)) for i in range(count)]
    return joined(*(pairs(1, asked, prefix=f"h{i}-", **fields) for i, asked in enumerate(asking)))


def _with_volumes(found: Pairs) -> tuple[Pairs, FrozenMap[str, PersistentVolumeClaim]]:
    """The pods, each with a PersistentVolumeClaim of its own, as a StatefulSet has them."""
    pods, claims = found
    volumes = [PersistentVolumeClaim("default", f"{pod.name}-data", "later") for pod in pods]
    pods = [replace(pod, volumes=(volume.name,)) for pod, volume in zip(pods, volumes, strict=True)]
    return (pods, claims), FrozenMap({f"default/{volume.name}": volume for volume in volumes})


def _state(found: Pairs, *, cpu: int = 8, devices: int = 1, **fields: object) -> Snapshot:
    nodes, slices = _present(cpu=cpu, devices=devices)
    return replace(snapshot(*found, pools=(TEAM,), nodes=nodes, slices=slices), **fields)  # type: ignore[arg-type]


def _coming(launch: PlannedNode, name: str) -> ProvisionedNode:
    return ours(name, offering=launch.offering, drivers=launch.drivers, pods=launch.pods)


def _rounds(state: Snapshot, *, most: int) -> tuple[list[int], Snapshot, Plan]:
    """How many usual pods have a place after each round, until none is without; nothing that is bought comes up."""
    counts: list[int] = []
    for number in range(most):
        result = plan(state, policy=_TIGHT, now=NOW + timedelta(seconds=10 * number))
        bought = [_coming(launch, f"c{number}-{i}") for i, launch in enumerate(result.launches)]
        state = replace(state, provisioned=(*state.provisioned, *bought))
        served = {pod for node in state.provisioned for pod in node.pods}
        served |= {placement.pod for placement in result.placements}
        counts.append(sum(pod.partition("/")[2].startswith("z") for pod in served))
        if counts[-1] == _KINDS:
            break
    return counts, state, result


def test_every_round_decides_some_kinds_until_all_are() -> None:
    counts, state, _ = _rounds(_state(_kinds()), most=8)
    assert counts[0] < _KINDS
    assert counts[-1] == _KINDS
    assert counts == sorted(set(counts))
    bought = [pod for node in state.provisioned for pod in node.pods]
    assert len(bought) == len(set(bought))


def test_pods_that_find_room_on_coming_nodes_leave_their_units_to_those_that_find_none() -> None:
    """Two pods fill a node. Those that are decided could else take the same few places in every round."""
    counts, state, last = _rounds(_state(joined(*(_two(i) for i in range(_KINDS)))), most=12)
    assert counts[-1] == _KINDS
    assert counts == sorted(set(counts))
    assert last.work < _TIGHT.work.per_round
    assert len(state.provisioned) == _KINDS // 2


def _two(number: int) -> Pairs:
    return pairs(1, gpus(2), prefix=f"z{number}-", cpu=f"{1000 + number}m")


def test_pods_that_wait_for_their_turn_say_so() -> None:
    result = plan(_state(_kinds()), policy=_TIGHT)
    assert result.launches
    assert {entry.verdict for entry in result.left_out} == {"unknown"}
    assert {reason.code for entry in result.left_out for reason in entry.reasons} == {Code.WORK_BUDGET}


def test_pods_with_volumes_of_their_own_are_kinds_of_their_own_and_all_get_nodes() -> None:
    found, volumes = _with_volumes(pairs(_KINDS, gpus(4), prefix="z"))
    state = _state(found, volume_claims=volumes, storage_classes=FrozenMap({"later": _LATER}))
    counts, *_ = _rounds(state, most=8)
    assert counts[0] < _KINDS
    assert counts[-1] == _KINDS
    assert counts == sorted(set(counts))


@pytest.mark.slow
def test_hopeless_pods_do_not_hold_up_others_for_ever() -> None:
    """Pods that are never satisfied come back in every round; half of the units are drawn by lot."""
    counts, *_ = _rounds(_state(joined(_hopeless(6, priority=1000), _kinds())), most=60)
    assert counts[-1] == _KINDS


def test_nodes_without_the_amounts_that_a_pod_requests_cost_nothing() -> None:
    result = plan(_state(_kinds(), cpu=1), policy=_TIGHT)
    full = {p.pod for p in result.placements if p.pod != "default/z0-00"}
    assert len(full) == _KINDS - 1


def test_a_kind_that_waits_keeps_the_node_that_is_coming_for_it() -> None:
    _, state, _ = _rounds(_state(_kinds()), most=8)
    again = plan(state, policy=_TIGHT, now=NOW + timedelta(minutes=10))
    homes = {pod: node.node_name for node in state.provisioned for pod in node.pods}
    assert {p.pod: p.node for p in again.placements} == homes
    assert again.launches == ()


def test_pods_with_expensive_selectors_do_not_change_that() -> None:
    ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    nested = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, a + b + c + d > 0))))"
    asking = [
        DeviceRequest("gpu", "gpu.nvidia.com", (Selector(f"{nested} && device.driver == 'e{i}'"),)) for i in range(4)
    ]
    hostile = joined(*(pairs(1, asked, prefix=f"e{i}-", priority=1000) for i, asked in enumerate(asking)))
    counts, *_ = _rounds(_state(joined(hostile, _kinds())), most=60)
    assert counts[-1] == _KINDS


def test_pods_that_wait_take_room_that_is_found_at_once() -> None:
    found = joined(*(pairs(1, gpus(1), prefix=f"z{i}-", cpu=f"{1000 + i}m") for i in range(_KINDS)))
    result = plan(_state(found, devices=8), policy=_TIGHT)
    assert result.launches == ()
    assert len(result.placements) == _KINDS


def test_every_namespace_decides_a_kind_in_its_turn() -> None:
    parts = [in_namespace(f"team{i}", pairs(1, gpus(4), prefix="z")) for i in range(8)]
    policy = replace(_TIGHT, work=replace(_TIGHT.work, per_round=8_000))
    state = _state(joined(*parts))
    decided: set[str] = set()
    for number in range(60):
        found = {p.pod for p in plan(state, policy=policy, now=NOW + timedelta(seconds=number)).placements}
        assert 0 < len(found) < 8
        decided |= found
    assert len(decided) == 8


def test_kinds_with_claims_of_their_own_are_decided_completely_or_wait() -> None:
    """If all had an equal share that suffices for none, no plan would ever decide any of them."""
    tight = Policy(work=WorkLimits(per_round=80_000, selectors_per_round=1, per_pod=80_000, hints_per_round=1))
    own = [DeviceRequest("gpu", "gpu.nvidia.com", (Selector(f"device.driver != 'h{i}'"),)) for i in range(120)]
    state = snapshot(*joined(*(pairs(1, asked, prefix=f"o{i}-") for i, asked in enumerate(own))), pools=(TEAM,))
    found = plan(state, policy=tight)
    assert 5 <= len(found.placements) <= 12  # there are units for ten kinds
    reasons = [reason for entry in found.left_out for reason in entry.reasons]
    assert len(reasons) == 120 - len(found.placements)
    assert {reason.code for reason in reasons} == {Code.WORK_BUDGET}
    assert {reason.detail for reason in reasons} == {FrozenMap({"kinds": 120})}
    assert {entry.near_misses for entry in found.left_out} == {()}
