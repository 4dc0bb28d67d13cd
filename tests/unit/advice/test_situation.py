"""Which pods a question about one pod is about."""

from __future__ import annotations

from dataclasses import replace

from autoscaler.advice.situation import Situation
from autoscaler.model.pod import Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from tests.builders import CATALOG, NOW, claim, gpus, pod, snapshot

POLICY = Policy(considered=10_000)


def test_a_pod_of_another_namespace_is_not_alike() -> None:
    ours, theirs = pod("p", "c", owner="Job/train"), replace(pod("q", "d", owner="Job/train"), namespace="other")
    given = snapshot([ours, theirs], [claim("c", gpus(12)), replace(claim("d", gpus(12)), namespace="other")])
    plan = plan_for(given, CATALOG, POLICY, NOW)
    found = Situation.of(ours, given, CATALOG, plan)
    assert found is not None
    assert [each.key for each in found.pods] == ["default/p"]
    assert isinstance(found.pod, Pod)
