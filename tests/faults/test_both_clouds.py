"""One cluster with machines of two clouds: each provider launches, watches and ends its own, and fails alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import NODES, PODS, PROVISIONED_NODES
from tests.crash.life import SMALL, START, small_catalog
from tests.fakes.ec2 import INTERNAL_ERROR
from tests.fakes.gce.errors import UNAVAILABLE
from tests.faults.both_clouds import AWS_POOL, BothClouds, BothSchedules
from tests.faults.gcp.schedules import GcpSchedules
from tests.faults.gcp.world import ACCELERATORS, ZONES
from tests.faults.schedules import scenario

AWS_ZONES = ("us-east-1a", "us-east-1b")
WORK = """
---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  annotations: {{simulation.foreslice.dev/copies: "2", simulation.foreslice.dev/runs-for: {minutes}m,
    simulation.foreslice.dev/at: {at}m}}
spec:
  nodeSelector: {{topology.kubernetes.io/zone: {zone}}}
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: gpu}}]
  containers: [{{name: main, image: pause, resources: {{claims: [{{name: gpu}}], requests: {{cpu: "1"}}}}}}]
"""
LOOKS = timedelta(minutes=5)
TestBothSchedules = pytest.mark.slow(BothSchedules.TestCase)
TestBothSchedules.settings = settings(max_examples=4, stateful_step_count=16, deadline=None, derandomize=True)


def begun(*, late: str = "") -> BothClouds:
    """Two pods for each cloud, an hour long. `late`: two more of this cloud (aws, gcp) after ten minutes."""
    simulation = BothClouds(catalog=small_catalog(*SMALL, *ACCELERATORS), start=START)
    zones = {"aws": AWS_ZONES[0], "gcp": ZONES[0]}
    work = [WORK.format(name=f"on-{cloud}", minutes=60, at=0, zone=zone) for cloud, zone in zones.items()]
    if late:
        work.append(WORK.format(name=f"late-on-{late}", minutes=20, at=10, zone=zones[late]))
    simulation.add(scenario(f"{GcpSchedules.pools}---{AWS_POOL}{''.join(work)}"))
    return simulation


def live(simulation: BothClouds, minutes: int) -> None:
    """A controller that looks every five minutes, begun anew half-way."""
    end = simulation.clock.now() + timedelta(minutes=minutes)
    half = simulation.clock.now() + timedelta(minutes=minutes) / 2
    while simulation.clock.now() < end:
        before = simulation.clock.now()
        simulation.run(min(before + LOOKS, end))
        if before < half <= simulation.clock.now():
            simulation.new_loop()


def running(simulation: BothClouds) -> set[str]:
    """Names of pods that run."""
    pods = list_all(simulation.api, PODS)[0]
    return {pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") == "Running"}


def test_each_cloud_has_its_machines_and_none_is_left() -> None:
    simulation = begun()
    live(simulation, 10)
    assert simulation.ours_by_cloud() == {"aws": 2, "gcp": 2}
    kinds = sorted(str(node["spec"]["providerID"]).partition(":")[0] for node in list_all(simulation.api, NODES)[0])
    assert kinds == ["aws", "aws", "gce", "gce"]
    assert running(simulation) == {"on-aws-0", "on-aws-1", "on-gcp-0", "on-gcp-1"}
    live(simulation, 180)
    assert simulation.ours_by_cloud() == {"aws": 0, "gcp": 0}
    assert list_all(simulation.api, PROVISIONED_NODES)[0] == ()
    assert all(group.members == {} for group in simulation.fake.project.groups.values())


@pytest.mark.slow
@pytest.mark.parametrize(("silent", "other"), [("aws", "gcp"), ("gcp", "aws")])
def test_a_cloud_that_does_not_answer_holds_up_nobody_elses_work(silent: str, other: str) -> None:
    """Nor is anything of it believed to be gone."""
    simulation = begun(late=other)
    live(simulation, 8)
    if silent == "aws":
        simulation.ec2.faults.inject("DescribeInstances", *[INTERNAL_ERROR] * 500)
    else:
        simulation.fake.faults.inject("instances.aggregatedList", *[UNAVAILABLE] * 500)
    live(simulation, 15)
    both = {"on-aws-0", "on-aws-1", "on-gcp-0", "on-gcp-1"}
    assert running(simulation) == both | {f"late-on-{other}-0", f"late-on-{other}-1"}
    assert simulation.ours_by_cloud() == {silent: 2, other: 4}
    while simulation.ec2.faults.next("DescribeInstances") or simulation.fake.faults.next("instances.aggregatedList"):
        pass
    live(simulation, 240)
    assert simulation.ours_by_cloud() == {"aws": 0, "gcp": 0}
