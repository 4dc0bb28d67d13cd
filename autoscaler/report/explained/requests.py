"""The answer to a ProvisioningRequest or a CapacityBuffer: the data of `foreslice explain`, and its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from autoscaler.model.capacity_answers import AnswerCondition
from autoscaler.model.plan import Plan
from autoscaler.model.requested_capacity import CapacityBuffer, Condition, ProvisioningRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import owner_of
from autoscaler.planning.answers import request_answers
from autoscaler.planning.buffer_answers import buffer_answers
from autoscaler.report.capacity_answers import buffer_message, request_message
from autoscaler.report.words import money
from instance_catalog.dataclass import replace


def request_explanation(request: ProvisioningRequest, snapshot: Snapshot, plan: Plan, now: datetime) -> dict[str, Any]:
    """Its class, its status, and the status that Foreslice would write now if it serves the class."""
    alone = replace(snapshot, provisioning_requests=(request,))
    answers = request_answers(alone, plan, now, {request.key: plan})
    return {
        "provisioningRequest": request.key,
        "class": request.class_name,
        "served": request.served is not None,
        "pods": request.pods,
        "conditions": [_condition(entry) for entry in request.conditions],
        "details": dict(request.details),
        "now": [
            _answered(condition, request_message(answer, condition))
            for answer in answers
            for condition in answer.conditions
        ],
        "leftOut": _left_out(plan, "ProvisioningRequest", request.key),
    }


def buffer_explanation(buffer: CapacityBuffer, snapshot: Snapshot, plan: Plan) -> dict[str, Any]:
    """Its strategy, its status, and the status that Foreslice would write now, with its cost per hour."""
    alone = replace(snapshot, capacity_buffers=(buffer,))
    answers = buffer_answers(alone, plan)
    prices = [answer.usd_per_hour for answer in answers]
    return {
        "capacityBuffer": buffer.key,
        "strategy": buffer.strategy,
        "served": buffer.served,
        "pods": sum(answer.replicas for answer in answers),
        "usdPerHour": None if None in prices else str(sum(price for price in prices if price is not None)),
        "conditions": [_condition(entry) for entry in buffer.conditions],
        "now": [
            _answered(condition, buffer_message(answer, condition))
            for answer in answers
            for condition in answer.conditions
        ],
        "leftOut": _left_out(plan, "CapacityBuffer", buffer.key),
    }


def _condition(entry: Condition) -> dict[str, Any]:
    return {"type": entry.type, "status": entry.status, "reason": entry.reason, "message": entry.message}


def _answered(condition: AnswerCondition, message: str) -> dict[str, Any]:
    status = "True" if condition.true else "False"
    return {"type": condition.type, "status": status, "reason": condition.why.value, "message": message}


def _left_out(plan: Plan, kind: str, key: str) -> list[str]:
    """The keys of its pods without a place."""
    entries = ((entry.pod, owner_of(entry.pod)) for entry in (*plan.left_out, *plan.outside))
    return [pod for pod, owner in entries if owner is not None and (owner.kind, owner.key) == (kind, key)]


def request_lines(found: Mapping[str, Any]) -> Iterator[str]:
    if "provisioningRequest" in found:
        yield f"ProvisioningRequest {found['provisioningRequest']} of class {found['class']}: {found['pods']} pods"
    else:
        cost = "no price" if found["usdPerHour"] is None else f"{money(found['usdPerHour'])} $/h"
        yield f"CapacityBuffer {found['capacityBuffer']}: {found['pods']} pods, {cost}"
    if not found["served"]:
        yield "  Foreslice does not serve it: it belongs to another autoscaler"
    for title, entries in (("Says", found["conditions"]), ("Would say now", found["now"])):
        if entries:
            yield f"{title}:"
        for entry in entries:
            yield f"  {entry['type']}={entry['status']} ({entry['reason']}): {entry['message']}"
