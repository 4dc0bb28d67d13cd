"""What a round may spend: pods that would take too much are unknown, and all others get what they got without them."""

from __future__ import annotations

from collections import Counter

import pytest

from autoscaler.model.device_class import Selector
from autoscaler.model.node import Node
from autoscaler.model.plan import LeftOut, Plan
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import (
    Constraint,
    DeviceRequest,
    FirstAvailable,
    MatchAttribute,
    Request,
)
from autoscaler.model.verdict import DoesNotFit
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from autoscaler.planning.policy import Policy, WorkLimits
from autoscaler.planning.work import Ledger
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device, NodeReach, Pool, ResourceSlice
from tests.builders import TEAM, Pairs, gpus, in_namespace, joined, pairs, plan, pod, snapshot
from tests.e2e.harness.machines import machine

_TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
_LIMITS = WorkLimits()
# What one evaluation may cost beyond the units that are left when it begins.
_ONE = 1_000_000


def _nested(mark: str) -> str:
    """Four nested all() over ten numbers, different for every mark, then something that is true of no device."""
    expression = "x0 + x1 + x2 + x3 > 0"
    for index in range(4):
        expression = f"{_TEN}.all(x{index}, {expression})"
    return f"{expression} && device.attributes['gpu.nvidia.com'].productName == '{mark}'"


def _asking(expression: str) -> DeviceRequest:
    return DeviceRequest("gpu", "gpu.nvidia.com", (Selector(expression),), count=1)


def _hostile(count: int, mark: str) -> Pairs:
    return joined(*(pairs(1, _asking(_nested(f"{mark}{i}")), prefix=f"{mark}{i}-") for i in range(count)))


def _plan(found: Pairs, *, work: WorkLimits = _LIMITS) -> Plan:
    return plan(snapshot(*found, pools=(TEAM,)), policy=Policy(work=work))


def _places(result: Plan, *, prefix: str) -> dict[str, str]:
    return {p.pod: p.node for p in result.placements if p.pod.partition("/")[2].startswith(prefix)}


def _left(result: Plan) -> dict[str, LeftOut]:
    return {entry.pod: entry for entry in result.left_out}


def test_hostile_pods_change_nothing_for_others() -> None:
    usual = joined(pairs(5, gpus(1), prefix="a"), pairs(2, gpus(4), prefix="b"))
    alone = _plan(usual)
    beside = _plan(joined(_hostile(60, "beside"), usual))
    for prefix in ("a", "b"):
        assert _places(beside, prefix=prefix) == _places(alone, prefix=prefix)
    assert beside.usd_per_hour == alone.usd_per_hour
    assert "unknown" in {entry.verdict for entry in beside.left_out}
    assert beside.work < _LIMITS.per_round + _LIMITS.selectors_per_round + _LIMITS.hints_per_round + 2 * _ONE


def test_a_pod_beyond_the_budget_is_unknown_and_nothing_is_bought_for_it() -> None:
    tight = replace(_LIMITS, selectors_per_round=50_000, hints_per_round=1)
    result = _plan(_hostile(3, "tight"), work=tight)
    assert result.launches == ()
    last = _left(result)["default/tight2-00"]
    assert last.verdict == "unknown"
    reason = last.reasons[0]
    assert reason.code is Code.WORK_BUDGET
    assert reason.detail["expression"] == _nested("tight2")


def test_the_next_rounds_go_on_with_what_is_known() -> None:
    tight = replace(_LIMITS, selectors_per_round=50_000, hints_per_round=1)
    unknown = []
    for _ in range(6):
        result = _plan(_hostile(3, "again"), work=tight)
        unknown.append(sum(entry.verdict == "unknown" for entry in result.left_out))
    assert unknown[0] > 0
    assert unknown == sorted(unknown, reverse=True)
    assert unknown[-1] == 0


def test_an_answer_is_paid_once() -> None:
    first = _plan(_hostile(1, "once"))
    assert first.work > 100_000
    assert _plan(_hostile(1, "once")).work < 10_000


def _sharing(count: int) -> Pairs:
    """Pods that share one claim; a machine has room for some thirty of them."""
    (first,), claims = pairs(1, gpus(1), prefix=f"s{count}-")
    return [replace(first, name=f"{first.name}-{i}", uid=f"uid-{i}") for i in range(count)], claims


def test_pods_that_share_a_claim_cost_what_each_of_them_costs() -> None:
    """Each is looked at beside those before it, and a part of them again where not all have a place."""
    few, many = (_plan(_sharing(count)) for count in (2, 60))
    assert len(few.placements) == 2
    assert 30 <= len(many.left_out) <= 32
    assert many.work > few.work + 20 * 200
    with_more = _plan(_sharing(200))
    assert with_more.work < 3 * many.work, "the look ends at the first that has no room"


def test_pods_with_the_same_selector_share_its_answers() -> None:
    one = _plan(joined(pairs(1, _asking(_nested("share")), prefix="x")))
    forget = _nested("share-too")
    many = _plan(joined(*(pairs(1, _asking(forget), prefix=f"y{i}-", cpu=f"{i + 1}m") for i in range(20))))
    assert many.work < 2 * one.work


def test_a_namespace_does_not_take_the_share_of_another() -> None:
    expensive = in_namespace("victim", pairs(1, _asking(_nested("Small S1")), prefix="v"))
    result = _plan(joined(in_namespace("attacker", _hostile(200, "share-of")), expensive))
    assert "victim/v00" in _places(result, prefix="v")
    assert _left(result)["attacker/share-of199-00"].verdict == "unknown"


def test_nothing_is_bought_for_a_pod_that_a_present_node_might_take() -> None:
    attributes: dict[str, AttributeValue] = {"type": "gpu", "productName": "Small S1", "index": 4711}
    device = Device("gpu-0", FrozenMap(attributes))
    there = Node("n", allocatable=FrozenMap({"cpu": Quantity.of(8), "pods": Quantity.of(9)}))
    published = ResourceSlice("s", "gpu.nvidia.com", Pool("n"), (device,), NodeReach(node_name="n"))
    expensive = f"{_nested('Small S1')} && device.attributes['gpu.nvidia.com'].index >= 4711"
    state = snapshot(*pairs(1, _asking(expensive)), pools=(TEAM,), nodes=(there,), slices=(published,))
    tight = Policy(work=replace(_LIMITS, per_pod=100))
    (left,) = plan(state, policy=tight).left_out
    assert left.verdict == "unknown"
    assert [reason.code for reason in left.reasons] == [Code.WORK_BUDGET]
    assert plan(state, policy=tight).launches == ()


def test_namespaces_have_equal_shares() -> None:
    one, other = pairs(3, gpus(1), prefix="one"), in_namespace("other", pairs(1, gpus(2), prefix="other"))
    found = joined(one, other, pairs(1, gpus(4), prefix="two"))
    state = snapshot(*found)
    ledger = Ledger.of(classes_of(bundles_of(state.pods, state.claims), state), Policy())
    first, second, third = ledger.accounts
    assert first.shared is third.shared
    assert {first.shared.left, second.shared.left} == {_LIMITS.selectors_per_round // 2}
    assert first.own == third.own <= second.own == _LIMITS.per_pod


def test_many_equal_pods_that_find_a_place_do_not_spend_the_budget() -> None:
    small = Policy(work=replace(_LIMITS, per_round=10_000, selectors_per_round=1, per_pod=10_000))
    attributes: dict[str, AttributeValue] = {"type": "gpu", "productName": "Small S1"}
    content = tuple(Device(f"gpu-{i}", FrozenMap(attributes)) for i in range(100))
    there = Node("n", allocatable=FrozenMap({"cpu": Quantity.of(800), "pods": Quantity.of(900)}))
    published = ResourceSlice("s", "gpu.nvidia.com", Pool("n"), content, NodeReach(node_name="n"))
    result = plan(snapshot(*pairs(100, gpus(1)), pools=(TEAM,), nodes=(there,), slices=(published,)), policy=small)
    assert len(result.placements) == 100
    assert result.work > 10_000


def test_the_bound_for_looks_grows_with_the_nodes() -> None:
    state = snapshot(*pairs(1, gpus(1)))
    classes = classes_of(bundles_of(state.pods, state.claims), state)
    few, many = (Ledger.of(classes, Policy(), nodes=nodes).accounts[0] for nodes in (0, 1000))
    assert many.own == 6 * few.own


def test_raising_the_budget_decides_more() -> None:
    tight = replace(_LIMITS, selectors_per_round=50_000)
    few = Counter(entry.verdict for entry in _plan(_hostile(4, "raise"), work=tight).left_out)
    assert few["unknown"] > 0
    more = Counter(entry.verdict for entry in _plan(_hostile(4, "raise"), work=tight.times(1000)).left_out)
    assert more == {"does-not-fit": 4}


def test_equal_pods_that_fit_nowhere_cost_as_much_as_one() -> None:
    one = _plan(pairs(1, gpus(30), prefix="one"))
    many = _plan(pairs(2000, gpus(30), prefix="many"))
    assert many.work <= one.work
    assert len(many.left_out) == 2000


def test_different_pods_that_fit_nowhere_end_at_the_budget() -> None:
    usual = pairs(1, gpus(1), prefix="usual")
    alone = _plan(usual)
    hopeless = joined(*(pairs(1, _asking(f"device.driver == 'h{i}'"), prefix=f"h{i}-") for i in range(1500)))
    small = WorkLimits(per_round=500_000, selectors_per_round=300_000, per_pod=150_000, hints_per_round=100_000)
    result = _plan(joined(hopeless, usual), work=small)
    assert _places(result, prefix="usual") == _places(alone, prefix="usual")
    assert result.work < 1501 * 2_000 + 300_000 + 100_000 + 2 * _ONE


@pytest.mark.parametrize("alternatives", [8])
def test_claims_with_many_alternatives_end_at_the_budget(alternatives: int) -> None:
    requests: list[Request] = [
        FirstAvailable(
            f"r{i}",
            tuple(
                DeviceRequest(f"s{j}", "gpu.nvidia.com", (Selector(f"device.driver != 'd{i}-{j}'"),))
                for j in range(alternatives)
            ),
        )
        for i in range(32)
    ]
    constraints: tuple[Constraint, ...] = (MatchAttribute("gpu.nvidia.com/uuid", tuple(f"r{i}" for i in range(32))),)
    pods, claims = pairs(1, *requests, prefix="wide")
    claims = [replace(claim, constraints=constraints) for claim in claims]
    usual = pairs(1, gpus(1), prefix="usual")
    result = _plan(joined((pods, claims), usual))
    assert _places(result, prefix="usual")
    assert not _places(result, prefix="wide")
    assert result.work < _LIMITS.per_pod + _LIMITS.hints_per_round + 2 * _ONE


_LONG = "'" + "a" * 1000 + "'"
_HOSTILE = {
    "range": "lists.range(50000).all(x, x >= 0)",
    "range of range": "lists.range(1000000).all(i, lists.range(1000).all(j, j >= 0))",
    "sort": "lists.range(100000).map(x, -x).sort() == []",
    "text growth": "".join(f"cel.bind(v{i + 1}, v{i} + v{i}, " for i in range(24)).replace("v0", _LONG)
    + "v24.size() > 0"
    + ")" * 24,
    "list growth": "".join(f"cel.bind(v{i + 1}, v{i} + v{i}, " for i in range(24)).replace("v0", _TEN)
    + "v24.size() > 0"
    + ")" * 24,
    "replace": _LONG + f".replace('a', {_LONG}).replace('a', {_LONG}).size() > 0",
    "format": " || ".join(["'%s%d'.format(['a', 1]) == ''"] * 300),
    "regex": f"{_TEN}.all(a, {_TEN}.all(b, {_TEN}.all(c, {_LONG}.matches('(.*)(.*)(.*)[^a]'))))",
    "names": " || ".join([f"device.attributes['gpu.nvidia.com'].{'n' * 317} == 1"] * 25),
    "nested to the limit": " && ".join([_nested("deep")] * 60),
}


@pytest.mark.parametrize("expression", list(_HOSTILE.values()), ids=list(_HOSTILE))
def test_hostile_selectors_end_within_the_budget(expression: str) -> None:
    result = _plan(joined(pairs(1, _asking(expression), prefix="h"), pairs(1, gpus(1), prefix="usual")))
    assert _places(result, prefix="usual")
    assert result.work < _LIMITS.per_pod + _LIMITS.hints_per_round + 3 * _ONE


def test_work_is_shared_out_by_names_not_by_order() -> None:
    """Whoever comes first in the scheduler's order has no larger share."""
    first = in_namespace("attacker", _hostile(100, "order"))
    pods, claims = first
    first = [replace(pod, priority=1000) for pod in pods], claims
    victim = in_namespace("victim", pairs(3, gpus(1), prefix="v"))
    result = _plan(joined(first, victim))
    assert len(_places(result, prefix="v")) == 3
    assert FrozenMap(_places(result, prefix="order")) == FrozenMap()


def test_looks_at_present_nodes_leave_half_of_the_units_for_what_can_be_bought() -> None:
    state = snapshot(*pairs(1, gpus(1)), nodes=(Node("n", allocatable=FrozenMap({"pods": Quantity.of(9)})),))
    classes = classes_of(bundles_of(state.pods, state.claims), state)
    tight = replace(_LIMITS, per_round=10_000, per_pod=10_000)
    ledger = Ledger.of(classes, Policy(work=tight), nodes=1)
    ledger.accounts[0].shared.left = 0
    world = World.of(state)
    while not ledger.refused(0):
        ledger.fit_present(0, classes[0].sample.pods, "n", world)
    assert 5_000 <= ledger.accounts[0].own < 5_300


def test_existing_nodes_are_asked_without_an_explanation() -> None:
    made = machine("g6.xlarge", "n")
    state = snapshot(*pairs(1, gpus(2)), nodes=(made.node,), slices=made.slices)
    classes = classes_of(bundles_of(state.pods, state.claims), state)
    world, ledger = World.of(state), Ledger.of(classes, Policy(), nodes=1)
    assert ledger.fit_present(0, classes[0].sample.pods, "n", world) == DoesNotFit(())
    told = ledger.fit(0, classes[0].sample.pods, "n", world)
    assert isinstance(told, DoesNotFit)
    assert [reason.code for reason in told.reasons] == [Code.TOO_FEW_DEVICES]


def test_what_a_pods_selectors_cost_is_paid() -> None:
    """An API server takes a pod with tens of thousands of expressions; each look compares them all."""
    expressions = tuple(Requirement("a", "DoesNotExist") for _ in range(27_000))
    wide = replace(pod("wide"), affinity=NodeSelector((NodeSelectorTerm(expressions),)))
    spent = []
    for asked in (pod("plain"), wide):
        state = snapshot([asked], nodes=(Node("n"),))
        ledger = Ledger.of(classes_of(bundles_of(state.pods, state.claims), state), Policy())
        ledger.fit(0, (asked,), "n", World.of(state))
        spent.append(ledger.spent)
    assert spent[1] - spent[0] == 27_001
