"""The least cost of a study under any policy: the time of each task's devices at the cheapest price that fits.

A machine with n devices is paid for all of them, so the tasks that run on it cost together at least their devices times
an n-th of its price. Each task counts with the machine on which that is least, of those that are large enough for it.
Starting machines, idle devices, and CPUs and memory that are used up before the devices cost nothing here, and neither
do tasks without devices, for which there may always be room beside others. No policy reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from functools import cached_property
from typing import Final

from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.hypothetical import hypothetical
from autoscaler.simulation.study.fragmentation import Room, fits
from autoscaler.simulation.study.task import GPU_CLASS, Shape, Study
from instance_catalog.dataclass import dataclass
from instance_catalog.prediction.predict import PLACEHOLDER_NODE

_HOUR: Final = timedelta(hours=1)
_MIB: Final = 1 << 20
_NONE: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class Prepaid:
    """So many machines that cost nothing more, as an empty node: from `opens` to `closes`, counted from the start."""

    room: Room
    count: int
    opens: timedelta
    closes: timedelta


@dataclass(frozen=True)
class Machines:
    """Machines on offer: an empty node of each, with its price per hour."""

    offered: tuple[tuple[Room, Decimal], ...]

    @staticmethod
    def of(candidates: Iterable[Candidate], snapshot: Snapshot) -> Machines:
        """Those with a price; the others are never bought. Machines of blocks are `Prepaid`."""
        bought = (candidate for candidate in candidates if candidate.block is None and candidate.barred is None)
        priced = ((candidate, candidate.usd_per_hour) for candidate in bought)
        return Machines(tuple({(room_of(c, snapshot), price): None for c, price in priced if price is not None}))

    def at_least(self, study: Study, prepaid: Iterable[Prepaid] = ()) -> Decimal:
        """Dollars that the study costs at least if all its tasks run: to their end, or as long as the study lasts. The
        `prepaid` machines serve those of the tasks that fit on them which cost most elsewhere."""
        usd = _NONE
        for task in study.tasks:
            left = None if study.length is None else max(timedelta(0), study.length - task.arrives)
            runs = min((span for span in (task.runs, left) if span is not None), default=timedelta(0))
            usd += self.rate(task.shape) * task.replicas * Decimal(runs / _HOUR)
        return max(_NONE, usd - sum((self._saved(block, study) for block in prepaid), _NONE))

    def _saved(self, block: Prepaid, study: Study) -> Decimal:
        """The most dollars that the block saves, however its tasks follow each other."""
        closes = block.closes if study.length is None else min(block.closes, study.length)
        left = _hours(closes - max(block.opens, timedelta(0))) * block.count * block.room.gpus
        saved, there = _NONE, list[tuple[Decimal, Decimal]]()  # dollars for an hour of a device, and their hours
        for task in study.tasks:
            if task.shape.gpus and fits(task.shape, block.room):
                open_for = closes - max(block.opens, task.arrives)
                hours = _hours(open_for if task.runs is None else min(task.runs, open_for))
                there.append((self.rate(task.shape) / task.shape.gpus, hours * task.shape.gpus * task.replicas))
        for price, hours in sorted(there, reverse=True):
            served = min(hours, left)
            saved, left = saved + served * price, left - served
        return saved

    def rate(self, shape: Shape) -> Decimal:
        """The least cost of the devices of such a pod per hour; 0 if no offer is known to fit.

        Also 0 for other classes than that of whole GPUs: a machine may have more of their devices than GPUs.
        """
        if shape.device_class != GPU_CLASS:
            return _NONE
        if shape not in self._rates:
            prices = (price * shape.gpus / room.gpus for room, price in self.offered if fits(shape, room))
            self._rates[shape] = min(prices, default=_NONE)
        return self._rates[shape]

    @cached_property
    def _rates(self) -> dict[Shape, Decimal]:
        return {}


def _hours(span: timedelta) -> Decimal:
    return Decimal(max(span, timedelta(0)) / _HOUR)


def room_of(candidate: Candidate, snapshot: Snapshot) -> Room:
    """An empty node of the candidate."""
    found = candidate.instance_type
    allocatable = hypothetical(candidate, snapshot, name=PLACEHOLDER_NODE).node.allocatable
    return Room(
        gpus=found.device_count,
        cpu=int(allocatable["cpu"].value * 1000),
        memory=int(allocatable["memory"].value / _MIB),
        model=found.accelerator.model if found.accelerator else "",
    )
