"""The life of a CapacityBlock: phases follow from the clock and from what the provider says of the reservation.

Nothing is remembered: every moment is counted back from the one at which the provider takes the machines, which is read
anew at each decision and may move (extensions). So a restart in the middle of a drain loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Final

from autoscaler.model.capacity import CapacityBlock


class BlockPhase(Enum):
    PENDING = "Pending"
    ACTIVE = "Active"
    NOTICE = "Notice"
    DRAINING = "Draining"
    ENDED = "Ended"


class BlockWhy(Enum):
    """The reason of an edge; the value is what conditions and events show."""

    STARTED = "BlockStarted"
    ENDING_SOON = "BlockEndingSoon"
    DRAIN_STARTED = "BlockDrainStarted"
    TAKEN_BACK = "BlockTakenBack"
    EXTENDED = "BlockExtended"
    POSTPONED = "BlockPostponed"
    LOST = "ReservationLost"


@dataclass(frozen=True, slots=True)
class BlockEdge:
    """A way from one phase to another; `when` is the moment in words, for the documentation."""

    source: BlockPhase
    target: BlockPhase
    why: BlockWhy
    when: str


# Providers' counts of a reservation that has just begun are some seconds old; for so long nobody buys instead of it.
BEGINS_WITHIN: Final = timedelta(minutes=2)
_ORDER: Final = tuple(BlockPhase)
_ENTER: Final = {
    BlockPhase.ACTIVE: (BlockWhy.STARTED, "startsAt"),
    BlockPhase.NOTICE: (BlockWhy.ENDING_SOON, "reclaimAt − drain.budget − drain.notice"),
    BlockPhase.DRAINING: (BlockWhy.DRAIN_STARTED, "reclaimAt − drain.budget"),
    BlockPhase.ENDED: (BlockWhy.TAKEN_BACK, "reclaimAt, or endsAt where the provider names none"),
}
# A controller that slept, or a short block, passes several moments at once.
_FORWARD: Final = tuple(
    BlockEdge(source, target, *_ENTER[target]) for index, source in enumerate(_ORDER) for target in _ORDER[index + 1 :]
)
_BACK: Final = tuple(
    BlockEdge(source, target, BlockWhy.EXTENDED, "the provider moved reclaimAt")
    for source, target in (
        (BlockPhase.NOTICE, BlockPhase.ACTIVE),
        (BlockPhase.DRAINING, BlockPhase.ACTIVE),
        (BlockPhase.DRAINING, BlockPhase.NOTICE),
        (BlockPhase.ENDED, BlockPhase.ACTIVE),
        (BlockPhase.ENDED, BlockPhase.NOTICE),
        (BlockPhase.ENDED, BlockPhase.DRAINING),
    )
)
_POSTPONED: Final = tuple(
    BlockEdge(source, BlockPhase.PENDING, BlockWhy.POSTPONED, "the provider moved startsAt") for source in _ORDER[1:]
)
_LOST: Final = tuple(
    BlockEdge(source, BlockPhase.ENDED, BlockWhy.LOST, "the reservation is over before its time")
    for source in _ORDER[:-1]
)
BLOCK_EDGES: Final[tuple[BlockEdge, ...]] = (*_FORWARD, *_BACK, *_POSTPONED, *_LOST)

ASSUME: Final[Mapping[BlockPhase, str]] = MappingProxyType(
    {
        BlockPhase.PENDING: "Its machines cannot be started yet; nothing is planned onto it.",
        BlockPhase.ACTIVE: "Its machines cost nothing more; pods that end before the drain may be planned onto it.",
        BlockPhase.NOTICE: "As Active; pods and nodes have a notice of the end.",
        BlockPhase.DRAINING: "It takes no pods; those that run are evicted.",
        BlockPhase.ENDED: "It has no machines.",
    }
)


def phase_of(block: CapacityBlock, now: datetime, *, lost: bool = False) -> BlockPhase:
    """The phase at a moment. `lost`: the reservation ended, failed or was cancelled before its time."""
    if lost or now >= block.reclaimed:
        return BlockPhase.ENDED
    if now < block.starts_at:
        return BlockPhase.PENDING
    if now >= block.drain_starts:
        return BlockPhase.DRAINING
    return BlockPhase.NOTICE if now >= block.notice_at else BlockPhase.ACTIVE


def decide(block: CapacityBlock, current: BlockPhase, now: datetime, *, lost: bool = False) -> BlockEdge | None:
    """The edge from the phase that was last written down to the one of this moment; None if it is the same."""
    target = phase_of(block, now, lost=lost)
    if target is current:
        return None
    edges = (edge for edge in BLOCK_EDGES if (edge.source, edge.target) == (current, target))
    return next(edge for edge in edges if (edge.why is BlockWhy.LOST) == lost)


def next_moment(block: CapacityBlock, now: datetime) -> datetime | None:
    """When the phase changes by the clock alone; None once the block has ended."""
    moments = (block.starts_at, block.notice_at, block.drain_starts, block.reclaimed)
    return min((moment for moment in moments if moment > now), default=None)
