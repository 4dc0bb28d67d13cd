"""Images that work on some machines only: a plan that chooses from the whole catalog buys one of these."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.lint.other_systems import foreign_advice, not_working
from autoscaler.model.capacity import CapacityPool, Mode
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.demand.images import selecting_what_images_need
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.report.tables.plan_summary import summary_of
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot

IMAGE = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/tcpgpudmarxd-dev:v1.0.21"
CATALOG = shipped("a3-highgpu-8g", "a3-megagpu-8g")
POOL = CapacityPool("any", Mode.ACT, drivers=("nvidia",))


def using(image: str, **fields: object) -> Pod:
    asked = pod("p", "c", **fields)
    return replace(asked, containers=(*asked.containers, Container("daemon", image=image)))


@pytest.mark.parametrize(("image", "type_"), [(IMAGE, "a3-megagpu-8g"), ("registry.example/a:1", "a3-highgpu-8g")])
def test_the_cheapest_on_which_it_works(image: str, type_: str) -> None:
    given = selecting_what_images_need(snapshot([using(image)], [claim("c", gpus(count=8))]))
    (node,) = plan_for(given, CATALOG, Policy(), NOW).launches
    assert node.offering.instance_type == type_


def test_who_says_which_machines_there_are_decides() -> None:
    """kube-scheduler takes any of their nodes, so the plan says that the pod does not work there."""
    pooled = snapshot([using(IMAGE)], [claim("c", gpus(count=8))], pools=(POOL,))
    assert selecting_what_images_need(pooled) is pooled
    found = plan_for(pooled, CATALOG, Policy(), NOW)
    (warning,) = not_working(pooled, found)
    first = summary_of(replace(found, warnings=(warning,)))[0]
    assert "1 pod placed (1 of them where they do not work: see the warnings), 0 cannot" in first.text
    assert first.level == "warning"
    assert not [one for one in foreign_advice(pooled, CATALOG, found) if "GPUDirect" in one.message]
    assert [one for one in foreign_advice(pooled, CATALOG) if "GPUDirect" in one.message]


@pytest.mark.parametrize("key", [labels.INSTANCE_TYPE, labels.GKE_ACCELERATOR])
def test_a_pod_that_selects_a_machine_keeps_it(key: str) -> None:
    given = snapshot([using(IMAGE, node_selector=FrozenMap({key: "x"}))], [claim("c", gpus(count=8))])
    assert selecting_what_images_need(given).pods == given.pods
