"""Lines of the log: JSON for machines, the same for libraries, and no secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from autoscaler.serve.logs import REDACTED, SaidOnce, log_to_stderr, redacted
from autoscaler.settings.settings import LogFormat, LogLevel, LogSettings

TOKEN = "eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_an_object_with_the_event_and_its_facts() -> None:
    stream = io.StringIO()
    log_to_stderr(LogSettings(), stream)
    structlog.get_logger("foreslice.loop").info("launching", pool="gpu", usd_per_hour="55.04", pods=["a/b"])
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "launching",
        "level": "info",
        "logger": "foreslice.loop",
        "pool": "gpu",
        "usd_per_hour": "55.04",
        "pods": ["a/b"],
    }


def test_libraries_speak_the_same_way() -> None:
    stream = io.StringIO()
    log_to_stderr(LogSettings(), stream)
    logging.getLogger("urllib3.connectionpool").warning("retrying %s", "/api?token=x")
    (line,) = lines(stream)
    assert (line["event"], line["level"], line["logger"]) == (
        "retrying /api?token=x",
        "warning",
        "urllib3.connectionpool",
    )


@pytest.mark.parametrize(
    ("level", "told"),
    [
        pytest.param(LogLevel.DEBUG, ["a", "b", "c"], id="debug"),
        pytest.param(LogLevel.INFO, ["b", "c"], id="info"),
        pytest.param(LogLevel.ERROR, [], id="error"),
    ],
)
def test_the_level_bounds_what_is_told(level: LogLevel, told: list[str]) -> None:
    stream = io.StringIO()
    log_to_stderr(LogSettings(level=level), stream)
    log = structlog.get_logger("foreslice")
    log.debug("a")
    log.info("b")
    log.warning("c")
    assert [line["event"] for line in lines(stream)] == told


@pytest.mark.parametrize(("level", "count"), [(LogLevel.INFO, 0), (LogLevel.DEBUG, 1)], ids=["info", "debug"])
def test_libraries_chat_only_when_everything_is_told(level: LogLevel, count: int) -> None:
    stream = io.StringIO()
    log_to_stderr(LogSettings(level=level), stream)
    logging.getLogger("apscheduler.executors.default").info("Running job")
    assert len(lines(stream)) == count


def test_people_get_a_console() -> None:
    stream = io.StringIO()
    log_to_stderr(LogSettings(format=LogFormat.CONSOLE), stream)
    structlog.get_logger("foreslice").info("launching", pool="gpu", token="abc")
    assert "launching" in stream.getvalue()
    assert "pool=gpu" in stream.getvalue()
    assert f"token={REDACTED}" in stream.getvalue()


def test_an_exception_is_one_line_and_clean() -> None:
    stream = io.StringIO()
    log_to_stderr(LogSettings(), stream)
    try:
        raise ValueError(f"rejected Bearer {TOKEN}")
    except ValueError:
        structlog.get_logger("foreslice").exception("failed")
    (line,) = lines(stream)
    assert "ValueError: rejected [redacted]" in line["exception"]
    assert TOKEN not in stream.getvalue()


def fails(name: str) -> None:
    raise KeyError(name)


def test_one_bug_that_many_objects_meet_has_one_traceback() -> None:
    stream = io.StringIO()
    log_to_stderr(LogSettings(), stream)
    for number in range(50):
        try:
            fails(f"pod-{number}")
        except KeyError as error:
            structlog.get_logger("foreslice").error("unexpected_error", name=f"p{number}", exc_info=error)
    try:
        raise ValueError("another")
    except ValueError:
        structlog.get_logger("foreslice").exception("unexpected_error")
    found = lines(stream)
    assert [line["exception"].startswith("Traceback") for line in found] == [True, *[False] * 49, True]
    assert found[49]["exception"].startswith("KeyError: 'pod-49'")
    assert found[49]["name"] == "p49"


def test_a_traceback_is_whole_again_after_an_hour() -> None:
    once = SaidOnce(iter((0.0, 3_599.0, 3_600.0, 7_000.0)).__next__)
    text = 'Traceback\n  File "a.py", line 1, in f\nKeyError: 1'
    told = [once(None, "", {"exception": text})["exception"] == text for _ in range(4)]
    assert told == [True, False, True, False]


def test_other_tracebacks_are_remembered_up_to_a_bound() -> None:
    once = SaidOnce(lambda: 1.0)
    for number in range(5_000):
        once(None, "", {"exception": f'Traceback\n  File "a.py", line {number}, in f\nKeyError: 1'})
    assert len(once._said) == 1_000


def test_a_long_text_is_cut_and_a_secret_in_it_is_not_shown() -> None:
    stream = io.StringIO()
    log_to_stderr(LogSettings(), stream)
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIE" * 2_000 + "\n-----END PRIVATE KEY-----"
    structlog.get_logger("foreslice").warning("event_refused", error=f"first {'x' * 1_000_000} {key} last")
    (line,) = lines(stream)
    assert line["error"].startswith("first xxx")
    assert line["error"].endswith("[redacted] last")
    assert len(stream.getvalue()) < 9_000
    assert "MIIE" not in stream.getvalue()


@pytest.mark.parametrize(
    ("event", "clean"),
    [
        pytest.param({"token": "abc"}, {"token": REDACTED}, id="token"),
        pytest.param({"access_token": "abc"}, {"access_token": REDACTED}, id="part of a name"),
        pytest.param({"Authorization": "abc"}, {"Authorization": REDACTED}, id="header"),
        pytest.param({"aws_secret_access_key": "abc"}, {"aws_secret_access_key": REDACTED}, id="cloud key"),
        pytest.param({"event": f"Bearer {TOKEN} refused"}, {"event": f"{REDACTED} refused"}, id="bearer in text"),
        pytest.param({"event": "Authorization: Basic dTpwdw=="}, {"event": f"{REDACTED}"}, id="header in text"),
        pytest.param(
            {"event": "the bearer of basic allocations"}, {"event": "the bearer of basic allocations"}, id="words"
        ),
        pytest.param({"error": f"got {TOKEN}."}, {"error": f"got {REDACTED}."}, id="JWT in text"),
        pytest.param({"error": "AKIAIOSFODNN7EXAMPLE denied"}, {"error": f"{REDACTED} denied"}, id="AWS key"),
        pytest.param(
            {"url": "http://u:pw@proxy:3128/"}, {"url": f"http://{REDACTED}@proxy:3128/"}, id="password of a URL"
        ),
        pytest.param(
            {"x": "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----"}, {"x": REDACTED}, id="private key"
        ),
        pytest.param(
            {"a": {"password": "x", "b": [f"Bearer {TOKEN}"]}},
            {"a": {"password": REDACTED, "b": [REDACTED]}},
            id="nested",
        ),
        pytest.param(
            {"tokens_used": 3, "pool": "tokenizer"},
            {"tokens_used": REDACTED, "pool": "tokenizer"},
            id="rather too much",
        ),
        pytest.param(
            {"batch": "gpu-1", "count": 3, "ok": True}, {"batch": "gpu-1", "count": 3, "ok": True}, id="facts"
        ),
    ],
)
def test_secrets_are_replaced(event: dict[str, Any], clean: dict[str, Any]) -> None:
    assert redacted(None, "info", event) == clean
