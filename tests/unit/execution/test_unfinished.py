"""A decision to keep a node is carried out only where another decision has left a mark."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.execution.observed import Observed
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import CAPACITY_ENDS_AT, DRAINING_TAINT, HELD
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.taint import Taint
from tests.builders import ours, pod

OURS = ours("n", phase=Phase.READY, provider_id="m")


def unfinished(action: NodeAction, *pods: Pod, there: bool = True, **fields: Any) -> bool:
    node = Node(OURS.node_name, provider_id="m", **fields)
    bound = tuple(replace(found, node_name=OURS.node_name) for found in pods)
    seen = Observed(Snapshot(profile=REFERENCE, nodes=(node,) if there else (), pods=bound), {})
    return bool(list(seen.unfinished([(OURS, NodeDecision(OURS.name, action))])))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, False),
        ({"annotations": FrozenMap({HELD: "true"})}, True),
        ({"annotations": FrozenMap({CAPACITY_ENDS_AT: "2026-01-05T09:00:00Z"})}, True),
        ({"taints": (Taint(DRAINING_TAINT, "", "NoSchedule"),)}, True),
        ({"taints": (Taint("other", "", "NoSchedule"),)}, False),
    ],
)
def test_marks_of_the_node(fields: dict[str, Any], expected: bool) -> None:
    assert unfinished(NodeAction.KEEP, pod("a"), **fields) is expected


def test_a_notice_on_a_pod() -> None:
    warned = replace(pod("a"), annotations=FrozenMap({CAPACITY_ENDS_AT: "2026-01-05T09:00:00Z"}))
    assert unfinished(NodeAction.KEEP, warned)


def test_without_a_node_nothing_is_kept() -> None:
    assert not unfinished(NodeAction.KEEP, there=False)


@pytest.mark.parametrize("action", [action for action in NodeAction if action is not NodeAction.KEEP])
def test_other_decisions_are_carried_out(action: NodeAction) -> None:
    assert unfinished(action)
