"""Running pods move to where they cost less: whole lives under the production loop, with controllers that create evicted
pods again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from autoscaler.cluster.api import Object, list_all
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    CLAIM_TEMPLATES,
    DISRUPTION_BUDGETS,
    EVENTS,
    LAUNCH_BATCHES,
    NODES,
    PODS,
    PROVISIONED_NODES,
)
from autoscaler.loop.loop import Tick
from autoscaler.simulation.kubelets import RUNS_FOR
from autoscaler.simulation.simulation import TEMPLATE_KIND, Simulation
from instance_catalog.files.loader import load_catalog
from instance_catalog.types.catalog import Catalog
from tests.crash.life import START

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
# The 4-GPU machine is what a pod of three GPUs needs; a pod of one GPU costs a sixth of it elsewhere.
SMALL, LARGE = "g6.xlarge", "g6.12xlarge"
SIZES = {"large": 3, "small": 1}


@cache
def two_types() -> Catalog:
    whole = load_catalog()
    return Catalog.of([whole.get(SMALL), whole.get(LARGE)])


def pool(**disruption: Any) -> Object:
    return {
        "metadata": {"name": "gpu"},
        "spec": {
            "mode": "Act",
            "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}],
            "capacityTypes": ["on-demand"],
            "nodeTemplateRef": {"kind": TEMPLATE_KIND, "name": "gpu"},
            "drivers": {"profiles": ["nvidia"]},
            "limits": {"nodes": 10},
            "disruption": {"consolidate": "Cheaper", **disruption},
        },
    }


def pod(name: str, size: str, *, owner: str = "ReplicaSet", **annotations: str) -> Object:
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": name, "uid": f"u-{name}", "controller": True}]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": name.partition("-")[0]},
            "annotations": {key.replace("_", "-"): value for key, value in annotations.items()},
            **({"ownerReferences": owners} if owner else {}),
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": size}],
        },
    }


@dataclass
class Cluster:
    """Pods in `wanted` are created again whenever they are gone, under another name, as a ReplicaSet does."""

    disruption: dict[str, Any] = field(default_factory=dict)
    wanted: dict[str, Callable[[str], Object]] = field(default_factory=dict)
    waited: timedelta = timedelta(0)
    launched: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.simulation = Simulation(catalog=two_types(), start=START, tidy=True)
        self.api = self.simulation.api
        self.api.create(CAPACITY_POOLS, pool(**self.disruption))
        for size, count in SIZES.items():
            exactly = {"deviceClassName": "gpu.nvidia.com", "count": count}
            requests = [{"name": "gpu", "exactly": exactly}]
            self.api.create(CLAIM_TEMPLATES, {"metadata": {"name": size}, "spec": {"spec": {"devices": {"requests": requests}}}})
        self._born = 0

    def serve(self, name: str, size: str, owner: str = "ReplicaSet", **annotations: str) -> None:
        self.wanted[name] = lambda full: pod(full, size, owner=owner, **annotations)
        self._create_missing()

    def live(self, span: timedelta) -> None:
        """Half a minute after half a minute, so that controllers answer soon."""
        until = self.simulation.clock.now() + span
        while self.simulation.clock.now() < until:
            self.simulation.run(self.simulation.clock.now() + MINUTE / 2, self._watch)
            self._create_missing()

    def types(self) -> list[str]:
        nodes = self.api.list(NODES).items
        return sorted(node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in nodes)

    def running(self) -> set[str]:
        pods = self.api.list(PODS).items
        return {p["metadata"]["labels"]["app"] for p in pods if p.get("status", {}).get("phase") == "Running"}

    def reasons(self) -> list[str]:
        """Of the events on ProvisionedNodes."""
        events, _ = list_all(self.api, EVENTS)
        return [f"{e['reason']}: {e['message']}" for e in events if e["involvedObject"]["kind"] == "ProvisionedNode"]

    def _create_missing(self) -> None:
        present = {found["metadata"]["labels"]["app"] for found in self.api.list(PODS).items}
        for name in self.wanted.keys() - present:
            self._born += 1
            self.api.create(PODS, self.wanted[name](f"{name}-{self._born}"))

    def _watch(self, tick: Tick) -> None:
        here = self.wanted.keys() - self.running()
        self.waited += MINUTE / 2 if here else timedelta(0)
        self.launched += [tuple(o.instance_type for o in launch.offerings) for launch in tick.plan.launches]


def half_empty(**disruption: Any) -> Cluster:
    """Two machines of four GPUs, each with one pod that needs one GPU: the pods that needed three have ended."""
    cluster = Cluster(disruption)
    for name in ("a", "b"):
        cluster.api.create(PODS, pod(f"first-{name}", "large", **{RUNS_FOR: "20m"}))
    cluster.live(5 * MINUTE)
    cluster.serve("c", "small")
    cluster.serve("d", "small")
    cluster.live(MINUTE)
    assert cluster.types() == [LARGE, LARGE]
    assert cluster.running() >= {"c", "d"}
    return cluster


def test_pods_move_together_and_then_to_smaller_machines() -> None:
    cluster = half_empty()
    cluster.live(3 * HOUR)
    assert cluster.types() == [SMALL, SMALL]
    assert cluster.running() == {"c", "d"}
    reasons = cluster.reasons()
    assert any("its pods fit on other nodes, which saves 4.6" in reason for reason in reasons)
    batches, _ = list_all(cluster.api, LAUNCH_BATCHES)
    assert any(batch["spec"].get("replaces") for batch in batches)


@pytest.mark.parametrize("how", ["Never", "WhenEmpty"])
def test_running_pods_stay_unless_the_pool_asks(how: str) -> None:
    cluster = half_empty(consolidate=how)
    cluster.live(3 * HOUR)
    assert cluster.types() == [LARGE, LARGE]
    assert len(cluster.launched) == 2


def test_a_saving_below_the_threshold_moves_nothing() -> None:
    cluster = half_empty(saving={"percent": 90, "restart": "1h", "payback": "10m"})
    cluster.live(2 * HOUR)
    assert cluster.types() == [LARGE, LARGE]
