"""Pods that Kueue holds: a change that buys their machines says what they still wait for."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.queues import Queues
from autoscaler.model.pod import Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import CATALOG, NOW, claim, pod, snapshot
from tests.one_line_advice import advice_lines

PARAMETER = {f"{labels.PROVREQ_PREFIX}maxRunDurationSeconds": "3600"}
HELD = "; Kueue holds the pods in queue team until it admits them"
ASKING = "ProvisioningRequestConfig has to name the class atomic.foreslice.dev"


def queued(queue: str, annotations: dict[str, str]) -> Pod:
    queues, problems = Queues(), Problems()
    waiting = replace(pod("p", "c"), node_selector=FrozenMap({"disk": "large"}))
    (found,) = queues.requested(queues.admitted((waiting,), queue, problems), queue, annotations)
    return found


@pytest.mark.parametrize(
    ("queue", "annotations", "held", "asking"),
    [("team", {}, True, False), ("team", PARAMETER, True, True), ("", PARAMETER, False, False)],
)
def test_a_change_says_what_kueue_needs(queue: str, annotations: dict[str, str], held: bool, asking: bool) -> None:
    waiting = queued(queue, annotations)
    given, policy = snapshot([waiting], [claim("c")]), Policy(considered=1000)
    found = advise(waiting, given, CATALOG, plan_for(given, CATALOG, policy, NOW), policy, NOW)
    line = advice_lines(found)[0]
    assert (HELD in line, ASKING in line) == (held, asking)
