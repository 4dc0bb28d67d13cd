"""One node pool cannot be used, in each way that people get it wrong; seen from the cluster, through the whole loop.

The GCPNodeTemplates are read from the cluster, as in production. Of three pools with a pod each, one is wrong; the
others launch in the same pass. A condition says what is wrong, on the object that a person has to look at, and an Event
says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import CAPACITY_POOLS, EVENTS, GCP_NODE_TEMPLATES
from autoscaler.composition.gcp import group_templates
from instance_catalog.kubernetes import labels
from tests.crash.life import SMALL, START, small_catalog
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.gke import DRA_LABELS, NodePool
from tests.fakes.gce.quotas import Way
from tests.fakes.gce.state import Group, Machine
from tests.faults.both_clouds import AWS_POOL, BothClouds
from tests.faults.gcp.world import ACCELERATORS, ZONES
from tests.faults.scenes import POOL
from tests.faults.schedules import scenario
from tests.gcp import expired

MINUTE = timedelta(minutes=1)
# What the node pools start. They differ, so that what Google says of one kind says nothing of the other.
KINDS = {"wrong": "a2-highgpu-1g", "right": "g2-standard-4"}
OF = "--cluster c1 --location us-central1 --project gpu-project"
POOL_OF = """---
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: NAME}
spec:
  mode: Act
  capacityTypes: [on-demand]
  nodeTemplateRef: {kind: GCPNodeTemplate, name: NAME}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 8}
---
apiVersion: foreslice.dev/v1alpha1
kind: GCPNodeTemplate
metadata: {name: NAME}
spec: {cluster: {name: CLUSTER, location: us-central1}, nodePools: [NAME]}
"""
POD_OF = """---
apiVersion: v1
kind: Pod
metadata: {name: work-NAME}
spec:
  nodeSelector: {foreslice.dev/pool: NAME}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""
CLAIM = POOL.partition("---")[2]


class ThreePools(BothClouds):
    """Two GKE node pools in two zones each, and a pool of AWS."""

    @cached_property
    def fake(self) -> FakeGce:
        fake = FakeGce(self.clock, self._pace)
        for name, kind in KINDS.items():
            refs = []
            for zone in ZONES:
                base = f"gke-c1-{name}-{zone[-1]}-0a1b2c3d"
                own = {**DRA_LABELS, labels.POOL: name, labels.GKE_NODE_POOL: name}
                group = Group(f"{base}-grp", zone, base, kind, accelerator=ACCELERATORS[kind], kube_labels=own)
                fake.project.add(group)
                refs.append((zone, group.name))
            own = {**DRA_LABELS, labels.POOL: name}
            fake.clusters.pools[name] = NodePool(tuple(refs), labels=own, machine_type=kind, taints=())
        return fake

    @cached_property
    def template(self) -> Any:
        """The GCPNodeTemplates of the cluster, read as production reads them."""
        return group_templates(ProviderObjects(self.api))

    @property
    def wrong(self) -> NodePool:
        return self.fake.clusters.pools["wrong"]

    def groups_of(self, name: str) -> tuple[Group, ...]:
        return tuple(group for group in self.fake.project.groups.values() if f"-{name}-" in group.name)

    def machines_of(self, name: str) -> list[Machine]:
        """Those of ours."""
        return [machine for machine in self.ours() if f"-{name}-" in machine.name]

    def condition(self, where: str, name: str, kind: str) -> tuple[str, str, str]:
        """Its status, reason and message."""
        resource = {one.kind: one for one in (GCP_NODE_TEMPLATES, CAPACITY_POOLS)}[where]
        (found,) = (one for one in list_all(self.api, resource)[0] if one["metadata"]["name"] == name)
        (condition,) = (one for one in found["status"]["conditions"] if one["type"] == kind)
        return condition["status"], condition["reason"], condition["message"]

    def warnings(self, kind: str, name: str) -> Iterator[tuple[str, str]]:
        """Reason and message of each warning about an object."""
        for event in list_all(self.api, EVENTS)[0]:
            about = event["involvedObject"]
            if event["type"] == "Warning" and (about["kind"], about["name"]) == (kind, name):
                yield event["reason"], event["message"]

    def failures(self) -> Iterator[str]:
        """What Events say of ProvisionedNodes that came to nothing."""
        return (one["message"] for one in list_all(self.api, EVENTS)[0] if one["reason"] == "NoOfferingLeft")


def three_pools(cluster: str = "c1") -> ThreePools:
    simulation = ThreePools(catalog=small_catalog(*SMALL, *ACCELERATORS), start=START)
    pools = "".join(POOL_OF.replace("NAME", name) for name in KINDS).replace("CLUSTER", cluster, 1)
    pods = "".join(POD_OF.replace("NAME", name) for name in (*KINDS, "gpu-aws"))
    simulation.add(scenario(f"{pools.replace('CLUSTER', 'c1')}---{AWS_POOL}{pods}---{CLAIM}"))
    return simulation


def gke_sizes_it(simulation: ThreePools) -> None:
    simulation.wrong.autoscaling = True


def is_in_another_project(simulation: ThreePools) -> None:
    simulation.wrong.project = "other-project"


def is_deleted(simulation: ThreePools) -> None:
    del simulation.fake.clusters.pools["wrong"]


def its_groups_are_deleted(simulation: ThreePools) -> None:
    for group in simulation.groups_of("wrong"):
        del simulation.fake.project.groups[group.zone, group.name]


def its_zones_lack_the_accelerator(simulation: ThreePools) -> None:
    kind = KINDS["wrong"]
    for zone in ZONES:
        text = f"Machine type with name '{kind}' does not exist in zone '{zone}'."
        simulation.fake.project.errors[kind, zone, "STANDARD"] = ("INVALID_FIELD_VALUE", text)


def quota(way: Way) -> Callable[[ThreePools], None]:
    def is_used_up(simulation: ThreePools) -> None:
        simulation.fake.project.quotas.limits["NVIDIA_A100_GPUS"] = 0
        simulation.fake.project.quotas.way = way

    return is_used_up


def operations_find_no_stock(simulation: ThreePools) -> None:
    for zone in ZONES:
        text = f"The zone '{zone}' does not have enough resources available to fulfill the request."
        simulation.fake.project.late[KINDS["wrong"], zone, "STANDARD"] = ("ZONE_RESOURCE_POOL_EXHAUSTED", text)


def is_on_autopilot(simulation: ThreePools) -> None:
    simulation.fake.clusters.autopilots = ("auto",)


def gke_repairs_it(simulation: ThreePools) -> None:
    simulation.wrong.auto_repair = True


@dataclass(frozen=True)
class Case:
    """`spoils` makes the pool wrong. The condition is Ready of the GCPNodeTemplate, or of the CapacityPool where only a
    launch shows it; its reason and message have `reason` and `told`. `asks`: so many calls ask for machines of it."""

    spoils: Callable[[ThreePools], None]
    reason: str
    told: tuple[str, ...]
    about: str = "GCPNodeTemplate"
    asks: int = 0
    machines: int = 0
    cluster: str = "c1"


CASES: Mapping[str, Case] = {
    "GKE's autoscaling is on": Case(
        gke_sizes_it,
        "Autoscaling",
        (f"gcloud container node-pools update wrong {OF} --no-enable-autoscaling",),
    ),
    "another project": Case(
        is_in_another_project, "OtherProject", ("in project other-project", "set gcp.project to the project")
    ),
    "the node pool is gone": Case(
        is_deleted, "NoNodePool", ("there is no node pool 'wrong'", f"gcloud container node-pools list {OF}")
    ),
    "its groups are gone": Case(its_groups_are_deleted, "NoGroup", ("there is no instance group us-central1-a/",)),
    "no accelerator in the region": Case(
        its_zones_lack_the_accelerator,
        "LaunchFailed",
        ("NotOffered: ", "'a2-highgpu-1g' does not exist in zone", "`foreslice gcp check` names the zones"),
        "CapacityPool",
        asks=2,
    ),
    "a quota in the call (HTTP 403)": Case(
        quota(Way.CALL),
        "LaunchFailed",
        ("AcceleratorQuota: ", "Quota 'NVIDIA_A100_GPUS' exceeded", "IAM & Admin, Quotas"),
        "CapacityPool",
        asks=1,
    ),
    "a quota in the operation": Case(
        quota(Way.OPERATION),
        "LaunchFailed",
        ("AcceleratorQuota: ", "Quota 'NVIDIA_A100_GPUS' exceeded", "IAM & Admin, Quotas"),
        "CapacityPool",
        asks=1,
    ),
    "a stock-out in the operation": Case(
        operations_find_no_stock,
        "LaunchFailed",
        ("Shortage: ", "does not have enough resources available", "Admit more zones or types"),
        "CapacityPool",
        asks=2,
    ),
    "an Autopilot cluster": Case(
        is_on_autopilot, "Autopilot", ("cluster auto is an Autopilot cluster", "use a Standard cluster"), cluster="auto"
    ),
    "auto-repair is on": Case(
        gke_repairs_it,
        "AutoRepair",
        (f"gcloud container node-pools update wrong {OF} --no-enable-autorepair",),
        asks=1,
        machines=1,
    ),
}


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_one_pool_is_wrong_and_the_others_launch_in_the_same_pass(case: Case) -> None:
    simulation = three_pools(case.cluster)
    case.spoils(simulation)
    simulation.run(START)
    assert len(simulation.machines_of("right")) == 1
    assert simulation.ours_by_cloud()["aws"] == 1
    assert simulation.fake.calls["createInstances"] == 1 + case.asks
    assert len(simulation.machines_of("wrong")) == case.machines
    simulation.run(START + 2 * MINUTE)
    status, reason, message = simulation.condition(case.about, "wrong", "Ready")
    assert (status, reason) == ("False", case.reason)
    for text in case.told:
        assert text in message
        assert any(text in told for _, told in simulation.warnings(case.about, "wrong")), text
    assert "http://" not in message
    failures = list(simulation.failures())
    assert bool(failures) == (case.about == "CapacityPool")
    assert all(case.told[1] in failure for failure in failures)
    pool = simulation.condition("CapacityPool", "wrong", "Ready")
    assert pool[:2] == (
        ("True", "Accepted") if case.machines else ("False", "LaunchFailed" if case.asks else "NotInGroups")
    )
    for about in ("GCPNodeTemplate", "CapacityPool"):
        assert simulation.condition(about, "right", "Ready")[0] == "True"
        assert list(simulation.warnings(about, "right")) == []
    if not case.machines:
        assert [reason for reason, _ in simulation.warnings("Pod", "work-wrong")] == ["NotTriggerScaleUp"]


def is_deleted_with_its_machines(simulation: ThreePools) -> None:
    for group in simulation.groups_of("wrong"):
        for member in list(group.members.values()):
            simulation.fake.end(group, member)
    simulation.clock.advance(MINUTE)
    simulation.fake.project.catch_up()
    its_groups_are_deleted(simulation)
    is_deleted(simulation)


@pytest.mark.parametrize(
    ("spoils", "where", "reason", "machines"),
    [
        pytest.param(gke_sizes_it, "GCPNodeTemplate", "Autoscaling", 1, id="autoscaling"),
        pytest.param(is_in_another_project, "GCPNodeTemplate", "OtherProject", 1, id="another project"),
        pytest.param(is_deleted_with_its_machines, "GCPNodeTemplate", "NoNodePool", 0, id="deleted"),
        pytest.param(quota(Way.ATTEMPT), "CapacityPool", "LaunchFailed", 1, id="quota"),
    ],
)
def test_a_pool_that_goes_wrong_later_keeps_its_machines_and_starts_no_more(
    spoils: Callable[[ThreePools], None], where: str, reason: str, machines: int
) -> None:
    """What a node pool is, is read again every five minutes."""
    simulation = three_pools()
    simulation.run(START + 5 * MINUTE)
    running = {machine.id for machine in simulation.machines_of("wrong")}
    assert len(running) == 1
    spoils(simulation)
    simulation.run(START + 11 * MINUTE)
    simulation.add(scenario(POD_OF.replace("{name: work-NAME}", "{name: more}").replace("NAME", "wrong")))
    for name in ("right", "gpu-aws"):
        pod = POD_OF.replace("{name: work-NAME}", f"{{name: more-{name}}}").replace("NAME", name)
        simulation.add(scenario(pod))
    for minutes in (12, 13, 20):
        simulation.run(START + minutes * MINUTE)
    assert {machine.id for machine in simulation.machines_of("wrong")} == (running if machines else set())
    assert simulation.condition(where, "wrong", "Ready")[:2] == ("False", reason)
    assert any(why == reason for why, _ in simulation.warnings(where, "wrong"))
    assert len(simulation.machines_of("right")) == 2
    assert simulation.ours_by_cloud()["aws"] == 2


def no_api(simulation: ThreePools, _: pytest.MonkeyPatch) -> None:
    simulation.fake.disabled = True


def no_credentials(simulation: ThreePools, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tests.faults.both_clouds.gcp", expired)
    simulation.over_http = True
    simulation.new_loop()


def credentials_are_refused(simulation: ThreePools, _: pytest.MonkeyPatch) -> None:
    simulation.fake.expired = True


@pytest.mark.parametrize(
    ("spoils", "reason", "step"),
    [
        pytest.param(no_api, "Permission", "gcloud services enable compute.googleapis.com", id="no API"),
        pytest.param(no_credentials, "RefreshError", "gcloud auth application-default login", id="no credentials"),
        pytest.param(
            credentials_are_refused, "Permission", "gcloud auth application-default login", id="refused credentials"
        ),
    ],
)
def test_a_project_cannot_be_called_and_the_other_cloud_launches_in_the_same_pass(
    spoils: Callable[[ThreePools, pytest.MonkeyPatch], None], reason: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation = three_pools()
    spoils(simulation, monkeypatch)
    simulation.run(START)
    assert simulation.ours_by_cloud() == {"aws": 1, "gcp": 0}
    simulation.run(START + 2 * MINUTE)
    for name in KINDS:
        status, found, message = simulation.condition("GCPNodeTemplate", name, "Ready")
        assert (status, found) == ("Unknown", reason)
        assert step in message
        assert any(step in told for _, told in simulation.warnings("GCPNodeTemplate", name))
        status, found, message = simulation.condition("CapacityPool", name, "Ready")
        assert status == "False"
        assert step in message
        assert any(step in told for _, told in simulation.warnings("CapacityPool", name))
    assert simulation.condition("CapacityPool", "gpu-aws", "Ready")[0] == "True"


def test_nodes_of_a_surge_upgrade_are_told_and_never_ended() -> None:
    """GKE makes a node for each that it upgrades, under a name of its own, and takes the old one away."""
    simulation = three_pools()
    simulation.run(START + 10 * MINUTE)
    (ours,) = simulation.machines_of("wrong")
    group = simulation.fake.project.groups[ours.zone, ours.group]
    foreign = simulation.fake.project.stranger(f"{group.base}-x7z2", group.zone, group.machine_type, group=group.name)
    simulation.run(START + 15 * MINUTE)
    assert simulation.condition("CapacityPool", "wrong", "Coexistence")[0] == "True"  # it might be one of ours
    simulation.fake.end(group, group.members[ours.name])
    for minutes in (20, 25, 30, 35):  # a controller looks every few minutes, also when nothing happens
        simulation.run(START + minutes * MINUTE)
    status, reason, message = simulation.condition("CapacityPool", "wrong", "Coexistence")
    assert (status, reason) == ("False", "ForeignNodes")
    assert foreign.name in message
    assert any(foreign.name in told for why, told in simulation.warnings("CapacityPool", "wrong") if why == reason)
    assert simulation.fake.project.status(foreign) == "RUNNING"
    assert simulation.fake.calls["deleteInstances"] == 0
    assert simulation.condition("CapacityPool", "right", "Coexistence")[0] == "True"
    # The pool goes on: one pod uses the foreign node, and the other one gets a machine of ours.
    two = '{name: more, annotations: {simulation.foreslice.dev/copies: "2"}}'
    simulation.add(scenario(POD_OF.replace("{name: work-NAME}", two).replace("NAME", "wrong")))
    simulation.run(START + 40 * MINUTE)
    assert len(simulation.machines_of("wrong")) == 1
