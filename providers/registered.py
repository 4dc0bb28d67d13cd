"""What is known of groups that exist already: what their nodes register with, and how many machines they hold."""

from __future__ import annotations

from collections.abc import Mapping

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.taint import Taint


@dataclass(frozen=True, slots=True)
class Room:
    """How many machines all groups of an offering hold at `most`, whoever starts them."""

    most: int


@dataclass(frozen=True, slots=True)
class Registered:
    """What nodes register with, beside what follows from their machine: `labels` that all of them have, and `taints`
    that some have. `same` are keys of labels whose value is known of no node before it registers, and which is the same
    on all of them: where their machines are, if a policy keeps these together."""

    labels: Mapping[str, str] = EMPTY
    taints: tuple[Taint, ...] = ()
    same: frozenset[str] = frozenset()

    def beside(self, other: Registered) -> Registered:
        """What is known of a node that may be of either kind: nothing keeps one kind near the other."""
        shared = FrozenMap(self.labels.items() & other.labels.items())
        return Registered(shared, tuple(dict.fromkeys((*self.taints, *other.taints))))
