"""The cost of a plan by namespace, workload or the value of a pod label.

A node's price is divided among the pods that the plan puts on it, by the number of devices of each (of the driver of
which it gets most); equally if no pod gets a device. The pods of the node also pay for unused devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from autoscaler.model.plan import Placement, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.plan_document import dollars
from autoscaler.report.tables.plan_tables import Table

_LABEL: Final = "label="
NO_VALUE: Final = "(none)"
USAGE: Final = "namespace, workload or label=KEY"


def cost_key(by: str) -> Callable[[Pod], str] | None:
    """The grouping of pods; None for an unknown one."""
    if by == "namespace":
        return lambda pod: pod.namespace
    if by == "workload":
        return lambda pod: f"{pod.namespace}/{pod.owner or f'Pod/{pod.name}'}"
    if by.startswith(_LABEL) and (key := by.removeprefix(_LABEL)):
        return lambda pod: pod.labels.get(key, NO_VALUE)
    return None


def costs_document(plan: Plan, snapshot: Snapshot, by: str, key: Callable[[Pod], str]) -> dict[str, Any]:
    """Groups, the most expensive first. `podsPlaced` counts pods on existing nodes as well, which cost nothing more."""
    pods = {pod.key: pod for pod in snapshot.pods}
    costs = pod_costs(plan)
    groups: dict[str, dict[str, Any]] = {}
    left = {entry.pod for entry in plan.left_out}
    for name in (*(p.pod for p in plan.placements), *sorted(left)):
        if name in pods:
            group = groups.setdefault(key(pods[name]), {"placed": 0, "left": 0, "usd": Decimal(0)})
            group["left" if name in left else "placed"] += 1
            group["usd"] += costs.get(name, Decimal(0))
    entries = [
        {"name": name, "podsPlaced": g["placed"], "podsLeftOut": g["left"], "usdPerHour": dollars(g["usd"])}
        for name, g in sorted(groups.items(), key=lambda item: (-item[1]["usd"], item[0]))
    ]
    return {"by": by, "groups": entries}


def pod_costs(plan: Plan) -> Mapping[str, Decimal]:
    """Dollars per hour of new nodes, by pod."""
    placed = {placement.pod: placement for placement in plan.placements}
    found: dict[str, Decimal] = {}
    for node in plan.launches:
        weights = {pod: _devices(placed[pod]) for pod in node.pods if pod in placed}
        if not any(weights.values()):
            weights = dict.fromkeys(weights, 1)
        total = sum(weights.values())
        for pod, weight in weights.items():
            found[pod] = found.get(pod, Decimal(0)) + (node.usd_per_hour or Decimal(0)) * weight / total
    return found


def _devices(placement: Placement) -> int:
    counts: dict[str, int] = {}
    for allocation in placement.allocations.values():
        for device in allocation.devices:
            counts[device.driver] = counts.get(device.driver, 0) + 1
    return max(counts.values(), default=0)


def costs_table(found: Mapping[str, Any]) -> Table:
    rows = tuple(
        (group["name"], str(group["podsPlaced"]), str(group["podsLeftOut"]), f"{Decimal(group['usdPerHour']):.2f}")
        for group in found["groups"]
    )
    what = str(found["by"]).removeprefix(_LABEL)
    return Table(f"Cost by {what}", (what, "pods placed", "left out", "$/h"), rows)
