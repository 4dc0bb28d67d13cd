"""What is known of earlier tries: when a node was tried, with which answer, and when it is tried again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Reason
from autoscaler.planning.disruption.consolidation.refused_moves import NO_OUTLINE, Outline, RefusedMove
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap

V = TypeVar("V")

PAUSE: Final = timedelta(seconds=15)
AGAIN: Final = timedelta(minutes=5)
# The same for a node that a plan would leave as it is, while its pods have no more room elsewhere.
UNCHANGED: Final = timedelta(hours=6)
# The time between two replacements for the same node; it doubles each time.
NO_SECOND: Final = timedelta(hours=1)
_LONGEST_WAIT: Final = timedelta(days=1)
_NO_TIMES: Final[FrozenMap[str, datetime]] = FrozenMap()
_NOT_REPLACED: Final[FrozenMap[str, tuple[datetime, int]]] = FrozenMap()
_NO_ANSWERS: Final[FrozenMap[str, Reason]] = FrozenMap()
_NONE_REFUSED: Final[FrozenMap[str, RefusedMove]] = FrozenMap()


@dataclass(frozen=True, slots=True)
class MovesTried:
    """State between reconciles: `last` is the time of the last try. By name of a ProvisionedNode: when it was
    `tried`, with which result, and when a replacement was launched for it, with the number of replacements. `going`:
    tainted nodes, which are tried once more before they drain. `together`: when many nodes were last tried together in
    vain. `refused`: answers that a try would give again, since nothing has changed for them up to the state in
    `outline`."""

    last: datetime | None = None
    together: datetime | None = None
    tried: FrozenMap[str, datetime] = _NO_TIMES
    answers: FrozenMap[str, Reason] = _NO_ANSWERS
    replaced: FrozenMap[str, tuple[datetime, int]] = _NOT_REPLACED
    going: tuple[str, ...] = ()
    refused: FrozenMap[str, RefusedMove] = _NONE_REFUSED
    outline: Outline = NO_OUTLINE

    def among(self, nodes: Sequence[ProvisionedNode]) -> MovesTried:
        """The same without what is known of nodes that are gone."""
        return replace(
            self,
            tried=_kept(self.tried, nodes),
            answers=_kept(self.answers, nodes),
            replaced=_kept(self.replaced, nodes),
            refused=_kept(self.refused, nodes),
        )

    def is_later_than(self, now: datetime) -> bool:
        """True if the clock was set back: nothing would be tried until it has caught up."""
        return any(at > now + PAUSE for at in (*self.tried.values(), self.last or now))

    def may_replace(self, name: str, now: datetime) -> bool:
        """True if the last replacement of the ProvisionedNode is long enough ago: the time grows with the number of
        replacements in vain."""
        before = self.replaced.get(name)
        return before is None or now >= before[0] + min(NO_SECOND * 2 ** min(before[1] - 1, 10), _LONGEST_WAIT)

    def next_for(self, name: str, now: datetime) -> datetime:
        """When the ProvisionedNode is tried next; `now` if it never was."""
        at = self.tried.get(name)
        if at is None:
            return now
        return at + (UNCHANGED if name in self.refused else AGAIN)


NOTHING_TRIED: Final = MovesTried()


def _kept(values: FrozenMap[str, V], nodes: Iterable[ProvisionedNode]) -> FrozenMap[str, V]:
    """The values of nodes that still exist."""
    return FrozenMap({node.name: values[node.name] for node in nodes if node.name in values})
