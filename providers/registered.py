"""Existing groups: the labels and taints of their nodes, and their capacity."""

from __future__ import annotations

from collections.abc import Mapping

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.taint import Taint


@dataclass(frozen=True, slots=True)
class Room:
    """The capacity of all groups of an offering: at `most` this many machines, whoever starts them."""

    most: int


@dataclass(frozen=True, slots=True)
class Registered:
    """Properties of nodes beside those that follow from their machine: `labels` that all of them have, and `taints`
    that some have. `same` are keys of labels whose value is unknown before a node registers but equal on all of them:
    the location of their machines, if a policy keeps these together."""

    labels: Mapping[str, str] = EMPTY
    taints: tuple[Taint, ...] = ()
    same: frozenset[str] = frozenset()

    def beside(self, other: Registered) -> Registered:
        """The known properties of a node of one kind or the other. `same` is empty: nothing keeps one kind near the
        other."""
        shared = FrozenMap(self.labels.items() & other.labels.items())
        return Registered(shared, tuple(dict.fromkeys((*self.taints, *other.taints))))
