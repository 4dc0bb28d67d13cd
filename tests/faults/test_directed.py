"""One schedule for each thing that a person or a tenant can do to the controller, so that a failure names it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import NODES, PROVISIONED_NODES
from tests.fakes.ec2 import PROMPT, SLUGGISH
from tests.faults.account_rules import THEIRS
from tests.faults.oddities import Oddity
from tests.faults.scenes import TEMPLATE_CODES
from tests.faults.schedules import Schedules
from tests.faults.shaky import Mishap


def begun(**options: Any) -> Schedules:
    """One that has begun, over the AWS adapter unless `world` says otherwise."""
    found = Schedules()
    found.begin(**{"pace": PROMPT, "world": 0, "queue": False} | options)
    return found


def over(found: Schedules) -> None:
    """In the end everything that was asked for has run."""
    found.everything_holds()
    found.teardown()


@pytest.fixture
def schedule() -> Iterator[Schedules]:
    """One over the AWS adapter."""
    found = begun()
    yield found
    over(found)


def ask(found: Schedules, *, minutes: int = 5) -> None:
    found.submit(copies=2, minutes=minutes, gang=False)


def protect(found: Schedules, *, protected: bool) -> None:
    for index in range(2):
        found.protects(index=index, protected=protected)


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


def test_a_machine_that_is_stopped_before_it_joins_is_replaced_although_that_cannot_be_written() -> None:
    found = Schedules()
    found.begin(pace=SLUGGISH, world=0, queue=False)
    found.submit(copies=2, minutes=10, gang=True)
    found.mishap(after=1, mishap=Mishap.LOST)
    found.stops(index=1, stopped=True)
    found.passes(seconds=60)
    found.everything_holds()
    found.teardown()


def test_a_machine_that_lists_leave_out_keeps_its_node(schedule: Schedules) -> None:
    ask(schedule, minutes=40)
    schedule.passes(seconds=900)
    for index in range(2):
        schedule.vanishes(index=index, hidden=True)
    schedule.passes(seconds=900)
    assert len(list_all(schedule.simulation.api, NODES)[0]) == 2


def test_a_protected_machine_stays_until_a_person_allows_its_end(schedule: Schedules) -> None:
    ask(schedule, minutes=5)
    schedule.passes(seconds=300)
    schedule.protects(index=0, protected=True)
    schedule.passes(seconds=900)
    schedule.passes(seconds=900)
    assert len(schedule.ours()) == 1
    assert 1 <= schedule.fake.calls["TerminateInstances"] <= 20


@pytest.mark.parametrize("whole", [True, False], ids=["as the answer", "inside a 200"])
@pytest.mark.parametrize("code", TEMPLATE_CODES)
def test_what_is_wrong_with_a_template_is_asked_rarely(code: str, whole: bool) -> None:
    found = begun(whole=whole)
    found.breaks_the_templates(code=code, minutes=30)
    ask(found)
    for _ in range(3):
        found.passes(seconds=900)
    assert 0 < len(found.fake.failed["CreateFleet"]) <= 20
    over(found)


def test_deleted_launch_templates_are_made_again(schedule: Schedules) -> None:
    ask(schedule)
    schedule.passes(seconds=300)
    schedule.deletes_the_templates()
    ask(schedule)


@pytest.mark.parametrize("world", range(4))
def test_machines_of_others_with_our_tags_are_left_alone(world: int) -> None:
    found = begun(world=world)
    found.strangers_come(labelled=True)
    if world > 1:
        found.groups_propagate()
    if world == 2:
        found.raises_a_group(index=0)
    for _ in range(2):
        ask(found)
        found.passes(seconds=900)
    over(found)
    assert [machine for machine in found.fake.account.alive() if machine.group == THEIRS]


@pytest.mark.parametrize("world", [0, 2, 3])
def test_pools_that_observe_change_nothing_but_what_a_person_orders(world: int) -> None:
    found = begun(world=world)
    ask(found, minutes=5)
    found.passes(seconds=300)
    found.sets_the_mode(observes=True)
    found.passes(seconds=900)
    assert len(found.ours()) == 2
    found.deletes_a_node(index=0)
    found.passes(seconds=900)
    assert len(found.ours()) == 1
    over(found)


def test_an_end_that_has_begun_waits_while_pools_observe(schedule: Schedules) -> None:
    ask(schedule, minutes=5)
    schedule.passes(seconds=300)
    protect(schedule, protected=True)
    schedule.passes(seconds=900)
    schedule.sets_the_mode(observes=True)
    protect(schedule, protected=False)
    phases = {one["status"]["phase"] for one in list_all(schedule.simulation.api, PROVISIONED_NODES)[0]}
    assert phases == {"Terminating"}
    schedule.passes(seconds=900)
    assert len(schedule.ours()) == 2


LAUNCH_CALLS = {0: "CreateFleet", 2: "LaunchInstances", 3: "SetDesiredCapacity"}


@pytest.mark.parametrize("world", LAUNCH_CALLS)
def test_a_new_process_whose_clock_is_wrong_loses_no_launch_of_the_last_one(world: int) -> None:
    found = begun(world=world)
    found.trouble(call=LAUNCH_CALLS[world], name="times out after the effect", times=1)
    ask(found)
    found.sets_the_clock(hours=12)  # so AWS refuses every call
    found.dies()
    found.passes(seconds=60)
    over(found)
    assert len(found.fake.account.machines) == 2


@pytest.mark.parametrize("then", ["goes on", "another process", "another replica"])
def test_a_clock_that_is_set_and_set_back_makes_no_machine_old(then: str) -> None:
    found = begun(pace=SLUGGISH)
    standby = found.simulation.new_loop(found.api)
    standby.follow()
    found.restart()
    found.passes(seconds=900)  # what a process inherits is old by then
    if then == "goes on":
        found.trouble(call="DescribeInstances", name="is cut before the effect", times=1)
    found.submit(copies=1, minutes=14, gang=False)
    found.sets_the_clock(hours=-12)
    found.submit(copies=2, minutes=14, gang=True)
    found.sets_the_clock(hours=12)
    if then == "another process":
        found.dies()
    if then == "another replica":
        standby.follow()
        found.simulation.loop = found.witness.follows(standby)
    found.passes(seconds=60)
    over(found)


def test_launches_go_on_in_the_other_subnet_of_a_zone() -> None:
    found = begun(twins=True, leaves_out=1)
    found.limit(place=("g6.xlarge", "us-east-1b"), market="spot", machines=0)
    for _ in range(2):
        found.submit(copies=3, minutes=10, gang=False)
    over(found)


def test_a_back_off_that_could_not_be_written_ends_although_the_clock_is_set_back() -> None:
    found = begun(world=2)
    found.sets_the_clock(hours=6)  # so AWS refuses every call
    found.mishap(after=11, mishap=Mishap.UNANSWERED)  # the write of the back-off that follows
    ask(found, minutes=1)
    assert not found.api.mishaps
    found.sets_the_clock(hours=-6)
    found.passes(seconds=900)
    assert len(found.fake.account.machines) == 2
    over(found)


@pytest.mark.parametrize("edits", [(1,), (3,), (1, 3), tuple(range(8))], ids=["one", "another", "two", "all"])
@pytest.mark.parametrize("world", LAUNCH_CALLS)
def test_a_node_template_that_changes_while_a_launch_is_unknown_loses_and_doubles_nothing(
    world: int, edits: tuple[int, ...]
) -> None:
    found = begun(world=world)
    found.troubles_in_turn(call=LAUNCH_CALLS[world], names=["times out after the effect", "is cut before the effect"])
    ask(found)
    for number in edits:
        found.edits_the_node_template(number=number)
    for _ in range(2):
        found.dies()
        found.passes(seconds=900)
        found.everything_holds()
    assert not found.strangers()
    over(found)
    assert len(found.fake.account.machines) == 2


@pytest.mark.parametrize("first", ["times out after the effect", "is cut before the effect"])
def test_a_token_that_was_used_with_another_template_holds_up_nobody(schedule: Schedules, first: str) -> None:
    """As EC2 answers when the subnet or the template has changed between a call and its repetition."""
    schedule.troubles_in_turn(call="CreateFleet", names=[first, *["is told that its token was used"] * 3])
    ask(schedule, minutes=60)
    for _ in range(2):
        schedule.passes(seconds=900)
        schedule.everything_holds()
    assert len(schedule.fake.account.machines) == 2
    assert {one["status"]["phase"] for one in list_all(schedule.simulation.api, PROVISIONED_NODES)[0]} == {"Ready"}


def test_a_machine_that_a_node_on_its_way_out_gets_is_as_young_as_any() -> None:
    """A person deletes a node whose launch is then held up, by a write, until the node is old."""
    found = begun(pace=SLUGGISH)
    found.mishap(after=11, mishap=Mishap.CONFLICT)
    found.submit(copies=3, gang=False, minutes=18)
    found.deletes_a_node(index=7)
    for _ in range(3):
        found.passes(seconds=150)
        found.everything_holds()
    over(found)
