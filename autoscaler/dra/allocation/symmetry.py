"""Skips parts of the search that fail because something equal has failed already.

Two devices are alike if the search cannot distinguish them: swapping them maps solutions to solutions and errors to
errors. So if one failed in a place, all like it fail in the same place; and a place that failed once fails again
whenever the same kinds of devices are in use. Neither changes which solution is found first, nor which errors are
reached: a search that fails has tried every device that was available to it.

Whole parts of a node (see `interchange`) change places only in searches without errors and without constraints that
remember an order. A solution moved to the other part may then be one that the search has tried earlier, because devices
of one request are taken in ascending order; but then that one was no solution.

Nothing is computed before the first failure: most searches succeed at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import comb

from autoscaler.dra.allocation.bounds import SearchState, provably_infeasible
from autoscaler.dra.allocation.constraints import state_key
from autoscaler.dra.allocation.interchange import Kinds, find_kinds, order_matters, verdict
from autoscaler.dra.allocation.requests import MAX_DEVICES_PER_CLAIM, RequestPlan
from autoscaler.dra.inventory.selectors import Answer
from instance_catalog.dataclass import dataclass, field

_PATIENCE = 100


class InfeasibleError(Exception):
    """The whole search cannot succeed."""


@dataclass(slots=True)
class DeadEnd:
    """A device that failed in a place after `effort` upstream steps; `skipped` devices like it were skipped there."""

    effort: int
    skipped: int = 0


@dataclass(slots=True)
class Symmetry:
    """The parts that one search may skip. `skipped_steps` estimates the steps that upstream makes in its place.

    Methods are given the state of the search, which is not kept: with a cycle, the search would be freed only by the
    garbage collector, and there is one for each node that a pod is tried on.
    """

    skipped_steps: int = 0
    _kinds: Kinds | None = None
    _usable: bool = True
    _dead_ends: dict[Hashable, int] = field(default_factory=dict)
    _uses: dict[Hashable, int] = field(default_factory=dict)  # numbers sort and compare faster than uses
    _chosen: dict[RequestPlan, list[int]] = field(default_factory=dict)  # devices that its selectors choose

    def learn(self, position: SearchState) -> bool:
        """Find the devices that are alike, at the first failure. True if the search may skip anything.

        Raises InfeasibleError.
        """
        if self._kinds is None and self._usable:
            plans = [plan for claim in position.plans for plan in claim.plans()]
            overflow = any(claim.most_devices > MAX_DEVICES_PER_CLAIM for claim in position.plans)
            # All mode takes devices in order up to the first that is in use, or up to an error for a constraint. If
            # both errors and the limit of devices are possible, the order also decides which of them is reached.
            ordered = any(plan.everything is not None and plan.constraints for plan in plans)
            raises = ordered or may_raise(position, plans)
            if not raises and provably_infeasible(position):
                raise InfeasibleError
            self._usable = not ordered and not (overflow and raises)
            if not raises:
                self._chosen = {plan: chosen(position, plan) for plan in plans}
            if self._usable:
                renaming = not raises and not overflow and not order_matters(position)
                self._kinds = find_kinds(position, plans, renaming=renaming)
        return self._usable

    def worth_trying(self, position: SearchState, plan: RequestPlan, start: int) -> Sequence[int]:
        """The devices from `start` on, without those that selectors are known to refuse."""
        known = self._chosen.get(plan)
        if known is None:
            return range(start, len(position.busy))
        return known[bisect_left(known, start) :]

    def equivalence_keys(self, position: SearchState) -> Callable[[int], Hashable]:
        """A function whose results are equal for devices that are alike in the current state of the search."""
        kinds, used = self._kinds, self._used(position, 0)
        assert kinds is not None

        def equivalence_key(index: int) -> Hashable:
            part = kinds.parts[index]
            around = used.get(part) if part else None
            return kinds.kinds[index], kinds.shapes[part], around, position.taken[index], position.consumed.get(index)

        return equivalence_key

    def _used(self, position: SearchState, start: int) -> dict[int, tuple[int, ...]]:
        """By part with devices of this search: their kinds and uses, and which of them are at `start` or later."""
        kinds, numbers = self._kinds, self._uses
        assert kinds is not None
        used: dict[int, list[int]] = {}
        for index in {pooled.index for held in position.held() for pooled in held}:
            use = kinds.kinds[index], position.taken[index], position.consumed.get(index), index >= start
            used.setdefault(kinds.parts[index], []).append(numbers.setdefault(use, len(numbers)))
        return {part: tuple(sorted(uses)) for part, uses in used.items()}

    def key(
        self, position: SearchState, claim: int, plan: RequestPlan, k: int, start: int, *, steps: int
    ) -> Hashable | None:
        """A key that is equal for places of the search where the same can still be found.

        None before `learn`, and in the first `_PATIENCE` steps: short searches are cheaper to repeat.
        """
        kinds = self._kinds
        if kinds is None or steps < _PATIENCE:
            return None
        # The amounts left in counters follow from the devices in use.
        used = sorted((kinds.shapes[part], uses) for part, uses in self._used(position, start).items())
        held = len(position.held()[claim])
        return plan, k, start, held, tuple(used), tuple(map(state_key, position.states[claim]))

    def is_dead_end(self, key: Hashable) -> bool:
        """True if this place has failed before."""
        effort = self._dead_ends.get(key)
        if effort is None:
            return False
        self.skipped_steps += effort
        return True

    def remember_dead_end(self, key: Hashable, effort: int) -> None:
        """Record that this place has failed after `effort` upstream steps."""
        self._dead_ends[key] = effort

    def count_skipped(self, failures: Iterable[DeadEnd], wanted: int) -> None:
        """Estimate upstream's steps for the devices like those that failed, with `wanted` more to find each time.

        Each further device leaves fewer to choose from, so the effort shrinks like the number of combinations.
        """
        for failure in failures:
            whole = _combinations(failure.skipped, wanted)
            for left in range(failure.skipped):
                self.skipped_steps += max(1, failure.effort * _combinations(left, wanted) // whole)


def _combinations(left: int, wanted: int) -> int:
    """The number of combinations; with too few devices upstream tries all subsets first."""
    return comb(left, wanted) if left >= wanted else 1 << left


def chosen(position: SearchState, plan: RequestPlan) -> list[int]:
    """The devices that the selectors of a request choose."""
    return [
        pooled.index
        for pooled in position.context.pools.devices
        if verdict(plan, pooled, unknown_is_yes=position.unknown_is_yes) is Answer.YES
    ]


def may_raise(position: SearchState, plans: Sequence[RequestPlan]) -> bool:
    """True if the search can reach an error."""
    context = position.context
    if context.pools.barrier is not None:
        return True
    if context.profile.allocator.capacity_errors_fatal and any(plan.capacity for plan in plans):
        return True
    return any(
        verdict(plan, pooled, unknown_is_yes=position.unknown_is_yes) is Answer.ERROR
        for plan in plans
        for pooled in context.pools.devices
    )
