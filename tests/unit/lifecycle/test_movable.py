"""Which pods may be moved to save money: what a pod itself says."""

from __future__ import annotations

import pytest

from autoscaler.lifecycle.movable import by_namespace, obstacle, unmovable
from autoscaler.model.pod_disruption_budget import PodDisruptionBudget
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
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


LWS = "leaderworkerset.sigs.k8s.io"
GROUP = FrozenMap({f"{LWS}/name": "llama", f"{LWS}/group-index": "3", f"{LWS}/group-key": "5f2a"})


@pytest.mark.parametrize(("size", "moves"), [("4", False), (None, False), ("1", True)])
def test_a_group_of_a_leader_worker_set_is_a_gang(size: str | None, moves: bool) -> None:
    """Its pods belong to StatefulSets."""
    annotations = FrozenMap({f"{LWS}/size": size} if size else {})
    why = unmovable(pod("llama-3-1", owner="StatefulSet/llama-3", labels=GROUP, annotations=annotations))
    assert (why is None) is moves
    assert why is None or why.detail["gang"] == "default/llama-3"


@pytest.mark.parametrize(("label", "moves"), [("kueue.x-k8s.io/managed", False), ("kueue.x-k8s.io/queue-name", True)])
def test_a_pod_that_kueue_admits_by_itself_stays(label: str, moves: bool) -> None:
    """The queue's name alone is also on the pods of a Job, which stay admitted with it."""
    why = unmovable(pod("web", owner="ReplicaSet/web", labels=FrozenMap({label: "true"})))
    assert (why is None) is moves


@pytest.mark.parametrize(("budgets", "moves"), [(500, True), (501, False)])
def test_budgets_without_number_keep_the_pods_of_their_namespace(budgets: int, moves: bool) -> None:
    """Each pod is compared with each of them; other tenants do not wait for that."""
    own = by_namespace(PodDisruptionBudget("default", f"b-{number}") for number in range(budgets))
    why = obstacle([pod("web", owner="ReplicaSet/web")], own)
    assert (why is None) is moves
    assert why is None or why.detail["crowded"] == budgets
    assert obstacle([replace(pod("other", owner="ReplicaSet/other"), namespace="team")], own) is None
