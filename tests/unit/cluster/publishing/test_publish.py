"""What is told is told once, to the right object, and never written again while it stays true."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.checks.pool_condition import ConditionType, PoolCondition
from autoscaler.clock import EPOCH
from autoscaler.cluster.api import list_all
from autoscaler.cluster.publishing.publisher import Publisher
from autoscaler.cluster.resources import CAPACITY_BLOCKS, CAPACITY_POOLS, EVENTS, PODS
from autoscaler.kube.custom.capacity_block import write_capacity_block
from autoscaler.model.capacity import CapacityBlock, CapacityPool, Mode
from autoscaler.model.plan import LeftOut, NearMiss, Placement, Plan, Target
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.provisioned_node import Phase, PhaseChange, Prediction, ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import Allocation, ResourceClaim
from autoscaler.model.snapshot import Backoff, Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic, Severity
from instance_catalog.frozen_map import FrozenMap
from tests.desk import POOL, SPEC, A, Desk, planned

POD = Pod("default", "a", uid="u-a")
LEFT = LeftOut(
    "default/a",
    "does-not-fit",
    (Reason.of(Code.NO_CANDIDATE),),
    near_misses=(NearMiss(Reason.of(Code.TOO_FEW_DEVICES, wanted=17, found=16), 3, "p3.16xlarge"),),
)
NODE = ProvisionedNode(
    "n1", "gpu", "n1", "b", (A,), Prediction("t", (), "", ""), Phase.LAUNCHED, provider_id="i-1", pods=("default/a",)
)


def events(desk: Desk) -> list[tuple[str, str, str]]:
    found = list_all(desk.api, EVENTS)[0]
    return [(event["involvedObject"]["name"], event["type"], event["reason"]) for event in found]


def test_a_pod_that_gets_a_node_and_one_that_does_not_are_told(desk: Desk) -> None:
    placement = Placement("default/b", Target.NEW, "n1")
    plan = Plan(launches=(planned("n1", pods=("default/b",)),), placements=(placement,), left_out=(LEFT,))
    Publisher(desk.api).publish(plan, Snapshot(pods=(POD,), pools=(POOL,)), desk.now)
    assert sorted(events(desk)) == [("a", "Warning", "NotTriggerScaleUp"), ("b", "Normal", "TriggeredScaleUp")]
    messages = [event["message"] for event in list_all(desk.api, EVENTS)[0]]
    assert any("nearest miss" in message and "p3.16xlarge" in message for message in messages)


def test_a_claim_that_a_person_made_is_told_with_the_first_of_its_pods(desk: Desk) -> None:
    claims = {
        claim.key: claim
        for claim in (
            ResourceClaim("default", "shared", (), uid="u-s"),
            ResourceClaim("default", "generated", (), controller="u-a"),
            ResourceClaim("default", "taken", (), allocation=Allocation(())),
        )
    }
    used = tuple(PodClaim(name, name) for name in ("shared", "generated", "taken"))
    pods = (replace(POD, claims=used), replace(POD, name="b", uid="u-b", claims=used[:1]))
    left = (LEFT, replace(LEFT, pod="default/b"))
    Publisher(desk.api).publish(Plan(left_out=left), Snapshot(pods=pods, claims=FrozenMap(claims)), desk.now)
    found = [e for e in list_all(desk.api, EVENTS)[0] if e["involvedObject"]["kind"] == "ResourceClaim"]
    (about,) = ((e["involvedObject"]["name"], e["involvedObject"]["uid"], e["reason"]) for e in found)
    assert about == ("shared", "u-s", "NotTriggerScaleUp")
    assert found[0]["message"].startswith("a: pod didn't trigger scale-up: no instance type on offer fits")


def test_a_node_that_failed_is_told_with_the_reason(desk: Desk) -> None:
    failed = replace(NODE, phase=Phase.FAILED, history=(PhaseChange(Phase.FAILED, EPOCH, "BootTimedOut"),))
    Publisher(desk.api).publish(Plan(), Snapshot(provisioned=(failed,)), desk.now)
    assert events(desk) == [("n1", "Warning", "BootTimedOut")]


def test_a_node_that_no_offering_became_is_told_with_what_the_provider_answered(desk: Desk) -> None:
    answer = Backoff(desk.now, pool=NODE.pool, reason="Shortage", message="none left. Nothing to do")
    of_others = replace(answer, pool="other", message="of another pool")
    failed = replace(NODE, phase=Phase.FAILED, history=(PhaseChange(Phase.FAILED, EPOCH, "NoOfferingLeft"),))
    slow = replace(NODE, name="n2", phase=Phase.FAILED, history=(PhaseChange(Phase.FAILED, EPOCH, "BootTimedOut"),))
    state = Snapshot(provisioned=(failed, slow), backoffs=(of_others, answer))
    Publisher(desk.api).publish(Plan(), state, desk.now)
    told = {event["reason"]: event["message"] for event in list_all(desk.api, EVENTS)[0]}
    assert ") did not become a node: none left. Nothing to do; the next reconcile" in told["NoOfferingLeft"]
    assert ") did not become a node; the next reconcile" in told["BootTimedOut"]


def test_the_same_is_not_told_twice_not_even_after_a_restart(desk: Desk) -> None:
    plan, snapshot = Plan(left_out=(LEFT,)), Snapshot(pods=(POD,), pools=(POOL,))
    publisher = Publisher(desk.api)
    publisher.publish(plan, snapshot, desk.now)
    writes = desk.api.writes
    publisher.publish(plan, snapshot, desk.now + timedelta(minutes=1))
    Publisher(desk.api).publish(plan, snapshot, desk.now + timedelta(minutes=2))
    assert len(events(desk)) == 1
    assert desk.api.writes == writes


def test_a_pod_whose_node_has_come_is_not_told_that_it_gets_none(desk: Desk) -> None:
    waits = replace(
        LEFT, reasons=(Reason.of(Code.AWAITS_BINDING, Subject("pod", "default/a"), node="n1"),), near_misses=()
    )
    Publisher(desk.api).publish(Plan(left_out=(waits,)), Snapshot(pods=(POD,)), desk.now)
    assert events(desk) == []


def test_another_pod_of_the_same_name_is_told_again(desk: Desk) -> None:
    publisher = Publisher(desk.api)
    publisher.publish(Plan(left_out=(LEFT,)), Snapshot(pods=(POD,)), desk.now)
    publisher.publish(Plan(left_out=(LEFT,)), Snapshot(pods=(replace(POD, uid="u-b"),)), desk.now)
    assert len(events(desk)) == 2


@pytest.mark.parametrize(
    ("pod", "node", "nominated"),
    [
        pytest.param(POD, NODE, "n1", id="launched"),
        pytest.param(POD, replace(NODE, phase=Phase.LAUNCHING, provider_id=""), None, id="not accepted yet"),
        pytest.param(POD, replace(NODE, phase=Phase.DRAINING), None, id="on its way out"),
        pytest.param(replace(POD, claims=(PodClaim("c", None, "t"),)), NODE, None, id="claim not made"),
        pytest.param(replace(POD, node_name="other"), NODE, None, id="bound"),
    ],
)
def test_pods_are_nominated_to_nodes_that_will_come(
    desk: Desk, pod: Pod, node: ProvisionedNode, nominated: str | None
) -> None:
    desk.api.create(PODS, {"metadata": {"name": "a", "namespace": "default"}, "spec": {}})
    Publisher(desk.api).publish(Plan(), Snapshot(pods=(pod,), provisioned=(node,)), desk.now)
    assert desk.api.get(PODS, "a", namespace="default")["status"].get("nominatedNodeName") == nominated


def test_an_observing_pool_says_what_it_would_launch(desk: Desk) -> None:
    plan = Plan(launches=(planned("n1", pods=("default/a",)), planned("n2")))
    Publisher(desk.api).publish(plan, Snapshot(pools=(replace(POOL, mode=Mode.OBSERVE),)), desk.now)
    (proposal,) = desk.pool_status()["proposedLaunches"]
    assert (proposal["instanceType"], proposal["count"], proposal["pods"]) == ("p5.48xlarge", 2, 1)


def ready(desk: Desk) -> tuple[str, str, str, str]:
    (found,) = desk.pool_status()["conditions"]
    return found["status"], found["reason"], found["message"], found["lastTransitionTime"]


FINE = PoolCondition(POOL.name, ConditionType.READY)


def test_a_condition_with_control_characters_is_written_once(desk: Desk) -> None:
    """Also by the process after a restart, which compares with what the API server has."""
    odd = Reason.of(Code.PROVIDER_REFUSES, provider="aws", message="no \x1b[2J keys")
    versions = []
    for _ in range(2):
        Publisher(desk.api).check(
            [PoolCondition("gpu", ConditionType.READY, (odd,))], Snapshot(pools=(POOL,)), desk.now
        )
        versions.append(desk.api.get(CAPACITY_POOLS, "gpu")["metadata"]["resourceVersion"])
    (ready,) = desk.pool_status()["conditions"]
    assert "no \\x1b[2J keys" in ready["message"]
    assert versions[0] == versions[1]


def test_a_pool_that_can_be_used_is_ready(desk: Desk) -> None:
    Publisher(desk.api).check([FINE], Snapshot(pools=(POOL,)), desk.now)
    assert ready(desk) == ("True", "Accepted", "it can be used as it is written", "2026-01-01T00:00:00Z")
    assert events(desk) == []


def test_what_is_wrong_with_a_pool_is_an_event_too(desk: Desk) -> None:
    refused = PoolCondition(
        "gpu", ConditionType.READY, (Reason.of(Code.PROVIDER_REFUSES, provider="aws", message="no keys"),)
    )
    Publisher(desk.api).check([refused], Snapshot(pools=(POOL,)), desk.now)
    assert ready(desk)[:3] == ("False", "ProviderRefuses", "provider aws refuses requests: no keys")
    assert events(desk) == [("gpu", "Warning", "ProviderRefuses")]


def test_a_pool_that_cannot_be_used_names_the_field_and_what_to_do(desk: Desk) -> None:
    problem = Diagnostic("'Perhaps' is not one of Observe, Act", "did you mean 'Act'?", ("spec", "mode"))
    warning = Diagnostic("unknown field 'x'", path=("spec", "x"), severity=Severity.UNKNOWN_FIELD)
    problems = [("CapacityPool", "gpu", problem), ("CapacityPool", "gpu", warning), ("Pod", "default/a", problem)]
    Publisher(desk.api).judge(Snapshot(), problems, desk.now)
    status, reason, message, _ = ready(desk)
    assert (status, reason) == ("False", "Invalid")
    assert message == "spec.mode: 'Perhaps' is not one of Observe, Act; did you mean 'Act'?"


def test_readiness_is_written_only_when_it_changes(desk: Desk) -> None:
    Publisher(desk.api).check([FINE], Snapshot(pools=(POOL,)), desk.now)
    before = desk.api.writes
    later = desk.now + timedelta(hours=1)
    Publisher(desk.api).check([FINE], Snapshot(pools=(POOL,)), later)
    assert desk.api.writes == before
    problem = Diagnostic("is wrong", path=("spec",))
    Publisher(desk.api).judge(Snapshot(), [("CapacityPool", "gpu", problem)], later)
    assert ready(desk) == ("False", "Invalid", "spec: is wrong", "2026-01-01T01:00:00Z")


def test_what_is_told_is_about_the_spec_that_was_read(desk: Desk) -> None:
    """`kubectl wait` takes no notice of conditions about an older spec."""
    publisher = Publisher(desk.api)
    for generation in (1, 2):
        snapshot = Snapshot(pools=(replace(POOL, generation=generation),))
        publisher.publish(Plan(), snapshot, desk.now)
        found = [FINE, PoolCondition(POOL.name, ConditionType.COEXISTENCE)]
        publisher.check(found, snapshot, desk.now + timedelta(hours=generation))
        status = desk.pool_status()
        assert status["observedGeneration"] == generation
        assert [found["observedGeneration"] for found in status["conditions"]] == [generation] * 2
    assert {found["lastTransitionTime"] for found in status["conditions"]} == {"2026-01-01T01:00:00Z"}


def test_a_pool_that_is_gone_is_forgotten_and_told_anew_when_it_comes_again(desk: Desk) -> None:
    publisher = Publisher(desk.api)

    def round_with(*pools: CapacityPool) -> None:
        publisher.publish(Plan(), Snapshot(pools=pools), desk.now)
        publisher.check([replace(FINE, pool=pool.name) for pool in pools], Snapshot(pools=pools), desk.now)
        publisher.take_troubles()

    round_with(POOL)
    told = desk.pool_status()
    desk.api.delete(CAPACITY_POOLS, POOL.name)
    round_with()
    desk.api.create(CAPACITY_POOLS, {"metadata": {"name": POOL.name}, "spec": SPEC})
    round_with(POOL)
    assert desk.pool_status() == told != {}
    writes = desk.api.writes
    round_with(POOL)
    assert desk.api.writes == writes


def test_an_acting_pool_counts_its_nodes_and_their_price(desk: Desk) -> None:
    gone = replace(NODE, name="n2", phase=Phase.GONE)
    snapshot = Snapshot(pools=(POOL,), provisioned=(NODE, gone))
    Publisher(desk.api).publish(Plan(), snapshot, desk.now, accelerators={"gpu": 8, "other": 1})
    status = desk.pool_status()
    assert (status["nodes"], status["accelerators"], status["usdPerHour"]) == (1, 8, "55.04")
    assert status["proposedLaunches"] == []


def test_back_offs_in_the_status_are_left_alone(desk: Desk) -> None:
    backoffs = [{"until": "2026-01-01T01:00:00Z", "reason": "Shortage"}]
    desk.api.patch(CAPACITY_POOLS, "gpu", {"status": {"backoffs": backoffs}}, subresource="status")
    Publisher(desk.api).publish(Plan(), Snapshot(pools=(POOL,)), desk.now)
    assert desk.pool_status()["backoffs"] == backoffs


def test_a_block_shows_its_phase_and_nodes(desk: Desk) -> None:
    block = CapacityBlock(
        "cb", "p5.48xlarge", "z", 1, EPOCH, EPOCH + timedelta(days=1), pool="gpu", reservation="cr-1", available=0
    )
    desk.api.create(CAPACITY_BLOCKS, write_capacity_block(block))
    mine = replace(NODE, obtained=replace(A, block="cb"))
    pods = (replace(POD, node_name="n1", phase="Running"),)
    snapshot = Snapshot(pods=pods, blocks=(block,), provisioned=(mine,))
    Publisher(desk.api).publish(Plan(), snapshot, EPOCH + timedelta(hours=1))
    status = desk.api.get(CAPACITY_BLOCKS, "cb")["status"]
    assert status["phase"] == "Active"
    assert status["nodes"] == [{"name": "n1", "phase": "Launched", "pods": 1}]
    assert status["available"] == 0
    assert status["reservation"] == ""  # its spec says which


def test_the_reservation_that_tags_found_is_written_down(desk: Desk) -> None:
    tags = FrozenMap({"team": "x"})
    block = CapacityBlock("cb", "p5.48xlarge", "z", 1, EPOCH, EPOCH + timedelta(days=1), reservation_tags=tags)
    desk.api.create(CAPACITY_BLOCKS, write_capacity_block(replace(block, pool="gpu")))
    found = replace(block, reservation="cr-1")
    Publisher(desk.api).publish(Plan(), Snapshot(blocks=(found,)), EPOCH)
    assert desk.api.get(CAPACITY_BLOCKS, "cb")["status"]["reservation"] == "cr-1"


def test_a_pool_that_observes_claims_no_launch(desk: Desk) -> None:
    plan = Plan(launches=(planned("n1", pods=("default/a",)),), placements=(Placement("default/a", Target.NEW, "n1"),))
    observing = Snapshot(pods=(POD,), pools=(replace(POOL, mode=Mode.OBSERVE),))
    Publisher(desk.api).publish(plan, observing, desk.now)
    assert events(desk) == [("a", "Normal", "ProposedScaleUp")]
    (event,) = list_all(desk.api, EVENTS)[0]
    assert event["message"].startswith("pod would trigger scale-up, but pool gpu only observes: node n1, p5.48xlarge")


def test_a_text_that_cannot_be_made_keeps_nobody_else_from_being_told(desk: Desk) -> None:
    odd = replace(LEFT, pod="default/odd", near_misses=(None,))  # type: ignore[arg-type]
    publisher = Publisher(desk.api)
    publisher.publish(Plan(left_out=(odd, LEFT)), Snapshot(pods=(POD,), pools=(POOL,)), desk.now)
    assert events(desk) == [("a", "Warning", "NotTriggerScaleUp")]
    assert [(trouble.kind, trouble.name, trouble.reason) for trouble in publisher.take_troubles()] == [
        ("Pod", "odd", "Unexpected")
    ]
