"""The contract's guarantees as checks for every provider, one function each.

A provider's tests implement `Harness` around it (or around a fake of its cloud) and run every check of `CHECKS`, each
on a fresh harness. A check's docstring is the guarantee; a broken one raises `BrokenGuaranteeError`. Fakes and
simulations must pass the same checks, so that a test that passes on them is meaningful.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.dataclass import replace
from providers import conformance_blocks, conformance_faults
from providers.conformance_harness import (
    CLUSTER,
    LIVE,
    BrokenGuaranteeError,
    Harness,
    check_of,
    expect,
    ids_of,
    launched,
    live,
    only_failure,
    request_of,
)
from providers.contract import TAG_CLUSTER, InstanceState, describe_all
from providers.errors import (
    NotInGroupsError,
    NotOfferedError,
    PermissionDeniedError,
    ShortageError,
    TokenReusedError,
)


def launch_answers_in_order(harness: Harness) -> None:
    """The instances of an answer are in the order of the request's nodes, are owned, and name what was obtained."""
    request = request_of(harness, nodes=3)
    answer = launched(harness, request)
    expect(tuple(i.node for i in answer.instances) == request.nodes, "instances and nodes differ in order")
    expect(answer.missing == (), f"nothing should be missing, found {answer.missing}")
    expect(len(set(ids_of(answer))) == 3, "instance ids repeat")
    expect(len({i.provider_id for i in answer.instances}) == 3, "provider ids repeat")
    for instance in answer.instances:
        expect(instance.offering == harness.plenty, f"{instance.id} claims to be {instance.offering}")
        expect(request.tags.items() <= instance.tags.items(), f"{instance.id} lacks tags of its request")


def launch_is_idempotent(harness: Harness) -> None:
    """Repeating a request, also after a restart and when everything has settled, launches nothing more."""
    request = request_of(harness, nodes=2)
    first = launched(harness, request)
    again = launched(harness, request)
    harness.restart()
    harness.settle()
    later = launched(harness, request)
    expect(ids_of(first) == ids_of(again) == ids_of(later), "a repetition answered with other instances")
    expect([i.node for i in later.instances] == list(request.nodes), "a repetition mapped nodes differently")
    expect(len(live(harness, "b1")) == 2, f"expected 2 machines, found {len(live(harness, 'b1'))}")


def other_token_is_another_launch(harness: Harness) -> None:
    """Equal parameters with another token are another launch."""
    first = launched(harness, request_of(harness, batch="b1"))
    second = launched(harness, request_of(harness, batch="b2"))
    expect(not set(ids_of(first)) & set(ids_of(second)), "two tokens share an instance")


def reused_token_is_refused(harness: Harness) -> None:
    """A token that produced machines cannot be used with other parameters, and such a try has no effect."""
    request = request_of(harness)
    launched(harness, request)
    try:
        launched(harness, replace(request, nodes=("b1-0", "b1-1")))
    except TokenReusedError:
        harness.settle()
        expect(len(live(harness, "b1")) == 1, "the refused request changed the number of machines")
        return
    raise BrokenGuaranteeError("a used token was accepted with other parameters")


def fruitless_token_is_not_used_up(harness: Harness) -> None:
    """A token that produced nothing may be repeated, and launches once there is capacity."""
    request = request_of(harness)
    harness.limit(harness.plenty, 0)
    expect(launched(harness, request).instances == (), "machines came from an empty cloud")
    harness.limit(harness.plenty, 1)
    expect(len(launched(harness, request).instances) == 1, "the repetition launched nothing")


def partial_answer(harness: Harness) -> None:
    """If only some machines are available, they are returned together with the missing nodes, and stay."""
    harness.limit(harness.plenty, 2)
    answer = launched(harness, request_of(harness, nodes=3))
    expect(len(answer.instances) == 2, f"expected 2 instances, found {len(answer.instances)}")
    expect(len(answer.missing) == 1, f"expected one missing node, found {answer.missing}")
    harness.settle()
    expect(len(live(harness, "b1")) == 2, "the cloud runs another number of machines than was answered")


def minimum_or_nothing(harness: Harness) -> None:
    """Fewer than `minimum` machines are never left behind."""
    harness.limit(harness.plenty, 2)
    answer = launched(harness, replace(request_of(harness, nodes=3), minimum=3))
    expect(answer.instances == () and len(answer.missing) == 3, "a launch below its minimum was answered")
    harness.settle()
    expect(live(harness, "b1") == {}, "machines of a launch below its minimum are left")


def shortage_then_next_offering(harness: Harness) -> None:
    """A shortage of the first offering is reported, and the next one of the same zone serves the request."""
    harness.limit(harness.plenty, 0)
    answer = launched(harness, request_of(harness, offerings=(harness.plenty, harness.other)))
    expect([i.offering for i in answer.instances] == [harness.other], "the next offering was not obtained")
    error = only_failure(answer, harness.plenty)
    expect(isinstance(error, ShortageError), f"expected a shortage, found {error.kind}")


def not_offered_is_no_shortage(harness: Harness) -> None:
    """A type that is not sold is not a shortage: it is not requested again soon."""
    harness.withdraw(harness.plenty)
    error = only_failure(launched(harness, request_of(harness)), harness.plenty)
    expect(isinstance(error, (NotOfferedError, NotInGroupsError)), f"expected NotOffered, found {error.kind}")


def visible_within_the_window(harness: Harness) -> None:
    """An instance is described once the consistency window has passed, with its tags and its node if it is exact."""
    answer = launched(harness, request_of(harness))
    harness.advance(harness.provider.traits.consistency_window)
    found = live(harness, "b1")
    expect(tuple(found) == ids_of(answer), f"expected {ids_of(answer)} after the window, found {tuple(found)}")
    if harness.provider.traits.exact:
        named = {i.node for i in found.values()}
        expect(named <= {"", "b1-0"}, f"a machine is described as another node: {named}")


def machines_start_running(harness: Harness) -> None:
    """A launched machine becomes RUNNING by itself."""
    launched(harness, request_of(harness))
    harness.settle()
    states = {instance.state for instance in live(harness, "b1").values()}
    expect(states == {InstanceState.RUNNING}, f"expected running machines, found {states}")


def listed_by_tags_in_pages(harness: Harness) -> None:
    """Every instance with the tags is on exactly one page, ordered by id; instances with other tags are on none."""
    count = harness.provider.traits.max_nodes
    for batch in ("b1", "b2", "b3"):
        launched(harness, request_of(harness, batch=batch, nodes=count))
    harness.settle()
    listed = [instance.id for instance in describe_all(harness.provider, {TAG_CLUSTER: CLUSTER})]
    expect(listed == sorted(set(listed)), "pages repeat or disorder instances")
    expect(len(listed) == 3 * count, f"expected {3 * count} instances, found {len(listed)}")
    expect(len(live(harness, "b2")) == count, "filtering by a tag finds another number")
    nothing = list(describe_all(harness.provider, {TAG_CLUSTER: "somebody-else"}))
    expect(nothing == [], "instances of another cluster were listed")


def terminate_twice(harness: Harness) -> None:
    """Terminating again is no error: the id is terminating, and finally gone."""
    (machine,) = ids_of(launched(harness, request_of(harness)))
    harness.settle()
    first = harness.provider.terminate((machine,))
    expect(first.terminating == (machine,), f"expected it to terminate, found {first}")
    again = harness.provider.terminate((machine,))
    expect((*again.terminating, *again.gone) == (machine,), f"expected the id back, found {again}")
    harness.settle()
    expect(harness.provider.terminate((machine,)).gone == (machine,), "a terminated machine is not gone")
    expect(live(harness, "b1") == {}, "a terminated machine is still listed as alive")


def terminate_unknown(harness: Harness) -> None:
    """Terminating an unknown machine is no error, and does not prevent the termination of others."""
    (machine,) = ids_of(launched(harness, request_of(harness)))
    harness.settle()
    answer = harness.provider.terminate(("i-00000000000000000", machine))
    expect(answer.gone == ("i-00000000000000000",), f"expected the unknown id under gone, found {answer}")
    expect(answer.terminating == (machine,), f"expected the known id to terminate, found {answer}")


def terminated_machines_free_their_place(harness: Harness) -> None:
    """Capacity is available again once a machine has terminated."""
    harness.limit(harness.plenty, 1)
    (machine,) = ids_of(launched(harness, request_of(harness, batch="b1")))
    harness.settle()
    harness.provider.terminate((machine,))
    harness.settle()
    answer = launched(harness, request_of(harness, batch="b2"))
    expect(len(answer.instances) == 1, "the place of a terminated machine was not free")


def ended_while_it_starts(harness: Harness) -> None:
    """A machine may be terminated before it runs or is even visible; asked again after the window, it ends and stays
    ended."""
    answer = launched(harness, request_of(harness, nodes=2))
    for _ in range(2):
        ended = harness.provider.terminate(ids_of(answer))
        expect({*ended.terminating, *ended.gone} == {*ids_of(answer)}, f"not every id came back: {ended}")
        harness.advance(harness.provider.traits.consistency_window)
    harness.settle()
    expect(live(harness, "b1") == {}, "a machine that was terminated while it started lives on")


def ended_machines_are_not_replaced(harness: Harness) -> None:
    """Terminating one machine leaves the others alone, and no other machine replaces it."""
    first, *others = ids_of(launched(harness, request_of(harness, nodes=3)))
    harness.settle()
    harness.provider.terminate((first,))
    for _ in range(2):
        harness.settle()
        expect(sorted(live(harness, "b1")) == sorted(others), f"expected {others}, found {sorted(live(harness, 'b1'))}")
    everything = [one for one in describe_all(harness.provider, {}) if one.state in LIVE]
    expect(len(everything) == 2, f"expected 2 machines, found {len(everything)}")


def machines_of_others_are_left_alone(harness: Harness) -> None:
    """A machine without the cluster's tags is not terminated: its id is returned under `failures`."""
    foreign = harness.foreign()
    answer = harness.provider.terminate((foreign,))
    expect(tuple(answer.failures) == (foreign,), f"a machine that is not ours was terminated: {answer}")
    expect(isinstance(answer.failures[foreign], PermissionDeniedError), "expected a PermissionDeniedError")


def looked_up_by_id(harness: Harness) -> None:
    """A machine is found by its id, even if it lacks the cluster's tags; an unknown id is not found, and hides no
    other."""
    (machine,) = launched(harness, request_of(harness)).instances
    harness.settle()
    unknown = machine.provider_id.replace(machine.id, "i-00000000000000000")
    found = harness.provider.look_up((unknown, machine.provider_id))
    expect(tuple(found) == (machine.provider_id,), f"expected {machine.provider_id}, found {tuple(found)}")
    expect(found[machine.provider_id].state in LIVE, "a machine that runs is described as another state")
    expect(
        found[machine.provider_id].tags.get(TAG_CLUSTER) == CLUSTER,
        "a machine that was launched lacks the tags of the launch",
    )
    harness.provider.terminate((machine.id,))
    harness.settle()
    ended = harness.provider.look_up((machine.provider_id,))
    states = {one.state for one in ended.values()}
    expect(states <= {InstanceState.TERMINATED}, f"a machine that has ended is described as {states}")
    harness.restart()
    expect(harness.provider.look_up(()) == {}, "nothing was asked for, and something was found")


def stays_in_its_place(harness: Harness) -> None:
    """The account and region are the same after a restart and a launch: what is unknown there never existed."""
    before = harness.provider.place()
    launched(harness, request_of(harness))
    harness.restart()
    expect(harness.provider.place() == before, f"the place changed from {before!r} to {harness.provider.place()!r}")


CHECKS: Final = tuple(
    check_of(run)
    for run in (
        launch_answers_in_order,
        launch_is_idempotent,
        other_token_is_another_launch,
        reused_token_is_refused,
        fruitless_token_is_not_used_up,
        partial_answer,
        minimum_or_nothing,
        shortage_then_next_offering,
        not_offered_is_no_shortage,
        visible_within_the_window,
        machines_start_running,
        listed_by_tags_in_pages,
        terminate_twice,
        terminate_unknown,
        terminated_machines_free_their_place,
        ended_while_it_starts,
        ended_machines_are_not_replaced,
        machines_of_others_are_left_alone,
        looked_up_by_id,
        stays_in_its_place,
        *conformance_faults.CHECKED,
        *conformance_blocks.CHECKED,
    )
)
