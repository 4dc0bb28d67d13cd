"""Running pods move to where they cost less: whole lives under the production loop, with controllers that create
evicted pods again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any
from unittest import mock

import pytest

from autoscaler.cluster.api import BlockedError, Object, list_all
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    CLAIM_TEMPLATES,
    DISRUPTION_BUDGETS,
    EVENTS,
    LAUNCH_BATCHES,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
    Resource,
)
from autoscaler.loop.loop import Tick
from autoscaler.simulation.kubelets import RUNS_FOR
from autoscaler.simulation.simulation import TEMPLATE_KIND, Simulation
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import EMPTY
from instance_catalog.kubernetes.labels import DRAINING_TAINT
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from tests.crash.life import START

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
# The 4-GPU machine is what a pod of three GPUs needs; a pod of one GPU costs a sixth of it elsewhere.
SMALL, LARGE = "g6.xlarge", "g6.12xlarge"


def _gpus(count: int, **more: Any) -> Object:
    return {"deviceClassName": "gpu.nvidia.com", "count": count, **more}


SIZES: dict[str, Object] = {
    "large": {"exactly": _gpus(3)},
    "small": {"exactly": _gpus(1)},
    "two": {"exactly": _gpus(2)},
    "better": {"firstAvailable": [{"name": "two", **_gpus(2)}, {"name": "one", **_gpus(1)}]},
}
SMALL_PRICE = Decimal("0.8048")


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


def pod(name: str, size: str, *, owner: str = "ReplicaSet", annotations: Mapping[str, str] = EMPTY) -> Object:
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": name, "uid": f"u-{name}", "controller": True}]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": name.partition("-")[0]},
            "annotations": dict(annotations),
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
    looked: datetime = START
    launched: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.simulation = Simulation(catalog=two_types(), start=START, tidy=True)
        self.api = self.simulation.api
        self.api.create(CAPACITY_POOLS, pool(**self.disruption))
        for size, request in SIZES.items():
            spec = {"devices": {"requests": [{"name": "gpu", **request}]}}
            self.api.create(CLAIM_TEMPLATES, {"metadata": {"name": size}, "spec": {"spec": spec}})
        self._born = 0

    def serve(self, name: str, size: str, owner: str = "ReplicaSet", **annotations: str) -> None:
        self.wanted[name] = lambda full: pod(full, size, owner=owner, annotations=annotations)
        self._create_missing()

    def live(self, span: timedelta) -> None:
        """From event to event, and half a minute after one that ended a pod its controller creates it again."""
        clock = self.simulation.clock
        until = clock.now() + span
        while clock.now() < until:
            due = clock.now() + MINUTE / 2
            if self.wanted.keys() <= self.running():
                due = max(due, self.simulation.next_moment() or until)
            self.simulation.run(min(until, due), self._watch)
            self._create_missing()

    def types(self) -> list[str]:
        nodes = self.api.list(NODES).items
        return sorted(node["metadata"]["labels"]["node.kubernetes.io/instance-type"] for node in nodes)

    def nodes(self) -> Sequence[Object]:
        """The ProvisionedNodes."""
        return self.api.list(PROVISIONED_NODES).items

    def running(self) -> set[str]:
        pods = self.api.list(PODS).items
        return {p["metadata"]["labels"]["app"] for p in pods if p.get("status", {}).get("phase") == "Running"}

    def events(self, reason: str) -> list[str]:
        """Messages of the events with this reason on ProvisionedNodes."""
        events, _ = list_all(self.api, EVENTS)
        about = [e for e in events if e["involvedObject"]["kind"] == "ProvisionedNode"]
        return [event["message"] for event in about if event["reason"] == reason]

    def cost(self) -> Decimal:
        """USD an hour, of all machines."""
        return sum((two_types().get(name).price.usd_per_hour for name in self.types()), Decimal(0))

    def _create_missing(self) -> None:
        present = {found["metadata"]["labels"]["app"] for found in self.api.list(PODS).items}
        for name in self.wanted.keys() - present:
            self._born += 1
            self.api.create(PODS, self.wanted[name](f"{name}-{self._born}"))

    def _watch(self, tick: Tick) -> None:
        if self.wanted.keys() - self.running():
            self.waited += tick.now - self.looked
        self.looked = tick.now
        self.launched += [tuple(o.instance_type for o in launch.offerings) for launch in tick.plan.launches]


def too_large(
    owner: str = "ReplicaSet", *, size: str = "small", disruption: dict[str, Any] | None = None, **annotations: str
) -> Cluster:
    """A machine of four GPUs, with one pod that needs one: what it was bought for has ended."""
    cluster = Cluster(disruption or {})
    cluster.api.create(PODS, pod("first", "large", annotations={RUNS_FOR: "10m"}))
    cluster.live(5 * MINUTE)
    cluster.serve("c", size, owner, **annotations)
    cluster.live(MINUTE)
    assert cluster.types() == [LARGE]
    assert "c" in cluster.running()
    return cluster


def half_empty(**disruption: Any) -> Cluster:
    """Two machines of four GPUs, each with one pod that needs one GPU: the pods that needed three have ended."""
    cluster = Cluster(disruption)
    for name in ("a", "b"):
        cluster.api.create(PODS, pod(f"first-{name}", "large", annotations={RUNS_FOR: "20m"}))
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
    assert any("its pods fit on other nodes, which saves 4.60" in message for message in cluster.events("Draining"))
    assert any("less on g6.xlarge" in message for message in cluster.events("CheaperElsewhere"))
    batches, _ = list_all(cluster.api, LAUNCH_BATCHES)
    assert any(batch["spec"].get("replaces") for batch in batches)
    # Nobody waits for a machine to boot: a controller looks every half minute, and its pod starts with the next look.
    assert cluster.waited <= 2 * MINUTE < timedelta(seconds=150)


@pytest.mark.parametrize("how", ["Never", "WhenEmpty"])
def test_running_pods_stay_unless_the_pool_asks(how: str) -> None:
    cluster = half_empty(consolidate=how)
    cluster.live(3 * HOUR)
    assert cluster.types() == [LARGE, LARGE]
    assert len(cluster.launched) == 2


def test_a_saving_below_the_threshold_moves_nothing() -> None:
    cluster = half_empty(saving={"percent": 15, "restart": "2h", "payback": "10m"})
    cluster.live(2 * HOUR)
    assert cluster.types() == [LARGE, LARGE]
    assert cluster.events("CheaperElsewhere") == []


def test_a_pool_that_observes_says_what_it_would_do() -> None:
    cluster = half_empty()
    cluster.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Observe"}})
    cluster.live(2 * HOUR)
    assert cluster.types() == [LARGE, LARGE]
    assert len(cluster.nodes()) == 2
    assert any("its pods fit on other nodes" in message for message in cluster.events("CheaperElsewhere"))


class TestWhoStays:
    """One pod on a machine that is too large for it."""

    @pytest.mark.parametrize(
        ("owner", "annotations", "moves"),
        [
            ("ReplicaSet", {}, True),
            ("StatefulSet", {}, True),
            ("Job", {}, False),
            ("Job", {"foreslice.dev/checkpoint-interval": "5m"}, True),
            ("Job", {"foreslice.dev/checkpoint-interval": "40h"}, False),
            ("Job", {"foreslice.dev/checkpoint-interval": "soon"}, False),
            ("", {}, False),
            ("", {"foreslice.dev/checkpoint-interval": "5m"}, False),
            ("ReplicaSet", {"foreslice.dev/do-not-disrupt": "true"}, False),
            ("ReplicaSet", {"karpenter.sh/do-not-disrupt": "true"}, False),
            ("ReplicaSet", {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}, False),
        ],
    )
    def test_by_owner_and_annotation(self, owner: str, annotations: dict[str, str], moves: bool) -> None:
        cluster = too_large(owner, **annotations)
        cluster.live(2 * HOUR)
        assert cluster.types() == ([SMALL] if moves else [LARGE])
        assert bool(cluster.events("NotMoved")) is not moves

    @pytest.mark.parametrize(("allowed", "types"), [(0, [LARGE]), (1, [SMALL])])
    def test_a_budget_decides(self, allowed: int, types: list[str]) -> None:
        cluster = too_large()
        spec = {"selector": {"matchLabels": {"app": "c"}}, "maxUnavailable": 1}
        budget = cluster.api.create(
            DISRUPTION_BUDGETS, {"metadata": {"name": "c", "namespace": "default"}, "spec": spec}
        )
        status = {"disruptionsAllowed": allowed, "observedGeneration": budget["metadata"]["generation"]}
        cluster.api.patch(DISRUPTION_BUDGETS, "c", {"status": status}, namespace="default", subresource="status")
        cluster.live(2 * HOUR)
        assert cluster.types() == types
        assert len(cluster.launched) == (2 if allowed else 1)

    def test_a_mark_on_the_node_decides(self) -> None:
        cluster = too_large()
        (node,) = cluster.api.list(NODES).items
        mark = {"metadata": {"annotations": {"foreslice.dev/do-not-disrupt": "true"}}}
        cluster.api.patch(NODES, node["metadata"]["name"], mark)
        cluster.live(2 * HOUR)
        assert cluster.types() == [LARGE]

    def test_a_worse_alternative_is_no_other_place(self) -> None:
        """One GPU is free elsewhere. The pod would take it if it were pending, and has two now."""
        cluster = Cluster()
        cluster.api.create(PODS, pod("other", "large", owner=""))
        cluster.live(5 * MINUTE)
        cluster.api.create(PODS, pod("first", "two", annotations={RUNS_FOR: "10m"}))
        cluster.live(5 * MINUTE)
        cluster.serve("c", "better")
        cluster.live(2 * HOUR)
        assert cluster.types() == [LARGE, LARGE]
        (claim,) = (c for c in cluster.api.list(RESOURCE_CLAIMS).items if c["metadata"]["name"].startswith("c-"))
        assert len(claim["status"]["allocation"]["devices"]["results"]) == 2

    def test_without_a_choice_the_same_pod_moves(self) -> None:
        cluster = Cluster()
        cluster.api.create(PODS, pod("other", "large", owner=""))
        cluster.live(5 * MINUTE)
        cluster.api.create(PODS, pod("first", "two", annotations={RUNS_FOR: "10m"}))
        cluster.live(5 * MINUTE)
        cluster.serve("c", "small")
        cluster.live(2 * HOUR)
        assert cluster.types() == [LARGE]


class TestWhatGoesWrong:
    def test_a_replacement_that_cannot_be_had_costs_nobody_a_place(self) -> None:
        cluster = too_large()
        cluster.simulation.cloud.limit(OfferingKey(SMALL, "us-east-1a", CapacityType.ON_DEMAND), 0)
        cluster.waited = timedelta(0)
        cluster.live(3 * HOUR)
        assert cluster.types() == [LARGE]
        assert cluster.waited == timedelta(0)
        assert len(cluster.launched) <= 1 + 4  # once an hour at most

    def test_limits_hold_while_both_machines_are_there(self) -> None:
        cluster = too_large()
        cluster.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"limits": {"nodes": 1}}})
        cluster.live(2 * HOUR)
        assert cluster.types() == [LARGE]

    def test_a_replacement_outlives_an_impatient_pool(self) -> None:
        cluster = too_large(disruption={"after": "0s"})
        cluster.live(2 * HOUR)
        assert cluster.types() == [SMALL]
        assert len(cluster.launched) == 2

    def test_a_restart_at_any_moment_buys_nothing_twice(self) -> None:
        cluster = too_large()
        most = 0
        for _ in range(240):
            cluster.simulation.new_loop()
            cluster.live(MINUTE / 2)
            most = max(most, len(cluster.nodes()))
        assert cluster.types() == [SMALL]
        assert most == 2

    def test_pods_that_come_meanwhile_are_served(self) -> None:
        cluster = too_large()
        for number in range(40):
            cluster.live(MINUTE)
            cluster.serve(f"more{number % 4}", "small")
        cluster.live(3 * HOUR)
        assert cluster.running() == cluster.wanted.keys()
        assert cluster.cost() <= 5 * SMALL_PRICE

    def test_a_budget_of_the_pool_bounds_it(self) -> None:
        cluster = too_large(disruption={"budgets": [{"nodes": "0"}]})
        cluster.live(2 * HOUR)
        assert cluster.types() == [LARGE]
        assert len(cluster.launched) == 1


class TestWhatComesBetween:
    """Between the plan and the taint, and until the last pod has gone."""

    def test_a_pod_that_was_bound_meanwhile_is_looked_at(self) -> None:
        cluster = half_empty()
        patch, tainted = cluster.api.patch, list[str]()

        def bound_first(resource: Resource, name: str, body: Object, **options: Any) -> Object:
            if resource == NODES and not tainted and body.get("spec", {}).get("taints"):
                tainted.append(name)
                late = pod("late", "small", owner="Job")
                late["spec"] = {"nodeName": name, "containers": [{"name": "main"}]}
                cluster.api.create(PODS, late)
            return patch(resource, name, body, **options)

        with mock.patch.object(cluster.api, "patch", bound_first):
            cluster.live(HOUR)
        assert tainted
        assert "late" in cluster.running()
        assert not any(taint_of(node) for node in cluster.api.list(NODES).items)
        lives = {found["metadata"]["name"]: found["status"]["history"] for found in cluster.nodes()}
        assert "Draining" not in {entry["phase"] for entry in lives[tainted[0]]}

    def test_a_drain_that_cannot_go_on_is_taken_back(self) -> None:
        """Otherwise the node stays closed for as long as the budget does, and nothing else is moved."""
        cluster = half_empty()

        def blocked(name: str, *, namespace: str, uid: str = "") -> None:
            raise BlockedError("the budget allows no disruption", next_step="wait")

        with mock.patch.object(cluster.api, "evict", blocked):
            cluster.live(HOUR)
        lives = [found["status"]["history"] for found in cluster.nodes()]
        assert "PodFound" in {entry["reason"] for life in lives for entry in life}
        assert cluster.types() == [LARGE, LARGE]
        cluster.live(3 * HOUR)
        assert cluster.types() == [SMALL, SMALL]

    def test_a_replacement_that_nobody_uses_ends(self) -> None:
        """In a cluster at rest nothing but the clock wakes the controller."""
        cluster = too_large()
        while len(cluster.nodes()) < 2:
            cluster.live(MINUTE)
        (node,) = cluster.api.list(NODES).items
        mark = {"metadata": {"annotations": {"foreslice.dev/do-not-disrupt": "true"}}}
        cluster.api.patch(NODES, node["metadata"]["name"], mark)
        cluster.live(HOUR)
        assert cluster.types() == [LARGE]


def taint_of(node: Object) -> list[Object]:
    return [taint for taint in node["spec"].get("taints", []) if taint["key"] == DRAINING_TAINT]
