"""Foreslice as it is installed: what it does for pods, what it survives, and that it needs exactly the rights it has.

One cluster for all of it, so that the audit at the end sees everything that was asked.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress

import pytest
import yaml

from autoscaler.cluster.api import NotFoundError
from autoscaler.cluster.resources import (
    BY_KIND,
    CAPACITY_BLOCKS,
    CAPACITY_POOLS,
    EVENTS,
    INSTANCE_TYPE_OVERLAYS,
    LAUNCH_BATCHES,
    LEASES,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from tests.e2e.harness.audit import SELDOM, Right, answered, granted
from tests.e2e.harness.gpu_pods import POOL, TEMPLATE, pod
from tests.e2e.harness.installation import ACCOUNT, CHARTS, NAME, NAMESPACE, Installation

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
"""
BLOCK = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityBlock
metadata: {name: november}
spec:
  pool: gpu
  reservation: cr-1
  instanceType: p5.48xlarge
  zone: us-east-1a
  count: 1
  startsAt: "2126-11-01T11:30:00Z"
  endsAt: "2126-11-08T11:30:00Z"
"""
OVERLAY = """
apiVersion: foreslice.dev/v1alpha1
kind: InstanceTypeOverlay
metadata: {name: misspelt}
spec: {cloud: aws, instanceType: p5.48xlarg, entry: {vcpu: 190}, source: a test}
"""
FAILING = "device.attributes['gpu.nvidia.com'].noSuchAttribute == 'x'"
# Asked for only when something goes wrong at the same moment: another writer, a restart between two calls.
RARE = {
    Right("foreslice.dev", "spendings", "get"),
    Right("foreslice.dev", "provisionednodes", "get"),
    Right("foreslice.dev", "launchbatches", "get"),
    # Listed, and watched only where a cluster serves them.
    Right("scheduling.x-k8s.io", "podgroups", "watch"),
    Right("autoscaling.x-k8s.io", "provisioningrequests", "watch"),
    Right("autoscaling.x-k8s.io", "capacitybuffers", "watch"),
    Right("cloud.google.com", "computeclasses", "watch"),
    Right("autoscaling.x-k8s.io", "provisioningrequests/status", "patch"),
    Right("autoscaling.x-k8s.io", "capacitybuffers/status", "patch"),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with Installation(tmp_path_factory.mktemp("installation")) as installed:
        installed.apply(POOL + "---" + TEMPLATE)
        yield installed


@pytest.fixture(autouse=True)
def tidy(cluster: Installation) -> Iterator[None]:
    """Each test begins with an empty cluster and a pool that acts, and leaves one."""
    cluster.mode("gpu", "Act")
    yield
    for name in cluster.pods():
        with suppress(NotFoundError):
            cluster.api.delete(PODS, name, namespace="default", grace_seconds=0)
    with cluster.controller("tidy.log"):
        cluster.wait_until(cluster.is_empty, "an empty cluster after the test")


def test_observing_proposes_and_touches_nothing(cluster: Installation) -> None:
    cluster.mode("gpu", "Observe")
    cluster.apply(pod("work"))
    with cluster.controller("observe.log") as controller:
        cluster.wait_until(
            lambda: bool(cluster.api.get(CAPACITY_POOLS, "gpu").get("status", {}).get("proposedLaunches")), "a proposal"
        )
        assert controller.stop() == 0
    (proposal,) = cluster.api.get(CAPACITY_POOLS, "gpu")["status"]["proposedLaunches"]
    assert (proposal["count"], proposal["pods"], proposal["zone"]) == (1, 1, "us-east-1a")
    for resource in (NODES, RESOURCE_SLICES, PROVISIONED_NODES, LAUNCH_BATCHES):
        assert cluster.api.list(resource).items == ()
    writes = {(r.group, r.resource) for r, _ in cluster.control_plane.asked(ACCOUNT) if r.verb not in READS}
    assert {group for group, _ in writes} <= {"foreslice.dev", "", "coordination.k8s.io"}
    assert {resource for group, resource in writes if group == ""} <= {"events"}


READS = frozenset({"get", "list", "watch"})


def test_pods_run_on_a_node_that_comes_and_goes(cluster: Installation) -> None:
    cluster.apply(pod("one") + "---" + pod("two"))
    with cluster.controller("act.log") as controller:
        cluster.wait_until(lambda: cluster.running("one", "two"), "running pods")
        nodes = {found["spec"]["nodeName"] for found in cluster.pods().values()}
        claims = cluster.api.list(RESOURCE_CLAIMS, namespace="default").items
        pools = {result["pool"] for claim in claims for result in claim["status"]["allocation"]["devices"]["results"]}
        assert pools == nodes
        for name in ("one", "two"):
            cluster.api.delete(PODS, name, namespace="default")
        cluster.wait_until(cluster.is_empty, "no node")
        assert cluster.api.list(RESOURCE_SLICES).items == ()
        assert controller.stop() == 0
        assert "orbidden" not in controller.log


def test_a_shared_claim_brings_its_pods_together(cluster: Installation) -> None:
    cluster.apply(
        CLAIM + "---" + pod("left", "resourceClaimName: shared") + "---" + pod("right", "resourceClaimName: shared")
    )
    with cluster.controller():
        cluster.wait_until(lambda: cluster.running("left", "right"), "running pods")
    assert len({found["spec"]["nodeName"] for found in cluster.pods().values()}) == 1
    assert len(cluster.api.list(NODES).items) == 1


def test_deleting_a_provisioned_node_evicts_its_pods_and_ends_it(cluster: Installation) -> None:
    cluster.apply(pod("work"))
    with cluster.controller():
        cluster.wait_until(lambda: cluster.running("work"), "a running pod")
        (node,) = cluster.api.list(PROVISIONED_NODES).items
        cluster.api.delete(PROVISIONED_NODES, node["metadata"]["name"])
        cluster.wait_until(cluster.is_empty, "the node's end")
    assert "work" not in cluster.pods()


def test_a_baseline_is_kept_up_without_pods(cluster: Installation) -> None:
    cluster.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"baseline": [{"replicas": 2}]}})
    with cluster.controller():
        cluster.wait_until(lambda: len(cluster.api.list(NODES).items) == 2, "the baseline")
        cluster.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"baseline": None}})
        cluster.wait_until(cluster.is_empty, "its end")


def test_a_selector_that_fails_is_named_and_buys_nothing(cluster: Installation) -> None:
    request = {"deviceClassName": "gpu.nvidia.com", "selectors": [{"cel": {"expression": FAILING}}]}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}}
    manifest = {"metadata": {"name": "failing", "namespace": "default"}, "spec": spec}
    cluster.api.create(BY_KIND["ResourceClaimTemplate"], manifest)
    cluster.apply(pod("broken", "resourceClaimTemplateName: failing"))

    def told() -> bool:
        events = cluster.api.list(EVENTS, namespace="default").items
        about = [found for found in events if found["involvedObject"]["name"] == "broken"]
        return any(e["reason"] == "NotTriggerScaleUp" and "noSuchAttribute" in e["message"] for e in about)

    with cluster.controller():
        cluster.wait_until(told, "an event that names the attribute")
    assert cluster.api.list(PROVISIONED_NODES).items == ()
    cluster.api.delete(BY_KIND["ResourceClaimTemplate"], "failing", namespace="default")


def test_a_killed_leader_is_replaced_and_nothing_is_doubled(cluster: Installation) -> None:
    with cluster.controller("first.log") as first:
        cluster.wait_until(lambda: _holder(cluster) != "", "a leader")
        leader = _holder(cluster)
        with cluster.controller("second.log"):
            cluster.apply(pod("work"))
            cluster.wait_until(lambda: bool(cluster.api.list(LAUNCH_BATCHES).items), "an intent")
            first.stop(signal.SIGKILL)
            cluster.wait_until(lambda: cluster.running("work"), "a running pod")
            cluster.wait_until(lambda: _holder(cluster) not in ("", leader), "another leader")
            assert len(cluster.api.list(NODES).items) == len(cluster.api.list(PROVISIONED_NODES).items) == 1


def _holder(cluster: Installation) -> str:
    with suppress(NotFoundError):
        return str(cluster.api.get(LEASES, NAME, namespace=NAMESPACE)["spec"].get("holderIdentity", ""))
    return ""


def test_an_api_server_that_dies_is_survived(cluster: Installation) -> None:
    # A busy machine may start the API server for longer than a Lease lasts; then the process would end, and rightly so.
    patient = {"FORESLICE_LEASE_DURATION": "90s", "FORESLICE_LEASE_RENEW_DEADLINE": "80s"}
    with cluster.controller("outage.log", **patient) as controller:
        cluster.apply(pod("before"))
        cluster.wait_until(lambda: cluster.running("before"), "a running pod")
        cluster.control_plane.kill_api_server()
        cluster.apply(pod("after"))
        cluster.wait_until(lambda: cluster.running("before", "after"), "both pods")
        assert controller.lives


def test_a_deleted_pool_takes_its_nodes_with_it(cluster: Installation) -> None:
    other = POOL.split("---")[1].replace("name: gpu", "name: other")
    cluster.apply(other.replace("nodeTemplateRef", "baseline: [{replicas: 1}]\n  nodeTemplateRef"))
    cluster.mode("other", "Act")
    with cluster.controller():
        cluster.wait_until(lambda: len(cluster.api.list(NODES).items) == 1, "its node")
        cluster.wait_until(
            lambda: bool(cluster.api.get(CAPACITY_POOLS, "other")["metadata"].get("finalizers")), "its finalizer"
        )
        cluster.api.delete(CAPACITY_POOLS, "other")
        cluster.wait_until(cluster.is_empty, "the node's end")
        names = {found["metadata"]["name"] for found in cluster.api.list(CAPACITY_POOLS).items}
        cluster.wait_until(
            lambda: {found["metadata"]["name"] for found in cluster.api.list(CAPACITY_POOLS).items} == {"gpu"},
            f"the pool's end: {names}",
        )


def test_blocks_and_overlays_are_judged_where_they_stand(cluster: Installation) -> None:
    cluster.apply(BLOCK + "---" + OVERLAY)

    def judged() -> bool:
        block = cluster.api.get(CAPACITY_BLOCKS, "november").get("status", {})
        overlay = cluster.api.get(INSTANCE_TYPE_OVERLAYS, "misspelt").get("status", {})
        return block.get("phase") == "Pending" and bool(overlay.get("conditions"))

    with cluster.controller():
        cluster.wait_until(judged, "the block's phase, and what is said of the overlay")
    (ready,) = cluster.api.get(INSTANCE_TYPE_OVERLAYS, "misspelt")["status"]["conditions"]
    assert (ready["type"], ready["status"]) == ("Ready", "False")


def test_every_right_is_used_and_none_is_missing(cluster: Installation) -> None:
    """Last, when everything above was asked."""
    # The role aws is for a provider that is not here.
    roles = yaml.safe_load((CHARTS / "foreslice/files/roles.yaml").read_text(encoding="utf-8"))["cluster"]
    rights = granted([{"rules": roles[name]} for name in ("observe", "act", "kwok")])
    asked = [
        (right, code) for right, code in cluster.control_plane.asked(ACCOUNT) if right.group != "coordination.k8s.io"
    ]
    _, refused = answered(asked)
    # What a role has was refused at such a moment alone, if at all.
    missing = sorted(right for right in refused if not any(own.covers(right) for own in rights))
    assert missing == [], "asked for without a right"
    unused = sorted(right for right in rights - RARE - SELDOM if not any(right.covers(used) for used, _ in asked))
    assert unused == [], f"granted and never used: {unused}"
