"""Finds pods that the same new nodes refuse, whatever they select and tolerate.

The filters beside amounts and claims read few labels of a node. Nodes that are equal in what they read get one answer,
and selections with equal answers about every machine are one for the search: thousands of pods that each select
another node group, which no offering has, are decided together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Reason
from autoscaler.model.verdict import DoesNotFit, Fits, Unknown, Verdict
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.placement.device_states import PodApart
from autoscaler.planning.supply.hypothetical import Shape
from autoscaler.planning.work import Ledger, over_budget
from autoscaler.scheduling.filters import AFTER_AMOUNTS, BEFORE_AMOUNTS
from autoscaler.scheduling.fit import filtered
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, replace

Refusal: TypeAlias = DoesNotFit | Unknown
# The number of different selections at which they are compared on every machine.
_MANY: Final = 64
# The most groups of shapes that are asked about one selection. Beyond that, such as for selections of instance types,
# the comparison costs more than asking the shapes with room for the pod.
_FEW: Final = 16


@dataclass(frozen=True, slots=True)
class _Groups:
    """The shapes that a selection cannot tell apart: by shape its group, and one shape of each group."""

    of: tuple[int, ...]
    samples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers about `pod`, by group: the refusal before amounts are compared, or the one after that."""

    pod: Pod
    groups: _Groups
    before: tuple[Refusal | None, ...]
    after: tuple[Refusal | None, ...]

    def signature(self) -> Hashable:
        """Equal for selections that every shape answers alike, and whose reasons differ between the same shapes."""
        return self.groups.of, tuple(map(_kind, self.before)), tuple(map(_kind, self.after))


class Selections:
    """The answers of new nodes to selections, by their number in `PodApart`. `payer`: the first class with one."""

    def __init__(
        self,
        world: World,
        shapes: Sequence[Shape],
        classes: Sequence[BundleClass],
        ledger: Ledger,
        *,
        payer: Callable[[PodApart], int | None],
    ) -> None:
        self._world = world
        self._shapes = shapes
        self._classes = classes
        self._ledger = ledger
        self._payer = payer
        self._number: dict[int, int] = {}
        self._answers: dict[int, _Answers] = {}
        self._first: dict[Hashable, int] = {}
        self._groups: dict[frozenset[str], _Groups] = {}
        self._equal: dict[tuple[int, ...], _Groups] = {}
        self._worlds: dict[int, World] = {}
        self._told: dict[tuple[str, int, int], Refusal] = {}

    def number(self, pod: PodApart) -> int:
        """The first selection with the same answers; the pod's own if there are few, or if its class cannot pay for
        the comparison."""
        found = self._number.get(pod.selects)
        if found is None:
            item = self._payer(pod) if self._many else None
            answers = None if item is None else self._asked(pod.pod, item)
            found = pod.selects
            if answers is not None:
                self._answers[found] = answers
                found = self._first.setdefault(answers.signature(), found)
            self._number[pod.selects] = found
        return found

    def group(self, shape: int, pod: PodApart) -> int | None:
        """Equal for shapes with the same `refusal`; None if there is none."""
        answers = self._answers.get(pod.selects)
        group = answers.groups.of[shape] if answers else 0
        return group if answers and answers.before[group] is not None else None

    def refusal(self, shape: int, pod: PodApart) -> Refusal | None:
        """The reasons why nodes of the shape refuse the pod before its amounts are compared; None if they do not, or
        if that is not known."""
        group = self.group(shape, pod)
        if group is None:
            return None
        key = (pod.pod.key, pod.selects, group)
        if key not in self._told:
            answers = self._answers[pod.selects]
            found, names = answers.before[group], {answers.pod.key: pod.pod.key}
            assert found is not None
            self._told[key] = replace(found, reasons=tuple(_renamed(reason, names) for reason in found.reasons))
        return self._told[key]

    @cached_property
    def _many(self) -> bool:
        if len(self._classes) < _MANY:
            return False
        pods = (found.sample.pods[0] for found in self._classes)
        return len({(pod.node_selector, pod.affinity, pod.tolerations) for pod in pods}) >= _MANY

    def _asked(self, pod: Pod, item: int) -> _Answers | None:
        """None if there is nothing to ask or too much, or if the class cannot pay for all of it: a comparison saves
        work, and must never cost a class its place."""
        groups, refusals = self._groups_for(pod), list[tuple[Refusal | None, Refusal | None]]()
        if not 0 < len(groups.samples) <= _FEW or not self._ledger.affords(item, pod, times=len(groups.samples)):
            return None

        def answered(paid: Iterable[Pod]) -> Verdict:
            refusals.extend(self._filtered(shape, pod) for shape, pod in zip(groups.samples, paid, strict=True))
            return DoesNotFit(()) if all(before or after for before, after in refusals) else Fits()

        if over_budget(self._ledger.decide(item, (pod,) * len(groups.samples), answered)):
            return None
        before, after = zip(*refusals, strict=True)
        return _Answers(pod, groups, before, after)

    def _filtered(self, shape: int, pod: Pod) -> tuple[Refusal | None, Refusal | None]:
        world = self._with(shape)
        state = world.nodes[self._shapes[shape].node.name]
        before = filtered(pod, state, world, filters=BEFORE_AMOUNTS)
        return before, None if before else filtered(pod, state, world, filters=AFTER_AMOUNTS)

    def _with(self, shape: int) -> World:
        """The cluster with a node of the shape, without its devices, which no filter reads."""
        if shape not in self._worlds:
            seen = self._shapes[shape]
            self._worlds[shape] = self._world.with_node(seen.node, (), daemon_pods=seen.daemons)
        return self._worlds[shape]

    def _groups_for(self, pod: Pod) -> _Groups:
        keys = frozenset(_keys(pod)) | self._repelling
        if keys not in self._groups:
            numbers: dict[Hashable, int] = {}
            samples: list[int] = []
            of: list[int] = []
            for shape, seen in enumerate(self._shapes):
                node = seen.node
                labels = frozenset((key, value) for key, value in node.labels.items() if key in keys)
                read = (node.name, node.taints, node.unschedulable, node.declared_features, node.features_assumed)
                number = numbers.setdefault((read, labels), len(numbers))
                if number == len(samples):
                    samples.append(shape)
                of.append(number)
            made = _Groups(tuple(of), tuple(samples))
            self._groups[keys] = self._equal.setdefault(made.of, made)
        return self._groups[keys]

    @cached_property
    def _repelling(self) -> frozenset[str]:
        """The keys of labels by which pods on nodes repel others."""
        nodes = self._world.nodes
        return frozenset(key for name in self._world.repellers if name in nodes for key in nodes[name].repelling)


def _keys(pod: Pod) -> Iterator[str]:
    """The labels of nodes that the pod selects by."""
    yield from pod.node_selector
    for term in pod.affinity.terms if pod.affinity else ():
        yield from (requirement.key for requirement in term.match_expressions)


def _kind(refusal: Refusal | None) -> Hashable:
    return None if refusal is None else (type(refusal), tuple(reason.code for reason in refusal.reasons))


def _renamed(reason: Reason, names: dict[str, str]) -> Reason:
    return replace(reason, subject=reason.subject.renamed(names))
