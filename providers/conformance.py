"""What every provider must do, as checks that anybody can run: the contract's guarantees, one function each.

A provider's tests implement `Harness` around it (or around a fake of its cloud) and run every check of `CHECKS`, each
on a fresh harness. A check's docstring is the guarantee; a broken one raises `BrokenGuaranteeError`. Fakes and
simulations are held to the same checks, so that what passes on them means something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from instance_catalog.frozen_map import FrozenMap
from providers.conformance_harness import BrokenGuaranteeError, Check, Harness
from providers.contract import (
    TAG_BATCH,
    TAG_CLUSTER,
    Instance,
    InstanceState,
    LaunchAnswer,
    LaunchRequest,
    OfferingKey,
    ReservationState,
    describe_all,
)
from providers.errors import (
    AmbiguousError,
    NotOfferedError,
    ProviderError,
    ReservationExhaustedError,
    ShortageError,
    ThrottledError,
    TokenReusedError,
)

CLUSTER: Final = "11111111-2222-3333-4444-555555555555"
_PATIENCE: Final = 10  # minutes that a group may take to start machines, or to say that it cannot
LIVE: Final = frozenset({InstanceState.PENDING, InstanceState.RUNNING})


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise BrokenGuaranteeError(message)


def _request(
    harness: Harness, *, batch: str = "b1", nodes: int = 1, offerings: Iterable[OfferingKey] = ()
) -> LaunchRequest:
    return LaunchRequest(
        token=f"token-{batch}",
        nodes=tuple(f"{batch}-{index}" for index in range(nodes)),
        offerings=tuple(offerings) or (harness.plenty,),
        tags=FrozenMap({TAG_CLUSTER: CLUSTER, TAG_BATCH: batch}),
        template=harness.template,
    )


def _live(harness: Harness, batch: str) -> dict[str, Instance]:
    found = describe_all(harness.provider, {TAG_CLUSTER: CLUSTER, TAG_BATCH: batch})
    return {instance.id: instance for instance in found if instance.state in LIVE}


def _ids(answer: LaunchAnswer) -> tuple[str, ...]:
    return tuple(instance.id for instance in answer.instances)


def _launch(harness: Harness, request: LaunchRequest) -> LaunchAnswer:
    """The answer. A counted provider may say for a while that it does not know yet; then the request is repeated."""
    for _ in range(_PATIENCE):
        try:
            return harness.provider.launch(request)
        except AmbiguousError:
            if not harness.provider.traits.counted:
                raise
            harness.advance(timedelta(minutes=1))
    return harness.provider.launch(request)


def _only_failure(answer: LaunchAnswer, offering: OfferingKey) -> ProviderError:
    _expect(len(answer.failures) == 1, f"expected one failure, found {len(answer.failures)}")
    _expect(answer.failures[0].offering == offering, f"the failure names {answer.failures[0].offering}, not {offering}")
    return answer.failures[0].error


def launch_answers_in_order(harness: Harness) -> None:
    """The instances of an answer are in the order of the request's nodes, are owned, and name what was obtained."""
    request = _request(harness, nodes=3)
    answer = _launch(harness, request)
    _expect(tuple(i.node for i in answer.instances) == request.nodes, "instances and nodes differ in order")
    _expect(answer.missing == (), f"nothing should be missing, found {answer.missing}")
    _expect(len(set(_ids(answer))) == 3, "instance ids repeat")
    _expect(len({i.provider_id for i in answer.instances}) == 3, "provider ids repeat")
    for instance in answer.instances:
        _expect(instance.offering == harness.plenty, f"{instance.id} claims to be {instance.offering}")
        _expect(request.tags.items() <= instance.tags.items(), f"{instance.id} lacks tags of its request")


def launch_is_idempotent(harness: Harness) -> None:
    """Repeating a request, also after a restart and when everything has settled, launches nothing more."""
    request = _request(harness, nodes=2)
    first = _launch(harness, request)
    again = _launch(harness, request)
    harness.restart()
    harness.settle()
    later = _launch(harness, request)
    _expect(_ids(first) == _ids(again) == _ids(later), "a repetition answered with other instances")
    _expect([i.node for i in later.instances] == list(request.nodes), "a repetition mapped nodes differently")
    _expect(len(_live(harness, "b1")) == 2, f"expected 2 machines, found {len(_live(harness, 'b1'))}")


def other_token_is_another_launch(harness: Harness) -> None:
    """Equal parameters with another token are another launch."""
    first = _launch(harness, _request(harness, batch="b1"))
    second = _launch(harness, _request(harness, batch="b2"))
    _expect(not set(_ids(first)) & set(_ids(second)), "two tokens share an instance")


def reused_token_is_refused(harness: Harness) -> None:
    """A token that produced machines cannot be used with other parameters, and such a try has no effect."""
    request = _request(harness)
    _launch(harness, request)
    try:
        _launch(harness, replace(request, nodes=("b1-0", "b1-1")))
    except TokenReusedError:
        harness.settle()
        _expect(len(_live(harness, "b1")) == 1, "the refused request changed the number of machines")
        return
    raise BrokenGuaranteeError("a used token was accepted with other parameters")


def fruitless_token_is_not_used_up(harness: Harness) -> None:
    """A token that produced nothing may be repeated, and launches once there is capacity."""
    request = _request(harness)
    harness.limit(harness.plenty, 0)
    _expect(_launch(harness, request).instances == (), "machines came from an empty cloud")
    harness.limit(harness.plenty, 1)
    _expect(len(_launch(harness, request).instances) == 1, "the repetition launched nothing")


def partial_answer(harness: Harness) -> None:
    """When only some machines can be had, they are answered together with what is missing, and stay."""
    harness.limit(harness.plenty, 2)
    answer = _launch(harness, _request(harness, nodes=3))
    _expect(len(answer.instances) == 2, f"expected 2 instances, found {len(answer.instances)}")
    _expect(len(answer.missing) == 1, f"expected one missing node, found {answer.missing}")
    harness.settle()
    _expect(len(_live(harness, "b1")) == 2, "the cloud runs another number of machines than was answered")


def minimum_or_nothing(harness: Harness) -> None:
    """Fewer than `minimum` machines are never left behind."""
    harness.limit(harness.plenty, 2)
    answer = _launch(harness, replace(_request(harness, nodes=3), minimum=3))
    _expect(answer.instances == () and len(answer.missing) == 3, "a launch below its minimum was answered")
    harness.settle()
    _expect(_live(harness, "b1") == {}, "machines of a launch below its minimum are left")


def shortage_then_next_offering(harness: Harness) -> None:
    """A shortage of the first offering is told, and the next one of the same zone serves the request."""
    harness.limit(harness.plenty, 0)
    answer = _launch(harness, _request(harness, offerings=(harness.plenty, harness.other)))
    _expect([i.offering for i in answer.instances] == [harness.other], "the next offering was not obtained")
    error = _only_failure(answer, harness.plenty)
    _expect(isinstance(error, ShortageError), f"expected a shortage, found {error.kind}")


def not_offered_is_told_apart(harness: Harness) -> None:
    """What is not sold at all is not a shortage: it is not asked for again soon."""
    harness.withdraw(harness.plenty)
    error = _only_failure(_launch(harness, _request(harness)), harness.plenty)
    _expect(isinstance(error, NotOfferedError), f"expected NotOffered, found {error.kind}")


def lost_answer_is_resolved_by_repeating(harness: Harness) -> None:
    """A launch whose answer was lost raises AmbiguousError; repeating it finds its machines and makes no others."""
    harness.lose_answer()
    _raises(AmbiguousError, lambda: harness.provider.launch(_request(harness, nodes=2)))
    harness.restart()
    answer = harness.provider.launch(_request(harness, nodes=2))
    harness.settle()
    _expect(set(_live(harness, "b1")) == set(_ids(answer)), "the repetition doubled or lost machines")
    _expect(len(answer.instances) == 2, f"expected 2 instances, found {len(answer.instances)}")


def lost_request_is_resolved_by_repeating(harness: Harness) -> None:
    """A launch that never arrived looks the same to the caller, and repeating it launches once."""
    harness.lose_request()
    _raises(AmbiguousError, lambda: harness.provider.launch(_request(harness)))
    _expect(len(harness.provider.launch(_request(harness)).instances) == 1, "the repetition launched nothing")


def throttled_call_has_no_effect(harness: Harness) -> None:
    """ThrottledError means that nothing happened; the same request succeeds later."""
    harness.throttle()
    _raises(ThrottledError, lambda: harness.provider.launch(_request(harness)))
    harness.settle()
    _expect(_live(harness, "b1") == {}, "a throttled call launched machines")
    _expect(len(harness.provider.launch(_request(harness)).instances) == 1, "the repetition launched nothing")


def visible_within_the_window(harness: Harness) -> None:
    """An instance is described once the consistency window has passed, with its tags and its node if it is exact."""
    answer = _launch(harness, _request(harness))
    harness.advance(harness.provider.traits.consistency_window)
    found = _live(harness, "b1")
    _expect(tuple(found) == _ids(answer), f"expected {_ids(answer)} after the window, found {tuple(found)}")
    if harness.provider.traits.exact:
        named = {i.node for i in found.values()}
        _expect(named <= {"", "b1-0"}, f"a machine is described as another node: {named}")


def machines_come_to_run(harness: Harness) -> None:
    """A launched machine becomes RUNNING by itself."""
    _launch(harness, _request(harness))
    harness.settle()
    states = {instance.state for instance in _live(harness, "b1").values()}
    _expect(states == {InstanceState.RUNNING}, f"expected running machines, found {states}")


def listed_by_tags_in_pages(harness: Harness) -> None:
    """Every instance with the tags is on exactly one page, ordered by id; instances with other tags are on none."""
    count = harness.provider.traits.max_nodes
    for batch in ("b1", "b2", "b3"):
        _launch(harness, _request(harness, batch=batch, nodes=count))
    harness.settle()
    listed = [instance.id for instance in describe_all(harness.provider, {TAG_CLUSTER: CLUSTER})]
    _expect(listed == sorted(set(listed)), "pages repeat or disorder instances")
    _expect(len(listed) == 3 * count, f"expected {3 * count} instances, found {len(listed)}")
    _expect(len(_live(harness, "b2")) == count, "filtering by a tag finds another number")
    nothing = list(describe_all(harness.provider, {TAG_CLUSTER: "somebody-else"}))
    _expect(nothing == [], "instances of another cluster were listed")


def terminate_twice(harness: Harness) -> None:
    """Terminating again is no error: the id is on its way out, or gone in the end."""
    (machine,) = _ids(_launch(harness, _request(harness)))
    harness.settle()
    first = harness.provider.terminate((machine,))
    _expect(first.terminating == (machine,), f"expected it to terminate, found {first}")
    again = harness.provider.terminate((machine,))
    _expect((*again.terminating, *again.gone) == (machine,), f"expected the id back, found {again}")
    harness.settle()
    _expect(harness.provider.terminate((machine,)).gone == (machine,), "a terminated machine is not gone")
    _expect(_live(harness, "b1") == {}, "a terminated machine is still listed as alive")


def terminate_unknown(harness: Harness) -> None:
    """Terminating what never existed is no error, and does not keep others from being terminated."""
    (machine,) = _ids(_launch(harness, _request(harness)))
    harness.settle()
    answer = harness.provider.terminate(("i-00000000000000000", machine))
    _expect(answer.gone == ("i-00000000000000000",), f"expected the unknown id under gone, found {answer}")
    _expect(answer.terminating == (machine,), f"expected the known id to terminate, found {answer}")


def terminated_machines_free_their_place(harness: Harness) -> None:
    """Capacity comes back once a machine has terminated."""
    harness.limit(harness.plenty, 1)
    (machine,) = _ids(_launch(harness, _request(harness, batch="b1")))
    harness.settle()
    harness.provider.terminate((machine,))
    harness.settle()
    answer = _launch(harness, _request(harness, batch="b2"))
    _expect(len(answer.instances) == 1, "the place of a terminated machine was not free")


def block_before_its_start(harness: Harness) -> None:
    """A block that has not begun is SCHEDULED, has nothing available, and a launch into it says exhausted."""
    offering = harness.reserve(count=2, starts_in=timedelta(hours=1), lasts=timedelta(days=1))
    (reservation,) = harness.provider.reservations()
    _expect(reservation.offering == offering, f"the block asks for {reservation.offering}")
    _expect(reservation.state is ReservationState.SCHEDULED, f"expected SCHEDULED, found {reservation.state}")
    _expect(reservation.available == 0, f"{reservation.available} machines available before the start")
    error = _only_failure(_launch(harness, _request(harness, offerings=(offering,))), offering)
    _expect(isinstance(error, ReservationExhaustedError), f"expected ReservationExhausted, found {error.kind}")


def block_while_it_lasts(harness: Harness) -> None:
    """An active block gives its machines and no more, counts them, and each knows when it is taken back."""
    offering = harness.reserve(count=2, starts_in=timedelta(hours=1), lasts=timedelta(days=1))
    harness.advance(timedelta(hours=1))
    answer = _launch(harness, _request(harness, nodes=3, offerings=(offering,)))
    _expect(len(answer.instances) == 2 and len(answer.missing) == 1, "a block of two gave another number")
    harness.settle()
    (reservation,) = harness.provider.reservations()
    _expect(reservation.state is ReservationState.ACTIVE, f"expected ACTIVE, found {reservation.state}")
    _expect(reservation.available == 0, f"{reservation.available} machines available in a full block")
    _expect(reservation.reclaim_at is not None and reservation.ends_at is not None, "a block must say when it ends")
    for instance in _live(harness, "b1").values():
        _expect(instance.reclaim_at == reservation.reclaim_at, f"{instance.id} does not know its end")


def block_exhausted_by_somebody_else(harness: Harness) -> None:
    """Machines of a block that somebody else took are not available, and the error names the reservation's scope."""
    offering = harness.reserve(count=1, starts_in=timedelta(0), lasts=timedelta(days=1))
    harness.take(offering.reservation, 1)
    error = _only_failure(_launch(harness, _request(harness, offerings=(offering,))), offering)
    _expect(isinstance(error, ReservationExhaustedError), f"expected ReservationExhausted, found {error.kind}")
    _expect(harness.provider.reservations()[0].available == 0, "a taken machine counts as available")


def block_is_taken_back(harness: Harness) -> None:
    """From `reclaim_at` on the provider ends the block's machines and starts none; after the end it is ENDED."""
    offering = harness.reserve(count=1, starts_in=timedelta(0), lasts=timedelta(days=1))
    _launch(harness, _request(harness, offerings=(offering,)))
    (reservation,) = harness.provider.reservations()
    if reservation.reclaim_at is None or reservation.ends_at is None:
        raise BrokenGuaranteeError("a block must say when it ends")
    _expect(reservation.reclaim_at <= reservation.ends_at, "machines are taken back after the end")
    harness.advance(reservation.reclaim_at - reservation.starts_at)
    _expect(_live(harness, "b1") == {}, "machines live on after they were taken back")
    late = _launch(harness, _request(harness, batch="b2", offerings=(offering,)))
    _expect(late.instances == (), "a machine started after the block was taken back")
    harness.advance(reservation.ends_at - reservation.reclaim_at)
    ended = [found.state for found in harness.provider.reservations()]
    _expect(ended in ([], [ReservationState.ENDED]), f"expected the block to have ended, found {ended}")


def _raises(kind: type[ProviderError], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise BrokenGuaranteeError(f"expected {kind.__name__}, found an answer")


def _check(run: Callable[[Harness], None]) -> Check:
    return Check(run.__name__.replace("_", " "), " ".join((run.__doc__ or "").split()), run)


CHECKS: Final = tuple(
    _check(run)
    for run in (
        launch_answers_in_order,
        launch_is_idempotent,
        other_token_is_another_launch,
        reused_token_is_refused,
        fruitless_token_is_not_used_up,
        partial_answer,
        minimum_or_nothing,
        shortage_then_next_offering,
        not_offered_is_told_apart,
        lost_answer_is_resolved_by_repeating,
        lost_request_is_resolved_by_repeating,
        throttled_call_has_no_effect,
        visible_within_the_window,
        machines_come_to_run,
        listed_by_tags_in_pages,
        terminate_twice,
        terminate_unknown,
        terminated_machines_free_their_place,
        block_before_its_start,
        block_while_it_lasts,
        block_exhausted_by_somebody_else,
        block_is_taken_back,
    )
)
