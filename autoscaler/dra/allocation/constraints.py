"""matchAttribute and distinctAttribute: the further devices that a claim's constraint admits.

A constraint's state is an immutable argument and result, so the search can store, compare and restore it (constraint.go
and allocator_incubating.go of k8s.io/dynamic-resource-allocation, v0.36 and v0.37).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, TypeAlias

from autoscaler.model.resource_claim import Constraint, MatchAttribute, UnknownConstraint
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device, ListValue, RuntimeOnly, Version

State: TypeAlias = tuple[Any, ...]
START: State = ()

_SCALARS = (str, int, bool, Version, RuntimeOnly)


def state_key(state: Hashable) -> Hashable:
    """The state for comparisons: it contains attributes, and in Python 1 == True."""
    if type(state) is tuple:
        return tuple(map(state_key, state))
    return (bool, state) if type(state) is bool else state


class ConstraintRule(Protocol):
    """The rule of one constraint. `request` is the base name (the parent's for a subrequest)."""

    @property
    def attribute(self) -> str:
        """The fully qualified attribute."""

    def add(self, state: State, request: str, value: AttributeValue | None, *, unknown_is_yes: bool) -> State | None:
        """The state with one more device whose attribute is `value` (None: absent); None if the device is not admitted.

        `unknown_is_yes` also admits a device if the catalog lacks the value that decides.
        """

    def remove(self, state: State, request: str, before: State) -> State:
        """The state after removal of the device that changed it from `before` to `state`."""


def in_scope(requests: tuple[str, ...], *, request: str, subrequest: str) -> bool:
    """True if a constraint over `requests` covers a request, or a subrequest of it ("" for none)."""
    return not requests or request in requests or (bool(subrequest) and f"{request}/{subrequest}" in requests)


def attribute_of(device: Device, driver: str, attribute: str) -> AttributeValue | None:
    """The value under the qualified name, else under the bare name if the domain is the driver's (lookupAttribute)."""
    value = device.attributes.get(attribute)
    if value is None:
        domain, slash, name = attribute.partition("/")
        if slash and domain == driver:
            value = device.attributes.get(name)
    return value


def same(left: AttributeValue, right: AttributeValue) -> bool:
    """True for equal scalars of one kind: versions by text, run-time tokens by kind and group; otherwise False."""
    return type(left) is type(right) and isinstance(left, _SCALARS) and left == right


def undecided(left: AttributeValue, right: AttributeValue) -> bool:
    """True if the catalog lacks a value that decides if the two are equal."""
    gap = any(isinstance(value, RuntimeOnly) and value.is_catalog_gap for value in (left, right))
    return gap and not same(left, right) and _kind(left) == _kind(right)


def _clash(left: AttributeValue, right: AttributeValue, *, unknown_is_yes: bool) -> bool:
    return same(left, right) or (not unknown_is_yes and undecided(left, right))


class _Reversible:
    """A rule that restores the state before the addition when a device is removed."""

    __slots__ = ()

    def remove(self, state: State, request: str, before: State) -> State:
        """The state that the removed device was added to."""
        return before


@dataclass(frozen=True, slots=True)
class Match(_Reversible):
    """All devices share one value. State: (number of devices, the first one's value)."""

    attribute: str

    def add(self, state: State, request: str, value: AttributeValue | None, *, unknown_is_yes: bool) -> State | None:
        """The first device may have any kind of value."""
        if value is None:
            return None
        if not state:
            return (1, value)
        count, first = state
        return (count + 1, first) if same(value, first) or (unknown_is_yes and undecided(value, first)) else None


@dataclass(frozen=True, slots=True)
class MatchSets(_Reversible):
    """All devices share at least one value; a scalar is a set of one (gate DRAListTypeAttributes, v0.37)."""

    attribute: str

    def add(self, state: State, request: str, value: AttributeValue | None, *, unknown_is_yes: bool) -> State | None:
        """The state is a tuple with one item: the values common to all devices so far."""
        values = _as_set(value)
        if state:
            values &= frozenset(state)
        return tuple(sorted(values, key=repr)) or None


@dataclass(frozen=True, slots=True)
class Distinct(_Reversible):
    """No two devices share a value. State: every device's value."""

    attribute: str
    lists: bool = False

    def add(self, state: State, request: str, value: AttributeValue | None, *, unknown_is_yes: bool) -> State | None:
        """With lists, the value sets must be disjoint."""
        if value is None:
            return None
        if self.lists:
            values = _as_set(value)
            taken = any(not values.isdisjoint(other) for other in state if isinstance(other, frozenset))
            return None if taken or not values else (*state, values)
        if state and not isinstance(value, _SCALARS):
            return None
        return None if any(_clash(value, other, unknown_is_yes=unknown_is_yes) for other in state) else (*state, value)


@dataclass(frozen=True, slots=True)
class DistinctPerRequest:
    """Distinct in v0.35 and v0.36: one value is stored per base request, and deleted on backtracking.

    State: (number of devices, {request: value} as sorted pairs). Values 1, 2, 1 of one request pass.
    """

    attribute: str

    def add(self, state: State, request: str, value: AttributeValue | None, *, unknown_is_yes: bool) -> State | None:
        """A new device is compared with all stored values, then replaces the value of its own request."""
        if value is None:
            return None
        count, remembered = _remembered(state)
        if count and remembered and not isinstance(value, _SCALARS):
            return None
        if count and any(_clash(value, other, unknown_is_yes=unknown_is_yes) for other in remembered.values()):
            return None
        return _remember(count + 1, {**remembered, request: value})

    def remove(self, state: State, request: str, before: State) -> State:
        """The request's entry is deleted, even if an earlier device of the request remains."""
        count, remembered = _remembered(state)
        remembered.pop(request, None)
        return _remember(count - 1, remembered)


@dataclass(frozen=True, slots=True)
class DistinctIdentity(_Reversible):
    """Distinct in v0.34: values are compared by address, so different devices always differ."""

    attribute: str

    def add(self, state: State, request: str, value: AttributeValue | None, *, unknown_is_yes: bool) -> State | None:
        """Only a missing value rejects a device; two shares of one device count as different."""
        return None if value is None else state


def rule_for(constraint: Constraint, profile: KubernetesProfile) -> ConstraintRule | None:
    """The rule of the profile's allocator; None for a constraint that this allocator does not support."""
    if isinstance(constraint, UnknownConstraint):
        return None
    lists = profile.gates.list_type_attributes and profile.allocator.list_constraints
    if isinstance(constraint, MatchAttribute):
        return MatchSets(constraint.attribute) if lists else Match(constraint.attribute)
    if not profile.allocator.distinct_attribute:
        return None
    if lists or profile.allocator.distinct_remembers_all:
        return Distinct(constraint.attribute, lists)
    if profile.allocator.distinct_by_identity:
        return DistinctIdentity(constraint.attribute)
    return DistinctPerRequest(constraint.attribute)


def _as_set(value: AttributeValue | None) -> frozenset[object]:
    if isinstance(value, ListValue):
        return frozenset((value.kind, item) for item in value.items)
    return frozenset({(_kind(value), value)}) if isinstance(value, _SCALARS) else frozenset()


def _kind(value: AttributeValue | None) -> str:
    match value:
        case RuntimeOnly():
            return value.kind
        case Version():
            return "version"
        case bool():
            return "bool"
        case int():
            return "int"
        case str():
            return "string"
        case _:
            return ""


def _remembered(state: State) -> tuple[int, dict[str, AttributeValue]]:
    if not state:
        return 0, {}
    count, pairs = state
    return count, dict(pairs)


def _remember(count: int, remembered: dict[str, AttributeValue]) -> State:
    return (count, tuple(sorted(remembered.items()))) if count else START
