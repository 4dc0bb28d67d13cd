"""The life of a CapacityBlock: phases follow from the clock and from what the provider says of the reservation.

Nothing is remembered: every moment is counted back from the one at which the provider takes the machines, which is read
anew at each decision and may move (extensions). So a restart in the middle of a drain loses nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from autoscaler.model.capacity import CapacityBlock


class BlockPhase(Enum):
    PENDING = "Pending"
    ACTIVE = "Active"
    NOTICE = "Notice"
    DRAINING = "Draining"
    ENDED = "Ended"


# Providers' counts of a reservation that has just begun are some seconds old; for so long nobody buys instead of it.
BEGINS_WITHIN: Final = timedelta(minutes=2)


def phase_of(block: CapacityBlock, now: datetime) -> BlockPhase:
    """The phase at a moment."""
    if now >= block.reclaimed:
        return BlockPhase.ENDED
    if now < block.starts_at:
        return BlockPhase.PENDING
    if now >= block.drain_starts:
        return BlockPhase.DRAINING
    return BlockPhase.NOTICE if now >= block.notice_at else BlockPhase.ACTIVE


def next_moment(block: CapacityBlock, now: datetime) -> datetime | None:
    """When the phase changes by the clock alone; None once the block has ended."""
    moments = (block.starts_at, block.notice_at, block.drain_starts, block.reclaimed)
    return min((moment for moment in moments if moment > now), default=None)
