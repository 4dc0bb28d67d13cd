"""Caches outcomes of allocations on unchanged nodes from one plan to the next.

A reconcile allocates on every node with room for the pending pods, and most nodes are unchanged since the previous
reconcile. Outcomes of a node are kept as long as its pools: until one of its slices changes. Two questions are the same
if their claims request the same with the same devices in use, for any pod; the answer names the claims that ask.
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

_MOST: Final = 8  # per node; answers for devices that were in use earlier are of no use


def question(claims: Sequence[ResourceClaim], context: AllocationContext) -> Hashable | None:
    """The cache key: everything that the outcome depends on beside the node's pools. None if it is not cached.

    Quantities compare by value, but upstream's arithmetic depends on how they are written. Therefore, nothing is cached
    for requests for an amount of a device, or while amounts of devices are in use.
    """
    if context.devices.memory is None:
        return None
    uses = tuple(context.uses())
    if any(use.shares or use.consumed for use in uses):
        return None
    asked = [request for claim in claims for request in claim.exact_requests]
    if any(request.capacity for request in asked):
        return None
    classes = context.devices.classes
    return (
        tuple([(claim.namespace, *claim.spec_key()) for claim in claims]),
        tuple([classes.get(request.device_class) for request in asked]),
        uses,
    )


def kept(key: Hashable, claims: Sequence[ResourceClaim], context: AllocationContext) -> AllocationOutcome | None:
    """The cached outcome, with the names of these claims; None if there is none."""
    known = context.memo.outcomes.get(key)
    if known is None:
        return None
    return _told_again(*known, claims)


def keep(
    key: Hashable, claims: Sequence[ResourceClaim], context: AllocationContext, outcome: AllocationOutcome
) -> None:
    """Cache the outcome if only the question decided it, and not the work budget."""
    if isinstance(outcome, Allocated | NotAllocated):
        if len(context.memo.outcomes) >= _MOST:
            context.memo.outcomes.clear()
        context.memo.outcomes[key] = tuple(claims), outcome


def named_after(reason: Reason, names: Mapping[str, str]) -> Reason:
    """The same reason about another claim, if its subject is one of the claims in `names`, or a part of one."""
    subject = reason.subject
    return replace(reason, subject=subject.renamed(names)) if subject.kind == "claim" else reason


def _told_again(
    before: Sequence[ResourceClaim], outcome: Allocated | NotAllocated, claims: Sequence[ResourceClaim]
) -> AllocationOutcome:
    if isinstance(outcome, Allocated):
        pairs = zip(claims, outcome.allocations, strict=True)
        return replace(outcome, allocations=tuple(with_shares_of(owner_of_shares(c), a) for c, a in pairs))
    names = {old.key: new.key for old, new in zip(before, claims, strict=True)}
    return replace(outcome, reasons=tuple(named_after(reason, names) for reason in outcome.reasons))
