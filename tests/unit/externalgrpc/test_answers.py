"""What Cluster Autoscaler is told besides sizes: options, the GPU label and prices."""

from __future__ import annotations

import pytest

from autoscaler.externalgrpc.kubernetes_types import POD
from autoscaler.externalgrpc.messages import METHODS
from autoscaler.externalgrpc.refusal import Status
from autoscaler.externalgrpc.wire import encode
from autoscaler.planning.supply.hypothetical import template_of
from tests.unit.externalgrpc.cluster import Cluster, cheapest, refused


def test_options_are_left_to_the_caller(cluster: Cluster) -> None:
    """Seen with Cluster Autoscaler 1.36.1: options without MaxNodeStartupTime, which the message does not have, read as
    a node that may not boot, and each of its loops ordered one more for the same pod."""
    method, asked = METHODS["NodeGroupGetOptions"], b"\x09anything, also of a later release"
    found = cluster.call("NodeGroupGetOptions", id=cheapest(cluster), defaults=asked)
    assert encode(method[1], found) == b""


def test_no_node_has_the_gpu_label(cluster: Cluster) -> None:
    label = cluster.call("GPULabel")["label"]
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.run(minutes=10)
    (node,) = cluster.ticks[-1].snapshot.nodes
    assert label
    assert label not in node.labels
    assert cluster.call("GetAvailableGPUTypes")["gpuTypes"].keys() == {"nvidia-l4"}


def test_prices_are_those_of_the_catalog(cluster: Cluster) -> None:
    group = cheapest(cluster)
    candidate = cluster.provider.launchable.candidates[group]
    span = {"startTimestamp": {"seconds": 0}, "endTimestamp": {"seconds": 7200}}
    template = template_of(candidate, cluster.provider.launchable.snapshot, name="renamed").node
    asked = {"name": "renamed", "labels": dict(template.labels)}
    assert candidate.usd_per_hour is not None
    found = cluster.call("PricingNodePrice", node=asked, **span)["price"]
    assert found == pytest.approx(2 * float(candidate.usd_per_hour))
    assert refused(cluster, "PricingNodePrice", node={"name": "x"}, **span) is Status.UNIMPLEMENTED
    pod = encode(POD, {"metadata": {"namespace": "default", "name": "work-0"}})
    assert cluster.call("PricingPodPrice", pod_bytes=pod, **span)["price"] == pytest.approx(found)  # its only GPU
    stranger = encode(POD, {"metadata": {"namespace": "default", "name": "other"}})
    assert refused(cluster, "PricingPodPrice", pod_bytes=stranger, **span) is Status.UNIMPLEMENTED
