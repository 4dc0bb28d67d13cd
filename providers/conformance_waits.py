"""The guarantees of providers whose launches may wait (abilities.py, Withdrawer), as checks like those of
conformance.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from instance_catalog.dataclass import replace
from providers.abilities import Withdrawer
from providers.conformance_harness import (
    BrokenGuaranteeError,
    Harness,
    check_of,
    expect,
    ids_of,
    live,
    raises,
    request_of,
)
from providers.contract import LaunchAnswer, LaunchRequest
from providers.errors import AmbiguousError, TokenReusedError, WaitingError

_NODES: Final = 3
_PATIENCE: Final = 30  # minutes that a provider may take to start machines that there are, or to withdraw


def _gang(harness: Harness, batch: str = "b1") -> LaunchRequest:
    return replace(request_of(harness, batch=batch, nodes=_NODES), minimum=_NODES)


def _withdrawer(harness: Harness) -> Withdrawer:
    provider = harness.provider
    if not isinstance(provider, Withdrawer):
        raise BrokenGuaranteeError(f"{provider.name} cannot withdraw what waits")
    return provider


def _held(harness: Harness, machines: int = 0) -> LaunchRequest:
    """A launch that waits, for more machines than there are."""
    harness.limit(harness.plenty, machines)
    request = _gang(harness)
    raises(WaitingError, lambda: harness.provider.launch(request))
    return request


def _started(harness: Harness, request: LaunchRequest) -> LaunchAnswer:
    for _ in range(_PATIENCE):
        try:
            return harness.provider.launch(request)
        except (WaitingError, AmbiguousError):
            harness.advance(timedelta(minutes=1))
    raise BrokenGuaranteeError("a launch waits although there are machines")


def _withdrawn(harness: Harness, request: LaunchRequest) -> LaunchAnswer:
    for _ in range(_PATIENCE):
        try:
            return _withdrawer(harness).withdraw(request)
        except AmbiguousError:
            harness.advance(timedelta(minutes=1))
    raise BrokenGuaranteeError("a launch that waits is never withdrawn")


def waits_and_starts_once(harness: Harness) -> None:
    """A launch that waits is asked for once, whoever repeats it, and starts all its machines when there are some."""
    request = _held(harness)
    expect(_withdrawer(harness).waits(request), "a request that is held does not wait")
    harness.restart()
    raises(WaitingError, lambda: harness.provider.launch(request))
    harness.advance(timedelta(days=7))
    raises(WaitingError, lambda: harness.provider.launch(request))
    harness.limit(harness.plenty, 2 * _NODES)
    answer = _started(harness, request)
    expect(tuple(one.node for one in answer.instances) == request.nodes, "instances and nodes differ in order")
    expect(ids_of(_started(harness, request)) == ids_of(answer), "a repetition answered with other instances")
    harness.settle()
    expect(len(live(harness, "b1")) == _NODES, f"expected {_NODES} machines, found {len(live(harness, 'b1'))}")
    expect(not _withdrawer(harness).waits(request), "a launch waits that has started its machines")


def starts_all_or_none(harness: Harness) -> None:
    """While there are too few machines for all of a request, none is started."""
    _held(harness, _NODES - 1)
    harness.advance(timedelta(hours=1))
    expect(live(harness, "b1") == {}, "a part of the machines was started")


def withdrawn_starts_nothing(harness: Harness) -> None:
    """A withdrawn request starts nothing, even if capacity becomes free; withdrawing it twice is no error."""
    request = _held(harness)
    harness.advance(timedelta(minutes=1))
    expect(_withdrawn(harness, request).instances == (), "machines came from an empty cloud")
    harness.restart()
    harness.limit(harness.plenty, 2 * _NODES)
    harness.advance(timedelta(hours=1))
    expect(live(harness, "b1") == {}, "a withdrawn launch has started machines")
    expect(_withdrawn(harness, request).instances == (), "a withdrawn launch answers with machines")
    expect(not _withdrawer(harness).waits(request), "a withdrawn launch waits")


def withdrawn_too_late(harness: Harness) -> None:
    """Machines that started before a launch was withdrawn are returned, each with its node, and continue to run."""
    request = _held(harness)
    harness.limit(harness.plenty, 2 * _NODES)
    harness.advance(timedelta(hours=1))
    answer = _withdrawn(harness, request)
    expect(tuple(one.node for one in answer.instances) == request.nodes, "machines that came are not answered")
    harness.settle()
    expect(sorted(live(harness, "b1")) == sorted(ids_of(answer)), "other machines run than were answered")


def withdrawn_token_is_not_used_up(harness: Harness) -> None:
    """A withdrawn request may be repeated with the same token."""
    request = _held(harness)
    harness.advance(timedelta(minutes=1))
    _withdrawn(harness, request)
    harness.limit(harness.plenty, _NODES)
    expect(len(_started(harness, request).instances) == _NODES, "the repetition launched nothing")


def never_asked_for_is_withdrawn(harness: Harness) -> None:
    """Withdrawing an unknown request answers with no machines and starts none."""
    request = _gang(harness)
    expect(_withdrawn(harness, request).instances == (), "machines that nobody asked for")
    expect(not _withdrawer(harness).waits(request), "a launch waits that nobody asked for")


def waiting_token_is_not_reused(harness: Harness) -> None:
    """The token of a launch that waits cannot be used with other parameters."""
    request = _held(harness)
    nodes = tuple(f"other-{index}" for index in range(_NODES))
    raises(TokenReusedError, lambda: harness.provider.launch(replace(request, nodes=nodes)))


def withdrawn_alone(harness: Harness) -> None:
    """Withdrawing one launch leaves the others waiting."""
    first, second = _held(harness), _gang(harness, "b2")
    raises(WaitingError, lambda: harness.provider.launch(second))
    harness.advance(timedelta(minutes=1))
    _withdrawn(harness, first)
    harness.limit(harness.plenty, 2 * _NODES)
    expect(len(_started(harness, second).instances) == _NODES, "another launch was withdrawn as well")


WAITS: Final = tuple(
    map(
        check_of,
        (
            waits_and_starts_once,
            starts_all_or_none,
            withdrawn_starts_nothing,
            withdrawn_too_late,
            withdrawn_token_is_not_used_up,
            never_asked_for_is_withdrawn,
            waiting_token_is_not_reused,
            withdrawn_alone,
        ),
    )
)
