"""A ComputeClass of GKE among the files: a pool for the pods that select it has the machines of its priorities."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.advice.advise import advise
from autoscaler.kube.autoscalers.other_autoscalers import parse_compute_class
from autoscaler.lint.pods.compute_classes import capacity_of_class, machines_of_class
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

SHIPPED = load_catalog()
FAMILY, GPU, COUNT = labels.GKE_MACHINE_FAMILY, labels.GKE_ACCELERATOR, labels.GKE_ACCELERATOR_COUNT


def of(*priorities: dict[str, Any]) -> Any:
    raw = {"metadata": {"name": "serving"}, "spec": {"priorities": list(priorities)}}
    return parse_compute_class(raw)


def gpu(kind: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"gpu": {"type": kind, "count": count}, **more}


@pytest.mark.parametrize(
    ("priorities", "asked"),
    [
        pytest.param([{"machineFamily": "g2"}], {FAMILY: ("g2",)}, id="a family"),
        pytest.param(
            [{"machineFamily": "a3"}, {"machineFamily": "g2", "spot": True}], {FAMILY: ("g2", "a3")}, id="two families"
        ),
        pytest.param(
            [gpu("nvidia-l4", 2), gpu("nvidia-tesla-t4", 2)],
            {GPU: ("nvidia-l4", "nvidia-tesla-t4"), COUNT: ("2",)},
            id="two GPUs",
        ),
        pytest.param(
            [{"machineType": "g2-standard-4"}, {"machineType": "a3-highgpu-8g", "flexStart": {"enabled": True}}],
            {labels.INSTANCE_TYPE: ("a3-highgpu-8g", "g2-standard-4")},
            id="types",
        ),
        pytest.param(
            [{"tpu": {"type": "tpu-v6e-slice", "count": 4, "topology": "2x2"}}],
            {labels.INSTANCE_TYPE: ("ct6e-standard-4t",)},
            id="a TPU",
        ),
        pytest.param(
            [{"machineFamily": "g2", "minCores": 90}], {labels.INSTANCE_TYPE: ("g2-standard-96",)}, id="cores"
        ),
        pytest.param(
            [gpu("nvidia-l4", machineType="g2-standard-8"), {"machineFamily": "n2"}],
            {labels.INSTANCE_TYPE: ("g2-standard-8",), GPU: ("nvidia-l4",), COUNT: ("1",)},
            id="others have no accelerator",
        ),
        pytest.param([{"nodepools": ["a"]}], {}, id="node pools say it themselves"),
        pytest.param([{"machineFamily": "n1"}], {}, id="no GPU is attached"),
        pytest.param([], {}, id="nothing"),
    ],
)
def test_which_machines_a_class_has(priorities: list[dict[str, Any]], asked: dict[str, tuple[str, ...]]) -> None:
    found = {one.key: {*one.values} for one in machines_of_class(of(*priorities), SHIPPED)}
    assert found == {key: {*values} for key, values in asked.items()}


def test_how_a_class_buys() -> None:
    reserved = {"machineFamily": "g2", "reservations": {"affinity": "Specific"}}
    flex, spot, cpu = (
        gpu("nvidia-l4", flexStart={"enabled": True}),
        gpu("nvidia-l4", spot=True),
        {"machineFamily": "n2"},
    )
    assert capacity_of_class(of(reserved, spot, flex, cpu), SHIPPED) == ("spot", "flex-start")


@pytest.mark.parametrize(
    ("priorities", "said", "machine"),
    [
        ([gpu("nvidia-l4")], f"{GPU} In [nvidia-l4] in spec.requirements", "g2-standard-4"),
        ([gpu("nvidia-l4", spot=True), gpu("nvidia-l4")], "spec.capacityTypes [spot, on-demand]", "g2-standard-4"),
        ([{"nodepools": ["a"]}], "copy its machines (spec.priorities of", "n1-standard-4+1xnvidia-tesla-t4"),
    ],
)
def test_a_pool_for_the_class_is_tried_with_its_machines(
    priorities: list[dict[str, Any]], said: str, machine: str
) -> None:
    selecting = pod("p", "c", node_selector=FrozenMap({labels.GKE_COMPUTE_CLASS: "serving"}))
    state = snapshot([selecting], [claim("c", gpus())])
    given = replace(state, compute_classes=FrozenMap({"serving": of(*priorities)}))
    catalog, policy = shipped("g2-standard-4", "n1-standard-4+1xnvidia-tesla-t4"), Policy(considered=1000)
    found = advise(selecting, given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)
    (line,) = advice_lines(found)
    assert said in line
    assert [ref.instance_type for ref, _ in found[0].result.launches] == [machine]
    of_class = "the cheapest of the machines in spec.priorities of ComputeClass serving, of which GKE takes the first"
    assert (of_class in line) is ("nodepools" not in priorities[0])
