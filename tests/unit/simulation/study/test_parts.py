"""The parts of a study that are plain arithmetic: fragmentation, quantiles, timeline, arrivals, pictures."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from random import Random

import pytest

from autoscaler.report.study.chart import Series, area_chart, line_chart, ticks
from autoscaler.report.study.gap import Gap
from autoscaler.report.study.outcome import Outcome, Point
from autoscaler.report.study.page import study_page
from autoscaler.report.study.table import outcome_rows, wait_text
from autoscaler.simulation.study.fragmentation import Room, fragmented, usual_shapes
from autoscaler.simulation.study.pattern import Arrivals, Durations
from autoscaler.simulation.study.run import START
from autoscaler.simulation.study.task import Shape
from autoscaler.simulation.study.timeline import State, Timeline
from instance_catalog.dataclass import replace
from tests.unit.simulation.study.builders import task

HOUR = timedelta(hours=1)
OUTCOME = Outcome(
    policy="foreslice",
    keep_alive="5m",
    pods=4,
    finished=4,
    running=0,
    never_started=0,
    interrupted=0,
    moved=0,
    evicted=0,
    hours=2.0,
    usd=Decimal("12.5"),
    gpu_hours_paid=10.0,
    gpu_hours_allocated=6.0,
    gpu_hours_starting=1.0,
    gpu_hours_fragmented=2.0,
    nodes={"g6.xlarge": 3},
    most_nodes=2,
    waits=(0.0, 10.0, 20.0, 400.0),
    reconciles=20,
    timeline=(Point(0, 0, 0, 0, 0, 0), Point(1, 5, 1, 2, 1, 0), Point(2, 12.5, 0, 4, 0, 1)),
)
NO_GAP = Gap.of(Decimal(0), [OUTCOME])


def test_fragments_are_idle_devices_that_the_shapes_cannot_use() -> None:
    small, large, none = Shape(1, (), 1000, 1024), Shape(4, (), 1000, 1024), Shape(0, (), 1000, 1024)
    shapes = ((small, 0.5), (large, 0.25), (none, 0.25))
    assert fragmented(Room(2, 8000, 8192, "L4"), shapes) == 2 * 0.5
    assert fragmented(Room(4, 8000, 8192, "L4"), shapes) == 4 * 0.25
    assert fragmented(Room(4, 500, 8192, "L4"), shapes) == 4
    assert fragmented(Room(0, 8000, 8192, "L4"), shapes) == 0
    other = replace(small, models=("H100",))
    assert fragmented(Room(1, 8000, 8192, "L4"), ((other, 1.0),)) == 1
    assert fragmented(Room(1, 8000, 8192, "H100"), ((other, 1.0),)) == 0


def test_shares_of_shapes_count_replicas() -> None:
    shapes = dict(usual_shapes([task(1, 0, 1, replicas=3), task(2, 0, 1, gpus=2)]))
    assert {shape.gpus: share for shape, share in shapes.items()} == {1: 0.75, 2: 0.25}


@pytest.mark.parametrize(("percent", "seconds"), [(50, 10.0), (95, 400.0), (99, 400.0), (25, 0.0)])
def test_quantiles_are_nearest_ranks(percent: int, seconds: float) -> None:
    assert OUTCOME.wait(percent) == seconds


def test_tasks_that_never_started_take_the_highest_ranks() -> None:
    outcome = replace(OUTCOME, waits=(1.0, 2.0, 3.0), never_started=1)
    assert (outcome.wait(50), outcome.wait(75), outcome.wait(95)) == (2.0, 3.0, None)


def test_idle_is_the_rest_of_what_is_paid() -> None:
    assert OUTCOME.gpu_hours_idle == 3.0
    assert OUTCOME.utilization == 0.6


def test_a_timeline_sums_what_held() -> None:
    timeline = Timeline(START)
    timeline.hold(State(rate=2.0, paid=4), START + HOUR)
    timeline.hold(State(rate=0.0, paid=1, allocated=1), START + 3 * HOUR)
    assert (timeline.hours.rate, timeline.hours.paid, timeline.hours.allocated) == (2.0, 6.0, 2.0)
    points = timeline.points()
    assert points[-1].usd == pytest.approx(2.0)
    assert points[-1].at == pytest.approx(3.0)
    assert points[10].idle == pytest.approx(4.0)
    assert points[-10].idle == pytest.approx(0.0)
    with pytest.raises(ValueError, match="goes back"):
        timeline.hold(State(), START)


def test_arrivals_stay_in_their_part_of_the_day() -> None:
    day = Arrivals(per_hour=30.0, since=8 * HOUR, until=18 * HOUR)
    times = list(day.times(timedelta(days=3), Random(1)))
    assert 700 < len(times) < 1100
    assert all(8 * HOUR <= moment % timedelta(days=1) < 18 * HOUR for moment in times)
    assert times == sorted(times) == list(day.times(timedelta(days=3), Random(1)))
    assert list(Arrivals(every=HOUR).times(3 * HOUR, Random(1))) == [0 * HOUR, HOUR, 2 * HOUR]
    assert list(Arrivals(at=(2 * HOUR, HOUR)).times(2 * HOUR, Random(1))) == [HOUR]


def test_durations_have_the_median_and_the_percentile_that_were_asked_for() -> None:
    durations, random = Durations(timedelta(minutes=30), timedelta(hours=4)), Random(1)
    drawn = sorted(durations.draw(random) or timedelta(0) for _ in range(4000))
    assert drawn[2000] == pytest.approx(timedelta(minutes=30), abs=timedelta(minutes=3))
    assert drawn[3800] == pytest.approx(timedelta(hours=4), abs=timedelta(minutes=40))
    assert Durations(None).draw(random) is None


@pytest.mark.parametrize(("top", "found"), [(10.0, [0, 2, 4, 6, 8, 10]), (0.0, [0]), (7.0, [0, 1, 2, 3, 4, 5, 6, 7])])
def test_axes_have_round_numbers(top: float, found: list[float]) -> None:
    assert ticks(top) == found


def test_each_of_many_series_has_a_mark_of_its_own() -> None:
    picture = line_chart("t", "u", [Series(f"run {n}", (0.0, 1.0), (1.0, 3.0)) for n in range(20)])
    marks = re.findall(r'<span><i style="background:([^"]+)"></i>run \d+</span>', picture)
    lines = re.findall(r'stroke="([^"]+)" stroke-width="1.8" stroke-dasharray="([^"]*)"', picture)
    assert len(set(marks)) == len(set(lines)) == 20
    assert marks[0] == lines[0][0]
    assert marks[8] == f"repeating-linear-gradient(90deg,{lines[8][0]} 0px 7px,transparent 7px 11px)"


def test_pictures_name_every_series_and_run_nothing() -> None:
    page = study_page("<b>two</b>\x1b[2J", [OUTCOME, replace(OUTCOME, policy="greedy")], NO_GAP)
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg") == 4
    assert page.count("foreslice, keep-alive 5m") >= 3
    series = [Series("a", (0.0, 1.0), (1.0, 3.0)), Series("b", (0.0, 1.0), (1.0, 1.0))]
    assert line_chart("t", "u", series).count("<polyline") == 2
    assert "hours since the start<" in page
    assert page.index('<div class="scroll"><table>') < page.index("</table></div>")
    assert area_chart("t", "u", series).count("<polygon") == 2


def test_rows_are_for_people() -> None:
    assert outcome_rows([OUTCOME], NO_GAP)[0][:7] == ("foreslice", "5m", "12.50", "-", "10s", "6m40s", "6m40s")
    assert [wait_text(seconds) for seconds in (None, 59.4, 61, 3661)] == ["-", "59s", "1m01s", "1h01m"]
