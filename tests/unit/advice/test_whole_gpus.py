"""Whole GPUs in the place of parts that no node of a plan hands out, as a change that is tried."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.model.pod import Container
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from tests.builders import CATALOG, GPU, NOW, pod, shipped, snapshot
from tests.one_line_advice import advice_lines


def proposed(wanted: dict[str, int], catalog: Catalog) -> str:
    """The first change for a pod that asks for these resources; "" if there is none."""
    wants = FrozenMap({name: Quantity.of(amount) for name, amount in wanted.items()})
    served = (replace(GPU, extended_resource_name="nvidia.com/gpu"),)
    given = replace(snapshot([replace(pod("p"), containers=(Container("c", wants),))]), classes=served)
    policy = Policy(considered=100)
    advice = advise(given.pods[0], given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW)
    return next(iter(advice_lines(advice)), "")


@pytest.mark.parametrize(
    ("shares", "asked"),
    [
        ({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 100}, "nvidia.com/gpu alone"),
        ({"nvidia.com/gpu.shared": 1}, "nvidia.com/gpu 1"),
    ],
)
def test_a_part_of_a_gpu_is_planned_as_a_whole_one(shares: dict[str, int], asked: str) -> None:
    found = proposed(shares, CATALOG)
    parts = [name for name in shares if name != "nvidia.com/gpu"]
    assert found.startswith(f"pod default/p: request {asked} instead of {parts[0]}, for whole GPUs → 1 × ")


@pytest.mark.parametrize(
    ("mebibytes", "cards", "bought"),
    [(8000, (), "g4dn.xlarge"), (16384, ("nvidia-a10g", "nvidia-l40s"), "g5.xlarge"), (40000, ("nvidia-l40s",), "g6e")],
)
@pytest.mark.parametrize(
    "shares", [{"volcano.sh/vgpu-number": 1}, {"nvidia.com/gpu": 1}], ids=["number", "beside a whole one"]
)
def test_a_whole_gpu_has_the_memory_of_the_part(
    shares: dict[str, int], mebibytes: int, cards: tuple[str, ...], bought: str
) -> None:
    """In MiB. A T4 has 15Gi."""
    memory = "nvidia.com/gpumem" if "nvidia.com/gpu" in shares else "volcano.sh/vgpu-memory"
    found = proposed(shares | {memory: mebibytes}, shipped("g4dn.xlarge", "g5.xlarge", "g6e.xlarge"))
    told = f"require foreslice.dev/accelerator In [{', '.join(cards)}], the GPUs with {mebibytes}Mi of memory or more"
    assert (told in found) == bool(cards)
    assert f"→ 1 × {bought}" in found


def test_no_gpu_with_as_much_memory_is_no_answer() -> None:
    assert not proposed({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 400_000}, shipped("g4dn.xlarge", "g5.xlarge"))
