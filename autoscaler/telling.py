"""Who is told of a round: the log, the metrics, the status page, and the probes. None of them changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import structlog

from autoscaler.cluster.resources import Resource
from autoscaler.loop import Stage, Tick
from autoscaler.report.events import offering_text
from autoscaler.serve.health import Heartbeat
from autoscaler.serve.recorder import Recorder
from autoscaler.serve.site import Board

_LOG: Final = structlog.get_logger("foreslice.loop")
_Line = tuple[str, str, tuple[tuple[str, Any], ...]]  # level, event, fields


@dataclass(slots=True)
class Telling:
    """Tells all of them. `liveness` is how long a round may last before /healthz fails; `span` makes a trace of it."""

    heartbeat: Heartbeat
    recorder: Recorder
    board: Board
    liveness: timedelta
    span: Stage = nullcontext
    _told: frozenset[_Line] = field(default_factory=frozenset)

    @contextmanager
    def round(self) -> Iterator[None]:
        """Around a round."""
        self.heartbeat.expect(within=self.liveness.total_seconds(), doing="a round of the loop")
        with self.recorder.timing_tick(), self.span("tick"):
            yield

    @contextmanager
    def request(self, verb: str, resource: Resource) -> Iterator[None]:
        """Around each request of the loop: one that asks a slow API server, or one that does not answer, is not stuck.

        An attendant of cluster/attended.py. No request lasts as long as `liveness` is meant to be.
        """
        self.heartbeat.progress(within=self.liveness.total_seconds())
        try:
            yield
        finally:
            self.heartbeat.progress(within=self.liveness.total_seconds())

    def ticked(self, tick: Tick) -> None:
        """A round ended well."""
        self.recorder.ticked(
            tick.snapshot, tick.plan, tick.now, [(trouble.kind, trouble.reason) for trouble in tick.troubles]
        )
        self.board.show(tick.snapshot, tick.plan, tick.now)
        self.heartbeat.ready()
        lines = tuple(_lines(tick))
        for level, event, fields in lines:
            # What the round before said already is not said again.
            if (level, event, fields) not in self._told:
                getattr(_LOG, level)(event, **dict(fields))
        self._told = frozenset(lines)

    def cut_short(self, error: Exception) -> None:
        """A round ended with an error that may pass."""
        self.recorder.cut_short()
        _LOG.warning("round_cut_short", error=str(error), kind=type(error).__name__)

    def not_followed(self, error: Exception) -> None:
        """What happens in the cluster was not read while standing by. The leader's rounds are not touched by that."""
        _LOG.warning("cluster_not_followed", error=str(error), kind=type(error).__name__)

    def standing_by(self, longest: timedelta) -> None:
        """Another replica acts. Waiting for its place is what this one is there for, so it is ready."""
        self.heartbeat.ready()
        self.heartbeat.expect(within=(longest + self.liveness).total_seconds(), doing="standing by")

    def resting(self, longest: timedelta) -> None:
        """Nothing is to do for so long, unless something changes."""
        self.heartbeat.expect(within=(longest + self.liveness).total_seconds(), doing="resting")


def _lines(tick: Tick) -> Iterator[_Line]:
    """What a round decided and could not do."""
    acting = {pool.name for pool in tick.snapshot.pools if pool.acts}
    for launch in tick.plan.launches:
        fields: tuple[tuple[str, Any], ...] = (
            ("pool", launch.pool),
            ("offering", offering_text(launch.offering)),
            ("usd_per_hour", None if launch.usd_per_hour is None else str(launch.usd_per_hour)),
            ("pods", launch.pods),
        )
        yield "info", "launching" if launch.pool in acting else "would_launch", fields
    for trouble in tick.troubles:
        fields = (
            ("kind", trouble.kind),
            ("name", trouble.name),
            ("reason", trouble.reason),
            ("error", str(trouble.error)),
        )
        yield "warning", "not_carried_out", fields
