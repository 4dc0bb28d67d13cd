"""Nodes on their way out: emptied by evictions, ended once, removed last; held and noticed nodes are marked once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import ForbiddenError, NotFoundError
from autoscaler.cluster.journal import Pending
from autoscaler.cluster.resources import CAPACITY_POOLS, DISRUPTION_BUDGETS, NODES, PODS, PROVISIONED_NODES, Resource
from autoscaler.execution.drain import cordon
from autoscaler.execution.terminate import remove_objects
from autoscaler.lifecycle.provisioned_node import Why
from autoscaler.model.capacity import AtDeadline, CapacityBlock, Drain, NodeTemplateRef
from autoscaler.model.node import Node
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.provisioned_node import Phase
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.labels import DRAINING_TAINT
from providers.contract import InstanceState
from providers.simulated.cloud import Call, Fault
from tests.desk import planned
from tests.unit.execution.node_site import Site


@pytest.mark.parametrize("change", ["observe", "delete"])
def test_what_a_pool_asked_for_before_it_stopped_acting_is_not_launched(site: Site, change: str) -> None:
    site.desk.record(planned("n2"))
    if change == "observe":
        site.desk.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Observe"}})
    else:
        site.desk.api.delete(CAPACITY_POOLS, "gpu")
    site.carry_out()
    assert [machine.node for machine in site.desk.cloud.machines.values()] == ["n1"]
    assert [node.name for node in site.desk.nodes() if node.phase is not Phase.FAILED] == ["n1"]


def test_an_empty_node_is_ended_once_its_taint_was_seen(site: Site) -> None:
    site.drain()
    site.carry_out()
    at_first = site.node.phase
    site.carry_out()
    assert (at_first, site.node.phase) == (Phase.DRAINING, Phase.TERMINATING)
    assert site.machine_state() is InstanceState.TERMINATING


def test_a_pod_that_no_watch_has_shown_yet_is_evicted_all_the_same(site: Site) -> None:
    site.drain()
    site.carry_out()
    before = site.seen()
    site.pod("late")
    site.carry_out(seen=before)
    assert "deletionTimestamp" in site.desk.api.get(PODS, "late", namespace="default")["metadata"]
    assert site.node.phase is Phase.DRAINING


def test_pods_of_a_node_that_registers_after_its_drain_are_evicted_before_the_machine_ends(site: Site) -> None:
    """The machine was not listed when it should have ended, and its Node comes without the taint."""
    site.desk.api.delete(NODES, "n1")
    site.drain()
    unlisted = replace(site.seen(), machines={"simulated": {}})
    for _ in range(2):
        site.carry_out(seen=unlisted)
    assert site.node.phase is Phase.TERMINATING
    site.desk.api.create(NODES, {"metadata": {"name": "n1"}, "spec": {"providerID": site.node.provider_id}})
    site.pod("early")
    site.carry_out()
    assert "deletionTimestamp" in site.desk.api.get(PODS, "early", namespace="default")["metadata"]
    assert (site.taints, site.machine_state()) == ([DRAINING_TAINT], InstanceState.PENDING)
    site.carry_out()
    assert site.machine_state() is InstanceState.TERMINATING


def test_who_takes_the_taint_away_again_does_not_keep_the_machine(site: Site) -> None:
    site.drain()
    site.carry_out()
    site.desk.api.patch(NODES, "n1", {"spec": {"taints": []}})
    site.carry_out()
    at_first = site.node.phase
    site.desk.clock.advance(timedelta(minutes=2))
    site.desk.api.patch(NODES, "n1", {"spec": {"taints": []}})
    site.carry_out()
    assert (at_first, site.node.phase) == (Phase.DRAINING, Phase.TERMINATING)


def test_a_node_is_cordoned_once_however_late_the_watch_is(site: Site) -> None:
    seen_before = Node("n1", uid=site.desk.api.get(NODES, "n1")["metadata"]["uid"])
    cordon(site.desk.api, seen_before)
    cordon(site.desk.api, seen_before)
    taints = [taint["key"] for taint in site.desk.api.get(NODES, "n1")["spec"]["taints"]]
    assert taints == ["foreslice.dev/draining"]


def test_a_drained_node_takes_no_new_pods_and_waits_for_the_old_ones(site: Site) -> None:
    site.pod("a")
    site.drain()
    site.carry_out()
    taints = [taint["key"] for taint in site.desk.api.get(NODES, "n1")["spec"]["taints"]]
    assert taints == ["foreslice.dev/draining"]
    assert "deletionTimestamp" in site.desk.api.get(PODS, "a", namespace="default")["metadata"]
    assert site.node.phase is Phase.DRAINING
    site.end_pods()
    site.carry_out()
    assert site.node.phase is Phase.TERMINATING


def test_a_second_look_at_a_draining_node_writes_nothing(site: Site) -> None:
    site.pod("a")
    site.drain()
    site.carry_out()
    before = site.desk.api.writes
    site.carry_out()
    assert site.desk.api.writes == before


def test_pods_of_daemon_sets_do_not_hold_a_node(site: Site) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    site.pod("d", ownerReferences=[owner])
    site.drain()
    site.carry_out()
    site.carry_out()
    assert site.node.phase is Phase.TERMINATING
    assert "deletionTimestamp" not in site.desk.api.get(PODS, "d", namespace="default")["metadata"]


def protect(site: Site) -> None:
    budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}
    site.desk.api.create(DISRUPTION_BUDGETS, budget)
    site.pod("a", labels={"app": "x"})


def test_a_protected_pod_holds_its_node(site: Site) -> None:
    protect(site)
    site.drain()
    (trouble,) = site.carry_out()
    assert (trouble.name, trouble.reason) == ("n1", "Blocked")
    assert "default/a" in str(trouble.error)
    assert site.node.phase is Phase.DRAINING
    assert "deletionTimestamp" not in site.desk.api.get(PODS, "a", namespace="default")["metadata"]


@pytest.mark.parametrize(
    ("policy", "early", "ended"),
    [(AtDeadline.DELETE, False, True), (AtDeadline.LEAVE, False, False), (AtDeadline.DELETE, True, False)],
    ids=["delete at the deadline", "leave at the deadline", "before the deadline"],
)
def test_at_the_end_of_a_block_its_policy_decides(site: Site, policy: AtDeadline, early: bool, ended: bool) -> None:
    now = site.desk.now
    end = now + timedelta(minutes=1) if early else now
    drain = Drain(at_deadline=policy)
    site.blocks = (CapacityBlock("cb", "p5.48xlarge", "z", 1, now - timedelta(days=1), end, drain=drain),)
    protect(site)
    site.drain()
    site.carry_out()
    assert (site.node.phase is Phase.TERMINATING) is ended


def refuse_evictions(site: Site, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an admission policy does that a tenant chooses by a label."""
    evict = site.desk.api.evict

    def refused(pod: str, **given: str) -> None:
        if pod == name:
            raise ForbiddenError("policy: pods with the label keep=true are not evicted")
        evict(pod, **given)

    monkeypatch.setattr(site.desk.api, "evict", refused)


def test_a_refused_eviction_keeps_no_other_pod_from_time_to_stop(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        site.pod(name)
    refuse_evictions(site, "a", monkeypatch)
    site.drain()
    troubles = site.carry_out()
    assert [site.evicted(name) for name in ("a", "b", "c")] == [False, True, True]
    assert [trouble.reason for trouble in troubles] == ["Forbidden"]
    assert "keep=true" in troubles[0].text
    site.end_pods()
    site.carry_out()
    assert (site.node.phase, site.machine_state()) == (Phase.DRAINING, InstanceState.PENDING)


def test_a_refused_eviction_does_not_keep_a_machine_beyond_the_end_of_its_block(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = site.desk.now
    drain = Drain(at_deadline=AtDeadline.DELETE)
    site.blocks = (CapacityBlock("cb", "p5.48xlarge", "z", 1, now - timedelta(days=1), now, drain=drain),)
    site.pod("a")
    refuse_evictions(site, "a", monkeypatch)
    site.drain()
    site.carry_out()
    assert site.node.phase is Phase.TERMINATING


def test_a_gone_machine_leaves_nothing_behind(site: Site) -> None:
    site.drain()
    site.carry_out()
    site.carry_out()
    site.desk.journal.move(site.node, Why.MACHINE_GONE, site.desk.now)
    site.carry_out()
    assert site.desk.nodes() == ()
    assert site.desk.batches() == ()
    with pytest.raises(NotFoundError):
        site.desk.api.get(NODES, "n1")


def test_a_node_that_never_came_is_removed(site: Site) -> None:
    site.desk.cloud.break_template("default", "no such image")
    site.desk.record(planned("n2"))
    site.carry_out()
    assert [node.phase for node in site.desk.nodes()] == [Phase.LAUNCHED, Phase.FAILED]
    site.carry_out()
    assert [node.name for node in site.desk.nodes()] == ["n1"]


def test_a_node_that_became_unwanted_during_its_launch_gets_its_machine_and_loses_it(site: Site) -> None:
    site.desk.cloud.inject(Call.LAUNCH, Fault.LOST_ANSWER)
    site.desk.record(planned("n2"))
    site.carry_out()
    site.desk.journal.move(site.desk.nodes()[1], Why.UNWANTED, site.desk.now)
    site.desk.clock.advance(timedelta(seconds=5))
    site.carry_out()
    site.carry_out()
    unwanted = site.desk.nodes()[1]
    assert (unwanted.phase, bool(unwanted.provider_id)) == (Phase.TERMINATING, True)
    ended = [machine.node for machine in site.desk.cloud.machines.values() if machine.ended_at is not None]
    assert ended == ["n2"]


def test_a_failed_node_with_a_machine_is_ended_once_its_taint_was_seen(site: Site) -> None:
    site.at(Phase.FAILED)
    site.carry_out()
    assert (site.node.phase, site.taints) == (Phase.FAILED, [DRAINING_TAINT])
    site.carry_out()
    assert site.node.phase is Phase.TERMINATING
    assert site.machine_state() is InstanceState.TERMINATING


def test_a_lost_answer_to_terminate_is_told_and_asked_again(site: Site) -> None:
    site.drain()
    site.carry_out()
    site.desk.cloud.inject(Call.TERMINATE, Fault.LOST_REQUEST)
    (trouble,) = site.carry_out()
    assert (trouble.kind, trouble.name, trouble.reason) == ("ProvisionedNode", "n1", "Ambiguous")
    assert site.machine_state() is InstanceState.PENDING
    site.desk.clock.advance(timedelta(seconds=5))
    assert site.carry_out() == ()
    assert site.machine_state() is InstanceState.TERMINATING


def decided(site: Site, action: NodeAction, deadline: datetime | None = None) -> Pending:
    return Pending(decisions=((site.node, NodeDecision("n1", action, deadline=deadline)),))


def test_a_held_node_is_marked_for_other_autoscalers_once(site: Site) -> None:
    site.carry_out(decided(site, NodeAction.HOLD))
    annotations = site.desk.api.get(NODES, "n1")["metadata"]["annotations"]
    assert annotations == {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true", "foreslice.dev/held": "true"}
    before = site.desk.api.writes
    site.carry_out(decided(site, NodeAction.HOLD))
    assert site.desk.api.writes == before


def test_node_and_pods_are_told_once_when_the_machine_goes(site: Site) -> None:
    site.pod("a")
    ends_at = site.desk.now + timedelta(minutes=45)
    site.carry_out(decided(site, NodeAction.NOTICE, ends_at))
    expected = {"foreslice.dev/capacity-ends-at": "2026-01-01T00:45:00Z"}
    assert site.desk.api.get(NODES, "n1")["metadata"]["annotations"] == expected
    assert site.desk.api.get(PODS, "a", namespace="default")["metadata"]["annotations"] == expected
    before = site.desk.api.writes
    site.carry_out(decided(site, NodeAction.NOTICE, ends_at))
    assert site.desk.api.writes == before


def test_one_item_that_fails_stops_no_other(site: Site) -> None:
    site.desk.record(planned("n2"))
    broken = replace(site.desk.journal.batches[-1], template=NodeTemplateRef("Unknown", "x"), name="other")
    site.desk.cloud.lose(next(iter(site.desk.cloud.machines)))
    leaving = site.desk.journal.save_node(replace(site.node, phase=Phase.GONE))
    pending = Pending(launches=(broken,), leaving=(leaving,))
    (trouble,) = site.carry_out(pending)
    assert (trouble.kind, trouble.name, trouble.reason) == ("LaunchBatch", "other", "Configuration")
    with pytest.raises(NotFoundError):
        site.desk.api.get(PROVISIONED_NODES, "n1")


def test_a_node_that_may_not_be_deleted_keeps_no_object(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The admission policy protects Nodes without our label; the cloud removes them after their machines."""
    delete = site.desk.api.delete

    def guarded(resource: Resource, name: str, **how: Any) -> None:
        if resource == NODES:
            raise ForbiddenError("denied by the policy", next_step="none")
        delete(resource, name, **how)

    monkeypatch.setattr(site.desk.api, "delete", guarded)
    remove_objects(site.node, api=site.desk.api, journal=site.desk.journal)
    assert site.desk.nodes() == ()
    assert site.desk.api.get(NODES, "n1")
