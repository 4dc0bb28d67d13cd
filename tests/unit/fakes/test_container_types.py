"""GKE's answers in the fake have GKE's fields."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gce.container_types import checked
from tests.fakes.gce.gke import NodePool

FULL = NodePool(
    (("us-central1-a", "grp"),),
    autoscaling=True,
    auto_repair=True,
    queued=True,
    tpu_topology="4x4",
    policy="compact",
    spot=True,
    reservation="held",
)


def test_a_node_pool_with_everything_has_only_fields_that_gke_has() -> None:
    answer = FULL.as_json("pool")
    assert checked("NodePool", answer) == answer


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"autoScaling": {}}, "NodePool has no field autoScaling"),
        ({"status": "READY"}, "NodePool.status has no value 'READY'"),
        ({"maxPodsConstraint": {"maxPodsPerNode": 110}}, "MaxPodsConstraint.maxPodsPerNode is a 64-bit number"),
        ({"instanceGroupUrls": "one"}, "NodePool.instanceGroupUrls is a list"),
        ({"autoscaling": {"enabled": "true"}}, "Enabled.enabled is a bool"),
        ({"config": {"labels": {"a": 1}}}, "NodeConfig.labels maps strings to strings"),
        ({"config": {"taints": [{"effect": "NoSchedule"}]}}, "NodeTaint.effect has no value 'NoSchedule'"),
    ],
)
def test_what_gke_could_not_say_fails(change: dict[str, Any], said: str) -> None:
    with pytest.raises(AssertionError, match=said.replace(".", r"\.")):
        checked("NodePool", {**FULL.as_json("pool"), **change})
