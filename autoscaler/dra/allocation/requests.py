"""Validates what each request needs before the search (validateDeviceRequest, v0.36).

It continues to the end even if a request cannot be satisfied, and every error here takes precedence over any
combination that fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from autoscaler.dra.allocation.capacity import CapacityError, guessed, has_room
from autoscaler.dra.allocation.constraints import ConstraintRule, in_scope, rule_for
from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.inventory.pools import PooledDevice
from autoscaler.dra.inventory.selectable import RequestMatches
from autoscaler.dra.outcome import FatalError
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, Request, ResourceClaim
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

MAX_DEVICES_PER_CLAIM = 32


@dataclass(slots=True, eq=False)
class RequestPlan:
    """A request or subrequest, ready for the search. `number` devices are needed; All mode takes `everything`."""

    claim: int
    request: DeviceRequest
    parent: str  # "" unless a subrequest
    matches: RequestMatches
    number: int = 0
    everything: tuple[PooledDevice, ...] | None = None
    constraints: tuple[int, ...] = ()  # those of the claim's constraints that cover this request
    capacity: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)

    @property
    def admin(self) -> bool:
        """True if the request has adminAccess; subrequests cannot have it."""
        return bool(self.request.admin_access) and not self.parent

    @property
    def base(self) -> str:
        """The name of the request, the parent's for a subrequest."""
        return self.parent or self.request.name

    @property
    def name(self) -> str:
        """The name in allocation results."""
        return f"{self.parent}/{self.request.name}" if self.parent else self.request.name


@dataclass(slots=True, eq=False)
class ClaimPlan:
    """A claim, ready for the search: each request is one plan, or several alternatives in order of preference."""

    claim: ResourceClaim
    requests: list[RequestPlan | tuple[RequestPlan, ...]] = field(default_factory=list)
    constraints: tuple[ConstraintRule, ...] = ()

    @property
    def most_devices(self) -> int:
        return sum(
            request.number if isinstance(request, RequestPlan) else max(plan.number for plan in request)
            for request in self.requests
        )

    def plans(self) -> list[RequestPlan]:
        """All requests and subrequests in order."""
        flat: list[RequestPlan] = []
        for request in self.requests:
            flat.extend((request,) if isinstance(request, RequestPlan) else request)
        return flat


@dataclass(slots=True)
class Validation:
    """The outcome of the validation: plans, and the reasons that make every verdict unknown."""

    plans: list[ClaimPlan] = field(default_factory=list)
    unknown: list[Reason] = field(default_factory=list)


def validate(claims: Sequence[ResourceClaim], context: AllocationContext) -> Validation:
    """Check all claims in order. Raises FatalError."""
    validation = Validation()
    for index, claim in enumerate(claims):
        if claim.unsupported:
            validation.unknown.append(Reason.of(Code.UNSUPPORTED, Subject.claim(claim.key), fields=claim.unsupported))
        plan = ClaimPlan(claim)
        validation.plans.append(plan)
        _Validator(context, claim, index, validation).run(plan)
    return validation


@dataclass(slots=True)
class _Validator:
    """Checks one claim."""

    context: AllocationContext
    claim: ResourceClaim
    index: int
    validation: Validation

    def run(self, plan: ClaimPlan) -> None:
        """Fill in the plan's requests and constraints."""
        per_request = self.context.profile.allocator.limit_checked_per_request
        total = 0
        for request in self.claim.requests:
            self._check_gates(request)
            if isinstance(request, FirstAvailable):
                self._check_alternatives(request)
                alternatives = tuple(self._plan(sub, request.name) for sub in request.subrequests)
                plan.requests.append(alternatives)
                number = min(alternative.number for alternative in alternatives)
            else:
                single = self._plan(request, "")
                plan.requests.append(single)
                number = single.number
            total += number
            if per_request and total > MAX_DEVICES_PER_CLAIM:
                raise self._too_many(total)
        if total > MAX_DEVICES_PER_CLAIM:
            raise self._too_many(total)
        if not self.claim.constraints:
            return
        plan.constraints = tuple(self._rule(position) for position in range(len(self.claim.constraints)))
        for flat in plan.plans():
            subrequest = flat.request.name if flat.parent else ""
            flat.constraints = tuple(
                position
                for position, constraint in enumerate(self.claim.constraints)
                if in_scope(constraint.requests, request=flat.base, subrequest=subrequest)
            )

    def _too_many(self, total: int) -> FatalError:
        return FatalError.of(
            Code.TOO_MANY_DEVICES, Subject.claim(self.claim.key), wanted=total, limit=MAX_DEVICES_PER_CLAIM
        )

    def _check_gates(self, request: Request) -> None:
        gates = self.context.profile.gates
        alternatives = request.alternatives
        if not alternatives:
            raise self._malformed(request.name, "neither exactly nor firstAvailable is set")
        if isinstance(request, FirstAvailable) and not gates.prioritized_list:
            raise self._disabled(request.name, "DRAPrioritizedList")
        for alternative in alternatives:
            if alternative.capacity is not None and not gates.consumable_capacity:
                raise self._disabled(alternative.name, "DRAConsumableCapacity")

    def _check_alternatives(self, request: FirstAvailable) -> None:
        """Up to v0.35, All after the first subrequest uses answers and devices of an earlier one: unsupported."""
        confused = self.context.profile.allocator.all_alternatives_confused
        if confused and any(sub.allocation_mode == "All" for sub in request.subrequests[1:]):
            feature = f"allocationMode All in a later subrequest of firstAvailable, by {self.context.profile.name}"
            self.validation.unknown.append(
                Reason.of(Code.UNSUPPORTED, Subject.claim(self.claim.key, request.name), feature=feature)
            )

    def _plan(self, request: DeviceRequest, parent: str) -> RequestPlan:
        context = self.context
        if any(selector.expression is None for selector in request.selectors):
            raise self._malformed(request.name, "a selector has no cel expression")
        if request.admin_access is not None and not parent and not context.profile.gates.admin_access:
            raise self._disabled(request.name, "DRAAdminAccess")
        if not request.device_class:
            raise self._malformed(request.name, "deviceClassName is missing")
        device_class = context.devices.classes.get(request.device_class)
        if device_class is None:
            raise FatalError.of(
                Code.CLASS_NOT_FOUND, Subject.claim(self.claim.key, request.name), device_class=request.device_class
            )
        if request.unsupported:
            subject = Subject.claim(self.claim.key, request.name)
            self.validation.unknown.append(Reason.of(Code.UNSUPPORTED, subject, fields=request.unsupported))
        if device_class.unsupported:
            subject = Subject("DeviceClass", device_class.name)
            self.validation.unknown.append(Reason.of(Code.UNSUPPORTED, subject, fields=device_class.unsupported))
        plan = RequestPlan(
            claim=self.index,
            request=request,
            parent=parent,
            matches=context.memo.matches(device_class, request),
            capacity=request.capacity if request.capacity is not None else FrozenMap(),
        )
        match request.allocation_mode:
            case "ExactCount":
                plan.number = request.count
            case "All":
                plan.everything = self._everything(plan)
                plan.number = len(plan.everything)
            case other:
                raise self._malformed(request.name, f"allocationMode {other!r} is not supported")
        return plan

    def _everything(self, plan: RequestPlan) -> tuple[PooledDevice, ...]:
        """Every device that the request may have, allocated or not: all selectors are evaluated now."""
        context = self.context
        unfinished = context.pools.unfinished
        if unfinished is not None:
            raise FatalError.of(
                Code.ALL_OVER_UNFINISHED_POOL,
                Subject.claim(self.claim.key, plan.request.name),
                pool=str(unfinished),
                problem=unfinished.invalid or "incomplete",
            )
        found: list[PooledDevice] = []
        for pooled in context.pools.devices:
            answer = plan.matches.of(pooled)
            if answer.unknown:
                # Whether this device belongs to "all" decides what has to be free: no search can settle that.
                self.validation.unknown.extend(answer.reasons)
            if plan.matches.admits(pooled, unknown_is_yes=False) and self._worth_taking(plan, pooled):
                found.append(pooled)
        return tuple(found)

    def _worth_taking(self, plan: RequestPlan, pooled: PooledDevice) -> bool:
        profile = self.context.profile
        if not profile.gates.consumable_capacity:
            return True
        use = self.context.allocated.use_of(pooled.driver, pooled.pool.name)
        in_use = use.consumed.get(pooled.name) if profile.allocator.all_mode_drops_busy_capacity else None
        if guessed(plan.capacity, pooled.device.capacity):
            self.validation.unknown.append(guess_reason(pooled, plan))
        try:
            return has_room(plan.capacity, pooled.device.capacity, in_use=in_use or FrozenMap(), profile=profile)
        except CapacityError as error:
            raise capacity_failure(self.claim, plan, pooled, error) from error

    def _rule(self, position: int) -> ConstraintRule:
        rule = rule_for(self.claim.constraints[position], self.context.profile)
        if rule is not None:
            return rule
        raise FatalError.of(
            Code.MALFORMED_REQUEST,
            Subject("claim", self.claim.key, Subject("constraint", str(position))),
            problem="no known constraint type",
        )

    def _malformed(self, request: str, problem: str) -> FatalError:
        return FatalError.of(Code.MALFORMED_REQUEST, Subject.claim(self.claim.key, request), problem=problem)

    def _disabled(self, request: str, gate: str) -> FatalError:
        return FatalError.of(Code.FEATURE_DISABLED, Subject.claim(self.claim.key, request), gate=gate)


def guess_reason(pooled: PooledDevice, plan: RequestPlan) -> Reason:
    """The reason that the catalog has no sourced value for a requested capacity."""
    return Reason.of(Code.CATALOG_UNKNOWN, Subject("device", str(pooled.id)), capacities=tuple(plan.capacity))


def capacity_failure(claim: ResourceClaim, plan: RequestPlan, pooled: PooledDevice, error: CapacityError) -> FatalError:
    """The error of v0.37 for a capacity request that its arithmetic refuses."""
    return FatalError.of(
        Code.MALFORMED_REQUEST,
        Subject.claim(claim.key, plan.request.name),
        device=str(pooled.id),
        capacity=error.name,
        problem=error.problem,
    )
