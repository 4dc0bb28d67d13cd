"""What Kueue shows to whoever waits for a job: the messages of a request's conditions."""

from __future__ import annotations

import pytest

from autoscaler.model.capacity_answers import AnswerCondition, RequestAnswer, Why
from autoscaler.model.plan import NearMiss
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.requested_capacity import PodSet, ProvisioningRequest, RequestCondition
from autoscaler.report.capacity_answers import request_message

# Of a check's state in Kueue's Workload and the longest words that Kueue puts before it (0.19.2, provisioning).
KUEUE_TAKES = 32768
KUEUE_ADDS = "Retrying after booking expired: "


def message(
    *reasons: Reason, miss: NearMiss | None = None, total: int = 2, templates: tuple[str, ...] = ("ppt",)
) -> str:
    request = ProvisioningRequest("team", "job", "atomic.foreslice.dev", tuple(PodSet(name, 1) for name in templates))
    condition = AnswerCondition(
        RequestCondition.FAILED, true=True, why=Why.NOT_FOUND, reasons=reasons, miss=miss, total=total
    )
    return request_message(RequestAnswer(request, (condition,)), condition)


def few(claim: str, wanted: int = 2) -> Reason:
    return Reason.of(Code.TOO_FEW_DEVICES, Subject.claim(claim, "gpu"), wanted=wanted, found=1)


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("team/request:job:ppt-0-gpu", "claim gpu,"),
        ("team/request:job:ppt-117-gpu-0-left", "claim gpu-0-left,"),
        ("team/request:job:ppt-1-7-gpu", "claim gpu,"),  # of the template ppt-1, not of ppt
        ("team/shared", "claim team/shared,"),
        ("team/request:other:ppt-0-gpu", "claim team/request:other:ppt-0-gpu,"),
    ],
)
def test_claims_have_the_names_of_the_pod_template(claim: str, told: str) -> None:
    assert told in message(few(claim), templates=("ppt", "ppt-1"))


def test_the_nearest_miss_is_not_told_twice() -> None:
    reason = few("team/request:job:ppt-0-gpu")
    assert message(reason, miss=NearMiss(reason, 3, "g6.xlarge")) == (
        "0 of 2 pods have a place: claim gpu, request gpu: 1 of 2 devices; nearest miss: 3 types such as g6.xlarge"
    )
    other = Reason.of(Code.NO_CANDIDATE)
    assert message(other, miss=NearMiss(reason, 1, "g6.xlarge"), total=1) == (
        "0 of 1 pod has a place: no instance type on offer fits; nearest miss: claim gpu, request gpu: 1 of 2 devices "
        "on 1 type such as g6.xlarge"
    )


def test_kueue_can_show_the_longest_message() -> None:
    many = [few("team/shared", number + 2) for number in range(2000)]
    longest = message(*many)
    assert len(longest) > KUEUE_TAKES // 2  # it is cut, not short
    assert len(KUEUE_ADDS + longest) <= KUEUE_TAKES
