"""AWS error codes mean what the table says, and what is not in it is never repeated quickly."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError

from providers.aws.errors import MEANINGS, meaning, of_code, translated
from providers.errors import (
    AccountLimitError,
    AddressesExhaustedError,
    AmbiguousError,
    BackoffScope,
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


def answered(code: str, message: str = "", status: int = 400, **headers: str) -> ClientError:
    metadata = {"HTTPStatusCode": status, "HTTPHeaders": headers}
    return ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}, "RunInstances")


def translation_of(raised: Exception) -> ProviderError:
    with pytest.raises(ProviderError) as caught, translated("RunInstances"):
        raise raised
    assert caught.value.__cause__ is raised
    return caught.value


@pytest.mark.parametrize(
    ("code", "kind", "scope"),
    [
        pytest.param("InsufficientInstanceCapacity", ShortageError, BackoffScope.OFFERING, id="shortage"),
        pytest.param(
            "ReservationCapacityExceeded", ReservationExhaustedError, BackoffScope.RESERVATION, id="reservation full"
        ),
        pytest.param("Unsupported", NotOfferedError, BackoffScope.TYPE_IN_ZONE, id="not offered"),
        pytest.param("VcpuLimitExceeded", QuotaError, BackoffScope.QUOTA, id="quota"),
        pytest.param("VolumeLimitExceeded", AccountLimitError, BackoffScope.TEMPLATE, id="limit of the account"),
        pytest.param("InsufficientFreeAddressesInSubnet", AddressesExhaustedError, BackoffScope.ZONE, id="subnet"),
        pytest.param("RequestLimitExceeded", ThrottledError, BackoffScope.API, id="throttled"),
        pytest.param("ScalingActivityInProgress", BusyError, BackoffScope.OBJECT, id="group busy"),
        pytest.param("InternalError", AmbiguousError, BackoffScope.API, id="server fault"),
        pytest.param("IdempotentParameterMismatch", TokenReusedError, BackoffScope.OBJECT, id="token"),
        pytest.param("InvalidAMIID.NotFound", TemplateError, BackoffScope.TEMPLATE, id="image"),
        pytest.param("InvalidSubnetID.NotFound", TemplateError, BackoffScope.TEMPLATE, id="subnet gone"),
        pytest.param("InvalidGroup.NotFound", TemplateError, BackoffScope.TEMPLATE, id="group gone"),
        pytest.param("InvalidUserData.Malformed", TemplateError, BackoffScope.TEMPLATE, id="user data"),
        pytest.param("InvalidParameterCombination", TemplateError, BackoffScope.TEMPLATE, id="parameters"),
        pytest.param("UnauthorizedOperation", PermissionDeniedError, BackoffScope.PROVIDER, id="permission"),
        pytest.param(
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            PermissionDeniedError,
            BackoffScope.PROVIDER,
            id="service-linked role",
        ),
        pytest.param("InvalidInstanceID.NotFound", GoneError, BackoffScope.OBJECT, id="gone"),
        pytest.param("SomethingNewIn2027", UnknownRefusalError, BackoffScope.OFFERING, id="unknown"),
    ],
)
def test_a_code_means_an_error_with_a_scope(code: str, kind: type[ProviderError], scope: BackoffScope) -> None:
    error = translation_of(answered(code, "no"))
    assert (type(error), error.scope, error.code) == (kind, scope, code)
    assert f"({code})" in str(error)
    assert error.next_step


@pytest.mark.parametrize(
    ("code", "message", "step"),
    [
        pytest.param("InvalidAMIID.NotFound", "no", "spec.ami", id="image"),
        pytest.param("InvalidSubnetID.NotFound", "no", "spec.subnets", id="subnet"),
        pytest.param("InvalidSecurityGroupID.NotFound", "no", "spec.securityGroups", id="security group"),
        pytest.param("InvalidSnapshot.NotFound", "no", "spec.blockDevices", id="snapshot"),
        pytest.param("InvalidPlacementGroup.Unknown", "no", "spec.placementGroup", id="placement group"),
        pytest.param(
            "InvalidParameterValue", "Invalid IAM Instance Profile name", "spec.instanceProfile", id="profile"
        ),
        pytest.param("ExpiredToken", "no", "credentials that are valid", id="credentials that have expired"),
        pytest.param("InvalidCapacityReservationId.NotFound", "no", "id of the reservation", id="no reservation"),
        pytest.param("RequestExpired", "no", "clock", id="a wrong clock"),
    ],
)
def test_a_code_says_where_to_look(code: str, message: str, step: str) -> None:
    assert step in of_code("RunInstances", code, message).next_step


def test_a_reservation_that_is_not_there_leaves_the_type_to_others() -> None:
    error = of_code("RunInstances", "InvalidCapacityReservationId.NotFound", "no")
    assert error.scope is BackoffScope.RESERVATION


def test_every_branch_of_the_tree_has_codes() -> None:
    branches = (CapacityError, RefusedError, ThrottledError, BusyError, GoneError, AmbiguousError)
    assert all(any(issubclass(kind, branch) for kind in MEANINGS.values()) for branch in branches)
    assert all(kind is not UnclassifiedError for kind in MEANINGS.values())


def test_an_unknown_code_is_never_repeated_quickly() -> None:
    error = translation_of(answered("SomethingNewIn2027"))
    assert error.backoff(1) >= timedelta(minutes=5)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        pytest.param("We do not have sufficient p5.48xlarge capacity.", ShortageError, id="a shortage"),
        pytest.param(
            "You have reached the limit of instances in this spread placement group.", TemplateError, id="spread limit"
        ),
    ],
)
def test_the_limit_of_a_spread_group_is_told_from_a_shortage(message: str, kind: type[ProviderError]) -> None:
    assert meaning("InsufficientInstanceCapacity", message) is kind


def test_an_invalid_profile_arrives_as_a_parameter_value() -> None:
    error = of_code("CreateFleet", "InvalidParameterValue", "Value (x) … Invalid IAM Instance Profile name")
    assert type(error) is TemplateError


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        pytest.param(answered("Teapot", status=500), AmbiguousError, id="unknown fault of the server"),
        pytest.param(answered("Teapot", status=503), ThrottledError, id="unknown overload"),
        pytest.param(answered("Teapot", status=418), UnknownRefusalError, id="unknown refusal"),
        pytest.param(ReadTimeoutError(endpoint_url="https://ec2"), AmbiguousError, id="read time-out"),
        pytest.param(ConnectTimeoutError(endpoint_url="https://ec2"), AmbiguousError, id="connect time-out"),
        pytest.param(EndpointConnectionError(endpoint_url="https://ec2"), AmbiguousError, id="no connection"),
        pytest.param(ResponseParserError("not XML"), AmbiguousError, id="an answer that is none"),
        pytest.param(NoCredentialsError(), PermissionDeniedError, id="no credentials"),
        pytest.param(NoRegionError(), PermissionDeniedError, id="no region"),
        pytest.param(ParamValidationError(report="x"), TemplateError, id="refused by the SDK"),
    ],
)
def test_what_has_no_code_of_ours(raised: Exception, kind: type[ProviderError]) -> None:
    assert type(translation_of(raised)) is kind


def test_the_wait_that_aws_asks_for_is_kept() -> None:
    slow = answered("RequestLimitExceeded", status=503, **{"retry-after": "40"})
    assert translation_of(slow).backoff(1) == timedelta(seconds=40)


@pytest.mark.parametrize(
    "raise_it", [pytest.param(KeyError, id="KeyError"), pytest.param(AssertionError, id="AssertionError")]
)
def test_our_own_mistakes_are_not_translated(raise_it: Callable[[], Exception]) -> None:
    with pytest.raises((KeyError, AssertionError)), translated("RunInstances"):
        raise raise_it()
