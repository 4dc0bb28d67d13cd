"""Nodes whose pods want one zone say so: the zone is not known yet, and both rows would say "any"."""

from __future__ import annotations

import pytest

from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.reason import Code
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.reasons import text_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from tests.builders import CATALOG, NOW, claim, gpus, pod, snapshot


def beside(name: str, key: str) -> Pod:
    term = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("x",)),)), key, ("default",))
    return replace(pod(name, f"c-{name}"), labels=FrozenMap({"app": "x"}), pod_affinity=(term,) if key else ())


@pytest.mark.parametrize(("key", "count", "told"), [(labels.ZONE, 2, True), (labels.ZONE, 1, False), ("", 2, False)])
def test_nodes_of_one_zone_say_so(key: str, count: int, told: bool) -> None:
    pods = [beside(f"p{index}", key) for index in range(count)]
    claims = [claim(f"c-{each.name}", gpus(4)) for each in pods]
    found = plan_for(snapshot(pods, claims), CATALOG, Policy(), NOW)
    assert len(found.launches) == count
    texts = [[text_of(r) for r in node.reasons if r.code is Code.SAME_DOMAIN] for node in found.launches]
    assert texts == [["in one topology.kubernetes.io/zone, by pod affinity"] if told else []] * count
