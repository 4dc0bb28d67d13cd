"""Ignored pods are planned as if a pool served them, and the plan says what keeps them from a place then."""

from __future__ import annotations

from autoscaler.advice.ignored import Served, as_if_served
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, NOW, claim, plan, pod, snapshot

ELSEWHERE = FrozenMap({"team": "mars"})


def served(*pods: Pod, **more: object) -> Served | None:
    state = snapshot(pods, [claim("c")])
    return as_if_served(plan(state), state, CATALOG, Policy(), NOW, **more)  # type: ignore[arg-type]


def test_what_is_missing_beside_the_scheduler() -> None:
    found = served(pod("p", "c", scheduler_name="volcano", node_selector=ELSEWHERE), pod("q", node_selector=ELSEWHERE))
    assert found is not None
    assert [entry.pod for entry in found.staying] == ["default/p"]
    assert {miss.reason.code for miss in found.staying[0].near_misses} == {Code.NODE_SELECTOR_MISMATCH}


def test_nothing_is_told_of_pods_that_a_pool_could_place() -> None:
    assert served(pod("p", "c", scheduler_name="volcano")) is None


def test_nothing_is_told_twice() -> None:
    other = pod("p", "c", scheduler_name="volcano", node_selector=ELSEWHERE)
    assert served(other, beside=["default/p"]) is None


def test_a_resource_that_no_device_plugin_hands_out_is_told_once() -> None:
    unknown = Container("main", FrozenMap({"example.com/x": Quantity.of(1)}))
    assert served(replace(pod("p", scheduler_name="volcano"), containers=(unknown,))) is None
    assert served(replace(pod("p"), containers=(unknown,))) is None
