"""`make bench-scale`: the loop in a large cluster that is nearly full while pods come and go, and how its time grows.

python -m benchmarks.scale [--nodes 5000] [--ticks 100] [--churn 10] [--growth 1000]

The shape is that of Kubernetes' load test for dynamic resource allocation (kubernetes/perf-tests,
clusterloader2/testing/dra): nodes of eight devices, 90 % of them in use by pods with one device each, then pods that
come and go. API server, scheduler and kubelet are in the memory of another process and not measured. Garbage collection
is that of `foreslice run`, and is measured; so is what it takes to read the API server's answers. How long the first
reconcile takes on the clock is benchmarks/first_read.py's to measure: here it mostly waits for the other process.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from autoscaler.cli.main import collect_rarely
from autoscaler.cluster.resources import PODS, RESOURCE_CLAIMS
from autoscaler.loop.loop import Loop
from benchmarks.apart import Apart
from benchmarks.documents import Document, distinct, mixed, warming
from benchmarks.reconciles import Objects, Reconciles
from benchmarks.workload import measured

DEVICES: Final = 8
DRIVER: Final = "gpu.nvidia.com"
_LOOPS: Final = 10_000_000
_WAITS: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@dataclass(frozen=True, slots=True)
class Place:
    """A device of a node."""

    node: str
    device: str


class Filled(Objects):
    """A cluster of which a share of the devices is in use. Everything drawn follows from the seed."""

    def __init__(self, nodes: int, *, full: float = 0.9) -> None:
        super().__init__(nodes)
        places = [Place(f"other-{n}", f"gpu-{d}") for n in range(nodes) for d in range(DEVICES)]
        self._draw = random.Random(1)
        self._draw.shuffle(places)
        self._free = deque(places)
        self._running: dict[str, Place] = {}
        self._waiting: list[str] = []
        self._made = 0
        for _ in range(int(len(places) * full)):
            self._bind(self._create("any"), self._free.popleft())

    def claims(self) -> int:
        """How many claims hold devices."""
        return len(self._running)

    def new_selector(self) -> None:
        """A pod comes whose selector no device has answered yet."""
        text = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{self._made}Ki')) >= 0"
        exactly = {"deviceClassName": DRIVER, "selectors": [{"cel": {"expression": text}}]}
        self._templates["new"] = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        self._waiting.append(self._create("new"))

    def churn(self, changes: int) -> None:
        """Those that waited run, half as many as `changes` end, and as many come."""
        for name in self._waiting:
            self._bind(name, self._free.popleft())
        for name in self._draw.sample(list(self._running), changes // 2):
            self._end(name)
        self._waiting = [self._create("any") for _ in range(changes - changes // 2)]

    def _create(self, template: str) -> str:
        self._made += 1
        name = f"pod-{self._made}"
        self.ask(name, template)
        return name

    def _bind(self, name: str, place: Place) -> None:
        """What kube-scheduler and the kubelet do."""
        found = self.api.get(PODS, name, namespace="default")
        result = {"request": "gpu", "driver": DRIVER, "pool": place.node, "device": place.device}
        field = {"key": "metadata.name", "operator": "In", "values": [place.node]}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
        consumer = {"resource": "pods", "name": name, "uid": found["metadata"]["uid"]}
        status = {"allocation": allocation, "reservedFor": [consumer]}
        claim = f"{name}-gpu"
        self.api.patch(RESOURCE_CLAIMS, claim, {"status": status}, namespace="default", subresource="status")
        self.api.patch(PODS, name, {"spec": {"nodeName": place.node}}, namespace="default")
        running = {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}
        self.api.patch(PODS, name, {"status": running}, namespace="default", subresource="status")
        self._running[name] = place

    def _end(self, name: str) -> None:
        for kind, of_kind in ((PODS, name), (RESOURCE_CLAIMS, f"{name}-gpu")):
            self.api.delete(kind, of_kind, namespace="default", grace_seconds=0)
        self._free.append(self._running.pop(name))


class Controlled:
    """The loop of this process on the cluster of another one."""

    def __init__(self, nodes: int) -> None:
        self._objects = Apart(Filled, nodes)
        self.claims: int = self._objects.call("claims")
        self._reconciles = Reconciles(self._objects.api)

    def new_selector(self) -> None:
        """A pod comes whose selector no device has answered yet."""
        self._objects.call("new_selector")

    def changed(self, changes: int) -> float:
        """CPU seconds of a reconcile after so many changes."""
        self._objects.call("churn", changes)
        return self.timed()

    def timed(self, act: Callable[[Loop], object] = Loop.tick) -> float:
        """CPU seconds of one reconcile, collections of garbage included."""
        began = time.process_time()
        self._reconciles.act(act)
        return time.process_time() - began

    def seconds(self, part: str) -> float:
        """CPU seconds of a part of the last reconcile."""
        return self._reconciles.seconds[part]

    def close(self) -> None:
        """End the other process."""
        self._objects.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=5000, help="nodes of eight devices")
    parser.add_argument("--ticks", type=int, default=100, help="reconciles with churn")
    parser.add_argument("--churn", type=int, default=10, help="pods that come or go before each")
    parser.add_argument("--growth", type=int, default=1000, help="nodes, and pods of a plan, to double; 0: none")
    options = parser.parse_args()
    collect_rarely()
    cluster = Controlled(options.nodes)
    before = _memory()
    print(f"{options.nodes} nodes of {DEVICES} devices, {cluster.claims} claims; CPU seconds")
    print(f"| this machine: a loop of {_LOOPS:,} additions | {_calibration():.3f} |", flush=True)
    for what, seconds in _rounds(cluster, ticks=options.ticks, churn=options.churn):
        print(f"| {what} | {seconds} |", flush=True)
    print(f"| memory, at most (MiB) | {_memory()} |")
    print(f"| of it before the first reconcile | {before} |")
    cluster.close()
    del cluster
    for what, once, twice in _growth(options.growth) if options.growth else ():
        print(f"| {what}: {once:.3f}, then {twice:.3f} | {twice / once:.1f} times |", flush=True)


def _calibration() -> float:
    """CPU seconds of work that no change of the code alters: figures of two machines compare by their ratio to it."""
    began, total = time.process_time(), 0
    for number in range(_LOOPS):
        total += number
    return time.process_time() - began


def _memory() -> int:
    """MiB, at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _growth(size: int) -> Iterator[tuple[str, float, float]]:
    """What takes how long, and with twice as many."""
    yield "nodes, with their pods: a reconcile with churn", *(_tick(Controlled(n)) for n in (size, 2 * size))
    measured(warming())
    yield "equal pods of a plan", *(_planned(mixed(n)) for n in (size, 2 * size))
    yield "different pods of a plan", *(_planned(distinct(n)) for n in (size // 5, 2 * size // 5))
    yield "instance types of a plan", *(_planned(mixed(size, times=n)) for n in (1, 2))


def _tick(cluster: Controlled) -> float:
    """The median of a few reconciles with churn."""
    for act in (Loop.tick, Loop.warm_up, Loop.tick):
        cluster.timed(act)
    taken = [cluster.changed(10) for _ in range(7)]
    cluster.close()
    return statistics.median(taken)


def _planned(document: Document) -> float:
    """The least of three: what else the machine does is no growth."""
    return min(measured(document).cpu_seconds for _ in range(3))


def _rounds(cluster: Controlled, *, ticks: int, churn: int) -> Iterator[tuple[str, str]]:
    yield "the first one (everything is listed)", f"{cluster.timed():.2f}"
    yield "of it: reading", f"{cluster.seconds('observe'):.2f}"
    yield "of it: the first plan", f"{cluster.seconds('plan'):.2f}"
    yield "warm-up", f"{cluster.timed(Loop.warm_up):.2f}"
    yield "nothing changed", f"{cluster.timed():.3f}"
    yield "nothing changed, again", f"{cluster.timed():.3f}"
    cluster.new_selector()
    yield "a pod with a selector that is new", f"{cluster.timed():.3f}"
    taken: list[float] = []
    for _ in range(ticks):
        taken.append(cluster.changed(churn))
    taken.sort()
    yield f"{churn} pods changed: median of {ticks}", f"{statistics.median(taken):.3f}"
    yield "their 99th percentile", f"{taken[max(0, -(-len(taken) * 99 // 100) - 1)]:.3f}"
    yield "the slowest", f"{taken[-1]:.3f}"


if __name__ == "__main__":
    main()
