"""The effect of a plan on one claim or one node: the data of `foreslice explain` for claims and nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.resource_claim import Allocation, DeviceRequest, FirstAvailable, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.report.events import offering_text
from autoscaler.report.plan_document import dollars
from autoscaler.report.reasons import text_of
from autoscaler.report.words import money


def claim_explanation(claim: ResourceClaim, snapshot: Snapshot, plan: Plan) -> dict[str, Any]:
    """The claim, the pods that use it, and the devices that it has or would get."""
    users = [pod.key for pod in snapshot.pods if claim.key in claim_keys(pod)]
    would = next((p for p in plan.placements if claim.key in p.allocations), None)
    node = next((pod.node_name for pod in snapshot.pods if pod.key in users and pod.node_name), None)
    allocation = claim.allocation or (would.allocations[claim.key] if would else None)
    return {
        "claim": claim.key,
        "state": "allocated" if claim.allocation else "pending",
        "requests": [line for request in claim.requests for line in _requests(request)],
        "pods": users,
        "node": node or (would.node if would else ""),
        "devices": _devices(allocation) if allocation else [],
        "leftOut": [entry.pod for entry in (*plan.left_out, *plan.outside) if entry.pod in users],
    }


def _requests(request: DeviceRequest | FirstAvailable) -> Iterator[dict[str, Any]]:
    if isinstance(request, FirstAvailable):
        for place, alternative in enumerate(request.subrequests, 1):
            yield {**_request(alternative, f"{request.name}/{alternative.name}"), "alternative": place}
        return
    yield _request(request, request.name)


def _request(request: DeviceRequest, name: str) -> dict[str, Any]:
    return {
        "request": name,
        "deviceClass": request.device_class,
        "count": None if request.allocation_mode == "All" else request.count,
        "selectors": [selector.expression or "" for selector in request.selectors],
    }


def _devices(allocation: Allocation) -> list[str]:
    return [f"{d.driver}/{d.pool}/{d.device}" for d in allocation.devices]


def claim_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"ResourceClaim {found['claim']} is {found['state']}"
    lines = []
    for entry in found["requests"]:
        many = "all devices" if entry["count"] is None else f"{entry['count']} of class"
        which = f" (alternative {entry['alternative']})" if "alternative" in entry else ""
        lines.append(f"{entry['request']}{which}: {many} {entry['deviceClass']}")
        lines += [f"  {selector}" for selector in entry["selectors"]]
    yield from section("Requests", lines)
    yield from section("Used by", found["pods"] or ["no pod"])
    if found["devices"]:
        has = "Devices" if found["state"] == "allocated" else "Devices that the plan allocates"
        yield from section(f"{has} on node {found['node']}", found["devices"])


def node_explanation(name: str, snapshot: Snapshot, plan: Plan) -> dict[str, Any] | None:
    """A node that exists, is starting, or would be launched; None if there is no such node."""
    launch = next((node for node in plan.launches if node.name == name), None)
    if launch is not None:
        return _planned(launch)
    owned = next((node for node in snapshot.provisioned if name in (node.name, node.node_name)), None)
    there = next((node for node in snapshot.nodes if name in (node.name, owned.node_name if owned else name)), None)
    if owned is None and there is None:
        return None
    names = {name, *([there.name] if there else []), *([owned.name, owned.node_name] if owned else [])}
    placed = [p for p in plan.placements if p.node in names]
    return {
        "node": there.name if there else owned.node_name if owned else name,
        "state": (owned.phase.value if owned else "exists") if there is None or owned else "exists",
        **_bought(owned),
        "waitingSince": _waiting_since(owned, snapshot),
        "pods": [pod.key for pod in snapshot.pods if pod.node_name in names],
        "podsPlanned": [p.pod for p in placed],
        "devicesPlanned": [d for p in placed for a in p.allocations.values() for d in _devices(a)],
        "decision": next(
            (
                {"action": d.action.value, "reasons": list(map(text_of, d.reasons))}
                for d in plan.nodes
                if owned and d.provisioned_node == owned.name
            ),
            None,
        ),
    }


def _bought(owned: ProvisionedNode | None) -> dict[str, Any]:
    if owned is None:
        return {"pool": "", "offering": "", "usdPerHour": None}
    return {
        "pool": owned.pool,
        "offering": offering_text(owned.offering),
        "usdPerHour": dollars(owned.offering.usd_per_hour),
    }


def _waiting_since(owned: ProvisionedNode | None, snapshot: Snapshot) -> str | None:
    since = snapshot.waiting.get(owned.name) if owned else None
    return since.isoformat() if since else None


def _planned(launch: PlannedNode) -> dict[str, Any]:
    return {
        "node": launch.name,
        "state": "would be launched",
        "pool": launch.pool,
        "offering": offering_text(launch.offering),
        "usdPerHour": dollars(launch.usd_per_hour),
        "drivers": list(launch.publishing),
        "pods": [],
        "podsPlanned": list(launch.pods),
        "devicesPlanned": [str(device) for device in launch.devices_used],
        "devicesFree": launch.devices_total - len(launch.devices_used),
        "decision": {"action": "launch", "reasons": list(map(text_of, launch.reasons))},
    }


def node_lines(found: Mapping[str, Any]) -> Iterator[str]:
    state = found["state"]
    yield f"Node {found['node']} {state if ' ' in state or state == 'exists' else f'is {state}'}"
    if found["offering"]:
        price = f" at {money(found['usdPerHour'])} $/h" if found["usdPerHour"] else ""
        pool = f", pool {found['pool']}" if found["pool"] else ""
        yield f"  {found['offering']}{price}{pool}"
    if found.get("waitingSince"):
        yield f"  requested; the provider has held the request since {found['waitingSince']}"
        yield "  and starts the node when it has capacity; nothing is charged until then"
    yield from section("Pods", found["pods"])
    yield from section("Pods that the plan places on it", found["podsPlanned"])
    yield from section("Devices that they get", found["devicesPlanned"])
    if found["decision"]:
        yield from section(
            f"Decision: {found['decision']['action']}", found["decision"]["reasons"] or ["no reason given"]
        )


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A heading with its lines; nothing without lines."""
    listed = list(lines)
    if listed:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in listed)
