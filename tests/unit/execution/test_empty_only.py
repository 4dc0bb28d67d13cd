"""Nodes that go only while they are empty, and whose Nodes and pods are touched: no pod is evicted without cause."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.journal import Pending
from autoscaler.cluster.resources import CAPACITY_POOLS, NODES, PODS, PROVISIONED_NODES, Resource
from autoscaler.execution.executor import Executor
from autoscaler.lifecycle.leaving import WHY_IT_GOES, PodsThen
from autoscaler.lifecycle.provisioned_node import Why, last_edge
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.reason import Code
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.labels import CAPACITY_ENDS_AT, DRAINING_TAINT
from instance_catalog.kubernetes.labels import POOL as POOL_LABEL
from providers.contract import InstanceState
from providers.simulated.cloud import Call, Fault
from tests.desk import planned
from tests.unit.execution.node_site import Site


def decided(site: Site, action: NodeAction, deadline: datetime | None = None) -> Pending:
    return Pending(decisions=((site.node, NodeDecision("n1", action, deadline=deadline)),))


# What has failed was never usable, and on a machine that is stopped no pod runs.
APART = (Code.NODE_FAILED, Code.NODE_STOPPED)
EMPTY_ONLY = [code for code, pods in WHY_IT_GOES.items() if pods is PodsThen.KEPT and code not in APART]
every_reason_that_demands_an_empty_node = pytest.mark.parametrize("why", EMPTY_ONLY, ids=lambda why: why.value)


@every_reason_that_demands_an_empty_node
def test_such_a_drain_begins_with_a_taint_and_is_written_down_once_that_was_seen(site: Site, why: Code) -> None:
    site.at(Phase.READY)
    before = site.seen()
    site.consider(why, seen=before)
    site.consider(why, seen=before)
    assert (site.node.phase, site.taints) == (Phase.READY, [DRAINING_TAINT]), "nobody has seen the taint yet"
    site.consider(why)
    assert (site.node.phase, [reason.code for reason in site.node.reasons]) == (Phase.DRAINING, [why])
    site.carry_out()
    assert (site.node.phase, site.machine_state()) == (Phase.TERMINATING, InstanceState.TERMINATING)


@every_reason_that_demands_an_empty_node
def test_a_pod_that_no_watch_has_shown_keeps_the_drain_from_being_written(site: Site, why: Code) -> None:
    site.at(Phase.READY)
    site.consider(why)
    lagging = site.seen()
    site.pod("late")
    site.consider(why, seen=lagging)
    assert (site.node.phase, site.evicted("late")) == (Phase.READY, False)
    site.consider()
    assert site.taints == [], "a plan that sees the pod keeps the node, and takes the taint away"


@every_reason_that_demands_an_empty_node
def test_a_pod_that_is_found_takes_the_drain_back(site: Site, why: Code) -> None:
    site.at(Phase.READY)
    site.consider(why)
    site.consider(why)
    lagging = site.seen()
    site.pod("late")
    site.carry_out(seen=lagging)
    assert (site.node.phase, last_edge(site.node), site.node.reasons) == (Phase.READY, "PodFound", ())
    assert (site.evicted("late"), site.machine_state()) == (False, InstanceState.PENDING)
    site.consider()
    assert site.taints == []


def test_such_a_drain_never_goes_on_without_its_taint(site: Site) -> None:
    site.at(Phase.READY)
    site.drain(Code.NODE_EMPTY)
    for _ in range(3):
        site.carry_out()
        site.desk.api.patch(NODES, "n1", {"spec": {"taints": []}})
        site.desk.clock.advance(timedelta(minutes=2))
    assert (site.node.phase, site.machine_state()) == (Phase.DRAINING, InstanceState.RUNNING)


def test_a_closed_node_keeps_its_pods_its_machine_and_its_taint(site: Site) -> None:
    site.at(Phase.READY)
    site.pod("a")
    for _ in range(3):
        site.carry_out(decided(site, NodeAction.CLOSE))
        assert (site.node.phase, site.taints, site.evicted("a")) == (Phase.READY, [DRAINING_TAINT], False)
    assert site.machine_state() is not InstanceState.TERMINATING
    site.carry_out(decided(site, NodeAction.KEEP))
    assert site.taints == []


def test_a_taint_that_a_restart_left_over_is_taken_away(site: Site) -> None:
    site.at(Phase.READY)
    site.consider(Code.NODE_EMPTY)
    other = {"key": "example.com/other", "effect": "NoSchedule"}
    site.desk.api.patch(NODES, "n1", {"spec": {"taints": [other, {"key": DRAINING_TAINT, "effect": "NoSchedule"}]}})
    site.desk = site.desk.restarted()
    site.executor = Executor(site.desk.api, site.desk.journal, site.desk.backoffs, site.desk.providers, site.desk.clock)
    site.consider()
    assert site.taints == ["example.com/other"]


def test_a_pool_that_only_observes_gets_no_taint(site: Site) -> None:
    site.at(Phase.READY)
    site.desk.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Observe"}})
    site.consider(Code.NODE_EMPTY)
    assert site.taints == []


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.TERMINATING], ids=lambda phase: phase.value)
def test_no_machine_is_ended_under_a_pod(site: Site, phase: Phase) -> None:
    site.pod("a")
    site.at(phase)
    site.carry_out()
    troubles = site.carry_out()
    assert (site.node.phase, site.evicted("a"), site.machine_state()) == (phase, False, InstanceState.PENDING)
    assert [trouble.reason for trouble in troubles] == ([] if phase is Phase.FAILED else ["Blocked"])
    site.desk.api.delete(PODS, "a", namespace="default", grace_seconds=0)
    site.carry_out()
    assert (site.node.phase, site.machine_state()) == (Phase.TERMINATING, InstanceState.TERMINATING)


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.READY], ids=lambda phase: phase.value)
def test_a_persons_order_evicts_and_ends_the_machine(site: Site, phase: Phase) -> None:
    site.pod("a")
    site.at(phase)
    site.desk.api.delete(PROVISIONED_NODES, "n1")
    site.desk.journal.resume(site.desk.batches(), site.desk.nodes(), site.desk.now)
    site.consider(Code.NODE_FAILED)
    assert (site.node.phase, site.evicted("a")) == (Phase.DRAINING, True)
    site.end_pods()
    site.carry_out()
    assert site.node.phase is Phase.TERMINATING


def test_an_eviction_is_of_the_very_pod_that_was_seen(site: Site) -> None:
    site.pod("a")
    site.drain()
    before = site.seen()
    site.desk.api.delete(PODS, "a", namespace="default", grace_seconds=0)
    site.pod("a")
    assert site.carry_out(seen=before) == ()
    assert not site.evicted("a"), "the pod that has the name now is another one"
    site.carry_out()
    assert site.evicted("a")


def foreign(site: Site) -> None:
    """Another machine has registered by the node's name, and a pod runs there."""
    site.desk.api.delete(NODES, "n1")
    spec = {"providerID": "aws:///us-east-1a/i-someoneelse"}
    site.desk.api.create(NODES, {"metadata": {"name": "n1", "labels": {POOL_LABEL: "gpu"}}, "spec": spec})
    site.pod("theirs")


@pytest.mark.parametrize("seen", ["before", "after"])
def test_the_node_of_another_machine_is_left_alone(site: Site, seen: str) -> None:
    lagging = site.seen()
    site.drain()
    foreign(site)
    site.carry_out(seen=lagging if seen == "before" else None)
    site.carry_out()
    assert (site.taints, site.evicted("theirs"), site.node.phase) == ([], False, Phase.TERMINATING)
    site.desk.journal.move(site.node, Why.MACHINE_GONE, site.desk.now)
    site.carry_out()
    assert site.desk.nodes() == ()
    assert site.desk.api.get(NODES, "n1")["spec"]["providerID"] == "aws:///us-east-1a/i-someoneelse"


@pytest.mark.parametrize(
    ("labels", "deleted"),
    [({POOL_LABEL: "gpu"}, True), ({POOL_LABEL: "other"}, False), ({}, False)],
    ids=["our label", "another pool's label", "no label"],
)
def test_a_node_without_a_provider_id_is_known_by_our_label(site: Site, labels: dict[str, str], deleted: bool) -> None:
    site.desk.api.delete(NODES, "n1")
    site.desk.api.create(NODES, {"metadata": {"name": "n1", "labels": labels}, "spec": {}})
    site.at(Phase.GONE)
    site.carry_out()
    assert site.desk.nodes() == ()
    assert (list_all(site.desk.api, NODES)[0] == ()) is deleted


def test_notices_go_to_the_very_objects_that_were_seen(site: Site) -> None:
    site.pod("a")
    before = site.seen()
    site.desk.api.delete(PODS, "a", namespace="default", grace_seconds=0)
    site.pod("a")
    foreign(site)
    (trouble,) = site.carry_out(decided(site, NodeAction.NOTICE, site.desk.now + timedelta(minutes=30)), seen=before)
    assert trouble.reason == "Conflict"
    assert "annotations" not in site.desk.api.get(NODES, "n1")["metadata"]
    assert "annotations" not in site.desk.api.get(PODS, "a", namespace="default")["metadata"]


def test_an_end_that_moves_is_told_again_and_one_that_does_not_is_told_once(site: Site) -> None:
    site.pod("a")
    at = site.desk.now + timedelta(minutes=30)
    site.carry_out(decided(site, NodeAction.NOTICE, at))
    told = site.desk.api.writes
    site.carry_out(decided(site, NodeAction.NOTICE, at))
    assert site.desk.api.writes == told
    site.carry_out(decided(site, NodeAction.NOTICE, at - timedelta(minutes=10)))
    moment = (at - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert site.desk.api.get(PODS, "a", namespace="default")["metadata"]["annotations"] == {CAPACITY_ENDS_AT: moment}


def test_while_the_outcome_of_its_call_is_unknown_an_unwanted_node_is_kept(site: Site) -> None:
    site.desk.cloud.inject(Call.LAUNCH, Fault.LOST_ANSWER)
    site.desk.record(planned("n2"))
    site.carry_out()
    site.desk.journal.move(site.desk.nodes()[1], Why.UNWANTED, site.desk.now)
    site.carry_out()
    assert [node.name for node in site.desk.nodes()] == ["n1", "n2"], "its machine may exist"


def test_machines_that_are_missing_from_a_list_are_told(site: Site) -> None:
    site.at(Phase.READY)
    site.desk.clock.advance(timedelta(hours=1))
    seen = replace(site.seen(), machines={"simulated": {}})
    (trouble,) = site.carry_out(seen=seen)
    assert (trouble.kind, trouble.name) == ("Provider", "simulated")
    assert site.node.provider_id in trouble.text
    assert site.carry_out() == ()


def test_a_drain_of_the_version_before_is_taken_back_for_a_pod(site: Site) -> None:
    """It was written down before anybody looked: Draining, no taint yet, and a pod runs."""
    site.at(Phase.READY)
    site.pod("a")
    site.drain(Code.NODE_EMPTY)
    site.carry_out()
    site.carry_out()
    assert (site.node.phase, site.evicted("a")) == (Phase.READY, False)
    site.consider()
    assert site.taints == []


def test_a_node_is_deleted_by_its_uid(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the last look and the deletion another machine may register by the name."""
    deleted: list[tuple[str, str]] = []
    uid = site.desk.api.get(NODES, "n1")["metadata"]["uid"]
    delete = site.desk.api.delete

    def record(resource: Resource, name: str, **options: Any) -> None:
        if resource == NODES:
            deleted.append((name, options.get("uid", "")))
        delete(resource, name, **options)

    monkeypatch.setattr(site.desk.api, "delete", record)
    site.at(Phase.GONE)
    site.carry_out()
    assert deleted == [("n1", uid)]
