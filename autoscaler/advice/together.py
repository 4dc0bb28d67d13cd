"""Changes for several workloads in one pool: what one gives the pool may take from the other what it needs of it."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.advice.change import Change, pool_subject
from autoscaler.advice.trial import Advice, Replanner
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace


def apart(advice: Advice, before: Iterable[tuple[str, Change]], trials: Replanner) -> Advice:
    """The advice in a copy of the pool where a change `before`, for another pod, needs the pool to be otherwise; as it
    is where none does, or where the copy does not place the pods."""
    for pod, earlier in before:
        pool = _contested(earlier, advice.change, trials.asked.snapshot)
        if pool is not None:
            copied = _in_copy(advice.change, pool, pod)
            result = trials.tried(copied)
            return advice if result is None else Advice(copied, result)
    return advice


def _contested(first: Change, second: Change, snapshot: Snapshot) -> CapacityPool | None:
    """A pool of the snapshot that lacks something of the first change once the second is made as well."""
    before = {pool.name: pool for pool in snapshot.pools}
    once = {pool.name: pool for pool in first.edit(snapshot).pools}
    twice = {pool.name: pool for pool in second.edit(first.edit(snapshot)).pools}
    for name in before.keys() & once.keys() & twice.keys():
        given = {key: value for key, value in once[name].labels.items() if before[name].labels.get(key) != value}
        lost = any(twice[name].labels.get(key) != value for key, value in given.items())
        drivers = once[name].drivers != before[name].drivers and twice[name].drivers != once[name].drivers
        if lost or drivers:
            return before[name]
    return None


def _in_copy(change: Change, pool: CapacityPool, pod: str) -> Change:
    """The change made in a copy of the pool, which stays as it is for the change of another pod."""

    def edit(snapshot: Snapshot) -> Snapshot:
        after = change.edit(snapshot)
        copies = tuple(replace(found, name=f"{pool.name}-copy") for found in after.pools if found.name == pool.name)
        kept = tuple(pool if found.name == pool.name else found for found in after.pools)
        return replace(after, pools=(*kept, *copies))

    subject, copy = pool_subject(pool), f"a copy of pool {pool.name}, which itself changes for {pod}"
    parts = tuple(replace(part, subject=copy if part.subject == subject else part.subject) for part in change.parts)
    return replace(change, subject=copy if change.subject == subject else change.subject, edit=edit, parts=parts)
