"""Verdicts about one bundle of each class on an empty node of each shape, for pods that are decided separately.

Amounts are compared with all shapes at once. The rest of the verdict is equal for all classes of a kin, which differ
only in amounts: it is computed for one of them that has room, and this class pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.verdict import DoesNotFit, Fatal, Unknown, Verdict
from autoscaler.planning.packing.room import Bits, Room, bits_of, numbers_in
from autoscaler.planning.placement.device_states import Filled, PodApart, Step
from autoscaler.planning.work import over_budget
from instance_catalog.dataclass import dataclass, field

Ask: TypeAlias = Callable[[int, int], Verdict]
FULL = DoesNotFit((Reason.of(Code.INSUFFICIENT_RESOURCE),))


@dataclass(slots=True, eq=False)
class Kin:
    """The verdicts about classes that differ only in amounts, by shape: shapes that may take them, and shapes that
    take none of them whatever else is on the node."""

    answers: dict[int, Verdict] = field(default_factory=dict)
    asked: Bits = 0
    possible: Bits = 0
    refused: Bits = 0
    unknown: Bits = 0

    def add(self, shape: int, verdict: Verdict) -> None:
        """Add one verdict."""
        self.answers[shape] = verdict
        self.asked |= 1 << shape
        if not isinstance(verdict, DoesNotFit | Fatal):
            self.possible |= 1 << shape
        if isinstance(verdict, Unknown):
            self.unknown |= 1 << shape
        if _devices_missing(verdict):
            self.refused |= 1 << shape


class FirstVerdicts:
    """Verdicts by shape and class.

    `same` numbers the requests of pods: equal if the same devices match on every machine. `selection` numbers their
    selections: equal if every machine answers the same. Methods are given `ask`, which computes a verdict at the cost
    of the class. It is not kept: a cycle would keep the objects of a plan.
    """

    def __init__(
        self,
        free: Callable[[], Sequence[Mapping[str, int]]],
        same: Callable[[PodApart], int],
        selection: Callable[[PodApart], int],
    ) -> None:
        self._free = free
        self._same = same
        self._selection = selection
        self._room: Room[str] | None = None
        self._roomy: dict[int, Bits] = {}
        self._as_plain: dict[Bits, Bits] = {}
        self._kin: dict[tuple[int, int], Kin] = {}

    def of(self, shape: int, item: int, pod: PodApart, ask: Ask) -> Verdict:
        """The verdict about one bundle of the class: `pod`. Its reasons may name equal claims of another class."""
        if not self.roomy(item, pod) >> shape & 1:
            return FULL
        kin = self.kin_of(pod)
        found = kin.answers.get(shape)
        if found is None:
            found = ask(shape, item)
            if over_budget(found):
                return found
            kin.add(shape, found)
        return found

    def possible(self, item: int, pod: PodApart, among: Bits, ask: Ask | None) -> Bits:
        """Those of the shapes whose empty nodes may take one bundle of the class. Without `ask`, an answer that is not
        known yet is none that the shape refuses."""
        roomy, kin = self.roomy(item, pod) & among, self.kin_of(pod)
        if ask is None:
            return roomy & (kin.possible | ~kin.asked)
        undecided = 0
        for shape in numbers_in(roomy & ~kin.asked):
            if over_budget(self.of(shape, item, pod, ask)):
                undecided |= 1 << shape
        return roomy & kin.possible | undecided

    def roomy(self, item: int, pod: PodApart) -> Bits:
        """The shapes whose empty nodes have room for the amounts of the class."""
        if item not in self._roomy:
            if self._room is None:
                self._room = Room(dict(enumerate(self._free())))
            self._roomy[item] = self._room.of(pod.amounts)
        return self._roomy[item]

    def roomy_as_plain(self, item: int, pod: PodApart, plain: Sequence[tuple[int, int]]) -> Bits:
        """The same without special preparations of machines if the plain machine, given beside it, has no room."""
        room = self.roomy(item, pod)
        if room not in self._as_plain:
            self._as_plain[room] = room & ~bits_of(special for special, whole in plain if not room >> whole & 1)
        return self._as_plain[room]

    def refused(self, pod: PodApart) -> Bits:
        """The shapes that are known to take no class of this kin, whatever else is on the node."""
        return self.kin_of(pod).refused

    def unknown(self, pod: PodApart) -> Bits:
        """The shapes that are not known to take or refuse a class of this kin."""
        return self.kin_of(pod).unknown

    def kin_of(self, pod: PodApart) -> Kin:
        """The verdicts about the pod and all that differ from it only in amounts."""
        key = (pod.wants, pod.selects)
        found = self._kin.get(key)
        if found is None:
            found = self._kin.setdefault((self._same(pod), self._selection(pod)), Kin())
            self._kin[key] = found
        return found


def _devices_missing(verdict: Verdict) -> bool:
    """True if no node of the shape takes the pod. Drivers may refuse one combination of devices and accept another."""
    return isinstance(verdict, DoesNotFit) and all(r.code is not Code.PREPARE_REFUSED for r in verdict.reasons)


def fits_amounts(free: Mapping[str, int], pod: PodApart) -> bool:
    """True if the free amounts are enough for the pod."""
    for resource, amount in pod.amounts.items():  # noqa: SIM110  # a generator takes twice as long
        if amount > free.get(resource, 0):
            return False
    return True


def short_of(free: Mapping[str, int], pod: PodApart) -> DoesNotFit:
    """The resources of which too little is free."""
    return DoesNotFit(
        tuple(
            Reason.of(
                Code.INSUFFICIENT_RESOURCE,
                Subject("pod", pod.pod.key),
                resource=resource,
                wanted=amount,
                free=max(free.get(resource, 0), 0),
            )
            for resource, amount in pod.amounts.items()
            if amount > free.get(resource, 0)
        )
    )


def lacks_amounts(verdict: Verdict) -> bool:
    """True if only amounts are missing."""
    return isinstance(verdict, DoesNotFit) and all(r.code is Code.INSUFFICIENT_RESOURCE for r in verdict.reasons)


def remembered(state: Filled, known: Step | None, pod: PodApart) -> Verdict:
    """The verdict about a pod if the filters accept all such pods: amounts first, then the claims."""
    if known is not None and fits_amounts(state.free, pod):
        return known.verdict
    return FULL if state.counts else short_of(state.free, pod)
