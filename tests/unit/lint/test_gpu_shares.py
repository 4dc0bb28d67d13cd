"""Pods that ask for parts of GPUs, or select nodes that share them, and what they ask for instead."""

from __future__ import annotations

import pytest

from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.pods.gpu_shares import whole_instead
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, pod, snapshot

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"


def asking(**amounts: int) -> Pod:
    names = {"gpu": GPU, "shared": SHARED, "memory": "nvidia.com/gpumem", "slices": "volcano.sh/vgpu-number"}
    requests = FrozenMap({names.get(name, name): Quantity.of(amount) for name, amount in amounts.items()})
    return replace(pod("p"), containers=(Container("main", requests), Container("beside", FrozenMap({}))))


def test_whole_gpus_of_several_containers_are_added_up() -> None:
    (main, _), more = (one := asking(slices=2)).containers, asking(slices=1).containers[0]
    _, said = whole_instead(replace(one, containers=(main, replace(more, name="more"))))
    assert said == f"{GPU} 2 and 1 in its containers (3 whole GPUs in all)"


@pytest.mark.parametrize(
    ("given", "whole", "said"),
    [
        (asking(gpu=2, memory=3000, cpu=1), asking(gpu=2, cpu=1), f"{GPU} alone"),
        (asking(shared=3, cpu=1), asking(gpu=3, cpu=1), f"{GPU} 3"),
        (asking(slices=2, shared=0), asking(gpu=2), f"{GPU} 2"),
        (asking(**{"nvshare.com/gpu": 1}), asking(gpu=1), f"{GPU} 1"),
        (asking(**{"nvidia.com/vgpu-number": 2, "nvidia.com/vgpu-memory": 9}), asking(gpu=2), f"{GPU} 2"),
        (asking(memory=3000), asking(memory=3000), ""),  # HAMi adds a number of GPUs that only its own settings have
    ],
)
def test_whole_gpus_in_the_place_of_parts(given: Pod, whole: Pod, said: str) -> None:
    assert whole_instead(given) == (whole, said)


def test_what_the_device_plugin_shares_is_asked_for_as_whole_gpus() -> None:
    (found,) = foreign_advice(snapshot([asking(shared=1)]), CATALOG)
    assert f"asks for {SHARED}, with which NVIDIA's device plugin with time slicing" in found.message
    assert f"or request {GPU} instead, for whole GPUs; or run" in found.next_step


def selecting(key: str, value: str, **more: str) -> Pod:
    return replace(pod("p"), node_selector=FrozenMap({key: value, **more}))


@pytest.mark.parametrize(
    ("key", "shared", "whole"),
    [
        (labels.NVIDIA_GPU_SHARING, "mps", "none"),
        (labels.NVIDIA_MPS_CAPABLE, "true", "false"),
        (labels.NVIDIA_GPU_REPLICAS, "4", "1"),
    ],
)
def test_a_label_of_nodes_that_share_gpus(key: str, shared: str, whole: str) -> None:
    def told(given: Pod, nodes: tuple[Node, ...] = (), pools: tuple[CapacityPool, ...] = ()) -> list[str]:
        found = foreign_advice(snapshot([given], nodes=nodes, pools=pools), CATALOG)
        return [f"{one.message}; {one.next_step}" for one in found if "hand out whole GPUs" in one.message]

    (found,) = told(selecting(key, shared))
    assert found.startswith(f"selects {key}={shared}: GPU feature discovery writes it where")
    assert "docs/examples/shared-claim.yaml" in found
    assert f"give a CapacityPool {key}={shared} in spec.labels, their GPU" in found
    assert told(selecting(key, whole)) == []
    assert told(selecting(key, shared, **{labels.NVIDIA_GPU_PRODUCT: "Tesla-T4-SHARED"})) == []
    label = FrozenMap({key: shared})
    assert told(selecting(key, shared), nodes=(Node("n", labels=label),)) == []
    assert told(selecting(key, shared), pools=(CapacityPool("pool", labels=label),)) == []
