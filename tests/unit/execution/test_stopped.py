"""A machine that somebody stopped: left alone, ended where its pool says so, and never after it was started again."""

from __future__ import annotations

import pytest

from autoscaler.lifecycle.provisioned_node import Why, last_edge
from autoscaler.model.capacity import Disruption, StoppedMachines
from autoscaler.model.plan import NodeAction, Plan
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.reason import Code, Reason
from autoscaler.planning.disruption.node_actions import decide
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from providers.contract import InstanceState
from tests.desk import POOL
from tests.unit.execution.node_site import Site
from tests.unit.report.events import events_of


@pytest.fixture
def site() -> Site:
    """A site whose machine is stopped."""
    site = Site()
    site.at(Phase.READY)
    (machine,) = site.desk.cloud.machines
    site.desk.cloud.stop(machine)
    return site


def start(site: Site) -> None:
    (machine,) = site.desk.cloud.machines
    site.desk.cloud.stop(machine, stopped=False)


@pytest.mark.parametrize(
    ("stopped", "action"), [(StoppedMachines.KEEP, NodeAction.KEEP), (StoppedMachines.END, NodeAction.DRAIN)]
)
def test_its_pool_decides(site: Site, stopped: StoppedMachines, action: NodeAction) -> None:
    pool = replace(POOL, disruption=Disruption(stopped=stopped))
    node = replace(site.node, stopped_since=site.desk.now)
    snapshot = replace(site.seen().snapshot, pools=(pool,), provisioned=(node,))
    (decision,) = decide(snapshot, frozenset(), site.desk.now, custom=FrozenMap())
    assert (decision.action, [reason.code for reason in decision.reasons]) == (action, [Code.NODE_STOPPED])
    told = [event for event in events_of(Plan(nodes=(decision,)), snapshot) if event.reason == "MachineStopped"]
    assert bool(told) is (action is NodeAction.KEEP)
    assert all("kubectl delete provisionednode n1" in event.message for event in told)


def test_where_its_pool_says_so_it_is_ended_whatever_is_bound_there(site: Site) -> None:
    site.pod("a")
    site.consider(Code.NODE_STOPPED)
    assert (site.node.phase, site.evicted("a")) == (Phase.DRAINING, False)
    site.carry_out()
    assert (site.node.phase, site.machine_state()) == (Phase.TERMINATING, InstanceState.TERMINATING)


def test_it_is_not_ended_once_somebody_started_it_again(site: Site) -> None:
    site.consider(Code.NODE_STOPPED)
    start(site)
    site.carry_out()
    assert (site.node.phase, last_edge(site.node), site.node.reasons) == (Phase.READY, "StartedAgain", ())
    assert site.machine_state() is InstanceState.PENDING


def test_one_that_was_started_before_its_drain_was_written_is_treated_as_any_other(site: Site) -> None:
    site.pod("a")
    start(site)
    site.consider(Code.NODE_STOPPED)
    site.consider(Code.NODE_STOPPED)
    assert (site.node.phase, site.machine_state()) == (Phase.READY, InstanceState.PENDING)


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.TERMINATING], ids=lambda phase: phase.value)
def test_what_is_stopped_and_unwanted_is_ended(site: Site, phase: Phase) -> None:
    site.at(phase)
    site.carry_out()
    site.carry_out()
    assert (site.node.phase, site.machine_state()) == (Phase.TERMINATING, InstanceState.TERMINATING)


def test_a_persons_order_ends_it(site: Site) -> None:
    site.desk.journal.move(site.node, Why.UNWANTED, site.desk.now, (Reason.of(Code.POOL_DELETED),))
    site.carry_out()
    site.carry_out()
    assert site.machine_state() is InstanceState.TERMINATING
