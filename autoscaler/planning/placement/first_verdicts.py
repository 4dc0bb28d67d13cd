"""What kube-scheduler says about one bundle of each class on an empty node of each shape, where each pod is apart.

Amounts are compared with all shapes at once. What else there is to say is equal for all classes of a kin, which differ
in amounts only: it is asked for one of them that has room, who pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from autoscaler.model.reason import Code, Reason
from autoscaler.model.verdict import DoesNotFit, Fatal, Unknown, Verdict
from autoscaler.planning.packing.room import Bits, Room, numbers_in
from autoscaler.planning.placement.device_states import PodApart
from autoscaler.planning.work import over_budget

FULL = DoesNotFit((Reason.of(Code.INSUFFICIENT_RESOURCE),))


@dataclass(slots=True)
class _Kin:
    """The answers about classes that differ in amounts only, by shape: those that may take them, and those that take
    none whatever else is on the node."""

    answers: dict[int, Verdict] = field(default_factory=dict)
    asked: Bits = 0
    possible: Bits = 0
    refused: Bits = 0
    unknown: Bits = 0

    def add(self, shape: int, verdict: Verdict) -> None:
        """One more answer."""
        self.answers[shape] = verdict
        self.asked |= 1 << shape
        if not isinstance(verdict, DoesNotFit | Fatal):
            self.possible |= 1 << shape
        if isinstance(verdict, Unknown):
            self.unknown |= 1 << shape
        if _devices_missing(verdict):
            self.refused |= 1 << shape


class FirstVerdicts:
    """Verdicts by shape and class. `ask` works one out, and the class pays for it."""

    def __init__(self, free: Callable[[], Sequence[Mapping[str, int]]], ask: Callable[[int, int], Verdict]) -> None:
        self._free = free
        self._ask = ask
        self._room: Room[str] | None = None
        self._roomy: dict[int, Bits] = {}
        self._kin: dict[tuple[int, int], _Kin] = {}

    def of(self, shape: int, item: int, pod: PodApart) -> Verdict:
        """The verdict about one bundle of the class: `pod`. Its reasons may name equal claims of another class."""
        if not self.roomy(item, pod) >> shape & 1:
            return FULL
        kin = self._kin_of(pod)
        found = kin.answers.get(shape)
        if found is None:
            found = self._ask(shape, item)
            if over_budget(found):
                return found
            kin.add(shape, found)
        return found

    def possible(self, item: int, pod: PodApart, among: Bits) -> Bits:
        """Of these shapes those whose empty nodes may take one bundle of the class."""
        roomy, kin, undecided = self.roomy(item, pod) & among, self._kin_of(pod), 0
        for shape in numbers_in(roomy & ~kin.asked):
            if over_budget(self.of(shape, item, pod)):
                undecided |= 1 << shape
        return roomy & kin.possible | undecided

    def roomy(self, item: int, pod: PodApart) -> Bits:
        """The shapes whose empty nodes have room for the amounts of the class."""
        if item not in self._roomy:
            if self._room is None:
                self._room = Room(dict(enumerate(self._free())))
            self._roomy[item] = self._room.of(pod.amounts)
        return self._roomy[item]

    def refused(self, pod: PodApart) -> Bits:
        """The shapes of which it is known that they take no class of this kin, whatever else is on the node."""
        return self._kin_of(pod).refused

    def unknown(self, pod: PodApart) -> Bits:
        """The shapes of which nobody knows whether they take a class of this kin."""
        return self._kin_of(pod).unknown

    def _kin_of(self, pod: PodApart) -> _Kin:
        key = (pod.wants, pod.selects)
        found = self._kin.get(key)
        if found is None:
            found = self._kin[key] = _Kin()
        return found


def _devices_missing(verdict: Verdict) -> bool:
    """Whether no node of the shape takes the pod. Drivers may refuse one combination of devices and take another."""
    return isinstance(verdict, DoesNotFit) and all(r.code is not Code.PREPARE_REFUSED for r in verdict.reasons)


def fits_amounts(free: Mapping[str, int], pod: PodApart) -> bool:
    """Whether what is free suffices for the pod."""
    for resource, amount in pod.amounts.items():  # noqa: SIM110  # a generator takes twice as long
        if amount > free.get(resource, 0):
            return False
    return True


def short_of(free: Mapping[str, int], pod: PodApart) -> DoesNotFit:
    """What there is too little of."""
    return DoesNotFit(
        tuple(
            Reason.of(
                Code.INSUFFICIENT_RESOURCE,
                f"pod {pod.pod.key}",
                resource=resource,
                wanted=amount,
                free=max(free.get(resource, 0), 0),
            )
            for resource, amount in pod.amounts.items()
            if amount > free.get(resource, 0)
        )
    )


def lacks_amounts(verdict: Verdict) -> bool:
    """Whether nothing but amounts is missing."""
    return isinstance(verdict, DoesNotFit) and all(r.code is Code.INSUFFICIENT_RESOURCE for r in verdict.reasons)
