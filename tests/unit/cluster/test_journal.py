"""Intents are complete before anything happens, and whatever was half-written is completed after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import ConflictError
from autoscaler.cluster.intents import batches_of, is_complete, nodes_of, token_of
from autoscaler.cluster.intercepted import InterceptedApi
from autoscaler.cluster.journal import FINALIZER, Journal
from autoscaler.cluster.resources import LAUNCH_BATCHES, PROVISIONED_NODES, Resource
from autoscaler.lifecycle.absence import overdue
from autoscaler.lifecycle.provisioned_node import Why
from autoscaler.model.capacity import Mode
from autoscaler.model.gang import Gang
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.pod import GangRef, Pod
from autoscaler.model.provisioned_node import BatchOutcome, LaunchBatch, Phase
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from tests.desk import POOL, A, B, Desk, planned


def test_alike_nodes_share_a_batch(desk: Desk) -> None:
    desk.record(planned("n1", pods=("default/a",)), planned("n2"), planned("n3", B))
    first, second = sorted(desk.batches(), key=lambda batch: -len(batch.nodes))
    assert (first.nodes, first.offerings, [m.pods for m in first.members]) == (
        ("n1", "n2"),
        (A, B),
        [("default/a",), ()],
    )
    assert (second.nodes, second.offerings) == (("n3",), (B,))
    assert first.outcome == "Intended"
    assert first.template == ("SimulatedNodeTemplate", "default")


def test_labels_of_single_nodes_stay_out_of_the_batch(desk: Desk) -> None:
    desk.record(planned("n1"))
    assert desk.batches()[0].labels == {"team": "x"}


def test_every_node_is_written_with_its_intent_and_held_by_a_finalizer(desk: Desk) -> None:
    desk.record(planned("n1", pods=("default/a",)))
    (node,) = desk.nodes()
    (batch,) = desk.batches()
    assert (node.name, node.node_name, node.batch, node.pods) == ("n1", "n1", batch.name, ("default/a",))
    assert (node.phase, node.phase_since) == (Phase.INTENDED, desk.now)
    assert desk.api.get(PROVISIONED_NODES, "n1")["metadata"]["finalizers"] == [FINALIZER]


def test_a_batch_is_there_before_its_nodes(desk: Desk) -> None:
    created: list[Resource] = []

    @contextmanager
    def attend(verb: str, resource: Resource) -> Iterator[None]:
        if verb == "create":
            created.append(resource)
        yield

    desk.journal = Journal(InterceptedApi(desk.api, attend))
    desk.record(planned("n1"), planned("n2"))
    assert created == [LAUNCH_BATCHES, PROVISIONED_NODES, PROVISIONED_NODES]


def test_recording_the_same_plan_again_writes_nothing(desk: Desk) -> None:
    desk.record(planned("n1"), planned("n2"))
    before = desk.api.writes
    desk.restarted().record(planned("n1"), planned("n2"))
    assert desk.api.writes == before


def test_pools_that_only_observe_are_not_acted_for(desk: Desk) -> None:
    observing = replace(POOL, mode=Mode.OBSERVE)
    desk.journal.record(Plan(launches=(planned("n1"),)), Snapshot(pools=(observing,)), desk.now)
    assert desk.batches() == ()


@pytest.mark.parametrize(("gang", "minimum"), [(False, 1), (True, 2)], ids=["single pods", "gang"])
def test_a_gang_comes_together(gang: bool, minimum: int) -> None:
    reference = GangRef("default", "g") if gang else None
    pods = tuple(Pod("default", name, gang=reference) for name in ("a", "b"))
    gangs = FrozenMap({"default/g": Gang("default", "g", "PodGroup", 2)} if gang else {})
    launches = (planned("n1", pods=("default/a",)), planned("n2", pods=("default/b",)))
    (batch,) = batches_of(launches, Snapshot(pods=pods, gangs=gangs, pools=(POOL,)))
    assert batch.minimum == minimum


def test_a_gang_is_not_launched_together_with_others() -> None:
    pods = (Pod("default", "a", gang=GangRef("default", "g")), Pod("default", "b"))
    launches = (planned("n1", pods=("default/a",)), planned("n2", pods=("default/b",)))
    assert len(batches_of(launches, Snapshot(pods=pods, pools=(POOL,)))) == 2


@pytest.mark.parametrize(
    ("capacity_type", "gang", "batches"),
    [
        pytest.param("on-demand", None, 1, id="on-demand"),
        pytest.param("flex-start", None, 2, id="one-that-waits-keeps-no-other-waiting"),
        pytest.param("flex-start", GangRef("default", "g"), 1, id="a-gang-waits-together"),
    ],
)
def test_flex_start_nodes_wait_each_in_a_request_of_its_own(
    capacity_type: str, gang: GangRef | None, batches: int
) -> None:
    offering = replace(A, capacity_type=capacity_type)
    launches = [planned(name, offering, pods=(f"default/{name}",)) for name in ("n1", "n2")]
    pods = tuple(Pod("default", name, gang=gang) for name in ("n1", "n2"))
    assert len(batches_of(launches, Snapshot(pods=pods, pools=(POOL,)))) == batches


def test_taints_tell_batches_apart() -> None:
    tainted = planned("n2")
    tainted = replace(tainted, node=replace(tainted.node, taints=(Taint("k"),)))
    assert len(batches_of((planned("n1"), tainted), Snapshot(pools=(POOL,)))) == 2


def test_large_batches_are_split_at_what_the_schema_holds() -> None:
    launches = [planned(f"n{index:03}") for index in range(230)]
    batches = batches_of(launches, Snapshot(pools=(POOL,)))
    assert [len(batch.nodes) for batch in batches] == [100, 100, 30]
    assert len({batch.name for batch in batches}) == 3


def with_machines(batch: LaunchBatch, *machines: str, offering: int = 0) -> LaunchBatch:
    """The batch after an answer that gives each node its machine, or "" for none."""
    got = batch.offerings[offering]
    pairs = zip(batch.members, machines, strict=True)
    members = tuple(replace(member, provider_id=key, obtained=got if key else None) for member, key in pairs)
    return replace(batch, outcome=BatchOutcome.LAUNCHED, answered=True, members=members)


def test_missing_nodes_are_derived_again_from_their_batch(desk: Desk) -> None:
    desk.record(planned("n1"), planned("n2"))
    lost = desk.nodes()[1]
    desk.api.patch(PROVISIONED_NODES, "n2", {"metadata": {"finalizers": None}})
    desk.api.delete(PROVISIONED_NODES, "n2")
    desk.restarted()
    found = desk.nodes()[1]
    assert replace(found, uid=lost.uid, resource_version=lost.resource_version) == lost


def test_nodes_of_a_launched_batch_are_not_made_again(desk: Desk) -> None:
    desk.record(planned("n1"), planned("n2"))
    (batch,) = desk.batches()
    desk.journal.save_batch(with_machines(batch, "i-1", "i-2"))
    desk.journal.map_nodes(desk.batches()[0], desk.now)
    desk.journal.forget(desk.nodes()[1])
    desk.restarted()
    assert [node.name for node in desk.nodes()] == ["n1"]


def test_a_finished_batch_without_nodes_is_removed(desk: Desk) -> None:
    desk.record(planned("n1"))
    (batch,) = desk.batches()
    desk.journal.save_batch(with_machines(batch, "i-1"))
    desk.journal.forget(desk.nodes()[0])
    desk.restarted()
    assert desk.batches() == ()


def test_a_finished_batch_stays_as_long_as_one_of_its_nodes(desk: Desk) -> None:
    desk.record(planned("n1"), planned("n2"))
    (batch,) = desk.batches()
    desk.journal.save_batch(with_machines(batch, "i-1", "i-2"))
    desk.journal.forget(desk.nodes()[0])
    assert [found.deleting for found in desk.batches()] == [False]


def test_a_later_node_of_the_same_name_gets_no_machine_of_an_earlier_batch(desk: Desk) -> None:
    """A machine was lost, its pod waits again and its node has the name that follows from it; another node of the
    first batch is still there."""
    desk.record(planned("n1"), planned("n2"))
    (batch,) = desk.batches()
    desk.journal.map_nodes(desk.journal.save_batch(with_machines(batch, "i-1", "i-2")), desk.now)
    desk.journal.forget(desk.nodes()[0])
    desk.record(planned("n1"))
    desk.restarted()
    again, other = desk.nodes()
    assert (again.name, again.provider_id, again.phase) == ("n1", "", Phase.INTENDED)
    desk.restarted().journal.forget(other)
    assert [found.name for found in desk.batches()] == [again.batch]


def test_the_mapping_is_carried_over_to_the_nodes(desk: Desk) -> None:
    desk.record(planned("n1"), planned("n2"))
    (batch,) = desk.batches()
    saved = replace(with_machines(batch, "i-1", "", offering=1), provider="simulated")
    desk.journal.map_nodes(desk.journal.save_batch(saved), desk.now)
    first, second = desk.nodes()
    assert (first.provider_id, first.provider, first.obtained, first.phase) == ("i-1", "simulated", B, Phase.LAUNCHED)
    assert (second.provider_id, second.phase) == ("", Phase.FAILED)


def test_a_machine_that_comes_late_is_as_young_as_any(desk: Desk) -> None:
    """Lists may lack it for as long as any other, although its node has been on its way out for longer."""
    desk.record(planned("n1"))
    (batch,) = desk.batches()
    desk.journal.move(desk.nodes()[0], Why.UNWANTED, desk.now)
    later = desk.now + timedelta(minutes=30)
    saved = replace(with_machines(batch, "i-1"), provider="simulated")
    desk.journal.map_nodes(desk.journal.save_batch(saved), later)
    (node,) = desk.nodes()
    assert (node.provider_id, node.phase) == ("i-1", Phase.DRAINING)
    window = timedelta(minutes=5)
    assert not overdue(node, window, later)
    assert overdue(node, window, later + window)


def test_tokens_depend_on_batch_attempt_and_zone_alone(desk: Desk) -> None:
    desk.record(planned("n1"))
    (batch,) = desk.batches()
    assert token_of(batch, 0) == token_of(replace(batch, outcome=BatchOutcome.CALLING, token="t"), 0)
    different = {token_of(batch, 0), token_of(batch, 1), token_of(replace(batch, uid="other"), 0)}
    assert len(different) == 3
    one_zone = replace(batch, offerings=(A, replace(A, capacity_type=CapacityType.SPOT)))
    assert token_of(one_zone, 0) != token_of(one_zone, 1), "EC2 would refuse other parameters with the same token"
    assert all(len(token) == 64 for token in different)


def launched(desk: Desk, name: str) -> None:
    desk.record(planned(name))
    (batch,) = desk.batches()
    saved = desk.journal.save_batch(with_machines(batch, "i-1"))
    desk.journal.map_nodes(saved, desk.now)


def test_a_drain_is_written_down_with_its_reason(desk: Desk) -> None:
    launched(desk, "n1")
    decision = NodeDecision("n1", NodeAction.DRAIN, (Reason.of(Code.BLOCK_ENDING, Subject("block", "b")),))
    desk.journal.record(Plan(nodes=(decision,)), Snapshot(pools=(POOL,)), desk.now)
    (node,) = desk.nodes()
    assert node.phase is Phase.DRAINING
    assert node.reasons == decision.reasons
    assert [found.name for found in desk.journal.pending().leaving] == ["n1"]


def test_no_drain_is_written_down_for_a_pool_that_only_observes(desk: Desk) -> None:
    launched(desk, "n1")
    decision = NodeDecision("n1", NodeAction.DRAIN, (Reason.of(Code.BLOCK_ENDING, Subject("block", "b")),))
    desk.journal.record(Plan(nodes=(decision,)), Snapshot(pools=(replace(POOL, mode=Mode.OBSERVE),)), desk.now)
    assert [node.phase for node in desk.nodes()] == [Phase.LAUNCHED]


def test_a_drain_that_demands_an_empty_node_is_not_written_down_before_anybody_looked(desk: Desk) -> None:
    launched(desk, "n1")
    decision = NodeDecision("n1", NodeAction.DRAIN, (Reason.of(Code.NODE_EMPTY, Subject("node", "n1")),))
    desk.journal.record(Plan(nodes=(decision,)), Snapshot(pools=(POOL,)), desk.now)
    (node,) = desk.nodes()
    assert node.phase is Phase.LAUNCHED
    assert [found for _, found in desk.journal.pending().decisions] == [decision]


def test_two_writers_cannot_both_save(desk: Desk) -> None:
    desk.record(planned("n1"))
    other = desk.restarted()
    desk.journal.save_batch(replace(desk.journal.batches[0], outcome=BatchOutcome.CALLING))
    with pytest.raises(ConflictError):
        other.journal.save_batch(replace(other.journal.batches[0], outcome=BatchOutcome.CALLING))
    assert desk.api.get(LAUNCH_BATCHES, desk.batches()[0].name)["status"]["outcome"] == "Calling"


def test_a_lagging_watch_does_not_make_us_forget_what_we_wrote(desk: Desk) -> None:
    stale = int(desk.api.list(PROVISIONED_NODES).resource_version)
    desk.record(planned("n1"))
    before = desk.api.writes
    desk.journal.resume((), (), desk.now, seen_up_to=stale)
    assert [node.name for node in desk.journal.nodes] == ["n1"]
    desk.record(planned("n1"))
    assert desk.api.writes == before


def test_a_lagging_watch_does_not_bring_back_what_we_removed(desk: Desk) -> None:
    desk.record(planned("n1"))
    batches, nodes = desk.batches(), desk.nodes()
    stale = int(desk.api.list(PROVISIONED_NODES).resource_version)
    desk.journal.save_batch(with_machines(batches[0], "i-1"))
    desk.journal.forget(nodes[0])
    desk.journal.resume(batches, nodes, desk.now, seen_up_to=stale)
    assert (desk.journal.nodes, desk.journal.batches) == ((), ())


def test_what_somebody_removed_is_gone_once_it_was_seen(desk: Desk) -> None:
    desk.record(planned("n1"))
    desk.journal.save_batch(with_machines(desk.batches()[0], "i-1"))
    desk.journal.resume(desk.batches(), (), desk.now, seen_up_to=int(desk.api.list(PROVISIONED_NODES).resource_version))
    assert desk.journal.nodes == ()


def test_what_somebody_else_wrote_meanwhile_counts(desk: Desk) -> None:
    desk.record(planned("n1"))
    (node,) = desk.nodes()
    desk.api.patch(PROVISIONED_NODES, "n1", {"metadata": {"annotations": {"a": "b"}}})
    desk.journal.note([replace(node, empty_since=desk.now)])
    assert desk.journal.nodes == desk.nodes()
    assert desk.nodes()[0].empty_since is None


def test_nodes_follow_from_their_batch_alone(desk: Desk) -> None:
    desk.record(planned("n1"))
    (batch,) = desk.batches()
    (derived,) = nodes_of(batch)
    assert derived.prediction == batch.prediction
    with pytest.raises(ValueError, match="no prediction"):
        nodes_of(replace(batch, prediction=None))


@pytest.mark.parametrize(
    ("changed", "machines", "expected"),
    [
        pytest.param({}, ("m1", "m2"), True, id="all answers copied"),
        pytest.param({}, ("m1",), True, id="a node that is gone"),
        pytest.param({}, ("m1", ""), False, id="an answer not copied"),
        pytest.param({}, (), False, id="no node left: the batch is dropped"),
        pytest.param({"guarded": True}, ("m1",), False, id="a finalizer to remove"),
        pytest.param({"outcome": BatchOutcome.CALLING}, ("m1",), False, id="a call that is not over"),
    ],
)
def test_a_batch_is_complete_when_nothing_is_left_to_do(
    changed: dict[str, Any], machines: tuple[str, ...], expected: bool, desk: Desk
) -> None:
    desk.record(planned("n1"), planned("n2"))
    (batch,) = desk.batches()
    finished = replace(batch, outcome=BatchOutcome.LAUNCHED, guarded=False)
    left = zip(nodes_of(batch), machines, strict=False)
    nodes = {node.name: replace(node, provider_id=machine) for node, machine in left}
    assert is_complete(replace(finished, **changed), nodes.get) is expected


def test_a_later_node_with_the_name_completes_no_batch(desk: Desk) -> None:
    desk.record(planned("n1"))
    (batch,) = desk.batches()
    finished = replace(batch, outcome=BatchOutcome.LAUNCHED, guarded=False)
    (node,) = (replace(node, provider_id="m1", batch="later") for node in nodes_of(batch))
    assert not is_complete(finished, {node.name: node}.get)
