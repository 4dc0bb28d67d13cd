"""Verdicts on GCPNodeTemplates: what they stand for, and the command that corrects what is wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest

from instance_catalog.dataclass import replace
from providers.contract import OfferingKey
from providers.errors import TemplateError
from providers.gcp.node_template.template import GroupRef
from tests.fakes.gce.gke import TPU_LABELS, NodePool
from tests.fakes.gce.state import NUMBER, PROJECT, Group
from tests.gcp import A2, A3, A3_SPOT, ZONE, Rig, request, status

REGION = f"projects/{PROJECT}/regions/us-central1"
PLACE = "--cluster c1 --location us-central1 --project gpu-project"
OF = f"h100 {PLACE}"


def test_a_template_that_is_right() -> None:
    found = status(Rig())
    assert found.faults == ()
    assert found.zones == (ZONE,)
    assert [row["nodePool"] for row in found.resolved["groups"]] == ["", "h100", ""]
    assert {row["capacityType"] for row in found.resolved["groups"]} == {"on-demand", "spot"}
    assert found.groups == {A3, A2, A3_SPOT}


@pytest.mark.parametrize(
    ("change", "kind", "step"),
    [
        ({"autoscaling": True}, "Autoscaling", f"gcloud container node-pools update {OF} --no-enable-autoscaling"),
        ({"auto_repair": True}, "AutoRepair", f"gcloud container node-pools update {OF} --no-enable-autorepair"),
        (
            {"driver": "LATEST", "spot": True, "reservation": "march", "policy": "near", "max_pods": 200}
            | {"taints": (("team", "a", "NO_SCHEDULE"),)},
            "DriverInstalled",
            f"gcloud container node-pools create NEW {PLACE} --num-nodes 0 "
            f"--no-enable-autorepair --spot --node-locations {ZONE} --machine-type a3-highgpu-8g "
            "--accelerator type=nvidia-h100-80gb,count=8,gpu-driver-version=disabled "
            "--reservation-affinity specific --reservation march --placement-policy near --max-pods-per-node 200 "
            "--node-labels cloud.google.com/gke-nvidia-gpu-dra-driver=true,"
            "gke-no-default-nvidia-gpu-device-plugin=true,nvidia.com/gpu.present=true "
            "--node-taints team=a:NoSchedule",
        ),
        (
            {"driver": ""},
            "DriverInstalled",
            f"while it has no nodes: gcloud container node-pools update {OF} "
            "--accelerator type=nvidia-h100-80gb,count=8,gpu-driver-version=disabled; nodes that it has would be",
        ),
        (
            {"labels": {"team": "research", "nvidia.com/gpu.present": "true"}},
            "LabelsMissing",
            f"gcloud container node-pools update {OF} --node-labels="
            "cloud.google.com/gke-nvidia-gpu-dra-driver=true,gke-no-default-nvidia-gpu-device-plugin=true,"
            "nvidia.com/gpu.present=true,team=research",
        ),
        (
            {"machine_type": "ct6e-standard-8t", "labels": {"team": "research"}},
            "LabelsMissing",
            f"update {OF} --node-labels=cloud.google.com/gke-tpu-dra-driver=true,team=research",
        ),
        ({"queued": True}, "QueuedProvisioning", "without --enable-queued-provisioning"),
        ({"queued": True}, "QueuedProvisioning", "ProvisioningRequest of class queued-provisioning.gke.io"),
        ({"queued": True}, "QueuedProvisioning", "`foreslice gcp provisioning-request -f FILES` prints it"),
        (
            {"machine_type": "ct6e-standard-4t", "tpu_topology": "4x4", "labels": TPU_LABELS},
            "MultiHostSlice",
            f"--node-locations {ZONE} --machine-type ct6e-standard-4t --tpu-topology 4x4 --max-pods-per-node 110",
        ),
        (
            {"machine_type": "tpu7x-standard-4t", "policy": "p", "labels": TPU_LABELS},
            "MultiHostSlice",
            "--machine-type tpu7x-standard-4t --placement-policy p --max-pods-per-node 110",
        ),
    ],
)
def test_a_pool_that_is_wrong_comes_with_the_command(change: dict[str, object], kind: str, step: str) -> None:
    rig = Rig()
    rig.fake.clusters.pools["h100"] = replace(rig.fake.clusters.pools["h100"], **change)
    (fault,) = status(rig).faults
    assert (fault.field, fault.kind, fault.certain) == ("nodePools", kind, True)
    assert step in fault.next_step


@pytest.mark.parametrize(
    "change",
    [
        {"machine_type": "ct6e-standard-4t", "tpu_topology": "2x2", "labels": TPU_LABELS},
        {"machine_type": "ct6e-standard-8t", "tpu_topology": "2x4", "labels": TPU_LABELS},
        {"policy": "near-each-other"},
    ],
)
def test_pools_whose_machines_are_made_one_by_one(change: dict[str, object]) -> None:
    rig = Rig()
    rig.fake.clusters.pools["h100"] = replace(rig.fake.clusters.pools["h100"], **change)
    assert status(rig).faults == ()


def test_what_does_not_exist() -> None:
    rig = Rig()
    rig.fake.clusters.pools.clear()
    rig.templates.found = replace(rig.templates.found, groups=(GroupRef(ZONE, "gone"),))
    found = status(rig)
    assert [fault.kind for fault in found.faults] == ["NoNodePool", "NoGroup"]
    assert found.zones == ()


def test_a_base_name_without_room_and_a_group_that_is_not_supported() -> None:
    rig = Rig()
    rig.group(A3).base = "g" * 53
    rig.group(A3).model = "FLEX_START"
    assert [fault.kind for fault in status(rig).faults] == ["NotSupported", "NameTooLong"]


@pytest.mark.parametrize("base", ["vm-###", "vm-#[7]"])
def test_a_base_name_that_google_numbers(base: str) -> None:
    rig = Rig()
    rig.group(A3).base = base
    (fault,) = status(rig).faults
    assert fault.kind == "NumberedNames"
    assert f"{base} lets the group number its machines" in fault.message
    assert "--base-instance-name" in fault.next_step
    with pytest.raises(TemplateError, match="number its machines"):
        rig.provider.launch(request())
    assert rig.fake.calls["createInstances"] == 0


def test_a_base_name_without_room_hides_no_other_group() -> None:
    rig = Rig()
    rig.group(A3).base = "g" * 53
    assert status(rig).groups == {A2, A3_SPOT}
    with pytest.raises(TemplateError, match="too long to add the owner"):
        rig.provider.launch(request())
    base = "gke-c1-other-0a1b2c3d"
    rig.fake.project.add(Group(f"{base}-grp", ZONE, base, A3.instance_type))
    found = rig.templates.found
    rig.templates.found = replace(found, groups=(*found.groups, GroupRef(ZONE, f"{base}-grp")))
    assert status(rig).groups == {A2, A3, A3_SPOT}
    assert len(rig.provider.launch(request()).instances) == 1


@pytest.mark.parametrize(
    ("policy", "option"), [("", ""), ("near", f" --workload-policy {REGION}/resourcePolicies/near")]
)
def test_a_group_in_bulk_mode_comes_with_the_command_that_makes_another(policy: str, option: str) -> None:
    rig = Rig()
    group = rig.group(A3_SPOT)
    group.bulk, group.policy = True, policy
    found = status(rig)
    (fault,) = found.faults
    assert (fault.field, fault.kind, fault.certain) == ("groups", "BulkMode", True)
    assert fault.next_step.endswith(
        f"gcloud compute instance-groups managed create NEW --zone {ZONE} --template "
        f"{REGION}/instanceTemplates/{group.name} --size 0 --target-size-policy-mode individual "
        f"--default-action-on-vm-failure do-nothing{option}"
    )
    assert found.groups == {A3, A2}
    assert rig.provider.launch(request("a", offerings=(A3_SPOT,))).instances == ()
    assert len(rig.provider.launch(request("b", batch="b2")).instances) == 1
    (finding,) = [one for one in rig.provider.check() if not one.passed]
    assert finding.next_step == fault.next_step


def test_a_pool_of_somebody_elses_cluster() -> None:
    rig = Rig()
    rig.fake.clusters.name = "c2"
    (fault,) = status(rig).faults
    assert fault.kind == "NoCluster"


def test_a_group_of_another_project_is_not_taken_for_ours() -> None:
    """A group of ours has the same name and zone."""
    rig = Rig()
    pool = rig.fake.clusters.pools["h100"]
    pool.project = "other-project"
    (fault,) = status(rig).faults
    assert (fault.kind, fault.certain) == ("OtherProject", True)
    assert "in project other-project" in fault.message
    assert "gcp.project" in fault.next_step
    with pytest.raises(TemplateError, match="other-project"):
        rig.provider.launch(request())
    assert rig.fake.calls["createInstances"] == 0
    pool.project = NUMBER
    rig.restart()
    assert status(rig).faults == ()


def test_what_may_not_be_read_says_nothing_about_the_template() -> None:
    rig = Rig()
    rig.fake.denied.add("container.get")
    (fault,) = status(rig).faults
    assert (fault.kind, fault.certain) == ("Permission", False)


@pytest.mark.parametrize("sized", [(), ("h100",), ("second",), ("h100", "second")])
def test_a_node_pool_that_gke_sizes_hides_no_other(sized: tuple[str, ...]) -> None:
    """Two node pools start the same machines; whichever is listed first, the one that is right is used."""
    rig = Rig()
    base = "gke-c1-second-0a1b2c3d"
    rig.fake.project.add(Group(f"{base}-grp", ZONE, base, A3.instance_type))
    rig.fake.clusters.pools["second"] = NodePool(((ZONE, f"{base}-grp"),))
    rig.templates.found = replace(rig.templates.found, node_pools=("h100", "second"))
    for name in sized:
        rig.fake.clusters.pools[name].autoscaling = True
    found = status(rig)
    assert [fault.kind for fault in found.faults] == ["Autoscaling"] * len(sized)
    if len(sized) == 2:
        assert found.groups == {A2, A3_SPOT}
        with pytest.raises(TemplateError, match="autoscaling is on for node pool h100"):
            rig.provider.launch(request())
    else:
        assert found.groups == {A2, A3, A3_SPOT}
        assert len(rig.provider.launch(request()).instances) == 1


def test_a_reservation_that_may_not_be_read_hides_no_group() -> None:
    rig = Rig()
    rig.fake.owners.add("owner")
    rig.fake.unreadable.add("owner")
    held = rig.hold(starts_in=timedelta(0), lasts=timedelta(days=1), future="", owner="owner")
    found = status(rig)
    assert [(fault.kind, fault.certain) for fault in found.faults] == [("Permission", False)]
    assert found.groups == {A2, A3, A3_SPOT, held}
    rig.fake.denied.add("instanceTemplates.get")
    assert status(rig).groups is None  # what a group starts that cannot be read is not known


def test_a_check_names_what_is_missing() -> None:
    rig = Rig()
    assert all(finding.passed for finding in rig.provider.check())
    rig.fake.clusters.pools["h100"] = NodePool(rig.fake.clusters.pools["h100"].groups, autoscaling=True)
    rig.restart()
    found = {finding.subject: finding for finding in rig.provider.check()}
    assert found["project"].passed
    assert not found["GCPNodeTemplate gpu: nodePools"].passed
    rig.fake.denied.add("instances.aggregatedList")
    rig.restart()
    (finding,) = rig.provider.check()
    assert (finding.subject, finding.passed) == ("project", False)
    assert "deploy/gcp" in finding.next_step


@pytest.mark.parametrize(
    ("change", "value", "kind", "step"),
    [
        ("flexible", True, "SeveralMachineTypes", "--instance-selection"),
        ("canary", True, "SeveralVersions", "finish the update"),
        ("autoscaled", True, "Autoscaling", f"stop-autoscaling GROUP --zone {ZONE} --project {PROJECT}"),
        (
            "standby",
            "SCALE_OUT_POOL",
            "StandbyPool",
            f"update GROUP --zone {ZONE} --project {PROJECT} --standby-policy-mode manual",
        ),
        ("preemptible", True, "Preemptible", "--spot"),
    ],
)
def test_a_group_is_refused_whose_machines_are_not_those_that_are_asked_for(
    change: str, value: bool | str, kind: str, step: str
) -> None:
    """Google chooses what they are, which of them stay, or when they end."""
    rig = Rig()
    setattr(rig.group(A2), change, value)
    found = status(rig)
    assert [(fault.kind, fault.certain) for fault in found.faults] == [(kind, True)]
    assert step.replace("GROUP", rig.group(A2).name) in found.faults[0].next_step
    assert found.groups == {A3, A3_SPOT}
    assert rig.provider.launch(request(offerings=(A2,))).instances == ()


def test_stopped_machines_in_a_group_keep_nothing_from_it() -> None:
    """Who stops a machine by its group gives this a standby pool, from which it starts nothing by itself."""
    rig = Rig()
    rig.group(A2).standby = "MANUAL"
    assert status(rig).faults == ()


@pytest.mark.parametrize("regional", [False, True])
def test_an_instance_template_may_be_another_projects(regional: bool) -> None:
    rig = Rig()
    group = rig.group(A2)
    group.template_of, group.regional = "images", regional
    rig.fake.owners.add("images")
    assert status(rig).groups == {A3, A2, A3_SPOT}


@pytest.mark.parametrize(
    ("phase", "stays"), [("NODE_POOL_SOAKING", A2), ("ROLLBACK_STARTED", A3)], ids=["forward", "back"]
)
def test_of_a_blue_green_upgrade_only_the_groups_that_stay_are_used(phase: str, stays: OfferingKey) -> None:
    """GKE empties the others and deletes them."""
    rig = Rig()
    both = tuple((rig.group(one).zone, rig.group(one).name) for one in (A3, A2))
    rig.fake.clusters.pools["h100"] = NodePool(both, phase=phase)
    rig.templates.found = replace(rig.templates.found, groups=())
    found = status(rig)
    assert (found.faults, found.groups) == ((), {stays})


def test_nothing_is_launched_in_a_node_pool_that_gke_deletes() -> None:
    rig = Rig()
    rig.fake.clusters.pools["h100"].status = "STOPPING"
    found = status(rig)
    assert [fault.kind for fault in found.faults] == ["PoolEnds"]
    assert found.groups == {A2, A3_SPOT}
    with pytest.raises(TemplateError, match="deleting node pool h100"):
        rig.provider.launch(request())


def test_a_group_that_replaces_machines_by_itself_is_told_and_used() -> None:
    """Google's names are none of ours: what it makes in their place would run for ever. GKE updates its own groups."""
    rig = Rig()
    rig.group(A3).updates = rig.group(A2).updates = "PROACTIVE"
    (fault,) = (found := status(rig)).faults
    assert (fault.kind, found.groups) == ("ProactiveUpdates", {A2, A3, A3_SPOT})
    change = f"managed update {rig.group(A2).name} --zone {ZONE} --project {PROJECT} --update-policy-type opportunistic"
    assert fault.next_step.endswith(change)
