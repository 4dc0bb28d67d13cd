"""The label of GKE's Workload Identity: assumed only where no pool says anything, and of machines of Google Cloud."""

from __future__ import annotations

import pytest

from autoscaler.model.capacity import CapacityPool, Limits, Mode
from instance_catalog.frozen_map import EMPTY, FrozenMap
from tests.builders import claim, gpus, plan, pod, shipped, snapshot, types

LABEL = FrozenMap({"iam.gke.io/gke-metadata-server-enabled": "true"})
BOTH = shipped("g6.xlarge", "g2-standard-24")
POD = pod("p", "c", node_selector=LABEL)


def test_without_a_pool_the_machine_is_one_of_google_cloud() -> None:
    assert types(plan(snapshot([POD], [claim("c", gpus())]), catalog=BOTH)) == ["g2-standard-24"]
    assert types(plan(snapshot([pod("p", "c")], [claim("c", gpus())]), catalog=BOTH)) == ["g6.xlarge"]


@pytest.mark.parametrize(("labels", "bought"), [(EMPTY, []), (LABEL, ["g6.xlarge"])])
def test_a_pool_has_to_say_so(labels: FrozenMap[str, str], bought: list[str]) -> None:
    pool = CapacityPool("gpu", Mode.ACT, labels=labels, limits=Limits(nodes=5))
    assert types(plan(snapshot([POD], [claim("c", gpus())], pools=(pool,)), catalog=BOTH)) == bought
