"""What is told names no pod that the reader may not read."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.clock import EPOCH
from autoscaler.model.plan import Considered, ConsideredOutcome, Demand, LeftOut, LeftOutVerdict, NearMiss, Plan
from autoscaler.model.pod import GangRef, Pod, PodClaim
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.page import explanation, status_page
from autoscaler.report.reasons import text_of
from autoscaler.report.redaction import Readable, everything, of_namespace, of_pod, redacted
from tests.desk import A
from tests.unit.report.events import events_of

POD = Pod("team", "a", claims=(PodClaim("gpu", "a-gpu"),), gang=GangRef("team", "g"))
SECRET = "secret/project-x"
BREAKS = Reason.of(Code.BREAKS_OTHER_POD, pod=SECRET)


@pytest.mark.parametrize(
    ("reason", "readable", "text"),
    [
        pytest.param(BREAKS, everything, "its devices would make the selector of pod secret/project-x fail", id="all"),
        pytest.param(
            BREAKS,
            of_namespace("team"),
            "its devices would make the selector of another pod fail",
            id="of-another-namespace",
        ),
        pytest.param(
            Reason.of(Code.BREAKS_OTHER_POD, pod="team/b"),
            of_namespace("team"),
            "its devices would make the selector of pod team/b fail",
            id="of-the-namespace",
        ),
        pytest.param(
            Reason.of(Code.BREAKS_OTHER_POD, pod="team/b"),
            of_pod(POD),
            "its devices would make the selector of another pod fail",
            id="of-the-namespace-for-who-may-read-one-pod",
        ),
        pytest.param(
            Reason.of(Code.TOO_FEW_DEVICES, Subject.claim("team/a-gpu", "gpu"), wanted=8, found=4),
            of_pod(POD),
            "claim team/a-gpu, request gpu: 4 of 8 devices",
            id="its-own-claim",
        ),
        pytest.param(
            Reason.of(Code.TOO_FEW_DEVICES, Subject.claim("team/b-gpu", "gpu"), wanted=8, found=4),
            of_pod(POD),
            "its claim, request gpu: 4 of 8 devices",
            id="the-claim-of-an-equal-pod",
        ),
        pytest.param(
            Reason.of(Code.TAINT_NOT_TOLERATED, Subject("pod", "team/b"), key="k", value="v", effect="NoSchedule"),
            of_pod(POD),
            "a pod like it: does not tolerate k=v:NoSchedule",
            id="an-equal-pod",
        ),
        pytest.param(
            Reason.of(Code.GANG_INCOMPLETE, Subject("gang", "team/g"), wanted=2, placed=1),
            of_pod(POD),
            "gang team/g: needs 2 pods at once, 1 could be placed",
            id="its-own-gang",
        ),
        pytest.param(
            Reason.of(Code.POOL_LIMIT, Subject("pool", "gpu"), pool="gpu", resource="nodes", limit="3"),
            of_pod(POD),
            "pool gpu: the limit of pool gpu on nodes (3) is reached",
            id="pools-belong-to-the-cluster",
        ),
    ],
)
def test_names_that_may_not_be_read_are_left_out(reason: Reason, readable: Readable, text: str) -> None:
    (told,) = redacted([reason], readable)
    assert (told.code, text_of(told)) == (reason.code, text)


@pytest.fixture
def world() -> tuple[Snapshot, Plan]:
    """A pod that is left out because of pods elsewhere, wherever a plan can say so."""
    left = LeftOut(POD.key, LeftOutVerdict.DOES_NOT_FIT, (BREAKS,), near_misses=(NearMiss(BREAKS, 3, "p5.48xlarge"),))
    considered = tuple(
        Considered("gpu", (), A, outcome, (BREAKS,))
        for outcome in (ConsideredOutcome.FITS, ConsideredOutcome.DOES_NOT_FIT)
    )
    of = (SECRET, POD.key)
    cheaper = [Reason.of(Code.CHEAPER_UNKNOWN, Subject("pod", key), types=2, example="g6", price="1") for key in of]
    warnings = (*cheaper, Reason.of(Code.PLAN_BUDGET))
    plan = Plan(left_out=(left,), demands=(Demand((POD.key,), considered),), warnings=warnings)
    return Snapshot(pods=(POD, Pod("secret", "project-x"))), plan


def test_a_page_of_one_namespace_names_no_other(world: tuple[Snapshot, Plan]) -> None:
    page = str(status_page(*world, EPOCH, namespace="team"))
    assert "project-x" not in page
    assert "pod team/a: of 2 instance type(s) that may be cheaper" in page
    assert "search limit reached" in page
    assert "pod secret/project-x: of 2 instance type(s)" in str(status_page(*world, EPOCH))


def test_the_explanation_of_a_pod_names_no_other(world: tuple[Snapshot, Plan]) -> None:
    told: Any = explanation(*world, EPOCH, pod=POD.key)
    assert "another pod" in str(told)
    assert "project-x" not in str(told)


def test_events_name_no_pod_of_another_namespace(world: tuple[Snapshot, Plan]) -> None:
    (event,) = events_of(world[1], world[0])
    assert event.about.namespace == "team"
    assert "another pod" in event.message
    assert "project-x" not in event.message
