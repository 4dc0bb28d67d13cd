"""The life of a ProvisionedNode: every phase and reason is in the table, and observations take the right edges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.lifecycle.provisioned_node import (
    ASSUME,
    EDGES,
    Actor,
    Assumption,
    MachineState,
    Observation,
    Why,
    advance,
    awaits_machine,
    awaits_node,
    became_ready,
    counts_against_limits,
    decide,
    edge_of,
    has_come,
    has_failed,
    has_machine,
    is_coming,
    is_leaving,
    is_over,
    may_take_pods,
    take,
    times_out_at,
)
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from instance_catalog.dataclass import replace
from tests.builders import ours

NOW = datetime(2027, 1, 31, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NODE = ours("n", phase=Phase.INTENDED, phase_since=NOW)
RUNNING = Observation(MachineState.RUNNING, registered=True, slices_complete=True, ready=True)


def at(phase: Phase) -> ProvisionedNode:
    return replace(NODE, phase=phase)


def test_every_phase_can_be_reached_and_left() -> None:
    unreached, stuck = set(Phase) - {Phase.INTENDED}, set(Phase) - {Phase.GONE}
    for edge in EDGES:
        unreached.discard(edge.target)
        if edge.target is not edge.source:
            stuck.discard(edge.source)
    assert unreached == set()
    assert stuck == set()


def test_every_phase_leads_to_the_end() -> None:
    leads = {Phase.GONE}
    while True:
        more = {edge.source for edge in EDGES if edge.target in leads} - leads
        if not more:
            break
        leads |= more
    assert leads == set(Phase)


@pytest.mark.parametrize(
    ("asked", "phases"),
    [
        (is_coming, {"Intended", "Launching", "Launched", "Registered", "DriversReady"}),
        (may_take_pods, {"Intended", "Launching", "Launched", "Registered", "DriversReady", "Ready"}),
        (is_leaving, {"Draining", "Terminating"}),
        (has_failed, {"Failed"}),
        (is_over, {"Gone"}),
        (has_come, {"Registered", "DriversReady", "Ready"}),
        (awaits_machine, {"Intended", "Launching"}),
        (awaits_node, {"Launched", "Registered"}),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_what_is_asked_of_a_phase(asked: Callable[[ProvisionedNode], bool], phases: set[str]) -> None:
    assert {phase.value for phase in Phase if asked(at(phase))} == phases


@pytest.mark.parametrize("phase", list(Phase), ids=lambda phase: phase.value)
def test_a_machine_counts_until_it_is_gone(phase: Phase) -> None:
    with_machine = replace(at(phase), provider_id="sim:///i-1")
    assert has_machine(with_machine) is counts_against_limits(with_machine) is (phase is not Phase.GONE)
    assert counts_against_limits(at(phase)) is (phase not in (Phase.GONE, Phase.FAILED)), "it may still come"
    assert not has_machine(at(phase))


def test_nothing_comes_back_from_the_dead() -> None:
    recreated = [edge for edge in EDGES if edge.source is Phase.GONE]
    assert [(edge.target, edge.why) for edge in recreated] == [(Phase.DRAINING, Why.MACHINE_RECREATED)]
    leaving = {Phase.DRAINING, Phase.TERMINATING, Phase.FAILED, Phase.GONE}
    back = {(edge.source, edge.why) for edge in EDGES if edge.source in leaving and edge.target not in leaving}
    draining = {(Phase.DRAINING, why) for why in (Why.POD_FOUND, Why.STARTED_AGAIN, Why.END_POSTPONED)}
    assert back == {*draining, (Phase.TERMINATING, Why.POD_FOUND)}


@pytest.mark.parametrize(
    ("members", "used"),
    [
        pytest.param(set(Why), {edge.why for edge in EDGES}, id="reasons"),
        pytest.param(set(Actor), {edge.by for edge in EDGES}, id="actors"),
        pytest.param(set(Phase), set(ASSUME), id="phases with an assumption"),
        pytest.param(set(Assumption), set(ASSUME.values()), id="assumptions"),
    ],
)
def test_every_member_is_used(members: set[object], used: set[object]) -> None:
    assert members - used == set()


def test_no_reason_leads_from_one_phase_to_two() -> None:
    targets = defaultdict(list)
    for edge in EDGES:
        targets[edge.source, edge.why].append(edge.target)
    assert {key: found for key, found in targets.items() if len(found) > 1} == {}


def test_only_the_clock_has_time_outs_and_each_phase_at_most_one() -> None:
    assert all((edge.after is not None) == (edge.by is Actor.CLOCK) for edge in EDGES)
    sources = [edge.source for edge in EDGES if edge.by is Actor.CLOCK]
    assert len(sources) == len(set(sources))


BOOTED = Observation(MachineState.RUNNING, registered=True)
PUBLISHED = Observation(MachineState.RUNNING, registered=True, slices_complete=True)


@pytest.mark.parametrize(
    ("phase", "seen", "target", "why"),
    [
        pytest.param(Phase.INTENDED, RUNNING, None, None, id="an intent waits for execution"),
        pytest.param(Phase.LAUNCHING, RUNNING, None, None, id="a launch waits for its answer"),
        pytest.param(Phase.LAUNCHED, Observation(MachineState.PENDING), None, None, id="booting"),
        pytest.param(Phase.LAUNCHED, BOOTED, Phase.REGISTERED, Why.NODE_REGISTERED, id="registers"),
        pytest.param(Phase.REGISTERED, BOOTED, None, None, id="waits for drivers"),
        pytest.param(Phase.REGISTERED, PUBLISHED, Phase.DRIVERS_READY, Why.SLICES_COMPLETE, id="drivers publish"),
        pytest.param(Phase.DRIVERS_READY, PUBLISHED, None, None, id="waits for readiness"),
        pytest.param(Phase.DRIVERS_READY, RUNNING, Phase.READY, Why.NODE_READY, id="becomes ready"),
        pytest.param(Phase.READY, RUNNING, None, None, id="stays ready"),
        pytest.param(Phase.READY, BOOTED, None, None, id="stays ready although slices and readiness went"),
        pytest.param(
            Phase.READY, Observation(MachineState.RUNNING), Phase.LAUNCHED, Why.NODE_VANISHED, id="Node deleted"
        ),
        pytest.param(Phase.READY, Observation(), Phase.LAUNCHED, Why.NODE_VANISHED, id="Node deleted, provider silent"),
        pytest.param(
            Phase.READY,
            replace(RUNNING, machine=MachineState.TERMINATING),
            Phase.TERMINATING,
            Why.INTERRUPTED,
            id="spot",
        ),
        pytest.param(
            Phase.READY, replace(RUNNING, machine=MachineState.ABSENT), Phase.GONE, Why.MACHINE_LOST, id="lost"
        ),
        pytest.param(
            Phase.LAUNCHED, Observation(MachineState.TERMINATED), Phase.GONE, Why.MACHINE_LOST, id="died while booting"
        ),
        pytest.param(
            Phase.DRAINING,
            Observation(MachineState.TERMINATING),
            Phase.TERMINATING,
            Why.INTERRUPTED,
            id="died in drain",
        ),
        pytest.param(Phase.DRAINING, RUNNING, None, None, id="drains on"),
        pytest.param(Phase.TERMINATING, Observation(MachineState.TERMINATING), None, None, id="terminates on"),
        pytest.param(Phase.TERMINATING, Observation(MachineState.TERMINATED), Phase.GONE, Why.MACHINE_GONE, id="ended"),
        pytest.param(Phase.TERMINATING, Observation(MachineState.ABSENT), Phase.GONE, Why.MACHINE_GONE, id="forgotten"),
        pytest.param(Phase.TERMINATING, Observation(), None, None, id="provider silent"),
        pytest.param(Phase.FAILED, RUNNING, None, None, id="a failed node stays failed"),
        pytest.param(Phase.GONE, RUNNING, None, None, id="gone is gone"),
    ],
)
def test_an_observation_takes_its_edge(phase: Phase, seen: Observation, target: Phase | None, why: Why | None) -> None:
    edge = decide(at(phase), seen, NOW)
    assert (edge and edge.target, edge and edge.why) == (target, why)


@pytest.mark.parametrize(
    ("phase", "seen", "minutes", "why"),
    [
        pytest.param(Phase.LAUNCHED, Observation(MachineState.RUNNING), 15, Why.BOOT_TIMED_OUT, id="never registers"),
        pytest.param(Phase.LAUNCHED, Observation(), 15, Why.BOOT_TIMED_OUT, id="provider silent"),
        pytest.param(Phase.REGISTERED, BOOTED, 10, Why.DRIVER_NEVER_PUBLISHED, id="no slices"),
        pytest.param(Phase.DRIVERS_READY, PUBLISHED, 10, Why.NEVER_READY, id="never ready"),
    ],
)
def test_a_time_out_fails_the_node_at_its_moment(phase: Phase, seen: Observation, minutes: int, why: Why) -> None:
    node, due = at(phase), NOW + minutes * MINUTE
    assert times_out_at(node) == due
    assert decide(node, seen, due - timedelta(microseconds=1)) is None
    edge = decide(node, seen, due)
    assert edge is not None
    assert (edge.target, edge.why) == (Phase.FAILED, why)


def test_progress_comes_before_a_time_out() -> None:
    edge = decide(at(Phase.LAUNCHED), BOOTED, NOW + 60 * MINUTE)
    assert edge is not None
    assert edge.why is Why.NODE_REGISTERED


@pytest.mark.parametrize("phase", [Phase.INTENDED, Phase.LAUNCHING, Phase.READY, Phase.DRAINING], ids=lambda p: p.value)
def test_phases_that_may_last_have_no_time_out(phase: Phase) -> None:
    assert times_out_at(at(phase)) is None
    assert decide(at(phase), replace(RUNNING, machine=None), NOW + timedelta(days=365)) is None


def test_a_tick_takes_all_edges_that_are_due_and_remembers_them() -> None:
    node = advance(at(Phase.LAUNCHED), RUNNING, NOW + MINUTE)
    assert node.phase is Phase.READY
    assert node.phase_since == NOW + MINUTE
    assert [(phase, why) for phase, _, why in node.history] == [
        (Phase.REGISTERED, "NodeRegistered"),
        (Phase.DRIVERS_READY, "SlicesComplete"),
        (Phase.READY, "NodeReady"),
    ]


def test_a_node_without_the_moment_of_its_phase_does_not_time_out() -> None:
    node = replace(at(Phase.LAUNCHED), phase_since=None)
    assert decide(node, Observation(), NOW) is None
    assert times_out_at(node) is None


def test_an_edge_is_taken_only_from_its_beginning() -> None:
    edge = next(edge for edge in EDGES if edge.why is Why.OBTAINED)
    with pytest.raises(ValueError, match="n is Ready, not Launching"):
        take(at(Phase.READY), edge, NOW)


OBSERVATIONS = st.builds(
    Observation, st.none() | st.sampled_from(MachineState), st.booleans(), st.booleans(), st.booleans()
)


@settings(deadline=None, derandomize=True)
@given(st.sampled_from(Phase), OBSERVATIONS, st.integers(0, 60))
def test_every_observation_leads_to_a_phase_that_it_does_not_move_any_further(
    phase: Phase, seen: Observation, minutes: int
) -> None:
    now = NOW + minutes * MINUTE
    node = advance(at(phase), seen, now)
    assert decide(node, seen, now) is None
    assert len(node.history) <= 4


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(OBSERVATIONS, st.integers(0, 20)), max_size=12))
def test_no_sequence_of_observations_revives_a_node_that_is_leaving(steps: list[tuple[Observation, int]]) -> None:
    node, now, leaving = at(Phase.LAUNCHED), NOW, False
    for seen, minutes in steps:
        now += minutes * MINUTE
        node = advance(node, seen, now)
        assert not leaving or ASSUME[node.phase] in (Assumption.LEAVING, Assumption.NOTHING)
        leaving = ASSUME[node.phase] in (Assumption.LEAVING, Assumption.NOTHING)


def test_a_drain_that_was_taken_back_is_no_news_of_the_type() -> None:
    ready = advance(at(Phase.DRIVERS_READY), RUNNING, NOW)
    assert became_ready(ready, NOW)
    assert not became_ready(ready, NOW + MINUTE)
    back = take(take(ready, edge_of(Phase.READY, Why.UNWANTED), NOW), edge_of(Phase.DRAINING, Why.POD_FOUND), NOW)
    assert (back.phase, became_ready(back, NOW)) == (Phase.READY, False)
