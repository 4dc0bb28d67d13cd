"""Random gangs with claims over the production loop and the simulated cloud, in virtual time: all or nothing.

Some find no room, some are impossible, machines are sold out, bookings expire, and the process restarts. Run more than
`make test` does:

    python -m tests.unit.simulation.gangs 500
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from autoscaler.cluster.api import Object, list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, NODES, PROVISIONED_NODES, PROVISIONING_REQUESTS
from autoscaler.simulation.simulation import Simulation
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from tests.builders import pool_manifest, shipped
from tests.unit.simulation.queue import Gang, Queue, condition, holds

START: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
ZONE: Final = "us-east-1a"
STEP: Final = timedelta(seconds=30)
IDLE: Final = timedelta(minutes=4)
# Minutes in which gangs arrive, and in which they wait and run.
ARRIVE: Final = 10
BUSY: Final = 35
WITHDRAWN: Final = 50
# Longer than any gang needs: a boot, a booking that expires, its work, and the time until nodes go.
END: Final = timedelta(minutes=75)
IMPOSSIBLE: Final = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('900Gi')) >= 0"


@dataclass
class Story:
    """One world of a few gangs that share a pool, and what came of each."""

    seed: int
    count: int
    outcomes: Counter[str] = field(default_factory=Counter)
    finished: dict[str, set[str]] = field(default_factory=dict)  # pods that ran to their end, by gang

    def live(self) -> Counter[str]:
        """Run it to its end. Raises AssertionError where a gang got a part, or a node stayed behind."""
        random = Random(self.seed)
        simulation = Simulation(catalog=shipped("g6.xlarge", "g6.12xlarge"), start=START)
        simulation.api.create(CAPACITY_POOLS, pool_manifest(nodes=8))
        self._sell_out(simulation, random)
        queue = Queue(simulation.api)
        drawn = [(random.randrange(0, ARRIVE), _gang(f"g{n}", random)) for n in range(self.count)]
        arrivals = sorted(drawn, key=lambda arrival: arrival[0])
        while simulation.clock.now() < START + END:
            minute = (simulation.clock.now() - START) / timedelta(minutes=1)
            while arrivals and arrivals[0][0] <= minute:
                gang = arrivals.pop(0)[1]
                queue.ask(gang)
                if random.random() < 0.1:
                    queue.started.add(gang.name)  # its consumers never come
            simulation.run(simulation.clock.now() + (STEP if minute < BUSY else IDLE))
            if queue.step():
                simulation.run(simulation.clock.now() + STEP)
                self._nobody_waits(queue)
            self._count(queue)
            if minute >= WITHDRAWN:
                self._withdraw(queue)
            if random.random() < 0.05:
                simulation.new_loop()
                self.outcomes["restarts"] += 1
        self._judge(simulation, queue)
        return self.outcomes

    def _sell_out(self, simulation: Simulation, random: Random) -> None:
        for name in ("g6.xlarge", "g6.12xlarge"):
            key = OfferingKey(name, ZONE, CapacityType.ON_DEMAND)
            if random.random() < 0.4:
                begin = START + timedelta(minutes=random.randrange(0, 10))
                simulation.cloud.shortage(key, since=begin, until=begin + timedelta(minutes=random.randrange(2, 10)))
            if random.random() < 0.3:
                simulation.cloud.limit(key, random.randrange(2, 6))

    def _withdraw(self, queue: Queue) -> None:
        """Take back the requests for which there was no room: what was launched for them goes as well."""
        for name in list(queue.gangs):
            request = queue.request(name)
            if not holds(request, "Provisioned") and not holds(request, "Failed"):
                assert not self.finished[name], f"seed {self.seed}: {name} was never let in, and pods of it ran"
                queue.api.delete(PROVISIONING_REQUESTS, name, namespace="default")
                del queue.gangs[name]
                self.outcomes["found no room"] += 1

    def _count(self, queue: Queue) -> None:
        """Pods leave with their nodes, so those that have ended are counted while they are there."""
        for name in queue.gangs:
            ended = {p["metadata"]["name"] for p in queue.pods_of(name) if p["status"].get("phase") == "Succeeded"}
            self.finished.setdefault(name, set()).update(ended)

    def _nobody_waits(self, queue: Queue) -> None:
        """Whoever was let in runs at once: every pod of its gang, on its nodes."""
        for name in queue.started:
            pods = queue.pods_of(name)
            waiting = [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]
            assert not waiting, f"seed {self.seed}: of {len(pods)} pods of {name} wait {waiting}"

    def _judge(self, simulation: Simulation, queue: Queue) -> None:
        for name, gang in queue.gangs.items():
            request, ran = queue.request(name), len(self.finished[name])
            outcome = _outcome(request, gang, ran)
            assert outcome, f"seed {self.seed}: {name}: {ran} of {gang.pods} pods ran, and it says {request['status']}"
            if gang.selector:
                assert outcome == "failed", f"seed {self.seed}: {name} is impossible"
            self.outcomes[outcome] += 1
        left = [node["metadata"]["name"] for node in list_all(simulation.api, PROVISIONED_NODES)[0]]
        assert not left, f"seed {self.seed}: {left} stayed behind"
        alive = [machine.node for _, machine in simulation._kubelets._machines() if machine.ended_at is None]
        assert not alive, f"seed {self.seed}: machines {alive} run on"
        assert not list_all(simulation.api, NODES)[0], f"seed {self.seed}: Nodes stayed behind"


def _outcome(request: Object, gang: Gang, pods: int) -> str:
    """What became of a gang; "" where it got neither all nor nothing."""
    failed, provisioned = holds(request, "Failed"), holds(request, "Provisioned")
    if failed and not provisioned and not pods:
        return "failed"
    if provisioned and not failed and pods == gang.pods:
        return "ran"
    unused = provisioned and not failed and not pods and condition(request, "BookingExpired")
    return "never consumed" if unused else ""


def _gang(name: str, random: Random) -> Gang:
    sets = tuple(
        (random.randrange(1, 5), random.choice((1, 1, 1, 2, 4)), random.choice(("500m", "1", "2")))
        for _ in range(random.choice((1, 1, 2)))
    )
    if random.random() < 0.05:
        sets = ((random.randrange(40, 45), 1, "1"),)
    impossible = IMPOSSIBLE if random.random() < 0.1 else ""
    return Gang(name, sets, runs_for=f"{random.randrange(2, 5)}m", selector=impossible)


def run(
    gangs: int, first: int = 0, each: int = 10, tell: Callable[[Counter[str]], None] = lambda _: None
) -> Counter[str]:
    """So many gangs in worlds of a few, from seed `first` on; what became of them."""
    outcomes: Counter[str] = Counter()
    for number in range(-(-gangs // each)):
        outcomes += Story(first + number, min(each, gangs - number * each)).live()
        tell(outcomes)
    return outcomes


if __name__ == "__main__":
    run(int(sys.argv[1]), tell=lambda outcomes: print(dict(outcomes), flush=True))  # noqa: T201  # a command
