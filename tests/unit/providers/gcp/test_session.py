"""Clients make one attempt for each call, and say so when an answer is not whole or cannot be read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import google.auth
import pytest
from google.cloud import compute_v1
from google.oauth2.credentials import Credentials

from autoscaler.clock import VirtualClock
from providers.errors import (
    AmbiguousError,
    BusyError,
    GoneError,
    PermissionDeniedError,
    ProviderError,
    QuotaError,
    ShortageError,
    TemplateError,
    ThrottledError,
    UnclassifiedError,
    UnknownRefusalError,
)
from providers.gcp.errors import MEANINGS, meaning, of_code, of_http
from providers.gcp.operations import outcome
from providers.gcp.session import Gcp
from tests.fakes.gce.errors import CUT_BEFORE, UNAVAILABLE, refused
from tests.gcp import ZONE, Rig, gcp, server


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (CUT_BEFORE, AmbiguousError),
        (UNAVAILABLE, ThrottledError),
        (refused("internalError", 500), AmbiguousError),
        (refused("", 429), ThrottledError),
        (refused("userRateLimitExceeded", 403), ThrottledError),
        (refused("somethingNew", 403), PermissionDeniedError),
        (refused("somethingNew", 418), UnknownRefusalError),
        (refused("somethingNew", 502), AmbiguousError),
    ],
)
def test_a_call_that_fails_is_made_once(fault: Any, kind: type[ProviderError]) -> None:
    rig = Rig()
    rig.fake.faults.inject("instances.aggregatedList", fault)
    with pytest.raises(kind):
        list(gcp().pages("instances.aggregatedList"))
    assert rig.fake.calls["instances.aggregatedList"] == 1


@pytest.mark.parametrize(
    "page",
    [
        compute_v1.InstanceAggregatedList(unreachables=["https://x/zones/us-central1-b"]),
        compute_v1.InstanceAggregatedList(warning=compute_v1.Warning(code="UNREACHABLE")),
        compute_v1.InstanceGroupManagerList(warning=compute_v1.Warning(code="PARTIAL_SUCCESS")),
        # Too much that a filter leaves out: what it would not leave out is missing, too.
        compute_v1.InstanceAggregatedList(warning=compute_v1.Warning(code="LIST_OVERHEAD_QUOTA_EXCEED")),
        compute_v1.InstanceAggregatedList(
            items={"zones/b": compute_v1.InstancesScopedList(warning=compute_v1.Warning(code="UNREACHABLE"))}
        ),
    ],
)
def test_a_list_that_lacks_a_zone_is_an_error(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pager = type("Pager", (), {"pages": [page]})
    monkeypatch.setattr(Gcp, "call", lambda *_, **__: pager)
    with pytest.raises(UnclassifiedError, match="did not answer"):
        list(gcp().pages("instances.aggregatedList"))


def test_a_list_with_a_remark_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    page = compute_v1.InstanceGroupManagerList(warning=compute_v1.Warning(code="DEPRECATED_RESOURCE_USED"))
    monkeypatch.setattr(Gcp, "call", lambda *_, **__: type("Pager", (), {"pages": [page]}))
    assert list(gcp().pages("instanceGroupManagers.list")) == [page]


def test_an_operation_that_only_says_its_status_has_failed() -> None:
    over = compute_v1.Operation(status="DONE", http_error_status_code=403, http_error_message="Forbidden")
    error = outcome(gcp(), VirtualClock(), over, zone=ZONE, what="createInstances")
    assert type(error) is PermissionDeniedError
    assert outcome(gcp(), VirtualClock(), compute_v1.Operation(status="DONE"), zone=ZONE, what="call") is None


def test_no_project_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    with pytest.raises(PermissionDeniedError) as raised:
        _ = Gcp(endpoint="http://127.0.0.1:1").project
    assert "gcp.project" in raised.value.next_step


def test_a_project_is_named_by_its_id() -> None:
    """Nodes are: with the number every machine would look as if it had no Node."""
    with pytest.raises(TemplateError, match="424242424242") as raised:
        _ = Gcp("424242424242", endpoint="http://127.0.0.1:1").project
    assert "gcloud projects describe 424242424242" in raised.value.next_step


def test_credentials_that_are_revoked_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that has expired, and a token service that gives no other one: Google's own client, up to the refresh."""
    revoked = Credentials("old", refresh_token="secret-one", token_uri=f"{server().url}/token", client_id="a")
    revoked.expiry = datetime(2026, 1, 1)  # noqa: DTZ001  # the client compares it with a moment without a zone
    monkeypatch.setattr(google.auth, "default", lambda scopes: (revoked, "gpu-project"))
    mine = Gcp()
    for ask in (
        lambda: list(mine.pages("instances.aggregatedList")),
        lambda: mine.container("container.clusters.get", "locations/us-central1/clusters/c1"),
    ):
        with pytest.raises(PermissionDeniedError) as raised:
            ask()
        assert (raised.value.code, "gcloud auth" in raised.value.next_step) == ("RefreshError", True)
        assert "secret-one" not in f"{raised.value}"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("resourceInUseByAnotherResource", BusyError),
        ("resourceNotReady", BusyError),
        ("rateLimitExceeded", ThrottledError),
        ("RATE_LIMIT_EXCEEDED", ThrottledError),
        ("CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", ThrottledError),
        ("quotaExceeded", QuotaError),
        ("SOME_NEW_QUOTA_REACHED", QuotaError),
        ("conditionNotMet", TemplateError),
        ("QUEUING_INFEASIBLE_NO_CAPACITY", ShortageError),
    ],
)
def test_a_code_may_be_written_in_two_ways(code: str, kind: type[ProviderError]) -> None:
    """As the reason of an HTTP error, and inside an operation."""
    assert type(of_http("x", 400, code, "")) is kind
    assert meaning(code) is kind


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("INVALID_USAGE", "Zone does not currently have sufficient capacity for the requested resources."),
        ("LIMIT_EXCEEDED", "Resize request could not provision queued instances in the allocated time."),
    ],
)
def test_a_shortage_is_one_whatever_its_code(code: str, text: str) -> None:
    assert meaning(code, text) is ShortageError


def test_what_an_operation_does_not_find_is_configuration() -> None:
    """As an answer it is the group, or the machine, that may be gone."""
    assert type(of_code("x", "NOT_FOUND", "The resource 'subnetworks/s' was not found")) is TemplateError
    assert type(of_http("x", 404, "notFound", "The resource was not found")) is GoneError


@pytest.mark.parametrize("code", sorted(MEANINGS))
def test_a_code_means_the_same_wherever_it_is_read(code: str) -> None:
    assert meaning(code) is MEANINGS[code]
    assert of_http("x", 400, code, "no more").code == code
