"""Who is told of a round: the log, the metrics, the status page, and the probes. None of them changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from autoscaler.cluster.resources import Resource
from autoscaler.loop.loop import Decided, Stage, Tick
from autoscaler.model.plan import NodeAction
from autoscaler.model.provisioned_node import LaunchBatch, OfferingRef, Phase, ProvisionedNode
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import texts_of
from autoscaler.serve.health import Heartbeat
from autoscaler.serve.recorder import Recorder
from autoscaler.serve.site import LatestTick

_LOG: Final = structlog.get_logger("foreslice.loop")
_Line = tuple[str, str, tuple[tuple[str, Any], ...]]  # level, event, fields
# What is about to be done with a node on its way out.
_STEPS: Final = {
    Phase.DRAINING: "draining",
    Phase.TERMINATING: "terminating",
    Phase.FAILED: "removing",
    Phase.GONE: "removing",
}
_SIGNS: Final = {NodeAction.HOLD: "holding", NodeAction.NOTICE: "giving_notice"}


@dataclass(slots=True)
class TickObservers:
    """Tells all of them. `liveness` is how long a round may last before /healthz fails; `span` makes a trace of it."""

    heartbeat: Heartbeat
    recorder: Recorder
    latest: LatestTick
    liveness: timedelta
    span: Stage = nullcontext
    _told: frozenset[_Line] = field(default_factory=frozenset)
    _announced: frozenset[_Line] = field(default_factory=frozenset)
    _nodes: dict[str, ProvisionedNode] = field(default_factory=dict)
    _since: datetime | None = None

    @contextmanager
    def round(self) -> Iterator[None]:
        """Around a round."""
        self.heartbeat.expect(within=self.liveness.total_seconds(), doing="a round of the loop")
        with self.recorder.timing_tick(), self.span("tick"):
            yield

    def decided(self, decided: Decided) -> None:
        """Something is about to be done. It is logged before, so that the log of a killed process shows it."""
        lines = tuple(_intentions(decided))
        _log(lines, besides=self._announced)
        self._announced = frozenset(lines)

    @contextmanager
    def request(self, verb: str, resource: Resource) -> Iterator[None]:
        """Around each request of the loop: one that asks a slow API server, or one that does not answer, is not stuck.

        An attendant of cluster/intercepted.py. No request lasts as long as `liveness` is meant to be.
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
        self.latest.set(tick.snapshot, tick.plan, tick.now)
        self.heartbeat.ready()
        _log(tuple(self._outcomes(tick)))
        lines = tuple(_lines(tick))
        _log(lines, besides=self._told)
        self._told = frozenset(lines)

    def _outcomes(self, tick: Tick) -> Iterator[_Line]:
        """What came of it: the steps that nodes took since the round before."""
        now = {node.name: node for node in tick.snapshot.provisioned}
        for node in now.values():
            known = self._nodes.get(node.name)
            for phase, moment, why in node.history:
                new = (phase, moment, why) not in known.history if known else moment >= (self._since or tick.now)
                if new:
                    moved = (("phase", phase.value), ("reason", why), ("provider_id", node.provider_id))
                    yield "info", "node_moved", (*_about(node), *moved)
        for name in sorted(self._nodes.keys() - now.keys()):
            yield "info", "node_removed", _about(self._nodes[name])
        self._nodes, self._since = now, tick.now

    def cut_short(self, error: Exception) -> None:
        """A round ended with an error that may pass."""
        self.recorder.cut_short()
        _LOG.warning("round_cut_short", error=str(error), kind=type(error).__name__)

    def broken(self, error: Exception) -> None:
        """A round ended with an error that nobody foresaw. The log has its traceback; the next round is tried."""
        self.recorder.cut_short()
        _LOG.error("round_cut_short", error=str(error), kind=type(error).__name__, exc_info=error)

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


def _log(lines: tuple[_Line, ...], *, besides: frozenset[_Line] = frozenset()) -> None:
    """Log the lines. What the round before said already is not said again."""
    for level, event, fields in lines:
        if (level, event, fields) not in besides:
            getattr(_LOG, level)(event, **dict(fields))


def _intentions(decided: Decided) -> Iterator[_Line]:
    """What is about to be launched, drained, ended, held and announced."""
    launches = {launch.name: launch for launch in decided.plan.launches}
    for batch in decided.pending.launches:
        reasons = [r for name in batch.nodes if name in launches for r in launches[name].reasons]
        yield "info", "launching", _of_batch(batch, texts_of(tuple(dict.fromkeys(reasons))))
    there: dict[str, int] = {}
    for pod in decided.snapshot.pods:
        if pod.node_name is not None:
            there[pod.node_name] = there.get(pod.node_name, 0) + 1
    for node in decided.pending.leaving:
        why = node.history[-1][2] if node.history else ""
        reason = ": ".join(part for part in (why, texts_of(node.reasons)) if part)
        fields = (("pods", there.get(node.node_name, 0)), ("reason", reason), ("provider_id", node.provider_id))
        yield "info", _STEPS[node.phase], (*_about(node), *fields)
    for node, decision in decided.pending.decisions:
        if decision.action in _SIGNS:
            ends = None if decision.deadline is None else decision.deadline.isoformat()
            why = texts_of(decision.reasons)
            told = (("pods", there.get(node.node_name, 0)), ("reason", why), ("ends_at", ends))
            yield "info", _SIGNS[decision.action], (*_about(node), *told)


def _of_batch(batch: LaunchBatch, reason: str) -> tuple[tuple[str, Any], ...]:
    offering = batch.offerings[min(batch.attempt, len(batch.offerings) - 1)]
    pods = sum(map(len, batch.pods))
    return (
        ("batch", batch.name),
        ("pool", batch.pool),
        *_offered(offering),
        ("nodes", batch.nodes),
        ("pods", pods),
        ("reason", reason or f"{pods} pods wait"),
        ("repeated", batch.outcome == "Calling"),
    )


def _about(node: ProvisionedNode) -> tuple[tuple[str, Any], ...]:
    return (("node", node.name), ("pool", node.pool), *_offered(node.offering))


def _offered(offering: OfferingRef) -> tuple[tuple[str, Any], ...]:
    return (
        ("instance_type", offering.instance_type),
        ("zone", offering.zone),
        ("capacity_type", offering.capacity_type),
        ("usd_per_hour", offering.usd_per_hour),
    )


def _lines(tick: Tick) -> Iterator[_Line]:
    """What a round decided and could not do."""
    acting = {pool.name for pool in tick.snapshot.pools if pool.acts}
    for launch in tick.plan.launches:
        if launch.pool not in acting:
            fields: tuple[tuple[str, Any], ...] = (
                ("pool", launch.pool),
                ("offering", offering_text(launch.offering)),
                ("usd_per_hour", None if launch.usd_per_hour is None else str(launch.usd_per_hour)),
                ("pods", launch.pods),
            )
            yield "info", "would_launch", fields
    for trouble in tick.troubles:
        fields = (
            ("kind", trouble.kind),
            ("name", trouble.name),
            ("reason", trouble.reason),
            ("error", trouble.text),
        )
        yield "warning", "not_carried_out", fields
