"""Pods whose selections new nodes answer alike are decided together, and get the answers of being decided alone."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Verdict
from autoscaler.planning.placement import selections
from autoscaler.planning.placement.trial import PackingOracle
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, WorkLimits
from autoscaler.scheduling.fit import filtered
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.taint import Taint, Toleration
from instance_catalog.types.catalog import Catalog
from tests.builders import NOW, claim, gpus, pod, snapshot
from tests.properties.test_device_states import CATALOG, packing_of

POOLS = (
    CapacityPool("a", drivers=("nvidia",), labels=FrozenMap({"team": "a", "size": "3"})),
    CapacityPool("b", drivers=("nvidia",), labels=FrozenMap({"team": "b"})),
    CapacityPool("c", drivers=("nvidia",), taints=(Taint("for", "c", "NoSchedule"),)),
)
REQUIREMENTS = st.sampled_from(
    [
        Requirement("team", "In", ("a", "b")),
        Requirement("team", "NotIn", ("a",)),
        Requirement("team", "DoesNotExist", ()),
        Requirement("size", "Gt", ("2",)),
        Requirement("size", "Gt", ("many",)),
        Requirement(labels.INSTANCE_TYPE, "In", ("g6.12xlarge",)),
        Requirement("missing", "Exists", ()),
    ]
)
SELECTORS = st.sampled_from(
    [{}, {}, {"team": "a"}, {"team": "z"}, {"size": "3", "missing": "x"}, {labels.INSTANCE_TYPE: "p4d.24xlarge"}]
)
TOLERATIONS = st.sampled_from([(), (Toleration("for", "Equal", "c"),), (Toleration("for", "Exists"), Toleration("x"))])


@st.composite
def pods(draw: st.DrawFn, number: int) -> Pod:
    """Of few claims and amounts, and of many selections; the last amount is too large for every type."""
    terms = draw(st.lists(st.lists(REQUIREMENTS, min_size=1, max_size=2), max_size=2))
    affinity = NodeSelector(tuple(NodeSelectorTerm(match_expressions=tuple(term)) for term in terms))
    return pod(
        f"p{number}",
        f"c{number}",
        cpu=draw(st.sampled_from(["1", "1", "60", "900"])),
        node_selector=FrozenMap(draw(SELECTORS)),
        affinity=affinity if terms else None,
        tolerations=draw(TOLERATIONS),
        labels=FrozenMap(draw(st.sampled_from([{}, {"app": "shy"}]))),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Some with a running pod that admits no pods of one label beside it."""
    made = [draw(pods(number)) for number in range(draw(st.integers(2, 8)))]
    claims = [claim(f"c{number}", gpus(draw(st.integers(1, 2)))) for number in range(len(made))]
    state = snapshot(made, claims, pools=POOLS)
    return guarded(state) if draw(st.booleans()) else state


def guarded(state: Snapshot) -> Snapshot:
    """With a pod of team b that keeps shy pods away from it."""
    term = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("shy",)),)), "team", ("default",))
    guard = pod("guard", pod_anti_affinity=(term,), node_name="there", phase="Running")
    return replace(state, pods=(*state.pods, guard), nodes=(Node("there", FrozenMap({"team": "b"})),))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_answers_and_reasons_are_those_of_each_pod_alone(state: Snapshot) -> None:
    alike(state)


def test_labels_by_which_running_pods_repel_others_count_for_pods_that_select_nothing() -> None:
    made = [pod(f"p{n}", f"c{n}", labels=FrozenMap(found)) for n, found in enumerate([{}, {"app": "shy"}])]
    alike(guarded(snapshot(made, [claim("c0", gpus()), claim("c1", gpus())], pools=POOLS[:2])))


def alike(state: Snapshot) -> None:
    """Fails unless every shape answers as without the comparison of selections."""
    market = packing_of(state, CATALOG)
    every = [(shape, item) for item in range(len(market.classes)) for shape in range(len(market.shapes))]
    alone = {key: (type(market.trials.verdict(*key)), market.trials.explained(*key)) for key in every}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selections, "_MANY", 1)
        trials = packing_of(state, CATALOG).trials
        told: dict[Hashable, Verdict] = {}
        for shape, item in every:
            found = trials.explained(shape, item)
            assert (type(trials.verdict(shape, item)), found) == alone[shape, item]
            if (key := trials.told_as(shape, item)) is not None:
                assert told.setdefault((item, key), found) == found


def answer(state: Snapshot) -> Plan:
    """Without the lists of offerings: pods that are decided together are asked about fewer of them."""
    return replace(plan_for(state, CATALOG, Policy(), NOW), work=0, demands=())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_plans_are_those_of_deciding_each_pod_alone(state: Snapshot) -> None:
    alone = answer(state)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selections, "_MANY", 1)
        assert answer(state) == alone


def crowd(count: int) -> Snapshot:
    """Pods that each select a node group of their own, which no pool has."""
    made = [pod(f"p{n:03}", f"c{n:03}", node_selector=FrozenMap({"group": f"g{n}"})) for n in range(count)]
    return snapshot(made, [claim(f"c{n:03}", gpus()) for n in range(count)], pools=POOLS[:2])


def test_pods_that_no_offering_selects_are_compared_once_with_nodes_that_look_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def counted(pod: Pod, state: NodeState, world: World, **filters: object) -> object:
        asked.append(pod.name)
        return filtered(pod, state, world, **filters)  # type: ignore[arg-type]

    for module in ("selections", "filling"):
        monkeypatch.setattr(f"autoscaler.planning.placement.{module}.filtered", counted)
    counts = []
    for count in (100, 200):
        asked.clear()
        found = plan_for(crowd(count), CATALOG, Policy(), NOW)
        assert [entry.reasons[0].detail["wanted"] for entry in found.left_out] == [f"g{n}" for n in range(count)]
        assert {entry.pod for entry in found.left_out} == {f"default/p{n:03}" for n in range(count)}
        counts.append(len(asked))
    shapes = len(packing_of(crowd(1), CATALOG).shapes)
    # All nodes look alike to them; the first pod speaks for all about each shape.
    assert counts[1] - counts[0] == 100
    assert counts[0] <= 100 + shapes


def test_only_candidates_that_are_told_differently_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    explained = PackingOracle.explained

    def counted(self: PackingOracle, shape: int, item: int) -> Verdict:
        told.append(item)
        return explained(self, shape, item)

    monkeypatch.setattr(PackingOracle, "explained", counted)
    counts = []
    for count in (100, 200):
        told.clear()
        plan_for(crowd(count), CATALOG, Policy(considered=0), NOW)
        counts.append(len(told))
    assert counts[1] - counts[0] == 100 * len(POOLS[:2])  # one of each pool


def test_a_class_that_cannot_pay_for_the_comparison_is_decided_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "_MANY", 1)
    market = packing_of(crowd(2), CATALOG)
    first, second = (market.trials._pods.of(item, 0) for item in range(2))
    assert first is not None
    assert second is not None
    market.trials.ledger.accounts[1].own = 0
    market.trials.ledger.waiting.add(1)
    number = market.trials._selections.number
    assert number(first) == first.selects
    assert number(second) == second.selects != first.selects


def test_pods_without_any_offering_are_decided() -> None:
    """Many selections and a pool that offers nothing: an error here would leave the pods of the namespace undecided."""
    none = replace(POOLS[0], requirements=(Requirement(labels.INSTANCE_TYPE, "In", ("none",)),))
    found = plan_for(replace(crowd(80), pools=(none,)), CATALOG, Policy(), NOW)
    assert len(found.left_out) == 80
    assert {entry.reasons[0].code for entry in found.left_out} == {Code.NO_CANDIDATE}


def test_to_compare_selections_refuses_no_class() -> None:
    """Selections of single types tell all shapes apart: comparing them would cost more than the plan has for them."""
    names = [f"{n:03}" for n in range(100)]
    types = [replace(CATALOG.get("p4d.24xlarge"), name=f"type-{name}") for name in names]
    pods = [
        pod(
            f"p{n}",
            f"c{n}",
            cpu=f"{10 + int(n) % 7}",
            node_selector=FrozenMap({labels.INSTANCE_TYPE: of.name}),
        )
        for n, of in zip(names, types, strict=True)
    ]
    state = snapshot(pods, [claim(f"c{name}", gpus()) for name in names], pools=POOLS[:1])
    policy = Policy(work=WorkLimits(per_round=600_000, selectors_per_round=600_000))
    found = plan_for(state, Catalog.of(types), policy, NOW)
    assert (len(found.launches), found.left_out) == (100, ())
