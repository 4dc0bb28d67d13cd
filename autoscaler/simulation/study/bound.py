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


@dataclass(frozen=True)
class Machines:
    """Machines on offer: an empty node of each, with its price per hour."""

    offered: tuple[tuple[Room, Decimal], ...]

    @staticmethod
    def of(candidates: Iterable[Candidate], snapshot: Snapshot) -> Machines:
        """Those with a price; the others are never bought."""
        priced = ((candidate, candidate.usd_per_hour) for candidate in candidates)
        return Machines(tuple({(_room(c, snapshot), price): None for c, price in priced if price is not None}))

    def at_least(self, study: Study) -> Decimal:
        """Dollars that the study costs at least if all its tasks run: to their end, or as long as the study lasts."""
        usd = _NONE
        for task in study.tasks:
            left = None if study.length is None else max(timedelta(0), study.length - task.arrives)
            runs = min((span for span in (task.runs, left) if span is not None), default=timedelta(0))
            usd += self.rate(task.shape) * task.replicas * Decimal(runs / _HOUR)
        return usd

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


def _room(candidate: Candidate, snapshot: Snapshot) -> Room:
    """An empty node of the candidate."""
    found = candidate.instance_type
    allocatable = hypothetical(candidate, snapshot, name=PLACEHOLDER_NODE).node.allocatable
    return Room(
        gpus=found.device_count,
        cpu=int(allocatable["cpu"].value * 1000),
        memory=int(allocatable["memory"].value / _MIB),
        model=found.accelerator.model if found.accelerator else "",
    )
