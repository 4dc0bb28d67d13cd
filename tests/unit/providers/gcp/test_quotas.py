"""Quotas of a project: however late Google says no, what rests, and what a person does about it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.contract import OfferingKey
from providers.errors import (
    AcceleratorQuotaError,
    AccountLimitError,
    BackoffScope,
    ProviderError,
    QuotaError,
    WaitingError,
)
from providers.gcp.errors import of_code
from tests.fakes.gce.quotas import Way
from tests.gcp import A3, A3_SPOT, FLEX, V6E, Rig, request, whole

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
def test_a_quota_of_cpus_rests_the_capacity_type(way: Way) -> None:
    rig = Rig()
    rig.fake.project.quotas.limits["CPUS"] = 100
    rig.fake.project.quotas.way = way
    error = refused(rig, A3)
    assert (type(error), error.scope) == (QuotaError, BackoffScope.QUOTA)
    assert "another capacity type" in error.next_step


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
        ("PREEMPTIBLE_CPUS", QuotaError),
        ("SSD_TOTAL_GB", QuotaError),
        ("INSTANCES", QuotaError),
        ("GPUS_ALL_REGIONS", AccountLimitError),
    ],
)
def test_what_a_quota_counts_is_read_from_its_name(name: str, kind: type[ProviderError]) -> None:
    error = of_code("launch", "QUOTA_EXCEEDED", f"Quota '{name}' exceeded.  Limit: 8.0 in region us-central1.")
    assert type(error) is kind
