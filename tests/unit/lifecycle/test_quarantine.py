"""What speaks against launching a type again, how often it must be seen, and for how long it counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from autoscaler.lifecycle.quarantine import (
    FIRST,
    LONGEST,
    SCHEDULER_GRACE,
    WATCH_SKEW,
    Drift,
    Misprediction,
    mispredicted,
    quarantined,
)
from autoscaler.model.gang import Gang
from autoscaler.model.node import Node
from autoscaler.model.plan import LeftOut, LeftOutVerdict, Placement, Plan, Target
from autoscaler.model.pod import GangRef, Pod, PodClaim
from autoscaler.model.provisioned_node import Phase, PhaseChange, ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import Allocation, ResourceClaim
from autoscaler.model.snapshot import Quarantine, Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import PROVISIONING_REQUEST
from instance_catalog.kubernetes.resource_slice import Device, NodeReach, Pool, ResourceSlice
from instance_catalog.kubernetes.taint import Taint
from tests.builders import ours

NOW = datetime(2027, 1, 31, 8, 0, tzinfo=UTC)
POD = Pod("default", "work")
NODE = ours(
    "n1",
    "g6.xlarge",
    zone="us-east-1a",
    pool="gpu",
    phase=Phase.READY,
    phase_since=NOW - timedelta(minutes=1),
    pods=(POD.key,),
    provider_id="sim:///i-1",
)
AS_NODE = Node("n1", provider_id="sim:///i-1")
KEY = ("gpu", "g6.xlarge", ("nvidia",))
HERE = Plan(placements=(Placement(POD.key, Target.EXISTING, "n1"),))
ELSEWHERE = Plan(placements=(Placement(POD.key, Target.EXISTING, "n2"),))
ANEW = Plan(placements=(Placement(POD.key, Target.NEW, "n9"),))
LIMIT = Reason.of(Code.POOL_LIMIT, Subject("pool", "gpu"), pool="gpu", resource="nodes", limit="1")
NOWHERE = Plan(left_out=(LeftOut(POD.key, LeftOutVerdict.DOES_NOT_FIT, (LIMIT,)),))
GIVEN = Plan(placements=(*ANEW.placements, Placement("default/request:train:a-0", Target.EXISTING, "n1")))
VIRTUAL = Pod("default", "request:train:a-0")


def published(*taints: Taint) -> ResourceSlice:
    devices = (Device("gpu-0", taints=taints),)
    return ResourceSlice("s", "gpu.nvidia.com", Pool("n1", 1, 1), reach=NodeReach(node_name="n1"), devices=devices)


def scene(*pods: Pod, node: ProvisionedNode = NODE, **fields: Any) -> Snapshot:
    base = Snapshot(pods=pods or (POD,), nodes=(AS_NODE,), slices=(published(),), provisioned=(node,))
    return replace(base, **fields)


def claimed(*, pod: float, claim: float) -> Snapshot:
    """A node of second 7, and its pod with a claim, made in these seconds."""
    asking = replace(POD, created=pod, claims=(PodClaim("gpu", "mine"), PodClaim("none", ""), PodClaim("late", None)))
    made = ResourceClaim(POD.namespace, "mine", (), created=claim)
    return scene(asking, node=replace(NODE, created=7.0), claims=FrozenMap({made.key: made}))


@pytest.mark.parametrize(
    ("target", "labels", "wrong"),
    [
        pytest.param(Target.NEW, {}, True, id="it-would-be-bought-for-again"),
        pytest.param(Target.EXISTING, {}, False, id="nobody-binds-it-and-nobody-should"),
        pytest.param(None, {}, False, id="its-gang-is-left-out"),
        pytest.param(Target.NEW, {PROVISIONING_REQUEST: "other"}, False, id="its-node-is-booked-for-another"),
    ],
)
def test_a_pod_that_exists_only_in_the_plan(target: Target | None, labels: dict[str, str], *, wrong: bool) -> None:
    node = replace(NODE, phase_since=NOW - SCHEDULER_GRACE, pods=(VIRTUAL.key,))
    place = "n1" if target is Target.EXISTING else "n9"
    plan = Plan(placements=(Placement(VIRTUAL.key, target, place),) if target else ())
    snapshot = scene(VIRTUAL, node=node, nodes=(replace(AS_NODE, labels=FrozenMap(labels)),))
    assert bool(mispredicted(snapshot, plan, NOW)) is wrong


def failed(name: str, why: str = "BootTimedOut") -> ProvisionedNode:
    return replace(NODE, provider_id=name, phase=Phase.FAILED, history=(PhaseChange(Phase.FAILED, NOW, why),))


@pytest.mark.parametrize(
    ("plan", "ready_for", "wrong"),
    [
        pytest.param(ANEW, WATCH_SKEW, True, id="another-node-would-be-bought"),
        pytest.param(NOWHERE, WATCH_SKEW, True, id="another-node-would-be-bought-below-the-limit"),
        pytest.param(Plan(), WATCH_SKEW, False, id="no-new-node-would-take-it-either"),
        pytest.param(ANEW, timedelta(seconds=1), False, id="its-binding-may-not-have-been-seen-yet"),
        pytest.param(HERE, timedelta(0), False, id="the-scheduler-has-not-looked-yet"),
        pytest.param(HERE, SCHEDULER_GRACE, True, id="the-scheduler-looked-and-refused"),
        pytest.param(ELSEWHERE, SCHEDULER_GRACE, False, id="another-node-takes-it"),
        pytest.param(GIVEN, WATCH_SKEW, False, id="the-plan-gives-its-node-to-another"),
    ],
)
def test_a_pod_that_its_ready_node_does_not_take(plan: Plan, ready_for: timedelta, wrong: bool) -> None:
    node = replace(NODE, phase_since=NOW - ready_for)
    expected = (Misprediction(POD.key, node),) if wrong else ()
    assert mispredicted(scene(node=node), plan, NOW) == expected


@pytest.mark.parametrize(
    ("unscheduled", "allocation", "wrong"),
    [
        pytest.param("Unschedulable", None, True, id="kube-scheduler-refuses-the-node"),
        pytest.param("SchedulerError", None, False, id="its-binding-fails"),
        pytest.param("Unschedulable", Allocation(()), False, id="its-devices-are-chosen"),
    ],
)
def test_a_pod_that_kube_scheduler_cannot_bind_where_it_fits(
    unscheduled: str, allocation: Allocation | None, *, wrong: bool
) -> None:
    asking = replace(POD, unscheduled=unscheduled, claims=(PodClaim("gpu", "mine"),))
    made = ResourceClaim(POD.namespace, "mine", (), allocation=allocation)
    node = replace(NODE, phase_since=NOW - SCHEDULER_GRACE)
    snapshot = scene(asking, node=node, claims=FrozenMap({made.key: made}))
    assert bool(mispredicted(snapshot, HERE, NOW)) is wrong


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(scene(POD, Pod("default", "guest", node_name="n1")), id="somebody-else-took-the-place"),
        pytest.param(scene(replace(POD, node_name="n1")), id="it-runs"),
        pytest.param(scene(replace(POD, node_name="n1", phase="Succeeded")), id="it-is-finished"),
        pytest.param(scene(replace(POD, deleting=True)), id="it-is-being-deleted"),
        pytest.param(scene(replace(POD, scheduling_gates=("wait",))), id="it-is-held-back"),
        pytest.param(scene(replace(POD, volumes=("disk",))), id="it-may-wait-for-its-volume"),
        pytest.param(scene(nodes=(replace(AS_NODE, ready=False),)), id="the-node-is-not-ready-now"),
        pytest.param(scene(nodes=(replace(AS_NODE, unschedulable=True),)), id="somebody-closed-the-node"),
        pytest.param(scene(slices=()), id="the-driver-is-away"),
        pytest.param(scene(slices=(published(Taint("broken", "", "NoSchedule")),)), id="a-device-is-broken"),
        pytest.param(scene(node=replace(NODE, phase=Phase.REGISTERED)), id="the-node-still-boots"),
        pytest.param(scene(replace(POD, created=8.0), node=replace(NODE, created=7.0)), id="another-pod-by-that-name"),
        pytest.param(claimed(pod=6.0, claim=8.0), id="another-claim-by-that-name"),
    ],
)
def test_what_says_nothing_about_the_type(snapshot: Snapshot) -> None:
    assert mispredicted(snapshot, NOWHERE, NOW) == ()


def test_the_pod_it_was_bought_for_counts_also_when_both_were_made_in_one_second() -> None:
    same = scene(replace(POD, created=7.0), node=replace(NODE, created=7.0))
    assert len(mispredicted(same, NOWHERE, NOW)) == 1
    assert len(mispredicted(claimed(pod=6.0, claim=7.0), NOWHERE, NOW)) == 1


def test_a_gang_waits_for_its_other_nodes() -> None:
    members = [replace(POD, name=name, gang=GangRef("default", "g")) for name in ("work", "other")]
    coming = replace(NODE, name="n2", node_name="n2", phase=Phase.LAUNCHED, pods=("default/other",))
    assert mispredicted(scene(*members, provisioned=(NODE, coming)), NOWHERE, NOW) == ()
    assert len(mispredicted(scene(*members), NOWHERE, NOW)) == 1


@pytest.mark.parametrize(("wanted", "wrong"), [(1, True), (2, False)])
def test_a_gang_that_wants_more_than_was_bought_says_nothing_about_the_type(wanted: int, *, wrong: bool) -> None:
    member = replace(POD, gang=GangRef("default", "g"))
    gangs = FrozenMap({"default/g": Gang("default", "g", "PodGroup", wanted)})
    assert bool(mispredicted(scene(member, gangs=gangs), NOWHERE, NOW)) is wrong


def test_three_failed_boots_in_a_row_and_each_counts_once() -> None:
    two = scene(provisioned=(failed("n1"), failed("n2", "DriverNeverPublished")))
    (counted,) = quarantined(two, (), NOW)
    assert counted == Quarantine(*KEY, failed_boots=("n1", "n2"))
    again = quarantined(replace(two, quarantines=(counted,)), (), NOW)
    assert again == (counted,)
    (begun,) = quarantined(scene(provisioned=(failed("n3"),), quarantines=(counted,)), (), NOW)
    assert (begun.failed_boots, begun.until, begun.times) == (("n1", "n2", "n3"), NOW + FIRST, 1)


def test_a_launch_that_found_no_machine_is_no_failed_boot() -> None:
    assert quarantined(scene(provisioned=(failed("n1", "NoOfferingLeft"),)), (), NOW) == ()


def test_a_boot_that_succeeds_ends_the_row() -> None:
    before = Quarantine(*KEY, failed_boots=("a", "b"))
    ready = replace(NODE, phase_since=NOW)
    assert quarantined(scene(node=ready, quarantines=(before,)), (), NOW) == ()
    earlier = replace(NODE, phase_since=NOW - timedelta(minutes=1))
    assert quarantined(scene(node=earlier, quarantines=(before,)), (), NOW) == (before,)


@pytest.mark.parametrize(
    ("times", "lasts"), [(0, FIRST), (1, 2 * FIRST), (3, 8 * FIRST), (9, LONGEST)], ids=["1st", "2nd", "4th", "10th"]
)
def test_each_quarantine_lasts_longer(times: int, lasts: timedelta) -> None:
    before = Quarantine(*KEY, mispredictions=("x on y",), times=times, until=NOW - timedelta(minutes=1))
    (after,) = quarantined(scene(quarantines=(before,)), [Misprediction(POD.key, NODE)], NOW)
    assert (after.until, after.times) == (NOW + lasts, times + 1)
    assert after.mispredictions == ("x on y", "default/work on sim:///i-1")


def test_evidence_during_a_quarantine_does_not_lengthen_it() -> None:
    before = Quarantine(*KEY, mispredictions=("x on y",), times=1, until=NOW + timedelta(minutes=1))
    (after,) = quarantined(scene(quarantines=(before,)), [Misprediction(POD.key, NODE)], NOW)
    assert (after.until, after.times) == (before.until, 1)


READY = replace(NODE, phase_since=NOW)


def test_drift_that_is_to_be_avoided_begins_a_quarantine_and_a_machine_counts_once() -> None:
    before = Quarantine(*KEY, failed_boots=("a", "b"), times=1)
    drift = Drift(READY, (), avoided=True)
    (begun,) = quarantined(scene(node=READY, quarantines=(before,)), (), NOW, drifts=[drift])
    assert begun == Quarantine(*KEY, drifts=("sim:///i-1",), times=2, until=NOW + 2 * FIRST)
    assert quarantined(scene(node=READY, quarantines=(begun,)), (), NOW, drifts=[drift]) == (begun,)


def test_drift_that_is_only_told_counts_as_a_boot_that_succeeded() -> None:
    before = Quarantine(*KEY, failed_boots=("a", "b"))
    assert quarantined(scene(node=READY, quarantines=(before,)), (), NOW, drifts=[Drift(READY, (), False)]) == ()


@pytest.mark.parametrize("first", [0, 1], ids=["as-predicted-first", "drifted-first"])
def test_a_node_as_predicted_does_not_hide_that_another_one_drifts_in_the_same_tick(first: int) -> None:
    good = replace(READY, name="n2", node_name="n2", provider_id="sim:///i-2")
    nodes = (good, READY) if first == 0 else (READY, good)
    (found,) = quarantined(scene(provisioned=nodes), (), NOW, drifts=[Drift(READY, (), avoided=True)])
    assert found.drifts == ("sim:///i-1",)
