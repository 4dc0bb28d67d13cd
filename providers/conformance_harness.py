"""What a provider's tests implement so that the conformance checks can run, and what a check is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from providers.contract import OfferingKey, Provider, TemplateRef


class BrokenGuaranteeError(AssertionError):
    """A provider does not keep what the contract promises; the message says what was expected and found."""


class Harness(Protocol):
    """A provider whose surroundings the checks can arrange.

    `plenty` and `other` are two offerings of one zone that can be had without limit until limited; `template` is one
    that launches them. Features a provider
    cannot show raise `NotApplicable` from the method that would arrange them.
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
        """Let time pass."""

    def limit(self, offering: OfferingKey, machines: int) -> None:
        """Let the cloud have so many machines of an offering."""

    def withdraw(self, offering: OfferingKey) -> None:
        """Stop selling an offering."""

    def reserve(self, *, count: int, starts_in: timedelta, lasts: timedelta) -> OfferingKey:
        """A capacity block of `count` machines; answers what to ask for. Exactly one exists per harness."""

    def take(self, reservation: str, machines: int) -> None:
        """Let somebody else use machines of the reservation."""

    def lose_answer(self) -> None:
        """Let the next launch take effect and its answer get lost."""

    def lose_request(self) -> None:
        """Let the next launch get lost before it takes effect."""

    def throttle(self) -> None:
        """Refuse the next launch for calling too often."""

    def settle(self) -> None:
        """Let booting, terminating and the provider's delays finish."""


class NotApplicable(Exception):  # noqa: N818  # a signal, as pytest's Skipped is
    """This provider has nothing the check could be about; the message says why."""


@dataclass(frozen=True, slots=True)
class Check:
    """One guarantee. `run` raises BrokenGuaranteeError if it does not hold, NotApplicable if it cannot be shown."""

    name: str
    guarantee: str
    run: Callable[[Harness], None]
