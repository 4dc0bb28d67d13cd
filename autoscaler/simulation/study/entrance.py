"""Decides when the pods of a task enter the cluster: on arrival, unless enough equal ones wait there already.

If pools are full, each reconcile checks every pod that waits, and the time for days of a growing queue is quadratic in
its length. Of equal tasks the oldest are served first, so those behind the first few hundred for which nothing was
bought change nothing until these are served. They are held outside, and count as waiting from their arrival on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from autoscaler.simulation.study.task import Task

# Pods of one kind that wait in the cluster with nothing bought for them, before further ones are held.
ENOUGH: Final = 200

Waiting: TypeAlias = Mapping[Hashable, int]
"""Pods that wait, by their kind."""


def kind_of(task: Task) -> Hashable:
    """Equal for tasks that stand behind each other."""
    return (task.shape, task.replicas if task.gang else 1)


class Entrance:
    """Holds tasks back. `enter` creates the pods of a task, which arrived at the given time, in the cluster."""

    def __init__(self, enter: Callable[[Task, datetime], None], enough: int = ENOUGH) -> None:
        self._enter = enter
        self._enough = enough
        self._held: dict[Hashable, deque[tuple[Task, datetime]]] = {}

    @property
    def holds(self) -> bool:
        """True if a task is held."""
        return bool(self._held)

    def arrive(self, task: Task, now: datetime, left_out: Waiting) -> bool:
        """Admits a task or holds it. Returns True if it is admitted. `left_out`: those without a place in the last
        plan."""
        kind = kind_of(task)
        if kind not in self._held and left_out.get(kind, 0) < self._room(task):
            self._enter(task, now)
            return True
        self._held.setdefault(kind, deque()).append((task, now))
        return False

    def release(self, waiting: Waiting) -> bool:
        """Admits the oldest of each kind until enough wait inside. Returns True if any was admitted."""
        released = False
        for kind in list(self._held):
            held, inside = self._held[kind], waiting.get(kind, 0)
            while held and inside < self._room(held[0][0]):
                task, arrived = held.popleft()
                self._enter(task, arrived)
                inside += task.replicas
                released = True
            if not held:
                del self._held[kind]
        return released

    def _room(self, task: Task) -> int:
        """Of large gangs, two wait inside."""
        return max(self._enough, 2 * task.replicas if task.gang else 0)
