"""Ignored pods are planned as if a pool served them, and the plan says what keeps them from a place then."""

from __future__ import annotations

import pytest

from autoscaler.advice.ignored import Served, as_if_served, on_existing_nodes, refusing_nodes
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import Allocation
from autoscaler.planning.policy import Policy
from autoscaler.report.reasons import texts_of
from autoscaler.report.tables.plan_summary import left_out_lines, summary_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import FORMED_SLICE_TOPOLOGY
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import NodeReach, Pool, ResourceSlice
from instance_catalog.prediction.device_plugins import EFA
from tests.builders import CATALOG, GPU, NOW, claim, gpus, plan, pod, snapshot

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
    assert (
        "asks for amd.com/gpu, which no machine of aws in the catalog hands out (the Radeon Pro V520 does" in texts[0]
    )
    assert "(by " not in texts[0]
    assert "nvidia.com/gpu, which device plugins hand out" in texts[1]
    assert "set spec.scope.pods to All" in texts[1]
    served_too = as_if_served(found, state, CATALOG, Policy(), NOW)
    assert "default/p" not in {entry.pod for entry in (served_too.staying if served_too else ())}
    first = summary_of(found)[0]
    assert first.text == "0 nodes to launch; 2 pods ask for devices and are ignored: see below"
    assert first.level == "warning"


def test_gpus_of_a_vendor_whom_no_machine_has_are_no_parts_of_nvidia_gpus() -> None:
    intel = replace(pod("p"), containers=(Container("main", FrozenMap({"gpu.intel.com/i915": Quantity.of(1)})),))
    (entry,) = plan(snapshot([intel])).outside
    text = texts_of(entry.reasons)
    assert "no machine of aws in the catalog has its kind of device (GPU of Intel), so nothing is launched" in text
    assert "or add a type that has them with `foreslice catalog add`" in text
    assert "NVIDIA" not in text


def test_the_first_line_counts_ignored_pods_of_other_schedulers_that_ask_for_devices() -> None:
    pods = [pod("p", "c", scheduler_name="volcano"), pod("q", scheduler_name="volcano")]
    formed = pod("r", "d", annotations=FrozenMap({FORMED_SLICE_TOPOLOGY: "4x4x4"}))
    first = summary_of(plan(snapshot([*pods, formed], [claim("c"), claim("d")])))[0]
    assert first.text.startswith("0 nodes to launch; 2 pods ask for devices and are ignored: see below; 1 other pod")
    assert first.level == "warning"


def test_no_scope_helps_a_pod_with_a_network_card_alone() -> None:
    card = replace(pod("p"), containers=(Container("main", FrozenMap({EFA: Quantity.of(1)})),))
    state = snapshot([card])
    (entry,) = plan(state).outside
    text = texts_of(entry.reasons)
    assert f"asks for {EFA} and for no accelerator: a plan buys no machine with accelerators" in text
    assert "spec.scope.pods" not in text
    assert as_if_served(plan(state), state, CATALOG, Policy(), NOW) is None


def test_the_first_line_says_plainly_that_only_ignored_pods_ask_for_devices() -> None:
    amd = replace(pod("p"), containers=(Container("main", FrozenMap({"amd.com/gpu": Quantity.of(1)})),))
    told = [summary_of(plan(snapshot(pods)))[0].text for pods in ([amd], [amd, pod("q")])]
    assert told == [
        "0 nodes to launch; 1 pod asks for devices and is ignored: see below",
        "0 nodes to launch; 1 pod asks for devices and is ignored: see below; 1 other pod is ignored",
    ]
    with_another = summary_of(plan(snapshot([amd, pod("q", "c")], [claim("c", gpus(99))])))[0].text
    assert with_another.endswith("1 cannot be placed, 1 ignored (1 of them asks for devices)")


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


MLU = "cambricon.com/mlu"


def having(name: str, mlus: int) -> Node:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", MLU: str(mlus)}
    return Node(name, allocatable=FrozenMap({key: Quantity.parse(value) for key, value in amounts.items()}))


def asking(name: str, count: int = 1) -> Pod:
    return replace(pod(name), containers=(Container("main", FrozenMap({MLU: Quantity.of(count)})),))


def test_ignored_pods_go_where_kube_scheduler_binds_them() -> None:
    """It does not know pools: an existing node with free devices takes the pod, and one without devices as well."""
    state = replace(snapshot([asking("p"), asking("q"), pod("r")]), nodes=(having("n1", 1),))
    found = on_existing_nodes(plan(state), state, CATALOG)
    assert {(placed.pod, placed.node) for placed in found.placements} == {("default/p", "n1"), ("default/r", "n1")}
    (left,) = found.outside
    assert left.pod == "default/q"
    assert texts_of(left.reasons) == (
        f"pod default/q: asks for {MLU}, which only the nodes that are given have: nothing is launched for it "
        f"(--strict counts it as not placed); existing node n1: Insufficient {MLU}: 1 requested, 0 free"
    )


def test_the_nearest_of_the_nodes_that_have_the_device_is_told() -> None:
    state = replace(snapshot([asking("p", 3)]), nodes=(having("n0", 1), having("n1", 0), having("n2", 2)))
    (left,) = on_existing_nodes(plan(state), state, CATALOG).outside
    assert [str(reason.subject) for reason in left.reasons if reason.subject.kind == "existing node"] == [
        "existing node n2"
    ]


def test_gated_pods_and_those_of_other_schedulers_without_devices_stay_ignored() -> None:
    gated = replace(asking("q"), scheduling_gates=("example.com/later",))
    other = pod("p", scheduler_name="volcano")
    state = replace(snapshot([other, gated]), nodes=(having("n1", 2),))
    made = plan(state)
    assert on_existing_nodes(made, state, CATALOG) == made


def test_another_scheduler_is_no_reason_not_to_fit_the_devices_of_a_node() -> None:
    state = replace(snapshot([replace(asking("p"), scheduler_name="volcano")]), nodes=(having("n1", 2),))
    found = on_existing_nodes(plan(state), state, CATALOG)
    assert [(placed.pod, placed.node) for placed in found.placements] == [("default/p", "n1")]
    assert not found.outside


@pytest.mark.parametrize(
    ("labelled", "published", "told"),
    [
        (True, False, "no ResourceSlice of n1 is among the objects, so it has no device of class gpu.nvidia.com"),
        (True, True, "existing node n1: no device of class gpu.nvidia.com"),
        (False, False, ""),  # it is not the node that the pod selects
    ],
)
def test_the_given_node_that_a_pod_selects_says_what_it_lacks(labelled: bool, published: bool, told: str) -> None:
    node = replace(having("n1", 0), labels=FrozenMap(ELSEWHERE if labelled else {}))
    state = replace(snapshot([pod("p", "c", node_selector=ELSEWHERE)], [claim("c", gpus())]), nodes=(node,))
    if published:
        state = replace(state, slices=(ResourceSlice("s", "nic.example.com", Pool("n1"), (), NodeReach("n1")),))
    made = plan(state)
    (entry,) = refusing_nodes(made, state, CATALOG).left_out
    shown = "\n".join(left_out_lines(entry))
    assert told in shown
    assert ("n1" in shown) is bool(told)


def test_pods_that_pools_serve_keep_their_places() -> None:
    """An ignored pod that comes first in the queue does not take the room of a pod that the plan placed."""
    served = pod("p", "c")
    ignored = replace(pod("q"), priority=100)
    one = replace(having("n1", 0), allocatable=having("n1", 0).allocatable.with_items({"pods": Quantity.of(1)}))
    claims = [replace(claim("c"), allocation=Allocation(()))]
    state = replace(snapshot([served, ignored], claims), nodes=(one,))
    made = plan(state)
    assert [placed.node for placed in made.placements] == ["n1"]
    found = on_existing_nodes(made, state, CATALOG)
    assert [placed.pod for placed in found.placements] == ["default/p"]
    assert [entry.pod for entry in found.outside] == ["default/q"]


def test_a_pod_that_asks_for_parts_of_gpus_is_planned_with_whole_ones() -> None:
    """What keeps it from a node beside the parts is told with them, and not only in the next plan."""
    part = Container("main", FrozenMap({"nvidia.com/gpu.shared": Quantity.of(1)}))
    state = snapshot([replace(pod("p", node_selector=ELSEWHERE), containers=(part,))])
    served = replace(state, classes=(replace(GPU, extended_resource_name="nvidia.com/gpu"),))
    found = as_if_served(plan(state), served, CATALOG, Policy(), NOW)
    assert found is not None
    assert {miss.reason.code for miss in found.staying[0].near_misses} == {Code.NODE_SELECTOR_MISMATCH}
