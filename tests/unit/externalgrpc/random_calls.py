"""Random sequences of Cluster Autoscaler's calls over gRPC in virtual time, with trouble on either side.

`python -m tests.unit.externalgrpc.random_calls --sequences 1000` plays some and prints what happened in them.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any, Final

import grpc
import structlog

from autoscaler.cluster.api import UnavailableError
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import LAUNCH_BATCHES
from autoscaler.externalgrpc.messages import METHODS, PROVIDER
from autoscaler.externalgrpc.server import GrpcServer
from autoscaler.externalgrpc.service import CloudProvider
from autoscaler.externalgrpc.wire import Json, decode, encode
from autoscaler.lifecycle.provisioned_node import is_leaving
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from providers.simulated.cloud import Call, Fault
from tests.unit.externalgrpc.cluster import Cluster

LIMIT: Final = 4  # nodes of the pool
_TIMEOUT: Final = 60.0  # real seconds of a call, for a loaded machine
_PLENTY: Final = 1000
_SMALL: Final = OfferingKey("g6.xlarge", "us-east-1a", CapacityType.ON_DEMAND)
_ORDER: Final = "NodeGroupIncreaseSize"


class Caller:
    """Cluster Autoscaler as a client sees it: it wants `wanted` nodes of one group, and knows only what it is told.

    `seen` counts what happened. In a third of the sequences calls are repeated, in another third some are carried out
    long after the caller gave up: what those order is ordered twice, and is allowed for in `again`.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.repeating, self.lagging = seed % 3 == 0, seed % 3 == 1
        self.cluster = Cluster(pods=0 if seed % 5 == 0 else 2)
        self.seen: Counter[str] = Counter()
        self.again = 0
        self.wanted = self.peak = self.random.randrange(LIMIT + 1)
        self.written = 0  # nodes in LaunchBatches that were ever written
        self.answered = self.delivered = 0  # nodes of orders that were carried out, and of all that arrived
        self.losing = self.random.random() < 0.5
        self.late: list[tuple[CloudProvider, str, Json]] = []
        self._break_api()
        self._other = self.cluster.provider
        self.cluster.restart_service()
        self.cluster.run(seconds=30)
        self._server: GrpcServer | None = None
        self.connect()

    def _break_api(self) -> None:
        created = self.cluster.simulation.api.create

        def create(resource: Any, manifest: Any) -> Any:
            if resource == LAUNCH_BATCHES and self.losing and self.random.random() < 0.3:
                raise UnavailableError("not reached")
            found = created(resource, manifest)
            if resource == LAUNCH_BATCHES:
                self.written += len(manifest["spec"]["nodes"])
                self.seen["orders written"] += 1
                if self.losing and self.random.random() < 0.5:
                    raise UnavailableError("answer lost")
            return found

        self.cluster.simulation.api.create = create  # type: ignore[method-assign]

    def connect(self) -> None:
        """A server and a connection to it, in place of those before."""
        self.close()
        self._server = GrpcServer.of_provider(self._carried_out, "127.0.0.1:0", None, lambda *_: None)
        self._server.start()
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self._server.port}")

    def close(self) -> None:
        if self._server is not None:
            self._channel.close()
            self._server.stop()

    def _carried_out(self, method: str, asked: Json) -> Json:
        """In the server: a call that arrived."""
        if method in (_ORDER, "NodeGroupDeleteNodes"):
            if self.lagging and self.random.random() < 0.4:
                self.late.append((self.cluster.provider, method, asked))
                raise ConnectionError("the caller gives up before this is carried out")
            found = self._executed(self.cluster.provider, method, asked)
            if self.losing and self.random.random() < 0.3:
                self.seen["answers lost"] += 1
                raise ConnectionError("the answer does not arrive")
            return found
        return self._executed(self.cluster.provider, method, asked)

    def _executed(self, provider: CloudProvider, method: str, asked: Json) -> Json:
        if provider is not self.cluster.provider:
            raise LeadershipLostError("another controller leads")  # as the API client refuses its writes
        delta = asked.get("delta", 0) if method == _ORDER else 0
        self.delivered += delta
        found = provider.call(method, asked)
        self.answered += delta
        return found

    def live(self) -> None:
        """Play the sequence. Raises AssertionError."""
        try:
            for _ in range(self.random.randrange(10, 20)):
                self.step()
            self.losing = self.lagging = False
            self._carry_out_late()
            self.cluster.simulation.cloud.quota("on-demand", _PLENTY)
            self.cluster.run(hours=1)
            self.settle()
        finally:
            self.close()
            self.seen["machines"] += self.cluster.machines
            self.seen["nodes ordered"] += self.written

    def step(self) -> None:
        match self.random.randrange(14):
            case 0 | 1:
                self.wanted = self.random.randrange(LIMIT + 1)
                self.peak = max(self.peak, self.wanted)
            case 2:
                self.seen["restarts of the service"] += 1
                self.cluster.restart_service()
                self.connect()
            case 3:
                self.seen["restarts of the controller"] += 1
                self.cluster.simulation.new_loop()
            case 4:
                self.losing = not self.losing
            case 5:
                self.seen["faults of the cloud"] += 1
                fault = self.random.choice([Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.THROTTLED])
                self.cluster.simulation.cloud.inject(self.random.choice([Call.LAUNCH, Call.TERMINATE]), fault)
            case 6:
                self._sell_out()
            case 7:
                self.seen["changes to the other controller"] += 1
                self._other, self.cluster.provider = self.cluster.provider, self._other
                self.cluster.observe(self.cluster.ticks[-1])
            case 8:
                self._carry_out_late()
            case _:
                self.loop()
                if self.random.random() < 0.3:
                    self.loop()  # before the controller has seen what was ordered
        self.cluster.run(seconds=self.random.choice([0, 1, 10, 60, 240]))
        self.check()

    def _sell_out(self) -> None:
        cloud, moment = self.cluster.simulation.cloud, self.cluster.simulation.clock.now()
        if self.random.random() < 0.5:
            self.seen["quotas set"] += 1
            cloud.quota("on-demand", self.random.choice([0, 1, _PLENTY]))
        else:
            self.seen["shortages"] += 1
            cloud.shortage(_SMALL, since=moment, until=moment + timedelta(minutes=self.random.choice([2, 20])))

    def _carry_out_late(self) -> None:
        for provider, method, asked in self.late:  # each in the process that it reached
            self.seen["calls carried out late"] += 1
            self.again += asked.get("delta", 0) if method == _ORDER else 0
            try:
                self._executed(provider, method, asked)
            except Exception as error:  # noqa: BLE001  # as in the server: a refusal has no caller any more
                self.seen[f"late: {type(error).__name__}"] += 1
        self.late.clear()

    def loop(self) -> None:
        """One loop: sizes, then a scale-up, or deletions of what failed, or of what is not wanted any more."""
        groups = self.groups()
        sizes = {group["id"]: self.size(group["id"]) for group in groups}
        if not groups or None in sizes.values():
            return
        name = str(self.random.choice(groups)["id"])
        before = sum(size or 0 for size in sizes.values())
        assert before <= self.peak + self.again, "what was ordered before was ordered again"
        if before < self.wanted:
            self.ask(_ORDER, id=name, delta=self.wanted - before)
        answer = self.ask("NodeGroupNodes", id=name)
        nodes = answer.get("instances", []) if answer is not None else []
        failed = [node["id"] for node in nodes if "errorInfo" in node["status"]]
        running = [node["id"] for node in nodes if node["status"]["instanceState"] == 1]
        going = failed or (running[: before - self.wanted] if before > self.wanted else [])
        if going:
            self.ask("NodeGroupDeleteNodes", id=name, nodes=[{"providerID": each, "name": each} for each in going])

    def groups(self) -> list[Json]:
        if self.ask("Refresh") is None:
            return []
        answer = self.ask("NodeGroups") or {}
        return list(answer.get("nodeGroups", []))

    def size(self, group: str) -> int | None:
        answer = self.ask("NodeGroupTargetSize", id=group)
        return None if answer is None else int(answer.get("targetSize", 0))

    def ask(self, method: str, **asked: Any) -> Json | None:
        """An answer, or None: Cluster Autoscaler logs a failure and looks again in its next loop."""
        answer = self._sent(method, asked)
        if self.repeating and method in (_ORDER, "NodeGroupDeleteNodes") and self.random.random() < 0.5:
            self.seen["calls repeated"] += 1
            self.again += asked.get("delta", 0)
            self._sent(method, asked)
        return answer

    def _sent(self, method: str, asked: Json) -> Json | None:
        question, answer = METHODS[method]
        self.seen["calls"] += 1
        try:
            content = self._channel.unary_unary(f"/{PROVIDER}/{method}")(encode(question, asked), timeout=_TIMEOUT)
        except grpc.RpcError as error:
            self.seen[f"answered {error.code().name}"] += 1
            return None
        return decode(answer, content)

    def check(self) -> None:
        cluster = self.cluster
        assert self.answered <= self.written <= self.delivered, "an order was written twice, or not at all"
        assert cluster.machines <= self.written, "a machine that nobody ordered"
        assert cluster.alive <= LIMIT, "more machines than the pool allows"
        leaving = sum(node.deleting or is_leaving(node) for node in cluster.ticks[-1].snapshot.provisioned)
        assert cluster.alive <= self.peak + self.again + leaving, "bought twice"
        assert len(cluster.simulation.cloud.launches) <= self.seen["orders written"], "a launch that nobody ordered"

    def settle(self) -> None:
        """Time has passed without faults: what is there is what Cluster Autoscaler was told."""
        groups = self.groups()
        total = 0
        for group in groups:
            nodes = self.ask("NodeGroupNodes", id=group["id"])
            assert nodes is not None
            failed = sum("errorInfo" in node["status"] for node in nodes.get("instances", []))
            total += (self.size(group["id"]) or 0) - failed
        assert total == self.cluster.alive
        self.check()


def main() -> None:
    """Play sequences and print what happened."""
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--sequences", type=int, default=1000)
    reading.add_argument("--seed", type=int, default=0, help="the first of them")
    given = reading.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    seen: Counter[str] = Counter()
    violations = []
    for seed in range(given.seed, given.seed + given.sequences):
        caller = Caller(seed)
        try:
            caller.live()
        except AssertionError as error:
            violations.append(f"seed {seed}: {error}")
        seen += caller.seen
    lines = [f"{count:>8} {name}" for name, count in sorted(seen.items())]
    print(f"{given.sequences} sequences", *lines, f"{len(violations):>8} violations", *violations, sep="\n")  # noqa: T201
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
