"""`make soak`: the installed controller through hours of pods that come and go, on the control plane of `make e2e`.

python -m benchmarks.soak [--minutes 60] [--seed 0] [--churn]. Each cycle asks for a random number of pods with claims,
lets them run and ends them; now and then the API server is killed in between. After every cycle the cluster must be
empty of nodes and of the controller's objects, no pod may have been taken away by anybody else, and in the end the
controller's memory must not have grown. Exits with 1 otherwise.

With --churn ten minutes of it, without kills: prints the memory at minute 2 and at the end, and their ratio, and exits
with 1 when that is above 1.05.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from autoscaler.cluster.api import key_of
from autoscaler.cluster.resources import LAUNCH_BATCHES, PODS, PROVISIONED_NODES, RESOURCE_CLAIMS
from benchmarks.controller import OBJECTS, SETTINGS, at_once, pod, quiet
from tests.e2e.harness.installation import Controller, Installation
from tests.faults import invariants

MOST_PODS: Final = 20
PATIENCE: Final = 600.0
# What the first cycles fill (caches, connection pools, the heap's own slack) is no leak.
WARM_UP: Final = 5
GROWTH: Final = 1.2
# Of the mode --churn: minutes, after which the first figure is taken, and by how much the last may exceed it.
CHURN: Final = 10
SETTLED: Final = 2
CHURN_GROWTH: Final = 1.05


def main() -> int:
    """Live through the cycles; 1 if something was left or the memory grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--churn", action="store_true", help="ten minutes of pods, and the memory at minutes 2 and 10")
    asked = parser.parse_args()
    minutes = CHURN if asked.churn else asked.minutes
    chance = random.Random(asked.seed)
    folder, sizes = Path(tempfile.mkdtemp(prefix="foreslice-soak-")), list[int]()
    with (
        Installation(folder, values={"settings": SETTINGS}) as cluster,
        cluster.controller() as controller,
    ):
        cluster.apply(OBJECTS)
        quiet(cluster, controller)
        begin = time.monotonic()
        settled = 0
        while time.monotonic() - begin < 60 * minutes or len(sizes) <= WARM_UP:
            count = chance.randint(1, MOST_PODS)
            cycle(cluster, controller, [f"work-{len(sizes)}-{number}" for number in range(count)])
            sizes.append(controller.resident)
            print(f"cycle {len(sizes)}: {count} pods, {sizes[-1] / 1e6:.0f} MB", flush=True)
            if not settled and time.monotonic() - begin >= 60 * SETTLED:
                settled = sizes[-1]
            if not asked.churn and chance.random() < 0.1:
                cluster.control_plane.kill_api_server()
    if asked.churn:
        return _churned(settled, sizes[-1])
    before, after = max(sizes[:WARM_UP]), sizes[-1]
    print(f"{len(sizes)} cycles; {before / 1e6:.0f} MB after {WARM_UP} of them, {after / 1e6:.0f} MB after all")
    return int(after > GROWTH * before)


def _churned(settled: int, last: int) -> int:
    """Print both figures; 1 if the memory grew between them."""
    ratio = last / settled
    print(
        f"{settled / 1e6:.1f} MB at minute {SETTLED}, {last / 1e6:.1f} MB at minute {CHURN}: {ratio:.3f} times as much"
    )
    return int(ratio > CHURN_GROWTH)


def cycle(cluster: Installation, controller: Controller, names: list[str]) -> None:
    """Pods with claims come, run and go, and nothing is left of them."""
    at_once(lambda name: cluster.api.create(PODS, pod(name, "any")), names)
    mine = {key_of(found): found["metadata"]["uid"] for found in cluster.pods().values()}

    def runs() -> bool:
        found = cluster.pods()
        taken = list(invariants.lost(mine, found.values()))
        assert taken == [], "; ".join(taken)
        return all(found[name]["status"]["phase"] == "Running" for name in names)

    cluster.wait_until(runs, f"{len(names)} running pods", seconds=PATIENCE)
    doubled = list(invariants.doubled(cluster.api.list(PROVISIONED_NODES).items))
    assert doubled == [], "; ".join(doubled)
    at_once(lambda name: cluster.api.delete(PODS, name, namespace="default", grace_seconds=0), names)
    cluster.wait_until(partial(_nothing_left, cluster), "an empty cluster", seconds=PATIENCE)
    assert controller.lives, f"the controller has ended:\n{controller.log[-2000:]}"


def _nothing_left(cluster: Installation) -> bool:
    left = (LAUNCH_BATCHES, ""), (RESOURCE_CLAIMS, "default"), (PODS, "default")
    return cluster.is_empty() and not any(cluster.api.list(kind, namespace=where).items for kind, where in left)


if __name__ == "__main__":
    sys.exit(main())
