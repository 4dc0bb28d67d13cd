"""Groups of A4X: each is one NVLink domain of at most 18 machines, if its workload policy says so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.labels import GCE_TOPOLOGY_BLOCK as BLOCK
from instance_catalog.kubernetes.labels import GCE_TOPOLOGY_SUBBLOCK as SUBBLOCK
from instance_catalog.types.instance_type import CapacityType
from providers.contract import LaunchAnswer, OfferingKey
from providers.errors import TemplateError
from providers.gcp.node_template.placement import shared_labels
from providers.gcp.node_template.template import GroupRef
from providers.registered import Room
from tests.fakes.gce.errors import CUT_BEFORE, refused
from tests.fakes.gce.gke import NodePool
from tests.fakes.gce.holdings import Holding
from tests.fakes.gce.state import PROJECT, Group
from tests.gcp import A3, ZONE, Rig, request, status

RIGHT = {"type_": "HIGH_THROUGHPUT", "accelerator_topology": "1x72"}
A4X = OfferingKey("a4x-highgpu-4g", ZONE, CapacityType.CAPACITY_BLOCK, f"zones/{ZONE}/futureReservations/rack")
MAKE = (
    "gcloud compute resource-policies create workload-policy foreslice-1x72 --type high-throughput "
    f"--accelerator-topology 1x72 --region us-central1 --project {PROJECT}; "
)


def name(number: int) -> str:
    return f"gke-c1-rack{number}-0a1b2c3d-grp"


def rig_with(groups: int = 1, *, policy: str = "nvl72", machine_type: str = A4X.instance_type) -> Rig:
    """Groups that start machines of a reservation of two sub-blocks, with a policy that is right."""
    rig = Rig()
    now = rig.clock.now()
    held = Holding(
        "rack-res", ZONE, machine_type, 36, created=now, starts=now, ends=now + timedelta(days=9), future="rack"
    )
    rig.fake.project.holdings.append(held)
    rig.fake.project.policies["nvl72"] = dict(RIGHT)
    for number in range(groups):
        base = name(number).removesuffix("-grp")
        group = Group(name(number), ZONE, base, machine_type, "RESERVATION_BOUND", reservation="rack-res")
        group.policy = policy
        rig.fake.project.add(group)
    found = rig.templates.found
    refs = tuple(GroupRef(ZONE, name(number)) for number in range(groups))
    rig.templates.found = replace(found, groups=(*found.groups, *refs))
    rig.restart()
    return rig


def group(rig: Rig, number: int = 0) -> Group:
    return rig.fake.project.groups[ZONE, name(number)]


def launch(rig: Rig, batch: str, count: int, *, minimum: int = 1) -> LaunchAnswer:
    nodes = [f"{batch}-{number}" for number in range(count)]
    answer = rig.provider.launch(request(*nodes, batch=batch, offerings=(A4X,), minimum=minimum))
    rig.settle()
    return answer


def sizes(rig: Rig) -> list[int]:
    found = (group(rig, number) for number in range(9) if (ZONE, name(number)) in rig.fake.project.groups)
    return [len(one.members) for one in found]


def test_the_machines_of_a_gang_are_in_one_group_whatever_has_to_be_skipped() -> None:
    rig = rig_with(3)
    assert len(launch(rig, "b1", 12, minimum=12).instances) == 12
    second = launch(rig, "b2", 10, minimum=10)
    assert (len(second.instances), second.failures, sizes(rig)) == (10, (), [12, 10, 0])
    assert len(launch(rig, "b3", 6, minimum=6).instances) == 6
    assert sizes(rig) == [18, 10, 0]


def test_what_need_not_come_together_fills_a_domain() -> None:
    rig = rig_with(2)
    answer = launch(rig, "b1", 20)
    assert (len(answer.instances), answer.missing, sizes(rig)) == (18, ("b1-18", "b1-19"), [18, 0])
    assert len(launch(rig, "b2", 2).instances) == 2
    assert sizes(rig) == [18, 2]


def test_a_repetition_finds_what_the_domain_took() -> None:
    rig = rig_with(2)
    first = launch(rig, "b1", 20)
    rig.restart()
    again = launch(rig, "b1", 20)
    assert ([one.id for one in again.instances], again.missing) == ([one.id for one in first.instances], first.missing)
    assert sizes(rig) == [18, 0]


def test_no_more_than_a_domain_has_is_asked_for() -> None:
    rig = rig_with(2)
    answer = launch(rig, "b1", 19, minimum=19)
    assert (answer.instances, [one.error.code for one in answer.failures]) == ((), ["DomainTooSmall"])
    assert "at most 18 machines" in answer.failures[0].error.next_step
    assert len(launch(rig, "b2", 18, minimum=18).instances) == 18
    full = launch(rig, "b3", 1)
    assert len(full.instances) == 1
    assert sizes(rig) == [18, 1]
    assert rig.fake.calls["createInstances"] == 2


def test_what_the_cloud_lacks_is_told_before_what_has_no_room() -> None:
    rig = rig_with(3)
    launch(rig, "b1", 17)
    rig.fake.project.errors[A4X.instance_type, ZONE, "RESERVATION_BOUND"] = ("ZONE_RESOURCE_POOL_EXHAUSTED", "none")
    answer = launch(rig, "b2", 2, minimum=2)
    assert answer.instances == ()
    assert [one.error.code for one in answer.failures] == ["ZONE_RESOURCE_POOL_EXHAUSTED"]


def test_machines_that_end_make_room() -> None:
    rig = rig_with()
    ids = [one.id for one in launch(rig, "b1", 18).instances]
    assert launch(rig, "b2", 1).instances == ()
    rig.provider.terminate(ids[:3])
    rig.settle()
    assert len(launch(rig, "b3", 3, minimum=3).instances) == 3


def test_a_domain_is_never_asked_by_a_resize_request() -> None:
    rig = rig_with()
    rig.queue_gangs()
    rig.restart()
    assert len(launch(rig, "b1", 4, minimum=4).instances) == 4
    assert (rig.fake.calls["resizeRequests.insert"], rig.fake.calls["createInstances"]) == (0, 1)


def test_the_status_and_the_check_say_what_a_group_is() -> None:
    rig = rig_with()
    found = status(rig)
    rows = {row["name"]: row.get("placement", "") for row in found.resolved["groups"]}
    assert found.faults == ()
    assert rows.pop(name(0)) == "one NVLink domain of at most 18 machines"
    assert set(rows.values()) == {""}
    shown = next(one for one in rig.provider.check() if one.subject == "GCPNodeTemplate gpu")
    assert f"{ZONE}/{name(0)} (one NVLink domain of at most 18 machines)" in shown.message


def test_a_group_without_a_policy_comes_with_the_command() -> None:
    rig = rig_with(policy="")
    (fault,) = status(rig).faults
    assert (fault.field, fault.kind) == ("groups", "NoWorkloadPolicy")
    assert fault.next_step == (
        f"{MAKE}gcloud compute instance-groups managed update {name(0)} --zone {ZONE} --project {PROJECT} "
        f"--workload-policy projects/{PROJECT}/regions/us-central1/resourcePolicies/foreslice-1x72"
    )
    (finding,) = [one for one in rig.provider.check() if not one.passed]
    assert (finding.subject, finding.next_step) == ("GCPNodeTemplate gpu: groups", fault.next_step)
    assert launch(rig, "b1", 2).instances == ()
    rig.fake.project.member(group(rig), f"{group(rig).base}-x1yz")
    assert status(rig).faults[0].next_step.endswith("; only once the group has no machines (now 1)")


def test_a_node_pool_is_made_with_its_policy() -> None:
    rig = rig_with(policy="")
    rig.fake.clusters.pools["rack"] = NodePool(((ZONE, name(0)),), machine_type=A4X.instance_type)
    found = rig.templates.found
    rig.templates.found = replace(found, node_pools=(*found.node_pools, "rack"), groups=found.groups[:-1])
    (fault,) = status(rig).faults
    assert (fault.field, fault.kind) == ("nodePools", "NoWorkloadPolicy")
    assert fault.next_step == (
        f"{MAKE}gcloud container node-pools create NEW --cluster c1 --location us-central1 --project {PROJECT} "
        f"--num-nodes 0 --no-enable-autorepair --node-locations {ZONE} --machine-type a4x-highgpu-4g "
        "--accelerator type=nvidia-h100-80gb,count=8,gpu-driver-version=disabled --placement-policy foreslice-1x72 "
        "--max-pods-per-node 110 --node-labels cloud.google.com/gke-nvidia-gpu-dra-driver=true,"
        "gke-no-default-nvidia-gpu-device-plugin=true,nvidia.com/gpu.present=true"
    )
    rig.fake.clusters.pools["rack"] = replace(rig.fake.clusters.pools["rack"], policy="nvl72")
    assert status(rig).faults == ()
    group(rig).policy = "nvl72"
    assert len(launch(rig, "b1", 18, minimum=18).instances) == 18


def test_a_domain_that_gke_sizes_is_passed_over() -> None:
    rig = rig_with(2)
    pools = rig.fake.clusters.pools
    for number in range(2):
        pools[f"rack{number}"] = NodePool(((ZONE, name(number)),), autoscaling=number == 0)
    found = rig.templates.found
    rig.templates.found = replace(found, node_pools=("rack0", "rack1"), groups=())
    rig.restart()
    assert len(launch(rig, "b1", 2, minimum=2).instances) == 2
    assert sizes(rig) == [0, 2]
    pools["rack1"].autoscaling = True
    rig.restart()
    with pytest.raises(TemplateError, match="autoscaling is on for node pool rack0"):
        launch(rig, "b2", 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"type_": "HIGH_AVAILABILITY"}, "the type HIGH_AVAILABILITY, the accelerator topology 1x72"),
        ({"accelerator_topology": "1x64"}, "the accelerator topology 1x64"),
        (
            {"accelerator_topology": "", "max_topology_distance": "SUBBLOCK"},
            "the type HIGH_THROUGHPUT, the accelerator topology none",
        ),
        ({"accelerator_topology_mode": "PROVISION_ONLY"}, "the mode PROVISION_ONLY"),
    ],
)
def test_another_policy_is_refused(change: dict[str, str], said: str) -> None:
    rig = rig_with()
    rig.fake.project.policies["nvl72"] |= change
    (fault,) = status(rig).faults
    assert (fault.kind, fault.next_step.startswith(MAKE)) == ("WorkloadPolicy", True)
    assert said in fault.message
    assert said in launch(rig, "b1", 2).failures[0].error.message
    assert sizes(rig) == [0]


@pytest.mark.parametrize(
    ("deleted", "kind", "step"),
    [(True, "NoWorkloadPolicy", MAKE), (False, "Permission", "deploy/gcp/controller-role.yaml")],
)
def test_a_policy_that_is_deleted_or_may_not_be_read_stops_only_its_groups(deleted: bool, kind: str, step: str) -> None:
    rig = rig_with()
    rig.fake.project.policies["other"] = rig.fake.project.policies.pop("nvl72") if deleted else dict(RIGHT)
    if not deleted:
        rig.fake.denied.add("resourcePolicies.get")
    found = status(rig)
    (fault,) = found.faults
    assert (fault.kind, fault.certain) == (kind, True)
    assert step in fault.next_step
    assert found.groups is not None
    assert A4X not in found.groups
    assert A3 in found.groups
    assert launch(rig, "b1", 2).instances == ()
    assert len(rig.provider.launch(request("a", batch="b2")).instances) == 1
    rig.fake.denied.clear()
    rig.fake.project.policies["nvl72"] = dict(RIGHT)
    assert status(rig).faults == ()
    assert len(launch(rig, "b3", 2).instances) == 2


def test_a_policy_that_cannot_be_read_now_says_nothing_of_the_template() -> None:
    rig = rig_with()
    rig.fake.faults.inject("resourcePolicies.get", *[refused("backendError", 500)] * 9)
    found = status(rig)
    assert [fault.certain for fault in found.faults] == [False]
    assert found.groups is None


@pytest.mark.parametrize(
    ("distance", "shown"),
    [
        ("SUBBLOCK", "all machines in the same subblock"),
        ("BLOCK", "all machines in the same block"),
        ("CLUSTER", "all machines in the same cluster"),
        ("", None),
    ],
)
def test_how_far_apart_a_policy_lets_other_machines_be_is_shown(distance: str, shown: str | None) -> None:
    rig = rig_with(policy="near", machine_type="a3-ultragpu-8g")
    rig.fake.project.policies["near"] = {
        "type_": "HIGH_THROUGHPUT",
        **({"max_topology_distance": distance} if distance else {}),
    }
    (row,) = (row for row in status(rig).resolved["groups"] if row["name"] == name(0))
    assert row.get("placement") == shown


@pytest.mark.parametrize(
    ("policy", "same"),
    [
        ({"type_": "HIGH_THROUGHPUT", "max_topology_distance": "SUBBLOCK"}, {BLOCK, SUBBLOCK}),
        ({"type_": "HIGH_THROUGHPUT", "max_topology_distance": "BLOCK"}, {BLOCK}),
        ({"type_": "HIGH_THROUGHPUT", "max_topology_distance": "CLUSTER"}, set()),
        ({"type_": "HIGH_THROUGHPUT"}, set()),  # a best effort
        ({"type_": "HIGH_AVAILABILITY", "max_topology_distance": "BLOCK"}, set()),
    ],
)
def test_what_a_distance_makes_equal_on_all_nodes_of_a_node_pool(policy: dict[str, str], same: set[str]) -> None:
    rig = rig_with(policy="near", machine_type="a3-ultragpu-8g")
    rig.fake.project.policies["near"] = policy
    group = next(one for one in rig.fake.project.groups.values() if one.name == name(0))
    rig.fake.clusters.pools["near"] = NodePool(((ZONE, group.name),), machine_type=group.machine_type)
    rig.templates.found = replace(rig.templates.found, node_pools=("near",), groups=())
    (found,) = status(rig).registers.values()
    assert found.same == same
    assert found.beside(found).same == frozenset()  # two groups may be in two blocks
    rig.templates.found = replace(rig.templates.found, groups=(GroupRef(ZONE, group.name),))
    assert [one.same for one in status(rig).registers.values()] == [frozenset()]  # nor is one of no node pool near it


def test_a_group_that_cannot_be_read_may_be_elsewhere() -> None:
    rig = rig_with(policy="near", machine_type="a3-ultragpu-8g")
    rig.fake.project.policies["near"] = {"type_": "HIGH_THROUGHPUT", "max_topology_distance": "BLOCK"}
    rig.fake.clusters.pools["near"] = NodePool(((ZONE, name(0)),), machine_type="a3-ultragpu-8g")
    rig.templates.found = replace(rig.templates.found, node_pools=("near",), groups=(GroupRef(ZONE, "other"),))
    rig.fake.faults.inject("instanceGroupManagers.get", CUT_BEFORE)
    found = status(rig)
    assert found.groups is None
    assert all(one.same == frozenset() for one in found.registers.values())


def test_the_nodes_of_an_nvlink_domain_are_in_one_sub_block() -> None:
    assert shared_labels("", 18) == {BLOCK, SUBBLOCK}
    assert shared_labels("", 0) == frozenset()


@pytest.mark.parametrize("trouble", ["denied", "fails", "deleted"])
def test_a_policy_that_no_plan_depends_on_refuses_nothing(trouble: str) -> None:
    rig = rig_with(policy="near", machine_type="a3-ultragpu-8g")
    if trouble == "denied":
        rig.fake.denied.add("resourcePolicies.get")
    elif trouble == "fails":
        rig.fake.faults.inject("resourcePolicies.get", *[refused("backendError", 500)] * 9)
    (row,) = (row for row in status(rig).resolved["groups"] if row["name"] == name(0))
    assert "placement" not in row
    assert status(rig).faults == ()


def test_the_status_says_how_much_room_the_domains_have() -> None:
    rig = rig_with(2)
    launch(rig, "b1", 12, minimum=12)
    assert status(rig).rooms == {A4X: Room(36)}
