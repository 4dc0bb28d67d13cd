"""Pods that share a claim and do not all fit one node: those that do get one, as kube-scheduler lets them run."""

from __future__ import annotations

import pytest

from autoscaler.model.capacity import CapacityPool, Limits
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from tests.builders import TEAM, claim, gang, plan, pod, snapshot, types, why_left

NOWHERE = FrozenMap({"no": "where"})


def sharing(*pods: Pod, pool: CapacityPool = TEAM, **fields: object) -> Snapshot:
    return replace(snapshot(pods, [claim("sh")], pools=(pool,)), **fields)  # type: ignore[arg-type]


def placed(state: Snapshot) -> list[str]:
    return sorted(found.pod.partition("/")[2] for found in plan(state).placements)


def test_a_pod_that_fits_nowhere_keeps_nobody_from_running() -> None:
    state = sharing(pod("a", "sh"), pod("b", "sh", node_selector=NOWHERE), pod("c", "sh"))
    result = plan(state)
    assert (types(result), placed(state)) == (["s1"], ["a", "c"])
    assert why_left(result, "b") == [Code.NODE_SELECTOR_MISMATCH]
    assert len({found.node for found in result.placements}) == 1
    assert [left.claims for left in result.left_out] == [("default/sh",)]


@pytest.mark.parametrize("limits", [Limits(), Limits(nodes=1)], ids=["no-limit", "one-node"])
def test_as_many_as_a_node_takes_and_the_most_important_first(limits: Limits) -> None:
    pods = [pod(name, "sh", cpu="12", priority=priority) for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 9))]
    state = sharing(*pods, pool=replace(TEAM, limits=limits))
    result = plan(state)
    assert (types(result), placed(state)) == (["s1"], ["b", "d"])
    assert why_left(result, "a") == why_left(result, "c") == [Code.BUNDLE_SPLIT]


def test_a_claim_that_no_pod_gets_leaves_all_of_them_with_their_own_reason() -> None:
    state = sharing(*(pod(name, "sh", node_selector=NOWHERE) for name in ("a", "b")))
    result = plan(state)
    assert result.launches == ()
    assert why_left(result, "a") == why_left(result, "b") == [Code.NODE_SELECTOR_MISMATCH]


def test_members_of_a_gang_come_together_or_not_at_all() -> None:
    members = (pod("a", "sh", gang="g"), pod("b", "sh", gang="g", node_selector=NOWHERE))
    state = sharing(*members, gangs=gang("g", 2))
    assert plan(state).placements == ()


def test_others_are_planned_for_beside_them() -> None:
    state = sharing(pod("a", "sh"), pod("b", "sh", node_selector=NOWHERE), pod("other", "own"))
    state = replace(state, claims=state.claims.with_items({"default/own": claim("own")}))
    assert placed(state) == ["a", "other"]
    assert types(plan(state)) == ["s1", "s1"]
