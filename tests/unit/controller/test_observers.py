"""What is about to be done is in the log before it is done, and afterwards what came of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from autoscaler.clock import EPOCH, VirtualClock
from autoscaler.cluster.journal import Pending
from autoscaler.cluster.resources import LAUNCH_BATCHES, Resource
from autoscaler.controller.observers import TickObservers
from autoscaler.loop.decision import Decisions
from autoscaler.loop.loop import Recorded, Tick
from autoscaler.model.plan import NodeAction, NodeDecision, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import Phase, PhaseChange
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.serve.health import Heartbeat
from autoscaler.serve.recorder import Recorder
from autoscaler.serve.site import LatestTick
from autoscaler.simulation.simulation import Simulation
from instance_catalog.dataclass import replace
from tests.crash.life import START, CrashError, scenario, small_catalog
from tests.desk import POOL, new_desk, planned
from tests.unit.cluster.odd import OddApi


def observers() -> TickObservers:
    clock = VirtualClock()
    return TickObservers(Heartbeat(clock), Recorder(clock, version="1"), LatestTick(), timedelta(minutes=5))


def recorded(pending: Pending, *pods: Pod) -> Recorded:
    snapshot = Snapshot(pods=pods, pools=(POOL,))
    return Recorded(Decisions(EPOCH, snapshot, Plan(), (), ()), pending)


def test_a_launch_is_logged_once_with_what_it_costs() -> None:
    desk = new_desk()
    desk.record(planned("n1", pods=("default/a", "default/b")), planned("n2", pods=("default/c",)))
    told = observers()
    with capture_logs() as lines:
        for _ in range(2):
            told.recorded(recorded(desk.journal.pending()))
    (line,) = lines
    batch = line.pop("batch")
    assert batch == desk.batches()[0].name
    assert line == {
        "event": "launching",
        "log_level": "info",
        "pool": "gpu",
        "instance_type": "p5.48xlarge",
        "zone": "us-east-1a",
        "capacity_type": "on-demand",
        "usd_per_hour": "55.04",
        "nodes": ("n1", "n2"),
        "pods": 3,
        "reason": "3 pods wait",
        "repeated": False,
    }


def test_what_happens_to_nodes_is_logged_with_the_reason() -> None:
    desk = new_desk()
    desk.record(planned("n1"))
    (node,) = desk.nodes()
    draining = replace(
        node, phase=Phase.DRAINING, provider_id="i-1", history=(PhaseChange(Phase.DRAINING, EPOCH, "Unwanted"),)
    )
    notice = NodeDecision("n1", NodeAction.NOTICE, (Reason.of(Code.NO_CANDIDATE),), EPOCH + timedelta(hours=1))
    pending = Pending(leaving=(draining, replace(draining, phase=Phase.TERMINATING)), decisions=((node, notice),))
    with capture_logs() as lines:
        observers().recorded(recorded(pending, Pod("default", "a", node_name="n1")))
    assert [(line["event"], line["node"], line["pods"]) for line in lines] == [
        ("draining", "n1", 1),
        ("terminating", "n1", 1),
        ("giving_notice", "n1", 1),
    ]
    assert (lines[0]["reason"], lines[0]["provider_id"]) == ("Unwanted", "i-1")
    assert lines[2]["ends_at"] == "2026-01-01T01:00:00+00:00"


def test_the_outcome_is_logged_once() -> None:
    desk = new_desk()
    desk.record(planned("n1"))
    (node,) = desk.nodes()
    launched = replace(
        node, phase=Phase.LAUNCHED, provider_id="i-1", history=(PhaseChange(Phase.LAUNCHED, EPOCH, "Obtained"),)
    )
    told = observers()
    with capture_logs() as lines:
        for nodes in ((launched,), (launched,), ()):
            told.ticked(Tick(EPOCH, Snapshot(pools=(POOL,), provisioned=nodes), Plan(), (), None))
    assert [(line["event"], line["node"]) for line in lines] == [("node_moved", "n1"), ("node_removed", "n1")]
    assert (lines[0]["phase"], lines[0]["reason"], lines[0]["provider_id"]) == ("Launched", "Obtained", "i-1")


def test_the_log_of_a_process_that_is_killed_before_the_call_shows_the_launch() -> None:
    simulation = Simulation(catalog=small_catalog(), start=START)
    simulation.add(scenario())
    simulation.settle_cluster()
    told = observers()

    def dies(verb: str, resource: Resource, text: str) -> bool:
        """At the write that comes right before the call."""
        if (verb, resource) == ("update", LAUNCH_BATCHES):
            raise CrashError
        return False

    simulation.new_loop(OddApi(simulation.api, dies), announce=told.recorded)
    with capture_logs() as lines, pytest.raises(CrashError):
        simulation.loop.tick()
    assert [(line["event"], line["pods"]) for line in lines] == [("launching", 2)]
    assert not simulation.cloud.machines
