"""Cron windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.errors import ConfigurationError
from autoscaler.planning.disruption.windows import Window

SATURDAY = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "zone", "open_"),
    [
        pytest.param("* * * * *", "UTC", True, id="always"),
        pytest.param("* 8-18 * * *", "UTC", True, id="hours"),
        pytest.param("* 9-18 * * *", "UTC", False, id="not-yet"),
        pytest.param("* 9-18 * * *", "Europe/Berlin", True, id="half-past-nine-in-berlin"),
        pytest.param("* * * * 1-5", "UTC", False, id="working-days"),
        pytest.param("* * * * 6,7", "UTC", True, id="weekend"),
        pytest.param("*/15 * * * *", "UTC", True, id="every-quarter"),
        pytest.param("*/20 * * * *", "UTC", False, id="every-twenty-minutes"),
        pytest.param("5/5 * * * *", "UTC", True, id="steps-from-a-start"),
        pytest.param("* * 21 11 *", "UTC", True, id="date"),
        pytest.param("* * 1 * 6", "UTC", True, id="either-day-is-enough"),
        pytest.param("* * 1 * 1", "UTC", False, id="neither-day"),
    ],
)
def test_a_window_is_open_in_the_minutes_that_match(expression: str, zone: str, open_: bool) -> None:
    assert Window.parse(expression, zone).open_at(SATURDAY) is open_


def test_sunday_is_0_and_7() -> None:
    sunday = datetime(2026, 11, 22, tzinfo=UTC)
    assert Window.parse("* * * * 0").open_at(sunday)
    assert Window.parse("* * * * 7").open_at(sunday)


@pytest.mark.parametrize(
    ("expression", "zone", "message"),
    [
        pytest.param("* * * *", "UTC", "4 fields", id="too-few-fields"),
        pytest.param("60 * * * *", "UTC", "'60' is no minute", id="out-of-range"),
        pytest.param("* 9-8 * * *", "UTC", "'9-8' is no hour", id="backwards"),
        pytest.param("* x * * *", "UTC", "'x' is no hour", id="no-number"),
        pytest.param("*/0 * * * *", "UTC", "'*/0' is no minute", id="no-step"),
        pytest.param("* * * * *", "Mars/Base", "time zone", id="time-zone"),
    ],
)
def test_what_cannot_be_read_says_what_to_write(expression: str, zone: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message.replace("*", r"\*")) as caught:
        Window.parse(expression, zone)
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("expression", "zone", "hour"),
    [
        pytest.param("* 9-18 * * *", "UTC", 9, id="opens"),
        pytest.param("* 8-18 * * *", "UTC", 19, id="closes"),
        pytest.param("* 11-18 * * *", "Europe/Berlin", 10, id="opens-at-eleven-in-berlin"),
    ],
)
def test_the_next_moment_at_which_a_window_opens_or_closes(expression: str, zone: str, hour: int) -> None:
    assert Window.parse(expression, zone).next_change(SATURDAY) == SATURDAY.replace(hour=hour, minute=0)


def test_a_window_that_stays_as_it_is_is_asked_again_in_a_day() -> None:
    assert Window.parse("* * * * *").next_change(SATURDAY) == SATURDAY + timedelta(days=1)


@pytest.mark.parametrize("zone", ["America", "Europe", "", "../UTC", "Mars/Olympus", "UTC\x00"])
def test_what_is_no_time_zone_is_refused(zone: str) -> None:
    """`America` is a directory of the zone files, which zoneinfo answers with an OSError."""
    with pytest.raises(ConfigurationError, match="time zone"):
        Window.parse("* * * * *", zone)
