"""Changes for pods that are hosts of a TPU slice."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.pod_changes import node_selectors
from autoscaler.advice.situation import Situation
from autoscaler.model.capacity import CapacityPool, PodScope, Scope
from autoscaler.model.pod import Container
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, NOW, pod, snapshot
from tests.one_line_advice import advice_lines

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


def test_a_topology_that_the_generation_lacks_becomes_one_of_as_many_chips() -> None:
    """And the generation is not given up for the topology."""
    wanted = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice", "cloud.google.com/gke-tpu-topology": "4x4"}
    container = Container("c", FrozenMap({"google.com/tpu": Quantity.of(4)}))
    hosts = [replace(pod(f"p-{n}", node_selector=FrozenMap(wanted)), containers=(container,)) for n in range(4)]
    pools = (CapacityPool("all", scope=Scope(pods=PodScope.ALL)),)
    given, catalog = snapshot(hosts, pools=pools, from_files=True), load_catalog()
    found = advise(hosts[0], given, catalog, plan_for(given, catalog, POLICY, NOW), POLICY, NOW)
    assert advice_lines(found)[0].startswith(
        "pod default/p-0 and 3 more: write 2x2x4 instead of 4x4 for cloud.google.com/gke-tpu-topology → 4 × ct5p-high"
    )
    assert not [change for one in found for change in (one.change.steps) if "value" not in change.detail]
