"""The errors of providers: one tree, each error with the scope of its back-off and advice for a person.

Adapters convert their clouds' codes into these, with the cause chained. Callers decide by class: after a CapacityError
the next offering is tried, a RefusedError needs a person, an UncertainError is repeated unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import Enum
from typing import ClassVar, Final


class BackoffScope(Enum):
    """The scope that is not requested again for a while after an error."""

    OFFERING = "offering"  # (type, zone, capacity type)
    RESERVATION = "reservation"  # this reservation
    TYPE_IN_ZONE = "type-in-zone"  # (type, zone) in every capacity type
    ZONE = "zone"  # everything in this zone
    QUOTA = "quota"  # the capacity type of this account and region
    API = "api"  # every call to this provider
    TEMPLATE = "template"  # everything launched from this node template
    PROVIDER = "provider"  # everything this provider would launch
    OBJECT = "object"  # the object in the call


class ProviderError(Exception):
    """An operation that a provider could not complete.

    ProviderError
    ├── CapacityError               the offering is not available now; the next one may be
    │   ├── ShortageError           the cloud has none left
    │   ├── ReservationExhaustedError  all machines of the reservation are in use
    │   ├── NotOfferedError         the type is not sold there
    │   ├── NotInGroupsError        no group of the node template starts it now
    │   ├── AddressesExhaustedError the zone's subnets are full
    │   ├── QuotaError              the account may not have more
    │   ├── AcceleratorQuotaError   of machines with this accelerator; others are possible
    │   ├── FamilyQuotaError        of machines of this family; others are possible
    │   ├── RegionQuotaError        of anything in this region; other regions are possible
    │   └── AccountLimitError       the account may not have more of a resource that every machine needs
    ├── RefusedError                the request is wrong until a person changes something
    │   ├── TemplateError           node template or launch parameters (configuration)
    │   ├── NoSubnetError           the node template selects no subnet in that zone; others are not affected
    │   ├── PermissionDeniedError   the credentials do not allow it
    │   ├── UnknownRefusalError     the provider refused with an unknown code
    │   └── TokenReusedError        this token was used with other parameters
    ├── ThrottledError              too many calls; nothing happened
    ├── BusyError                   another call changes the same object; nothing happened
    ├── WaitingError                the provider holds the request until it can start all of its machines
    ├── GoneError                   the named object does not exist, or is not visible yet
    │   └── TemplateGoneError       the same of an object that all launches of a node template need
    └── UncertainError              it is unknown whether it happened
        ├── AmbiguousError          no answer arrived (time-out, cut connection, server fault)
        └── UnclassifiedError       a failure that is neither a refusal nor a lost answer, of unknown kind

    `code` is the provider's own, `next_step` the correction for a person, `retry_after` the wait that the provider
    asked for.
    """

    kind: ClassVar[str] = "ProviderError"
    scope: ClassVar[BackoffScope] = BackoffScope.PROVIDER
    first_backoff: ClassVar[timedelta] = timedelta(minutes=1)
    longest_backoff: ClassVar[timedelta] = timedelta(minutes=30)
    advice: ClassVar[str] = "See the provider's message."

    def __init__(
        self, message: str, *, code: str = "", next_step: str = "", retry_after: timedelta | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.next_step = next_step or self.advice
        self.retry_after = retry_after

    def backoff(self, failures: int) -> timedelta:
        """The time to leave the scope alone after `failures` (>= 1) failures in a row: doubling, bounded, no jitter."""
        return max(self.doubled(failures), self.retry_after or timedelta(0))

    @classmethod
    def doubled(cls, failures: int) -> timedelta:
        """The part of `backoff` that follows from the kind alone."""
        return min(cls.first_backoff * (1 << min(max(failures, 1) - 1, 16)), cls.longest_backoff)


class CapacityError(ProviderError):
    """The offering is not available now. Part of a LaunchAnswer; the next offering may succeed."""

    kind = "Capacity"
    scope = BackoffScope.OFFERING


class ShortageError(CapacityError):
    """The cloud has no machine of this type, zone and capacity type now."""

    kind = "Shortage"
    first_backoff = timedelta(minutes=3)
    advice = "Nothing to do: the next offering is tried. Admit more zones or types if this is frequent."


class ReservationExhaustedError(CapacityError):
    """All machines of the reservation are in use, perhaps by another user."""

    kind = "ReservationExhausted"
    scope = BackoffScope.RESERVATION
    longest_backoff = timedelta(minutes=10)
    advice = "Check who else uses the reservation; it is asked again when its available count rises."


class NotOfferedError(CapacityError):
    """The type is not sold in that zone, or not in that capacity type."""

    kind = "NotOffered"
    scope = BackoffScope.TYPE_IN_ZONE
    first_backoff = timedelta(hours=6)
    longest_backoff = timedelta(hours=24)
    advice = "Correct the catalog with an InstanceTypeOverlay, or leave the zone out of the pool's requirements."


class NotInGroupsError(CapacityError):
    """No group of the node template starts such machines now. A person changes that, so the back-off is short."""

    kind = "NotInGroups"
    first_backoff = timedelta(minutes=2)
    advice = (
        "Name a group that starts such machines in the node template, or leave them out of the pool's requirements."
    )


class AddressesExhaustedError(CapacityError):
    """The subnets of the zone have no free addresses."""

    kind = "AddressesExhausted"
    scope = BackoffScope.ZONE
    first_backoff = timedelta(minutes=2)
    advice = "Give the node template more or larger subnets in this zone."


class QuotaError(CapacityError):
    """The account's quota is used up."""

    kind = "Quota"
    scope = BackoffScope.QUOTA
    first_backoff = timedelta(minutes=15)
    longest_backoff = timedelta(hours=4)
    advice = "Ask the provider to raise the quota, or admit another capacity type."


class AcceleratorQuotaError(CapacityError):
    """The account's quota of one accelerator is used up. Machines with another accelerator, or with none, may be
    available."""

    kind = "AcceleratorQuota"
    first_backoff = timedelta(minutes=15)
    longest_backoff = timedelta(hours=4)
    advice = "Ask the provider to raise the quota, or admit another accelerator or capacity type."


class FamilyQuotaError(CapacityError):
    """The account's quota of what machines of one family have is used up: processors, local disks."""

    kind = "FamilyQuota"
    first_backoff = timedelta(minutes=15)
    longest_backoff = timedelta(hours=4)
    advice = "Ask the provider to raise the quota, or admit another machine family or capacity type."


class RegionQuotaError(CapacityError):
    """The account's quota of a resource that all machines need is used up in one region. Other regions may have
    capacity."""

    kind = "RegionQuota"
    first_backoff = timedelta(minutes=15)
    longest_backoff = timedelta(hours=4)
    advice = "Ask the provider to raise the quota, or admit another region or capacity type."


class AccountLimitError(CapacityError):
    """The account's limit of something that every machine of the node template needs is reached: volumes, interfaces.

    Another type or capacity type meets the same limit, so all launches of the template rest.
    """

    kind = "AccountLimit"
    scope = BackoffScope.TEMPLATE
    first_backoff = timedelta(minutes=15)
    longest_backoff = timedelta(hours=4)
    advice = "Ask the provider to raise the limit that the message names, or remove what is no longer used."


class RefusedError(ProviderError):
    """The request is wrong, and stays wrong until a person changes something.

    The refusal of a launch is about this call. `settled`: no earlier call with its token launched anything, either.
    """

    kind = "Refused"
    settled: bool = False
    first_backoff = timedelta(minutes=10)
    longest_backoff = timedelta(hours=1)


class TemplateError(RefusedError):
    """The node template or a launch parameter cannot be used (image, subnet, profile, user data …)."""

    kind = "Configuration"
    scope = BackoffScope.TEMPLATE
    advice = "Correct the pool's node template."


class NoSubnetError(RefusedError):
    """The node template reaches no subnet in the zone; the other zones are not affected."""

    kind = "NoSubnet"
    scope = BackoffScope.ZONE
    advice = "Give the node template a subnet in this zone, or leave the zone out of the pool's requirements."


class PermissionDeniedError(RefusedError):
    """The credentials are missing, or do not allow the call."""

    kind = "Permission"
    advice = "Give the controller's identity the permission that the message names."


class TokenReusedError(RefusedError):
    """The token was used before, with other parameters. Never resolved by changing the token blindly."""

    kind = "TokenReused"
    scope = BackoffScope.OBJECT
    advice = "Find out what the token launched (describe by its batch tag) before asking again."


class UnknownRefusalError(RefusedError):
    """The provider refused the request (HTTP 4xx) with a code that this version does not know: nothing happened.

    The back-off is for the requested offering only; the next one may succeed.
    """

    kind = "UnknownRefusal"
    scope = BackoffScope.OFFERING
    first_backoff = timedelta(minutes=5)
    advice = "Correct what the provider's message names, and report its code to the project."


class ThrottledError(ProviderError):
    """Too many calls, or the API is overloaded. Nothing happened; the same plan holds after a while."""

    kind = "Throttled"
    scope = BackoffScope.API
    first_backoff = timedelta(seconds=1)
    longest_backoff = timedelta(minutes=2)
    advice = "Nothing to do: the call is repeated more slowly."


class BusyError(ProviderError):
    """Another call is changing the same object. Nothing happened; the same call succeeds after that one.

    Only this call waits. If the others were held up as well, the one that it waits for would also be.
    """

    kind = "Busy"
    scope = BackoffScope.OBJECT
    first_backoff = timedelta(seconds=5)
    longest_backoff = timedelta(minutes=2)
    advice = "Nothing to do: the call is repeated until it is its turn."


class WaitingError(ProviderError):
    """The provider holds the request and starts its machines when it can, perhaps in weeks. Nothing runs until then.

    Repeat it unchanged to get the result, or withdraw it (abilities.py, Withdrawer). `since` is when the provider
    accepted it, by the provider's clock.
    """

    kind = "Waiting"
    scope = BackoffScope.OBJECT
    first_backoff = timedelta(seconds=15)
    # The machines that it starts cost money from their start, so it is checked this often.
    longest_backoff = timedelta(minutes=2)
    advice = "Nothing to do: it costs nothing while it waits, and is withdrawn when no pod needs it."

    def __init__(self, message: str, *, since: datetime | None = None, code: str = "", next_step: str = "") -> None:
        super().__init__(message, code=code, next_step=next_step)
        self.since = since


class GoneError(ProviderError):
    """The named object does not exist, or is too new to be visible."""

    kind = "Gone"
    scope = BackoffScope.OBJECT
    first_backoff = timedelta(seconds=5)
    advice = "Looked at again after the provider's consistency window."


class TemplateGoneError(GoneError):
    """An object of the provider that a node template's launches need does not exist, or is not visible yet, although it
    was created again. No offering of the template can be launched."""

    scope = BackoffScope.TEMPLATE
    advice = "Nothing to do: it is made again. If this stays, find out who deletes what the message names."


class UncertainError(ProviderError):
    """It is unknown whether the call had an effect: repeat it with identical parameters, never with a new token."""

    kind = "Uncertain"
    scope = BackoffScope.API
    first_backoff = timedelta(seconds=5)
    longest_backoff = timedelta(minutes=5)


class AmbiguousError(UncertainError):
    """No answer arrived: time-out, cut connection or a fault of the server."""

    kind = "Ambiguous"
    advice = "Nothing to do: the call is repeated with its token until its outcome is known."


class UnclassifiedError(UncertainError):
    """A failure of unknown kind that may have had an effect. Never retried quickly."""

    kind = "Unknown"
    scope = BackoffScope.TEMPLATE
    first_backoff = timedelta(minutes=5)
    longest_backoff = timedelta(hours=1)
    advice = "Report the code to the project, with the provider's message."


ERRORS: Final[tuple[type[ProviderError], ...]] = (
    ShortageError,
    ReservationExhaustedError,
    NotOfferedError,
    NotInGroupsError,
    AddressesExhaustedError,
    QuotaError,
    AcceleratorQuotaError,
    FamilyQuotaError,
    RegionQuotaError,
    AccountLimitError,
    TemplateError,
    NoSubnetError,
    PermissionDeniedError,
    TokenReusedError,
    UnknownRefusalError,
    ThrottledError,
    BusyError,
    WaitingError,
    GoneError,
    AmbiguousError,
    UnclassifiedError,
)
_BY_KIND: Final = {error.kind: error for error in ERRORS}


def backoff_of(kind: str, failures: int) -> timedelta:
    """The back-off of an error of that kind after `failures` failures in a row, if its provider sets no time; for a
    kind that this version does not know, the longest of all kinds."""
    known = _BY_KIND.get(kind)
    if known is None:
        return max(error.longest_backoff for error in ERRORS)
    return known.doubled(failures)


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Around the reading of an answer about machines of Foreslice, every member of which may be absent. What cannot be
    read makes the whole look incomplete, since nothing may follow from a machine that is left out."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        step = "nothing is concluded from this answer; if it stays, report the message to the project"
        message = f"{what}: the answer lacks something or cannot be read: {type(error).__name__} {error}"
        raise UnclassifiedError(message, code="UnreadableAnswer", next_step=step) from error
