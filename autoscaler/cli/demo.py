"""`foreslice demo`: the whole autoscaler on an embedded cluster and a simulated cloud, printed as a timeline."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click

from autoscaler.cli.common.output import write_page
from autoscaler.cli.common.terminal import styled
from autoscaler.clock import SystemClock
from autoscaler.loop.loop import Tick
from autoscaler.report.printable import printable_json
from autoscaler.report.timeline import (
    Summary,
    TimelineEvent,
    document_of,
    lines_of,
    mark_of,
    summary_document,
    summary_lines,
)
from autoscaler.settings.settings import LoopSettings, Settings
from autoscaler.simulation.scenario import load_scenario
from autoscaler.simulation.simulation import Simulation
from autoscaler.simulation.timeline_recorder import TimelineRecorder
from instance_catalog.files.loader import load_catalog
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey

START: Final = datetime(2026, 11, 2, 9, tzinfo=UTC)
# The block of the scenario ends after seven hours; then everything is gone.
LENGTH: Final = timedelta(hours=8)

# Whatever happens in the simulated cluster wakes the loop; looking again in between would only take time.
SETTINGS: Final = Settings(loop=LoopSettings(resync=timedelta(minutes=10)))


@click.command()
@click.option(
    "--speed", type=click.FloatRange(min=0), default=0, help="Virtual seconds per real second; 0 does not wait."
)
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the status page of the moment with the most existing and planned nodes.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def demo(speed: float, page: Path | None, output: str) -> None:
    """It needs no cluster and no cloud account: the controller's own code works on an in-memory cluster and cloud, on a
    virtual clock. Exit code 1: the result differs from what the scenario expects.
    """
    show = _Json() if output == "json" else _Text(speed)
    scenario = load_scenario("demo")
    simulation = Simulation(catalog=load_catalog(), start=START, settings=SETTINGS)
    block = OfferingKey("p5.48xlarge", "us-east-1a", CapacityType.CAPACITY_BLOCK)
    simulation.cloud.reserve("cr-november", block, count=1, starts_at=START, ends_at=START + timedelta(hours=7))
    simulation.add(scenario)
    recorder = TimelineRecorder(simulation.api, show.event)
    busiest = _Busiest()

    def observe(tick: Tick) -> None:
        recorder.observe(tick)
        busiest.observe(tick)

    simulation.run(START + LENGTH, observe)
    if page is not None and busiest.tick is not None:
        write_page(page, busiest.tick.snapshot, busiest.tick.plan, busiest.tick.now, title="demo")
    summary = recorder.summary(scenario.expected(), simulation.clock.now())
    show.summary(summary)
    sys.exit(0 if summary.succeeded else 1)


class _Busiest:
    """The tick with the most existing and planned nodes and pending pods."""

    def __init__(self) -> None:
        self.tick: Tick | None = None
        self._most = 0

    def observe(self, tick: Tick) -> None:
        """Keeps the first of those with most."""
        much = 2 * len(tick.plan.launches) + len(tick.snapshot.provisioned) + len(tick.plan.left_out)
        if much > self._most:
            self.tick, self._most = tick, much


class _Json:
    """One JSON object a line, the summary last."""

    def event(self, event: TimelineEvent) -> None:
        click.echo(printable_json(json.dumps(document_of(event), ensure_ascii=False)))

    def summary(self, summary: Summary) -> None:
        click.echo(printable_json(json.dumps(summary_document(summary), ensure_ascii=False)))


class _Text:
    """Lines for users: the time once for all events at it."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._clock = SystemClock()
        self._at: datetime | None = None
        click.echo("A cluster and a cloud, both simulated, with the catalog's prices and a virtual clock.")
        click.echo("  + a pod comes in   * a decision   ! nothing can help   · a pod runs or ends")

    def event(self, event: TimelineEvent) -> None:
        if event.at != self._at:
            if self._speed and self._at is not None:
                self._clock.wait((event.at - self._at).total_seconds() / self._speed)
            self._at = event.at
            styled(f"\n{event.at:%H:%M:%S}", bold=True)
        head, *rest = [line for line in lines_of(event.occurrence) if line]
        click.echo(f"  {mark_of(event.occurrence)} {head}")
        for line in rest:
            styled(f"      {line}", dim=True)

    def summary(self, summary: Summary) -> None:
        click.echo()
        for line in summary_lines(summary):
            click.echo(line)
