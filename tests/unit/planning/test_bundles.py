"""Which pods must land together, and which bundles are equal."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.model.capacity import Consumers
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import Allocation, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import TEAM, block, claim, gpus, ours, plan, pod, snapshot


def groups(pods: list[Pod], claims: list[ResourceClaim]) -> list[list[str]]:
    return [[p.name for p in b.pods] for b in bundles_of(pods, {c.key: c for c in claims})]


def class_sizes(state: Snapshot) -> list[int]:
    return [len(c.members) for c in classes_of(bundles_of(state.pods, state.claims), state)]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([pod("a", "x"), pod("b", "y")], [["a"], ["b"]], id="own-claims"),
        pytest.param([pod("a", "x"), pod("b", "y"), pod("c", "x")], [["a", "c"], ["b"]], id="one-shared"),
        pytest.param([pod("a", "x"), pod("b", "x", "y"), pod("c", "y")], [["a", "b", "c"]], id="a-chain"),
    ],
)
def test_pods_that_share_a_claim_are_one_bundle(pods: list[Pod], expected: list[list[str]]) -> None:
    assert groups(pods, [claim("x"), claim("y")]) == expected


def test_an_allocated_claim_binds_nobody_together() -> None:
    done = replace(claim("x"), allocation=Allocation(()))
    assert groups([pod("a", "x"), pod("b", "x")], [done]) == [["a"], ["b"]]


def test_names_do_not_make_a_difference() -> None:
    state = snapshot([pod("a", "x"), pod("b", "y")], [claim("x"), claim("y")])
    assert class_sizes(state) == [2]


def test_declared_features_that_a_pod_needs_make_a_difference() -> None:
    needy = replace(pod("b", "y"), node_features=("GuestClock",))
    assert class_sizes(snapshot([pod("a", "x"), needy], [claim("x"), claim("y")])) == [1, 1]


def test_pods_that_wait_for_a_node_each_remain_one_class_and_get_their_own_nodes() -> None:
    nominated = [pod("p1", "x", nominated_node="n2"), pod("p2", "y", nominated_node="n1"), pod("p3", "z")]
    coming = tuple(ours(name, "s1") for name in ("n0", "n1", "n2"))
    state = snapshot(nominated, [claim("x"), claim("y"), claim("z")], pools=(TEAM,), provisioned=coming)
    assert class_sizes(state) == [3]
    placed = {placement.pod: placement.node for placement in plan(state).placements}
    assert placed == {"default/p1": "n2", "default/p2": "n1", "default/p3": "n0"}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"cpu": "2"}, id="resources"),
        pytest.param({"priority": 1}, id="priority"),
        pytest.param({"node_selector": FrozenMap({"a": "b"})}, id="node-selector"),
        pytest.param({"gang": "g"}, id="gang"),
        pytest.param({"active_deadline_seconds": 60}, id="deadline"),
    ],
)
def test_what_decides_about_placement_makes_a_difference(fields: dict[str, Any]) -> None:
    state = snapshot([pod("a", "x"), pod("b", "y", **fields)], [claim("x"), claim("y")])
    assert class_sizes(state) == [1, 1]


def test_claims_that_ask_for_other_things_make_a_difference() -> None:
    assert class_sizes(snapshot([pod("a", "x"), pod("b", "y")], [claim("x"), claim("y", gpus(2))])) == [1, 1]


def test_labels_matter_only_where_somebody_selects_by_them() -> None:
    pods = [pod("a", "x", labels=FrozenMap({"team": "a"})), pod("b", "y", labels=FrozenMap({"team": "b"}))]
    claims = [claim("x"), claim("y")]
    assert class_sizes(snapshot(pods, claims)) == [2]
    has_restrictions = block(consumers=Consumers(pod_selector=LabelSelector((Requirement("team", "In", ("a",)),))))
    assert class_sizes(snapshot(pods, claims, blocks=(has_restrictions,))) == [1, 1]


def test_the_selectors_of_a_cluster_are_read_once_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of all pods, of which a cluster has tens of thousands; pods of no pool's scope are rare."""
    read: list[Snapshot] = []

    def counted(state: Snapshot) -> frozenset[str]:
        read.append(state)
        return frozenset()

    monkeypatch.setattr("autoscaler.planning.demand.bundles._observed_labels", counted)
    assert plan(snapshot([pod("a", "gpu"), pod("b")], [claim("gpu")])).launches
    assert len(read) == 1


def test_more_important_classes_come_first() -> None:
    state = snapshot([pod("a", "x"), pod("b", "y", priority=5)], [claim("x"), claim("y")])
    classes = classes_of(bundles_of(state.pods, state.claims), state)
    assert [c.sample.key for c in classes] == ["default/b", "default/a"]


def test_what_kubelets_declare_by_default_is_there_on_a_node_to_come() -> None:
    wanted = replace(pod("a", "x"), node_features=("RestartAllContainersOnContainerExits",))
    result = plan(snapshot([wanted], [claim("x", gpus(1))], pools=(TEAM,)))
    assert (len(result.launches), result.left_out) == (1, ())


def test_a_pod_that_lacks_cpus_says_nothing_for_a_smaller_one_about_filters_that_come_later() -> None:
    """NodeDeclaredFeatures is asked after NodeResourcesFit: what the first pod lacks hides it."""
    large, small = (
        replace(pod(name, name, cpu=cpu), node_features=("X",)) for name, cpu in (("a", "9000"), ("b", "1"))
    )
    state = snapshot([large, small], [claim("a", gpus(1)), claim("b", gpus(1))], pools=(TEAM,))
    result = plan(state)
    assert result.launches == ()
    assert {left.pod: left.verdict for left in result.left_out} == {"default/a": "does-not-fit", "default/b": "unknown"}
