"""Labels that pods select and that nodes have only because their pool says so."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import Advice, advise
from autoscaler.advice.change import ChangeKind
from autoscaler.model.pod import Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot

_CATALOG = shipped("g4dn.xlarge", "g2-standard-4")


def _advice(selecting: Pod) -> tuple[Advice, ...]:
    given, policy = snapshot([selecting], [claim("c", gpus())]), Policy(considered=1000)
    return advise(selecting, given, _CATALOG, plan_for(given, _CATALOG, policy, NOW), policy, NOW, most=1)


@pytest.mark.parametrize(
    ("key", "labelled"),
    [
        ("nvidia.com/gpu", True),  # the name of a resource, which no driver labels nodes with
        ("aws.amazon.com/neuron", True),
        ("nvidia.com/gpu.family", False),  # of GPU feature discovery
        ("nvidia.com/gpus", False),  # no resource, and perhaps a label of something that is not known here
    ],
)
def test_a_label_that_has_a_resources_name_is_given_by_people(key: str, labelled: bool) -> None:
    selector = NodeSelector((NodeSelectorTerm((Requirement(key, "In", ("true",)),)),))
    (found,) = _advice(pod("p", "c", affinity=selector))
    assert found.change.kind is (ChangeKind.ADD_LABELS if labelled else ChangeKind.DROP_NODE_AFFINITY)
    assert found.change.detail.get("labels") == ((f"{key}=true",) if labelled else None)
