"""Quotas of a project: however late Google says no, what rests, and what a person does about it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.cloud import compute_v1

from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from providers.errors import (
    AcceleratorQuotaError,
    AccountLimitError,
    BackoffScope,
    FamilyQuotaError,
    ProviderError,
    QuotaError,
    RegionQuotaError,
    WaitingError,
)
from providers.gcp.errors import of_code
from providers.gcp.node_template.template import GroupRef
from providers.gcp.quotas import quota_of
from tests.fakes.gce.quotas import Way
from tests.fakes.gce.state import Group
from tests.gcp import A2, A3, A3_SPOT, FLEX, V6E, ZONE, Rig, request, whole

EVERY_WAY = pytest.mark.parametrize("way", list(Way), ids=lambda way: way.value)


def refused(rig: Rig, offering: OfferingKey, *nodes: str) -> ProviderError:
    """The one error of a launch that gets nothing."""
    answer = rig.provider.launch(request(*nodes, offerings=(offering,)))
    assert answer.instances == ()
    (failure,) = answer.failures
    assert all(not group.members for group in rig.fake.project.groups.values())
    return failure.error


@EVERY_WAY
def test_a_quota_of_gpus_rests_machines_with_these_and_names_itself(way: Way) -> None:
    rig = Rig()
    rig.fake.project.quotas.limits["NVIDIA_H100_GPUS"] = 4
    rig.fake.project.quotas.way = way
    error = refused(rig, A3)
    assert (type(error), error.scope) == (AcceleratorQuotaError, BackoffScope.OFFERING)
    assert "'NVIDIA_H100_GPUS' exceeded.  Limit: 4.0 in region us-central1" in error.message
    assert error.code == ("quotaExceeded" if way is Way.CALL else "QUOTA_EXCEEDED")
    assert "IAM & Admin, Quotas" in error.next_step
    assert rig.fake.project.machines == {}


@EVERY_WAY
def test_a_quota_of_cpus_rests_the_region_that_google_names(way: Way) -> None:
    rig = Rig()
    rig.fake.project.quotas.limits["CPUS"] = 100
    rig.fake.project.quotas.way = way
    error = refused(rig, A3)
    assert (type(error), error.scope) == (RegionQuotaError, BackoffScope.OFFERING)
    assert "another region or capacity type" in error.next_step
    assert "IAM & Admin, Quotas" in error.next_step


@pytest.mark.parametrize(
    "text",
    [
        "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.",
        "Quota exceeded, metric name = compute.googleapis.com/cpus, dimensions = map[region:us-central1]",
    ],
)
def test_the_region_of_a_quota_is_the_one_that_the_message_names(text: str) -> None:
    assert type(of_code("launch", "QUOTA_EXCEEDED", text)) is RegionQuotaError
    quota = quota_of(text)
    assert quota is not None
    assert quota.region == "us-central1"


@pytest.mark.parametrize("text", ["Quota 'CPUS' exceeded.  Limit: 24.0 globally.", "Quota 'CPUS' exceeded."])
def test_a_quota_without_a_region_rests_the_capacity_type(text: str) -> None:
    error = of_code("launch", "QUOTA_EXCEEDED", text)
    assert (type(error), error.scope) == (QuotaError, BackoffScope.QUOTA)


@EVERY_WAY
def test_a_quota_of_the_project_rests_the_template(way: Way) -> None:
    rig = Rig()
    rig.fake.project.quotas.limits["GPUS_ALL_REGIONS"] = 0
    rig.fake.project.quotas.way = way
    error = refused(rig, A3)
    assert (type(error), error.scope) == (AccountLimitError, BackoffScope.TEMPLATE)
    assert "GPUS_ALL_REGIONS" in error.next_step


@EVERY_WAY
def test_spot_machines_have_a_quota_of_their_own(way: Way) -> None:
    rig = Rig()
    limits = rig.fake.project.quotas.limits
    limits |= {"NVIDIA_H100_GPUS": 8, "PREEMPTIBLE_NVIDIA_H100_GPUS": 0}
    rig.fake.project.quotas.way = way
    assert "'PREEMPTIBLE_NVIDIA_H100_GPUS'" in refused(rig, A3_SPOT).message
    assert len(rig.provider.launch(request(batch="b2")).instances) == 1
    del limits["PREEMPTIBLE_NVIDIA_H100_GPUS"]  # a project without one uses the other, which is full
    again = rig.provider.launch(request(batch="b3", offerings=(A3_SPOT,)))
    assert "'NVIDIA_H100_GPUS'" in again.failures[0].error.message


def test_of_several_machines_those_within_the_quota_start() -> None:
    """Late, each attempt is refused by itself; at once, the call is refused as a whole."""
    rig = Rig()
    rig.fake.project.quotas.limits["NVIDIA_H100_GPUS"] = 16
    answer = rig.provider.launch(request("a", "b", "c"))
    assert (len(answer.instances), answer.missing) == (2, ("c",))
    assert [type(one.error) for one in answer.failures] == [AcceleratorQuotaError]
    rig = Rig()
    rig.fake.project.quotas.limits["NVIDIA_H100_GPUS"] = 16
    rig.fake.project.quotas.way = Way.CALL
    assert refused(rig, A3, "a", "b", "c").code == "quotaExceeded"


def test_capacity_that_is_reserved_needs_no_quota() -> None:
    rig = Rig()
    rig.fake.project.quotas.limits |= {"NVIDIA_H100_GPUS": 0, "CPUS": 0}
    offering = rig.hold(starts_in=timedelta(0), lasts=timedelta(days=1))
    assert len(rig.provider.launch(request(offerings=(offering,))).instances) == 1


def test_a_request_that_waits_for_a_quota_says_so_and_starts_when_it_is_raised() -> None:
    rig = Rig()
    rig.flex()
    rig.fake.project.quotas.limits["PREEMPTIBLE_NVIDIA_H100_GPUS"] = 0
    asked = request(offerings=(FLEX,))
    with pytest.raises(WaitingError):
        rig.provider.launch(asked)
    rig.advance(timedelta(minutes=2))
    with pytest.raises(WaitingError) as told:
        rig.provider.launch(asked)
    assert "'PREEMPTIBLE_NVIDIA_H100_GPUS' exceeded" in told.value.message
    rig.fake.project.quotas.limits.clear()
    rig.advance(timedelta(minutes=2))
    assert len(rig.provider.launch(asked).instances) == 1


@pytest.mark.parametrize("way", [Way.CALL, Way.OPERATION], ids=lambda way: way.value)
def test_a_quota_of_tpu_chips_refuses_the_slice(way: Way) -> None:
    rig = Rig()
    rig.slices()
    rig.fake.project.quotas.limits["TPUS_PER_TPU_FAMILY"] = 15
    rig.fake.project.quotas.way = way
    (failure,) = rig.provider.launch(whole()).failures
    assert (type(failure.error), failure.offering) == (AcceleratorQuotaError, V6E)
    assert rig.group(V6E).asked == {}
    rig.fake.project.quotas.limits["TPUS_PER_TPU_FAMILY"] = 16
    assert len(rig.provider.launch(whole(batch="b2")).instances) == 4


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA_A100_80GB_GPUS", AcceleratorQuotaError),
        ("COMMITTED_NVIDIA_H100_GPUS", AcceleratorQuotaError),
        ("PREEMPTIBLE_TPU_LITE_PODSLICE_V5", AcceleratorQuotaError),
        ("GPUS_PER_GPU_FAMILY", AcceleratorQuotaError),
        ("PREEMPTIBLE_CPUS", RegionQuotaError),
        ("A2_CPUS", FamilyQuotaError),
        ("N2D_CPUS", FamilyQuotaError),
        ("COMMITTED_C3_CPUS", FamilyQuotaError),
        ("CPUS_PER_VM_FAMILY", FamilyQuotaError),
        ("LOCAL_SSD_TOTAL_GB_PER_VM_FAMILY", FamilyQuotaError),
        ("LOCAL_SSD_TOTAL_GB", RegionQuotaError),
        ("CPUS_ALL_REGIONS", AccountLimitError),
        ("SSD_TOTAL_GB", RegionQuotaError),
        ("INSTANCES", RegionQuotaError),
        ("GPUS_ALL_REGIONS", AccountLimitError),
    ],
)
def test_what_a_quota_counts_is_read_from_its_name(name: str, kind: type[ProviderError]) -> None:
    error = of_code("launch", "QUOTA_EXCEEDED", f"Quota '{name}' exceeded.  Limit: 8.0 in region us-central1.")
    assert type(error) is kind


def with_groups(rig: Rig, *offerings: OfferingKey) -> None:
    """More groups in the GCPNodeTemplate."""
    for number, one in enumerate(offerings):
        base = f"gke-c1-more{number}-0a1b2c3d"
        model = "SPOT" if one.capacity_type == CapacityType.SPOT else "STANDARD"
        rig.fake.project.add(Group(f"{base}-grp", one.zone, base, one.instance_type, model))
        found = rig.templates.found
        rig.templates.found = replace(found, groups=(*found.groups, GroupRef(one.zone, f"{base}-grp")))


H100_1 = replace(A3, instance_type="a3-highgpu-1g")
NEXT_ZONE = replace(A3, zone="us-central1-b")
ELSEWHERE = replace(A3, zone="europe-west4-b")
MEGA = replace(A3, instance_type="a3-megagpu-8g")
H100_1_SPOT = replace(A3_SPOT, instance_type="a3-highgpu-1g")
MORE = (H100_1, NEXT_ZONE, ELSEWHERE, MEGA, H100_1_SPOT)


@pytest.mark.parametrize(
    ("limit", "asked", "also"),
    [
        ("NVIDIA_H100_GPUS", A3, {H100_1, NEXT_ZONE}),
        ("PREEMPTIBLE_NVIDIA_H100_GPUS", A3_SPOT, {H100_1_SPOT}),
        ("NVIDIA_H100_GPUS", A3_SPOT, {H100_1_SPOT, A3, H100_1, NEXT_ZONE}),
        ("A3_CPUS", A3, {H100_1, NEXT_ZONE, MEGA}),
        ("PREEMPTIBLE_A3_CPUS", A3_SPOT, {H100_1_SPOT}),
        ("A2_CPUS", A2, set()),
        ("CPUS", A3, {A2, H100_1, NEXT_ZONE, MEGA}),
        ("PREEMPTIBLE_CPUS", A3_SPOT, {H100_1_SPOT}),
    ],
)
def test_what_shares_a_quota_is_refused_with_it(limit: str, asked: OfferingKey, also: set[OfferingKey]) -> None:
    """In the same region only; Spot that is counted in a plain quota shares it with machines on demand."""
    rig = Rig()
    with_groups(rig, *MORE)
    rig.fake.project.quotas.limits[limit] = 0
    (failure,) = rig.provider.launch(request(offerings=(asked,))).failures
    assert (failure.offering, set(failure.also)) == (asked, also)


def test_reserved_machines_share_no_quota() -> None:
    rig = Rig()
    rig.hold(starts_in=timedelta(0), lasts=timedelta(days=1))
    rig.fake.project.quotas.limits["NVIDIA_H100_GPUS"] = 0
    for asked, also in ((A3, ()), (A3_SPOT, (A3,))):
        (failure,) = rig.provider.launch(request(offerings=(asked,))).failures
        assert failure.also == also


def test_a_launch_asks_once_for_what_shares_a_quota() -> None:
    rig = Rig()
    with_groups(rig, *MORE)
    rig.fake.project.quotas.limits["A3_CPUS"] = 0
    answer = rig.provider.launch(request(offerings=(A3, H100_1, MEGA, A2)))
    assert [machine.offering for machine in answer.instances] == [A2]
    assert rig.fake.calls["createInstances"] == 2
    assert [type(one.error) for one in answer.failures] == [FamilyQuotaError] * 3


def test_a_launch_goes_on_in_the_region_whose_quota_of_cpus_has_room() -> None:
    rig = Rig()
    with_groups(rig, *MORE)
    text = "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1."
    rig.fake.project.errors[rig.key(A3)] = ("QUOTA_EXCEEDED", text)
    assert [type(one.error) for one in rig.provider.launch(request(offerings=(A3, MEGA))).failures] == [
        RegionQuotaError,
        RegionQuotaError,
    ]
    assert rig.fake.calls["createInstances"] == 1
    assert [one.offering for one in rig.provider.launch(request(offerings=(ELSEWHERE,))).instances] == [ELSEWHERE]


def test_machines_whose_gpu_is_chosen_are_told_apart_by_it() -> None:
    rig = Rig()
    t4 = OfferingKey("n1-standard-8", ZONE, CapacityType.ON_DEMAND)
    others = (replace(t4, instance_type="n1-standard-4"), replace(t4, instance_type="n1-standard-16"))
    with_groups(rig, t4, *others)
    for offering, accelerator in zip((t4, *others), ("nvidia-tesla-t4", "nvidia-tesla-t4", "nvidia-l4"), strict=True):
        rig.group(offering).accelerator = accelerator
    key = rig.key(t4)
    rig.fake.project.errors[key] = ("QUOTA_EXCEEDED", "Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 0.0 in region x.")
    (failure,) = rig.provider.launch(request(offerings=(t4,))).failures
    assert failure.also == (others[0],)


def test_a_quota_with_dimensions_is_read_from_its_metric() -> None:
    text = "Quota exceeded, metric name = compute.googleapis.com/cpus_per_vm_family, dimensions = map[vm_family:C3]"
    assert type(of_code("launch", "QUOTA_EXCEEDED", text)) is FamilyQuotaError


def test_the_api_s_own_names_of_cpu_quotas_are_told_apart() -> None:
    """Of every metric that the client knows: those of a family have the family in their names."""
    names = [one.name for one in compute_v1.Quota.Metric if one.name.endswith("_CPUS") or one.name == "CPUS"]
    found = {name: quota_of(f"Quota '{name}' exceeded.") for name in names}
    general = {name for name, quota in found.items() if quota is not None and quota.error is QuotaError}
    assert general == {"CPUS", "COMMITTED_CPUS", "PREEMPTIBLE_CPUS"}
