"""Whole GPUs in the place of parts that no node of a plan hands out, as a change that is tried."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.model.pod import Container
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advice_text import advice_lines
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, GPU, NOW, pod, snapshot


@pytest.mark.parametrize(
    ("shares", "asked"),
    [
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 100}, "nvidia.com/gpu alone"),
        ({"nvidia.com/gpu.shared": 1}, "nvidia.com/gpu 1"),
    ],
)
def test_a_part_of_a_gpu_is_planned_as_a_whole_one(shares: dict[str, int], asked: str) -> None:
    wants = FrozenMap({name: Quantity.of(amount) for name, amount in shares.items()})
    served = (replace(GPU, extended_resource_name="nvidia.com/gpu"),)
    given = replace(snapshot([replace(pod("p"), containers=(Container("c", wants),))]), classes=served)
    policy = Policy(considered=100)
    advice = advise(given.pods[0], given, CATALOG, plan_for(given, CATALOG, policy, NOW), policy, NOW)
    found = advice_lines(advice)[0]
    parts = [name for name in shares if name != "nvidia.com/gpu"]
    assert found.startswith(f"pod default/p: request {asked} instead of {parts[0]}, for whole GPUs → 1 × ")
