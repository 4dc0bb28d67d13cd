"""A GPU that no instance type has: the nearest one is advised, and no other."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.lint.pods.card_names import nearest_accelerators
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

SHIPPED = load_catalog()
SOME = shipped("g4dn.xlarge", "p3.2xlarge", "p4de.24xlarge", "a2-ultragpu-1g")
KEY = "machine.cluster.vke.volcengine.com/gpu-name"


@pytest.mark.parametrize(
    ("key", "value", "near"),
    [
        (KEY, "NVIDIA-A10", ("nvidia-a10g",)),
        (KEY, "NVIDIA-A10G", ()),  # it has that one
        (KEY, "Tesla-V100", ()),
        (KEY, "NVIDIA-H20-SXM5-96GB", ("nvidia-rtx-pro-6000",)),  # as much memory
        ("gpu.nvidia.com/class", "A40", ("nvidia-l40s",)),
        ("gpu.nvidia.com/class", "RTX_A5000", ("nvidia-a10g", "nvidia-l4")),
        (KEY, "NVIDIA-A800", ("nvidia-a100-80gb", "nvidia-h100-80gb")),
        (KEY, "NVIDIA-H800", ("nvidia-h100-80gb",)),  # and no older GPU
        ("gpu", "NVIDIA-RTX-5000-Ada", ()),  # of which nothing is known
        ("rack", "a10", ()),
        ("gpu", "a10-shared", ()),
    ],
)
def test_which_model_is_nearest_to_one_that_no_type_has(key: str, value: str, near: tuple[str, ...]) -> None:
    assert nearest_accelerators(key, value, SHIPPED) == near


def test_a_model_that_no_type_has_is_not_given_up_for_any_other() -> None:
    """An A10 becomes an A10G, and no T4 because it is cheaper."""
    waiting = replace(pod("p", "c"), node_selector=FrozenMap({KEY: "NVIDIA-A10"}))
    state, catalog = snapshot([waiting], [claim("c", gpus())]), shipped("g4dn.xlarge", "g5.xlarge")
    found = advise(waiting, state, catalog, plan_for(state, catalog, Policy(), NOW), Policy(), NOW)
    assert [entry.change.kind for entry in found] == [ChangeKind.NEAREST_MODEL]
    assert "In [nvidia-a10g], the nearest in the catalog" in advice_lines(found)[0]


def test_nor_where_the_nearest_model_does_not_help() -> None:
    """Four of them on one machine: no g5 of this catalog has so many, and T4s are not what was asked for."""
    waiting = replace(pod("p", "c"), node_selector=FrozenMap({KEY: "NVIDIA-A10"}))
    state, catalog = snapshot([waiting], [claim("c", gpus(4))]), shipped("g4dn.12xlarge", "g5.xlarge")
    found = advise(waiting, state, catalog, plan_for(state, catalog, Policy(), NOW), Policy(), NOW)
    assert ChangeKind.DROP_NODE_SELECTOR not in {entry.change.kind for entry in found}


@pytest.mark.parametrize(
    ("key", "told"), [("accelerator", True), (KEY, False), ("machine.cluster.vke.volcengine.com/gpu-name", False)]
)
def test_nodes_of_the_nearest_model_may_have_a_label_that_people_give(key: str, told: bool) -> None:
    waiting = replace(pod("p", "c"), node_selector=FrozenMap({key: "nvidia-a10"}))
    state, catalog = snapshot([waiting], [claim("c", gpus())]), shipped("g4dn.xlarge", "g5.xlarge")
    found = advise(waiting, state, catalog, plan_for(state, catalog, Policy(), NOW), Policy(), NOW)
    pool = f"a CapacityPool with {key}=nvidia-a10 in spec.labels and foreslice.dev/accelerator In [nvidia-a10g] in"
    assert (pool in advice_lines(found)[0]) is told
