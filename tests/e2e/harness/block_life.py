"""The life of a capacity block on a real control plane, whoever provides it: begin, hold, notice, drain, end.

Nobody waits for the hours in between: the clock is set to just after each moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import CAPACITY_BLOCKS, EVENTS, LAUNCH_BATCHES, NODES, PROVISIONED_NODES
from instance_catalog.kubernetes.labels import CA_SCALE_DOWN_DISABLED, CAPACITY_ENDS_AT, HELD
from tests.e2e.harness.installation import Installation
from tests.e2e.harness.steered import SteeredClock

MINUTE: Final = timedelta(minutes=1)
TYPE: Final = "p5.48xlarge"
ZONE: Final = "us-east-1a"
# As EC2 does with instances; the notice comes 45 minutes before, evictions begin 15 minutes before.
RECLAIM: Final = timedelta(minutes=30)
OBJECTS: Final = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: prepaid}
spec:
  mode: Act
  nodeTemplateRef: {kind: KIND, name: TEMPLATE}
  capacityTypes: [capacity-block]
  drivers: {profiles: [nvidia]}
  limits: {nodes: 1}
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityBlock
metadata: {name: block}
spec:
  pool: prepaid
  reservation: RESERVATION
  instanceType: p5.48xlarge
  zone: us-east-1a
  count: 1
  startsAt: "STARTS"
  endsAt: "ENDS"
  drain: {notice: 30m, budget: 15m}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: whole-node, namespace: default}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 8}}]}}}
"""
JOB: Final = """
apiVersion: v1
kind: Pod
metadata: {name: job, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  tolerations: [{key: foreslice.dev/capacity-block, operator: Exists}]
  resourceClaims: [{name: gpus, resourceClaimTemplateName: whole-node}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpus}], requests: {cpu: "1"}}}]
"""


@dataclass(frozen=True, slots=True)
class Block:
    """What was reserved, and the node template with which it is used."""

    reservation: str
    starts_at: datetime
    ends_at: datetime
    template: tuple[str, str]  # kind and name

    @property
    def reclaimed_at(self) -> datetime:
        """When the provider takes the machine."""
        return self.ends_at - RECLAIM

    @property
    def manifests(self) -> str:
        """The pool, the block and what its jobs claim."""
        return (
            OBJECTS.replace("KIND", self.template[0])
            .replace("TEMPLATE", self.template[1])
            .replace("RESERVATION", self.reservation)
            .replace("STARTS", text(self.starts_at))
            .replace("ENDS", text(self.ends_at))
        )


def text(moment: datetime) -> str:
    """As Kubernetes writes moments."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def live(cluster: Installation, clock: SteeredClock, block: Block, join: Callable[[], None]) -> None:
    """The whole life, while a controller runs. `join` lets machines that were launched become nodes."""

    def reaches(phase: str) -> None:
        def reached() -> bool:
            return bool(cluster.api.get(CAPACITY_BLOCKS, "block").get("status", {}).get("phase") == phase)

        cluster.wait_until(reached, f"phase {phase}")

    def held() -> bool:
        join()
        return [node["metadata"]["annotations"].get(HELD) for node in cluster.api.list(NODES).items] == ["true"]

    cluster.apply(block.manifests)
    reaches("Pending")
    assert cluster.is_empty()

    clock.move_to(block.starts_at + MINUTE)
    reaches("Active")
    cluster.wait_until(held, "the block's node, held without any pod")
    (node,) = cluster.api.list(NODES).items
    assert node["metadata"]["annotations"][CA_SCALE_DOWN_DISABLED] == "true"
    cluster.apply(JOB)
    cluster.wait_until(lambda: cluster.running("job"), "a job on it")
    assert cluster.pods()["job"]["spec"]["nodeName"] == node["metadata"]["name"]

    clock.move_to(block.reclaimed_at - 40 * MINUTE)
    reaches("Notice")
    cluster.wait_until(lambda: CAPACITY_ENDS_AT in _annotations(cluster.pods()["job"]), "the pod's notice")
    assert _annotations(cluster.pods()["job"])[CAPACITY_ENDS_AT] == text(block.reclaimed_at)
    assert _annotations(cluster.api.get(NODES, node["metadata"]["name"]))[CAPACITY_ENDS_AT] == text(block.reclaimed_at)
    cluster.wait_until(lambda: _told(cluster, "job", "CapacityEnding"), "the pod's event")
    assert cluster.running("job")

    clock.move_to(block.reclaimed_at - 10 * MINUTE)
    reaches("Draining")
    cluster.wait_until(lambda: "job" not in cluster.pods(), "the eviction")
    cluster.wait_until(cluster.is_empty, "the node's end, before the provider takes it")

    clock.move_to(block.reclaimed_at + MINUTE)
    reaches("Ended")
    for resource in (PROVISIONED_NODES, LAUNCH_BATCHES):
        assert cluster.api.list(resource).items == ()


def _annotations(found: Object) -> Object:
    annotations: Object = found["metadata"].get("annotations", {})
    return annotations


def _told(cluster: Installation, name: str, reason: str) -> bool:
    events = cluster.api.list(EVENTS, namespace="default").items
    return any((event["involvedObject"]["name"], event["reason"]) == (name, reason) for event in events)
