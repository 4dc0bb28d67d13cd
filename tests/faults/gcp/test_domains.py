"""Gangs on A4X: each is in one NVLink domain, which is one group, and no group gets more than a domain has."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import cached_property
from typing import Final

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import PODS
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from tests.crash.life import START
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.holdings import Holding
from tests.fakes.gce.state import Group
from tests.faults.block_lives import BLOCK
from tests.faults.gcp.world import KIND, GcpSimulation
from tests.faults.schedules import GANG_OF, scenario

TYPE: Final = "a4x-highgpu-4g"
ZONE: Final = "us-central1-a"
ENDS: Final = START + timedelta(days=3)
POD: Final = """
---
apiVersion: v1
kind: Pod
metadata:
  name: gang-{gang}-{number}
  labels: {{scheduling.x-k8s.io/pod-group: gang-{gang}}}
  annotations: {{simulation.foreslice.dev/at: {at}m}}
spec:
  tolerations: [{{key: foreslice.dev/capacity-block, operator: Exists}}]
  nodeSelector: {{kubernetes.io/arch: arm64}}
  resourceClaims: [{{name: gpus, resourceClaimTemplateName: gpus}}]
  containers: [{{name: main, image: pause, resources: {{claims: [{{name: gpus}}], requests: {{cpu: "1"}}}}}}]
"""


class RackSimulation(GcpSimulation):
    """A project with two node pools in a reservation of two racks, with a workload policy each."""

    @cached_property
    def fake(self) -> FakeGce:
        fake = FakeGce(self.clock, self._pace)
        fake.project.holdings.append(Holding("racks", ZONE, TYPE, 36, START, START, ENDS, future="racks"))
        own = {
            labels.POOL: "prepaid",
            labels.CAPACITY_BLOCK: "block",
            labels.CAPACITY_TYPE: "capacity-block",
            labels.CLOUD: "gcp",
            labels.NVIDIA_GPU_PRESENT: "true",
        }
        for number in range(2):
            base = f"gke-c1-rack{number}"
            group = Group(f"{base}-grp", ZONE, base, TYPE, "RESERVATION_BOUND", kube_labels=own)
            group.reservation, group.kube_taints = "racks", (Taint(labels.CAPACITY_BLOCK, "block"),)
            group.policy = f"rack{number}"
            fake.project.policies[group.policy] = {"type_": "HIGH_THROUGHPUT", "accelerator_topology": "1x72"}
            fake.project.add(group)
        return fake


def begun(*gangs: int, hold: str = "WhileNeeded") -> RackSimulation:
    """A cluster with gangs of so many pods, each of which takes a machine; one comes every six minutes."""
    catalog = load_catalog()
    only = replace(catalog, types=FrozenMap({TYPE: catalog.types[TYPE]}))
    simulation = RackSimulation(catalog=only, start=START)
    block = BLOCK.format(
        count=36,
        reservation=f"zones/{ZONE}/futureReservations/racks",
        kind=KIND,
        instance_type=TYPE,
        zone=ZONE,
        starts_at=START,
        ends_at=ENDS,
        notice=30,
        budget=15,
        at_deadline="Delete",
    )
    parts = [block.replace("  zone:", f"  hold: {hold}\n  zone:")]
    for gang, size in enumerate(gangs):
        parts.append("---" + GANG_OF.format(number=gang, copies=size).removesuffix("---\n"))
        parts += [POD.format(gang=gang, number=number, at=6 * gang) for number in range(size)]
    simulation.add(scenario("".join(parts)))
    return simulation


def sizes(simulation: RackSimulation) -> list[int]:
    return [len(group.members) for group in simulation.fake.project.groups.values()]


def domains(simulation: RackSimulation, gang: int) -> Counter[str]:
    """How many pods of a gang run in each group."""
    machines = {one.name: one.group for one in simulation.ours()}
    pods = [pod for pod in list_all(simulation.api, PODS)[0] if pod["metadata"]["name"].startswith(f"gang-{gang}-")]
    return Counter(machines[host] for pod in pods if (host := pod["spec"].get("nodeName")) in machines)


def test_each_gang_is_in_one_domain() -> None:
    simulation = begun(10, 10, 8)
    simulation.run(START + timedelta(minutes=20))
    assert domains(simulation, 0) == {"gke-c1-rack0-grp": 10}
    assert domains(simulation, 1) == {"gke-c1-rack1-grp": 10}
    assert domains(simulation, 2) == {"gke-c1-rack0-grp": 8}
    assert sizes(simulation) == [18, 10]


def test_a_capacity_block_that_is_held_fills_its_domains() -> None:
    simulation = begun(hold="Always")
    simulation.run(START + timedelta(minutes=20))
    assert sizes(simulation) == [18, 18]


@pytest.mark.parametrize("fault", ["the policy is deleted", "the policy may not be read"])
def test_a_domain_whose_policy_is_not_known_gets_nothing_until_it_is(fault: str) -> None:
    simulation = begun(10, 10)
    fake = simulation.fake
    simulation.run(START + timedelta(minutes=5))
    assert domains(simulation, 0) == {"gke-c1-rack0-grp": 10}
    if fault == "the policy is deleted":
        kept = fake.project.policies.pop("rack1")
    else:
        kept = fake.project.policies["rack1"]
        fake.denied.add("resourcePolicies.get")
    simulation.run(START + timedelta(minutes=75))
    assert (sizes(simulation), domains(simulation, 0)) == ([10, 0], {"gke-c1-rack0-grp": 10})
    fake.denied.clear()
    fake.project.policies["rack1"] = kept
    simulation.run(START + timedelta(hours=4))
    assert domains(simulation, 1) == {"gke-c1-rack1-grp": 10}
