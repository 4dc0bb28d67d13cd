"""Every metric Foreslice has, one table: docs/metrics.md and the registry of serve/ are made of it.

Names end in their unit, counters in `_total`; labels never name pods or nodes, of which there is no bound. A name that
is STABLE keeps its meaning and labels until the next major version, an ALPHA one may change with any release.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    """The types of Prometheus that are used."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Stability(Enum):
    """As Kubernetes' own metrics say it."""

    ALPHA = "alpha"
    STABLE = "stable"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `buckets` are the upper bounds of a histogram, in its unit."""

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    stability: Stability = Stability.ALPHA
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric. `labels` are values in the order of the metric's names."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

PENDING_PODS: Final = Metric(
    "foreslice_pending_pods",
    Kind.GAUGE,
    "pods",
    "Pending pods by what becomes of them: ExistingNode and ComingNode are provided for, NewNode get a node that is "
    "launched or proposed; every other value is the code of the first reason why a pod gets none.",
    labels=("reason",),
    stability=Stability.STABLE,
)
DEVICES: Final = Metric(
    "foreslice_devices",
    Kind.GAUGE,
    "devices",
    "Devices of the cluster's ResourceSlices, allocated or free. Partitions of one GPU count as one device, which is "
    "allocated as soon as one of them is.",
    labels=("driver", "product", "state"),
    stability=Stability.STABLE,
)
PLAN_WORK: Final = Metric(
    "foreslice_plan_work",
    Kind.GAUGE,
    "units",
    "Fresh work of the last plan for looks at nodes, selectors and searches, in units of CEL's cost (settings work.*).",
)
NODES: Final = Metric(
    "foreslice_nodes", Kind.GAUGE, "nodes", "ProvisionedNodes.", labels=("pool", "capacity_type", "phase")
)
NODES_USD: Final = Metric(
    "foreslice_nodes_usd_per_hour",
    Kind.GAUGE,
    "US dollars per hour",
    "Price of the nodes that have a machine. Those of capacity blocks are prepaid and cost nothing more.",
    labels=("pool", "capacity_type"),
    stability=Stability.STABLE,
)
PROPOSED_USD: Final = Metric(
    "foreslice_proposed_usd_per_hour",
    Kind.GAUGE,
    "US dollars per hour",
    "Price of the nodes that pools that do not act, in mode Observe or held back by a check, would launch now.",
    labels=("pool",),
    stability=Stability.STABLE,
)
PROPOSED_NODES: Final = Metric(
    "foreslice_proposed_nodes",
    Kind.GAUGE,
    "nodes",
    "Nodes that pools that do not act, in mode Observe or held back by a check, would launch now.",
    labels=("pool",),
    stability=Stability.STABLE,
)
BLOCK_HOURS: Final = Metric(
    "foreslice_block_hours_left",
    Kind.GAUGE,
    "hours",
    "Time until the provider takes the machines of a capacity block back; 0 once it has.",
    labels=("block", "pool"),
    stability=Stability.STABLE,
)
BLOCK_NODES: Final = Metric(
    "foreslice_block_nodes", Kind.GAUGE, "nodes", "Nodes held of a capacity block.", labels=("block", "pool")
)
MIRROR_AGE: Final = Metric(
    "foreslice_mirror_age_seconds",
    Kind.GAUGE,
    "seconds",
    "Time since the last event, bookmark or list of a resource was taken over. A watch has a bookmark every minute; at "
    "half of loop.stale the resource is listed again, and beyond loop.stale /readyz fails.",
    labels=("resource",),
    stability=Stability.STABLE,
)
QUARANTINES: Final = Metric(
    "foreslice_quarantined_types",
    Kind.GAUGE,
    "instance types",
    "Instance types that a pool does not launch for now, because nodes of theirs failed or were mispredicted.",
    labels=("pool",),
)
SPENT_TODAY: Final = Metric(
    "foreslice_spent_today_usd", Kind.GAUGE, "US dollars", "Spent on launched nodes since midnight UTC, at list prices."
)
GUARD_BINDING: Final = Metric(
    "foreslice_spending_guard_binding",
    Kind.GAUGE,
    "0 or 1",
    "Whether a guard of the settings keeps a node from being launched now.",
    labels=("guard",),
    stability=Stability.STABLE,
)
LAUNCHES: Final = Metric(
    "foreslice_launches_total",
    Kind.COUNTER,
    "nodes",
    "Steps that nodes took, with the reason of the step: Launched (a machine was obtained), Ready (a usable node), "
    "Failed.",
    labels=("pool", "capacity_type", "outcome", "reason"),
)
MISPREDICTIONS: Final = Metric(
    "foreslice_mispredictions_total",
    Kind.COUNTER,
    "pods",
    "Pods that the ready node they were launched for does not take, although it was predicted to.",
    labels=("pool",),
    stability=Stability.STABLE,
)
CLAIM_COST: Final = Metric(
    "foreslice_claim_cost_usd_total",
    Kind.COUNTER,
    "US dollars",
    "Price of nodes while claims held their devices, in proportion to the devices held. What nobody holds is in no "
    "series: compare with foreslice_nodes_usd_per_hour.",
    labels=("namespace", "pool"),
    stability=Stability.STABLE,
)
TROUBLES: Final = Metric(
    "foreslice_troubles_total",
    Kind.COUNTER,
    "attempts",
    "What could not be done for one object and is tried again: writing it down, launches, removals, statuses, searches "
    "for orphans. The reason Unexpected is a bug, whose traceback is in the log.",
    labels=("kind", "reason"),
)
EVENTS: Final = Metric(
    "foreslice_events_total",
    Kind.COUNTER,
    "events",
    "Kubernetes Events by their fate: written; refused by the API server; dropped for want of a place or because their "
    "object has too many, which is offered again as long as it is true.",
    labels=("fate",),
)
EVENTS_WAITING: Final = Metric(
    "foreslice_events_waiting", Kind.GAUGE, "events", "Kubernetes Events that wait to be written, of at most 10,000."
)
TICKS: Final = Metric(
    "foreslice_ticks_total", Kind.COUNTER, "rounds", "Rounds of the loop: ok, or cut short by an error.", ("outcome",)
)
TICK_SECONDS: Final = Metric(
    "foreslice_tick_duration_seconds", Kind.HISTOGRAM, "seconds", "Time a whole round took.", buckets=_SECONDS
)
STAGE_SECONDS: Final = Metric(
    "foreslice_stage_duration_seconds",
    Kind.HISTOGRAM,
    "seconds",
    "Time a stage of a round took: observe, plan, record, carry_out, publish; and rehearse, once a process.",
    labels=("stage",),
    buckets=_SECONDS,
)
API_REQUESTS: Final = Metric(
    "foreslice_api_requests_total",
    Kind.COUNTER,
    "requests",
    "Requests to the Kubernetes API, without those that keep watches open; the outcome is ok or the kind of error.",
    labels=("verb", "resource", "outcome"),
)
LEADER: Final = Metric(
    "foreslice_leader", Kind.GAUGE, "0 or 1", "Whether this replica acts.", stability=Stability.STABLE
)
CATALOG_AGE: Final = Metric(
    "foreslice_catalog_age_seconds", Kind.GAUGE, "seconds", "Time since the catalog was last read without an error."
)
CATALOG_SYNCS: Final = Metric(
    "foreslice_catalog_syncs_total",
    Kind.COUNTER,
    "listings",
    "Listings of a cloud that were read for the catalog: changed, unchanged, or failed, which the log explains.",
    labels=("cloud", "scope", "outcome"),
)
CATALOG_CONFLICTS: Final = Metric(
    "foreslice_catalog_conflicts",
    Kind.GAUGE,
    "facts",
    "What a cloud's last listing says otherwise than the catalog, which goes on with what people or nodes said.",
    labels=("cloud", "scope"),
)
BUILD: Final = Metric("foreslice_build_info", Kind.GAUGE, "1", "The version that runs.", labels=("version",))

METRICS: Final = (
    PENDING_PODS,
    PLAN_WORK,
    DEVICES,
    NODES,
    NODES_USD,
    PROPOSED_NODES,
    PROPOSED_USD,
    BLOCK_HOURS,
    BLOCK_NODES,
    SPENT_TODAY,
    GUARD_BINDING,
    CLAIM_COST,
    LAUNCHES,
    MISPREDICTIONS,
    QUARANTINES,
    TROUBLES,
    EVENTS,
    EVENTS_WAITING,
    TICKS,
    TICK_SECONDS,
    STAGE_SECONDS,
    API_REQUESTS,
    MIRROR_AGE,
    CATALOG_AGE,
    CATALOG_SYNCS,
    CATALOG_CONFLICTS,
    LEADER,
    BUILD,
)
GUARDS: Final = ("maxUsdPerHour", "maxUsdPerDay", "maxLaunchesPerHour")
