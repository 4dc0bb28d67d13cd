"""Which nodes take no more pods than those that they were bought for, and for which pods they open again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.model.capacity import Baseline, CapacityPool, ConsolidationPolicy, Disruption, Launcher, Mode
from autoscaler.model.node import Node
from autoscaler.model.plan import LeftOut, LeftOutVerdict, NodeAction, Placement, Plan, Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.disruption.closing import reopened, with_closing, without_closed_pools
from autoscaler.planning.disruption.node_actions import decide
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from tests.builders import CATALOG, NOW, block, pod
from tests.unit.planning.disruption.moving import DEAR, POOL, launch, node, served, state

CLOSING = replace(POOL, disruption=Disruption(consolidate=ConsolidationPolicy.CLOSE))


def closing(found: Snapshot) -> dict[str, Decimal]:
    """What closes, with its price."""
    return dict(with_closing(found, NOW, catalog=CATALOG, closes=True).closing)


def closable(**fields: Any) -> Snapshot:
    return state(**({"pools": (CLOSING,)} | fields))


def test_a_node_takes_no_more_pods_than_those_that_it_was_bought_for() -> None:
    assert closing(closable()) == closing(closable(nodes=[node(pods=("default/web",))])) == {"old": DEAR}


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
        pytest.param({"nodes": [node(pods=("default/late",))], "pods": (served(), pod("late"))}, id="one is to come"),
        pytest.param({"pods": (served(), pod("next", nominated_node="old"))}, id="one is nominated"),
        pytest.param({"nodes": [offered(block="november")], "blocks": (block(),)}, id="it is of a block"),
    ],
)
def test_nodes_that_stay_open(fields: dict[str, Any]) -> None:
    assert closing(closable(**fields)) == {}


def test_a_mark_keeps_a_node_open() -> None:
    marked = Node("old", provider_id="id-old", annotations=MARKED)
    assert OwnNodes((marked,)).of(node()) is marked
    assert closing(closable(nodes=[node()])) == {"old": DEAR}
    assert closing(replace(closable(), nodes=(marked,))) == {}


@pytest.mark.parametrize(
    ("fields", "closed"),
    [
        pytest.param({}, ["b"], id="the first one drains"),
        pytest.param({"first": None}, [], id="the first one is gone, perhaps for another reason"),
        pytest.param({"first": None, "taint": True}, ["b"], id="the first one is gone, and it was closed before"),
        pytest.param({"first": Phase.READY}, [], id="none drains yet"),
        pytest.param({"reasons": ()}, [], id="the first one goes for another reason"),
        pytest.param({"since": timedelta(hours=1)}, [], id="too long ago"),
        pytest.param({"pool": replace(POOL, mode=Mode.OBSERVE)}, [], id="the pool observes"),
        pytest.param({"pool": replace(POOL, disruption=Disruption())}, [], id="the pool moves no pods any more"),
        pytest.param({"pool": replace(POOL, launcher=Launcher.CLUSTER_AUTOSCALER)}, [], id="another launches"),
        pytest.param({"more": (pod("next", nominated_node="b"),)}, [], id="a pod is nominated to it"),
        pytest.param({"new": Phase.REGISTERED}, [], id="the new one still starts"),
        pytest.param({"mark": MARKED}, [], id="it has a mark by now"),
    ],
)
def test_nodes_that_one_machine_replaces_close_when_the_first_drains(fields: dict[str, Any], closed: list[str]) -> None:
    """In a real cluster, too: its pods would otherwise go to the next nodes, and be evicted again."""
    first, reasons = fields.get("first", Phase.DRAINING), fields.get("reasons", (Reason.of(Code.NODE_DISPENSABLE),))
    ready = NOW - fields.get("since", timedelta(minutes=5))
    new = node("new", replaces=("a", "b"), phase=fields.get("new", Phase.READY), phase_since=ready)
    nodes = [*([] if first is None else [node("a", phase=first, reasons=reasons)]), node("b"), new, node("other")]
    pods = [served("pb", "b"), served("po", "other"), *fields.get("more", ())]
    found = state(pods, nodes, [fields.get("pool", POOL)])
    marks, taints = fields.get("mark", FrozenMap()), (Taint(labels.DRAINING_TAINT),) if "taint" in fields else ()
    marked = [replace(n, annotations=marks, taints=taints) if n.name == "b" else n for n in found.nodes]
    found = with_closing(replace(found, nodes=tuple(marked)), NOW, catalog=CATALOG, closes=False)
    assert list(found.closing) == closed
    decisions = {d.provisioned_node: d for d in decide(found, frozenset(), NOW, custom={})}
    if closed:
        assert decisions["b"].action is NodeAction.CLOSE
        assert decisions["b"].reasons[0].detail == {"to": "new"}


def test_where_a_pool_stops_only_nodes_with_a_replacement_stay_closed() -> None:
    """Pending pods need the room of those for which another would be launched."""
    nodes = [node(), node("b"), node("new", replaces=("a", "b"))]
    found = replace(state(nodes=nodes), closing=FrozenMap({"old": DEAR, "b": DEAR}))
    assert list(without_closed_pools(found).closing) == ["b"]


def test_a_closing_node_takes_no_pods_and_keeps_those_it_has() -> None:
    found = closed()
    (decision,) = decide(found, frozenset(), NOW, custom={})
    assert decision.action is NodeAction.CLOSE
    assert [reason.code for reason in decision.reasons] == [Code.NODE_CLOSING]
    empty = replace(found, pods=(), provisioned=(node(empty_since=NOW - timedelta(hours=1)),))
    (gone,) = decide(empty, frozenset(), NOW, custom={})
    assert gone.action is NodeAction.DRAIN
    (waits,) = decide(replace(empty, provisioned=(node(empty_since=NOW),)), frozenset(), NOW, custom={})
    assert waits.action is NodeAction.CLOSE


@pytest.mark.parametrize(("usd", "opens"), [("5", True), ("5.01", False)])
def test_an_empty_node_is_open_for_a_pod_that_would_launch_a_machine_of_its_price(usd: str, opens: bool) -> None:
    found = closable(pods=(served(owner="DaemonSet/agent"), pod("next", **for_hours(1))))
    assert set(closing(found)) == {"old"}
    found = replace(found, closing=FrozenMap({"old": Decimal(usd)}))
    assert bool(reopened(BOUGHT, found, onto_old("default/next"), NOW)[0].closing) is not opens


def closed(*, pods: tuple[Pod, ...] = (served(),), usd: str = "40") -> Snapshot:
    """The node `old`, closed, of this price."""
    return replace(closable(pods=pods), closing=FrozenMap({"old": Decimal(usd)}))


def opened(found: Snapshot) -> Snapshot:
    return replace(found, closing=FrozenMap())


def test_nodes_are_open_where_more_pods_find_a_place_then() -> None:
    found = closed()
    left = LeftOut("default/waits", LeftOutVerdict.DOES_NOT_FIT, ())
    stuck, placed = Plan(left_out=(left, left)), Plan(left_out=(left,))
    assert reopened(stuck, found, lambda _: placed, NOW) == (opened(found), placed)
    assert reopened(stuck, found, lambda _: stuck, NOW) == (found, stuck)
    assert reopened(Plan(), found, lambda _: placed, NOW) == (found, Plan())


@pytest.mark.parametrize(
    ("usd", "then", "opens"),
    [
        pytest.param("40", "0", True, id="the pod needs no machine then"),
        pytest.param("40", "41", False, id="it needs one anyway"),
        pytest.param("41", "0", False, id="the closed node is not cheaper than the machine"),
    ],
)
def test_no_machine_is_launched_that_costs_more_than_a_closed_node_with_room(usd: str, then: str, opens: bool) -> None:
    found = replace(closed(usd=usd), provisioned=(node(phase_since=NOW),))
    dear = Plan(launches=(launch(price=Decimal(41)),), usd_per_hour=Decimal(41))
    there = Placement("default/next", Target.EXISTING, "old")
    other = Plan(placements=(there,), usd_per_hour=Decimal(then))
    assert reopened(dear, found, lambda _: other, NOW) == ((opened(found), other) if opens else (found, dear))


def for_hours(hours: int | None) -> dict[str, Any]:
    """The fields of a pod that was created now and says that it runs so long."""
    span = None if hours is None else timedelta(hours=hours)
    return {"expected_duration": span, "created": NOW.timestamp()}


BOUGHT = Plan(launches=(launch(price=Decimal(5), pods=("default/next",)),), usd_per_hour=Decimal(5))


def onto_old(*keys: str) -> Callable[[Snapshot], Plan]:
    """Plans that put the pods on `old` where it is open."""
    there = Plan(placements=tuple(Placement(key, Target.EXISTING, "old") for key in keys))
    return lambda found: BOUGHT if found.closing else there


@pytest.mark.parametrize(
    ("there", "waits", "opens"),
    [(3, 2, True), (2, 2, True), (2, 3, False), (None, 2, False), (3, None, False)],
)
def test_a_node_opens_for_a_pod_that_ends_before_those_that_run_there(
    there: int | None, waits: int | None, opens: bool
) -> None:
    found = closed(pods=(served(**for_hours(there)), pod("next", **for_hours(waits))))
    make = onto_old("default/next")
    assert reopened(BOUGHT, found, make, NOW) == ((opened(found), make(opened(found))) if opens else (found, BOUGHT))


@pytest.mark.parametrize("late", [4, None])
def test_a_node_stays_closed_if_kube_scheduler_may_put_a_pod_there_that_stays_longer(late: int | None) -> None:
    pods = (served(**for_hours(3)), pod("next", **for_hours(2)), pod("late", **for_hours(late)))
    assert reopened(BOUGHT, closed(pods=pods), onto_old("default/next"), NOW)[0].closing


def test_a_pod_that_waits_has_all_its_time_before_it() -> None:
    waited = for_hours(4) | {"created": NOW.timestamp() - 2 * 3600}
    found = closed(pods=(served(**for_hours(3)), pod("next", **waited)))
    assert reopened(BOUGHT, found, onto_old("default/next"), NOW)[0].closing


@pytest.mark.parametrize(
    ("usd", "runs", "opens"),
    [
        pytest.param("6", 12, True, id="five of six parts are free, the last costs a fifth more"),
        pytest.param("40", 3, False, id="the last third costs eight times as much"),
    ],
)
def test_a_pod_that_stays_longer_opens_a_node_if_it_costs_less_there_in_all(usd: str, runs: int, opens: bool) -> None:
    found = closed(pods=(served(**for_hours(runs - 1)), pod("next", **for_hours(runs))), usd=usd)
    assert bool(reopened(BOUGHT, found, onto_old("default/next"), NOW)[0].closing) is not opens


def test_of_two_nodes_the_one_opens_on_which_the_pod_is_expected_to_cost_less() -> None:
    ready = {"phase_since": NOW - timedelta(hours=50)}
    pods = (served("a", on="large", **since(50)), served("b", on="small", **since(30)), pod("next"))
    nodes = [node("large", **ready), node("small", **ready), node("young", phase_since=NOW)]
    prices = FrozenMap({"large": Decimal(40), "small": Decimal(6), "young": Decimal(5)})
    found = replace(closable(pods=pods, nodes=nodes), closing=prices)
    after, _ = reopened(BOUGHT, found, lambda now: BOUGHT if len(now.closing) == 3 else Plan(), NOW)
    assert set(after.closing) == {"large", "young"}


def test_as_many_nodes_open_as_the_pods_need() -> None:
    old = {"phase_since": NOW - timedelta(hours=9)}
    pods = (served("a", on="one", **since(9)), served("b", on="two", **since(8)), served("c", on="third", **since(7)))
    nodes = [node(name, **old) for name in ("one", "two", "third")]
    prices = FrozenMap(dict.fromkeys(("one", "two", "third"), Decimal(5)))
    found = replace(closable(pods=pods, nodes=nodes), closing=prices)

    def make(now: Snapshot) -> Plan:
        return replace(BOUGHT, usd_per_hour=Decimal(5 * max(0, len(now.closing) - 1)))

    assert set(reopened(make(found), found, make, NOW)[0].closing) == {"third"}


def since(hours: float) -> dict[str, Any]:
    return {"created": NOW.timestamp() - hours * 3600}


@pytest.mark.parametrize(
    ("usd", "runs", "ready", "opens"),
    [
        pytest.param("5", 1, 1, True, id="a node of the price of the machine, and a pod that has run for long"),
        pytest.param("5", 0.9, 1, False, id="it has not run for so long"),
        pytest.param("5", 40, 0.9, False, id="it has waited for most of that time"),
        pytest.param("10", 8, 8, True, id="a node of twice the price, and eight times the time"),
        pytest.param("10", 7.9, 8, False, id="a node of twice the price, and less"),
        pytest.param("5", 4, None, False, id="it is not known how long it has run"),
    ],
)
@pytest.mark.parametrize("waits", [None, 1])
def test_a_node_opens_if_one_of_its_pods_has_run_for_hours(
    usd: str, runs: float, ready: float | None, opens: bool, waits: int | None
) -> None:
    old = node(phase_since=None if ready is None else NOW - timedelta(hours=ready))
    pods = (served(**since(runs)), served("young", **since(0.5)), pod("next", **for_hours(waits)))
    found = replace(closable(pods=pods, nodes=[old]), closing=FrozenMap({"old": Decimal(usd)}))
    assert bool(reopened(BOUGHT, found, onto_old("default/next"), NOW)[0].closing) is not opens


def test_a_small_machine_beside_a_large_one_does_not_open_a_node_for_both() -> None:
    prices = (Decimal(5), Decimal(1))
    both = Plan(launches=tuple(launch(price=price) for price in prices), usd_per_hour=Decimal(6))
    old = node(phase_since=NOW - timedelta(hours=5))
    found = replace(closable(pods=(served(**since(5)),), nodes=[old]), closing=FrozenMap({"old": Decimal(5)}))
    there = Plan(placements=(Placement("default/next", Target.EXISTING, "old"),))
    assert reopened(both, found, lambda now: both if now.closing else there, NOW) == (found, both)


def test_nodes_that_no_pod_would_use_stay_closed() -> None:
    pods = (served(**for_hours(3)), served("idle", on="n", **for_hours(3)), pod("next", **for_hours(2)))
    found = replace(
        closable(pods=pods, nodes=[node(), node("n")]), closing=FrozenMap({"old": Decimal(40), "n": Decimal(40)})
    )
    there = Plan(placements=(Placement("default/next", Target.EXISTING, "old"),))
    after, plan = reopened(BOUGHT, found, lambda now: BOUGHT if "old" in now.closing else there, NOW)
    assert (dict(after.closing), plan) == ({"n": Decimal(40)}, there)
