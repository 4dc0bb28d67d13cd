"""Clients make one attempt for each call, and say so when an answer is not whole or cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud import compute_v1

from providers.errors import (
    AmbiguousError,
    PermissionDeniedError,
    ProviderError,
    ThrottledError,
    UnclassifiedError,
    UnknownRefusalError,
)
from providers.gcp.errors import MEANINGS, meaning, of_http
from providers.gcp.session import Gcp
from tests.fakes.gce.errors import CUT_BEFORE, UNAVAILABLE, refused
from tests.gcp import Rig, gcp


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


def test_no_project_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    with pytest.raises(PermissionDeniedError) as raised:
        _ = Gcp(endpoint="http://127.0.0.1:1").project
    assert "gcp.project" in raised.value.next_step


@pytest.mark.parametrize("code", sorted(MEANINGS))
def test_a_code_means_the_same_wherever_it_is_read(code: str) -> None:
    assert meaning(code) is MEANINGS[code]
    assert of_http("x", 400, code, "no more").code == code
