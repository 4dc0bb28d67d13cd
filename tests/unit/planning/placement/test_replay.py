"""Plans under a scheduler that chooses among equal nodes as badly as it may."""

from __future__ import annotations

import pytest

from autoscaler.model.device_class import Selector
from autoscaler.model.node import Node
from autoscaler.model.plan import Placement, Plan, Target
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.placement.replay import pod_without_place, replay
from autoscaler.planning.policy import WorkLimits
from autoscaler.scheduling.schedule import Choice, adversarial, first, seeded
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, NOW, TEAM, gpus, ours, pairs, plan, pod, snapshot
from tests.unit.planning.disruption.gpu_nodes import Cluster

CHOICES = [
    pytest.param(first, id="first"),
    pytest.param(adversarial, id="adversarial"),
    pytest.param(seeded(1), id="seeded"),
]


@pytest.mark.parametrize("choose", CHOICES)
@pytest.mark.parametrize("count", [1, 4, 5])
def test_pods_that_any_of_the_nodes_takes_always_find_a_place(count: int, choose: Choice) -> None:
    state = snapshot(*pairs(count, gpus()))
    decided = plan(state)
    found = replay(decided, state, CATALOG, choose)
    assert found.holds
    assert len(found.placed) == count
    assert set(found.placed.values()) <= {node.name for node in decided.launches}


def roomy(name: str, **labels: str) -> Node:
    allocatable = FrozenMap({"cpu": Quantity.parse("4"), "pods": Quantity.parse("10")})
    return Node(name, labels=FrozenMap(labels), allocatable=allocatable)


def on_present_nodes(*nodes: str) -> tuple[Snapshot, Plan]:
    """A pod for any node and one for the fast node only, which the plan keeps apart."""
    greedy, picky = pod("greedy", cpu="4"), pod("picky", cpu="4", node_selector=FrozenMap({"fast": "yes"}))
    slow, fast = roomy("slow"), roomy("fast", fast="yes")
    state = snapshot([greedy, picky], nodes=tuple(n for n in (fast, slow) if n.name in nodes))
    placements = (
        Placement("default/greedy", Target.EXISTING, "slow"),
        Placement("default/picky", Target.EXISTING, "fast"),
    )
    return state, Plan(placements=placements)


def test_a_plan_that_depends_on_luck_is_found_out() -> None:
    state, decided = on_present_nodes("fast", "slow")
    found = replay(decided, state, CATALOG, adversarial)
    assert not found.holds
    assert found.placed == {"default/greedy": "fast"}
    assert found.stuck == ("default/picky",)
    assert [(reason.code, str(reason.subject)) for reason in found.reasons] == [
        (Code.REPLAY_STUCK, "pod default/picky")
    ]


def test_priority_decides_whose_turn_it_is() -> None:
    state, decided = on_present_nodes("fast", "slow")
    greedy, picky = state.pods
    sorted_out = replace(state, pods=(greedy, replace(picky, priority=1)))
    assert replay(decided, sorted_out, CATALOG, adversarial).holds


def test_a_nomination_keeps_a_pod_to_the_plan() -> None:
    state, decided = on_present_nodes("fast", "slow")
    greedy, picky = state.pods
    nominated = replace(state, pods=(replace(greedy, nominated_node="slow"), picky))
    assert replay(decided, nominated, CATALOG, adversarial).holds


def test_only_pods_of_the_plan_are_scheduled() -> None:
    state, decided = on_present_nodes("slow")
    found = replay(replace(decided, placements=decided.placements[:1]), state, CATALOG, first)
    assert found.placed == {"default/greedy": "slow"}


@pytest.mark.parametrize(
    ("sizes", "stuck"),
    [
        pytest.param({"big": "4", "little": "1"}, "default/big", id="the little one takes the room of the big one"),
        pytest.param({"little": "1", "small": "1"}, "", id="equal pods"),
        pytest.param({"little": "1", "tiny": "0.5"}, "", id="room for both everywhere"),
    ],
)
@pytest.mark.parametrize("reverse", [True, False])
def test_pods_that_move_have_places_in_whatever_order_they_come(
    sizes: dict[str, str], stuck: str, *, reverse: bool
) -> None:
    """kube-scheduler prefers the emptier node for the little pod, and the plan the other one."""
    pods = [pod(name, cpu=cpu) for name, cpu in sorted(sizes.items(), reverse=reverse)]
    used = pod("used", cpu="2", node_name="half", phase="Running")
    state = snapshot([*pods, used], nodes=(roomy("half"), roomy("whole")))
    places = [Placement(p.key, Target.EXISTING, "whole" if p.name == "big" else "half") for p in pods]
    decided = Plan(placements=tuple(places))
    found = pod_without_place(decided, state, pods, catalog=CATALOG, work=WorkLimits(), now=NOW)
    assert found == stuck


@pytest.mark.parametrize(("size", "stuck"), [("2", ""), ("4", "default/big")])
def test_a_node_that_starts_is_no_room_for_pods_that_move(size: str, stuck: str) -> None:
    """A provider may hold its machine for weeks. The pod that waits for it takes no room elsewhere either."""
    little, big, waits = pod("little", cpu="1"), pod("big", cpu=size), pod("waits", cpu="4")
    used = pod("used", cpu="2", node_name="half", phase="Running")
    state = snapshot(
        [little, big, waits, used], nodes=(roomy("half"), roomy("whole")), pools=(TEAM,), provisioned=(ours("n"),)
    )
    places = {"little": "half", "big": "whole"}
    existing = [Placement(f"default/{name}", Target.EXISTING, node) for name, node in places.items()]
    decided = Plan(placements=(*existing, Placement(waits.key, Target.COMING, "n")))
    assert replay(decided, state, CATALOG, first).placed[waits.key] == "n", "it is a node in other replays"
    found = pod_without_place(decided, state, [little, big], catalog=CATALOG, work=WorkLimits(), now=NOW)
    assert found == stuck


def test_the_size_of_the_cluster_refuses_no_move() -> None:
    """Each pod is compared with each node twice: what that may cost grows with the nodes, as in a plan."""
    cluster = Cluster()
    for number in range(200):
        cluster.node(f"n{number:03}", 2)
        cluster.runs(f"r{number:03}", f"n{number:03}", count=2 if number else 1)
    model = "device.attributes['gpu.nvidia.com'].productName"
    text = f"{model} != 'of this test' && {model} != 'other'"  # no test before has paid for it
    request = DeviceRequest("gpu", "gpu.nvidia.com", (Selector(text),), count=1)
    moved = [cluster.waits("large", request=request, cpu="2"), pod("small")]
    decided = Plan(placements=tuple(Placement(p.key, Target.EXISTING, "n000") for p in moved))
    work = WorkLimits(per_pod=10_000, per_round=10_000, selectors_per_round=0)
    assert pod_without_place(decided, cluster.snapshot(moved[1:]), moved, catalog=CATALOG, work=work, now=NOW) == ""
