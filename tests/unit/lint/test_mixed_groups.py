"""Pods of one group that get GPUs of different models."""

from __future__ import annotations

import pytest

from autoscaler.lint.supply_advice import supply_advice
from autoscaler.model.pod import Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import NOW, claim, pod, shipped, snapshot

MACHINES = shipped("g4dn.xlarge", "g6.xlarge")
L4 = {labels.ACCELERATOR: "nvidia-l4"}
T4 = {labels.ACCELERATOR: "nvidia-t4"}


def member(name: str, owner: str, selector: dict[str, str]) -> Pod:
    return replace(pod(name, f"c-{name}"), owner=owner, node_selector=FrozenMap(selector))


def told(owner: str, *selectors: dict[str, str]) -> list[str]:
    pods = [member(f"p{index}", owner, selector) for index, selector in enumerate(selectors)]
    state = snapshot(pods, [claim(f"c-{one.name}") for one in pods])
    plan = plan_for(state, MACHINES, Policy(), NOW)
    assert len(plan.placements) == len(pods)
    found = supply_advice(state, plan, MACHINES)
    return [f"{one.subject}+{one.others}: {one.message}; {one.next_step}" for one in found if "on both" in one.message]


def test_workers_without_the_selection_of_their_leader() -> None:
    (text,) = told("LeaderWorkerSet/x", L4, {}, {})
    assert text.startswith(
        "Pod default/p1+1: selects no node and gets T4, while default/p0 of LeaderWorkerSet x gets L4:"
    )
    assert text.endswith(f"into all templates of LeaderWorkerSet x, such as {labels.ACCELERATOR}")


@pytest.mark.parametrize(
    ("owner", "selectors"),
    [
        ("LeaderWorkerSet/x", (L4, L4)),
        ("LeaderWorkerSet/x", ({}, {})),
        ("LeaderWorkerSet/x", (L4, T4)),  # on purpose
        ("RayCluster/x", (L4, {})),
        ("", (L4, {})),
    ],
)
def test_groups_that_are_equal_or_differ_on_purpose(owner: str, selectors: tuple[dict[str, str], ...]) -> None:
    assert told(owner, *selectors) == []
