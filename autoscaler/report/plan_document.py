"""The documented, versioned `Plan` object that `-o json|yaml` prints (docs/plan.md lists its fields).

Offerings and reasons are written once, with an id, and referenced by it. Dollar amounts are decimal strings, so that no
reader rounds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, TypeAlias

from autoscaler.model.plan import Considered, Demand, LeftOut, NodeDecision, Placement, Plan, PlannedNode
from autoscaler.model.provisioned_node import BootTimes, OfferingRef
from autoscaler.model.reason import NO_SUBJECT, Reason, Subject
from autoscaler.model.resource_claim import Allocation
from autoscaler.report.reasons import text_of
from autoscaler.report.tables.defragmentation import fragmentation_data, room_data
from instance_catalog.dataclass import replace

Document: TypeAlias = dict[str, Any]
API_VERSION = "foreslice.dev/v1alpha2"


def document_of(plan: Plan) -> Document:
    """The whole plan as plain data. Key order is the reading order; absent optional facts are left out."""
    shared = _Shared()
    prices = {(n.offering.price_region, n.offering.price_date) for n in plan.launches if n.offering.price_region}
    document: Document = {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "kubernetesProfile": plan.profile,
        "catalogDigest": plan.catalog_digest,
        "summary": {
            "nodesToLaunch": len(plan.launches),
            "usdPerHour": dollars(plan.usd_per_hour),
            **_bound(plan),
            "pricesOf": [{"region": region, "date": date} for region, date in sorted(prices)],
            "podsPlaced": len(plan.placements),
            "podsLeftOut": len(plan.left_out),
            "podsOutOfScope": len(plan.out_of_scope),
            **({"fragmentation": fragmentation_data(plan)} if plan.fragmentation else {}),
        },
        "warnings": reasons_document(plan.warnings),
        "launches": [shared.launch(node) for node in plan.launches],
        "placements": [shared.placement(placement) for placement in plan.placements],
        "leftOut": [shared.left_out(entry) for entry in plan.left_out],
        "outOfScope": [{"pod": entry.pod, "reasons": shared.reasons_of(_own(entry))} for entry in plan.outside],
        "demands": shared.demands(plan.demands),
        "nodes": [shared.decision(decision) for decision in plan.nodes],
        **({"room": room_data(plan, dollars)} if plan.room else {}),
    }
    return {
        **document,
        "candidates": shared.candidates,
        "offerings": shared.offerings,
        "reasons": shared.reasons,
    }


def _bound(plan: Plan) -> Document:
    """The lower bound if there is one, and the percentage by which the plan costs more."""
    if plan.at_least_usd_per_hour is None:
        return {}
    above = plan.above_least
    gap = {} if above is None else {"percentAboveLowerBound": f"{100 * above:.2f}"}
    return {"lowerBoundUsdPerHour": dollars(plan.at_least_usd_per_hour), **gap}


def reasons_document(reasons: Iterable[Reason]) -> list[Document]:
    """Reasons with their stable code, data and text."""
    return [
        {
            "code": reason.code.value,
            "subject": str(replace(reason.subject, others=0)),
            **({"others": reason.subject.others} if reason.subject.others else {}),
            "message": text_of(reason),
            "detail": {key: list(value) if isinstance(value, tuple) else value for key, value in reason.detail.items()},
        }
        for reason in reasons
    ]


def dollars(amount: Decimal | None) -> str | None:
    """A price as decimal text without trailing zeros beyond two places; None if there is none."""
    if amount is None:
        return None
    text = f"{amount:.6f}".rstrip("0")
    whole, _, cents = text.partition(".")
    return f"{whole}.{cents.ljust(2, '0')}"


def offering_document(offering: OfferingRef) -> Document:
    """An offering by its coordinates, with source and date of its price."""
    document: Document = {
        "instanceType": offering.instance_type,
        "zone": offering.zone,
        "capacityType": offering.capacity_type.value,
        "usdPerHour": dollars(offering.usd_per_hour),
    }
    optional = {
        "region": offering.region,
        "priceRegion": offering.price_region,
        "priceDate": offering.price_date,
        "capacityBlock": offering.block,
        "reservation": offering.reservation,
    }
    return document | {key: value for key, value in optional.items() if value}


def _handed_out(node: PlannedNode) -> Document:
    found = {one.resource: {"used": one.used, "free": one.free} for one in node.handed_out}
    return {"handedOut": found} if found else {}


def _ready_in(times: BootTimes | None) -> Document:
    """The time that such machines took in this cluster until pods could run on them."""
    if times is None:
        return {}
    slow = {} if times.slow is None else {"p90Seconds": int(times.slow.total_seconds())}
    return {"readyIn": {"boots": times.boots, "medianSeconds": int(times.median.total_seconds()), **slow}}


class _Shared:
    """Offerings, reasons and candidates (an offering of a pool, with drivers) by id, in the order of first use."""

    def __init__(self) -> None:
        self.offerings: dict[str, Document] = {}
        self.reasons: dict[str, Document] = {}
        self.candidates: dict[str, Document] = {}
        self._candidate_ids: dict[tuple[object, ...], str] = {}
        self._offering_ids: dict[tuple[object, ...], str] = {}
        self._reason_ids: dict[Reason, str] = {}

    def offering(self, offering: OfferingRef) -> str:
        key = (offering, offering.region)
        if key not in self._offering_ids:
            self._offering_ids[key] = f"o{len(self.offerings) + 1}"
            self.offerings[self._offering_ids[key]] = offering_document(offering)
        return self._offering_ids[key]

    def reasons_of(self, reasons: Iterable[Reason]) -> list[str]:
        return [self._reason(reason) for reason in reasons]

    def _reason(self, reason: Reason) -> str:
        if reason not in self._reason_ids:
            self._reason_ids[reason] = f"r{len(self.reasons) + 1}"
            (self.reasons[self._reason_ids[reason]],) = reasons_document([reason])
        return self._reason_ids[reason]

    def launch(self, node: PlannedNode) -> Document:
        return {
            "name": node.name,
            "pool": node.pool,
            "drivers": list(node.publishing),
            "offering": self.offering(node.offering),
            "usdPerHour": dollars(node.usd_per_hour),
            "pods": list(node.pods),
            "devices": {
                "used": [str(device) for device in node.devices_used],
                "free": node.devices_total - len(node.devices_used),
                **_handed_out(node),
            },
            "alternatives": [self.offering(offering) for offering in node.offerings[1:]],
            "prediction": {
                "instanceType": node.prediction.instance_type,
                "catalogDigest": node.prediction.catalog_digest,
                "slicesDigest": node.prediction.slices_digest,
            },
            "reasons": self.reasons_of(node.reasons),
            **_ready_in(node.ready_in),
        }

    def placement(self, placement: Placement) -> Document:
        return {
            "pod": placement.pod,
            "target": placement.target.value,
            "node": placement.node,
            "preference": placement.preference,
            "claims": {key: _allocation(allocation) for key, allocation in placement.allocations.items()},
            "reasons": self.reasons_of(placement.reasons),
        }

    def left_out(self, entry: LeftOut) -> Document:
        return {
            "pod": entry.pod,
            "verdict": entry.verdict.value,
            "claims": list(entry.claims),
            "reasons": self.reasons_of(_own(entry)),
            "instanceTypes": entry.types,
            "nearMisses": [
                {"reason": self._reason(reason), "instanceTypes": miss.types, "example": miss.example}
                for miss, reason in zip(
                    entry.near_misses, _own(entry, [miss.reason for miss in entry.near_misses]), strict=True
                )
            ],
        }

    def demands(self, demands: Iterable[Demand]) -> list[Document]:
        """Demands with the same considered offerings are one entry."""
        found: dict[str, Document] = {}
        for demand in demands:
            considered = self._considered_for(demand)
            entry = found.setdefault(repr(considered), {"pods": [], "considered": considered})
            entry["pods"] += demand.pods
        return list(found.values())

    def _considered_for(self, demand: Demand) -> list[Document]:
        """The considered offerings; those with the same outcome and reasons together."""
        subjects = (reason.subject for entry in demand.considered for reason in entry.reasons)
        claims = {subject.name for subject in subjects if subject.kind == "claim"}
        only = Subject("claim", claims.pop()) if len(claims) == 1 else NO_SUBJECT
        groups: dict[tuple[object, ...], list[Considered]] = {}
        for entry in demand.considered:
            key = (entry.outcome, entry.nodes, tuple(_without_names(entry, demand, only)))
            groups.setdefault(key, []).append(entry)
        return [self._considered(group, tuple(_without_names(group[0], demand, only))) for group in groups.values()]

    def _considered(self, group: list[Considered], reasons: tuple[Reason, ...]) -> Document:
        return {
            "outcome": group[0].outcome.value,
            "nodes": group[0].nodes,
            "reasons": self.reasons_of(reasons),
            "candidates": [self._candidate(entry) for entry in group],
        }

    def _candidate(self, entry: Considered) -> str:
        key = (entry.pool, entry.drivers, entry.offering, entry.offering.region)
        if key not in self._candidate_ids:
            self._candidate_ids[key] = f"c{len(self.candidates) + 1}"
            self.candidates[self._candidate_ids[key]] = {
                "pool": entry.pool,
                "drivers": list(entry.drivers),
                "offering": self.offering(entry.offering),
            }
        return self._candidate_ids[key]

    def decision(self, decision: NodeDecision) -> Document:
        return {
            "provisionedNode": decision.provisioned_node,
            "disposal": decision.action.value,
            "deadline": decision.deadline.isoformat() if decision.deadline else None,
            "reasons": self.reasons_of(decision.reasons),
        }


def _own(entry: LeftOut, reasons: Iterable[Reason] | None = None) -> Iterable[Reason]:
    """Reasons of a pod without its own name or that of its only claim as the subject: equal pods then share them."""
    claim = Subject("claim", entry.claims[0]) if len(entry.claims) == 1 else NO_SUBJECT
    own = (Subject("pod", entry.pod), claim)
    return [_without(reason, own) for reason in (entry.reasons if reasons is None else reasons)]


def _without_names(entry: Considered, demand: Demand, claim: Subject) -> Iterable[Reason]:
    """Reasons without the names of the demand's pods, of its only claim, and of the offering itself."""
    own = (Subject("offering", entry.offering.instance_type), Subject("pod", demand.pods[0]), claim)
    return [_without(reason, own) for reason in entry.reasons]


def _without(reason: Reason, own: tuple[Subject, ...]) -> Reason:
    part = reason.subject.part or NO_SUBJECT
    return replace(reason, subject=part) if replace(reason.subject, part=None) in own else reason


def _allocation(allocation: Allocation) -> list[Document]:
    return [
        {"request": device.request, "driver": device.driver, "pool": device.pool, "device": device.device}
        for device in allocation.devices
    ]
