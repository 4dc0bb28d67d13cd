"""Which requests that only ask are looked at when, and what is remembered of obstacles."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from autoscaler.model.capacity_answers import AnswerCondition, RequestAnswer, Why
from autoscaler.model.requested_capacity import Condition, PodSet, ProvisioningRequest
from autoscaler.planning.request_state import (
    CHECK_AGAIN,
    CHECK_PAUSE,
    CHECKS_AT_ONCE,
    NO_REQUEST_STATE,
    RequestState,
    due_checks,
    next_check,
    request_state_after,
)
from instance_catalog.dataclass import replace
from tests.builders import NOW, snapshot

ASK = ProvisioningRequest("default", "ask", "check.foreslice.dev", (PodSet("workers", 2),))


def asking(namespace: str, count: int, *, pods: int = 2) -> tuple[ProvisioningRequest, ...]:
    names = (f"{namespace}-{number:03}" for number in range(count))
    return tuple(
        replace(ASK, namespace=namespace, name=name, uid=name, pod_sets=(PodSet("workers", pods),)) for name in names
    )


def looks(requests: tuple[ProvisioningRequest, ...], rounds: int) -> list[tuple[str, ...]]:
    """Who is looked at in so many reconciles, each at the moment for which the one before asked."""
    now, seen = NOW, NO_REQUEST_STATE
    state = snapshot([], provisioning_requests=requests)
    found = []
    for _ in range(rounds):
        chosen = due_checks(state, now, seen)
        found.append(tuple(request.uid for request in chosen))
        seen = request_state_after(seen, state, (), chosen, now)
        again = next_check(state, now, seen)
        assert again is not None
        assert again > now
        now = again
    return found


def test_every_request_is_looked_at_before_one_is_looked_at_twice() -> None:
    requests = asking("default", 300)
    rounds = looks(requests, 300 // CHECKS_AT_ONCE)
    assert Counter(uid for chosen in rounds for uid in chosen) == {request.uid: 1 for request in requests}


def test_one_request_is_looked_at_once_a_minute() -> None:
    (only,) = asking("default", 1)
    state = snapshot([], provisioning_requests=(only,))
    seen = request_state_after(NO_REQUEST_STATE, state, (), (only,), NOW)
    assert next_check(state, NOW, seen) == NOW + CHECK_AGAIN
    assert due_checks(state, NOW + CHECK_AGAIN - timedelta(seconds=1), seen) == ()
    assert due_checks(state, NOW + CHECK_AGAIN, seen) == (only,)


def test_a_large_namespace_delays_itself_alone() -> None:
    requests = (*asking("greedy", 300), *asking("small", 2), *asking("tiny", 1))
    first, second, *_ = looks(requests, 2)
    assert {"small-000", "tiny-000"} <= set(first)
    assert "small-001" in {*first, *second}


def test_new_requests_do_not_keep_old_ones_from_their_turn() -> None:
    old = asking("default", CHECKS_AT_ONCE)
    now, seen = NOW, NO_REQUEST_STATE
    looked_at = Counter[str]()
    for number in range(90):
        created = now.timestamp()
        fresh = tuple(
            replace(r, name=f"new-{number}-{r.name}", uid=f"new-{number}-{r.uid}", created=created) for r in old
        )
        state = snapshot([], provisioning_requests=(*old, *fresh))
        chosen = due_checks(state, now, seen)
        assert len(chosen) == CHECKS_AT_ONCE
        looked_at.update(request.uid for request in chosen)
        seen = request_state_after(seen, state, (), chosen, now)
        now += timedelta(seconds=2)
    assert all(looked_at[request.uid] >= 3 for request in old), "three minutes have passed"


def test_requests_of_many_pods_are_looked_at_one_at_a_time() -> None:
    assert [len(chosen) for chosen in looks(asking("default", 3, pods=6_000), 3)] == [1, 1, 1]


def test_nobody_is_asked_for_when_nobody_asks() -> None:
    done = replace(ASK, conditions=(Condition("Provisioned", "True"),))
    state = snapshot([], provisioning_requests=(done, replace(ASK, class_name="somebody.example.com")))
    assert due_checks(state, NOW, NO_REQUEST_STATE) == ()
    assert next_check(state, NOW, NO_REQUEST_STATE) is None


def test_those_that_wait_are_looked_at_soon() -> None:
    requests = asking("default", CHECKS_AT_ONCE + 1)
    state = snapshot([], provisioning_requests=requests)
    seen = request_state_after(NO_REQUEST_STATE, state, (), due_checks(state, NOW, NO_REQUEST_STATE), NOW)
    assert next_check(state, NOW, seen) == NOW + CHECK_PAUSE


@pytest.mark.parametrize("class_name", ["atomic.foreslice.dev", "check.foreslice.dev"])
def test_an_obstacle_that_is_gone_is_forgotten(class_name: str) -> None:
    request = replace(ASK, class_name=class_name, uid="uid-1")
    state = snapshot([], provisioning_requests=(request,))
    looked = (request,) if class_name.startswith("check") else ()

    def after(before: RequestState, seconds: int, *, obstacle: bool) -> RequestState:
        condition = AnswerCondition("Provisioned", Why.NOT_FOUND, obstacle=obstacle, true=False)
        answer = RequestAnswer(request, (condition,))
        return request_state_after(before, state, (answer,), looked, NOW + timedelta(seconds=seconds))

    first = after(NO_REQUEST_STATE, 0, obstacle=True)
    assert after(first, 20, obstacle=True).hopeless_since(request) == NOW
    gone = after(first, 25, obstacle=False)
    assert gone.hopeless_since(request) is None
    assert after(gone, 28, obstacle=True).hopeless_since(request) == NOW + timedelta(seconds=28)


def test_what_nobody_looked_at_says_nothing_about_a_request_that_only_asks() -> None:
    request = replace(ASK, uid="uid-1")
    state = snapshot([], provisioning_requests=(request,))
    answer = RequestAnswer(request, (AnswerCondition("Provisioned", Why.NOT_FOUND, obstacle=True, true=False),))
    seen = request_state_after(NO_REQUEST_STATE, state, (answer,), (request,), NOW)
    later = request_state_after(seen, state, (), (), NOW + timedelta(seconds=40))
    assert later.hopeless_since(request) == NOW
    assert request_state_after(later, snapshot([]), (), (), NOW) == NO_REQUEST_STATE, "it is deleted"
