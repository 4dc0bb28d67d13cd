"""Plan → the documented, versioned `Plan` object that `-o json|yaml` prints (docs/plan.md lists its fields).

Numbers of dollars are decimal strings, so that no reader rounds them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

from autoscaler.model.plan import Considered, Demand, LeftOut, NodeDecision, Placement, Plan, PlannedNode
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Reason
from autoscaler.model.resource_claim import Allocation
from autoscaler.report.reasons import text_of

Document: TypeAlias = dict[str, Any]
API_VERSION = "foreslice.dev/v1alpha1"


def document_of(plan: Plan) -> Document:
    """The whole plan as plain data. Key order is the reading order; absent optional facts are left out."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "kubernetesProfile": plan.profile,
        "catalogDigest": plan.catalog_digest,
        "summary": {
            "nodesToLaunch": len(plan.launches),
            "usdPerHour": dollars(plan.usd_per_hour),
            "podsPlaced": len(plan.placements),
            "podsLeftOut": len(plan.left_out),
            "podsOutOfScope": len(plan.out_of_scope),
        },
        "launches": [_launch(node) for node in plan.launches],
        "placements": [_placement(placement) for placement in plan.placements],
        "leftOut": [_left_out(entry) for entry in plan.left_out],
        "demands": [_demand(demand) for demand in plan.demands],
        "nodes": [_decision(decision) for decision in plan.nodes],
        "outOfScope": list(plan.out_of_scope),
        "warnings": reasons_document(plan.warnings),
    }


def reasons_document(reasons: tuple[Reason, ...]) -> list[Document]:
    """Reasons with their stable code, data and text."""
    return [
        {
            "code": reason.code.value,
            "subject": reason.subject,
            "message": text_of(reason),
            "detail": {key: list(value) if isinstance(value, tuple) else value for key, value in reason.detail.items()},
        }
        for reason in reasons
    ]


def dollars(amount: Decimal | None) -> str | None:
    """A price as decimal text without trailing zeros beyond two places; None when there is none."""
    if amount is None:
        return None
    text = f"{amount:.6f}".rstrip("0")
    whole, _, cents = text.partition(".")
    return f"{whole}.{cents.ljust(2, '0')}"


def offering_document(offering: OfferingRef) -> Document:
    """An offering by its coordinates."""
    document: Document = {
        "instanceType": offering.instance_type,
        "zone": offering.zone,
        "capacityType": offering.capacity_type,
        "usdPerHour": dollars(Decimal(offering.usd_per_hour)) if offering.usd_per_hour is not None else None,
    }
    if offering.block:
        document["capacityBlock"] = offering.block
    if offering.reservation:
        document["reservation"] = offering.reservation
    return document


def _launch(node: PlannedNode) -> Document:
    return {
        "name": node.name,
        "pool": node.pool,
        "drivers": list(node.drivers),
        "offering": offering_document(node.offering),
        "usdPerHour": dollars(node.usd_per_hour),
        "pods": list(node.pods),
        "devices": {
            "used": [str(device) for device in node.devices_used],
            "free": node.devices_total - len(node.devices_used),
        },
        "alternatives": [offering_document(offering) for offering in node.offerings[1:]],
        "prediction": {
            "instanceType": node.prediction.instance_type,
            "catalogDigest": node.prediction.catalog_digest,
            "slicesDigest": node.prediction.slices_digest,
        },
        "reasons": reasons_document(node.reasons),
    }


def _placement(placement: Placement) -> Document:
    return {
        "pod": placement.pod,
        "target": placement.target.value,
        "node": placement.node,
        "preference": placement.preference,
        "claims": {key: _allocation(allocation) for key, allocation in placement.allocations.items()},
        "reasons": reasons_document(placement.reasons),
    }


def _allocation(allocation: Allocation) -> list[Document]:
    return [
        {"request": device.request, "driver": device.driver, "pool": device.pool, "device": device.device}
        for device in allocation.devices
    ]


def _left_out(entry: LeftOut) -> Document:
    return {
        "pod": entry.pod,
        "verdict": entry.verdict,
        "claims": list(entry.claims),
        "reasons": reasons_document(entry.reasons),
        "nearMisses": [
            {"reason": reasons_document((miss.reason,))[0], "instanceTypes": miss.types, "example": miss.example}
            for miss in entry.near_misses
        ],
    }


def _demand(demand: Demand) -> Document:
    return {"pods": list(demand.pods), "considered": [_considered(entry) for entry in demand.considered]}


def _considered(entry: Considered) -> Document:
    return {
        "pool": entry.pool,
        "drivers": list(entry.drivers),
        "offering": offering_document(entry.offering),
        "outcome": entry.outcome,
        "nodes": entry.nodes,
        "reasons": reasons_document(entry.reasons),
    }


def _decision(decision: NodeDecision) -> Document:
    return {
        "provisionedNode": decision.provisioned_node,
        "disposal": decision.action.value,
        "deadline": decision.deadline.isoformat() if decision.deadline else None,
        "reasons": reasons_document(decision.reasons),
    }
