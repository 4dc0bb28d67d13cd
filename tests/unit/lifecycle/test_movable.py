"""Which pods may be moved to save money: what a pod itself says."""

from __future__ import annotations

import pytest

from autoscaler.lifecycle.movable import unmovable
from instance_catalog.kubernetes.labels import DRAINING_TAINT
from instance_catalog.kubernetes.taint import Toleration
from tests.builders import pod


@pytest.mark.parametrize(
    ("toleration", "moves"),
    [
        (Toleration(operator="Exists"), False),
        (Toleration(operator="Exists", effect="NoSchedule"), False),
        (Toleration(DRAINING_TAINT, "Exists"), False),
        (Toleration(operator="Exists", effect="NoExecute"), True),
        (Toleration("nvidia.com/gpu", "Exists"), True),
    ],
)
def test_a_pod_that_tolerates_the_taint_of_a_drain_stays(toleration: Toleration, moves: bool) -> None:
    why = unmovable(pod("web", owner="ReplicaSet/web", tolerations=(toleration,)))
    assert (why is None) is moves
    assert why is None or why.detail["tolerates"] == DRAINING_TAINT
