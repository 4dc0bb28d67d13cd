"""One schedule for each thing that a person or a tenant can do to the controller, so that a failure names it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import NODES, PROVISIONED_NODES
from tests.fakes.ec2 import PROMPT, SLUGGISH
from tests.faults.oddities import Oddity
from tests.faults.schedules import Schedules


@pytest.fixture
def schedule() -> Iterator[Schedules]:
    """One over the AWS adapter that has begun; in the end everything that was asked for has run."""
    found = Schedules()
    found.begin(pace=PROMPT, world=0, queue=False)
    yield found
    found.everything_holds()
    found.teardown()


def ask(found: Schedules, *, minutes: int = 5) -> None:
    found.submit(copies=2, minutes=minutes, gang=False)


@pytest.mark.parametrize("oddity", Oddity, ids=lambda oddity: oddity.name)
def test_what_is_hard_to_handle_keeps_nobody_waiting(schedule: Schedules, oddity: Oddity) -> None:
    schedule.comes_oddly(oddity=oddity)
    ask(schedule)


def test_a_batch_that_a_person_deletes_leaves_nobody_waiting(schedule: Schedules) -> None:
    schedule.trouble(call="CreateFleet", name="times out before the effect", times=4)
    ask(schedule)
    schedule.deletes_a_batch(index=0)


def test_a_person_may_order_a_node_to_go_under_its_pod(schedule: Schedules) -> None:
    ask(schedule, minutes=20)
    schedule.passes(seconds=300)
    schedule.deletes_a_node(index=0)


def test_a_node_of_somebody_else_that_has_got_the_name_of_ours_stays(schedule: Schedules) -> None:
    ask(schedule)
    schedule.passes(seconds=300)
    schedule.loses_its_address(index=0)


@pytest.mark.parametrize("hours", [-12, 12])
def test_a_clock_that_is_set_leaves_nothing_stuck(schedule: Schedules, hours: int) -> None:
    schedule.sets_the_clock(hours=-hours)
    schedule.trouble(call="CreateFleet", name="gets a code nobody knows", times=2)
    ask(schedule)
    schedule.passes(seconds=10)
    schedule.sets_the_clock(hours=hours)
    schedule.passes(seconds=900)


@pytest.mark.parametrize("world", [2, 3], ids=["by instances", "by size"])
def test_a_clock_that_is_set_while_a_launch_goes_on_loses_no_machine(world: int) -> None:
    found = Schedules()
    found.begin(pace=SLUGGISH, world=world, queue=False)
    found.trouble(call="LaunchInstances", name="times out after the effect", times=1)
    ask(found)
    found.sets_the_clock(hours=-6)
    found.passes(seconds=170)
    found.everything_holds()
    found.teardown()


@pytest.mark.parametrize(
    ("world", "call"),
    [(0, "CreateFleet"), (2, "LaunchInstances"), (2, "CreateTags"), (3, "CreateOrUpdateTags"), (3, "CreateTags")],
)
def test_a_launch_that_is_refused_after_its_effect_leaves_no_machine(world: int, call: str) -> None:
    found = Schedules()
    found.begin(pace=SLUGGISH, world=world, queue=False)
    found.trouble(call=call, name="times out after the effect", times=1)
    found.trouble(call=call, name="gets a code nobody knows", times=1)
    ask(found)
    for _ in range(4):
        found.passes(seconds=170)
        found.everything_holds()
    found.teardown()


def test_a_machine_that_a_person_stops_waits_until_it_is_started(schedule: Schedules) -> None:
    ask(schedule, minutes=40)
    schedule.passes(seconds=300)
    schedule.stops(index=0, stopped=True)
    schedule.passes(seconds=900)
    phases = {one["status"]["phase"] for one in list_all(schedule.simulation.api, PROVISIONED_NODES)[0]}
    assert phases == {"Ready"}


def test_a_machine_that_lists_leave_out_keeps_its_node(schedule: Schedules) -> None:
    ask(schedule, minutes=40)
    schedule.passes(seconds=900)
    for index in range(2):
        schedule.vanishes(index=index, hidden=True)
    schedule.passes(seconds=900)
    assert len(list_all(schedule.simulation.api, NODES)[0]) == 2
