"""Pods that are moved to save money get the place that was planned for them, and stay there."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest

from autoscaler.cluster.api import BlockedError, Object
from autoscaler.cluster.resources import CAPACITY_POOLS, NODES, PODS, RESOURCE_SLICES, Resource
from autoscaler.simulation.kubelets import RUNS_FOR, Kubelets
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog
from tests.unit.simulation import test_consolidation
from tests.unit.simulation.test_consolidation import HOUR, LARGE, MINUTE, SMALL, Cluster, pod

EVERY_TAINT: Object = {"operator": "Exists"}
ONE_PER_NODE: Object = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["c", "d"]}]},
}


class AtOnce(Cluster):
    """A ReplicaSet creates the next pod when one is evicted, a StatefulSet when it has stopped. `evicted`: the pods'
    apps, in order. `stopping`: how long each pod takes to stop."""

    stopping: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.evicted: list[str] = []
        self.last_node = ""
        self._stops: dict[str, datetime] = {}
        mock.patch.object(self.api, "evict", self._then_created(self.api.evict)).start()

    def serve_pod(self, name: str, make: Callable[[str], Object]) -> None:
        self.wanted[name] = make
        self._create_missing()

    def slow_to_end(self, shutdown: timedelta) -> None:
        """Machines need so long to end; their Nodes are there until then."""
        self.simulation.cloud.behaviour = replace(self.simulation.cloud.behaviour, shutdown=shutdown)

    def live(self, span: timedelta) -> None:
        step = Kubelets._run_pod

        def unless_stopping(kubelets: Kubelets, known: Any, now: datetime) -> bool:
            stopping = now < self._stops.get(known.pod["metadata"]["name"], now)
            return not stopping and step(kubelets, known, now)

        with mock.patch.object(Kubelets, "_run_pod", unless_stopping):
            super().live(span)

    def _then_created(self, evict: Callable[..., None]) -> Callable[..., None]:
        def evicted(name: str, *, namespace: str, uid: str = "") -> None:
            self.last_node = self.api.get(PODS, name, namespace=namespace)["spec"]["nodeName"]
            self.evicted.append(name.partition("-")[0])
            assert len(self.evicted) < 100
            self._stops[name] = self.simulation.clock.now() + self.stopping
            evict(name, namespace=namespace, uid=uid)
            self._create_missing()

        return evicted

    def _create_missing(self) -> None:
        present = {found["metadata"]["labels"]["app"] for found in self.api.list(PODS).items if _counts(found)}
        for name in sorted(self.wanted.keys() - present):
            self._born += 1
            self.api.create(PODS, self.wanted[name](f"{name}-{self._born}"))


def _counts(found: Object) -> bool:
    """True if its controller creates no other pod in its place yet."""
    (owner,) = found["metadata"]["ownerReferences"]
    return owner["kind"] == "StatefulSet" or "deletionTimestamp" not in found["metadata"]


def with_spec(size: str, owner: str = "ReplicaSet", **spec: Any) -> Callable[[str], Object]:
    """Makes pods of this size with more fields in their spec."""

    def made(name: str) -> Object:
        found = pod(name, size, owner=owner)
        found["spec"] |= spec
        return found

    return made


def half_empty(cluster: AtOnce, size: str = "small", **spec: Any) -> AtOnce:
    """Two machines of four GPUs, each with one pod: the pods that needed three have ended."""
    for name in ("a", "b"):
        cluster.api.create(PODS, pod(f"first-{name}", "large", annotations={RUNS_FOR: "20m"}))
    cluster.live(5 * MINUTE)
    for name in ("c", "d"):
        cluster.serve_pod(name, with_spec(size, **spec))
    cluster.live(MINUTE)
    assert cluster.types() == [LARGE, LARGE]
    return cluster


def test_a_pod_that_tolerates_every_taint_is_not_moved() -> None:
    """kube-scheduler would bind the next pod to the same node, where that one is evicted again."""
    cluster = half_empty(AtOnce(), tolerations=[EVERY_TAINT])
    cluster.live(HOUR)
    assert cluster.evicted == []
    assert any("it tolerates taint foreslice.dev/draining" in message for message in cluster.events("NotMoved"))


def test_pods_that_come_back_are_not_evicted_again_and_again() -> None:
    """A template with spec.nodeName binds its pods to the node past kube-scheduler and all taints."""
    cluster = half_empty(AtOnce())
    create = cluster.api.create

    def on_the_node(resource: Resource, body: Object, **options: Any) -> Object:
        if resource == PODS and cluster.evicted:
            body["spec"] |= {"nodeName": cluster.last_node, "resourceClaims": [], "containers": [{"name": "main"}]}
        return create(resource, body, **options)

    with mock.patch.object(cluster.api, "create", on_the_node):
        cluster.live(30 * MINUTE)
    assert len(cluster.evicted) <= 3


def test_the_node_that_drains_counts_as_a_domain_until_it_is_gone() -> None:
    """There the other node has one pod more than the empty one, and the pod would wait for another machine. That one
    would be removed in the same way, again and again."""
    cluster = AtOnce()
    cluster.slow_to_end(4 * MINUTE)
    half_empty(cluster, topologySpreadConstraints=[ONE_PER_NODE])
    cluster.waited = timedelta(0)
    cluster.live(2 * HOUR)
    assert cluster.types() == [SMALL, SMALL]
    assert cluster.evicted == ["c", "d"]
    assert cluster.waited == timedelta(0)


@pytest.mark.parametrize("grace", [90, 2400])
def test_an_empty_node_stays_for_a_pod_that_is_not_created_again_yet(grace: int) -> None:
    """A StatefulSet waits until the old pod has stopped. Meanwhile its place has been empty for `after`."""
    cluster = AtOnce({"after": "380s"})
    cluster.stopping = timedelta(seconds=grace)
    cluster.slow_to_end(MINUTE)
    cluster.api.create(PODS, pod("first", "large", annotations={RUNS_FOR: "20m"}))
    cluster.live(5 * MINUTE)
    cluster.serve_pod("c", with_spec("small", "StatefulSet", terminationGracePeriodSeconds=grace))
    cluster.live(MINUTE)
    other = pod("x", "small", annotations={RUNS_FOR: "570s"})
    other["metadata"]["annotations"]["foreslice.dev/do-not-disrupt"] = "true"
    cluster.api.create(PODS, other)
    cluster.live(4 * MINUTE)
    cluster.waited = timedelta(0)
    cluster.live(HOUR)
    assert (cluster.types(), cluster.evicted) == ([SMALL], ["c"])
    assert len(cluster.launched) == 2
    assert cluster.waited <= MINUTE


def test_a_mark_on_a_node_stops_its_drain() -> None:
    """Somebody saw the drain, which waits for a PodDisruptionBudget."""
    cluster = half_empty(AtOnce())
    evict, marked = cluster.api.evict, list[str]()

    def blocked_once(name: str, *, namespace: str, uid: str = "") -> None:
        if marked:
            evict(name, namespace=namespace, uid=uid)
            return
        marked.append(cluster.api.get(PODS, name, namespace=namespace)["spec"]["nodeName"])
        mark = {"metadata": {"annotations": {"foreslice.dev/do-not-disrupt": "true"}}}
        cluster.api.patch(NODES, marked[0], mark)
        raise BlockedError("the budget allows no disruption", next_step="wait")

    with mock.patch.object(cluster.api, "evict", blocked_once):
        cluster.live(30 * MINUTE)
    (left,) = (node["metadata"]["name"] for node in cluster.api.list(NODES).items)
    assert left == marked[0]
    assert cluster.evicted == ["d"]
    assert cluster.running() == {"c", "d"}


def test_a_pod_that_does_not_stop_is_not_waited_for_all_day() -> None:
    """While a node drains nothing else moves: a tenant may ask for any grace period."""
    cluster = AtOnce()
    cluster.stopping = 48 * HOUR
    half_empty(cluster, terminationGracePeriodSeconds=2**31)
    cluster.live(HOUR)
    assert "Draining" in _phases(cluster)
    cluster.live(2 * HOUR)
    assert "Draining" not in _phases(cluster)


def _phases(cluster: AtOnce) -> list[str]:
    return [found["status"]["phase"] for found in cluster.nodes()]


ZONE = "topology.kubernetes.io/zone"
MEDIUM = "g6.8xlarge"  # one GPU and 32 CPUs


def priced(small: str = SMALL, zone: str = "us-east-1a") -> Catalog:
    """A machine with one GPU for 0.80, sold in the `zone`, and one with four for 2.00: it pays for three pods."""
    whole, found = load_catalog(), []
    for name, price, sold in ((small, "0.80", zone), (LARGE, "2.00", "us-east-1a")):
        known = whole.get(name)
        prices = {kind: replace(one, usd_per_hour=Decimal(price)) for kind, one in known.prices.items()}
        found.append(
            replace(
                known,
                prices=FrozenMap(prices),
                zone_prices=FrozenMap(dict.fromkeys(known.zone_prices, FrozenMap(prices))),
                zones=FrozenMap({"us-east-1": (sold,)}),
            )
        )
    return Catalog.of(found)


@dataclass
class Merging(AtOnce):
    """A cluster with the machines `sold`, in a pool of both zones."""

    sold: Callable[[], Catalog] = priced

    def __post_init__(self) -> None:
        with mock.patch.object(test_consolidation, "two_types", self.sold):
            super().__post_init__()
        zones = [{"key": ZONE, "operator": "In", "values": ["us-east-1a", "us-east-1b"]}]
        self.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"requirements": zones, "scope": {"pods": "All"}}})

    def one_each(self, names: str, make: Callable[[str], Object]) -> None:
        """A machine for each pod: they come one after the other."""
        for name in names:
            self.serve_pod(name, make)
            self.live(4 * MINUTE)


def asking(cpu: str, *, gpu: bool = True, **spec: Any) -> Callable[[str], Object]:
    def made(name: str) -> Object:
        found = pod(name, "small")
        (container,) = found["spec"]["containers"]
        container["resources"]["requests"] = {"cpu": cpu}
        if not gpu:
            container["resources"].pop("claims")
            found["spec"].pop("resourceClaims")
        found["spec"] |= spec
        return found

    return made


def test_three_nodes_become_one() -> None:
    cluster = Merging({"budgets": [{"nodes": "1"}]})
    cluster.one_each("abc", asking("500m"))
    assert cluster.types() == [SMALL, SMALL, SMALL]
    cluster.live(3 * HOUR)
    assert (cluster.types(), sorted(cluster.evicted)) == ([LARGE], ["a", "b", "c"])
    told = cluster.events("Draining")
    assert len(told) == 3
    assert all("costs less for all the pods that it was launched for" in message for message in told)


@pytest.mark.parametrize("published", [1, 2, 3, 4])
def test_a_machine_that_cannot_take_all_of_them_takes_none(published: int) -> None:
    """Its price was compared with that of all the nodes."""
    cluster = Merging()
    cluster.one_each("abc", asking("500m"))
    create = cluster.api.create

    def fewer(resource: Resource, body: Object, **options: Any) -> Object:
        if resource == RESOURCE_SLICES and len(body["spec"].get("devices", ())) > 1:
            body = copy.deepcopy(body)
            body["spec"]["devices"] = body["spec"]["devices"][:published]
        return create(resource, body, **options)

    with mock.patch.object(cluster.api, "create", fewer):
        cluster.live(3 * HOUR)
    assert sorted(cluster.evicted) == ([] if published < 3 else ["a", "b", "c"])


def test_no_pod_is_evicted_twice() -> None:
    """The next nodes that drain have room, and kube-scheduler prefers it while the new machine fills."""
    cluster = Merging({"budgets": [{"nodes": "1"}]}, sold=lambda: priced(MEDIUM))
    cluster.one_each("abcd", asking("6"))
    cluster.one_each("wxyz", asking("2", gpu=False))
    assert cluster.types() == [MEDIUM] * 4
    cluster.live(3 * HOUR)
    assert (cluster.types(), sorted(cluster.evicted)) == ([LARGE], [*"abcdwxyz"])


@pytest.mark.parametrize("stopping", [0, 5])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "another stays in the new zone"])
def test_a_pod_stays_where_its_affinity_to_itself_keeps_it(stopping: int, beside: bool) -> None:
    """kube-scheduler counts the pod that stops: the one that replaces it has to stay in its zone."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster = Merging(sold=lambda: priced(zone="us-east-1b"))
    cluster.api.create(PODS, pod("first", "large", annotations={RUNS_FOR: "10m"}))
    cluster.live(5 * MINUTE)
    cluster.serve_pod("c", asking("500m", affinity=affinity))
    cluster.live(MINUTE)
    if beside:
        cluster.serve_pod("anchor", asking("500m", nodeSelector={ZONE: "us-east-1b"}))
    cluster.stopping = timedelta(minutes=stopping)
    cluster.live(4 * HOUR)
    assert (cluster.types(), cluster.evicted) == (([SMALL, SMALL], ["c"]) if beside else ([LARGE], []))
