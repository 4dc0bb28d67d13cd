"""The controller killed in the middle of a launch, a drain and a termination, whoever provides the machines.

tests/crash dies at every single write, in memory. Here the process, the API server and the garbage collector are real.
Nobody is elected: what a successor waits for is not what is looked at here, and it may take over at once.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, Protocol

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PROVISIONED_NODES, RESOURCE_SLICES, Resource
from tests.e2e.harness.installation import Controller, Installation

ALONE: Final = {"FORESLICE_LEASE_ELECT": "false"}


class Rented(Protocol):
    """The machines as their provider sees them."""

    def join(self) -> None:
        """Let machines that were launched become nodes."""

    def ids(self) -> list[str]:
        """The provider ids of those that cost money, in order."""


def live_through(
    cluster: Installation, controller: Callable[[str], AbstractContextManager[Controller]], rented: Rented
) -> None:
    """Two pods that wait get what they need, and give it back, over three deaths. `controller` takes a log's name."""
    names = [name for name, pod in cluster.pods().items() if "ownerReferences" not in pod["metadata"]]

    def run() -> bool:
        rented.join()
        return cluster.running(*names)

    with controller("launch.log") as running:
        cluster.wait_until(lambda: bool(outcomes(cluster) & {"Calling", "Launched"}), "a launch")
        running.stop(signal.SIGKILL)
    with controller("drain.log") as running:
        cluster.wait_until(run, "running pods")
        # They may run before the successor has found out what became of the launch.
        cluster.wait_until(partial(is_whole, cluster, rented), "one machine and one Node for each ProvisionedNode")
        for found in cluster.api.list(PROVISIONED_NODES).items:
            cluster.api.delete(PROVISIONED_NODES, found["metadata"]["name"])
        ending = {"Draining", "Terminating"}
        cluster.wait_until(lambda: not phases(cluster) or bool(phases(cluster) & ending), "a drain")
        running.stop(signal.SIGKILL)
    with controller("terminate.log") as running:
        cluster.wait_until(lambda: not phases(cluster) or "Terminating" in phases(cluster), "a termination")
        running.stop(signal.SIGKILL)
    with controller("end.log"):
        cluster.wait_until(cluster.is_empty, "an empty cluster")
        for resource in (LAUNCH_BATCHES, PROVISIONED_NODES, NODES, RESOURCE_SLICES):
            cluster.wait_until(partial(is_gone, cluster, resource), f"no {resource}")
        # They were evicted, and nobody makes them again.
        assert not set(names) & set(cluster.pods())
    assert rented.ids() == []


def phases(cluster: Installation) -> set[str]:
    """Where the nodes are in their lives."""
    return {found.get("status", {}).get("phase", "") for found in cluster.api.list(PROVISIONED_NODES).items}


def outcomes(cluster: Installation) -> set[str]:
    """How far the launches are."""
    return {found.get("status", {}).get("outcome", "") for found in cluster.api.list(LAUNCH_BATCHES).items}


def is_whole(cluster: Installation, rented: Rented) -> bool:
    """Whether there are one machine and one Node for each ProvisionedNode and none besides, and slices of no others."""

    def ids(resource: Resource, part: str, field: str) -> list[str]:
        return sorted(found.get(part, {}).get(field, "") for found in cluster.api.list(resource).items)

    names = {found["metadata"]["name"] for found in cluster.api.list(NODES).items}
    return (
        ids(PROVISIONED_NODES, "status", "providerID") == ids(NODES, "spec", "providerID") == rented.ids()
        and {_node_name(found) for found in cluster.api.list(RESOURCE_SLICES).items} == names
    )


def is_gone(cluster: Installation, resource: Resource) -> bool:
    """Whether no object of the resource is left."""
    return not cluster.api.list(resource).items


def _node_name(piece: Object) -> str:
    return str(piece["spec"]["nodeName"])


class Kwoks:
    """KWOK's machines are Nodes from the beginning."""

    def __init__(self, cluster: Installation) -> None:
        self._cluster = cluster

    def join(self) -> None:
        """They have."""

    def ids(self) -> list[str]:
        """All Nodes."""
        return sorted(found["spec"]["providerID"] for found in self._cluster.api.list(NODES).items)
