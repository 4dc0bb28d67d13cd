"""The interface that a provider's tests implement for the conformance checks, with the type of a check and helpers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, Protocol

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap
from providers.contract import (
    TAG_BATCH,
    TAG_CLUSTER,
    Instance,
    InstanceState,
    LaunchAnswer,
    LaunchRequest,
    OfferingKey,
    Provider,
    TemplateRef,
    describe_all,
)
from providers.errors import AmbiguousError, ProviderError


class BrokenGuaranteeError(AssertionError):
    """A provider breaks a guarantee of the contract; the message has the expected and the actual result."""


class Harness(Protocol):
    """A provider in surroundings that the checks can change.

    `plenty` and `other` are two offerings of one zone with unlimited capacity until `limit` is called; `template` is
    one that launches them. For a feature that a provider does not have, the method that would arrange it raises
    `NotApplicable`.
    """

    plenty: OfferingKey
    other: OfferingKey
    template: TemplateRef

    @property
    def provider(self) -> Provider:
        """The provider under test; a new object over the same cloud after `restart`."""

    def restart(self) -> None:
        """Lose everything the provider holds in memory."""

    def advance(self, by: timedelta) -> None:
        """Advances the time."""

    def limit(self, offering: OfferingKey, machines: int) -> None:
        """Limits the cloud's capacity of an offering to this number of machines."""

    def withdraw(self, offering: OfferingKey) -> None:
        """Stop selling an offering."""

    def reserve(self, *, count: int, starts_in: timedelta, lasts: timedelta) -> OfferingKey:
        """A capacity block of `count` machines; answers what to ask for. Exactly one exists per harness."""

    def take(self, reservation: str, machines: int) -> None:
        """Makes another user occupy machines of the reservation."""

    def lose_answer(self) -> None:
        """Makes the next launch take effect and loses its answer."""

    def lose_request(self) -> None:
        """Loses the next launch before it takes effect."""

    def throttle(self) -> None:
        """Refuse the next launch for calling too often."""

    def foreign(self) -> str:
        """The id of a machine that can be reached and lacks the cluster's tags."""

    def extend(self, reservation: str, by: timedelta) -> None:
        """Move the end of a block, as a paid extension does."""

    def skew(self, by: timedelta) -> None:
        """Sets the caller's clock ahead of the cloud's by this time."""

    def deny(self) -> None:
        """Refuse the next launch for want of a permission."""

    def answer_nonsense(self) -> None:
        """Refuses the next launch with an unknown code; it has no effect."""

    def settle(self) -> None:
        """Finishes booting and terminating, and the provider's delays."""


class NotApplicable(Exception):  # noqa: N818  # a signal, as pytest's Skipped is
    """The check does not apply to this provider; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Check:
    """One guarantee. `run` raises BrokenGuaranteeError if it does not hold, NotApplicable if it cannot be shown."""

    name: str
    guarantee: str
    run: Callable[[Harness], None]


CLUSTER: Final = "11111111-2222-3333-4444-555555555555"
_PATIENCE: Final = 10  # minutes that a group may take to start machines, or to report that it cannot
LIVE: Final = frozenset({InstanceState.PENDING, InstanceState.RUNNING})


def expect(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like `assert`
    """Raise BrokenGuaranteeError unless it holds."""
    if not condition:
        raise BrokenGuaranteeError(message)


def request_of(
    harness: Harness, *, batch: str = "b1", nodes: int = 1, offerings: Iterable[OfferingKey] = ()
) -> LaunchRequest:
    """A request of batch `batch`, whose nodes are named b1-0, b1-1 …"""
    return LaunchRequest(
        token=f"token-{batch}",
        nodes=tuple(f"{batch}-{index}" for index in range(nodes)),
        offerings=tuple(offerings) or (harness.plenty,),
        tags=FrozenMap({TAG_CLUSTER: CLUSTER, TAG_BATCH: batch}),
        template=harness.template,
    )


def live(harness: Harness, batch: str) -> dict[str, Instance]:
    """The machines of a batch that start or run, by id."""
    found = describe_all(harness.provider, {TAG_CLUSTER: CLUSTER, TAG_BATCH: batch})
    return {instance.id: instance for instance in found if instance.state in LIVE}


def ids_of(answer: LaunchAnswer) -> tuple[str, ...]:
    """Its instances' ids in order."""
    return tuple(instance.id for instance in answer.instances)


def launched(harness: Harness, request: LaunchRequest) -> LaunchAnswer:
    """The answer. While a counted provider reports an unknown result, the request is repeated."""
    for _ in range(_PATIENCE):
        try:
            return harness.provider.launch(request)
        except AmbiguousError:
            if not harness.provider.traits.counted:
                raise
            harness.advance(timedelta(minutes=1))
    return harness.provider.launch(request)


def only_failure(answer: LaunchAnswer, offering: OfferingKey) -> ProviderError:
    """The one failure of an answer, which must be about `offering`."""
    expect(len(answer.failures) == 1, f"expected one failure, found {len(answer.failures)}")
    expect(answer.failures[0].offering == offering, f"the failure names {answer.failures[0].offering}, not {offering}")
    return answer.failures[0].error


def raises(kind: type[ProviderError], call: Callable[[], object]) -> None:
    """Expect a call to raise this error."""
    try:
        call()
    except kind:
        return
    raise BrokenGuaranteeError(f"expected {kind.__name__}, found an answer")


def check_of(run: Callable[[Harness], None]) -> Check:
    """A check from its function: name and guarantee are the function's name and docstring."""
    return Check(run.__name__.replace("_", " "), " ".join((run.__doc__ or "").split()), run)
