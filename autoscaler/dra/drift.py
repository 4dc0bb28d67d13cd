"""Finds the differences between predicted and published slices that affect a placement, and decides on quarantine.

Most differences affect no claims: a driver's patch version, an address. One matters if, applied alone to the
prediction, it changes the answer of a claim's selector on some device, or the allocation. Pure;
instance_catalog/drift/compare.py finds the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TypeAlias, TypeVar

from autoscaler.dra.allocation.allocator import Allocated, AllocatedState, AllocationOutcome, ClusterDevices, allocate
from autoscaler.dra.inventory.selectors import Answer, SelectorEngine
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.node import Node
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drift.compare import Aspect, Difference, Unified
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import Device, NodeAllocatable, ResourceSlice

Slices: TypeAlias = tuple[ResourceSlice, ...]
V = TypeVar("V")


class DriftPolicy(Enum):
    """The condition for a quarantine of a drifted (type, driver profiles)."""

    NEVER = "Never"  # drift is only reported
    MATTERS = "Matters"  # if it changes decisions about claims
    ALWAYS = "Always"  # on any difference


@dataclass(frozen=True, slots=True)
class Impact:
    """The effect of drift on the claims of a placement.

    `decisive` are the differences that change an answer on their own, by driver, device and field; if only several
    together do, all are listed. The outcomes are those of an empty node.
    """

    predicted: AllocationOutcome
    published: AllocationOutcome
    decisive: tuple[Difference, ...]

    @property
    def matters(self) -> bool:
        """True if drift changes any decision about the claims."""
        return bool(self.decisive)

    @property
    def breaks(self) -> bool:
        """True if the claims fit with the predicted slices, but not with the published ones."""
        return isinstance(self.predicted, Allocated) and not isinstance(self.published, Allocated)


def matters(
    unified: Unified,
    claims: Iterable[ResourceClaim],
    *,
    node: Node,
    classes: Iterable[DeviceClass],
    profile: KubernetesProfile,
) -> Impact:
    """The effect of the differences on `claims`, the placement's, on the node whose slices were unified.

    `node` is the node that published; existing allocations of the claims are ignored.
    """
    asked = _Asked(tuple(replace(claim, allocation=None) for claim in claims), node, tuple(classes), profile)
    predicted, published = asked.decided(unified.predicted), asked.decided(unified.published)
    differences = unified.differences
    decisive = tuple(
        difference
        for group in _groups(differences)
        if asked.decided(_applied(unified, group)).differs(predicted)
        for difference in group
    )
    if not decisive and published.differs(predicted):
        decisive = differences
    return Impact(predicted.outcome, published.outcome, decisive)


def quarantines(policy: DriftPolicy, unified: Unified, impacts: Iterable[Impact]) -> bool:
    """True if the policy requires quarantine of the type with the drivers that published."""
    match policy:
        case DriftPolicy.NEVER:
            return False
        case DriftPolicy.MATTERS:
            return any(impact.matters for impact in impacts)
        case DriftPolicy.ALWAYS:
            return not unified.equal


@dataclass(frozen=True, slots=True)
class _Decisions:
    """The answers of selectors on each device that they do not refuse, the allocation, and the part of the node's own
    amounts that its devices take."""

    outcome: AllocationOutcome
    answers: frozenset[tuple[str, ...]]
    amounts: tuple[FrozenMap[str, NodeAllocatable], ...]

    def differs(self, other: _Decisions) -> bool:
        same = self.answers == other.answers and _kind(self.outcome) == _kind(other.outcome)
        return not same or self.amounts != other.amounts


@dataclass(frozen=True, slots=True)
class _Asked:
    """The claims to decide with several sets of slices."""

    claims: tuple[ResourceClaim, ...]
    node: Node
    classes: tuple[DeviceClass, ...]
    profile: KubernetesProfile

    def decided(self, slices: Slices) -> _Decisions:
        devices = ClusterDevices.of(slices, self.classes, (), self.profile)
        outcome = allocate(self.claims, node=self.node, devices=devices, allocated=AllocatedState())
        answers = frozenset(
            (str(number), slice_.driver, device.name, answer.name)
            for number, expressions in enumerate(self._expressions())
            for slice_ in slices
            for device in slice_.devices
            if (answer := _answer(devices.engine, expressions, slice_.driver, device)) is not Answer.NO
        )
        return _Decisions(outcome, answers, tuple(self._amounts(outcome, slices)))

    def _amounts(self, outcome: AllocationOutcome, slices: Slices) -> Iterator[FrozenMap[str, NodeAllocatable]]:
        if isinstance(outcome, Allocated) and self.profile.devices_take_node_amounts:
            published = {(slice_.driver, device.name): device for slice_ in slices for device in slice_.devices}
            for allocation in outcome.allocations:
                yield from (published[result.driver, result.device].node_allocatable for result in allocation.devices)

    def _expressions(self) -> tuple[tuple[str, ...], ...]:
        """By request, the selectors in the order of evaluation: the class's, then its own."""
        by_name = {device_class.name: device_class.selectors for device_class in self.classes}
        requests = (request for claim in self.claims for request in claim.exact_requests)
        return tuple(
            tuple(s.expression for s in (*by_name.get(r.device_class, ()), *r.selectors) if s.expression is not None)
            for r in requests
        )


def _answer(engine: SelectorEngine, expressions: Sequence[str], driver: str, device: Device) -> Answer:
    """The first answer other than yes, which ends the evaluation, as in the allocator; yes if there is none."""
    answers = (engine.evaluate(expression, driver=driver, device=device).answer for expression in expressions)
    return next((answer for answer in answers if answer is not Answer.YES), Answer.YES)


def _kind(outcome: AllocationOutcome) -> tuple[object, ...]:
    return type(outcome), outcome.choices if isinstance(outcome, Allocated) else ()


def _groups(differences: Sequence[Difference]) -> Iterator[tuple[Difference, ...]]:
    """The differences of each attribute and capacity by name; all other differences of a driver together."""
    found: dict[tuple[str, Aspect | None, str], list[Difference]] = {}
    for difference in differences:
        by_name = difference.aspect in (Aspect.ATTRIBUTE, Aspect.CAPACITY)
        key = (difference.driver, difference.aspect, difference.field) if by_name else (difference.driver, None, "")
        found.setdefault(key, []).append(difference)
    return (tuple(group) for group in found.values())


def _applied(unified: Unified, group: Sequence[Difference]) -> Slices:
    """The prediction with the differences of one group applied."""
    first = group[0]
    real = {(slice_.driver, d.name): d for slice_ in unified.published for d in slice_.devices}
    if first.aspect in (Aspect.ATTRIBUTE, Aspect.CAPACITY):
        names = {difference.device for difference in group}
        return tuple(
            replace(
                slice_,
                devices=tuple(_taken(d, real.get((slice_.driver, d.name)), first, names) for d in slice_.devices),
            )
            if slice_.driver == first.driver
            else slice_
            for slice_ in unified.predicted
        )
    others = (slice_ for slice_ in unified.predicted if slice_.driver != first.driver)
    own = (slice_ for slice_ in unified.published if slice_.driver == first.driver)
    kept = {(slice_.driver, d.name): d for slice_ in unified.predicted for d in slice_.devices}
    return (*others, *(_with_known_facts(slice_, kept) for slice_ in own))


def _taken(device: Device, real: Device | None, difference: Difference, names: set[str]) -> Device:
    """The device with the published value of one attribute or capacity."""
    if real is None or device.name not in names:
        return device
    if difference.aspect is Aspect.ATTRIBUTE:
        return replace(device, attributes=_with(device.attributes, real.attributes, difference.field))
    return replace(device, capacity=_with(device.capacity, real.capacity, difference.field))


def _with(wanted: Mapping[str, V], real: Mapping[str, V], name: str) -> FrozenMap[str, V]:
    rest = {key: value for key, value in wanted.items() if key != name}
    return FrozenMap({**rest, **({name: real[name]} if name in real else {})})


def _with_known_facts(slice_: ResourceSlice, predicted: Mapping[tuple[str, str], Device]) -> ResourceSlice:
    """The published slice in which predicted devices have the attributes and capacities of the prediction."""
    devices = (
        replace(device, attributes=wanted.attributes, capacity=wanted.capacity)
        if (wanted := predicted.get((slice_.driver, device.name))) is not None
        else device
        for device in slice_.devices
    )
    return replace(slice_, devices=tuple(devices))
