"""Outcomes of allocations on nodes that have not changed, kept from one plan to the next.

A reconcile asks every node with room what it has for the pods that wait, and most nodes are as they were in the
reconcile before. What is kept of a node lives as long as its pools: until one of its slices changes. Questions are the
same if their claims ask for the same of the same devices in use, whoever asks; the answer names who asks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.results import owner_of_shares, with_shares_of
from autoscaler.dra.outcome import Allocated, AllocationOutcome, NotAllocated
from autoscaler.model.reason import Reason
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import replace

_MOST: Final = 8  # of one node: what is in use changes, and answers of before are of no use


def question(claims: Sequence[ResourceClaim], scene: AllocationContext) -> Hashable | None:
    """What the outcome depends on beside the node's pools; None where it is not kept.

    Quantities compare by value, and upstream's arithmetic depends on how they are written: requests for an amount of a
    device, and devices of which amounts are in use, are asked again.
    """
    if scene.devices.memory is None:
        return None
    uses = tuple(scene.uses())
    if any(use.shares or use.consumed for use in uses):
        return None
    asked = [request for claim in claims for request in claim.exact_requests]
    if any(request.capacity for request in asked):
        return None
    classes = scene.devices.classes
    return (
        tuple([(claim.namespace, *claim.spec_key()) for claim in claims]),
        tuple([classes.get(request.device_class) for request in asked]),
        uses,
    )


def kept(key: Hashable, claims: Sequence[ResourceClaim], scene: AllocationContext) -> AllocationOutcome | None:
    """The outcome for these claims, if the question was asked before."""
    known = scene.memo.outcomes.get(key)
    if known is None:
        return None
    return _told_again(*known, claims)


def keep(key: Hashable, claims: Sequence[ResourceClaim], scene: AllocationContext, outcome: AllocationOutcome) -> None:
    """Keep the outcome, if nothing but the question decided it: not how much work there was to spend."""
    if isinstance(outcome, Allocated | NotAllocated):
        if len(scene.memo.outcomes) >= _MOST:
            scene.memo.outcomes.clear()
        scene.memo.outcomes[key] = tuple(claims), outcome


def named_after(reason: Reason, names: Mapping[str, str]) -> Reason:
    """The same finding about other objects: a subject is one of the `names`, or starts with one and a comma."""
    subject, comma, rest = reason.subject.partition(",")
    new = names.get(subject)
    return reason if new is None else Reason(reason.code, f"{new}{comma}{rest}", reason.detail)


def _told_again(
    before: Sequence[ResourceClaim], outcome: Allocated | NotAllocated, claims: Sequence[ResourceClaim]
) -> AllocationOutcome:
    if isinstance(outcome, Allocated):
        pairs = zip(claims, outcome.allocations, strict=True)
        return replace(outcome, allocations=tuple(with_shares_of(owner_of_shares(c), a) for c, a in pairs))
    names = {f"claim {old.key}": f"claim {new.key}" for old, new in zip(before, claims, strict=True)}
    return replace(outcome, reasons=tuple(named_after(reason, names) for reason in outcome.reasons))
