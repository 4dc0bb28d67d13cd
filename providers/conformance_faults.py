"""The guarantees of providers if calls fail or clocks differ: part of the checks of conformance.py."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from providers.conformance_harness import (
    CLUSTER,
    BrokenGuaranteeError,
    Harness,
    NotApplicable,
    expect,
    ids_of,
    launched,
    live,
    raises,
    request_of,
)
from providers.contract import TAG_BATCH, TAG_CLUSTER, ReservationState, describe_all
from providers.errors import (
    AmbiguousError,
    PermissionDeniedError,
    ThrottledError,
    UnclassifiedError,
    UnknownRefusalError,
)

# An unknown error must not be tried again sooner.
_NEVER_HOT: Final = timedelta(minutes=1)


def lost_answer_is_resolved_by_repeating(harness: Harness) -> None:
    """A launch whose answer was lost raises AmbiguousError; repeating it finds its machines and makes no others."""
    harness.lose_answer()
    raises(AmbiguousError, lambda: harness.provider.launch(request_of(harness, nodes=2)))
    harness.restart()
    answer = launched(harness, request_of(harness, nodes=2))
    harness.settle()
    expect(set(live(harness, "b1")) == set(ids_of(answer)), "the repetition doubled or lost machines")
    expect(len(answer.instances) == 2, f"expected 2 instances, found {len(answer.instances)}")


def lost_request_is_resolved_by_repeating(harness: Harness) -> None:
    """A launch that never arrived looks the same to the caller, and repeating it launches once."""
    harness.lose_request()
    raises(AmbiguousError, lambda: harness.provider.launch(request_of(harness)))
    expect(len(launched(harness, request_of(harness)).instances) == 1, "the repetition launched nothing")


def throttled_call_has_no_effect(harness: Harness) -> None:
    """ThrottledError means that nothing happened; the same request succeeds later."""
    harness.throttle()
    raises(ThrottledError, lambda: harness.provider.launch(request_of(harness)))
    harness.settle()
    expect(live(harness, "b1") == {}, "a throttled call launched machines")
    expect(len(launched(harness, request_of(harness)).instances) == 1, "the repetition launched nothing")


def unknown_outcome_can_be_undone(harness: Harness) -> None:
    """Machines of a launch with an unknown result are found by their tags alone, and can be ended with no other
    data."""
    if harness.provider.traits.counted:
        raise NotApplicable("machines of a group get their tags once they exist")
    harness.lose_answer()
    raises(AmbiguousError, lambda: harness.provider.launch(request_of(harness, nodes=2)))
    harness.restart()
    harness.advance(harness.provider.traits.consistency_window)
    found = [one.id for one in describe_all(harness.provider, {TAG_CLUSTER: CLUSTER, TAG_BATCH: "b1"})]
    expect(0 < len(found) <= 2, f"expected its machines by their tags, found {len(found)}")
    harness.provider.terminate(found)
    harness.settle()
    expect(live(harness, "b1") == {}, "machines of an undone launch live on")


def denied_call_has_no_effect(harness: Harness) -> None:
    """A missing permission is reported as one, with the next step, and nothing was launched."""
    harness.deny()
    raises(PermissionDeniedError, lambda: harness.provider.launch(request_of(harness)))
    harness.settle()
    expect(live(harness, "b1") == {}, "a denied call launched machines")


def unknown_code_is_never_hot(harness: Harness) -> None:
    """An unknown code has a long back-off; the request may be repeated afterwards.

    A refusal (HTTP 4xx) is UnknownRefusalError, since nothing happened; anything else is UnclassifiedError.
    """
    harness.answer_nonsense()
    try:
        harness.provider.launch(request_of(harness))
    except (UnclassifiedError, UnknownRefusalError) as error:
        expect(error.backoff(1) >= _NEVER_HOT, f"an unknown error would be repeated after {error.backoff(1)}")
        expect(error.code != "" and error.next_step != "", "an unknown error names neither its code nor a next step")
    else:
        raise BrokenGuaranteeError("expected UnclassifiedError or UnknownRefusalError, found an answer")
    expect(len(ids_of(launched(harness, request_of(harness)))) == 1, "the repetition launched nothing")


def moments_are_the_clouds(harness: Harness) -> None:
    """With the caller's clock an hour ahead of the cloud's, a block begins and ends at the cloud's time."""
    harness.reserve(count=1, starts_in=timedelta(minutes=30), lasts=timedelta(days=1))
    (before,) = harness.provider.reservations()
    harness.skew(timedelta(hours=1))
    (after,) = harness.provider.reservations()
    expect(after.state is ReservationState.SCHEDULED, f"expected SCHEDULED, found {after.state}")
    moments = (before.starts_at, before.ends_at, before.reclaim_at)
    expect(moments == (after.starts_at, after.ends_at, after.reclaim_at), "moments moved with our clock")


CHECKED: Final[tuple[Callable[[Harness], None], ...]] = (
    lost_answer_is_resolved_by_repeating,
    lost_request_is_resolved_by_repeating,
    unknown_outcome_can_be_undone,
    throttled_call_has_no_effect,
    denied_call_has_no_effect,
    unknown_code_is_never_hot,
    moments_are_the_clouds,
)
