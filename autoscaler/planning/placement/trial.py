"""The oracle of the packing: which hypothetical nodes take which bundles, with the reasons of refusals.

`filling.py` evaluates kube-scheduler's rules. First verdicts (one bundle on an empty node) are cached here: they answer
most questions of the search, and they explain the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial

from autoscaler.model.reason import Code
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.packing.room import Bits, bits_of, numbers_in
from autoscaler.planning.placement.device_states import Filled, PodApart
from autoscaler.planning.placement.filling import LOOKING, NodeFiller, PodsApart
from autoscaler.planning.placement.first_verdicts import FULL, FirstVerdicts, Kin, fits_amounts, lacks_amounts, short_of
from autoscaler.planning.placement.matching import Everywhere, Requests
from autoscaler.planning.placement.selections import Selections
from autoscaler.planning.supply.drivers import with_cause
from autoscaler.planning.supply.hypothetical import Shape
from autoscaler.planning.supply.units import Unit
from autoscaler.planning.work import Ledger, over_budget
from autoscaler.scheduling.world import World

_DEVICES = "devices"
_NOT_CURED_BY_MIG = (Code.TOO_FEW_DEVICES, Code.INSUFFICIENT_RESOURCE)


class PackingOracle:
    """Implements problem.Oracle. Shapes and classes are known by their index.

    `apart`: whether claims are decided separately from amounts if only amounts connect them, which changes no answer.
    `devices_anywhere`: new nodes may reach devices beside their own. `alone`: no pod of a DaemonSet excludes others.
    """

    def __init__(
        self, world: World, shapes: Sequence[Shape], classes: Sequence[BundleClass], ledger: Ledger, *, apart: bool
    ) -> None:
        self._shapes = shapes
        self._classes = classes
        requests = Requests()
        self._pods = PodsApart(world, shapes, classes, apart=apart)
        self._pod_apart = self._pods.of
        self._selections = Selections(world, shapes, classes, ledger, payer=self._pods.first_selecting)
        self._nodes = NodeFiller(
            world, shapes, classes, ledger, pods=self._pods, requests=requests, selections=self._selections
        )
        self.devices_anywhere, self.alone = bool(world.devices.layers.shared()), self._pods.alone
        self.ledger = ledger
        self._first: dict[tuple[int, int], tuple[Verdict, Filled | None]] = {}
        self._verdicts: dict[tuple[int, int], Verdict] = {}  # verdicts, except those for lack of work units
        self._left: dict[tuple[int, frozenset[Unit]], int] = {}
        self._fitting: set[int] = set()
        self._held: set[Hashable] = set()  # shapes with the kin of bundles that they take together
        self._step_verdicts: dict[tuple[int, int], Verdict] = {}
        everywhere = Everywhere(requests, classes, self._nodes.matchings)
        # Nothing here refers to the oracle: it is freed with its last reference, and the whole plan with it.
        self._firsts = FirstVerdicts(
            lambda: [shape.free for shape in shapes],
            partial(_same, self._pods, everywhere, ledger),
            self._selections.number,
        )
        self._plain = [(n, shape.plain) for n, shape in enumerate(shapes) if shape.plain is not None]
        self._answered: dict[int, Bits] = {}  # by class, the shapes with a verdict

    def verdict(self, shape: int, item: int) -> Verdict:
        """The verdict of kube-scheduler about one bundle of the class on an empty node of the shape.

        Its reasons may name pods and claims of another class, and do not name missing amounts: `explained` names those
        of this class.
        """
        known = self._verdicts.get((shape, item))
        if known is None:
            known = self._verdict(shape, item)
            if not over_budget(known):
                self._verdicts[shape, item] = known
        return known

    def _verdict(self, shape: int, item: int) -> Verdict:
        pod = self._pod_apart(item, 0)
        if pod is None:
            return self._first_on(shape, item)[0]
        known = self._first.get((shape, item))
        if known is not None:
            return known[0]
        if not self._answered.get(item, 0) >> shape & 1:
            if self.ledger.refused(item):
                return self._first_on(shape, item)[0]
            self._answered[item] = self._answered.get(item, 0) | 1 << shape
        # Resources that the plain machine lacks are missing on its special preparations as well.
        plain = self._shapes[shape].plain
        if plain is not None and lacks_amounts(self.verdict(plain, item)):
            return FULL
        found = self._firsts.of(shape, item, pod, self._ask)
        if isinstance(found, Fits):
            self._fitting.add(item)
        return found

    def fits(self, shape: int, item: int) -> bool:
        """True if an empty node of the shape takes one bundle of the class."""
        return isinstance(self.verdict(shape, item), Fits)

    def explained(self, shape: int, item: int) -> Verdict:
        """The verdict for output."""
        verdict, candidate = self._explained(shape, item), self._shapes[shape].candidate
        if not isinstance(verdict, DoesNotFit):
            return verdict
        return DoesNotFit(tuple(with_cause(r, candidate.pool, candidate.instance_type) for r in verdict.reasons))

    def _explained(self, shape: int, item: int) -> Verdict:
        verdict, pod = self.verdict(shape, item), self._pod_apart(item, 0)
        devices, states = self._nodes.empty(shape).devices, self._nodes.states[shape]
        if pod is None or devices is None:
            return verdict
        if (refusal := self._selections.refusal(self._speaker(shape, item), pod)) is not None:
            return refusal
        if verdict is FULL and self._shapes[shape].plain is None and self._nodes.only_amounts(shape, pod):
            return short_of(self._shapes[shape].free, pod)
        step = states.known(devices, pod)
        if step is None or step.verdict is not verdict:
            own, short = self._first_on(shape, item)[0], verdict is FULL
            return own if not over_budget(own) else short_of(self._shapes[shape].free, pod) if short else verdict
        key = (id(step), item)
        found = self._step_verdicts.get(key) or states.verdict_if_known(step, pod)
        if found is None:  # a second evaluation costs the same work
            found = self.ledger.decide(item, (pod.pod,), lambda paid: states.verdict(devices, step, pod, paid))
        return found if over_budget(found) else self._step_verdicts.setdefault(key, found)

    def told_as(self, shape: int, item: int) -> Hashable:
        """Equal for shapes with the same `explained` verdict about the class, and about all with equal requests and
        room on the same shapes; None if each shape must be evaluated. Shapes with the same devices share the step."""
        verdict, pod, seen = self.verdict(shape, item), self._pod_apart(item, 0), self._shapes[shape]
        if pod is None:
            return None
        if (group := self._selections.group(self._speaker(shape, item), pod)) is not None:
            return (group,)
        if verdict is FULL and seen.plain is not None:
            return self.told_as(seen.plain, item) if lacks_amounts(self.verdict(seen.plain, item)) else None
        if verdict is FULL:
            return frozenset(seen.free.items()) if self._nodes.only_amounts(shape, pod) else None
        devices = self._nodes.empty(shape).devices
        step = self._nodes.states[shape].known(devices, pod) if devices is not None else None
        return id(step) if step is not None and step.verdict is verdict else None

    def _speaker(self, shape: int, item: int) -> int:
        """The shape whose reasons are told: the plain machine for a preparation of it that lacks the same amounts."""
        plain = self._shapes[shape].plain
        return plain if plain is not None and lacks_amounts(self.verdict(plain, item)) else shape

    def takes(self, shape: int, item: int) -> bool:
        """True if one bundle fits on an empty node; the number of devices and the amounts are checked first, at a
        lower price."""
        devices, pod = self._shapes[shape].whole_devices, self._pod_apart(item, 0)
        if pod is not None and devices is not None and pod.devices > devices and not self.devices_anywhere:
            return False
        return self.has_room(self._nodes.empty(shape), item) and self.fits(shape, item)

    def known(self, shape: int, item: int) -> bool:
        """True if the verdict is cached."""
        pod = self._pod_apart(item, 0)
        return (shape, item) in self._first or (pod is not None and bool(self._known(item, pod) >> shape & 1))

    def known_shapes(self, item: int) -> Bits:
        """The shapes for which `known` is true for the class."""
        pod = self._pod_apart(item, 0)
        if pod is None:
            return bits_of(shape for shape in range(len(self._shapes)) if (shape, item) in self._first)
        return self._known(item, pod)

    def refusing(self, item: int) -> Bits:
        """Those of these shapes that certainly do not take the class, without a further evaluation."""
        pod = self._pod_apart(item, 0)
        return 0 if pod is None or self.ledger.refused(item) else self._firsts.refused(pod)

    def undecided(self, item: int) -> Bits:
        """Those of these shapes whose verdict is unknown, whatever work is spent."""
        pod, known = self._pod_apart(item, 0), self.known_shapes(item)
        if pod is not None:
            known &= self._firsts.unknown(pod) & self._firsts.roomy(item, pod)
        verdicts = ((shape, self.verdict(shape, item)) for shape in numbers_in(known))
        return bits_of(s for s, verdict in verdicts if isinstance(verdict, Unknown) and not over_budget(verdict))

    def _known(self, item: int, pod: PodApart) -> Bits:
        return self._answered.get(item, 0) | self._firsts.refused(pod)

    def same_verdicts(self, item: int) -> Hashable:
        """Equal for classes with the same cached answers and verdicts of the same sort on each shape.

        None for classes that are decided as a whole, and for those that have spent their share.
        """
        pod = self._pod_apart(item, 0)
        if pod is None or self.ledger.refused(item):
            return None
        return self._firsts.kin_of(pod), self._firsts.roomy(item, pod), self._known(item, pod)

    def kin(self, item: int) -> Hashable:
        """Equal for classes that differ only in amounts."""
        pod = self._pod_apart(item, 0)
        return item if pod is None else self._firsts.kin_of(pod)

    @property
    def numbers(self) -> dict[Hashable, int]:
        """Numbers that represent the requests and selectors of pods, for `alike`."""
        return self._pods.numbers

    def alike(self, pod: PodApart) -> Hashable:
        """Equal for pods that get the same of equal nodes that have their amounts: those of one kin."""
        return self._firsts.kin_of(pod)

    def may_hold(self, items: Iterable[int]) -> Bits:
        """The shapes whose nodes may hold the classes together, by cached answers and amounts of each."""
        shapes = (1 << len(self._shapes)) - 1
        for item in items:
            pod = self._pod_apart(item, 0)
            shapes &= self.roomy(item) & ~(self._firsts.refused(pod) if pod is not None else 0)
        return shapes

    def refuses_kin(self, shape: int, item: int) -> bool:
        """True if a node of the shape takes no class of this kin, whatever its amounts. False if that is not known."""
        pod = self._pod_apart(item, 0)
        return pod is not None and bool(self._firsts.refused(pod) >> shape & 1)

    def breaks(self, shape: int, items: Iterable[int]) -> int | None:
        """The class that could not be scheduled anywhere once a node of the shape exists, or None.

        A class that no shape takes is broken already, whatever is bought.
        """
        return self.breaking((shape,), items).get(shape)

    def breaking(self, shapes: Iterable[int], items: Iterable[int]) -> dict[int, int]:
        """The same for several shapes: those that break a class, with that class. What is known of a class is looked up
        once, because thousands of them are asked about each bought shape."""
        pods = [(item, self._pod_apart(item, 0)) for item in items]
        asked = [(item, None if pod is None else self._firsts.kin_of(pod)) for item, pod in pods]
        found: dict[int, int] = {}
        for shape in shapes:
            for item, kin in asked:
                if self._aborts(shape, item, kin) and any(
                    isinstance(self.verdict(other, item), Fits) for other in range(len(self._shapes))
                ):
                    found[shape] = item
                    break
        return found

    def _aborts(self, shape: int, item: int, kin: Kin | None) -> bool:
        """True if the check of the class ends with an error there."""
        known = None if kin is None or self.ledger.refused(item) else kin.answers.get(shape)
        if known is None or isinstance(known, Fatal):
            return isinstance(self.verdict(shape, item), Fatal)
        self._answered[item] = self._answered.get(item, 0) | 1 << shape
        return False

    def empty(self, shape: int) -> Filled:
        return self._nodes.empty(shape)

    def put(self, state: Filled, item: int) -> Filled | None:
        """The node with the next bundle of the class on it."""
        if state.counts:
            return self._nodes.put(state, item)[1]
        return self._first_on(state.shape, item)[1] if self.fits(state.shape, item) else None

    def holds(self, shape: int, items: Sequence[int]) -> bool:
        """True if an empty node of the shape takes these bundles, one after the other. Bundles that differ only in
        amounts share the answer, and their amounts are compared together.
        """
        counts, pods = Counter[int](), list[PodApart | None]()
        for item in items:
            pods.append(self._pod_apart(item, counts[item]))
            counts[item] += 1
        apart = [pod for pod in pods if pod is not None]
        key = (shape, tuple(map(self.alike, apart))) if len(apart) == len(pods) else None
        if key is not None:
            wanted = Counter[str]()
            for pod in apart:
                wanted.update(pod.amounts)
            free = self._shapes[shape].free
            if any(amount > free.get(resource, 0) for resource, amount in wanted.items()):
                return False
            if key in self._held:
                return True
        state: Filled | None = self.empty(shape)
        for item in items:
            state = self.put(state, item) if state else None
        if state is not None and key is not None:
            self._held.add(key)
        return state is not None

    def preference(self, state: Filled) -> int:
        """Sum of the firstAvailable indexes chosen on the node."""
        return state.preference

    def free(self, state: Filled) -> int:
        """Free device units of the drivers whose devices are used, as `DeviceUnits.unwanted` counts them."""
        key = (state.shape, state.units)
        left = self._left.get(key)
        if left is None:
            left = self._left[key] = self._shapes[state.shape].units.unwanted(state.units)
        return left

    def worth_trying(self, shape: int, item: int) -> bool:
        """A special preparation of a machine (MIG) is worth trying only if the plain machine fails for lack of other
        devices."""
        plain = self._shapes[shape].plain
        if plain is None:
            return True
        verdict = self.verdict(plain, item)
        return not isinstance(verdict, Fits) and verdict.reasons[0].code not in _NOT_CURED_BY_MIG

    def full(self, state: Filled) -> bool:
        """True if every device is used, as far as devices cannot be divided."""
        units = self._shapes[state.shape].units
        return bool(state.units) and units.left(state.units) == 0 and not units.divisible

    def has_room(self, state: Filled, item: int) -> bool:
        """False if the amounts of one more bundle exceed the free ones; amounts do not depend on the order."""
        devices = state.devices
        pod = self._pod_apart(item, state.counts.get(item, 0)) if devices is not None else None
        if pod is None or devices is None:
            return True
        if devices.left is not None and pod.devices > devices.left:
            return False
        return fits_amounts(state.free, pod)

    def sizes(self, item: int) -> Mapping[Hashable, int] | None:
        """The amounts of a bundle of the class, and its devices by DeviceClass; None if other pods change them."""
        pod = self._pod_apart(item, 0) or self._pod_apart(item, LOOKING)
        if pod is None:
            return None
        sizes: dict[Hashable, int] = {}
        sizes.update(pod.amounts.items())
        for name, count in self._pods.devices_wanted(pod).items():
            sizes[_DEVICES, name] = count
        return sizes

    def room(self, shape: int) -> Mapping[Hashable, int]:
        """The amounts of an empty node, and its devices by DeviceClass if each serves one claim only."""
        empty = self._nodes.empty(shape)
        resources, device_classes = self._pods.dimensions()
        room: dict[Hashable, int] = {resource: max(0, empty.free.get(resource, 0)) for resource in resources}
        for name in device_classes:
            if (most := self._nodes.states[shape].most(name)) is not None:
                room[_DEVICES, name] = most
        return room

    def may_take(self, item: int, among: Bits) -> Bits:
        """Those of the shapes whose empty nodes may take the class; the others never do."""
        pod = self._pod_apart(item, 0)
        if pod is not None:
            return self._firsts.possible(item, pod, among, None if self.ledger.refused(item) else self._ask)
        refusing = (DoesNotFit, Fatal)
        return bits_of(s for s in numbers_in(among) if not isinstance(self.verdict(s, item), refusing))

    def roomy(self, item: int) -> Bits:
        """The shapes whose empty nodes have room for the amounts of the class, if nothing else changes the amounts."""
        pod = self._pod_apart(item, 0)
        if pod is None:
            looking = self._pod_apart(item, LOOKING)
            return -1 if looking is None else self._firsts.roomy(item, looking)
        return self._firsts.roomy_as_plain(item, pod, self._plain)

    def _ask(self, shape: int, item: int) -> Verdict:
        return self._first_on(shape, item)[0]

    def _first_on(self, shape: int, item: int) -> tuple[Verdict, Filled | None]:
        key = (shape, item)
        found = self._first.get(key)
        if found is None:
            found = self._as_plain(shape, item)
            if found is None and self.ledger.refused(item) and not self._nodes.needs_no_question(shape, item):
                # An evaluation has the same result and takes far longer.
                found = self.ledger.unknown(item, self._classes[item].members[0].pods[0]), None
            if found is None:
                found = self._nodes.put(self._nodes.empty(shape), item)
            self._first[key] = found
            self._verdicts.pop(key, None)
            self._answered[item] = self._answered.get(item, 0) | 1 << shape
            if isinstance(found[0], Fits):
                self._fitting.add(item)
        return found

    def given_up(self, item: int) -> bool:
        """True if the class has used up its share, or waits, and no shape is known to take it."""
        return item not in self._fitting and self.ledger.refused(item)

    def _as_plain(self, shape: int, item: int) -> tuple[Verdict, None] | None:
        """Resources that the plain machine lacks are missing on its special preparations as well."""
        plain = self._shapes[shape].plain
        if plain is None or not lacks_amounts(self.verdict(plain, item)):
            return None
        return self._explained(plain, item), None


def _same(pods: PodsApart, everywhere: Everywhere, ledger: Ledger, pod: PodApart) -> int:
    """A number for the matches of the claims on all machines. The first class with these requests pays."""
    item = pods.first_class(pod)
    payer = None if item is None or ledger.refused(item) else ledger.accounts[item]
    return everywhere.number(pod.wants, pod.claims, payer)
