"""What the search need not try, because it has failed with something equal already.

Two devices are alike if nothing that the search looks at tells them apart: swapping them maps solutions to solutions
and errors to errors. So where one failed in a place, its likes fail in the same place; and a place that failed once
fails again whenever the same kinds of devices are in use. Neither changes which solution is found first, nor which
errors are reached: a search that fails has looked at every device that was open to it.

Nothing is computed before the first failure: most searches succeed at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from math import comb

from autoscaler.dra.bounds import provably_vain
from autoscaler.dra.constraints import attribute_of
from autoscaler.dra.pools import PooledDevice
from autoscaler.dra.position import Position
from autoscaler.dra.requests import MAX_DEVICES_PER_CLAIM, RequestPlan
from autoscaler.dra.selectors import Answer

_PATIENCE = 100


class ProvenVainError(Exception):
    """The whole search cannot succeed."""


@dataclass(slots=True)
class Vain:
    """A device that failed in a place after `effort` steps of upstream's; so many of its likes were skipped there."""

    effort: int
    skipped: int = 0


@dataclass(slots=True)
class Symmetry:
    """What one search has learned. `skipped_steps` estimates what upstream spends where this search spends nothing."""

    position: Position
    skipped_steps: int = 0
    _kinds: list[int] | None = None  # per device; devices of one kind are alike
    _usable: bool = True
    _vain: dict[Hashable, int] = field(default_factory=dict)

    def learn(self) -> bool:
        """Find out, at the first failure, which devices are alike. Whether anything may be skipped in this search.

        Raises ProvenVainError.
        """
        if self._kinds is None and self._usable:
            plans = [plan for claim in self.position.plans for plan in claim.plans()]
            overflow = any(claim.most_devices > MAX_DEVICES_PER_CLAIM for claim in self.position.plans)
            # All mode takes devices in order up to the first that is in use, or up to an error for a constraint; and
            # where errors and the limit of devices meet, the order decides as well which of them is reached.
            ordered = any(plan.everything is not None and plan.constraints for plan in plans)
            raises = ordered or may_raise(self.position, plans)
            if not raises and provably_vain(self.position):
                raise ProvenVainError
            self._usable = not ordered and not (overflow and raises)
            if self._usable:
                self._kinds = self._find_kinds(plans)
        return self._usable

    def likeness(self, index: int) -> Hashable:
        """Equal for devices that are alike and in the same use by this search."""
        assert self._kinds is not None
        position = self.position
        return (self._kinds[index], position.taken[index], position.consumed.get(index))

    def key(self, claim: int, plan: RequestPlan, k: int, start: int, *, steps: int) -> Hashable | None:
        """Equal for places of the search where the same can still be found.

        None as long as nothing was learned, and in the first `_PATIENCE` steps: short searches are cheaper repeated.
        """
        kinds = self._kinds
        if kinds is None or steps < _PATIENCE:
            return None
        position = self.position
        held, taken, consumed = position.held(), position.taken, position.consumed
        indexes = {pooled.index for claim_held in held for pooled in claim_held}
        used = Counter([(kinds[i], taken[i], consumed.get(i), i >= start) for i in indexes])
        counters = tuple(
            (name, tuple(sorted(entry for entry in table.consumed.items() if entry[1])))
            for name, table in position.tables.items()
        )
        return (
            plan,
            k,
            start,
            len(held[claim]),
            frozenset(used.items()),
            tuple(position.states[claim]),
            frozenset(counters),
        )

    def known_vain(self, key: Hashable) -> bool:
        """Whether this place has failed before."""
        effort = self._vain.get(key)
        if effort is None:
            return False
        self.skipped_steps += effort
        return True

    def remember_vain(self, key: Hashable, effort: int) -> None:
        """This place has failed, after that many of upstream's steps."""
        self._vain[key] = effort

    def count_skipped(self, failures: Iterable[Vain], wanted: int) -> None:
        """Estimate what upstream spends on the likes of devices that failed, with `wanted` more to find each time.

        Every further one leaves fewer to choose from, so the effort shrinks like the number of combinations.
        """
        for failure in failures:
            whole = _combinations(failure.skipped, wanted)
            for left in range(failure.skipped):
                self.skipped_steps += max(1, failure.effort * _combinations(left, wanted) // whole)

    def _find_kinds(self, plans: Sequence[RequestPlan]) -> list[int]:
        numbers: dict[Hashable, int] = {}
        describe = _Description.of(self.position, plans)
        return [numbers.setdefault(describe(pooled), len(numbers)) for pooled in self.position.scene.pools.devices]


@dataclass(frozen=True, slots=True)
class _Description:
    """Everything that the search looks at in a device."""

    position: Position
    plans: Sequence[RequestPlan]
    attributes: tuple[str, ...]
    capacity_matters: bool

    @staticmethod
    def of(position: Position, plans: Sequence[RequestPlan]) -> _Description:
        rules = {rule.attribute: None for claim in position.plans for rule in claim.constraints}
        return _Description(position, plans, tuple(rules), position.scene.profile.gates.consumable_capacity)

    def __call__(self, pooled: PooledDevice) -> Hashable:
        position, device = self.position, pooled.device
        use = position.scene.allocated.use_of(pooled.driver, pooled.pool.name)
        values = (attribute_of(device, pooled.driver, attribute) for attribute in self.attributes)
        return (
            tuple(verdict(plan, pooled, lenient=position.lenient) for plan in self.plans),
            position.busy[pooled.index],
            pooled.taints,
            (pooled.driver, pooled.pool.name, pooled.draws) if pooled.draws else None,
            bool(device.consumes_counters),
            pooled.shareable,
            device.capacity if self.capacity_matters else None,
            use.consumed.get(pooled.name),
            use.shared(pooled.name),
            tuple((type(value), value) for value in values),
        )


def _combinations(left: int, wanted: int) -> int:
    """Ways to go on: too few devices make upstream try all subsets before it knows."""
    return comb(left, wanted) if left >= wanted else 1 << left


def verdict(plan: RequestPlan, pooled: PooledDevice, *, lenient: bool) -> Answer:
    """What the selectors of a request say about a device, an error included."""
    answer = plan.matches.of(pooled)
    return answer.lenient if lenient else answer.strict


def may_raise(position: Position, plans: Sequence[RequestPlan]) -> bool:
    """Whether the search could come upon an error at all."""
    scene = position.scene
    if scene.pools.barrier is not None:
        return True
    if scene.profile.allocator.capacity_errors_fatal and any(plan.capacity for plan in plans):
        return True
    return any(
        verdict(plan, pooled, lenient=position.lenient) is Answer.ERROR
        for plan in plans
        for pooled in scene.pools.devices
    )
