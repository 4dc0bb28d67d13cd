"""CPU time of the loop's reconciles, part by part, in a cluster of many nodes that is held in memory.

python -m benchmarks.reconciles [--nodes 1000] [--pods 100]. The loop and its provider are those of the controller; API
server, network and waiting are not measured, so the figures hardly depend on what else the machine does. What they
leave out is benchmarks/controller.py's to measure.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import yaml

from autoscaler.clock import SystemClock
from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import BY_KIND, KWOK_NODE_TEMPLATES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from autoscaler.composition.kwok import KwokMachines
from autoscaler.execution.launch import Providers
from autoscaler.kube.writing.objects import write_node
from autoscaler.kube.writing.slices import slice_manifest
from autoscaler.loop.loop import Loop
from autoscaler.simulation.api_server import ApiServer
from benchmarks.controller import FULL_SIZE, OBJECTS, pod
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import REFERENCE
from providers.kwok.provider import KwokProvider
from tests.e2e.harness.machines import machine

PARTS = ("observe", "plan", "record", "carry_out", "publish")
_WAITS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


class Objects:
    """An API server in memory with nodes of eight GPUs and their slices."""

    def __init__(self, nodes: int) -> None:
        self.api = ApiServer(SystemClock())
        self._templates = {}
        for document in yaml.safe_load_all(OBJECTS):
            if document["kind"] == "ResourceClaimTemplate":
                self._templates[document["metadata"]["name"]] = document["spec"]["spec"]
            else:
                self.api.create(BY_KIND[document["kind"]], document)
        for facts in builtin_device_classes(REFERENCE):
            selectors = [{"cel": {"expression": text}} for text in facts.selectors]
            self.api.create(
                BY_KIND["DeviceClass"], {"metadata": {"name": facts.name}, "spec": {"selectors": selectors}}
            )
        for made in (machine(FULL_SIZE, f"other-{number}") for number in range(nodes)):
            self.api.create(NODES, write_node(made.node))
            for piece in made.slices:
                self.api.create(RESOURCE_SLICES, slice_manifest(piece))

    def ask(self, name: str, template: str = "l4") -> None:
        """A pod with a claim, as the controllers leave it: with its claim, unschedulable. No node has an L4."""
        made = self.api.create(PODS, pod(name, template))
        uid = made["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
        metadata = {"name": f"{name}-gpu", "namespace": "default", "ownerReferences": [owner]}
        self.api.create(RESOURCE_CLAIMS, {"metadata": metadata, "spec": self._templates[template]})
        claims = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
        status = {"phase": "Pending", "resourceClaimStatuses": claims, "conditions": [_WAITS]}
        self.api.patch(PODS, name, {"status": status}, namespace="default", subresource="status")


class Reconciles:
    """The loop on an API server. `seconds` is the CPU time of the parts of the last reconcile."""

    def __init__(self, api: KubernetesApi) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        catalog, objects = load_catalog(), ProviderObjects(api)
        kwok = KwokProvider(objects, KwokMachines(objects, catalog, REFERENCE))
        self._loop = Loop(
            api=api,
            providers=Providers({KWOK_NODE_TEMPLATES.kind: kwok}, cluster="cluster"),
            catalog=catalog,
            profile=REFERENCE,
            clock=SystemClock(),
            stage=self._stage,
        )

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        begin = time.process_time()
        yield
        self.seconds[name] += time.process_time() - begin

    def act(self, act: Callable[[Loop], object] = Loop.tick) -> None:
        """One reconcile."""
        self.seconds.clear()
        act(self._loop)


class Cluster(Objects):
    """Objects, and the loop on them."""

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self._reconciles = Reconciles(self.api)

    def round(self, what: str, act: Callable[[Loop], object] = Loop.tick) -> None:
        """One reconcile, and a line about it."""
        writes, seconds = self.api.writes, self._reconciles.seconds
        self._reconciles.act(act)
        parts = " | ".join(f"{seconds[part]:.2f}" for part in PARTS)
        print(f"| {what} | {sum(seconds.values()):.2f} | {parts} | {self.api.writes - writes} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of eight GPUs")
    parser.add_argument("--pods", type=int, default=100, help="pods that come at once")
    options = parser.parse_args()
    print(f"| reconcile, CPU seconds | total | {' | '.join(PARTS)} | writes |")
    print("|---" * (len(PARTS) + 3) + "|")
    cluster = Cluster(options.nodes)
    cluster.round("the first one")
    cluster.round("rehearsal", Loop.warm_up)
    cluster.round("nothing changed")
    cluster.ask("first")
    cluster.round("the first pod")
    cluster.round("its node is coming")
    cluster.ask("second")
    cluster.round("another pod")
    for number in range(options.pods):
        cluster.ask(f"work-{number}")
    cluster.round(f"{options.pods} pods")
    cluster.round("their nodes are coming")
    cluster.round("nothing changed")


if __name__ == "__main__":
    main()
