"""The oracle of the packing: bundles are put onto hypothetical nodes and kube-scheduler's rules answer.

Every state is a world with one more hypothetical node, filled step by step through `fit`. First verdicts (one bundle on
an empty node) are kept, because they explain the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.model.reason import Code
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Verdict
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.supply.hypothetical import Shape
from autoscaler.planning.supply.units import Unit, devices_of
from autoscaler.planning.work import Ledger
from autoscaler.scheduling.world import World

_NOT_CURED_BY_MIG = (Code.TOO_FEW_DEVICES, Code.INSUFFICIENT_RESOURCE)


@dataclass(frozen=True, slots=True)
class Filled:
    """A hypothetical node with bundles on it: `counts` of each class that is there, and the device units they use."""

    shape: int
    world: World
    counts: Mapping[int, int]
    preference: int = 0
    used: frozenset[Unit] = frozenset()


class PackingOracle:
    """Implements problem.Oracle. Shapes and classes are known by their index."""

    def __init__(self, world: World, shapes: Sequence[Shape], classes: Sequence[BundleClass], ledger: Ledger) -> None:
        self._world = world
        self._shapes = shapes
        self._classes = classes
        self.ledger = ledger
        self._empty: dict[int, Filled] = {}
        self._first: dict[tuple[int, int], tuple[Verdict, Filled | None]] = {}

    def verdict(self, shape: int, item: int) -> Verdict:
        """What kube-scheduler says about one bundle of the class on an empty node of the shape."""
        return self._first_on(shape, item)[0]

    def known(self, shape: int, item: int) -> bool:
        """Whether the verdict has been worked out already."""
        return (shape, item) in self._first

    def breaks(self, shape: int, items: Iterable[int]) -> int | None:
        """Which of the classes could not be scheduled anywhere once a node of the shape exists, or None.

        A class that no shape at all takes is broken by itself, whatever is bought.
        """
        for item in items:
            if isinstance(self.verdict(shape, item), Fatal) and any(
                isinstance(self.verdict(other, item), Fits) for other in range(len(self._shapes))
            ):
                return item
        return None

    def empty(self, shape: int) -> Filled:
        """An empty node of the shape."""
        if shape not in self._empty:
            world = self._shapes[shape].sample.added_to(self._world)
            self._empty[shape] = Filled(shape, world, {})
        return self._empty[shape]

    def put(self, state: Filled, item: int) -> Filled | None:
        """The node with the next bundle of the class on it."""
        if not state.counts:
            return self._first_on(state.shape, item)[1]
        return self._put(state, item)[1]

    def preference(self, state: Filled) -> int:
        """Sum of the firstAvailable indexes chosen on the node."""
        return state.preference

    def free(self, state: Filled) -> int:
        """Device units left, of the drivers whose devices are used."""
        drivers = {unit[0] for unit in state.used}
        return self._shapes[state.shape].units.total(drivers) - len(state.used)

    def worth_trying(self, shape: int, item: int) -> bool:
        """A special preparation of a machine (MIG) is, where the plain machine fails for want of other devices."""
        plain = self._shapes[shape].plain
        if plain is None:
            return True
        verdict = self.verdict(plain, item)
        return not isinstance(verdict, Fits) and verdict.reasons[0].code not in _NOT_CURED_BY_MIG

    def full(self, state: Filled) -> bool:
        """Whether every device is used, as far as devices cannot be divided."""
        units = self._shapes[state.shape].units
        return bool(state.used) and self.free(state) == 0 and not units.divisible

    def _first_on(self, shape: int, item: int) -> tuple[Verdict, Filled | None]:
        key = (shape, item)
        if key not in self._first:
            self._first[key] = self._as_plain(shape, item) or self._put(self.empty(shape), item)
        return self._first[key]

    def _as_plain(self, shape: int, item: int) -> tuple[Verdict, None] | None:
        """What the plain machine lacks in other resources, its special preparations lack as well."""
        plain = self._shapes[shape].plain
        verdict = self.verdict(plain, item) if plain is not None else None
        if isinstance(verdict, DoesNotFit) and all(r.code is Code.INSUFFICIENT_RESOURCE for r in verdict.reasons):
            return verdict, None
        return None

    def _put(self, state: Filled, item: int) -> tuple[Verdict, Filled | None]:
        shape = self._shapes[state.shape]
        node = shape.node.name
        pods = self._classes[item].members[state.counts.get(item, 0)].pods
        verdict = self.ledger.fit(item, pods, node, state.world)
        if not isinstance(verdict, Fits):
            return verdict, None
        filled = replace(
            state,
            world=state.world.placed(pods, node, verdict),
            counts={**state.counts, item: state.counts.get(item, 0) + 1},
            preference=state.preference + verdict.preference,
            used=state.used | shape.units.touched(devices_of(verdict.allocations.values())),
        )
        return verdict, filled
