"""Ignored pods are planned as if a pool served them, and the plan says what keeps them from a place then."""

from __future__ import annotations

from autoscaler.advice.ignored import Served, as_if_served
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code
from autoscaler.planning.policy import Policy
from autoscaler.report.reasons import texts_of
from autoscaler.report.tables.plan_summary import summary_of
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


def test_devices_that_no_machine_has_are_served_by_no_scope() -> None:
    """The line of the pod says so, in the place of a scope and of what else would keep it from a node."""
    amd, nvidia = (Container("main", FrozenMap({name: Quantity.of(1)})) for name in ("amd.com/gpu", "nvidia.com/gpu"))
    state = snapshot([replace(pod("p"), containers=(amd,)), replace(pod("q"), containers=(nvidia,))])
    found = plan(state)
    texts = [texts_of(entry.reasons) for entry in found.outside]
    assert "asks for amd.com/gpu, which no machine of aws in the catalog hands out: neither spec.scope.pods" in texts[0]
    assert "(by " not in texts[0]
    assert "nvidia.com/gpu, which device plugins hand out" in texts[1]
    assert "set spec.scope.pods: All" in texts[1]
    served_too = as_if_served(found, state, CATALOG, Policy(), NOW)
    assert "default/p" not in {entry.pod for entry in (served_too.staying if served_too else ())}
    first = summary_of(found)[0]
    assert first.text.endswith("0 cannot be placed, 2 ignored (2 of them ask for devices)")
    assert first.level == "warning"


def test_an_ignored_pod_without_devices_waits_for_nothing() -> None:
    first = summary_of(plan(snapshot([pod("p")])))[0]
    assert first.text.endswith("1 ignored")
    assert first.level == "good"


def test_devices_that_no_machine_and_no_catalog_file_has_are_left_to_existing_nodes() -> None:
    """An existing node that has them serves the pod in a pool with spec.scope.pods: All, so the other text stays."""
    name = "cambricon.com/mlu"
    wants = replace(pod("p"), containers=(Container("main", FrozenMap({name: Quantity.of(1)})),))
    (entry,) = plan(snapshot([wants])).outside
    text = texts_of(entry.reasons)
    assert f"asks for {name}, and no machine of aws has its kind of device (MLU of Cambricon)" in text
    assert "leave it to existing nodes" in text
    there = Node("n", allocatable=FrozenMap({name: Quantity.of(1)}))
    (entry,) = plan(snapshot([wants], nodes=(there,))).outside
    assert "which no DeviceClass serves" in texts_of(entry.reasons)
