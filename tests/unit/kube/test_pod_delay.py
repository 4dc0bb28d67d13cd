"""When a node may be bought for a pod at the earliest, as Cluster Autoscaler's annotation says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from autoscaler.kube.pod import parse_pod
from autoscaler.kube.problem import Problems
from instance_catalog.diagnostic import Severity
from instance_catalog.kubernetes.labels import CA_POD_SCALE_UP_DELAY, EXPECTED_DURATION, KUEUE_MAX_EXEC_TIME

CREATED = datetime(2027, 1, 31, 8, 0, tzinfo=UTC)


def waiting(delay: Any, *, created: str | None = "2027-01-31T08:00:00Z") -> tuple[datetime | None, Problems]:
    metadata = {"name": "a", "annotations": {CA_POD_SCALE_UP_DELAY: delay}, "creationTimestamp": created}
    problems = Problems()
    pod = parse_pod({"metadata": metadata, "spec": {"containers": [{"name": "main"}]}}, problems)
    return pod.no_node_before, problems


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("+5m", timedelta(minutes=5)),
        ("0", timedelta(0)),
        ("5μs5µs", timedelta(microseconds=10)),
        ("2540400h", timedelta(days=3650)),
        ("9223372036854775807ns", timedelta(days=3650)),
        (".5s", timedelta(milliseconds=500)),
        ("300ms", timedelta(milliseconds=300)),
        ("0s", timedelta(0)),
    ],
)
def test_a_delay_counts_from_the_pods_creation(text: str, delay: timedelta) -> None:
    until, problems = waiting(text)
    assert (until, list(problems)) == (CREATED + delay, [])


@pytest.mark.parametrize(
    "text", ["soon", "5", "-5m", "5 m", "1h30", "9e9h", "9" * 100 + "h", "999999999h", "9223372036854775808ns"]
)
def test_what_is_no_duration_is_told_and_delays_nothing(text: str) -> None:
    until, (problem,) = waiting(text)
    assert (until, problem.severity) == (None, Severity.WARNING)
    assert problem.path == ("metadata", "annotations", CA_POD_SCALE_UP_DELAY)
    assert "the pod does not wait" in problem.message
    assert "write it like 30s, 5m or 1h30m" in problem.next_step


def test_a_pod_that_never_met_an_api_server_has_no_age() -> None:
    assert waiting("5m", created=None)[0] is None


@pytest.mark.parametrize(
    ("annotation", "label", "deadline", "seconds", "warned"),
    [
        ("6h", None, None, 6 * 3600, False),
        (None, "7200", None, 7200, False),
        ("6h", "7200", None, 6 * 3600, False),  # what the pod says itself comes first
        ("6h", None, 3600, 3600, False),  # Kubernetes ends it
        ("1.5s", None, None, 2, False),
        (None, None, 3600, 3600, False),
        (None, None, 2**63 - 1, 10 * 365 * 24 * 3600, False),  # of a file: the API server refuses it
        (None, None, None, None, False),
        ("soon", "7200", None, 7200, True),
        (None, "0", None, None, False),
        (None, "-5", None, None, False),
    ],
)
def test_how_long_a_pod_is_expected_to_run(
    annotation: str | None, label: str | None, deadline: int | None, seconds: int | None, warned: bool
) -> None:
    metadata = {
        "name": "a",
        "annotations": {EXPECTED_DURATION: annotation} if annotation else {},
        "labels": {KUEUE_MAX_EXEC_TIME: label} if label else {},
    }
    spec = {"containers": [{"name": "main"}], **({"activeDeadlineSeconds": deadline} if deadline else {})}
    problems = Problems()
    assert parse_pod({"metadata": metadata, "spec": spec}, problems).expected_seconds == seconds
    assert any("is not a duration" in found.message for found in problems) is warned
