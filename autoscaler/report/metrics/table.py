"""The table of all metrics. docs/metrics.md is generated from it, and serve/ registers it.

Names end in their unit, counters in `_total`. Labels never name pods or nodes, because their number has no bound. A
metric that is `stable` keeps its name, meaning and labels until the next major version; others, which are alpha, may
change in any release.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from instance_catalog.dataclass import dataclass


class Kind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `buckets` are the upper bounds of a histogram, in its unit."""

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    stable: bool = False
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
    "Pending pods by outcome of the last plan: ExistingNode and ComingNode fit such a node, NewNode get a node that is "
    "launched or proposed. Every other value is the code of the first reason why a pod gets no node.",
    labels=("reason",),
    stable=True,
)
DEVICES: Final = Metric(
    "foreslice_devices",
    Kind.GAUGE,
    "devices",
    "Devices in the cluster's ResourceSlices, allocated or free. Partitions of one GPU count as one device. It is "
    "allocated when one of them is.",
    labels=("driver", "product", "state"),
    stable=True,
)
PLAN_WORK: Final = Metric(
    "foreslice_plan_work",
    Kind.GAUGE,
    "units",
    "Work of the last plan that was not answered from a cache: node checks, selectors and searches, in units of CEL "
    "cost (settings work.*).",
)
NODES: Final = Metric(
    "foreslice_nodes", Kind.GAUGE, "nodes", "ProvisionedNodes.", labels=("pool", "capacity_type", "phase")
)
NODES_USD: Final = Metric(
    "foreslice_nodes_usd_per_hour",
    Kind.GAUGE,
    "US dollars per hour",
    "Price of the nodes that have a machine. Nodes of capacity blocks are prepaid and count 0.",
    labels=("pool", "capacity_type"),
    stable=True,
)
PROPOSED_USD: Final = Metric(
    "foreslice_proposed_usd_per_hour",
    Kind.GAUGE,
    "US dollars per hour",
    "Price of the nodes that pools would launch now if they acted: pools in mode Observe or held back by a condition.",
    labels=("pool",),
    stable=True,
)
PROPOSED_NODES: Final = Metric(
    "foreslice_proposed_nodes",
    Kind.GAUGE,
    "nodes",
    "Nodes that pools would launch now if they acted: pools in mode Observe or held back by a condition.",
    labels=("pool",),
    stable=True,
)
BLOCK_HOURS: Final = Metric(
    "foreslice_block_hours_left",
    Kind.GAUGE,
    "hours",
    "Time until the provider reclaims the machines of a capacity block; 0 afterwards.",
    labels=("block", "pool"),
    stable=True,
)
BLOCK_NODES: Final = Metric(
    "foreslice_block_nodes",
    Kind.GAUGE,
    "nodes",
    "Nodes that use machines of a capacity block.",
    labels=("block", "pool"),
)
INFORMER_AGE: Final = Metric(
    "foreslice_informer_age_seconds",
    Kind.GAUGE,
    "seconds",
    "Time since the last event, bookmark or list of a resource. A watch receives a bookmark every minute. At half of "
    "loop.stale the resource is listed again; beyond loop.stale /readyz fails.",
    labels=("resource",),
    stable=True,
)
QUARANTINES: Final = Metric(
    "foreslice_quarantined_types",
    Kind.GAUGE,
    "instance types",
    "Instance types that a pool does not launch for now, because their nodes failed or were mispredicted.",
    labels=("pool",),
)
SPENT_TODAY: Final = Metric(
    "foreslice_spent_today_usd", Kind.GAUGE, "US dollars", "Spent on launched nodes since midnight UTC, at list prices."
)
GUARD_BINDING: Final = Metric(
    "foreslice_spending_guard_binding",
    Kind.GAUGE,
    "0 or 1",
    "1 while a spending guard of the settings blocks a launch.",
    labels=("guard",),
    stable=True,
)
LAUNCHES: Final = Metric(
    "foreslice_launches_total",
    Kind.COUNTER,
    "nodes",
    "Outcomes of launches with their reason: Launched (the provider created a machine), Ready (the node is usable), "
    "Failed.",
    labels=("pool", "capacity_type", "outcome", "reason"),
)
MISPREDICTIONS: Final = Metric(
    "foreslice_mispredictions_total",
    Kind.COUNTER,
    "pods",
    "Pods that do not fit the ready node that was launched for them, although the prediction said so.",
    labels=("pool",),
    stable=True,
)
RECREATED: Final = Metric(
    "foreslice_machines_recreated_total",
    Kind.COUNTER,
    "machines",
    "Machines that somebody or something else made anew under their name. Their nodes are drained, and they are ended.",
    labels=("pool",),
)
CLAIM_COST: Final = Metric(
    "foreslice_claim_cost_usd_total",
    Kind.COUNTER,
    "US dollars",
    "Price of nodes while claims held their devices, in proportion to the devices held. Idle devices are in no series: "
    "compare with foreslice_nodes_usd_per_hour.",
    labels=("namespace", "pool"),
    stable=True,
)
TROUBLES: Final = Metric(
    "foreslice_troubles_total",
    Kind.COUNTER,
    "attempts",
    "Actions on one object that failed and are tried again: records, launches, removals, statuses, searches for "
    "orphans. The reason Unexpected is a bug; the log has its traceback.",
    labels=("kind", "reason"),
)
EVENTS: Final = Metric(
    "foreslice_events_total",
    Kind.COUNTER,
    "events",
    "Kubernetes Events by fate: written; refused by the API server; dropped because the queue is full or their object "
    "has too many. A dropped event is sent again while it is still true.",
    labels=("fate",),
)
EVENTS_WAITING: Final = Metric(
    "foreslice_events_waiting", Kind.GAUGE, "events", "Kubernetes Events in the queue, at most 10,000."
)
TICKS: Final = Metric(
    "foreslice_reconciles_total", Kind.COUNTER, "reconciles", "Reconciles: ok, or failed with an error.", ("outcome",)
)
TICK_SECONDS: Final = Metric(
    "foreslice_reconcile_duration_seconds", Kind.HISTOGRAM, "seconds", "Duration of a reconcile.", buckets=_SECONDS
)
STAGE_SECONDS: Final = Metric(
    "foreslice_stage_duration_seconds",
    Kind.HISTOGRAM,
    "seconds",
    "Duration of a stage of a reconcile: observe, plan, record, carry_out, publish; and warm_up, once per process.",
    labels=("stage",),
    buckets=_SECONDS,
)
BOOT_SECONDS: Final = Metric(
    "foreslice_node_boot_duration_seconds",
    Kind.HISTOGRAM,
    "seconds",
    "From the launch of a machine until its node was Ready for the first time, with the devices of its drivers.",
    labels=("instance_type", "drivers"),
    buckets=(60, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600),
)
API_REQUESTS: Final = Metric(
    "foreslice_api_requests_total",
    Kind.COUNTER,
    "requests",
    "Requests to the Kubernetes API without watches. The outcome is ok or the kind of error.",
    labels=("verb", "resource", "outcome"),
)
LEADER: Final = Metric("foreslice_leader", Kind.GAUGE, "0 or 1", "1 if this replica is the leader.", stable=True)
CATALOG_AGE: Final = Metric(
    "foreslice_catalog_age_seconds", Kind.GAUGE, "seconds", "Time since the catalog was last read without an error."
)
CATALOG_SYNCS: Final = Metric(
    "foreslice_catalog_syncs_total",
    Kind.COUNTER,
    "listings",
    "Reads of a cloud's listing for the catalog: changed, unchanged, or failed (the log says why).",
    labels=("cloud", "scope", "outcome"),
)
CATALOG_CONFLICTS: Final = Metric(
    "foreslice_catalog_conflicts",
    Kind.GAUGE,
    "facts",
    "Facts in which a cloud's last listing contradicts the catalog. The catalog keeps the values of people and nodes.",
    labels=("cloud", "scope"),
)
GRPC_CALLS: Final = Metric(
    "foreslice_grpc_calls_total",
    Kind.COUNTER,
    "calls",
    "Calls of Cluster Autoscaler (serve.externalGrpc, serve.grpcExpander) by gRPC status. The log has what is not OK.",
    labels=("method", "status"),
)
EXPANDER_CHOICES: Final = Metric(
    "foreslice_expander_choices_total",
    Kind.COUNTER,
    "choices",
    "Choices among node groups by what decided: prepaid, reserved, price, fragmentation, only (there was no other), "
    "unknown (none is ours), or gang (all held back, because none starts all pods of a gang).",
    labels=("why",),
)
BUILD: Final = Metric("foreslice_build_info", Kind.GAUGE, "1", "The running version.", labels=("version",))

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
    BOOT_SECONDS,
    RECREATED,
    MISPREDICTIONS,
    QUARANTINES,
    TROUBLES,
    EVENTS,
    EVENTS_WAITING,
    TICKS,
    TICK_SECONDS,
    STAGE_SECONDS,
    API_REQUESTS,
    INFORMER_AGE,
    CATALOG_AGE,
    CATALOG_SYNCS,
    CATALOG_CONFLICTS,
    LEADER,
    GRPC_CALLS,
    EXPANDER_CHOICES,
    BUILD,
)
GUARDS: Final = ("maxUsdPerHour", "maxUsdPerDay", "maxLaunchesPerHour")
