"""A value of foreslice.dev/accelerator that nothing has: the one that it abbreviates is written in its place."""

from __future__ import annotations

from autoscaler.advice.advise import advise
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advice_text import advice_lines
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot

POLICY = Policy(considered=10_000)


def lines(value: str) -> list[str]:
    asking = pod("p", "c", node_selector=FrozenMap({labels.ACCELERATOR: value}))
    state = snapshot([asking], [claim("c", gpus())])
    catalog = shipped("g4dn.xlarge", "g6.xlarge")
    plan = plan_for(state, catalog, POLICY, NOW)
    return advice_lines(advise(asking, state, catalog, plan, POLICY, NOW))


def test_the_value_that_it_abbreviates_is_written_and_the_label_is_not_dropped() -> None:
    (found,) = lines("l4")
    assert found.startswith(f"pod default/p: write nvidia-l4 instead of l4 for {labels.ACCELERATOR} → 1 × g6.xlarge")


def test_an_accelerator_that_no_type_comes_near_to_is_not_given_up() -> None:
    assert all("drop" not in line for line in lines("tenstorrent-wormhole"))
