"""The observers of a reconcile: the log, the metrics, the status page and the probes. None of them changes the
cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from autoscaler.cluster.resources import Resource
from autoscaler.lifecycle.provisioned_node import last_edge
from autoscaler.loop.loop import Recorded, Stage, Tick
from autoscaler.model.plan import NodeAction
from autoscaler.model.provisioned_node import BatchOutcome, LaunchBatch, OfferingRef, Phase, ProvisionedNode
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import texts_of
from autoscaler.serve.health import Heartbeat
from autoscaler.serve.recorder import Recorder
from autoscaler.serve.site import LatestTick
from instance_catalog.dataclass import dataclass, field

_LOG: Final = structlog.get_logger("foreslice.loop")
_Line = tuple[int, str, tuple[tuple[str, Any], ...]]  # level, event, fields
# The log event for the next step of a node that leaves.
_STEPS: Final = {
    Phase.DRAINING: "draining",
    Phase.TERMINATING: "terminating",
    Phase.FAILED: "removing",
    Phase.GONE: "removing",
}
_SIGNS: Final = {NodeAction.HOLD: "holding", NodeAction.NOTICE: "giving_notice", NodeAction.CLOSE: "closing"}


@dataclass(slots=True)
class TickObservers:
    """Passes each reconcile to all of them. A reconcile that lasts longer than `liveness` fails /healthz; `span` traces
    it, and `also` receives each that succeeded."""

    heartbeat: Heartbeat
    recorder: Recorder
    latest: LatestTick
    liveness: timedelta
    span: Stage = nullcontext
    also: Callable[[Tick], None] = lambda tick: None
    _logged: frozenset[_Line] = field(default_factory=frozenset)
    _announced: frozenset[_Line] = field(default_factory=frozenset)
    _nodes: dict[str, ProvisionedNode] = field(default_factory=dict)
    _since: datetime | None = None

    @contextmanager
    def tick(self) -> Iterator[None]:
        self.heartbeat.expect(within=self.liveness.total_seconds(), doing="a reconcile")
        with self.recorder.timing_tick(), self.span("reconcile"):
            yield

    def recorded(self, recorded: Recorded) -> None:
        """Logs what the reconcile is about to do, before it does it, so that the log of a killed process shows it."""
        lines = tuple(_intentions(recorded))
        _log(lines, besides=self._announced)
        self._announced = frozenset(lines)

    @contextmanager
    def request(self, verb: str, resource: Resource) -> Iterator[None]:
        """The context of each request: a reconcile that waits for a slow API server makes progress, so it is not stuck.

        An Interceptor of cluster/intercepted.py. `liveness` is longer than any request may last.
        """
        self.heartbeat.progress(within=self.liveness.total_seconds())
        try:
            yield
        finally:
            self.heartbeat.progress(within=self.liveness.total_seconds())

    def ticked(self, tick: Tick) -> None:
        """A reconcile succeeded."""
        self.recorder.ticked(
            tick.snapshot, tick.plan, tick.now, [(trouble.kind, trouble.reason) for trouble in tick.troubles]
        )
        self.latest.set(tick.snapshot, tick.plan, tick.now)
        self.heartbeat.ready()
        self.also(tick)
        _log(tuple(self._outcomes(tick)))
        lines = tuple(_lines(tick))
        _log(lines, besides=self._logged)
        self._logged = frozenset(lines)

    def _outcomes(self, tick: Tick) -> Iterator[_Line]:
        """The phases that nodes entered since the reconcile before."""
        now = {node.name: node for node in tick.snapshot.provisioned}
        for node in now.values():
            known = self._nodes.get(node.name)
            for phase, moment, why in node.history:
                new = (phase, moment, why) not in known.history if known else moment >= (self._since or tick.now)
                if new:
                    moved = (("phase", phase.value), ("reason", why), ("provider_id", node.provider_id))
                    yield logging.INFO, "node_moved", (*_about(node), *moved)
        for name in sorted(self._nodes.keys() - now.keys()):
            yield logging.INFO, "node_removed", _about(self._nodes[name])
        self._nodes, self._since = now, tick.now

    def tick_failed(self, error: Exception) -> None:
        """A reconcile ended with an expected error, which may pass."""
        self.recorder.cut_short()
        _LOG.warning("reconcile_failed", error=str(error), kind=type(error).__name__)

    def tick_raised(self, error: Exception) -> None:
        """A reconcile ended with an unexpected exception, a bug. The log has its traceback; the next reconcile is
        tried."""
        self.recorder.cut_short()
        _LOG.error("reconcile_failed", error=str(error), kind=type(error).__name__, exc_info=error)

    def not_followed(self, error: Exception) -> None:
        """This replica, which does not lead, could not read the cluster. The leader is not affected."""
        _LOG.warning("cluster_not_followed", error=str(error), kind=type(error).__name__)

    def standing_by(self, longest: timedelta) -> None:
        """Another replica leads. A replica that can take over is ready."""
        self.heartbeat.ready()
        self.heartbeat.expect(within=(longest + self.liveness).total_seconds(), doing="standing by")

    def resting(self, longest: timedelta) -> None:
        """The next reconcile begins after `longest`, or when something changes."""
        self.heartbeat.expect(within=(longest + self.liveness).total_seconds(), doing="resting")


def _log(lines: tuple[_Line, ...], *, besides: frozenset[_Line] = frozenset()) -> None:
    """Log the lines, without those that the reconcile before logged."""
    for level, event, fields in lines:
        if (level, event, fields) not in besides:
            _LOG.log(level, event, **dict(fields))


def _intentions(recorded: Recorded) -> Iterator[_Line]:
    """The log lines of the launches, drains, terminations, holds and announcements that follow."""
    launches = {launch.name: launch for launch in recorded.decisions.plan.launches}
    for batch in recorded.pending.launches:
        reasons = [r for name in batch.nodes if name in launches for r in launches[name].reasons]
        yield logging.INFO, "launching", _of_batch(batch, texts_of(tuple(dict.fromkeys(reasons))))
    pods_on: dict[str, int] = {}
    for pod in recorded.decisions.snapshot.pods:
        if pod.node_name is not None:
            pods_on[pod.node_name] = pods_on.get(pod.node_name, 0) + 1
    for node in recorded.pending.leaving:
        why = last_edge(node)
        reason = ": ".join(part for part in (why, texts_of(node.reasons)) if part)
        fields = (("pods", pods_on.get(node.node_name, 0)), ("reason", reason), ("provider_id", node.provider_id))
        yield logging.INFO, _STEPS[node.phase], (*_about(node), *fields)
    for node, decision in recorded.pending.decisions:
        if decision.action in _SIGNS:
            ends = None if decision.deadline is None else decision.deadline.isoformat()
            why = texts_of(decision.reasons)
            about = (("pods", pods_on.get(node.node_name, 0)), ("reason", why), ("ends_at", ends))
            yield logging.INFO, _SIGNS[decision.action], (*_about(node), *about)


def _of_batch(batch: LaunchBatch, reason: str) -> tuple[tuple[str, Any], ...]:
    offering = batch.offerings[min(batch.attempt, len(batch.offerings) - 1)]
    pods = len(batch.pods)
    return (
        ("batch", batch.name),
        ("pool", batch.pool),
        *_offered(offering),
        ("nodes", batch.nodes),
        ("pods", pods),
        (
            "reason",
            reason or (f"{pods} pods wait" if pods else "no pod waits: kept up, or ordered by another autoscaler"),
        ),
        ("repeated", batch.outcome is BatchOutcome.CALLING),
    )


def _about(node: ProvisionedNode) -> tuple[tuple[str, Any], ...]:
    return (("node", node.name), ("pool", node.pool), *_offered(node.offering))


def _offered(offering: OfferingRef) -> tuple[tuple[str, Any], ...]:
    return (
        ("instance_type", offering.instance_type),
        ("zone", offering.zone),
        ("capacity_type", offering.capacity_type),
        ("usd_per_hour", None if offering.usd_per_hour is None else str(offering.usd_per_hour)),
    )


def _lines(tick: Tick) -> Iterator[_Line]:
    """The log lines of proposals for pools in Observe, and of failures."""
    acting = {pool.name for pool in tick.snapshot.pools if pool.acts}
    for launch in tick.plan.launches:
        if launch.pool not in acting:
            fields: tuple[tuple[str, Any], ...] = (
                ("pool", launch.pool),
                ("offering", offering_text(launch.offering)),
                ("usd_per_hour", None if launch.usd_per_hour is None else str(launch.usd_per_hour)),
                ("pods", launch.pods),
            )
            yield logging.INFO, "would_launch", fields
    for trouble in tick.troubles:
        fields = (
            ("kind", trouble.kind),
            ("name", trouble.name),
            ("reason", trouble.reason),
            ("error", trouble.text),
        )
        yield logging.WARNING, "action_failed", fields
