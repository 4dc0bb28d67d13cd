"""Changes for pods that are hosts of a TPU slice."""

from __future__ import annotations

import pytest

from autoscaler.advice.pod_changes import node_selectors
from autoscaler.advice.situation import Situation
from autoscaler.model.capacity import CapacityPool, PodScope, Scope
from autoscaler.model.pod import Container
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, NOW, pod, snapshot

POLICY = Policy(considered=100)


@pytest.mark.parametrize(
    ("chips", "dropped"), [pytest.param(4, False, id="a part of the slice"), pytest.param(64, True, id="all of it")]
)
def test_hosts_of_a_slice_keep_its_topology(chips: int, dropped: bool) -> None:
    """Single hosts are not wired as one slice."""
    wants = FrozenMap({"google.com/tpu": Quantity.of(chips)})
    wanted = FrozenMap({"cloud.google.com/gke-tpu-topology": "4x4x4"})
    one_of = replace(pod("p", node_selector=wanted), containers=(Container("c", wants),))
    given = snapshot([one_of], pools=(CapacityPool("all", scope=Scope(pods=PodScope.ALL)),))
    asked = Situation.of(one_of, given, CATALOG, plan_for(given, CATALOG, POLICY, NOW))
    assert asked is not None
    assert [change.detail["key"] for change in node_selectors(asked)] == (
        ["cloud.google.com/gke-tpu-topology"] if dropped else []
    )
