"""The contract refuses what no provider could carry out; every error says what to leave alone and for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.contract import TAG_CLUSTER, InstancePage, LaunchRequest, OfferingKey, Preflight, describe_all
from providers.errors import (
    ERRORS,
    BackoffScope,
    CapacityError,
    NotInGroupsError,
    NotOfferedError,
    ProviderError,
    RefusedError,
    ShortageError,
    ThrottledError,
    UncertainError,
)

H100 = OfferingKey("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND)
VALID: dict[str, Any] = {
    "token": "t-1",
    "nodes": ("a", "b"),
    "offerings": (H100,),
    "tags": FrozenMap({TAG_CLUSTER: "uid"}),
}


def test_a_valid_request_names_its_zone() -> None:
    assert LaunchRequest(**VALID).zone == "us-east-1a"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"token": ""}, "ASCII", id="empty token"),
        pytest.param({"token": "x" * 65}, "64 ASCII", id="long token"),
        pytest.param({"token": "tökén"}, "ASCII", id="token not ASCII"),
        pytest.param({"nodes": ()}, "at least one node", id="no node"),
        pytest.param({"nodes": ("a", "a")}, "named once", id="a node twice"),
        pytest.param({"offerings": ()}, "at least one offering", id="no offering"),
        pytest.param(
            {"offerings": (H100, OfferingKey("x", "us-east-1b", CapacityType.SPOT))}, "one zone", id="two zones"
        ),
        pytest.param({"minimum": 0}, "1 to 2, found 0", id="minimum zero"),
        pytest.param({"minimum": 3}, "1 to 2, found 3", id="minimum above count"),
        pytest.param({"tags": FrozenMap({"a": "b"})}, "foreslice.dev/cluster is missing", id="unowned"),
    ],
)
def test_an_impossible_request_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LaunchRequest(**{**VALID, **change})


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.kind)
def test_every_error_has_its_own_kind_scope_backoff_and_advice(error: type[ProviderError]) -> None:
    assert [other.kind for other in ERRORS].count(error.kind) == 1
    assert isinstance(error.scope, BackoffScope)
    assert timedelta(0) < error.first_backoff <= error.longest_backoff
    assert error("went wrong").next_step == error.advice != ProviderError.advice


def test_every_concrete_error_is_listed_and_of_a_known_branch() -> None:
    def leaves(error: type[ProviderError]) -> set[type[ProviderError]]:
        # What refines an error without a kind of its own is stored as that kind.
        children = [child for child in error.__subclasses__() if "kind" in vars(child)]
        return {error} if not children else set().union(*map(leaves, children))

    assert leaves(ProviderError) == set(ERRORS)
    branches = (CapacityError, RefusedError, UncertainError)
    assert {error.kind for error in ERRORS if not issubclass(error, branches)} == {
        "Throttled",
        "Busy",
        "Waiting",
        "Gone",
    }


def test_every_scope_is_used_by_an_error() -> None:
    assert {error.scope for error in ERRORS} == set(BackoffScope)


@pytest.mark.parametrize(
    ("error", "failures", "expected"),
    [
        pytest.param(ShortageError("none"), 1, timedelta(minutes=3), id="first failure"),
        pytest.param(ShortageError("none"), 3, timedelta(minutes=12), id="doubles"),
        pytest.param(ShortageError("none"), 50, timedelta(minutes=30), id="bounded"),
        pytest.param(NotOfferedError("never"), 1, timedelta(hours=6), id="long where it will not change"),
        pytest.param(NotInGroupsError("now"), 1, timedelta(minutes=2), id="short where a person is changing it"),
        pytest.param(
            ThrottledError("slow down", retry_after=timedelta(seconds=40)), 1, timedelta(seconds=40), id="as asked for"
        ),
    ],
)
def test_backoff(error: ProviderError, failures: int, expected: timedelta) -> None:
    assert error.backoff(failures) == expected


def test_a_given_next_step_replaces_the_general_advice() -> None:
    assert ShortageError("none", code="ICE", next_step="Use us-east-1b.").next_step == "Use us-east-1b."


def test_preflight_is_optional() -> None:
    assert not isinstance(object(), Preflight)
    assert InstancePage().next_page == ""
    assert callable(describe_all)
