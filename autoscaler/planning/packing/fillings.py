"""What fits together on one node, asked once and remembered.

Bundles are placed on a node in the order of the items, which is the scheduler's order. So there is one answer per shape
and multiset of bundles: it fits or it does not. Answers are kept for one packing problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic

from autoscaler.planning.packing.objective import Score, on_rank
from autoscaler.planning.packing.problem import Column, Counts, Kind, Oracle, Pattern, Problem, State, with_one


class OutOfStepsError(Exception):
    """The search would take more steps than the budget allows. Never leaves the optimizer."""


class Fillings(Generic[State]):
    """States of partly filled nodes by shape and pattern; `puts` counts the questions about nodes that hold something.

    What an empty node takes has to be known of every shape in any case, for the pods that nothing takes.
    """

    def __init__(self, problem: Problem, oracle: Oracle[State]) -> None:
        self.puts = 0
        self._problem = problem
        self._zero = problem.zero
        self._oracle = oracle
        self._states: dict[tuple[int, Pattern], State | None] = {}

    def state(self, shape: int, pattern: Pattern) -> State | None:
        """A node of the shape with these bundles; None if they do not fit."""
        key = (shape, pattern)
        if key not in self._states:
            self._states[key] = self._fill(shape, pattern)
        return self._states[key]

    def _fill(self, shape: int, pattern: Pattern) -> State | None:
        if not pattern:
            return self._oracle.empty(shape)
        before = self.state(shape, pattern[:-1])
        if before is None:
            return None
        self.puts += len(pattern) > 1
        return self._oracle.put(before, pattern[-1])

    def larger(self, shape: int, pattern: Pattern, item: int) -> Pattern | None:
        """The pattern with one more bundle of the item; None if that does not fit a node of the shape."""
        before = self.state(shape, pattern)
        if before is None or not self._oracle.has_room(before, item):
            return None
        found = with_one(pattern, item)
        return None if self.state(shape, found) is None else found

    def full(self, shape: int, pattern: Pattern) -> bool:
        """Whether a node with these bundles is not worth trying further."""
        state = self.state(shape, pattern)
        return state is None or self._oracle.full(state)

    def worth_trying(self, shape: int, item: int) -> bool:
        """Whether greedy filling should look at the shape for the item."""
        return self._oracle.worth_trying(shape, item)

    def fits(self, shape: int, item: int) -> bool:
        """Whether an empty node takes one bundle of the item."""
        return self.state(shape, (item,)) is not None

    def column(self, kind: int, pattern: Pattern) -> Column | None:
        """A node of the kind with these bundles; None if they do not fit or are not welcome."""
        bought = self._problem.kinds[kind]
        if bought.refuses and not bought.refuses.isdisjoint(pattern):
            return None
        state = self.state(bought.shape, pattern)
        return None if state is None else Column(kind, pattern, self._score(kind, bought, pattern, state))

    def _score(self, index: int, kind: Kind, pattern: Pattern, state: State) -> Score:
        return Score(
            left_out=self._zero.left_out,
            preference=self._oracle.preference(state),
            capacity=on_rank(self._problem.pods_on(pattern), rank=kind.rank, zero=self._zero),
            usd_per_hour=kind.usd_per_hour,
            disruption=sum(kind.risk[item] for item in pattern) if kind.risk else 0,
            nodes=1,
            fragmentation=self._oracle.free(state),
            weight=-kind.weight,
            order=index,
        )

    def patterns(self, shape: int, demand: Counts, *, puts: int) -> Iterator[Pattern]:
        """Every multiset within the demand that fits a node of the shape. Raises OutOfStepsError after `puts` puts."""

        def extend(pattern: Pattern, first: int) -> Iterator[Pattern]:
            for item in range(first, len(demand)):
                if pattern.count(item) >= demand[item]:
                    continue
                if self.puts > puts:
                    raise OutOfStepsError
                larger = (*pattern, item)
                if self.state(shape, larger) is not None:
                    yield larger
                    yield from extend(larger, item)

        yield from extend((), 0)

    def filled(self, shape: int, residual: Sequence[int], items: Iterable[int]) -> Iterator[Pattern]:
        """Fill a node: bundles of the first of the items as many as fit, then later ones; yields every step."""
        pattern: Pattern = ()
        for item in items:
            for _ in range(residual[item]):
                larger = self.larger(shape, pattern, item)
                if larger is None:
                    break
                pattern = larger
                yield pattern
            if not pattern or self.full(shape, pattern):
                return
