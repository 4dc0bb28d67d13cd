"""The controller killed with SIGKILL in the middle of each operation, on a real control plane; the next finishes it.

tests/crash dies at every single write, in memory. Here the process, the API server and the garbage collector are real.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial

import pytest

from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES, RESOURCE_SLICES, Resource
from tests.e2e.installation import Installation
from tests.e2e.test_installation import POOL, TEMPLATE, pod

# A killed holder's Lease has to run out before the next process acts, and the machine may be busy.
PATIENCE = 240.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(tmp_path_factory.mktemp("crashes")) as installed:
        installed.apply(POOL + "---" + TEMPLATE)
        installed.mode("gpu", "Act")
        yield installed


def phases(cluster: Installation) -> set[str]:
    """Where the nodes are in their lives."""
    return {found.get("status", {}).get("phase", "") for found in cluster.api.list(PROVISIONED_NODES).items}


def outcomes(cluster: Installation) -> set[str]:
    """How far the launches are."""
    return {found.get("status", {}).get("outcome", "") for found in cluster.api.list(LAUNCH_BATCHES).items}


def check_whole(cluster: Installation) -> None:
    """One Node for each ProvisionedNode and none besides, with slices of nobody else."""
    names = sorted(found["metadata"]["name"] for found in cluster.api.list(NODES).items)
    asked = sorted(found["metadata"]["name"] for found in cluster.api.list(PROVISIONED_NODES).items)
    assert names == asked
    assert {found["spec"]["nodeName"] for found in cluster.api.list(RESOURCE_SLICES).items} == set(names)


def is_gone(cluster: Installation, resource: Resource) -> bool:
    """Whether no object of the resource is left."""
    return not cluster.api.list(resource).items


def check_nothing_is_left(cluster: Installation) -> None:
    """No object of a life that has ended."""
    for resource in (LAUNCH_BATCHES, PROVISIONED_NODES, NODES, RESOURCE_SLICES):
        cluster.wait_until(partial(is_gone, cluster, resource), f"no {resource}", seconds=PATIENCE)


def test_killed_in_a_launch_a_drain_and_a_termination(cluster: Installation) -> None:
    cluster.apply(pod("one") + "---" + pod("two"))
    with cluster.controller("launch.log") as controller:
        cluster.wait_until(lambda: bool(outcomes(cluster) & {"Calling", "Launched"}), "a launch", seconds=PATIENCE)
        controller.stop(signal.SIGKILL)
    with cluster.controller("drain.log") as controller:
        cluster.wait_until(lambda: cluster.running("one", "two"), "running pods", seconds=PATIENCE)
        check_whole(cluster)
        for found in cluster.api.list(PROVISIONED_NODES).items:
            cluster.api.delete(PROVISIONED_NODES, found["metadata"]["name"])
        ending = {"Draining", "Terminating"}
        cluster.wait_until(lambda: not phases(cluster) or bool(phases(cluster) & ending), "a drain", seconds=PATIENCE)
        controller.stop(signal.SIGKILL)
    with cluster.controller("terminate.log") as controller:
        cluster.wait_until(
            lambda: not phases(cluster) or "Terminating" in phases(cluster), "a termination", seconds=PATIENCE
        )
        controller.stop(signal.SIGKILL)
    with cluster.controller("end.log"):
        cluster.wait_until(cluster.is_empty, "an empty cluster", seconds=PATIENCE)
        check_nothing_is_left(cluster)
    assert not cluster.api.list(PODS, namespace="default").items, "evicted, and nobody makes them again"
