"""What fits together on one node, asked once and remembered.

Bundles are placed on a node in the order of the items, which is the scheduler's order. So there is one answer per shape
and multiset of bundles: it fits or it does not. Answers are kept for one packing problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic

from autoscaler.planning.packing.objective import Score, on_rank
from autoscaler.planning.packing.problem import Column, Counts, Kind, Oracle, Problem, State, changed, within


class OutOfStepsError(Exception):
    """The search would take more steps than the budget allows. Never leaves the optimizer."""


class Fillings(Generic[State]):
    """States of partly filled nodes by shape and counts; `puts` counts the questions about nodes that hold something.

    What an empty node takes has to be known of every shape in any case, for the pods that nothing takes.
    """

    def __init__(self, problem: Problem, oracle: Oracle[State]) -> None:
        self.puts = 0
        self.units: tuple[Counts, ...] = tuple(
            tuple(int(i == j) for j in range(len(problem.items))) for i in range(len(problem.items))
        )
        self._nothing: Counts = (0,) * len(problem.items)
        self._problem = problem
        self._zero = problem.zero
        self._oracle = oracle
        self._states: dict[tuple[int, Counts], State | None] = {}

    def state(self, shape: int, counts: Counts) -> State | None:
        """A node of the shape with these bundles; None if they do not fit."""
        key = (shape, counts)
        if key not in self._states:
            self._states[key] = self._fill(shape, counts)
        return self._states[key]

    def _fill(self, shape: int, counts: Counts) -> State | None:
        last = len(counts) - 1
        while last >= 0 and not counts[last]:
            last -= 1
        if last < 0:
            return self._oracle.empty(shape)
        before = self.state(shape, changed(counts, last, -1))
        if before is None:
            return None
        self.puts += before is not self.state(shape, self._nothing)
        return self._oracle.put(before, last)

    def full(self, shape: int, counts: Counts) -> bool:
        """Whether a node with these bundles is not worth trying further."""
        state = self.state(shape, counts)
        return state is None or self._oracle.full(state)

    def worth_trying(self, shape: int, item: int) -> bool:
        """Whether greedy filling should look at the shape for the item."""
        return self._oracle.worth_trying(shape, item)

    def fits(self, shape: int, item: int) -> bool:
        """Whether an empty node takes one bundle of the item."""
        return self.state(shape, self.units[item]) is not None

    def column(self, kind: int, counts: Counts) -> Column | None:
        """A node of the kind with these bundles; None if they do not fit or are not welcome."""
        bought = self._problem.kinds[kind]
        if any(counts[item] for item in bought.refuses):
            return None
        state = self.state(bought.shape, counts)
        return None if state is None else Column(kind, counts, self._score(kind, bought, counts, state))

    def _score(self, index: int, kind: Kind, counts: Counts, state: State) -> Score:
        return Score(
            left_out=self._zero.left_out,
            preference=self._oracle.preference(state),
            capacity=on_rank(self._problem.pods(counts), rank=kind.rank, zero=self._zero),
            usd_per_hour=kind.usd_per_hour,
            disruption=sum(r * c for r, c in zip(kind.risk, counts, strict=True)) if kind.risk else 0,
            nodes=1,
            fragmentation=self._oracle.free(state),
            weight=-kind.weight,
            order=index,
        )

    def patterns(self, shape: int, demand: Counts, *, puts: int) -> Iterator[Counts]:
        """Every multiset within the demand that fits a node of the shape. Raises OutOfStepsError after `puts` puts."""

        def extend(counts: Counts, first: int) -> Iterator[Counts]:
            for item in range(first, len(counts)):
                larger = changed(counts, item, 1)
                if not within(larger, demand):
                    continue
                if self.puts > puts:
                    raise OutOfStepsError
                if self.state(shape, larger) is not None:
                    yield larger
                    yield from extend(larger, item)

        yield from extend(self._nothing, 0)

    def filled(self, shape: int, residual: Counts, *, first: int, allowed: frozenset[int]) -> Iterator[Counts]:
        """Fill a node: bundles of `first` as many as fit, then later items; yields every step on the way."""
        counts = self._nothing
        for item in range(first, len(counts)):
            if item not in allowed:
                continue
            while counts[item] < residual[item]:
                larger = changed(counts, item, 1)
                if self.state(shape, larger) is None:
                    break
                counts = larger
                yield counts
            if not counts[first] or self.full(shape, counts):
                return
