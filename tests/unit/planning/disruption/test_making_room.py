"""Moves that would make room: against every set of pods that could move, and who is never moved."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from autoscaler.lifecycle.movable import by_namespace, obstacle
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import Placement, Plan, RoomMade, Target
from autoscaler.model.pod import GangRef, Pod
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.resource_claim import FirstAvailable
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.evicted_pods import PodRemoval
from autoscaler.planning.disruption.making_room import room_made
from autoscaler.planning.policy import Policy, WorkLimits
from autoscaler.scheduling.schedule import Scheduled, adversarial, first, schedule
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import CapacityType
from tests.builders import CATALOG, NOW, TEAM, gang, gpus, ours, plan
from tests.unit.planning.disruption.gpu_nodes import MODEL, Cluster, present
from tests.unit.planning.disruption.moving import launch

MARK = FrozenMap({labels.DO_NOT_DISRUPT: "true"})


def proposals(state: Snapshot, decided: Plan | None = None, policy: Policy | None = None) -> tuple[RoomMade, ...]:
    found = decided or plan(state, catalog=replace(CATALOG, types=FrozenMap()))
    return room_made(found, present(state), state, policy or Policy())


def moves(found: RoomMade) -> list[tuple[str, str, str]]:
    return [(move.pod.removeprefix("default/"), move.source, move.target) for move in found.moves]


def two_nodes(**fields: Any) -> Cluster:
    """a has one pod, b has two, and a pod waits for a whole node."""
    cluster = Cluster()
    cluster.node("a")
    cluster.node("b")
    cluster.runs("one", "a", **fields)
    cluster.runs("two", "b", 2)
    cluster.runs("three", "b", 2)
    cluster.waits("train", 8)
    return cluster


def test_the_fewest_pods_move() -> None:
    (found,) = proposals(two_nodes().snapshot())
    assert moves(found) == [("one", "a", "b")]
    assert (found.pods, dict(found.devices), found.usd_per_hour) == (("default/train",), {"a": 8}, None)


def test_a_claim_of_a_pod_that_stays_keeps_its_devices_whoever_owns_it() -> None:
    """Its author may name the pod that moves as its owner."""
    cluster = Cluster()
    cluster.node("a")
    moves_away = cluster.runs("one", "a")
    stays = cluster.runs("two", "a", 2)
    cluster.claims[1] = replace(cluster.claims[1], controller=moves_away.uid)
    world = World.of(cluster.snapshot())
    after = PodRemoval(world).without([moves_away], "a")
    held = f"default/{stays.name}-gpu"
    assert after.claims[held] == world.claims[held]
    assert after.allocated.use_of("gpu.nvidia.com", "a").exclusive == {"gpu-1", "gpu-2"}


def test_it_says_what_is_not_bought_then() -> None:
    state = two_nodes().snapshot()
    bought = Plan(
        launches=(launch("new", Decimal("98.32"), pods=("default/train",)),),
        placements=(Placement("default/train", Target.NEW, "new"),),
    )
    assert proposals(state, bought)[0].usd_per_hour == Decimal("98.32")


def test_no_pod_moves_for_a_node_that_is_bought_anyway() -> None:
    state = two_nodes().snapshot()
    bought = Plan(
        launches=(launch("new", pods=("default/train", "default/other")),),
        placements=(Placement("default/train", Target.NEW, "new"),),
    )
    assert proposals(state, bought) == ()


def test_nobody_loses_a_place_that_the_plan_gives() -> None:
    """What is free on b is planned for a pod that waits, and nobody moves there."""
    cluster = Cluster()
    cluster.node("b", 4)
    cluster.node("a")
    cluster.runs("one", "a")
    cluster.waits("first", 4, priority=1, owner="ReplicaSet/first")
    cluster.waits("train", 8)
    state = cluster.snapshot()
    decided = plan(state, catalog=replace(CATALOG, types=FrozenMap()))
    assert [(placement.pod, placement.node) for placement in decided.placements] == [("default/first", "b")]
    assert proposals(state, decided) == ()


def test_a_pod_that_is_still_to_come_does_not_move() -> None:
    """It would fit on b as well, but the scheduler places it, and nobody can evict it."""
    cluster = Cluster()
    cluster.node("a")
    cluster.node("b", 4)
    cluster.waits("first", 4, priority=1, owner="ReplicaSet/first")
    cluster.waits("train", 8)
    state = cluster.snapshot()
    decided = plan(state, catalog=replace(CATALOG, types=FrozenMap()))
    assert [(placement.pod, placement.node) for placement in decided.placements] == [("default/first", "a")]
    assert proposals(state, decided) == ()


def test_several_nodes_for_a_gang() -> None:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.node(name)
    cluster.runs("one", "a")
    cluster.runs("two", "b")
    cluster.runs("three", "c", 4)
    for index in range(2):
        cluster.waits(f"rank-{index}", 8, gang="job")
    (found,) = proposals(cluster.snapshot(gangs=gang("job", 2)))
    assert len(found.moves) == 2
    assert list(found.devices.values()) == [8, 8]
    cluster.runs("four", "c", 3)
    assert proposals(cluster.snapshot(gangs=gang("job", 2))) == (), "half a gang is no use"


def test_a_gang_of_one_domain_is_left_out() -> None:
    cluster = two_nodes()
    cluster.pods[-1] = replace(cluster.pods[-1], gang=GangRef("default", "job"))
    assert len(proposals(cluster.snapshot(gangs=gang("job", 1)))) == 1
    assert proposals(cluster.snapshot(gangs=gang("job", 1, "zone"))) == ()


def _budget(state: Snapshot, allowed: int = 0) -> Snapshot:
    return replace(state, disruption_budgets=(PodDisruptionBudget("default", "pdb", LabelSelector(), allowed),))


BLOCK = OfferingRef("l8", "any", CapacityType.CAPACITY_BLOCK, Decimal(0), "cr", "november")
RESERVED = OfferingRef("l8", "any", CapacityType.RESERVED, Decimal(40), reservation="r")


def _own(state: Snapshot, name: str, **fields: Any) -> Snapshot:
    node = ours(name, "l8", **{"phase": Phase.READY, "provider_id": f"id-{name}", **fields})
    nodes = tuple(replace(n, provider_id=f"id-{name}") if n.name == name else n for n in state.nodes)
    return replace(state, nodes=nodes, provisioned=(node,), pools=(TEAM,))


def _marked(state: Snapshot, name: str) -> Snapshot:
    nodes = tuple(replace(n, annotations=MARK) if n.name == name else n for n in state.nodes)
    return replace(state, nodes=nodes)


def only_from_a() -> Snapshot:
    """The pods of b have no other place, so that it depends on the one of a alone."""
    return two_nodes().snapshot()


def changed(**fields: Any) -> Snapshot:
    return two_nodes(**fields).snapshot()


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(changed(annotations=MARK), id="a pod with a mark"),
        pytest.param(changed(owner=""), id="a pod without a controller"),
        pytest.param(changed(owner="Job/one"), id="a pod of a Job"),
        pytest.param(changed(gang="other"), id="a pod of a gang"),
        pytest.param(changed(pod_group="other"), id="a pod of a PodGroup"),
        pytest.param(changed(deleting=True), id="a pod that ends"),
        pytest.param(_marked(changed(), "a"), id="a node with a mark"),
        pytest.param(_own(changed(), "a", offering=BLOCK), id="a node of a block"),
        pytest.param(_own(changed(), "a", offering=RESERVED), id="a reserved node"),
        pytest.param(_own(changed(), "a", hosts=4), id="a host of a slice"),
        pytest.param(_own(changed(), "b", offering=BLOCK), id="nothing goes to a block"),
        pytest.param(_own(changed(), "b", reclaim_at=NOW + timedelta(hours=1)), id="nor to a machine that ends"),
    ],
)
def test_what_stays(state: Snapshot) -> None:
    """The pods of b have a place on a, but its own first pod stays: nothing is left to move."""
    found = proposals(state)
    assert all(move.pod != "default/one" for each in found for move in each.moves)
    assert all(move.source != "a" and move.target != "b" for each in found for move in each.moves)


def test_a_job_that_says_what_it_loses_may_move() -> None:
    assert moves(proposals(changed(owner="Job/one", checkpoint_interval=timedelta(minutes=5)))[0])[0][0] == "one"


def test_a_budget_decides() -> None:
    assert proposals(_budget(only_from_a(), 0)) == ()
    assert len(proposals(_budget(only_from_a(), 1))) == 1


def test_nothing_is_proposed_where_budgets_cannot_be_read() -> None:
    assert proposals(replace(only_from_a(), unreadable=FrozenMap({"PodDisruptionBudget": "list"}))) == ()


def test_a_worse_alternative_is_no_other_place() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.node("s", 4, model="Small S1")
    wishes = FirstAvailable("gpu", (gpus(product=MODEL, name="large"), gpus(product="Small S1", name="small")))
    cluster.runs("one", "a", request=wishes)
    held = cluster.claims[0].allocation
    assert held is not None
    named = replace(held, devices=tuple(replace(device, request="gpu/large") for device in held.devices))
    cluster.claims[0] = replace(cluster.claims[0], allocation=named)
    cluster.waits("train", 8)
    assert proposals(cluster.snapshot()) == ()


def test_a_pod_that_asks_too_much_work_costs_the_others_nothing() -> None:
    """Two jobs; what the first may spend is nothing, as for every job: both get no answer, and no error."""
    starved = replace(Policy(), work=replace(WorkLimits(), per_pod=1, selectors_per_round=0))
    assert proposals(only_from_a(), policy=starved) == ()


def random_cluster(seed: int) -> Cluster:
    """Two to four nodes of 2 to 4 devices, nearly full, and a pod that waits for several."""
    draw = random.Random(seed)
    cluster = Cluster()
    sizes = {f"n{i}": draw.randint(2, 4) for i in range(draw.randint(2, 4))}
    for name, size in sizes.items():
        cluster.node(name, size, cpu=str(draw.choice((8, 16))))
    number = 0
    for name, size in sizes.items():
        left = size - draw.randint(0, 2)
        while left > 0:
            count = draw.randint(1, min(2, left))
            owner = draw.choice(("ReplicaSet/r", "ReplicaSet/r", "ReplicaSet/r", ""))
            cluster.runs(f"p{number}", name, count, owner=owner, cpu=str(draw.randint(1, 4)))
            left, number = left - count, number + 1
    cluster.waits("train", draw.randint(2, 4), cpu=str(draw.randint(1, 6)))
    return cluster


def after_moves(state: Snapshot, gone: tuple[Pod, ...], closed: str) -> Scheduled | None:
    """From the snapshot alone: the pods evicted, placed elsewhere by the scheduler, then the one that waits."""
    keys = {pod.key for pod in gone}
    lost = {f"default/{entry.claim}" for pod in gone for entry in pod.claims}
    claims = {
        key: replace(found, allocation=None, reserved_for=()) if key in lost else found
        for key, found in state.claims.items()
    }
    pods = tuple(pod for pod in state.pods if pod.key not in keys)
    shut = tuple(replace(node, unschedulable=node.name == closed) for node in state.nodes)
    world = World.of(replace(state, pods=pods, claims=FrozenMap(claims), nodes=shut))
    again = [replace(pod, node_name=None, phase="Pending") for pod in sorted(gone, key=lambda pod: pod.key)]
    there = schedule(again, world, first)
    if there.left:
        return None
    nodes = {node.name: node for node in state.nodes}
    opened = {name: replace(found, node=nodes[name]) for name, found in there.world.nodes.items()}
    job = [pod for pod in state.pods if pod.name == "train"]
    placed = schedule(job, replace(there.world, nodes=opened), adversarial)
    return None if placed.left else placed


def possible(state: Snapshot) -> Iterator[int]:
    """The sizes of all sets of pods of one node whose moves make room."""
    budgets = by_namespace(())
    for node in state.nodes:
        pods = [pod for pod in state.pods if pod.node_name == node.name and obstacle((pod,), budgets) is None]
        for size in range(1, len(pods) + 1):
            for chosen in combinations(pods, size):
                if after_moves(state, chosen, node.name):
                    yield size


@pytest.mark.parametrize("block", range(6))
def test_a_proposal_is_there_exactly_where_some_moves_make_room(block: int) -> None:
    seen = [0, 0]
    for seed in range(block * 25, block * 25 + 25):
        state = random_cluster(seed).snapshot()
        decided = plan(state, catalog=replace(CATALOG, types=FrozenMap()))
        if any(placement.pod == "default/train" for placement in decided.placements):
            assert proposals(state, decided) == ()
            continue
        found, sizes = proposals(state, decided), list(possible(state))
        seen[bool(found)] += 1
        assert bool(found) == bool(sizes), seed
        if found:
            assert len(found[0].moves) == min(sizes), seed
            gone = {move.pod for move in found[0].moves}
            moved = tuple(pod for pod in state.pods if pod.key in gone)
            assert after_moves(state, moved, found[0].moves[0].source) is not None, seed
    assert min(seen) > 2, seen


def test_of_a_node_with_many_pods_the_least_has_to_go() -> None:
    """Ten pods, and room is needed for two of them: more than there are sets to try."""
    cluster = Cluster()
    cluster.node("a", 10)
    cluster.node("b", 4)
    for index in range(10):
        cluster.runs(f"p{index}", "a")
    cluster.runs("fixed", "b", owner="")
    cluster.waits("train", 4)
    cluster.node("c", 1)
    (found,) = proposals(cluster.snapshot())
    assert len(found.moves) == 4
    assert {move.target for move in found.moves} == {"b", "c"}


def test_devices_of_a_claim_that_another_pod_uses_stay_in_use() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.node("b")
    one = cluster.runs("one", "a")
    cluster.pods.append(replace(one, name="beside", uid="uid-beside", owner=""))
    cluster.runs("fixed", "b", owner="")
    cluster.waits("train", 8)
    assert proposals(cluster.snapshot()) == ()
    cluster.pods = [pod for pod in cluster.pods if pod.name != "beside"]
    assert len(proposals(cluster.snapshot())) == 1


def test_pods_that_share_a_claim_go_together_unless_a_budget_parts_them() -> None:
    cluster = Cluster()
    cluster.node("a")
    cluster.node("b")
    one = cluster.runs("one", "a")
    cluster.pods.append(replace(one, name="beside", uid="uid-beside"))
    cluster.runs("fixed", "b", owner="")
    cluster.waits("train", 8)
    (found,) = proposals(cluster.snapshot())
    assert sorted(moves(found)) == [("beside", "a", "b"), ("one", "a", "b")]
    assert proposals(_budget(cluster.snapshot(), 1)) == ()
