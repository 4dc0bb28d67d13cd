"""Slices of several hosts, which are bought as a whole: to the optimizer each is one big node.

GKE creates all machines of a TPU slice or none, and the topology of a slice gives their number. So a kind of the
packing problem is a whole slice, at the price of all its hosts, and bundles are put onto its hosts one after another.
The oracle of single nodes (trial.py) decides what one host takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from autoscaler.planning.packing.problem import Pattern
from autoscaler.planning.placement.device_states import Filled
from autoscaler.planning.placement.trial import PackingOracle
from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """The nodes of one slice with the bundles on each."""

    nodes: tuple[Filled, ...]


Filling: TypeAlias = Filled | Hosts


class SliceOracle:
    """Implements problem.Oracle for shapes of which `hosts` are bought together; `hosts` is by index of the shape."""

    def __init__(self, oracle: PackingOracle, hosts: Sequence[int]) -> None:
        self._oracle = oracle
        self._hosts = hosts
        self.fits = oracle.fits
        self.kin = oracle.kin
        self.refuses_kin = oracle.refuses_kin
        self.given_up = oracle.given_up
        self.worth_trying = oracle.worth_trying
        self.sizes = oracle.sizes
        self.roomy = oracle.roomy
        self.may_take = oracle.may_take

    def empty(self, shape: int) -> Filling:
        """A new node, or a new slice."""
        node = self._oracle.empty(shape)
        hosts = self._hosts[shape]
        return node if hosts == 1 else Hosts((node,) * hosts)

    def put(self, state: Filling, item: int) -> Filling | None:
        """The slice with one more bundle, on the first host that takes it."""
        if isinstance(state, Filled):
            return self._oracle.put(state, item)
        for index, node in enumerate(state.nodes):
            if index and node is state.nodes[index - 1]:
                continue  # a bundle that one empty host refuses is refused by the other empty hosts as well
            after = self._oracle.put(node, item)
            if after is not None:
                return Hosts((*state.nodes[:index], after, *state.nodes[index + 1 :]))
        return None

    def preference(self, state: Filling) -> int:
        """Sum of the firstAvailable indexes chosen on all hosts."""
        return sum(self._oracle.preference(node) for node in _nodes(state))

    def free(self, state: Filling) -> int:
        """Free devices on all hosts."""
        return sum(self._oracle.free(node) for node in _nodes(state))

    def full(self, state: Filling) -> bool:
        """True if no host is worth trying for more."""
        return all(self._oracle.full(node) for node in _nodes(state))

    def has_room(self, state: Filling, item: int) -> bool:
        """False only if no host has room for one more bundle."""
        if isinstance(state, Filled):  # called thousands of times
            return self._oracle.has_room(state, item)
        return any(self._oracle.has_room(node, item) for node in state.nodes)

    def room(self, shape: int) -> Mapping[Hashable, int]:
        """The most that all hosts have room for together."""
        hosts = self._hosts[shape]
        found = self._oracle.room(shape)
        return found if hosts == 1 else {dimension: most * hosts for dimension, most in found.items()}

    def by_host(self, shape: int, pattern: Pattern) -> tuple[Pattern, ...]:
        """The bundles on each host of a slice that was filled in this order; () for a host without bundles."""
        if self._hosts[shape] == 1:
            return (pattern,)
        state: Filling | None = self.empty(shape)
        for item in pattern:
            state = None if state is None else self.put(state, item)
        assert isinstance(state, Hosts), "every column of a solution was filled through this oracle"
        return tuple(tuple(sorted(Counter(node.counts).elements())) for node in state.nodes)


def _nodes(state: Filling) -> tuple[Filled, ...]:
    return (state,) if isinstance(state, Filled) else state.nodes
