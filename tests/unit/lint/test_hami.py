"""What pods ask of HAMi by annotations, which no plan follows."""

from __future__ import annotations

import pytest

from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.supply_advice import supply_advice
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.supply.unprepared import not_working
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, claim, plan, pod, shipped, snapshot

MACHINES = shipped("p4d.24xlarge", "p5.48xlarge", "g4dn.xlarge")
ON_H100 = FrozenMap({"node.kubernetes.io/instance-type": "p5.48xlarge"})

ASKING = replace(pod("p"), containers=(Container("main", FrozenMap({"nvidia.com/gpu": Quantity.of(1)})),))


def told(*pods: Pod) -> list[Diagnostic]:
    return list(foreign_advice(snapshot(pods), CATALOG))


@pytest.mark.parametrize(
    ("annotations", "asks", "step"),
    [
        ({"nvidia.com/use-gputype": "A100"}, "a GPU of type A100", "select the nodes by foreslice.dev/accelerator"),
        ({"nvidia.com/nouse-gputype": "T4"}, "a GPU that is not of type T4", "select the nodes by"),
        ({"nvidia.com/nouse-gpuuuid": "GPU-1"}, "a GPU that is none of GPU-1", "leave the pod to nodes that run HAMi"),
        ({"nvidia.com/vgpu-mode": "mig"}, "a MIG part of a GPU, which HAMi makes itself", "claim a part of a GPU"),
        ({"nvidia.com/vgpu-mode": "hami-core"}, "a share of a GPU that the library HAMi-core limits", "claim a part"),
        ({"nvidia.com/vgpu-mode": "mps"}, "a share of a GPU by MPS", "claim a part of a GPU through DRA"),
        ({"nvidia.com/vgpu-mode": "new"}, "mode new", "claim a part of a GPU through DRA"),
        ({"hami.io/gpu-scheduler-policy": "spread"}, "a GPU by policy spread", "leave the pod to nodes that run HAMi"),
        (
            {"nvidia.com/vgpu-mode": "mps", "nvidia.com/use-gputype": "A100"},
            "a GPU of type A100 and a share of a GPU by MPS",
            "select the nodes by",
        ),
    ],
)
def test_what_hami_is_asked_for_by_annotation(annotations: dict[str, str], asks: str, step: str) -> None:
    (found,) = told(replace(ASKING, annotations=FrozenMap(annotations)))
    assert found.message.startswith(f"asks HAMi for {asks}: kube-scheduler and plans do not read that")
    assert found.next_step.startswith(step)
    assert found.next_step.endswith("leave the pod to nodes that run HAMi, or drop the annotation")


@pytest.mark.parametrize(
    ("annotations", "useless", "accelerators"),
    [
        ({"nvidia.com/use-gputype": "A100,V100"}, True, "In [nvidia-a100-40gb] by node affinity"),
        ({"nvidia.com/use-gputype": "h100"}, False, ""),
        ({"nvidia.com/use-gputype": "NVIDIA-NVIDIA H100"}, False, ""),
        ({"nvidia.com/nouse-gputype": "H100"}, True, "nvidia-a100-40gb, nvidia-t4"),
        ({"nvidia.com/nouse-gputype": "T4"}, False, ""),
        ({"nvidia.com/use-gputype": "GTX"}, True, "no machine in the catalog has such a GPU"),
    ],
)
def test_a_pod_on_a_gpu_of_another_type_than_it_asks_hami_for_does_not_work_there(
    annotations: dict[str, str], useless: bool, accelerators: str
) -> None:
    asking = replace(pod("p", "c", node_selector=ON_H100), annotations=FrozenMap(annotations))
    state = snapshot([asking], [claim("c")])
    found = plan(state, catalog=MACHINES)
    assert found.launches
    reasons = list(not_working(state, found, MACHINES))
    assert len(reasons) == useless
    for reason in reasons:
        assert "p5.48xlarge with H100" in str(reason.detail["problem"])
        assert accelerators in str(reason.detail["next_step"])
    assert len(list(foreign_advice(state, MACHINES, found))) == 1 - useless
    assert not any("names no GPU model" in one.message for one in supply_advice(state, found, MACHINES))


def test_other_annotations_ask_hami_for_nothing() -> None:
    assert told(replace(ASKING, annotations=FrozenMap({"nvidia.com/note": "A100"}))) == []


def test_cards_that_hami_chooses_by_uuid_are_there_already() -> None:
    """No new machine has them; of pods that a plan puts on one, the plan says so itself."""
    pinned = replace(ASKING, annotations=FrozenMap({"nvidia.com/use-gpuuuid": "GPU-5f0c"}))
    (found,) = told(pinned, replace(pinned, name="q"))
    assert "these are existing cards, and no new machine has them" in found.message
    assert found.about.endswith(" and 1 more")
    assert found.next_step.startswith("leave the pod to the nodes with these cards")
