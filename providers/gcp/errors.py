"""What Google's error codes mean: one table from codes to Foreslice's errors, whose class says what is left alone.

A code comes in three ways: as the reason of an HTTP error, inside an operation, and in a managed instance's last
attempt. Inside of operations it has capitals, as RESOURCE_IN_USE_BY_ANOTHER_RESOURCE, and as a reason it is written
resourceInUseByAnotherResource: each code is in the table once. Sources: Compute Engine's troubleshooting pages; Cluster
Autoscaler's GCE client, and GKE's for resize requests, read 2026-11-27; google-cloud-compute 1.56. A code that is not
here refuses the offering when it comes with 4xx, in an operation or in an attempt. Only 5xx and lost answers are
uncertain.
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
    # The zone has none.
    "ZONE_RESOURCE_POOL_EXHAUSTED": ShortageError,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": ShortageError,
    "RESOURCE_POOL_EXHAUSTED": ShortageError,
    "INSUFFICIENT_CAPACITY": ShortageError,
    "QUEUING_INFEASIBLE_NO_CAPACITY": ShortageError,  # a resize request that could only wait in vain
    "UNSUPPORTED_OPERATION": ShortageError,  # a Spot machine that was taken back while it was being created
    # Quotas.
    "QUOTA_EXCEEDED": QuotaError,
    "LIMIT_EXCEEDED": QuotaError,
    # Networks.
    "IP_SPACE_EXHAUSTED": AddressesExhaustedError,
    "IP_SPACE_EXHAUSTED_WITH_DETAILS": AddressesExhaustedError,
    # The API is under pressure; nothing happened.
    "RESOURCE_OPERATION_RATE_EXCEEDED": ThrottledError,
    "OPERATION_RATE_EXCEEDED": ThrottledError,
    "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED": ThrottledError,
    "rateLimitExceeded": ThrottledError,
    "userRateLimitExceeded": ThrottledError,
    # What is named is being changed or made; nothing happened.
    "RESOURCE_NOT_READY": BusyError,
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": BusyError,
    # A name that exists already: the call was made before.
    "alreadyExists": AmbiguousError,
    "RESOURCE_ALREADY_EXISTS": AmbiguousError,
    # Not there.
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
    # A fault of the server: it may have happened.
    "INTERNAL_ERROR": AmbiguousError,
    "backendError": AmbiguousError,
}
# What a message says although its code says less. The first that matches counts.
_PHRASES: Final[tuple[tuple[tuple[str, ...], type[ProviderError]], ...]] = (
    (("gpus-all-regions",), AccountLimitError),  # of the project, whatever the region, type and capacity type
    (("cpus-all-regions",), AccountLimitError),
    (("requires reservation to be in ready state",), ReservationExhaustedError),
    (("reservation", "does not have available resources"), ReservationExhaustedError),
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
# The client begins messages with the request, which `what` names already.
_REQUEST: Final = re.compile(r"\A[A-Z]+ https?://\S+: ")
# Google names the project by its number, which gcloud takes as well.
_DISABLED: Final = re.compile(r"in project (\S+) before or it is disabled")
_CREDENTIALS: Final = (
    "Give this process credentials of the project: Workload Identity Federation in a pod (docs/gcp.md), "
    "`gcloud auth application-default login` on a workstation. `foreslice gcp check` tries them."
)


_APIS: Final = ("compute.googleapis.com", "container.googleapis.com")
# Codes of credentials that Google does not accept: no role helps there.
_NOBODY: Final = frozenset({"authError", "required.login", "401"})


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise what Google's clients raise as ProviderErrors, the cause chained. `what` names the call in the message."""
    try:
        yield
    except (auth.GoogleAuthError, api.Unauthorized) as error:
        code = type(error).__name__
        raise PermissionDeniedError(f"{what}: {told(error)}", code=code, next_step=_CREDENTIALS) from error
    except api.GoogleAPICallError as error:
        text = _REQUEST.sub("", str(error.message))
        raise of_http(what, int(error.code or 0), _reason(error), text) from error
    except (api.GoogleAPIError, http.RequestException, http.InvalidJSONError) as error:
        step = "Nothing to do if it passes. If it stays, check the network to compute.googleapis.com."
        raise AmbiguousError(f"{what}: {told(error)}", code=type(error).__name__, next_step=step) from error
    except (ParseError, ValueError, TypeError) as error:
        # The clients read answers into their types, and raise such errors for what does not fit.
        message = f"{what}: the answer cannot be read: {type(error).__name__} {error}"
        raise AmbiguousError(message, code="UnreadableAnswer") from error


def told(error: Exception) -> str:
    """What an error says. Google's and requests' errors have the words first, and objects for programs after them."""
    first = error.args[0] if error.args else error
    return told(first) if isinstance(first, Exception) and first is not error else str(first)


def enabled(code: str, message: str, *apis: str) -> str:
    """The command that enables APIs in the project that a refusal names; "" where it says something else."""
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
        elif not 400 <= status < 500:
            kind = ThrottledError if status == 503 else AmbiguousError
    elif kind is AmbiguousError and status == 503:
        kind = ThrottledError  # asked again more slowly; a call that had its effect finds it then
    return _error(kind, what, reason or str(status), message)


def of_code(what: str, code: str, message: str) -> ProviderError:
    """The error of a code inside an operation or an attempt: there it is an outcome, and nobody need repeat the call
    to learn it. What is not there, is what a machine would be made of."""
    kind = meaning(code, message)
    return _error(TemplateError if kind is GoneError else kind, what, code, message)


def meaning(code: str, message: str = "") -> type[ProviderError]:
    """The class of error that a code stands for; UnknownRefusalError for one that is in no table."""
    lowered = message.lower()
    for words, kind in _PHRASES:
        if all(word in lowered for word in words):
            return kind
    kind = _KNOWN.get(_plain(code), QuotaError if "quota" in code.lower() else UnknownRefusalError)
    quota = quota_of(message) if kind is QuotaError else None
    return quota.error if quota is not None else kind


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
    """The word that Google's JSON errors have for a machine."""
    rows: Any = error.errors or ()
    for row in rows:
        found = row.get("reason") if isinstance(row, Mapping) else None
        if found:
            return str(found)
    return ""
