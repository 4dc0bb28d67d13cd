"""Finds devices that the search cannot distinguish.

Partitions of two GPUs draw from different counter sets, but are alike if the GPUs are: the devices around one counter
set are interchangeable with those around another that offers as much, device by device. Such sets with their devices
are parts of the same shape. Whether two parts are alike at some moment depends on the use of their devices, which
`Symmetry` compares. Within a part, counters are interchangeable as well, along with the devices that draw from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from autoscaler.dra.allocation.bounds import SearchState
from autoscaler.dra.allocation.constraints import Match, MatchSets, attribute_of
from autoscaler.dra.allocation.requests import RequestPlan
from autoscaler.dra.inventory.pools import PooledDevice
from autoscaler.dra.inventory.selectors import Answer
from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes.resource_slice import exact

SetId: TypeAlias = tuple[int, str]  # a pool by identity, a counter set
LocalCounter: TypeAlias = tuple[int, str]  # the place of a set among those of its part, a counter


@dataclass(frozen=True, slots=True)
class Kinds:
    """By device: its kind within its part, and its part. By part: its shape. Part 0 draws no counters."""

    kinds: Sequence[int]
    parts: Sequence[int]
    shapes: Sequence[int]


def find_kinds(position: SearchState, plans: Sequence[RequestPlan], *, renaming: bool) -> Kinds:
    """Group devices by kind. With `renaming`, counters differ by amount and users, and not by name."""
    describe = _Description.of(position, plans)
    devices = position.context.pools.devices
    descriptions = [describe(pooled) for pooled in devices]
    parts = _parts(devices)
    part_of, kinds = [0] * len(devices), [0] * len(devices)
    numbers: dict[Hashable, int] = {}
    for number, part in enumerate(parts):
        for pooled in part.devices:
            part_of[pooled.index] = number
            seen = descriptions[pooled.index], part.draws(pooled)
            kinds[pooled.index] = numbers.setdefault(seen, len(numbers))
    shapes = list(range(len(parts)))
    known: dict[Hashable, tuple[int, Mapping[int, int]]] = {}
    for number, part in enumerate(parts if renaming else ()):
        left = part.left(position)
        if left is None:
            continue
        # Devices that no request can have do not matter.
        part.devices = [pooled for pooled in part.devices if _wanted(position, plans, pooled)]
        census = frozenset(Counter(kinds[pooled.index] for pooled in part.devices).items())
        signature = part.sets[0][0], census, frozenset(left.items())
        if signature not in known:
            known[signature] = number, _merged(part, kinds, descriptions, left)
        shapes[number], merged = known[signature]
        for pooled in part.devices:
            kinds[pooled.index] = merged[kinds[pooled.index]]
    return Kinds(kinds, part_of, shapes)


def order_matters(position: SearchState) -> bool:
    """True if the order in which devices are taken can decide if claims fit: some constraints depend on it."""
    rules = [rule for claim in position.plans for rule in claim.constraints]
    return bool(rules) and (position.unknown_is_yes or not all(isinstance(rule, Match | MatchSets) for rule in rules))


def verdict(plan: RequestPlan, pooled: PooledDevice, *, unknown_is_yes: bool) -> Answer:
    """The answer of a request's selectors for a device, an error included."""
    answer = plan.matches.of(pooled)
    return answer.possible if unknown_is_yes else answer.certain


def _wanted(position: SearchState, plans: Sequence[RequestPlan], pooled: PooledDevice) -> bool:
    """True if the search may ever take the device."""
    return any(
        (plan.admin or not position.busy[pooled.index])
        and verdict(plan, pooled, unknown_is_yes=position.unknown_is_yes) is Answer.YES
        for plan in plans
    )


@dataclass(slots=True)
class _Part:
    """Counter sets that devices connect, and these devices."""

    sets: tuple[SetId, ...] = ()
    devices: list[PooledDevice] = field(default_factory=list)

    def draws(self, pooled: PooledDevice) -> tuple[tuple[LocalCounter, int], ...]:
        """The draws of a device, with the position of each set instead of its name."""
        places = {name: place for place, (_, name) in enumerate(self.sets)}
        return tuple(((places[name], counter), amount) for (name, counter), amount in pooled.draws)

    def left(self, position: SearchState) -> Mapping[LocalCounter, int] | None:
        """The amounts left in its counters; None if they depend on more than its own devices in use."""
        if not self.sets or any(pooled.shareable for pooled in self.devices):
            return None
        if not self.devices[0].pool.counters:  # the gate DRAPartitionableDevices is off: no request can have them
            return None
        table = position.table(self.devices[0].pool)
        places = {name: place for place, (_, name) in enumerate(self.sets)}
        found = {(places[name], counter): n for (name, counter), n in table.available.items() if name in places}
        return None if table.overdrawn else found


def _parts(devices: Iterable[PooledDevice]) -> list[_Part]:
    """The parts; the first one is for devices without counters."""
    groups: dict[SetId, frozenset[SetId]] = {}
    for pooled in devices:
        drawn = _sets_of(pooled)
        joined = drawn.union(*(groups.get(one, ()) for one in drawn))
        if any(groups.get(one) is not joined for one in drawn):
            groups.update(dict.fromkeys(joined, joined))
    parts = {frozenset[SetId](): _Part()}
    for pooled in devices:
        sets = next((groups[one] for one in _sets_of(pooled)), frozenset[SetId]())
        parts.setdefault(sets, _Part(tuple(sorted(sets)))).devices.append(pooled)
    return list(parts.values())


def _sets_of(pooled: PooledDevice) -> frozenset[SetId]:
    return frozenset((id(pooled.pool), name) for (name, _), _ in pooled.draws)


def _merged(
    part: _Part, kinds: Sequence[int], descriptions: Sequence[Hashable], left: Mapping[LocalCounter, int]
) -> Mapping[int, int]:
    """Kinds by kind: one for all devices that can change places if their counters do, like the memory slices of a GPU.

    Requires that no other device distinguishes these counters.
    """
    columns: dict[LocalCounter, Counter[int]] = {counter: Counter() for counter in left}
    for pooled in part.devices:
        for counter, amount in part.draws(pooled):
            columns[counter][pooled.index] += amount

    def exchangeable(one: int, other: int) -> bool:
        if descriptions[one] != descriptions[other]:
            return False
        seen: Counter[Hashable] = Counter()
        back: Counter[Hashable] = Counter()
        for counter, column in columns.items():
            if column[one] != column[other]:
                rest = frozenset((index, n) for index, n in column.items() if n and index not in (one, other))
                seen[left[counter], rest, column[one], column[other]] += 1
                back[left[counter], rest, column[other], column[one]] += 1
        return seen == back

    merged: dict[int, int] = {}
    first: list[int] = []  # a device of every kind that is left
    for pooled in part.devices:
        like = next((index for index in first if exchangeable(index, pooled.index)), pooled.index)
        if like == pooled.index:
            first.append(like)
        merged[kinds[pooled.index]] = kinds[like]
    return merged


@dataclass(frozen=True, slots=True)
class _Description:
    """The properties of a device that the search reads, except for its draws."""

    position: SearchState
    plans: Sequence[RequestPlan]
    attributes: tuple[str, ...]
    capacity_matters: bool

    @staticmethod
    def of(position: SearchState, plans: Sequence[RequestPlan]) -> _Description:
        rules = {rule.attribute: None for claim in position.plans for rule in claim.constraints}
        return _Description(position, plans, tuple(rules), position.context.profile.gates.consumable_capacity)

    def __call__(self, pooled: PooledDevice) -> Hashable:
        position, device = self.position, pooled.device
        use = position.context.allocated.use_of(pooled.driver, pooled.pool.name)
        values = (attribute_of(device, pooled.driver, attribute) for attribute in self.attributes)
        return (
            tuple(verdict(plan, pooled, unknown_is_yes=position.unknown_is_yes) for plan in self.plans),
            position.busy[pooled.index],
            pooled.taints,
            (pooled.driver, pooled.pool.name) if pooled.draws else None,
            bool(device.consumes_counters),
            pooled.shareable,
            tuple(sorted((n, c.form) for n, c in device.capacity.items())) if self.capacity_matters else None,
            use.consumed.get(pooled.name),
            use.shared(pooled.name),
            tuple(map(exact, values)),
        )
