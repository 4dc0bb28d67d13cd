"""Spans of settings are read as Kubernetes' components read them, and written so that they can be read again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.settings.load import read_settings
from autoscaler.settings.spans import span, span_text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("1m30s", 90),
        ("1h", 3600),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("2h45m0.5s", 9900.5),
        ("1500000us", 1.5),
        ("1500000µs", 1.5),
        ("2000000ns", 0.002),
        ("2d", 172_800),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_what_kubernetes_takes_is_taken(text: str, seconds: float) -> None:
    assert span(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "is not a duration"),
        ("5", "is not a duration"),
        (5, "5 is not a duration"),
        ("-5m", "is not a duration"),
        ("5m ", "is not a duration"),
        ("5 m", "is not a duration"),
        (".s", "is not a duration"),
        ("1e3s", "is not a duration"),
        ("٣s", "is not a duration"),
        ("5w", "is not a duration"),
        ("9" * 5000 + "d", "is not a duration"),
        ("99999999d", "is longer than ten years"),
        ("500us", "is not a whole number of milliseconds"),
        ("1.0001s", "is not a whole number of milliseconds"),
    ],
)
def test_what_cannot_be_read_is_told_with_how_to_write_it(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        span(value)
    assert "500ms, 30s, 1m30s, 1.5h or 2d" in str(caught.value)
    assert len(str(caught.value)) < 200


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650)))
def test_spans_come_back(value: timedelta) -> None:
    whole = value - value % timedelta(milliseconds=1)
    assert span(span_text(whole)) == whole


def test_a_setting_can_be_shorter_than_a_second(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("lease: {retry: 500ms, renewDeadline: 1m30s, duration: 1h}\n", encoding="utf-8")
    lease = read_settings(path, environment={"FORESLICE_LEASE_RETRY": "750ms"}).lease
    assert (lease.retry, lease.renew_deadline) == (timedelta(milliseconds=750), timedelta(seconds=90))
    assert lease.duration == timedelta(hours=1)
