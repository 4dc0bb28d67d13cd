"""The life of a CapacityBlock: its phases follow from the clock and from the provider's data on the reservation.

Nothing is stored: every time is counted back from the one at which the provider takes the machines, which is read again
for each decision and may change (extensions). So a restart in the middle of a drain loses nothing.
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


# Providers' counts of a reservation that has just begun are some seconds old; during this time no other capacity is
# launched instead of it.
BEGINS_WITHIN: Final = timedelta(minutes=2)


def phase_of(block: CapacityBlock, now: datetime) -> BlockPhase:
    """The phase at a given time."""
    if now >= block.reclaimed:
        return BlockPhase.ENDED
    if now < block.starts_at:
        return BlockPhase.PENDING
    if now >= block.drain_starts:
        return BlockPhase.DRAINING
    return BlockPhase.NOTICE if now >= block.notice_at else BlockPhase.ACTIVE


def next_moment(block: CapacityBlock, now: datetime) -> datetime | None:
    """The time at which the phase changes by the clock alone; None once the block has ended."""
    moments = (block.starts_at, block.notice_at, block.drain_starts, block.reclaimed)
    return min((moment for moment in moments if moment > now), default=None)
