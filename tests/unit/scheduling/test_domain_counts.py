"""Nodes are counted once; in the worlds that follow, only what differs is counted again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account
from autoscaler.model.node import Node
from autoscaler.model.verdict import Fits
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from tests.builders import pod, snapshot

NODES = 9
BASE = World.of(
    snapshot([pod(f"r{n}", node_name=f"n{n}") for n in range(NODES)], nodes=tuple(Node(f"n{n}") for n in range(NODES)))
)


def names(world: World, *, price: int = 0) -> dict[str, int]:
    """The pods of the world, and how often each was counted."""

    def read(state: NodeState) -> Iterator[str]:
        yield from (found.name for found in state.pods)

    def shape(found: Counter[str]) -> dict[str, int]:
        return {name: count for name, count in found.items() if count}

    return world.counts.of("names", (), world.nodes, read, shape, price=price)


def there(*more: str, without: str = "") -> dict[str, int]:
    return {name: 1 for name in (*(f"r{n}" for n in range(NODES)), *more) if name != without}


def test_pods_of_changed_new_and_lost_nodes_are_counted_once() -> None:
    assert names(BASE) == there()
    placed = BASE.placed([pod("p")], "n1", Fits())
    assert names(placed) == there("p")
    assert names(placed.with_node(Node("new"), (), daemon_pods=[pod("d")])) == there("p", "d")
    assert names(BASE.without_node("n2")) == there(without="r2")
    assert names(BASE) == there()


def test_few_of_many_nodes_are_counted_by_themselves() -> None:
    alone = BASE
    for number in range(1, NODES):
        alone = alone.without_node(f"n{number}")
    assert names(alone) == {"r0": 1}


def test_what_is_read_is_paid() -> None:
    account = Account(own=10_000, shared=Purse(0), most=10_000)
    world = World.of(BASE.snapshot)
    with on_account(account):
        names(world, price=100)
        names(world.placed([pod("p")], "n1", Fits()), price=100)
    # All nine at first; then the two of the node that changed, and the one that was there before.
    assert account.spent == 900 + 300
    with pytest.raises(BudgetSpentError), on_account(Account(own=100, shared=Purse(0), most=100)):
        names(World.of(BASE.snapshot), price=100)
