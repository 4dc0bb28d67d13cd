"""The entry point: allocates devices to all unallocated claims of a pod on one node, like kube-scheduler.

Callers keep two values, `ClusterDevices` and `AllocatedState`; `allocate` is a function of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from autoscaler.cel.common.evaluation import pay
from autoscaler.dra.allocation.capacity import guessed
from autoscaler.dra.allocation.constraints import attribute_of
from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.known_outcomes import keep, kept, question
from autoscaler.dra.allocation.nearest_miss import explain
from autoscaler.dra.allocation.requests import ClaimPlan, RequestPlan, guess_reason, validate
from autoscaler.dra.allocation.results import allocation_of
from autoscaler.dra.allocation.search import (
    DEFAULT_BUDGET,
    VERDICT_ONLY,
    BudgetExceededError,
    Search,
    SearchBudget,
)
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.dra.inventory.devices import ClusterDevices
from autoscaler.dra.inventory.pools import PooledDevice
from autoscaler.dra.inventory.selectors import Answer
from autoscaler.dra.outcome import (
    Allocated,
    AllocationOutcome,
    FatalAllocation,
    FatalError,
    NotAllocated,
    UnknownAllocation,
)
from autoscaler.model.node import Node
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.resource_slice import RuntimeOnly

__all__ = [
    "DEFAULT_BUDGET",
    "VERDICT_ONLY",
    "Allocated",
    "AllocatedState",
    "AllocationOutcome",
    "ClusterDevices",
    "FatalAllocation",
    "NotAllocated",
    "SearchBudget",
    "UnknownAllocation",
    "allocate",
]


# Up to this many requests are included in the steps of a search; each further one costs some 30 µs, for reading it and
# for the reason why it fails.
_FEW_REQUESTS: Final = 8
_REQUEST: Final = 150


def allocate(
    claims: Sequence[ResourceClaim],
    *,
    node: Node,
    devices: ClusterDevices,
    allocated: AllocatedState,
    budget: SearchBudget = DEFAULT_BUDGET,
) -> AllocationOutcome:
    """Allocate all `claims` (a pod's unallocated ones, in pod order) in one search.

    The search reads every unknown answer as no. If it fails and something was unknown, it runs again with unknown read
    as yes: if that fails as well, the claims do not fit; otherwise the outcome is unknown. Allocator of
    k8s.io/dynamic-resource-allocation (structured/internal/incubating, v0.36 and v0.37).
    """
    try:
        context = AllocationContext.of(node, devices, allocated)
    except FatalError as error:
        return FatalAllocation((error.reason,))
    where, asked = (node.name, node.labels, budget), (*claims, *context.uses())
    outcome = devices.answers.of(where, asked)
    if outcome is None:
        known = question(claims, context) if budget in (DEFAULT_BUDGET, VERDICT_ONLY) else None
        key = budget, known
        outcome = kept(key, claims, context) if known is not None else None
        if outcome is None:
            outcome = _allocated(claims, context, budget)
            if known is not None:
                keep(key, claims, context, outcome)
        devices.answers.remember(where, asked, outcome)
    return outcome


def _allocated(claims: Sequence[ResourceClaim], context: AllocationContext, budget: SearchBudget) -> AllocationOutcome:
    if context.pools.undecided:
        feature = f"sharedCounters, by {context.profile.name}"
        reason = Reason.of(Code.UNSUPPORTED, Subject("ResourceSlice", context.pools.undecided), feature=feature)
        return UnknownAllocation((reason,))
    requests = sum(len(request.alternatives) for claim in claims for request in claim.requests)
    pay(_REQUEST * max(0, requests - _FEW_REQUESTS))
    try:
        validation = validate(claims, context)
    except FatalError as error:
        return FatalAllocation((error.reason,))
    if validation.unknown:
        return UnknownAllocation(tuple(dict.fromkeys(validation.unknown)))
    certain = _attempt(validation.plans, context, budget, unknown_is_yes=False)
    if isinstance(certain, Allocated | UnknownAllocation):
        return certain
    unknown = unknown_reasons(validation.plans, context)
    if not unknown:  # a second search would read the same answers
        return certain
    if not budget.explains:  # an explanation reads all devices, and an unknown outcome names what is unknown of them
        return _allocated(claims, context, replace(budget, explains=True))
    possible = _attempt(validation.plans, context, budget, unknown_is_yes=True)
    if type(possible) is type(certain):
        return certain
    return UnknownAllocation(unknown)


def _attempt(
    plans: list[ClaimPlan], context: AllocationContext, budget: SearchBudget, *, unknown_is_yes: bool
) -> AllocationOutcome:
    search = Search(context, plans, unknown_is_yes=unknown_is_yes, budget=budget)
    subject = Subject("node", context.node.name)
    try:
        if not search.run():
            reasons = explain(plans, context, unknown_is_yes=unknown_is_yes) if budget.explains else ()
            return NotAllocated(reasons, node_error=context.pools.any_invalid, steps=search.steps)
        return Allocated(
            tuple(
                allocation_of(plan.claim, choices, context) for plan, choices in zip(plans, search.results, strict=True)
            ),
            choices=tuple(search.chosen[key] for key in sorted(search.chosen)),
            steps=search.steps,
        )
    except FatalError as error:
        return FatalAllocation((error.reason,))
    except BudgetExceededError:
        if search.times_out_upstream:
            # It does not matter if there is a solution: kube-scheduler gives up before it could find one.
            aborts = context.profile.allocator.deadline_is_error
            return NotAllocated((Reason.of(Code.SEARCH_TIMEOUT, subject, aborts_attempt=aborts),), steps=search.steps)
        return UnknownAllocation((Reason.of(Code.PLAN_BUDGET, subject, steps=budget.steps),))


def unknown_reasons(plans: list[ClaimPlan], context: AllocationContext) -> tuple[Reason, ...]:
    """The reasons why answers about devices are unknown, each once, as far as the search evaluated them."""
    reasons: dict[Reason, None] = {}
    for claim in plans:
        for plan in claim.plans():
            gaps = [claim.constraints[position].attribute for position in plan.constraints]
            for pooled, answer in zip(context.pools.devices, plan.matches.answers, strict=True):
                if answer is None:
                    continue
                if answer.unknown:
                    reasons.update(dict.fromkeys(answer.reasons))
                if answer.possible is Answer.YES:
                    reasons.update(dict.fromkeys(_gaps(plan, pooled, gaps)))
    return tuple(reasons)


def _gaps(plan: RequestPlan, pooled: PooledDevice, attributes: list[str]) -> Iterator[Reason]:
    """Values of a device that a constraint or capacity request needs and the catalog lacks."""
    for attribute in attributes:
        value = attribute_of(pooled.device, pooled.driver, attribute)
        if isinstance(value, RuntimeOnly) and value.is_catalog_gap:
            yield Reason.of(Code.CATALOG_UNKNOWN, Subject("device", str(pooled.id)), attributes=(attribute,))
    if guessed(plan.capacity, pooled.device.capacity):
        yield guess_reason(pooled, plan)
