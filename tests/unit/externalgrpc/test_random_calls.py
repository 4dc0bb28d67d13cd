"""Random sequences of Cluster Autoscaler's calls in virtual time: lost answers, restarts of either side, faults of the
API server and of the cloud. Whatever happens, nothing is bought twice."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from autoscaler.cluster.api import ApiError, UnavailableError
from autoscaler.cluster.resources import LAUNCH_BATCHES
from autoscaler.externalgrpc.refusal import CallRefusedError
from autoscaler.externalgrpc.wire import Json
from autoscaler.lifecycle.provisioned_node import is_leaving
from providers.simulated.cloud import Call, Fault
from tests.unit.externalgrpc.cluster import Cluster

# `make faults` runs a thousand of them.
SEQUENCES = int(os.environ.get("FORESLICE_CALL_SEQUENCES", "12"))
LIMIT = 4  # nodes of the pool


class Caller:
    """Cluster Autoscaler as a client sees it: it wants `wanted` nodes of one group, and knows only what it is told."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Cluster(pods=0 if seed % 5 == 0 else 2)
        self.wanted = self.peak = 0
        self.ordered = 0  # nodes in LaunchBatches that were ever written
        self.losing = False
        self.orders = 0
        created = self.cluster.simulation.api.create

        def create(resource: Any, manifest: Any) -> Any:
            if resource == LAUNCH_BATCHES and self.losing and self.random.random() < 0.3:
                raise UnavailableError("not reached")
            found = created(resource, manifest)
            if resource == LAUNCH_BATCHES:
                self.ordered += len(manifest["spec"]["nodes"])
                self.orders += 1
                if self.losing and self.random.random() < 0.5:
                    raise UnavailableError("answer lost")
            return found

        self.cluster.simulation.api.create = create  # type: ignore[method-assign]
        self.cluster.run(seconds=30)

    def live(self) -> None:
        for _ in range(self.random.randrange(8, 16)):
            self.step()
        self.losing = False
        self.cluster.run(hours=1)
        self.settle()

    def step(self) -> None:
        match self.random.randrange(9):
            case 0:
                self.wanted = self.random.randrange(LIMIT + 1)
                self.peak = max(self.peak, self.wanted)
            case 1:
                self.cluster.restart_service()
            case 2:
                self.cluster.simulation.new_loop()
            case 3:
                self.losing = not self.losing
            case 4:
                fault = self.random.choice([Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.THROTTLED])
                self.cluster.simulation.cloud.inject(self.random.choice([Call.LAUNCH, Call.TERMINATE]), fault)
            case _:
                self.loop()
                if self.random.random() < 0.3:
                    self.loop()  # before the controller has seen what was ordered
        self.cluster.run(seconds=self.random.choice([0, 1, 10, 60, 240]))
        self.check()

    def loop(self) -> None:
        """One loop: sizes, then a scale-up, or deletions of what failed, or of what is not wanted any more."""
        groups = self.groups()
        if not groups:
            return
        name = str(self.random.choice(groups)["id"])
        before = sum(self.cluster.size(group["id"]) for group in groups)
        assert before <= self.peak, "what was ordered before was ordered again"
        if before < self.wanted:
            self.ask("NodeGroupIncreaseSize", id=name, delta=self.wanted - before)
        nodes = self.cluster.call("NodeGroupNodes", id=name)["instances"]
        failed = [node["id"] for node in nodes if "errorInfo" in node["status"]]
        running = [node["id"] for node in nodes if node["status"]["instanceState"] == 1]
        going = failed or (running[: before - self.wanted] if before > self.wanted else [])
        if going:
            self.ask("NodeGroupDeleteNodes", id=name, nodes=[{"providerID": each, "name": each} for each in going])

    def groups(self) -> list[Json]:
        try:
            return self.cluster.loop()
        except CallRefusedError:
            return []

    def ask(self, method: str, **asked: Any) -> None:
        try:
            self.cluster.call(method, **asked)
        except (CallRefusedError, ApiError):
            return  # Cluster Autoscaler logs it, and looks again in its next loop

    def check(self) -> None:
        cluster = self.cluster
        assert cluster.machines <= self.ordered, "a machine that nobody ordered"
        assert cluster.alive <= LIMIT, "more machines than the pool allows"
        leaving = sum(node.deleting or is_leaving(node) for node in cluster.ticks[-1].snapshot.provisioned)
        assert cluster.alive <= self.peak + leaving, "bought twice"
        assert len(cluster.simulation.cloud.launches) <= self.orders, "a launch that nobody ordered"

    def settle(self) -> None:
        """Time has passed without faults: what is there is what Cluster Autoscaler was told."""
        groups = self.groups()
        sizes = {group["id"]: self.cluster.size(group["id"]) for group in groups}
        failed = sum(
            "errorInfo" in node["status"]
            for group in groups
            for node in self.cluster.call("NodeGroupNodes", id=group["id"])["instances"]
        )
        assert sum(sizes.values()) - failed == self.cluster.alive
        self.check()


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_nothing_is_bought_twice(seed: int) -> None:
    Caller(seed).live()


def test_the_sequences_order_and_delete() -> None:
    """They would prove nothing if nothing was ever ordered."""
    ordered = 0
    for seed in range(4):
        caller = Caller(seed)
        caller.wanted = caller.peak = 2
        caller.live()
        ordered += caller.ordered
    assert ordered > 4
