"""Warnings for pods that want nodes which no plan buys."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.lint.meant_advice import meant_advice
from autoscaler.model.capacity import CapacityPool, NodeTemplateRef
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.planning.supply.simulated_nodes import wants_simulated_node
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.taint import Toleration
from tests.builders import CATALOG, claim, pod, snapshot

TOLERATION = (Toleration(labels.KWOK_NODE, "Exists"),)
OF_KWOK = replace(pod("p", "c"), node_selector=FrozenMap({"type": "kwok"}), tolerations=TOLERATION)
OF_RUN_AI = replace(pod("p", "c"), node_selector=FrozenMap({labels.SIMULATED_GPUS: "mock-b"}))


def requiring(*terms: tuple[str, str, tuple[str, ...]], **fields: Any) -> Pod:
    """A pod with a claim and one term of node affinity for each."""
    affinity = NodeSelector(tuple(NodeSelectorTerm((Requirement(*term),)) for term in terms))
    return replace(pod("p", "c"), affinity=affinity, **fields)


def told(given: Pod, **more: Any) -> list[str]:
    return [one.message for one in meant_advice(replace(snapshot([given], [claim("c")]), **more), CATALOG)]


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (OF_KWOK, "type=kwok"),
        (requiring(("type", "In", ("kwok",)), tolerations=TOLERATION), "type=kwok"),
        (OF_RUN_AI, labels.SIMULATED_GPUS),
        (requiring((labels.SIMULATED_GPUS, "Exists", ())), labels.SIMULATED_GPUS),
        # A real node may run all that follow.
        (replace(OF_KWOK, tolerations=()), ""),
        (replace(OF_KWOK, tolerations=(Toleration("", "Exists"),)), ""),
        (replace(OF_KWOK, node_selector=FrozenMap()), ""),
        (requiring(("type", "In", ("kwok", "gpu")), tolerations=TOLERATION), ""),
        (requiring((labels.SIMULATED_GPUS, "DoesNotExist", ())), ""),
        (requiring((labels.SIMULATED_GPUS, "Exists", ()), ("gpu", "Exists", ())), ""),
    ],
)
def test_only_labels_of_simulated_nodes_say_that_a_pod_wants_one(given: Pod, label: str) -> None:
    assert wants_simulated_node(given, snapshot([given])) == label
    assert [message.startswith(f"selects {label}, the label of nodes ") for message in told(given)] == [True] * bool(
        label
    )


@pytest.mark.parametrize("given", [OF_KWOK, OF_RUN_AI])
@pytest.mark.parametrize(
    "pool",
    [
        CapacityPool("demo", node_template=NodeTemplateRef("KwokNodeTemplate", "gpu")),
        CapacityPool("own", labels=FrozenMap({"type": "kwok"})),
        CapacityPool("own", labels=FrozenMap({labels.SIMULATED_GPUS: "mock-b"})),
    ],
)
def test_a_pool_that_makes_such_nodes_is_planned_as_ever(given: Pod, pool: CapacityPool) -> None:
    assert told(given, pools=(pool,)) == []


def test_a_simulated_node_that_is_given_and_pods_without_devices_need_no_warning() -> None:
    node = Node("n", labels=FrozenMap({"type": "kwok"}))
    assert told(OF_KWOK, nodes=(node,)) == []
    assert told(replace(OF_KWOK, claims=())) == []


CONTROL_PLANE = (labels.CONTROL_PLANE, "Exists", ())


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        (requiring(CONTROL_PLANE, claims=()), True),
        (replace(pod("p"), node_selector=FrozenMap({labels.CONTROL_PLANE: ""})), True),
        (requiring(CONTROL_PLANE, ("team", "Exists", ()), claims=()), False),  # a node of the team does as well
        (requiring((labels.CONTROL_PLANE, "DoesNotExist", ()), claims=()), False),
        (requiring(CONTROL_PLANE), False),  # claims a device: the plan says why no machine fits
        (replace(requiring(CONTROL_PLANE, claims=()), node_name="n"), False),
    ],
)
def test_a_pod_that_runs_only_beside_the_control_plane(given: Pod, warned: bool) -> None:
    assert ["no node of EKS or GKE does" in message for message in told(given)] == [True] * warned


def test_a_control_plane_that_is_given_needs_no_warning() -> None:
    given, label = requiring(CONTROL_PLANE, claims=()), FrozenMap({labels.CONTROL_PLANE: ""})
    assert told(given, nodes=(Node("n"),)) != []
    assert told(given, nodes=(Node("n", labels=label),)) == []
    assert told(given, pools=(CapacityPool("own", labels=label),)) == []


def test_the_devices_of_a_simulated_node_are_asked_for_as_well() -> None:
    """Its Node alone has no devices for a claim."""
    (found,) = meant_advice(snapshot([OF_KWOK], [claim("c")]), CATALOG)
    assert "with the ResourceSlices of its devices (kubectl get nodes,resourceslices -o yaml)" in found.next_step
