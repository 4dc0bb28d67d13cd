"""`make bench-cluster`: the installed controller on a real control plane, against the targets of its sizing.

python -m benchmarks.controller [--nodes 1000] [--pods 200] [--seconds 30]. The control plane, Helm's installation, the
service account and KWOK are those of the end-to-end tests; the settings are the defaults that a user gets.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PODS, RESOURCE_SLICES
from autoscaler.kube.writing.objects import write_node
from autoscaler.kube.writing.slices import slice_manifest
from autoscaler.settings.settings import BatchSettings
from tests.e2e.harness.gpu_pods import pool
from tests.e2e.harness.installation import ACCOUNT, Controller, Installation
from tests.e2e.harness.machines import machine

ROUNDS: Final = 5
FULL_SIZE: Final = "p5.48xlarge"  # eight GPUs
WINDOW: Final = BatchSettings().idle.total_seconds()
_ANY_PORT: Final = "127.0.0.1:0"
# The defaults, but for ports that may be taken.
CLOCK: Final = SystemClock()
SETTINGS: Final = {"serve": {f"{name}Address": _ANY_PORT for name in ("metrics", "health", "page")}}
OBJECTS: Final = (
    pool(mode="Act", limits={"nodes": 400})
    + """
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: any, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: l4, namespace: default}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
          selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA L4'"}}]
"""
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    question: str
    target: str
    measured: str

    def __str__(self) -> str:
        return f"| {self.question} | {self.target} | {self.measured} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of eight devices that are there already")
    parser.add_argument("--pods", type=int, default=200, help="pods that come at once to an empty cluster")
    parser.add_argument("--seconds", type=float, default=30, help="how long nothing changes")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="foreslice-bench-"))
    print("| question | target | measured |\n|---|---|---|")
    with Installation(folder, values={"settings": SETTINGS}) as cluster:
        cluster.apply(OBJECTS)
        print(from_zero(cluster, options.pods), flush=True)
        fill(cluster, options.nodes)
        with cluster.controller("steady.log") as controller:
            for row in (*at_rest(cluster, controller, options.nodes, options.seconds), reaction(cluster)):
                print(row, flush=True)
    print(f"\nLoad average of the last 15 minutes: {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores")


def from_zero(cluster: Installation, count: int) -> Row:
    """Wall time from the first of the pods to the last that runs, and leave an empty cluster."""
    names = [f"work-{number}" for number in range(count)]
    with cluster.controller("from-zero.log") as controller:
        quiet(cluster, controller)
        begin = time.monotonic()
        at_once(lambda name: cluster.api.create(PODS, pod(name, "any")), names)
        cluster.wait_until(lambda: cluster.running(*names), f"{count} running pods", seconds=600)
        seconds = time.monotonic() - begin
        nodes = len(cluster.api.list(NODES).items)
        at_once(lambda name: cluster.api.delete(PODS, name, namespace="default", grace_seconds=0), names)
        cluster.wait_until(cluster.is_empty, "an empty cluster", seconds=600)
    return Row(f"{count} pods with claims, from no node to Running", "60 s", f"{seconds:.0f} s, {nodes} nodes")


def fill(cluster: Installation, count: int) -> None:
    """Nodes of others, with what their drivers publish."""

    def add(name: str) -> None:
        made = machine(FULL_SIZE, name)
        cluster.api.create(NODES, write_node(made.node))
        for piece in made.slices:
            cluster.api.create(RESOURCE_SLICES, slice_manifest(piece))

    at_once(add, [f"other-{number}" for number in range(count)])


def at_rest(cluster: Installation, controller: Controller, nodes: int, seconds: float) -> tuple[Row, ...]:
    """Memory, CPU and writes while nothing changes."""
    quiet(cluster, controller)
    before = writes(cluster)
    cpu = controller.cpu_seconds
    begin = time.monotonic()
    CLOCK.wait(seconds)
    share = (controller.cpu_seconds - cpu) / (time.monotonic() - begin)
    more = writes(cluster) - before
    told = ", ".join(f"{count} {what}" for what, count in sorted(more.items())) or "none"
    size = f"{nodes:,} nodes of 8 devices"
    return (
        Row(f"memory, {size}, nothing changes", "400 MB", f"{controller.resident / 1e6:.0f} MB"),
        Row("share of a core meanwhile", "10 %", f"{share:.1%}"),
        Row("writes meanwhile, but for the Lease", "none", told),
    )


def reaction(cluster: Installation) -> Row:
    """From a pod that needs another node to its LaunchBatch, above the batch window; `ROUNDS` times."""
    seconds = []
    for number in range(ROUNDS):
        known = batches(cluster)
        begin = time.monotonic()
        cluster.api.create(PODS, pod(f"lone-{number}", "l4"))
        cluster.wait_until(partial(has_more_batches, cluster, known), "a LaunchBatch", seconds=120)
        seconds.append(time.monotonic() - begin - WINDOW)
        cluster.wait_until(partial(cluster.running, f"lone-{number}"), "a running pod", seconds=120)
        CLOCK.wait(3 * WINDOW)  # until the controller rests again
    told = f"median {statistics.median(seconds):.1f} s, slowest {max(seconds):.1f} s"
    return Row("a pod pending until its intent is written, above the batch window", "1.5 s", told)


def quiet(cluster: Installation, controller: Controller) -> None:
    """Until the controller has started and looked at everything: it hardly uses CPU for a while."""
    cluster.wait_until(lambda: "listening" in controller.log, "a controller", seconds=300)

    def rests() -> bool:
        assert controller.lives, f"the controller has ended:\n{controller.log[-2000:]}"
        before = controller.cpu_seconds
        CLOCK.wait(3 * WINDOW)
        return controller.cpu_seconds - before < 0.1 * WINDOW

    cluster.wait_until(rests, "a controller at rest", seconds=300)


def writes(cluster: Installation) -> Counter[str]:
    """Every write of the controller so far, but for its Lease."""
    reads = ("get", "list", "watch")
    asked = (right for right, _ in cluster.control_plane.asked(ACCOUNT) if right.verb not in reads)
    return Counter(f"{right.verb} {right.resource}" for right in asked if right.resource != "leases")


def batches(cluster: Installation) -> set[str]:
    """The LaunchBatches that are there."""
    return {found["metadata"]["name"] for found in cluster.api.list(LAUNCH_BATCHES).items}


def has_more_batches(cluster: Installation, known: set[str]) -> bool:
    """Whether there is one that was not known. The journal deletes those that are done."""
    return bool(batches(cluster) - known)


def at_once(do: Callable[[str], object], names: list[str]) -> None:
    """Do something with each name, a few at a time."""
    with ThreadPoolExecutor(max_workers=4 * (os.cpu_count() or 1)) as pool:
        list(pool.map(do, names))


def pod(name: str, template: str) -> Object:
    """A pod with a claim."""
    container = {"name": "main", "image": "pause", "resources": {"claims": [{"name": "gpu"}], "requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            "containers": [container],
        },
    }


if __name__ == "__main__":
    main()
