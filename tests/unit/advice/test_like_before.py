"""The change that helped one workload, made for another that lacks the same."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import like_before
from autoscaler.advice.pod_changes import node_selectors
from autoscaler.advice.situation import Situation
from autoscaler.advice.trial import Budget, Replanner
from autoscaler.model.capacity import CapacityPool
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.advice_text import change_text
from instance_catalog.frozen_map import FrozenMap
from tests.builders import CATALOG, NOW, claim, pod, snapshot

POLICY = Policy(considered=10_000)


@pytest.mark.parametrize("key", ["team", "tier"])
def test_what_helped_one_workload_is_made_for_another_that_selects_another_value(key: str) -> None:
    first = pod("a", "c", node_selector=FrozenMap({"team": "mars"}))
    second = pod("b", "d", node_selector=FrozenMap({key: "venus"}))
    state = snapshot([first, second], [claim("c"), claim("d")], pools=[CapacityPool("gpu")])
    plan = plan_for(state, CATALOG, POLICY, NOW)
    asked, other = (Situation.of(one, state, CATALOG, plan) for one in (first, second))
    assert asked is not None
    assert other is not None
    earlier = next(node_selectors(asked))
    budget = Budget()
    found = like_before(earlier, Replanner(other, POLICY, NOW), budget)
    if key == "team":
        assert found is not None
        assert change_text(found.change) == "pod default/b: drop nodeSelector team=venus"
        assert budget.spent == 1
    else:
        assert found is None
        assert budget.spent == 0
