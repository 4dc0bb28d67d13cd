"""What pods ask of HAMi by annotations, which no plan follows."""

from __future__ import annotations

import pytest

from autoscaler.lint.other_systems import foreign_advice
from autoscaler.model.pod import Container, Pod
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, pod, snapshot

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


def test_other_annotations_ask_hami_for_nothing() -> None:
    assert told(replace(ASKING, annotations=FrozenMap({"nvidia.com/note": "A100"}))) == []


def test_cards_that_hami_chooses_by_uuid_are_there_already() -> None:
    """No new machine has them; of pods that a plan puts on one, the plan says so itself."""
    pinned = replace(ASKING, annotations=FrozenMap({"nvidia.com/use-gpuuuid": "GPU-5f0c"}))
    (found,) = told(pinned, replace(pinned, name="q"))
    assert "these are existing cards, and no new machine has them" in found.message
    assert found.about.endswith(" and 1 more")
    assert found.next_step.startswith("leave the pod to the nodes with these cards")
