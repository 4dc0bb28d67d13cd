"""Fills hypothetical nodes bundle by bundle, with the answer of kube-scheduler's rules at each step.

Every state is a simulated cluster with one more hypothetical node. If the claims of a pod and the rest of its
requirements depend on each other only by amounts, both are decided separately: machines with the same devices then
share all answers about claims.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.verdict import Fits, Verdict
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.placement.device_states import (
    DeviceState,
    DeviceStates,
    Filled,
    PodApart,
    Put,
    claims_apart,
)
from autoscaler.planning.placement.first_verdicts import FULL, fits_amounts, lacks_amounts, remembered, short_of
from autoscaler.planning.placement.matching import Matching, Requests
from autoscaler.planning.placement.selections import Selections
from autoscaler.planning.supply.class_counts import devices_wanted
from autoscaler.planning.supply.hypothetical import Shape
from autoscaler.planning.supply.units import devices_of
from autoscaler.planning.work import Ledger
from autoscaler.scheduling.filters import AFTER_AMOUNTS
from autoscaler.scheduling.fit import filtered
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace

# In place of a bundle's number: the last bundle of its class; all of them are equal.
LOOKING: Final = -1


class PodsApart:
    """The bundles whose claims and amounts are decided separately, by index of the class."""

    def __init__(self, world: World, shapes: Sequence[Shape], classes: Sequence[BundleClass], *, apart: bool) -> None:
        self._world = world
        self._classes = classes
        # A DaemonSet's pod may exclude other pods from its node.
        self.alone = apart and not any(pod.pod_anti_affinity for shape in shapes for pod in shape.daemons)
        self.numbers: dict[Hashable, int] = {}  # of what pods want and select
        self._found: dict[tuple[int, int], PodApart | None] = {}
        self._first: dict[int, int] = {}  # by requests of claims, the first class
        self._selecting: dict[int, int] = {}  # by selection of nodes, the first class
        self._wanted: dict[int, Mapping[str, int]] = {}  # by requests of claims, the least number of devices
        self._resources: dict[str, None] = {}
        self._device_classes: dict[str, None] = {}

    def of(self, item: int, number: int) -> PodApart | None:
        """The bundle of the class with this number if its claims are decided separately; LOOKING: or if it has terms
        about others."""
        try:  # a plan reads these a million times
            return self._found[item, number]
        except KeyError:
            return self._read(item, number)

    def _read(self, item: int, number: int) -> PodApart | None:
        bundle, looking = self._classes[item].members[number], number == LOOKING
        found = claims_apart(bundle, self._world, self.numbers, looking=looking) if self.alone else None
        self._found[item, number] = found
        self._first.setdefault(found.wants if found else -1, item)
        if found is not None:
            self._selecting.setdefault(found.selects, item)
            self._resources.update(dict.fromkeys(found.amounts))
            self._device_classes.update(dict.fromkeys(self.devices_wanted(found)))
        return found

    def devices_wanted(self, pod: PodApart) -> Mapping[str, int]:
        """By DeviceClass, the least number of devices that the claims of the pod use for themselves."""
        if pod.wants not in self._wanted:
            self._wanted[pod.wants] = devices_wanted(pod.claims)
        return self._wanted[pod.wants]

    def first_class(self, pod: PodApart) -> int | None:
        """The first class with equal requests of claims; None if no such class was asked about."""
        return self._first.get(pod.wants)

    def first_selecting(self, pod: PodApart) -> int | None:
        """The first class with an equal selection of nodes; None if no such class was asked about."""
        return self._selecting.get(pod.selects)

    def dimensions(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The resources and DeviceClasses that these pods request, for all pods that were read so far."""
        return tuple(self._resources), tuple(self._device_classes)


class NodeFiller:
    """Puts bundles onto hypothetical nodes. Shapes and classes are known by their index."""

    def __init__(
        self,
        world: World,
        shapes: Sequence[Shape],
        classes: Sequence[BundleClass],
        ledger: Ledger,
        *,
        pods: PodsApart,
        requests: Requests,
        selections: Selections,
    ) -> None:
        self._world = world
        self._shapes = shapes
        self._classes = classes
        self._ledger = ledger
        self._pod_apart = pods.of
        self._requests = requests
        self._selection = selections.number
        self._empty: dict[int, Filled] = {}
        self._alike: dict[Hashable, DeviceStates] = {}
        self._passes: set[tuple[int, int]] = set()  # shapes and node selections with only amounts left to check
        self.states: dict[int, DeviceStates] = {}  # by shape, once its empty node was used

    def matchings(self) -> Sequence[Matching]:
        """The matches of claims on all machines with different devices."""
        for shape in range(len(self._shapes)):
            self.empty(shape)
        return [states.matching for states in self._alike.values()]

    def only_amounts(self, shape: int, pod: PodApart) -> bool:
        """True if every other filter is known to accept pods with the same selection on nodes of the shape."""
        return (shape, self._selection(pod)) in self._passes

    def needs_no_question(self, shape: int, item: int) -> bool:
        """True if this plan has already decided whether an empty node of the shape takes the class."""
        empty, pod = self.empty(shape), self._pod_apart(item, 0)
        if pod is None or empty.devices is None or self._ledger.waits(item):
            return False
        return self.only_amounts(shape, pod) and self.states[shape].known(empty.devices, pod) is not None

    def empty(self, shape: int) -> Filled:
        """A new node of the shape."""
        if shape not in self._empty:
            world = self._shapes[shape].sample.added_to(self._world)
            node = world.nodes[self._shapes[shape].node.name]
            # The signature has all that an allocation reads: machines with the same devices share all answers about
            # claims.
            seen = self._shapes[shape]
            devices = (seen.signature, node.node.name, node.node.labels, node.node.refused_sharing)
            if devices not in self._alike:
                self._alike[devices] = DeviceStates(self._shapes[shape], world, self._requests)
            self.states[shape] = self._alike[devices]
            self._empty[shape] = Filled(shape, world, seen.free, self.states[shape].empty)
        return self._empty[shape]

    def put(self, state: Filled, item: int) -> tuple[Verdict, Filled | None]:
        """The verdict about the next bundle of the class, and the node with that bundle if it fits."""
        number = state.counts.get(item, 0)
        apart = self._pod_apart(item, number) if state.devices is not None else None
        if apart is not None and state.devices is not None:
            return self._put_apart(state, state.devices, item, apart)
        bundle, node = self._classes[item].members[number], self._shapes[state.shape].node.name
        verdict = self._ledger.fit(item, bundle.pods, node, state.world)
        if not isinstance(verdict, Fits):
            return verdict, None
        return verdict, replace(
            state,
            devices=None,
            counts={**state.counts, item: number + 1},
            preference=state.preference + verdict.preference,
            units=state.units | self._shapes[state.shape].units.touched(devices_of(verdict.allocations.values())),
            last=Put(state, bundle.pods, node, lambda: verdict),
        )

    def _put_apart(
        self, state: Filled, devices: DeviceState, item: int, pod: PodApart
    ) -> tuple[Verdict, Filled | None]:
        """The same, with cached results for such claims on such devices."""
        passes, states = self.only_amounts(state.shape, pod), self.states[state.shape]
        known = step = states.known(devices, pod)
        # A class that has spent its share has no further question, and what is known needs none.
        asks = not passes or self._ledger.waits(item) or not (state.counts or self._ledger.refused(item))
        if step is None or asks:
            if passes and (known is not None or not fits_amounts(state.free, pod)):
                verdict = self._ledger.check_amounts(item, pod.pod, lambda: remembered(state, known, pod))
            else:
                verdict = self._ledger.decide(
                    item, (pod.pod,), lambda paid: self._decide_apart(state, devices, pod, paid)
                )
            if not isinstance(verdict, Fits):
                return verdict, None
            step = states.step(devices, pod)
        elif step.after is not None and not fits_amounts(state.free, pod):
            return FULL if state.counts else short_of(state.free, pod), None
        if step.after is None:
            return step.verdict, None
        free = dict(state.free)
        for resource, amount in pod.amounts.items():
            free[resource] = free.get(resource, 0) - amount
        return step.verdict, Filled(
            shape=state.shape,
            empty=state.empty,
            free=free,
            devices=step.after,
            counts={**state.counts, item: state.counts.get(item, 0) + 1},
            preference=state.preference + step.preference,
            units=state.units | step.units,
            last=Put(state, (pod.pod,), self._shapes[state.shape].node.name, partial(step.verdict_for, pod)),
        )

    def _decide_apart(self, state: Filled, devices: DeviceState, pod: PodApart, paid: Iterable[Pod]) -> Verdict:
        """The filters refuse, or the claims decide. Only amounts change while such pods fill a node."""
        next(iter(paid))
        node, passes = state.empty.nodes[self._shapes[state.shape].node.name], (state.shape, self._selection(pod))
        if passes not in self._passes:
            if (refusal := filtered(pod.pod, node, state.empty)) is not None:
                # A refusal for amounts alone means nothing for pods that request less.
                if lacks_amounts(refusal) and filtered(pod.pod, node, state.empty, filters=AFTER_AMOUNTS) is None:
                    self._passes.add(passes)
                return refusal
            self._passes.add(passes)
        if not fits_amounts(state.free, pod):
            return FULL if state.counts else short_of(state.free, pod)
        return self.states[state.shape].step(devices, pod).verdict
