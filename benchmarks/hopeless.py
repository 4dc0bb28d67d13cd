"""What thousands of pods that fit nowhere cost a pod beside them: CPU seconds and requests before its launch.

python -m benchmarks.hopeless [--pods 5000] [--kinds 500]. First the controller's loop over a small catalog, with events
written beside the reconciles; the API server and the cloud are in memory, so a request costs microseconds where a
network would take milliseconds: the count of requests says what that would add. Then plans over the shipped catalog,
where each hopeless pod asks for something else, of none, KINDS and twice as many: the ratios say how the time grows.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

from autoscaler.cli.main import collect_rarely
from autoscaler.model.capacity import CapacityPool
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from benchmarks.tenants import NOW, Demand, demand, gpu, snapshot
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.types.catalog import Catalog
from tests.crowd import Crowd

TARGET_SECONDS: Final = 2.0
# A value of each sort that claims ask for in vain: a text, a capacity, a name that nothing publishes.
_IN_VAIN: Final = (
    'device.attributes["gpu.nvidia.com"].productName == "none {0}"',
    'device.capacity["gpu.nvidia.com"].memory.isGreaterThan(quantity("{0}000Gi"))',
    'device.attributes["gpu.nvidia.com"].?a{0}.orValue("") == "none"',
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=5000, help="pods that fit nowhere")
    parser.add_argument("--kinds", type=int, default=500, help="different pods that fit nowhere, of the whole catalog")
    options = parser.parse_args()
    collect_rarely()  # as the controller does
    _in_the_loop(options.pods)
    _of_the_shipped_catalog(options.kinds)


def _in_the_loop(most: int) -> None:
    for pods in (0, most):
        crowd = Crowd(pods)
        rounds = []
        for _ in range(2):
            began = time.process_time()
            crowd.loop.tick()
            rounds.append(time.process_time() - began)
        seconds = crowd.arrive()
        requests = sum(crowd.before_launch.values())
        mark = "" if seconds < TARGET_SECONDS else "  above target"
        print(
            f"{pods:>6} hopeless pods: first round {rounds[0]:.2f} s, next {rounds[1]:.2f} s; "
            f"launch of the good one after {seconds:.2f} s and {requests} writes; {len(crowd.events)} events wait{mark}"
        )


def _of_the_shipped_catalog(kinds: int) -> None:
    """The same plan without hopeless pods, with so many and with twice as many, in a namespace of their own."""
    catalog = load_catalog()
    good = demand("good", "good", gpu('device.attributes["gpu.nvidia.com"].productName.contains("H100")'))
    _seconds([good, *_hopeless(1)], catalog)  # what every process does once
    alone = _seconds([good], catalog)
    few, many = (_seconds([good, *_hopeless(count)], catalog) for count in (kinds, 2 * kinds))
    print(
        f"shipped catalog: the good pod alone {alone:.2f} s, beside {kinds} hopeless kinds {few:.2f} s, "
        f"beside {2 * kinds} {many:.2f} s: {many / few:.2f} times for twice as many"
    )


def _hopeless(count: int) -> list[Demand]:
    return [demand("hopeless", f"h-{i}", gpu(_IN_VAIN[i % len(_IN_VAIN)].format(i + 1))) for i in range(count)]


def _seconds(demands: list[Demand], catalog: Catalog) -> float:
    """CPU seconds of a plan over all types, in which the good pod gets a node and no other does."""
    state = replace(snapshot(demands, ()), pools=(CapacityPool("all"),))
    began = time.process_time()
    plan = plan_for(state, catalog, Policy(), NOW)
    seconds = time.process_time() - began
    assert [placement.pod for placement in plan.placements] == ["good/good"]
    return seconds


if __name__ == "__main__":
    main()
