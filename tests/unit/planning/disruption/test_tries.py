"""How many nodes are tried in one reconcile, and which of them together."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from autoscaler.model.capacity import Mode
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.consolidation.tried_moves import NOTHING_TRIED
from instance_catalog.dataclass import replace
from tests.unit.planning.disruption.gpu_nodes import Cluster
from tests.unit.planning.disruption.moving import POOL, drained, launch, moved, node, present, served, state, step


@pytest.mark.parametrize(
    ("work", "most", "together"), [(0, 8, 20), (250_000, 8, 20), (500_000, 4, 4), (10_000_000, 2, 2)]
)
def test_fewer_nodes_while_pending_pods_make_plans_expensive(work: int, most: int, together: int) -> None:
    """Each try plans all pending pods again, and pods of others wait for the end of the reconcile."""
    names = [f"n{number:02}" for number in range(20)]
    found = state([served(f"p-{name}", name) for name in names], [node(name) for name in names])
    tries: list[int] = []

    def tried(without: Snapshot) -> Plan:
        tries.append(sum(n.phase is Phase.DRAINING for n in without.provisioned))
        return Plan()

    step(found, tried, plan=present(found, work=work))
    assert tries.count(1) == most
    assert max(tries) == together


def test_a_node_whose_answer_stands_moves_together_with_another() -> None:
    """Neither can go alone, and the first answer stands for hours when the second node comes."""

    def tried(without: Snapshot) -> Plan:
        wanted = [one.key for one in without.pods if one.node_name is None]
        return moved(launch("one", Decimal(50), pods=tuple(wanted)), pods=wanted)

    made = Cluster()
    made.node("b", count=1)
    made.runs("p", "b")
    first = step(made.snapshot(pools=(POOL,), provisioned=(node("b"),)), tried)
    made.node("a", count=1)
    made.runs("q", "a")
    second = step(
        made.snapshot(pools=(POOL,), provisioned=(node("b"), node("a"))), tried, first.tried, later=timedelta(minutes=5)
    )
    assert [bought.replaces for bought in second.plan.launches] == [("a", "b")]
    assert second.tried.refused.keys().isdisjoint(("a", "b"))
    assert second.tried.tried.keys().isdisjoint(("a", "b")), "both are tried again as soon as the new node is ready"


def test_nodes_are_tried_together_once_an_hour() -> None:
    """Such a try costs a plan with the pods of many nodes."""
    made, together, seen = Cluster(), list[int](), NOTHING_TRIED
    for name in "abc":
        made.node(name)
        made.runs(f"p-{name}", name)

    def tried(without: Snapshot) -> Plan:
        gone = sum(one.phase is Phase.DRAINING for one in without.provisioned)
        together.extend([minute] if gone == 3 else [])
        return Plan()

    for minute in (0, 5, 10, 64, 70):
        made.runs(f"more-{minute}", "a")  # after the first try, only this node is due
        found = made.snapshot(pools=(POOL,), provisioned=tuple(map(node, "abc")))
        seen = step(found, tried, seen, later=timedelta(minutes=minute)).tried
    assert sorted(set(together)) == [0, 64]


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    seen = step(state(), Plan(), later=timedelta(days=3)).tried
    assert drained(step(state(), moved(), seen)) == ["old"]


@pytest.mark.parametrize(("names", "others"), [("abcdefghi", 0), ("ab", 2000)])
def test_nodes_that_only_go_together_drain(names: str, others: int) -> None:
    """Otherwise they are tainted and untainted in turns, and plans of many nodes are made each time. In a large cluster
    one node is tried in a reconcile."""

    def tried(without: Snapshot) -> Plan:
        wanted = [pod.key for pod in without.pods if pod.node_name is None]
        if len(wanted) == len(names) + 1:  # a plan without all nodes, of which one keeps its pod
            return Plan(launches=(launch("one", pods=tuple(f"default/p-{name}" for name in names)),))
        return moved(pods=wanted) if len(wanted) == len(names) else Plan()

    nodes = [node(name) for name in (*names, "z")]
    pods = [*(served(f"p-{name}", name) for name in names), served("p-z", "z", cpu="2")]
    found = state(pods, nodes)
    found = replace(found, nodes=(*found.nodes, *(Node(f"other-{number}") for number in range(others))))
    first = step(found, tried)
    assert drained(first) == list(names)
    again = step(found, tried, first.tried, later=timedelta(seconds=1))
    assert drained(again) == list(names)


def test_a_pool_that_observes_hides_no_move_of_several_nodes() -> None:
    """One of its nodes could always go, but does not."""
    watched = replace(POOL, name="watched", mode=Mode.OBSERVE)

    def tried(without: Snapshot) -> Plan:
        wanted = [pod.key for pod in without.pods if pod.node_name is None]
        if wanted == ["default/web"]:
            return moved(pods=wanted)
        both = ["default/p-a", "default/p-b"]
        return moved(launch("one", pods=tuple(both)), pods=both) if wanted == both else Plan()

    nodes = [node("a"), node("b"), node(pool="watched")]
    found = state([served("p-a", "a"), served("p-b", "b"), served()], nodes, [POOL, watched])
    assert [bought.replaces for bought in step(found, tried).plan.launches] == [("a", "b")]


@pytest.mark.parametrize(("others", "sizes"), [(0, [1] * 4 + [4, 2, 2, 4, 2]), (2000, [1, 4, 2])])
def test_few_tries_of_several_nodes_in_a_large_cluster(others: int, sizes: list[int]) -> None:
    """Each is a plan of all nodes, and pending pods wait for its end. After each move several are tried again."""
    pairs = ("a", "b"), ("c", "d")
    tries: list[int] = []

    def tried(without: Snapshot) -> Plan:
        wanted = [pod.key for pod in without.pods if pod.node_name is None]
        tries.append(len(wanted))
        one_for_two = [launch(pair[0], pods=tuple(f"default/p-{name}" for name in pair)) for pair in pairs]
        return Plan(launches=tuple(one_for_two)) if len(wanted) == 4 else Plan()

    found = state([served(f"p-{name}", name) for name in "abcd"], map(node, "abcd"))
    step(replace(found, nodes=(*found.nodes, *(Node(f"other-{number}") for number in range(others)))), tried)
    assert tries == sizes
