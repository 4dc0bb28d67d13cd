"""The status page and the explanation of a pod, before they become HTML."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.clock import EPOCH
from autoscaler.model.capacity import Mode
from autoscaler.model.plan import (
    Considered,
    ConsideredOutcome,
    Demand,
    LeftOut,
    LeftOutVerdict,
    NearMiss,
    Placement,
    Plan,
    Target,
)
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef, Phase
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Backoff, Quarantine, Snapshot
from autoscaler.model.spending import Spending
from autoscaler.report.explained.objects import node_explanation, node_lines
from autoscaler.report.page import SHOWN_WAITING, explanation, status_page
from autoscaler.report.tables.plan_tables import Table
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from tests.builders import ours
from tests.desk import POOL, A, planned

CHEAPEST = Reason.of(Code.CHEAPEST)
LAUNCH = replace(planned("n1", pods=("default/a",)), reasons=(CHEAPEST,))
WAITING = Snapshot(pods=(Pod("default", "a"),), pools=(POOL,))

LATER = EPOCH + timedelta(hours=1)


def placed(target: Target, node: str, **fields: Any) -> Plan:
    return Plan(launches=(LAUNCH,), placements=(Placement("default/a", target, node),), **fields)


def table(title: str, snapshot: Snapshot, plan: Plan) -> Table:
    (found,) = (each for each in status_page(snapshot, plan, EPOCH).tables if each.title == title)
    return found


def left(verdict: LeftOutVerdict) -> Plan:
    miss = NearMiss(Reason.of(Code.TOO_FEW_DEVICES, found=4, wanted=8), 12, "p4d.24xlarge")
    return Plan(left_out=(LeftOut("default/a", verdict, (Reason.of(Code.NO_CANDIDATE, offerings=9),), (), (miss,)),))


@pytest.mark.parametrize(
    ("plan", "state", "why"),
    [
        pytest.param(
            placed(Target.NEW, "n1"),
            "a node is being launched: p5.48xlarge in us-east-1a (on-demand)",
            ("cheapest that fits",),
            id="launched",
        ),
        pytest.param(placed(Target.COMING, "n0"), "waits for node n0, which is starting", (), id="coming"),
        pytest.param(placed(Target.EXISTING, "n0"), "fits node n0", (), id="existing"),
        pytest.param(
            left(LeftOutVerdict.DOES_NOT_FIT),
            "no node fits",
            (
                "no instance type on offer fits",
                "nearest miss: 4 of 8 devices (12 instance types, such as p4d.24xlarge)",
            ),
            id="left out",
        ),
        pytest.param(
            Plan(left_out=(LeftOut("default/a", LeftOutVerdict.FATAL, ()),)),
            "kube-scheduler fails on it",
            (),
            id="fatal",
        ),
        pytest.param(
            Plan(left_out=(LeftOut("default/a", LeftOutVerdict.UNKNOWN, ()),)),
            "undecided: it depends on values that are not known before launch",
            (),
            id="unknown",
        ),
        pytest.param(
            Plan(outside=(LeftOut("default/a", LeftOutVerdict.OUT_OF_SCOPE, ()),)),
            "ignored: no pool serves it",
            (),
            id="outside",
        ),
        pytest.param(Plan(), "not planned yet: the next reconcile decides", (), id="new"),
    ],
)
def test_where_a_pod_stands(plan: Plan, state: str, why: tuple[str, ...]) -> None:
    found = explanation(WAITING, plan, EPOCH, pod="default/a")
    assert found is not None
    assert (found.state, found.why) == (state, why)


def test_a_pool_that_observes_would_launch() -> None:
    observing = replace(WAITING, pools=(replace(POOL, mode=Mode.OBSERVE),))
    found = explanation(observing, placed(Target.NEW, "n1"), EPOCH, pod="default/a")
    assert found is not None
    assert found.state.startswith("would get a new node if pool gpu were in mode Act: ")
    (pools,) = (
        table for table in status_page(observing, placed(Target.NEW, "n1"), EPOCH).tables if table.title == "Pools"
    )
    assert pools.rows == (("gpu", "Observe", "0", "nodes ≤ 10", "0.00", "55.04", ""),)


def test_a_pod_that_runs_is_no_longer_waiting() -> None:
    bound = Snapshot(pods=(Pod("default", "a", node_name="n1"),))
    found = explanation(bound, Plan(), EPOCH, pod="default/a")
    assert found is not None
    assert found.state == "runs on node n1"
    assert status_page(bound, Plan(), EPOCH).waiting == ()


def test_an_unknown_pod_has_no_explanation() -> None:
    assert explanation(WAITING, Plan(), EPOCH, pod="default/b") is None


def test_facts_of_a_pod() -> None:
    pod = Pod(
        "default",
        "a",
        unscheduled="Unschedulable",
        unscheduled_why="0/3 nodes",
        owner="Job/train",
        scheduling_gates=("g",),
    )
    asked = ours("n1", offering=A, phase=Phase.LAUNCHED, phase_since=EPOCH, pods=("default/a",))
    found = explanation(Snapshot(pods=(pod,), provisioned=(asked,)), Plan(), EPOCH + timedelta(minutes=2), pod=pod.key)
    assert found is not None
    assert dict(found.facts) == {
        "phase": "Pending",
        "kube-scheduler says": "Unschedulable: 0/3 nodes",
        "scheduling gates": "g",
        "belongs to": "Job/train",
        "node asked for": "n1, p5.48xlarge in us-east-1a (on-demand), Launched for 2m",
    }


def test_a_pod_of_a_node_that_waits_for_capacity() -> None:
    pod = Pod("default", "a")
    asked = ours("n1", offering=A, phase=Phase.LAUNCHING, phase_since=EPOCH, pods=("default/a",))
    snapshot = Snapshot(pods=(pod,), provisioned=(asked,), waiting=FrozenMap({"n1": EPOCH}))
    why = (Reason.of(Code.COMING_NODE, since=EPOCH.isoformat()),)
    coming = Plan(placements=(Placement("default/a", Target.COMING, "n1", reasons=why),))
    found = explanation(snapshot, coming, EPOCH + timedelta(days=2), pod=pod.key)
    assert found is not None
    assert found.state == "waits for node n1, which the provider starts when it has capacity"
    assert dict(found.facts)["request to the provider"].startswith("requested 2d ago;")
    ((_, _, _, _, phase, *_),) = table("Nodes", snapshot, coming).rows
    assert phase == "Launching, waits for capacity"
    explained = node_explanation("n1", snapshot, coming)
    assert explained is not None
    assert explained["waitingSince"] == EPOCH.isoformat()
    assert any("nothing is charged until then" in line for line in node_lines(explained))


def test_offerings_are_told_with_counts() -> None:
    few = (Reason.of(Code.TOO_FEW_DEVICES, found=4, wanted=8),)

    def considered(name: str, outcome: ConsideredOutcome, *reasons: Reason) -> Considered:
        return Considered("gpu", (), OfferingRef(name, "a", CapacityType.ON_DEMAND, Decimal("1.50")), outcome, reasons)

    demand = Demand(
        ("default/a",),
        (
            considered("p5", ConsideredOutcome.CHOSEN, CHEAPEST),
            considered("g5", ConsideredOutcome.DOES_NOT_FIT, *few),
            considered("g6", ConsideredOutcome.DOES_NOT_FIT, *few),
            considered("x1", ConsideredOutcome.UNKNOWN),
        ),
    )
    found = explanation(WAITING, Plan(demands=(demand,)), EPOCH, pod="default/a")
    assert found is not None
    fits, rejected = found.tables
    assert fits.rows == (("p5 in a (on-demand)", "gpu", "chosen", "1.50", "cheapest that fits"),)
    assert rejected.rows == (("4 of 8 devices", "2", "g5"), ("unknown", "1", "x1"))


def test_pods_of_other_namespaces_are_numbers() -> None:
    launch = replace(LAUNCH, pods=("default/a", "secret/x", "secret/y"))
    plan = Plan(
        launches=(launch,),
        left_out=(LeftOut("secret/x", LeftOutVerdict.FATAL, ()), LeftOut("default/a", LeftOutVerdict.FATAL, ())),
    )
    snapshot = replace(WAITING, pods=(Pod("default", "a"), Pod("secret", "x")))
    page = status_page(snapshot, plan, EPOCH, namespace="default")
    assert [pod.name for pod in page.waiting] == ["a"]
    assert page.tables[0].rows[0][4] == "default/a, 2 more"
    assert "secret" not in str((page.waiting, page.tables))


def test_what_holds_launches_back_is_told() -> None:
    snapshot = replace(
        WAITING,
        spending=Spending(EPOCH, usd=Decimal("12.345"), binding=("maxUsdPerDay",)),
        quarantines=(Quarantine("gpu", "p5", (), until=LATER), Quarantine("gpu", "p4", ())),
        backoffs=(
            Backoff(LATER, "p5", "us-east-1a", pool="gpu", reason="Shortage"),
            Backoff(LATER, pool="gpu", reason="Quota"),
            Backoff(EPOCH, "p4", pool="gpu", reason="Shortage"),  # over
        ),
    )
    page = status_page(snapshot, Plan(), EPOCH)
    assert page.summary[1] == "12.34 $ spent since midnight UTC"
    assert page.summary[3] == "spending limits that block launches: maxUsdPerDay"
    assert table("Pools", snapshot, Plan()).rows[0][-1] == (
        "p5 is quarantined until 01 Jan 01:00 UTC; p5 in us-east-1a: Shortage until 01 Jan 01:00 UTC; "
        "every type in every zone: Quota until 01 Jan 01:00 UTC"
    )


def test_a_page_stays_readable() -> None:
    pods = tuple(Pod("default", f"p{index:04}") for index in range(SHOWN_WAITING + 1))
    plan = Plan(left_out=tuple(LeftOut(pod.key, LeftOutVerdict.FATAL, ()) for pod in pods))
    page = status_page(Snapshot(pods=pods), plan, EPOCH)
    assert len(page.waiting) == SHOWN_WAITING
    assert "501 pending pods, of which 500 are shown: choose a namespace" in page.summary


def test_what_a_state_says_is_not_said_twice() -> None:
    plan = placed(Target.COMING, "n0")
    reasons = (Reason.of(Code.COMING_NODE), Reason.of(Code.CHEAPEST))
    told = replace(plan, placements=(replace(plan.placements[0], reasons=reasons),))
    found = explanation(WAITING, told, EPOCH, pod="default/a")
    assert found is not None
    assert (found.state, found.why) == ("waits for node n0, which is starting", ("cheapest that fits",))


def test_equal_reasons_of_several_devices_are_one_line() -> None:
    alike = tuple(
        Reason.of(Code.SELECTOR_ERROR, Subject("device", f"gpu-{i}"), expression="x", message="no y") for i in range(5)
    )
    found = explanation(
        WAITING, Plan(left_out=(LeftOut("default/a", LeftOutVerdict.FATAL, alike),)), EPOCH, pod="default/a"
    )
    assert found is not None
    assert found.why == ("device gpu-0 and 4 more: x fails: no y",)


def test_a_pending_pod_has_an_age_and_whether_nothing_is_on_the_way() -> None:
    old = replace(WAITING, pods=(replace(WAITING.pods[0], created=EPOCH.timestamp() - 90),))
    (waiting,) = status_page(old, left(LeftOutVerdict.DOES_NOT_FIT), EPOCH).waiting
    assert (waiting.age, waiting.bad) == ("1m30s", True)
    (served,) = status_page(WAITING, placed(Target.NEW, "n1"), EPOCH).waiting
    assert (served.age, served.bad) == ("", False)
