"""The outcome of a simulated workload under one policy, as values for tables, JSON and charts."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from instance_catalog.dataclass import dataclass

# The percentiles of waiting times that are shown.
QUANTILES: Final = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Point:
    """The cluster over one stretch of time, as averages weighted by time. `at`: hours since the start."""

    at: float
    usd: float  # spent since the beginning, at the end of the stretch
    starting: float  # GPUs of machines that are paid and have not joined yet
    allocated: float  # GPUs that pods have
    idle: float  # GPUs of nodes that no pod has
    waiting: float  # pods that have arrived and do not run


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of one variant.

    GPU-hours: `paid` is from launch to the machine's end, `allocated` while a pod runs, `starting` from launch to the
    registration of the node. `fragmented` are idle GPU-hours on nodes that an average task of the workload cannot use
    (F of "Beware of Fragmentation", USENIX ATC 2023, integrated over time). `interrupted`: pods that ran until their
    machine ended, and did not finish. `moved`: evictions to where pods cost less; `evicted`: those before a machine
    ended, of pods that were created again. The second start of either is no wait. `waits`: seconds from arrival to
    start of each task that started, ascending. `reconciles` counts the passes of the production loop. `left_out`: the
    most frequent reasons why pods waited for a node that nothing could launch at the end.
    """

    policy: str
    keep_alive: str
    pods: int
    finished: int
    running: int
    never_started: int
    interrupted: int
    moved: int
    evicted: int
    hours: float
    usd: Decimal
    gpu_hours_paid: float
    gpu_hours_allocated: float
    gpu_hours_starting: float
    gpu_hours_fragmented: float
    nodes: Mapping[str, int]  # launched, by instance type
    most_nodes: int
    waits: tuple[float, ...]
    reconciles: int
    timeline: tuple[Point, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """ "foreslice, keep-alive 5m"."""
        return f"{self.policy}, keep-alive {self.keep_alive}"

    @property
    def complete(self) -> bool:
        """True if every pod started and none was interrupted; else the cost is that of less work."""
        return not (self.never_started or self.interrupted)

    @property
    def gpu_hours_idle(self) -> float:
        """Paid and on a node, but not allocated."""
        return self.gpu_hours_paid - self.gpu_hours_allocated - self.gpu_hours_starting

    @property
    def launched(self) -> int:
        """Machines launched."""
        return sum(self.nodes.values())

    @property
    def utilization(self) -> float:
        """Allocated GPU-hours as a share of those paid; 0 if none were paid."""
        return self.gpu_hours_allocated / self.gpu_hours_paid if self.gpu_hours_paid else 0.0

    @property
    def fragmentation(self) -> float:
        """Fragmented GPU-hours as a share of those paid; 0 if none were paid."""
        return self.gpu_hours_fragmented / self.gpu_hours_paid if self.gpu_hours_paid else 0.0

    def wait(self, percent: int) -> float | None:
        """The percentile of the waiting times in seconds (nearest rank); None without any.

        Pods that never started count as the longest waits: then there is no figure for the ranks they take.
        """
        total = len(self.waits) + self.never_started
        rank = -(-percent * total // 100)
        return self.waits[rank - 1] if 0 < rank <= len(self.waits) else None


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """Plain data, as `-o json` prints it."""
    return {
        "policy": outcome.policy,
        "keepAlive": outcome.keep_alive,
        "pods": {
            "total": outcome.pods,
            "finished": outcome.finished,
            "running": outcome.running,
            "neverStarted": outcome.never_started,
            "interrupted": outcome.interrupted,
            "moved": outcome.moved,
            "evicted": outcome.evicted,
        },
        "leftOut": list(outcome.left_out),
        "hours": round(outcome.hours, 3),
        "usd": f"{outcome.usd:.2f}",
        "waitSeconds": {f"p{percent}": outcome.wait(percent) for percent in QUANTILES},
        "gpuHours": {
            "paid": round(outcome.gpu_hours_paid, 3),
            "allocated": round(outcome.gpu_hours_allocated, 3),
            "starting": round(outcome.gpu_hours_starting, 3),
            "idle": round(outcome.gpu_hours_idle, 3),
            "fragmented": round(outcome.gpu_hours_fragmented, 3),
        },
        "nodes": {
            "launched": outcome.launched,
            "most": outcome.most_nodes,
            "byType": dict(sorted(outcome.nodes.items())),
        },
        "reconciles": outcome.reconciles,
        "timeline": [_point_document(point) for point in outcome.timeline],
    }


def _point_document(point: Point) -> dict[str, float]:
    return {
        "hour": round(point.at, 4),
        "usd": round(point.usd, 2),
        "starting": round(point.starting, 2),
        "allocated": round(point.allocated, 2),
        "idle": round(point.idle, 2),
        "waiting": round(point.waiting, 2),
    }
