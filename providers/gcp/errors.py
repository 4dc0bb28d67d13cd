"""Maps Google's error codes to the provider contract's errors, whose class decides what is not launched for a while.

Google reports a code in three places: as the reason of an HTTP error, inside an operation, and in the last attempt of a
managed instance. Operations use capitals (RESOURCE_IN_USE_BY_ANOTHER_RESOURCE), reasons use camel case
(resourceInUseByAnotherResource): the table lists each code once. A code that is not in the table refuses the offering
if it has a status of 4xx, or is in an operation or an attempt. Only 5xx, 408, 499 and lost answers are uncertain. A 409
without a known reason is a conflict with another call, and nothing happened (google.rpc.Code: ABORTED).

Sources: Compute Engine's troubleshooting pages; Cluster Autoscaler's GCE client, and GKE's for resize requests, read
2026-11-27; google-cloud-compute 1.56.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.protobuf.json_format import ParseError
from requests import exceptions as http

from providers.errors import (
    AcceleratorQuotaError,
    AccountLimitError,
    AddressesExhaustedError,
    AmbiguousError,
    BackoffScope,
    BusyError,
    FamilyQuotaError,
    GoneError,
    NotOfferedError,
    PermissionDeniedError,
    ProviderError,
    QuotaError,
    RegionQuotaError,
    ReservationExhaustedError,
    ShortageError,
    TemplateError,
    ThrottledError,
    UnknownRefusalError,
)
from providers.gcp.quotas import quota_of

MEANINGS: Final[Mapping[str, type[ProviderError]]] = {
    # The zone has no capacity.
    "ZONE_RESOURCE_POOL_EXHAUSTED": ShortageError,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": ShortageError,
    "RESOURCE_POOL_EXHAUSTED": ShortageError,
    "INSUFFICIENT_CAPACITY": ShortageError,
    "QUEUING_INFEASIBLE_NO_CAPACITY": ShortageError,  # a resize request that would wait forever
    "UNSUPPORTED_OPERATION": ShortageError,  # a Spot machine that was preempted during its creation
    # Quotas.
    "QUOTA_EXCEEDED": QuotaError,
    "LIMIT_EXCEEDED": QuotaError,
    # Networks.
    "IP_SPACE_EXHAUSTED": AddressesExhaustedError,
    "IP_SPACE_EXHAUSTED_WITH_DETAILS": AddressesExhaustedError,
    # The API is overloaded; nothing happened.
    "RESOURCE_OPERATION_RATE_EXCEEDED": ThrottledError,
    "OPERATION_RATE_EXCEEDED": ThrottledError,
    "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED": ThrottledError,
    "rateLimitExceeded": ThrottledError,
    "userRateLimitExceeded": ThrottledError,
    # The resource is being changed or created; nothing happened.
    "RESOURCE_NOT_READY": BusyError,
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": BusyError,
    # The name exists already: an earlier call succeeded.
    "alreadyExists": AmbiguousError,
    "RESOURCE_ALREADY_EXISTS": AmbiguousError,
    # Missing resources.
    "notFound": GoneError,
    "RESOURCE_NOT_FOUND": TemplateError,
    # Configuration.
    "CONDITION_NOT_MET": TemplateError,
    "INVALID_FIELD_VALUE": TemplateError,
    "INVALID_USAGE": TemplateError,
    "INVALID_ARGUMENT": TemplateError,
    "invalid": TemplateError,
    "required": TemplateError,
    # Permissions.
    "PERMISSIONS_ERROR": PermissionDeniedError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "forbidden": PermissionDeniedError,
    "insufficientPermissions": PermissionDeniedError,
    "accessNotConfigured": PermissionDeniedError,
    "SERVICE_ACCOUNT_ACCESS_DENIED": PermissionDeniedError,
    "authError": PermissionDeniedError,
    "required.login": PermissionDeniedError,
    # Server errors: the call may have had its effect.
    "INTERNAL_ERROR": AmbiguousError,
    "backendError": AmbiguousError,
}
# Messages that are more specific than their code. The first match counts.
_PHRASES: Final[tuple[tuple[tuple[str, ...], type[ProviderError]], ...]] = (
    (("gpus-all-regions",), AccountLimitError),  # of the project, whatever the region, type and capacity type
    (("cpus-all-regions",), AccountLimitError),
    (("requires reservation to be in ready state",), ReservationExhaustedError),
    (("reservation", "does not have available resources"), ReservationExhaustedError),
    (("reservation", "does not have sufficient capacity"), ReservationExhaustedError),  # of TPUs
    (("no available resources in specified reservations",), ReservationExhaustedError),
    (("automatic reservations", "fully consumed"), ReservationExhaustedError),
    (("specified reservation", "not exist"), TemplateError),
    (("does not currently have sufficient capacity",), ShortageError),
    (("could not provision queued instances in the allocated time",), ShortageError),
    (("machine type", "does not exist in zone"), NotOfferedError),
    (("machinetypes/", "not found"), NotOfferedError),
    (("acceleratortypes/", "not found"), NotOfferedError),
    (("has not been used in project", "before or it is disabled"), PermissionDeniedError),
)
_NEXT_STEPS: Final[Mapping[type[ProviderError], str]] = {
    AccountLimitError: (
        "Ask for more in the Google Cloud console (IAM & Admin, Quotas): GPUS_ALL_REGIONS, or CPUS_ALL_REGIONS if the "
        "message names that."
    ),
    QuotaError: "Ask for more in the Google Cloud console (IAM & Admin, Quotas), or admit another capacity type.",
    AcceleratorQuotaError: (
        "Ask for more in the Google Cloud console (IAM & Admin, Quotas), or admit another accelerator or capacity type."
    ),
    FamilyQuotaError: (
        "Ask for more in the Google Cloud console (IAM & Admin, Quotas), or admit another machine family."
    ),
    RegionQuotaError: (
        "Ask for more in the Google Cloud console (IAM & Admin, Quotas), or admit another region or capacity type."
    ),
    NotOfferedError: (
        "`foreslice gcp check` names the zones that have it: make the node pool in one of them, or leave the zone out "
        "of the pool's requirements."
    ),
    AddressesExhaustedError: "Add a secondary range to the subnet of the node pool, or another node pool.",
}
# The client's messages begin with the request, which `what` contains already.
_REQUEST: Final = re.compile(r"\A[A-Z]+ https?://\S+: ")
# Google's messages contain the project's number, which gcloud accepts as well.
_DISABLED: Final = re.compile(r"in project (\S+) before or it is disabled")
_CREDENTIALS: Final = (
    "Give this process credentials of the project: Workload Identity Federation in a pod (docs/gcp.md), "
    "`gcloud auth application-default login` on a workstation. `foreslice gcp check` tries them."
)


_APIS: Final = ("compute.googleapis.com", "container.googleapis.com")
# Who creates the machines of groups. Source: Compute Engine documentation, access control of managed instance groups.
_AGENT: Final = (
    "Give Google's service agent PROJECT_NUMBER@cloudservices.gserviceaccount.com the permission that the message "
    "names: it creates the machines of groups."
)
# The server gave up before the end of the call, which may have had its effect: time-out, and google.rpc's CANCELLED.
_UNANSWERED: Final = frozenset({408, 499})
# Google does not accept the credentials: no role corrects this.
_NOBODY: Final = frozenset({"authError", "required.login", "401"})


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise the errors of Google's clients as ProviderErrors, with the cause chained. `what` is the call in the
    message."""
    try:
        yield
    except (auth.GoogleAuthError, api.Unauthorized) as error:
        code = type(error).__name__
        raise PermissionDeniedError(f"{what}: {message_of(error)}", code=code, next_step=_CREDENTIALS) from error
    except api.GoogleAPICallError as error:
        text = _REQUEST.sub("", str(error.message))
        raise of_http(what, int(error.code or 0), _reason(error), text) from error
    except (api.GoogleAPIError, http.RequestException, http.InvalidJSONError) as error:
        step = "Nothing to do if it passes. If it stays, check the network to compute.googleapis.com."
        raise AmbiguousError(f"{what}: {message_of(error)}", code=type(error).__name__, next_step=step) from error
    except (ParseError, ValueError, TypeError) as error:
        # The clients raise these errors if an answer does not match their types.
        message = f"{what}: the answer cannot be read: {type(error).__name__} {error}"
        raise AmbiguousError(message, code="UnreadableAnswer") from error


def message_of(error: Exception) -> str:
    """The text of an error. Errors of Google and of requests have the text first, and objects for programs after it."""
    first = error.args[0] if error.args else error
    return message_of(first) if isinstance(first, Exception) and first is not error else str(first)


def enabled(code: str, message: str, *apis: str) -> str:
    """The command that enables the APIs that a refusal names; "" for other refusals."""
    found = _DISABLED.search(message)
    if found is None and code != "accessNotConfigured":
        return ""
    return f"Enable it: gcloud services enable {' '.join(apis)}" + (f" --project {found[1]}" if found else "")


def of_http(what: str, status: int, reason: str, message: str) -> ProviderError:
    """The error of an HTTP answer other than 200."""
    kind = meaning(reason, message)
    if kind is UnknownRefusalError:
        if status == 429:
            kind = ThrottledError
        elif status in (401, 403):
            kind = PermissionDeniedError
        elif status == 404:
            kind = GoneError
        elif status == 409:
            kind = BusyError
        elif status in _UNANSWERED or not 400 <= status < 500:
            kind = ThrottledError if status == 503 else AmbiguousError
    elif kind is AmbiguousError and status == 503:
        kind = ThrottledError  # the repetition finds the effect of the first call, if there was one
    return _error(kind, what, reason or str(status), message)


def of_code(what: str, code: str, message: str) -> ProviderError:
    """The error for a code inside an operation or an attempt. There the code is the outcome: no call is repeated to
    learn it.

    A missing resource is one that the machine would be created from.
    """
    kind = meaning(code, message)
    return _error(TemplateError if kind is GoneError else kind, what, code, message)


def meaning(code: str, message: str = "") -> type[ProviderError]:
    """The class of error for a code; UnknownRefusalError for a code that is in no table."""
    lowered = message.lower()
    for words, kind in _PHRASES:
        if all(word in lowered for word in words):
            return kind
    kind = _KNOWN.get(_plain(code), QuotaError if "quota" in code.lower() else UnknownRefusalError)
    quota = quota_of(message) if kind is QuotaError else None
    return quota.error if quota is not None else kind


class GroupRefusedError(TemplateError):
    """Google cannot create the machines of one group: its instance template, or a permission of Google's service agent,
    is wrong. Launches in other groups continue."""

    scope = BackoffScope.OFFERING
    advice = "Correct the node pool or group that the message names, or take it out of the GCPNodeTemplate."


def of_group(error: ProviderError) -> ProviderError:
    """The error of machines that a group could not create. Each group has an instance template of its own, and its
    machines are not created with the controller's permissions."""
    if not isinstance(error, TemplateError | PermissionDeniedError):
        return error
    denied = isinstance(error, PermissionDeniedError)
    step = (enabled(error.code, error.message, *_APIS) or _AGENT) if denied else ""
    found = GroupRefusedError(error.message, code=error.code, next_step=step)
    found.settled = error.settled
    return found


def _plain(code: str) -> str:
    return code.replace("_", "").lower()


_KNOWN: Final = {_plain(code): kind for code, kind in MEANINGS.items()}


def _error(kind: type[ProviderError], what: str, code: str, message: str) -> ProviderError:
    step = _NEXT_STEPS.get(kind, "")
    if kind is PermissionDeniedError:
        step = "Give the controller's service account the role of deploy/gcp."
        step = _CREDENTIALS if code in _NOBODY else enabled(code, message, *_APIS) or step
    return kind(f"{what}: {message or code} ({code})", code=code, next_step=step)


def _reason(error: api.GoogleAPICallError) -> str:
    """The machine-readable reason of Google's JSON errors."""
    rows: Any = error.errors or ()
    for row in rows:
        found = row.get("reason") if isinstance(row, Mapping) else None
        if found:
            return str(found)
    return ""
