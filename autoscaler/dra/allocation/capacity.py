"""Consumable capacity: the amount that a request takes of a device, and the check that it is available.

Upstream: consumable_capacity.go of k8s.io/dynamic-resource-allocation structured/internal (v0.36; v0.37 adds milli-unit
arithmetic and turns negative or unrepresentable requests into errors). With the gate on, this filters every device,
shareable or not; consumption is recorded only for shareable ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from autoscaler.dra.inventory.allocated import Consumed
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.kubernetes.resource_slice import Capacity, RequestPolicy, ValidRange

Requested: TypeAlias = Mapping[str, Quantity]

_NOTHING: Consumed = FrozenMap()
_INT64_MAX = 2**63 - 1


class CapacityError(ValueError):
    """A request that upstream's arithmetic refuses; has the name of the capacity and the problem."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"capacity {name}: {problem}")
        self.name = name
        self.problem = problem


def has_room(
    requested: Requested,
    capacities: Mapping[str, Capacity],
    *,
    in_use: Requested = _NOTHING,
    profile: KubernetesProfile,
) -> bool:
    """True if the policies admit the request and its amounts are available beside `in_use`. May raise CapacityError."""
    if any(name not in capacities for name in requested):
        return False
    # Amounts are computed first: an error counts even if another capacity before it is exceeded.
    amounts = consumption(requested, capacities, profile)
    for name, capacity in capacities.items():
        amount = amounts[name]
        try:
            if violates(name, amount, capacity.policy, profile):
                return False
            if name in in_use:
                amount = in_use[name] + amount
        except QuantityError as error:  # an exponent far out of range
            raise CapacityError(name, str(error)) from error
        if amount > capacity.value:
            return False
    return True


@lru_cache(maxsize=4096)
def plain(capacities: FrozenMap[str, Capacity]) -> bool:
    """True if no capacity has a policy or a negative value: a request for nothing always fits."""
    return all(capacity.policy is None and capacity.value.sign >= 0 for capacity in capacities.values())


def guessed(requested: Requested, capacities: Mapping[str, Capacity]) -> bool:
    """True if the request is for a capacity whose value the catalog estimates."""
    return any(name in capacities and capacities[name].guess for name in requested)


def consumption(requested: Requested, capacities: Mapping[str, Capacity], profile: KubernetesProfile) -> Consumed:
    """The amounts that an allocation records, for every capacity of the device (GetConsumedCapacityFromRequest)."""
    return FrozenMap({name: taken(name, requested.get(name), c, profile) for name, c in capacities.items()})


def taken(name: str, requested: Quantity | None, capacity: Capacity, profile: KubernetesProfile) -> Quantity:
    """The amount of one capacity that a request takes (calculateConsumedCapacity). May raise CapacityError."""
    try:
        amount = _taken(name, requested, capacity, profile)
    except QuantityError as error:
        raise CapacityError(name, str(error)) from error
    if profile.allocator.capacity_errors_fatal and amount.sign < 0:
        raise CapacityError(name, "the amount is negative")
    return amount


def _taken(name: str, requested: Quantity | None, capacity: Capacity, profile: KubernetesProfile) -> Quantity:
    policy = capacity.policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _raised_to_range(name, requested, policy.valid_range, policy.valid_range.min, profile)
    return next((value for value in policy.valid_values if requested <= value), requested)


def violates(name: str, amount: Quantity, policy: RequestPolicy | None, profile: KubernetesProfile) -> bool:
    """True if the policy refuses the amount (violatesPolicy). A default passes if it is written the same way."""
    if policy is None or (policy.default is not None and amount.same_form(policy.default)):
        return False
    if policy.valid_range is not None:
        return _outside(name, amount, policy.valid_range, profile)
    return bool(policy.valid_values) and all(amount != value for value in policy.valid_values)


def _raised_to_range(
    name: str, requested: Quantity, valid: ValidRange, low: Quantity, profile: KubernetesProfile
) -> Quantity:
    if requested < low:
        return low
    if valid.step is None:
        return requested
    if profile.gates.fractional_capacity_range:
        if all(_whole_millis(bound) for bound in (low, valid.max, valid.step) if bound is not None):
            return _raised_in_millis(name, requested, low, valid.step)
        if requested.ceil() > _INT64_MAX:
            raise CapacityError(name, f"request {requested} is beyond 64-bit arithmetic")
    step, start = valid.step.int64_value(), low.int64_value()
    if step == 0:
        raise CapacityError(name, "the policy's step must not be 0")
    # Go's division truncates and its sums overflow, so the result for a huge request is an unexpected value.
    gap = _wrapped(requested.int64_value() - start)
    steps = abs(gap) // abs(step) * (1 if (gap >= 0) == (step > 0) else -1)
    if gap - steps * step:
        steps += 1
    return Quantity.of(_wrapped(start + step * steps), "BinarySI")


def _raised_in_millis(name: str, requested: Quantity, low: Quantity, step: Quantity) -> Quantity:
    wanted = requested.milli()
    if wanted > _INT64_MAX:
        raise CapacityError(name, f"request {requested} is beyond 64-bit arithmetic in thousandths")
    steps = -(-(wanted - low.milli()) // step.milli())
    total = low.milli() + steps * step.milli()
    if total > _INT64_MAX:
        raise CapacityError(name, f"request {requested} rounds up beyond 64-bit arithmetic in thousandths")
    if total % 1000 == 0:
        return Quantity.of(total // 1000, step.format)
    return Quantity(total, -3, step.format)


def _outside(name: str, amount: Quantity, valid: ValidRange, profile: KubernetesProfile) -> bool:
    if valid.max is not None and amount > valid.max:
        return True
    if valid.step is None:
        return False
    low, step = valid.min, valid.step
    if low is None or step.sign == 0:
        raise CapacityError(name, "the policy's step needs a min and must not be 0")  # upstream crashes here
    if profile.gates.fractional_capacity_range and all(_whole_millis(value) for value in (amount, low, step)):
        return (amount.milli() - low.milli()) % step.milli() != 0
    return _wrapped(amount.int64_value() - low.int64_value()) % step.int64_value() != 0


def _whole_millis(quantity: Quantity) -> bool:
    return quantity.scale >= -3 or Quantity(quantity.milli(), -3) == quantity


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63
