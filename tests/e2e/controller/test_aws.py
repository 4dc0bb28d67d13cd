"""The AWS adapter in a real cluster: the controller calls the fake EC2 over HTTP, and its machines join as nodes.

boto3, the adapter and everything above are the process that users run. A machine joins with the labels and taints that
its user data says; from then on KWOK plays its kubelet, and the predicted slices are what its drivers publish.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from autoscaler.cluster.resources import (
    AWS_NODE_TEMPLATES,
    CAPACITY_POOLS,
    DAEMON_SETS,
    LAUNCH_BATCHES,
    PODS,
    PROVISIONED_NODES,
)
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes import labels
from providers.contract import InstanceState
from tests.e2e.harness.block_life import TYPE, ZONE, Block, live
from tests.e2e.harness.deaths import ALONE, live_through
from tests.e2e.harness.gpu_pods import TEMPLATE, pod
from tests.e2e.harness.installation import BRISK, Controller, Installation
from tests.e2e.harness.steered import SteeredClock
from tests.fakes.ec2 import Behaviour, FakeEc2, Server
from tests.faults.world import DRIVER, Inside

POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: AWSNodeTemplate
metadata: {name: gpu}
spec:
  cluster: {name: test}
  subnets: [{tags: {kubernetes.io/cluster/test: owned}}]
  securityGroups: [{tags: {kubernetes.io/cluster/test: owned}}]
  ami:
    ssmParameter: /aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia/recommended/image_id
  instanceProfile: nodes
---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  nodeTemplateRef: {kind: AWSNodeTemplate, name: gpu}
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}]
  drivers: {profiles: [nvidia]}
  limits: {nodes: 4}
  disruption: {after: 1s}
"""
# EC2 takes 20 seconds to start a machine and 40 to end one; nobody waits for that here.
SWIFT = Behaviour(pending=timedelta(seconds=1), shutting_down=timedelta(seconds=1))
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIAFAKE", "AWS_SECRET_ACCESS_KEY": "fake", "AWS_REGION": "us-east-1"}


class Region:
    """The fake region beside the cluster, and what lets its machines join."""

    def __init__(self, cluster: Installation, fake: FakeEc2, server: Server, clock: SteeredClock) -> None:
        self.cluster = cluster
        self.fake = fake
        self.clock = clock
        self._environment = {**CREDENTIALS, "AWS_ENDPOINT_URL": server.url, "AWS_EC2_METADATA_DISABLED": "true"}
        self._inside = Inside(fake)
        self._joined: set[str] = set()

    def controller(self, log: str, **environment: str) -> AbstractContextManager[Controller]:
        """The controller, by the region's clock."""
        return self.cluster.controller(log, clock=self.clock, **self._environment, **environment)

    def alive(self) -> list[Any]:
        """The instances that run or start."""
        now, pace = self.fake.account.now, self._inside.behaviour
        gone = {InstanceState.TERMINATING, InstanceState.TERMINATED}
        return [machine for machine in self._inside.machines.values() if machine.state(now, pace) not in gone]

    def ids(self) -> list[str]:
        """Their provider ids."""
        return sorted(machine.provider_id for machine in self.alive())

    def join(self) -> None:
        """Let every new instance become a node with slices."""
        for machine in self.alive():
            if machine.id in self._joined:
                continue
            request = self._inside.launches[machine.id].request
            self.cluster.join(request, machine)
            self._joined.add(machine.id)

    def runs(self, *names: str) -> bool:
        """Whether these pods run, after letting machines join."""
        self.join()
        return self.cluster.running(*names)


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    values = {"settings": {**BRISK, "cluster": {"providers": ["aws"]}}, "rbac": {"aws": True}}
    folder = tmp_path_factory.mktemp("aws")
    clock = SteeredClock(folder / "clock")
    fake = FakeEc2(clock, behaviour=SWIFT)
    with ExitStack() as stack:
        server = stack.enter_context(Server(fake))
        cluster = stack.enter_context(Installation(folder, values=values))
        cluster.api.create(DAEMON_SETS, DRIVER)
        cluster.apply(POOL + "---" + TEMPLATE)
        yield Region(cluster, fake, server, clock)


def leave(region: Region, *names: str) -> None:
    """The pods go, and with them everything they caused."""
    for name in names:
        region.cluster.api.delete(PODS, name, namespace="default")
    region.cluster.wait_until(region.cluster.is_empty, "no node")
    assert region.alive() == []
    region.cluster.wait_until(lambda: not region.cluster.api.list(LAUNCH_BATCHES).items, "no LaunchBatch")


def template_status(region: Region) -> Any:
    """What the controller says of the one template, once it has said something."""

    def said() -> Any:
        return region.cluster.api.get(AWS_NODE_TEMPLATES, "gpu").get("status", {})

    region.cluster.wait_until(lambda: bool(said().get("conditions")), "a template's status")
    return said()


def test_a_pod_gets_an_instance_and_gives_it_back(region: Region) -> None:
    region.cluster.apply(pod("work"))
    with region.controller("work.log"):
        region.cluster.wait_until(lambda: region.runs("work"), "a running pod")
        (machine,) = region.alive()
        (node,) = region.cluster.api.list(PROVISIONED_NODES).items
        assert node["status"]["providerID"] == machine.provider_id
        assert machine.tags[labels.POOL] == "gpu"
        status = template_status(region)
        assert [(one["type"], one["status"]) for one in status["conditions"]] == [
            ("Ready", "True"),
            ("UpToDate", "True"),
        ]
        # The API server keeps what the custom resource declares, and nothing else.
        zones = {subnet["zone"] for subnet in status["subnets"]}
        assert machine.offering.zone in zones
        assert (status["image"]["architecture"], status["nodeRole"]) == ("amd64", "nodes")
        assert status["securityGroups"]
        leave(region, "work")


def test_killed_in_a_launch_a_drain_and_a_termination(region: Region) -> None:
    region.cluster.apply(pod("one") + "---" + pod("two"))
    live_through(region.cluster, partial(region.controller, **ALONE), region)


def test_nothing_is_bought_until_a_driver_will_run(region: Region) -> None:
    metadata = DRIVER["metadata"]
    region.cluster.api.delete(DAEMON_SETS, metadata["name"], namespace=metadata["namespace"])
    region.cluster.apply(pod("driven"))

    def drivers() -> tuple[str, str]:
        conditions = region.cluster.api.get(CAPACITY_POOLS, "gpu").get("status", {}).get("conditions", ())
        return next(((c["status"], c["message"]) for c in conditions if c["type"] == "DriversWillRun"), ("", ""))

    with region.controller("drivers.log"):
        region.cluster.wait_until(lambda: drivers()[0] == "False", "a condition")
        assert "gpu.nvidia.com" in drivers()[1]
        assert "DaemonSet" in drivers()[1]
        assert region.cluster.is_empty()
        assert region.alive() == []
        region.cluster.api.create(DAEMON_SETS, DRIVER)
        region.cluster.wait_until(lambda: region.runs("driven"), "a running pod")
        assert drivers()[0] == "True"
        leave(region, "driven")


def test_a_block_is_held_and_left_before_ec2_takes_it(region: Region) -> None:
    holding = region.fake.account.block(TYPE, ZONE, 1, starts_in=timedelta(hours=1), lasts=timedelta(days=1))
    assert holding.ends_at is not None
    block = Block(holding.id, holding.starts_at, holding.ends_at, ("AWSNodeTemplate", "gpu"))
    with region.controller("block.log"):
        live(region.cluster, region.clock, block, region.join)
    assert region.alive() == []
    (machine,) = (found for found in region.fake.account.machines.values() if found.reservation == holding.id)
    assert machine.ends_at is not None
    assert machine.ends_at < block.reclaimed_at


def test_the_catalog_follows_what_the_region_sells(region: Region, tmp_path: Path) -> None:
    """On a timer; what is read counts at once, below what people wrote."""
    where = {"FORESLICE_SYNC_AWS": "us-east-1", "FORESLICE_SYNC_DIRECTORY": str(tmp_path)}
    with region.controller("sync.log", **where) as running:
        region.cluster.wait_until(lambda: "catalog_changed" in running.log, "another catalog")
    assert '"event": "catalog_synced"' in running.log
    assert load_catalog(extra_dirs=[tmp_path]).get("p5.48xlarge").zones["us-east-1"]
