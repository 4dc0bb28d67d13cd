"""What an installation meets seldom: gangs, tainted devices, a scheduler that disagrees, forgotten history.

One cluster with the feature gates for it, and nodes of one type with four GPUs.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from autoscaler.cluster.api import NotFoundError, Object
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    DEVICE_TAINT_RULES,
    EVENTS,
    NATIVE_POD_GROUPS,
    NODES,
    PODS,
    PROVISIONED_NODES,
    RESOURCE_CLAIMS,
)
from tests.e2e.harness import reserving
from tests.e2e.harness.audit import SELDOM, Right, answered
from tests.e2e.harness.block_life import Block, live
from tests.e2e.harness.control_plane import ControlPlane
from tests.e2e.harness.deaths import ALONE
from tests.e2e.harness.installation import ACCOUNT, BRISK, Controller, Installation
from tests.e2e.harness.steered import SteeredClock

GATES = {"DRADeviceTaintRules": True, "GenericWorkload": True, "GangScheduling": True}
SERVED = {"resource.k8s.io/v1beta2": True, "scheduling.k8s.io/v1alpha2": True}
REFUSED = {"e2e.foreslice.dev/refused": "yes"}
TYPE = "g4dn.12xlarge"
GPUS = 4
POOLS = """
apiVersion: foreslice.dev/v1alpha1
kind: KwokNodeTemplate
metadata: {name: default}
spec: {}
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec: &spec
  mode: Act
  nodeTemplateRef: {kind: KwokNodeTemplate, name: default}
  capacityTypes: [on-demand]
  requirements:
  - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
  - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.12xlarge]}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
  disruption: {after: 1s}
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: refused}
spec:
  mode: Act
  nodeTemplateRef: {kind: KwokNodeTemplate, name: default}
  capacityTypes: [on-demand]
  requirements:
  - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
  - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.12xlarge]}
  labels: {e2e.foreslice.dev/refused: "yes"}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
  disruption: {after: 1s}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus-COUNT, namespace: default}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: COUNT}}]}}}
"""


def pod(name: str, gpus: int, **spec: Any) -> Object:
    """A pod that claims so many GPUs."""
    resources = {"claims": [{"name": "gpus"}], "requests": {"cpu": "1"}}
    default = {
        "terminationGracePeriodSeconds": 1,
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": f"gpus-{gpus}"}],
        "containers": [{"name": "main", "image": "pause", "resources": resources}],
    }
    return {"metadata": {"name": name, "namespace": "default"}, "spec": default | spec}


class Scenario:
    """The cluster, a clock that can be set, and the controller in both."""

    def __init__(self, installed: Installation, clock: SteeredClock, environment: dict[str, str]) -> None:
        self.cluster = installed
        self.api = installed.api
        self.clock = clock
        self._environment = environment

    @contextmanager
    def controller(self, log: str, **environment: str) -> Iterator[Controller]:
        """The controller, by the clock."""
        with self.cluster.controller(log, clock=self.clock, **self._environment, **environment) as running:
            yield running

    def create(self, *pods: Object) -> None:
        """Create pods."""
        for manifest in pods:
            self.api.create(PODS, manifest)

    def pass_by(self, span: timedelta) -> None:
        """Let time pass."""
        self.clock.move_to(self.clock.now() + span)

    def node_of(self, name: str) -> str:
        """Where a pod runs."""
        return str(self.cluster.pods()[name]["spec"]["nodeName"])

    def devices_of(self, name: str) -> set[str]:
        """The devices of the pod's claim."""
        (claim,) = (
            found
            for found in self.api.list(RESOURCE_CLAIMS, namespace="default").items
            if any(owner["name"] == name for owner in found["metadata"]["ownerReferences"])
        )
        return {result["device"] for result in claim["status"]["allocation"]["devices"]["results"]}

    def provisioned(self) -> tuple[Object, ...]:
        """Our nodes."""
        return self.api.list(PROVISIONED_NODES).items

    def told(self, name: str, reason: str) -> list[str]:
        """What Events with a reason say about a pod."""
        found = self.api.list(EVENTS, namespace="default").items
        return [e["message"] for e in found if (e["involvedObject"]["name"], e["reason"]) == (name, reason)]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    folder = tmp_path_factory.mktemp("scenarios")
    control_plane = ControlPlane(audited=True, gates=GATES, served=SERVED, refused=REFUSED)
    gates = ",".join(f"{gate}=true" for gate in GATES)
    values = {"settings": {**BRISK, "cluster": {"featureGates": gates, "providers": [reserving.NAME]}}}
    clock = SteeredClock(folder / "clock")
    with Installation(folder, values=values, control_plane=control_plane) as installed:
        installed.apply(POOLS)
        for count in range(1, GPUS + 1):
            installed.apply(TEMPLATE.replace("COUNT", str(count)))
        yield Scenario(installed, clock, reserving.plug_in(folder))


@pytest.fixture
def scene(everything: Scenario) -> Iterator[Scenario]:
    """Each test leaves an empty cluster."""
    yield everything
    for name in everything.cluster.pods():
        with suppress(NotFoundError):
            everything.api.delete(PODS, name, namespace="default", grace_seconds=0)
    with everything.controller("tidy.log"):
        everything.cluster.wait_until(everything.cluster.is_empty, "an empty cluster after the test")


def test_a_gang_gets_all_its_nodes_at_once(scene: Scenario) -> None:
    group = {"metadata": {"name": "gang", "namespace": "default"}}
    scene.api.create(NATIVE_POD_GROUPS, group | {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
    members = [pod(f"member-{i}", GPUS, schedulingGroup={"podGroupName": "gang"}) for i in range(3)]
    scene.create(*members[:2])
    with scene.controller("gang.log"):
        scene.cluster.wait_until(lambda: bool(scene.told("member-0", "NotTriggerScaleUp")), "word of the third member")
        assert scene.provisioned() == ()
        scene.create(members[2])
        names = [manifest["metadata"]["name"] for manifest in members]
        scene.cluster.wait_until(lambda: scene.cluster.running(*names), "the whole gang")
        assert len({scene.node_of(name) for name in names}) == 3
        assert len({found["spec"]["batch"] for found in scene.provisioned()}) == 1
        assert len(scene.provisioned()) == 3
    scene.api.delete(NATIVE_POD_GROUPS, "gang", namespace="default")


def test_a_tainted_gpu_is_gone_and_the_others_are_not(scene: Scenario) -> None:
    scene.create(pod("first", GPUS - 1))
    with scene.controller("taint.log"):
        scene.cluster.wait_until(lambda: scene.cluster.running("first"), "a running pod")
        node = scene.node_of("first")
        (free,) = {f"gpu-{i}" for i in range(GPUS)} - scene.devices_of("first")
        taint = {"key": "e2e.foreslice.dev/broken", "effect": "NoSchedule"}
        selector = {"driver": "gpu.nvidia.com", "pool": node, "device": free}
        rule = {"metadata": {"name": "broken"}, "spec": {"deviceSelector": selector, "taint": taint}}
        scene.api.create(DEVICE_TAINT_RULES, rule)
        scene.create(pod("second", 1))
        scene.cluster.wait_until(lambda: scene.cluster.running("second"), "a node for the second pod")
        assert scene.node_of("second") != node
        # The node with the broken GPU stays as it is: nothing says that it be replaced.
        assert scene.cluster.running("first")
        assert scene.node_of("first") == node
        assert len(scene.provisioned()) == 2
        scene.api.delete(DEVICE_TAINT_RULES, "broken")
        # Three are free beside the second pod and one beside the first: both take what comes, and nothing is bought.
        # One after the other: their claims are made in any order, and the small pod fits on both nodes.
        for name, count in (("third", GPUS - 1), ("fourth", 1)):
            scene.create(pod(name, count))
            scene.cluster.wait_until(partial(scene.cluster.running, name), f"the {name} pod on a node that is there")
        assert scene.devices_of("fourth") == {free}
        assert len(scene.provisioned()) == 2


def test_a_pod_that_is_not_taken_although_it_fits_is_told_and_buys_no_second_node(scene: Scenario) -> None:
    scene.create(pod("odd", 1, nodeSelector=REFUSED))

    def quarantined() -> bool:
        return bool(scene.api.get(CAPACITY_POOLS, "refused").get("status", {}).get("quarantines"))

    with scene.controller("misprediction.log") as controller:

        def ready() -> bool:
            return [found.get("status", {}).get("phase") for found in scene.provisioned()] == ["Ready"]

        scene.cluster.wait_until(ready, "its node")
        assert not quarantined()
        scene.pass_by(timedelta(minutes=7))
        scene.cluster.wait_until(quarantined, "the quarantine")
        scene.cluster.wait_until(lambda: bool(scene.told("odd", "Misprediction")), "an event")
        (quarantine,) = scene.api.get(CAPACITY_POOLS, "refused")["status"]["quarantines"]
        assert quarantine["instanceType"] == TYPE
        assert quarantine["mispredictions"][0].startswith("default/odd on ")
        count = 'foreslice_mispredictions_total{pool="refused"} 1.0'
        scene.cluster.wait_until(lambda: count in controller.answer("metrics", "/metrics").text, "its count")
        # The node leaves, and nothing of the kind is bought for a second pod.
        for found in scene.provisioned():
            scene.api.delete(PROVISIONED_NODES, found["metadata"]["name"])
        scene.create(pod("another", 1, nodeSelector=REFUSED))
        scene.cluster.wait_until(lambda: bool(scene.told("another", "NotTriggerScaleUp")), "a refusal")
        assert "quarantine" in scene.told("another", "NotTriggerScaleUp")[0]
        scene.cluster.wait_until(scene.cluster.is_empty, "no node")


def test_history_that_the_api_server_has_forgotten_is_read_again(scene: Scenario) -> None:
    scene.create(pod("stays", 1), pod("leaves", GPUS))
    listing = (Right("", "pods", "list"), 200)
    # One that sleeps would lose its Lease, and rightly so.
    with scene.controller("history.log", **ALONE) as controller:
        scene.cluster.wait_until(lambda: scene.cluster.running("stays", "leaves"), "running pods")
        left = scene.node_of("leaves")
        listed = scene.cluster.control_plane.asked(ACCOUNT).count(listing)
        # Its watches are cut, pods come and go while it sleeps, and the next API server begins with what is there then.
        controller.send(signal.SIGSTOP)
        scene.cluster.control_plane.kill_api_server()
        scene.api.delete(PODS, "leaves", namespace="default", grace_seconds=0)
        scene.create(pod("comes", GPUS, affinity=elsewhere_than(left)))
        scene.cluster.control_plane.kill_api_server()
        controller.send(signal.SIGCONT)
        scene.cluster.wait_until(lambda: scene.cluster.running("stays", "comes"), "the pod that came meanwhile")
        nodes = {scene.node_of("stays"), scene.node_of("comes")}
        scene.cluster.wait_until(
            lambda: {found["metadata"]["name"] for found in scene.api.list(NODES).items} == nodes,
            "the end of the node whose pod left meanwhile",
        )
        assert scene.cluster.control_plane.asked(ACCOUNT).count(listing) > listed
        assert controller.lives


def elsewhere_than(node: str) -> Object:
    """An affinity to all other nodes."""
    unlike = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [unlike]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_a_block_is_held_and_left_in_time(scene: Scenario) -> None:
    starts_at = (scene.clock.now() + timedelta(hours=1)).replace(microsecond=0)
    block = Block("cr-1", starts_at, starts_at + timedelta(days=1), ("KwokNodeTemplate", "default"))
    reserving.reserve(scene.cluster.folder, block)
    with scene.controller("block.log"):
        live(scene.cluster, scene.clock, block, join=lambda: None)


def test_rights_that_are_seldom_needed_are_used_here(everything: Scenario) -> None:
    """Last, when everything above was asked."""
    allowed, refused = answered(everything.cluster.control_plane.asked(ACCOUNT))
    assert sorted(refused) == [], "asked for without a right"
    unused = sorted(right for right in SELDOM if not any(right.covers(used) for used in allowed))
    assert unused == [], f"granted and never used: {unused}"
