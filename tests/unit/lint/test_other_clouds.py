"""Pods of clouds in which nothing is launched: what to do there, and what to drop to plan them here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.lint.other_systems import foreign_advice
from autoscaler.lint.pods.other_clouds import cloud_named
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, pod, snapshot

LABEL, RESOURCE = "machine.cluster.vke.volcengine.com/gpu-name", "vke.volcengine.com/rdma"


def waiting(*, selects: str = "", asks: str = "") -> Pod:
    container = Container("main", FrozenMap({asks: Quantity.of(1)} if asks else {}))
    selector = FrozenMap({selects: "a"} if selects else {})
    return replace(pod("p"), containers=(container,), node_selector=selector)


def told(*pods: Pod, nodes: tuple[Node, ...] = ()) -> list[Diagnostic]:
    found = foreign_advice(snapshot(pods, nodes=nodes), CATALOG)
    return [one for one in found if "only nodes of" in one.message]


@pytest.mark.parametrize(
    ("name", "cloud"),
    [
        (LABEL, "Volcengine"),
        ("aliyun.com/gpu-core.percentage", "Alibaba Cloud"),
        ("aliyun.com/gpu-mem", ""),  # of a device plugin that runs on any cluster
        ("kubernetes.azure.com/accelerator", "Azure"),
        ("huawei.com/Ascend910", "a cloud with Huawei's NPUs"),
        ("nvidia.com/gpu", ""),
        ("notaliyun.com/gpu", ""),
        ("volcengine.com", ""),
    ],
)
def test_whose_nodes_have_it(name: str, cloud: str) -> None:
    assert cloud_named(name) == cloud


def test_everything_that_keeps_the_pod_there_is_named() -> None:
    (found,) = told(waiting(selects=LABEL, asks=RESOURCE), waiting())
    assert found.message.startswith(f"selects {LABEL} and asks for {RESOURCE}, which only nodes of Volcengine have")
    assert f"drop the node selector or affinity on {LABEL} and the request of {RESOURCE}, and" in found.next_step


def test_one_of_them_is_enough_and_is_said_once() -> None:
    given = snapshot([waiting(selects="pool", asks=RESOURCE)])
    about = [one for one in foreign_advice(given, CATALOG) if RESOURCE in one.message]
    assert [one.next_step.endswith(f"drop the request of {RESOURCE}") for one in about] == [True]


def test_what_nodes_that_are_there_have_is_not_said() -> None:
    there = Node("n", labels=FrozenMap({LABEL: "a"}), allocatable=FrozenMap({RESOURCE: Quantity.of(1)}))
    assert told(waiting(selects=LABEL, asks=RESOURCE), nodes=(there,)) == []
    assert told(waiting()) == []
