"""The nearest miss: the reasons why claims do not fit a node, counted per request. Computed only after a failed search.

Each request passes the same steps as in the search: class, selectors, in use, taints, capacity, counters. The first
step that leaves fewer devices than wanted is the reason. If every request alone could be satisfied, the constraints are
left out one by one; if that does not help either, the combination is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from autoscaler.cel.common.evaluation import pay
from autoscaler.dra.allocation.capacity import CapacityError, has_room
from autoscaler.dra.allocation.constraints import attribute_of
from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.requests import ClaimPlan, RequestPlan, validate
from autoscaler.dra.allocation.search import BudgetExceededError, Search, SearchBudget
from autoscaler.dra.inventory.counters import CounterTable
from autoscaler.dra.inventory.pools import PooledDevice
from autoscaler.dra.inventory.selectors import Answer
from autoscaler.dra.inventory.taints import tolerated
from autoscaler.dra.outcome import FatalError
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import Constraint, ResourceClaim, UnknownConstraint
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap

# An explanation may not cost more than the decision: constraints are tried with small searches.
_TRIAL = SearchBudget(steps=2_000)


def explain(plans: Sequence[ClaimPlan], context: AllocationContext, *, unknown_is_yes: bool) -> tuple[Reason, ...]:
    """At least one reason, in claim and request order."""
    reasons = [reason for plan in plans for reason in _claim_reasons(plan, context, unknown_is_yes=unknown_is_yes)]
    if not reasons:
        reasons = [
            reason
            for plan in plans
            for reason in _constraint_reasons(plan.claim, context, unknown_is_yes=unknown_is_yes)
        ]
    if not reasons:
        reasons = [Reason.of(Code.NO_COMBINATION, Subject("claim", plan.claim.key)) for plan in plans]
    reasons.extend(
        Reason.of(Code.INVALID_POOL, Subject("pool", str(pool)), problem=pool.invalid)
        if pool.invalid
        else Reason.of(Code.INCOMPLETE_POOL, Subject("pool", str(pool)))
        for pool in context.pools.pools
        if pool.invalid or pool.incomplete
    )
    return tuple(reasons)


def _claim_reasons(plan: ClaimPlan, context: AllocationContext, *, unknown_is_yes: bool) -> Iterator[Reason]:
    for request in plan.requests:
        if isinstance(request, RequestPlan):
            miss = _miss(plan.claim, request, context, unknown_is_yes=unknown_is_yes)
            if miss is not None:
                yield miss
            continue
        misses = [_miss(plan.claim, alternative, context, unknown_is_yes=unknown_is_yes) for alternative in request]
        if all(misses):
            yield from (miss for miss in misses if miss is not None)


def _miss(
    claim: ResourceClaim, plan: RequestPlan, context: AllocationContext, *, unknown_is_yes: bool
) -> Reason | None:
    """The reason why a request cannot be satisfied even alone; None if it can."""
    wanted = plan.number
    if plan.everything is not None:
        wanted = max(1, wanted)
    subject = Subject.claim(claim.key, plan.name)
    left = list(context.pools.devices)
    pay(len(left))
    of_class = [pooled for pooled in left if plan.matches.of(pooled).stage != "class"]
    selected = [pooled for pooled in of_class if _selects(plan, pooled, unknown_is_yes=unknown_is_yes)]
    device_class = plan.request.device_class
    if wanted and not of_class:
        return Reason.of(Code.NO_DEVICE_OF_CLASS, subject, device_class=device_class, devices=len(left), wanted=wanted)
    if wanted and not selected:
        return Reason.of(
            Code.SELECTOR_FALSE,
            subject,
            device_class=device_class,
            devices=len(of_class),
            wanted=wanted,
            expressions=_refusing(plan, of_class),
        )
    if len(selected) < wanted:
        return Reason.of(
            Code.TOO_FEW_DEVICES, subject, wanted=wanted, found=len(selected), expressions=_refusing(plan, of_class)
        )
    remaining = selected
    for code, passes in _sieves(claim, plan, context):
        before, remaining = remaining, [pooled for pooled in remaining if passes(pooled)]
        if len(remaining) < wanted:
            return Reason.of(
                code, subject, wanted=wanted, found=len(remaining), of=len(before), **_detail(code, plan, before)
            )
    return None


def _selects(plan: RequestPlan, pooled: PooledDevice, *, unknown_is_yes: bool) -> bool:
    answer = plan.matches.of(pooled)
    return (answer.possible if unknown_is_yes else answer.certain) is Answer.YES


def _refusing(plan: RequestPlan, candidates: Sequence[PooledDevice]) -> tuple[str, ...]:
    """The expressions of the request that returned false, most frequent first."""
    counts: dict[str, int] = {}
    for pooled in candidates:
        expression = plan.matches.of(pooled).expression
        if expression:
            counts[expression] = counts.get(expression, 0) + 1
    return tuple(sorted(counts, key=lambda expression: -counts[expression]))


def _sieves(
    claim: ResourceClaim, plan: RequestPlan, context: AllocationContext
) -> Iterator[tuple[Code, Callable[[PooledDevice], bool]]]:
    """The further checks of a device, in the order in which they explain a failure best."""
    busy = context.exclusively_allocated()
    gates = context.profile.gates
    yield Code.DEVICES_IN_USE, lambda pooled: plan.admin or not busy[pooled.index]
    yield Code.DEVICE_TAINTED, lambda pooled: tolerated(pooled.taints, plan.request.tolerations)
    if gates.consumable_capacity:
        yield Code.CAPACITY_INSUFFICIENT, lambda pooled: _fits_capacity(plan, pooled, context)
    yield Code.COUNTERS_EXHAUSTED, lambda pooled: _fits_counters(pooled, context)
    for position in plan.constraints:
        attribute = _attribute(claim.constraints[position])
        yield Code.CONSTRAINT_UNSATISFIED, _Has(attribute)


@dataclass(frozen=True, slots=True)
class _Has:
    """A check that a device has the attribute of a constraint."""

    attribute: str

    def __call__(self, pooled: PooledDevice) -> bool:
        return attribute_of(pooled.device, pooled.driver, self.attribute) is not None


def _detail(code: Code, plan: RequestPlan, before: Sequence[PooledDevice]) -> dict[str, tuple[str, ...]]:
    if code is Code.DEVICE_TAINTED:
        return {"taints": tuple(sorted({f"{t.key}={t.value}:{t.effect}" for p in before for t in p.taints}))}
    if code is Code.CAPACITY_INSUFFICIENT:
        missing = tuple(name for name in plan.capacity if not any(name in p.device.capacity for p in before))
        return {"missing": missing} if missing else {"capacities": tuple(plan.capacity)}
    if code is Code.COUNTERS_EXHAUSTED:
        return {"counter_sets": tuple(sorted({counter[0] for p in before for counter, _ in p.draws}))}
    return {}


def _fits_capacity(plan: RequestPlan, pooled: PooledDevice, context: AllocationContext) -> bool:
    in_use = context.allocated.use_of(pooled.driver, pooled.pool.name).consumed.get(pooled.name)
    try:
        return has_room(plan.capacity, pooled.device.capacity, in_use=in_use or FrozenMap(), profile=context.profile)
    except CapacityError:
        return False


def _fits_counters(pooled: PooledDevice, context: AllocationContext) -> bool:
    if not pooled.draws:
        return not pooled.device.consumes_counters or context.profile.gates.partitionable_devices
    return CounterTable.of(pooled.pool.counters, context.drawn(pooled.pool)).take(pooled.draws)


def _constraint_reasons(claim: ResourceClaim, context: AllocationContext, *, unknown_is_yes: bool) -> Iterator[Reason]:
    """The constraints without which the claim alone would fit."""
    if not claim.constraints or _alone(claim, context, unknown_is_yes=unknown_is_yes):
        return
    for position, constraint in enumerate(claim.constraints):
        others = claim.constraints[:position] + claim.constraints[position + 1 :]
        if _alone(replace(claim, constraints=others), context, unknown_is_yes=unknown_is_yes):
            yield Reason.of(
                Code.CONSTRAINT_UNSATISFIED,
                Subject("claim", claim.key),
                attribute=_attribute(constraint),
                requests=constraint.requests,
            )


def _attribute(constraint: Constraint) -> str:
    return "" if isinstance(constraint, UnknownConstraint) else constraint.attribute


def _alone(claim: ResourceClaim, context: AllocationContext, *, unknown_is_yes: bool) -> bool:
    try:
        return Search(context, validate([claim], context).plans, unknown_is_yes=unknown_is_yes, budget=_TRIAL).run()
    except (FatalError, BudgetExceededError):
        return False
