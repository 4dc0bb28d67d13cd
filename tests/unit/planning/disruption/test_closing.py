"""Which nodes take no more pods because theirs would cost less on new machines, and which stay open."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.model.capacity import Baseline, CapacityPool, ConsolidationPolicy, Disruption, Launcher, Mode
from autoscaler.model.node import Node
from autoscaler.model.plan import LeftOut, LeftOutVerdict, NodeAction, Plan
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.closing import ClosingMemory, open_where_needed, with_closing
from autoscaler.planning.disruption.node_actions import decide
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import CATALOG, NOW, block, pod
from tests.unit.planning.disruption.moving import POOL, launch, moved, node, served, state

CLOSING = replace(POOL, disruption=Disruption(consolidate=ConsolidationPolicy.CLOSE))
CHEAPER = moved(launch(), usd_per_hour=Decimal(5))  # on a machine of its own, the pod costs 5.00 of 40.00


def closing(found: Snapshot, alone: Plan = CHEAPER, kept: ClosingMemory | None = None) -> dict[str, Decimal]:
    """What closes, with what its pods save."""
    memory = ClosingMemory() if kept is None else kept
    return dict(with_closing(found, lambda _: alone, NOW, catalog=CATALOG, kept=memory).closing)


def closable(**fields: Any) -> Snapshot:
    return state(**({"pools": (CLOSING,)} | fields))


def at(usd: str) -> Plan:
    """The plan of the pods alone, at that price."""
    return replace(CHEAPER, usd_per_hour=Decimal(usd), launches=(launch(price=Decimal(usd)),))


@pytest.mark.parametrize(("usd", "closes"), [("5", True), ("34", True), ("34.01", False), ("40", False), ("80", False)])
def test_a_node_closes_if_its_pods_cost_less_alone_by_the_share_of_its_pool(usd: str, closes: bool) -> None:
    assert closing(closable(), at(usd)) == ({"old": 40 - Decimal(usd)} if closes else {})


def test_the_pods_are_planned_for_in_a_cluster_that_has_nothing_else() -> None:
    asked: list[Snapshot] = []

    def make(alone: Snapshot) -> Plan:
        asked.append(alone)
        return CHEAPER

    others = (served("other", on="n"), pod("waits"))
    found = closable(pods=(served(), *others), nodes=(node(), node("n", pods=("default/other",))))
    with_closing(found, make, NOW, catalog=CATALOG, kept=ClosingMemory())
    (alone,) = asked
    assert [(one.key, one.node_name, one.phase) for one in alone.pods] == [("default/web", None, "Pending")]
    assert (alone.nodes, alone.provisioned) == ((), ())
    assert alone.pools == found.pools


@pytest.mark.parametrize(
    "pool",
    [
        replace(CLOSING, disruption=Disruption(consolidate=ConsolidationPolicy.WHEN_EMPTY)),
        replace(CLOSING, disruption=Disruption(consolidate=ConsolidationPolicy.CHEAPER)),
        replace(CLOSING, mode=Mode.OBSERVE),
        replace(CLOSING, held_back=True),
        replace(CLOSING, deleting=True),
        replace(CLOSING, launcher=Launcher.CLUSTER_AUTOSCALER),
        replace(CLOSING, baselines=(Baseline(1),)),
    ],
)
def test_pools_in_which_nothing_closes(pool: CapacityPool) -> None:
    assert closing(closable(pools=(pool,))) == {}


def offered(**fields: Any) -> ProvisionedNode:
    return replace(node(), offerings=(replace(node().offering, **fields),))


MARKED = FrozenMap({labels.DO_NOT_DISRUPT: "true"})


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"nodes": [node(phase=Phase.REGISTERED)]}, id="it still starts"),
        pytest.param({"nodes": [node(phase=Phase.DRAINING)]}, id="it goes anyway"),
        pytest.param({"nodes": [node(stopped_since=NOW)]}, id="its machine is stopped"),
        pytest.param({"nodes": [node(replaces=("older",))]}, id="it replaces another"),
        pytest.param({"nodes": [node(hosts=4)]}, id="it is a host of a slice"),
        pytest.param(
            {"nodes": [offered(usd_per_hour=None)]},
            id="its price is not known",
        ),
        pytest.param({"nodes": [node(pods=("default/web",))]}, id="it runs what it was bought for"),
        pytest.param({"nodes": [node(pods=("default/late",))], "pods": (served(), pod("late"))}, id="one is to come"),
        pytest.param({"pods": (served(), pod("next", nominated_node="old"))}, id="one is nominated"),
        pytest.param({"pods": (served(owner="DaemonSet/agent"),)}, id="it is empty"),
        pytest.param({"nodes": [offered(block="november")], "blocks": (block(),)}, id="it is of a block"),
    ],
)
def test_nodes_that_stay_open(fields: dict[str, Any]) -> None:
    assert closing(closable(**fields)) == {}


def test_a_mark_keeps_a_node_open() -> None:
    marked = Node("old", provider_id="id-old", annotations=MARKED)
    assert OwnNodes((marked,)).of(node()) is marked
    assert closing(closable(nodes=[node()])) == {"old": Decimal(35)}
    assert closing(replace(closable(), nodes=(marked,))) == {}


@pytest.mark.parametrize("alone", [Plan(), replace(CHEAPER, launches=(launch(usd_per_hour=None),))])
def test_pods_that_find_no_place_at_a_known_price_keep_their_node_open(alone: Plan) -> None:
    assert closing(closable(), alone) == {}


def test_what_pods_cost_alone_is_planned_once() -> None:
    kept, asked = ClosingMemory(), [0]

    def make(_: Snapshot) -> Plan:
        asked[0] += 1
        return CHEAPER

    look = partial(with_closing, make=make, now=NOW, catalog=CATALOG, kept=kept)
    assert look(closable()).closing == look(closable()).closing != {}
    assert asked == [1]
    look(closable(pods=(served(), served("more"))))
    assert asked == [2]
    look(closable(nodes=()))
    assert not kept.alone


def test_only_so_many_nodes_are_judged_at_once() -> None:
    nodes: list[ProvisionedNode] = [node(f"n{index}") for index in range(20)]
    found = closable(nodes=nodes, pods=tuple(served(f"p{index}", on=f"n{index}") for index in range(20)))
    kept, asked = ClosingMemory(), [0]

    def make(_: Snapshot) -> Plan:
        asked[0] += 1
        return Plan()

    for expected in (8, 16, 20, 20):
        with_closing(found, make, NOW, catalog=CATALOG, kept=kept)
        assert asked == [expected]


def test_a_closing_node_takes_no_pods_and_keeps_those_it_has() -> None:
    found = replace(closable(), closing=FrozenMap({"old": Decimal(35)}))
    (decision,) = decide(found, frozenset(), NOW, custom={})
    assert decision.action is NodeAction.CLOSE
    assert [(reason.code, reason.detail["saved"]) for reason in decision.reasons] == [(Code.NODE_CLOSING, "35.00")]
    empty = replace(found, pods=(), provisioned=(node(empty_since=NOW - timedelta(hours=1)),))
    (gone,) = decide(empty, frozenset(), NOW, custom={})
    assert gone.action is NodeAction.DRAIN


def test_nodes_are_open_where_more_pods_find_a_place_then() -> None:
    found = replace(closable(), closing=FrozenMap({"old": Decimal(35)}))
    left = LeftOut("default/waits", LeftOutVerdict.DOES_NOT_FIT, ())
    stuck, placed = Plan(left_out=(left, left)), Plan(left_out=(left,))
    assert open_where_needed(stuck, found, lambda _: placed) == (replace(found, closing=FrozenMap()), placed)
    assert open_where_needed(stuck, found, lambda _: stuck) == (found, stuck)
    assert open_where_needed(Plan(), found, lambda _: placed) == (found, Plan())
