"""AWS error codes: one table from code to error class, which decides what is backed off and for how long.

Sources: EC2 error codes page; Karpenter AWS 1.14 pkg/errors; boto3 1.44 exceptions. A code that is not here refuses the
offering if it comes with 4xx or inside a 200 answer: nothing was started, and another offering may be tried. Only 5xx
and lost answers are uncertain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004  # botocore's own, of which connection failures are
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)
from botocore.parsers import ResponseParserError

from providers.errors import (
    AccountLimitError,
    AddressesExhaustedError,
    AmbiguousError,
    BusyError,
    CapacityError,
    GoneError,
    NotOfferedError,
    PermissionDeniedError,
    ProviderError,
    QuotaError,
    RefusedError,
    ReservationExhaustedError,
    ShortageError,
    TemplateError,
    ThrottledError,
    TokenReusedError,
    UnclassifiedError,
    UnknownRefusalError,
)

MEANINGS: Final[Mapping[str, type[ProviderError]]] = {
    # The pool is empty.
    "InsufficientInstanceCapacity": ShortageError,
    "InsufficientCapacity": ShortageError,
    "InsufficientHostCapacity": ShortageError,
    "InsufficientReservedInstanceCapacity": ShortageError,
    "InsufficientCapacityOnOutpost": ShortageError,
    "InsufficientVolumeCapacity": ShortageError,
    "InsufficientAddressCapacity": ShortageError,
    "UnfulfillableCapacity": ShortageError,
    "SpotMaxPriceTooLow": ShortageError,
    # The reservation is full, not begun or over, or not there: its type may be had in that zone all the same.
    "ReservationCapacityExceeded": ReservationExhaustedError,
    "InsufficientCapacityReservationCapacity": ReservationExhaustedError,
    "CapacityReservationNotActive": ReservationExhaustedError,
    "InvalidCapacityReservationState": ReservationExhaustedError,
    "InvalidCapacityReservationId.NotFound": ReservationExhaustedError,
    "InvalidCapacityReservationId.Malformed": ReservationExhaustedError,
    # Not sold there.
    "Unsupported": NotOfferedError,
    "UnsupportedOperation": NotOfferedError,
    "InvalidInstanceType": NotOfferedError,
    "InvalidInstanceType.NotFound": NotOfferedError,
    "UnsupportedTenancy": NotOfferedError,
    "EncryptedVolumesNotSupported": NotOfferedError,
    # Quotas.
    "VcpuLimitExceeded": QuotaError,
    "InstanceLimitExceeded": QuotaError,
    "MaxSpotInstanceCountExceeded": QuotaError,
    "MaxFleetCountExceeded": QuotaError,
    "PrivateIpAddressLimitExceeded": QuotaError,
    "ResourceCountExceeded": QuotaError,
    # Limits of the account and region that no other type avoids.
    "VolumeLimitExceeded": AccountLimitError,
    "MaxIOPSLimitExceeded": AccountLimitError,
    "NetworkInterfaceLimitExceeded": AccountLimitError,
    "VersionLimitExceeded": AccountLimitError,
    "InsufficientFreeAddressesInSubnet": AddressesExhaustedError,
    # The API is under pressure; nothing happened.
    "RequestLimitExceeded": ThrottledError,
    "Throttling": ThrottledError,
    "ThrottlingException": ThrottledError,
    "RequestThrottled": ThrottledError,
    "TooManyRequestsException": ThrottledError,
    "EC2ThrottledException": ThrottledError,
    "InstanceRequestLimitExceeded": ThrottledError,
    "SlowDown": ThrottledError,
    "OverLimit": ThrottledError,
    "AWS.SimpleQueueService.RequestThrottled": ThrottledError,
    "ServiceUnavailable": ThrottledError,
    "Unavailable": ThrottledError,
    # The group is being changed; nothing happened.
    "ScalingActivityInProgress": BusyError,
    "ScalingActivityInProgressFault": BusyError,
    "ResourceContention": BusyError,
    "ResourceContentionFault": BusyError,
    # A fault of the server: it may have happened.
    "InternalError": AmbiguousError,
    "InternalFailure": AmbiguousError,
    "InternalServerError": AmbiguousError,
    "RequestTimeout": AmbiguousError,
    "IdempotentCallInProgress": AmbiguousError,  # an equal call is running; its answer is not known yet
    # Tokens.
    "IdempotentParameterMismatch": TokenReusedError,
    "IdempotentInstanceTerminated": GoneError,
    "IdempotentParameterMismatchError": TokenReusedError,
    # The named resource does not exist, or does not exist yet.
    "InvalidInstanceID.NotFound": GoneError,
    "InvalidInstanceID.Malformed": GoneError,
    "InvalidLaunchTemplateName.NotFoundException": GoneError,
    "InvalidLaunchTemplateId.NotFound": GoneError,
    "InvalidLaunchTemplateId.VersionNotFound": GoneError,
    # Configuration: exact codes; whole families are in FAMILIES.
    "ValidationError": TemplateError,
    "InvalidFleetConfig": TemplateError,
    "InvalidFleetConfiguration": TemplateError,
    "InvalidInput": TemplateError,
    "InvalidKMSKey.InvalidState": TemplateError,
    "SecurityGroupsPerInstanceLimitExceeded": TemplateError,
    "MissingParameter": TemplateError,
    "UnknownParameter": TemplateError,
    "InvalidBlockDeviceMapping": TemplateError,
    "InvalidNetworkInterface.InUse": TemplateError,
    "ParameterNotFound": TemplateError,
    "NoSuchEntity": TemplateError,
    "ResourceNotFoundException": TemplateError,
    "NonExistentQueue": TemplateError,
    "AWS.SimpleQueueService.NonExistentQueue": TemplateError,
    "QueueDoesNotExist": TemplateError,
    "InvalidAddress": TemplateError,
    # Permissions and accounts.
    "UnauthorizedOperation": PermissionDeniedError,
    "AccessDenied": PermissionDeniedError,
    "AccessDeniedException": PermissionDeniedError,
    "AuthFailure": PermissionDeniedError,
    "InvalidClientTokenId": PermissionDeniedError,
    "UnrecognizedClientException": PermissionDeniedError,
    "ExpiredToken": PermissionDeniedError,
    "ExpiredTokenException": PermissionDeniedError,
    "RequestExpired": PermissionDeniedError,
    "SignatureDoesNotMatch": PermissionDeniedError,
    "MissingAuthenticationToken": PermissionDeniedError,
    "OptInRequired": PermissionDeniedError,
    "PendingVerification": PermissionDeniedError,
    "Blocked": PermissionDeniedError,
}
# EC2 says "InvalidParameterValue: Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM …".
_BAD_PROFILE: Final = "Invalid IAM Instance Profile"
# Families of codes that one prefix names.
FAMILIES: Final[tuple[tuple[str, type[ProviderError]], ...]] = (
    ("AuthFailure.", PermissionDeniedError),
    ("InvalidAMIID.", TemplateError),
    ("InvalidSubnet", TemplateError),
    ("InvalidGroup", TemplateError),
    ("InvalidSecurityGroup", TemplateError),
    ("InvalidKeyPair.", TemplateError),
    ("InvalidSnapshot.", TemplateError),
    ("InvalidPlacementGroup.", TemplateError),
    ("InvalidUserData.", TemplateError),
    ("InvalidIamInstanceProfile", TemplateError),
    ("InvalidParameter", TemplateError),
    ("InvalidBlockDevice", TemplateError),
    ("InvalidCapacityBlock", GoneError),
    ("InvalidLaunchTemplate", TemplateError),
    ("InvalidTag", TemplateError),
    ("InvalidZone.", TemplateError),
    ("InvalidAvailabilityZone", TemplateError),
)
# The field of the AWSNodeTemplate that a family of codes is about.
_FIELDS: Final[Mapping[str, str]] = {
    "InvalidAMIID.": "ami",
    "InvalidSubnet": "subnets",
    "InvalidGroup": "securityGroups",
    "InvalidSecurityGroup": "securityGroups",
    "InvalidSnapshot.": "blockDevices",
    "InvalidBlockDevice": "blockDevices",
    "InvalidPlacementGroup.": "placementGroup",
    "InvalidUserData.": "userData",
    "InvalidIamInstanceProfile": "instanceProfile",
    _BAD_PROFILE: "instanceProfile",
}
_RENEW: Final = "Give this process credentials that are valid in this region; `foreslice aws check` tries them."
_QUEUE: Final = "Correct the setting aws.queue, or create the queue: deploy/aws/main.tf."
_NEXT_STEPS: Final[Mapping[str, str]] = {
    "NonExistentQueue": _QUEUE,
    "AWS.SimpleQueueService.NonExistentQueue": _QUEUE,
    "QueueDoesNotExist": _QUEUE,
    "InvalidAddress": _QUEUE,
    "VcpuLimitExceeded": "Raise the vCPU quota of this instance family in Service Quotas, or admit another family.",
    "MaxSpotInstanceCountExceeded": "Raise the spot quota of this family in Service Quotas, or admit on-demand.",
    "InsufficientFreeAddressesInSubnet": "Select more or larger subnets in the AWSNodeTemplate.",
    "InvalidCapacityReservationId.NotFound": "Correct the id of the reservation; a new one is visible within minutes.",
    "PendingVerification": "AWS reviews new accounts; wait, or ask AWS Support.",
    "OptInRequired": "Opt the account into this region or zone (EC2 console, Zones).",
    "ExpiredToken": _RENEW,
    "ExpiredTokenException": _RENEW,
    "InvalidClientTokenId": _RENEW,
    "UnrecognizedClientException": _RENEW,
    "MissingAuthenticationToken": _RENEW,
    "AuthFailure": _RENEW,
    "RequestExpired": "Correct the clock of this machine: AWS refuses requests that are five minutes off.",
    "SignatureDoesNotMatch": "Correct the secret access key, or the clock of this machine.",
    "NoRegionError": "Set AWS_REGION, or region in ~/.aws/config.",
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": (
        "Create the role once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
    ),
    "OperationNotPermitted": (
        "Correct what the message names. To remove termination protection: aws ec2 modify-instance-attribute"
        " --no-disable-api-termination --instance-id <id>"
    ),
    "IdempotentInstanceTerminated": "Nothing to do: the machines of this launch have ended, and others are planned.",
}
# The limit of a spread placement group (seven in a zone) arrives as a shortage; more machines will never fit.
_SPREAD_LIMIT: Final = "spread placement group"
# EC2 Auto Scaling's message for a machine that is in no group; its code is the code of every bad parameter.
_NO_MEMBER: Final = "instance id not found"
_CREDENTIALS: Final = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
    ProfileNotFound,
    NoRegionError,
)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise what boto3 raises as ProviderErrors, the cause chained. `what` names the call in the message."""
    try:
        yield
    except ClientError as error:
        raise of_answer(what, error.response) from error
    except _CREDENTIALS as error:
        step = _NEXT_STEPS.get(
            type(error).__name__, "Give this process AWS credentials; `foreslice aws check` tries them."
        )
        raise PermissionDeniedError(f"{what}: {error}", code=type(error).__name__, next_step=step) from error
    except ParamValidationError as error:
        raise TemplateError(f"{what}: {error}", code="ParamValidation") from error
    except (HTTPClientError, ConnectionError, ResponseParserError) as error:
        step = "Nothing to do if it passes. If it stays, check the network and the region's endpoint."
        raise AmbiguousError(f"{what}: {error}", code=type(error).__name__, next_step=step) from error
    except BotoCoreError as error:
        raise UnclassifiedError(f"{what}: {error}", code=type(error).__name__) from error


def of_answer(what: str, response: Mapping[str, Any]) -> ProviderError:
    """The error of an HTTP answer other than 200."""
    found = response.get("Error", {})
    code, message = str(found.get("Code", "")), str(found.get("Message", ""))
    metadata = response.get("ResponseMetadata", {})
    status = int(metadata.get("HTTPStatusCode", 0))
    kind = meaning(code, message)
    if kind is UnknownRefusalError and not 400 <= status < 500:
        kind = ThrottledError if status == 503 else AmbiguousError
    return _error(kind, f"{what}: {message or code}", code, _retry_after(metadata.get("HTTPHeaders", {})))


def of_code(what: str, code: str, message: str) -> ProviderError:
    """The error of a code inside a 200 answer (CreateFleet, LaunchInstances, scaling activities)."""
    return _error(meaning(code, message), f"{what}: {message or code}", code, None)


def meaning(code: str, message: str = "") -> type[ProviderError]:
    """The error class of a code; UnknownRefusalError for a code that is in no table."""
    if _SPREAD_LIMIT in message:
        return TemplateError
    if code == "ValidationError" and message.casefold().startswith(_NO_MEMBER):
        return GoneError
    if code in MEANINGS:
        return MEANINGS[code]
    if _BAD_PROFILE in message:
        return TemplateError
    return next((kind for prefix, kind in FAMILIES if code.startswith(prefix)), UnknownRefusalError)


def _error(kind: type[ProviderError], message: str, code: str, retry_after: timedelta | None) -> ProviderError:
    field = next((name for what, name in _FIELDS.items() if code.startswith(what) or what in message), "")
    step = f"Correct spec.{field} of the node template, or bring back what it names." if field else ""
    step = _NEXT_STEPS.get(code, step)
    if _SPREAD_LIMIT in message:
        step = "A spread placement group holds seven machines in a zone: use another strategy or more zones."
    return kind(f"{message} ({code})" if code else message, code=code, next_step=step, retry_after=retry_after)


def _retry_after(headers: Mapping[str, str]) -> timedelta | None:
    seconds = headers.get("retry-after", "")
    return timedelta(seconds=int(seconds)) if seconds.isdigit() else None


@contextmanager
def before_launching() -> Iterator[None]:
    """A refusal in this context settles the launch: its token has launched nothing, in no call."""
    try:
        yield
    except RefusedError as error:
        error.settled = True
        raise


@contextmanager
def after_launching(what: str) -> Iterator[None]:
    """A refusal in this context, other than one that settles the launch, leaves machines that the repetition finds."""
    try:
        yield
    except (RefusedError, GoneError, CapacityError) as error:
        if isinstance(error, RefusedError) and error.settled:
            raise
        raise AmbiguousError(f"{what}: {error.message}", code=error.code, next_step=error.next_step) from error
