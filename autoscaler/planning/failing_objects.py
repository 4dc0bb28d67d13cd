"""Finds the objects on which planning raises an exception and plans without them, so that a bug affects few pods.

Pure. Nothing of this runs while planning succeeds. When it fails, a binary search over the pods that need a node
finds the pod whose addition makes it fail. After a few such pods, all pods of their namespaces wait. After several
searches for pods of a namespace within an hour there are no more for it: its failing pods stay left out although they
change, and if planning fails again, all of its pods wait. If no pod is the cause, or leaving one out did not help,
blocks, classes and pools are searched in the same way, unless pods of other namespaces can be planned with all of
them: one tenant must not close a pool for others. A pool that is left out is closed and not removed: without any
pool, pods would be planned as in a cluster without pools. Claims of a class that is left out are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from traceback import clear_frames
from typing import Final, TypeAlias, TypeVar

from autoscaler.model.capacity import (
    CapacityBlock,
    CapacityPool,
    ConsolidationPolicy,
    DeletionPolicy,
    Disruption,
    DriftDisruption,
)
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import pending_pods
from instance_catalog.dataclass import dataclass, replace

# The most objects found in one reconcile; each costs log2(number of objects) plans.
_MOST: Final = 4
# Pods of a namespace that are looked for within an hour: a dozen plans each, so a tenth of all time at most.
_SEARCHES: Final = 8
_HOUR: Final = timedelta(hours=1)
Subject: TypeAlias = Pod | CapacityPool | CapacityBlock | DeviceClass
# The name in the Kubernetes API, for an Event about the object.
_KINDS: Final[Mapping[type[Subject], str]] = {
    Pod: "Pod",
    CapacityPool: "CapacityPool",
    CapacityBlock: "CapacityBlock",
    DeviceClass: "DeviceClass",
}
Made = TypeVar("Made")
Searched: TypeAlias = Mapping[str, tuple[datetime, ...]]
"""By namespace, when failing pods of it were found within the last hour."""


@dataclass(frozen=True, slots=True)
class FailingObject:
    """An object on which planning fails, with the error."""

    subject: Subject
    error: Exception
    among: frozenset[str] | None = None
    """The namespace whose pods alone looked for nodes when a pool, block or class was found; None with others."""
    waits: bool = False
    """True for a pod that waits because others of its namespace make planning fail."""

    def holds_with(self, namespaces: frozenset[str]) -> bool:
        """True if the pods of all these namespaces were present when it was found."""
        return self.among is None or namespaces <= self.among

    @property
    def key(self) -> str:
        """A key that no other object has."""
        return _key(self.subject)

    @property
    def kind(self) -> str:
        """Its kind in the Kubernetes API."""
        return _KINDS[type(self.subject)]

    @property
    def namespace(self) -> str:
        """Its namespace, "" if it has none."""
        return self.subject.namespace if isinstance(self.subject, Pod) else ""

    @property
    def pool(self) -> str:
        """The pool that is closed because of it, "" for pods and classes. A block also closes its pool: without the
        block it is not known what the pool may buy."""
        if isinstance(self.subject, CapacityBlock):
            return self.subject.pool
        return self.subject.name if isinstance(self.subject, CapacityPool) else ""


def searched_out(searched: Searched, now: datetime) -> frozenset[str]:
    """The namespaces for whose pods nobody searches now."""
    return frozenset(name for name, moments in searched.items() if len(_recent(moments, now)) >= _SEARCHES)


def searched_after(
    searched: Searched, before: Mapping[str, FailingObject], after: Mapping[str, FailingObject], now: datetime
) -> Searched:
    """The same with the pods that were found since."""
    known = {id(entry.error) for entry in before.values()}
    found = [
        entry.namespace
        for entry in after.values()
        if entry.namespace and not entry.waits and id(entry.error) not in known
    ]
    if not found and not searched:
        return searched
    names = dict.fromkeys((*searched, *found))
    moments = {name: (*_recent(searched.get(name, ()), now), *[now] * found.count(name)) for name in names}
    return {name: of_it for name, of_it in moments.items() if of_it}


def _recent(moments: Iterable[datetime], now: datetime) -> tuple[datetime, ...]:
    """Those of the last hour. A clock that was set back leaves none of the future."""
    return tuple(moment for moment in moments if timedelta(0) <= now - moment < _HOUR)


def plan_without_failing(
    decide: Callable[[Snapshot], Made],
    snapshot: Snapshot,
    known: Mapping[str, FailingObject],
    *,
    unsearched: Collection[str] = (),
) -> tuple[Made, Mapping[str, FailingObject]]:
    """The plan without the objects on which planning fails, and these objects by key.

    Objects in `known` that have not changed are left out at once, and so are pods of `unsearched` namespaces that have
    changed. Raises the error if planning fails without any pod, pool, block and class.
    """
    failing = _still(known, snapshot, unsearched) if known else {}
    before, pods = failing, 0
    while True:
        rest = _without(snapshot, failing)
        try:
            return decide(rest), failing
        except Exception as error:  # the boundary: an object can make planning raise anything
            _forget_state(error)
            late = _waiting((pod for pod in pending_pods(rest) if pod.namespace in unsearched), error)
            if late and _holds(decide, _without(rest, late)):
                failing = {**failing, **late}
                continue
            culprit: Subject | None = _culprit(decide, rest, pending_pods(rest))
            blamed = [entry.subject for key, entry in failing.items() if key not in before]
            if not isinstance(culprit, Pod) or (pods and not _own_fault(decide, rest, [*blamed, culprit])):
                supply = _supply(decide, _without(snapshot, before))
                if supply is not None:
                    before = failing = {**before, _key(supply): _judged(supply, error, snapshot)}
                    pods = 0
                    continue
            if not isinstance(culprit, Pod):
                raise
            pods += 1
            failing = {**failing, _key(culprit): FailingObject(culprit, error)}
            if pods > _MOST:
                # Too many to find one by one: their namespaces wait, and pods of other namespaces are planned.
                names = {entry.namespace for key, entry in failing.items() if key not in before}
                failing = {
                    **_waiting((pod for pod in pending_pods(snapshot) if pod.namespace in names), error),
                    **failing,
                }


def _forget_state(error: BaseException | None) -> None:
    """The error is kept as long as its object, for its lines of code and not for the plan behind them."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__context__


def _waiting(pods: Iterable[Pod], error: Exception) -> Mapping[str, FailingObject]:
    return {_key(pod): FailingObject(pod, error, waits=True) for pod in pods}


def _still(
    known: Mapping[str, FailingObject], snapshot: Snapshot, unsearched: Collection[str]
) -> Mapping[str, FailingObject]:
    """The known objects that have not changed. Pods that wait because of others do so while one of those is known."""
    present = {_key(subject): subject for subject in _subjects(snapshot)}
    namespaces = _namespaces(pending_pods(snapshot))
    same = {
        key: entry if found == entry.subject else replace(entry, subject=found)
        for key, entry in known.items()
        if (found := present.get(key)) is not None and entry.holds_with(namespaces)
        if found == entry.subject or (entry.namespace in unsearched and _same_pod(found, entry.subject))
    }
    guilty = {entry.namespace for entry in same.values() if not entry.waits}
    return {key: entry for key, entry in same.items() if not entry.waits or entry.namespace in guilty}


def _same_pod(one: Subject, other: Subject) -> bool:
    return isinstance(one, Pod) and isinstance(other, Pod) and one.uid == other.uid


def _own_fault(decide: Callable[[Snapshot], Made], snapshot: Snapshot, blamed: Iterable[Subject]) -> bool:
    """True if pods of other namespaces need nodes and can be planned without the blamed pods: two pods of one tenant
    must not close a pool for all others."""
    names = _namespaces(pod for pod in blamed if isinstance(pod, Pod))
    pods = pending_pods(snapshot)
    own = [_key(pod) for pod in pods if pod.namespace in names]
    return len(own) < len(pods) and _holds(decide, _without(snapshot, own))


def _judged(supply: Subject, error: Exception, snapshot: Snapshot) -> FailingObject:
    """The object with the error. While only pods of one namespace need nodes, these may be the cause: the object is
    tried again once pods of other namespaces need nodes."""
    names = _namespaces(pending_pods(snapshot))
    return FailingObject(supply, error, names) if len(names) == 1 else FailingObject(supply, error)


def _namespaces(pods: Iterable[Pod]) -> frozenset[str]:
    return frozenset(pod.namespace for pod in pods)


def _supply(decide: Callable[[Snapshot], Made], snapshot: Snapshot) -> Subject | None:
    """The object without which planning succeeds for all pods; if there is none, the object without which it
    succeeds without pods."""
    # Pools are last: a block that is left out closes its pool, so pools are tried with all blocks present.
    subjects: tuple[Subject, ...] = (*snapshot.blocks, *snapshot.classes, *snapshot.pools)
    found = _culprit(decide, snapshot, subjects)
    if found is not None and _holds(decide, _without(snapshot, [_key(found)])):
        return found
    return _culprit(decide, _without(snapshot, [_key(pod) for pod in pending_pods(snapshot)]), subjects)


def _culprit(decide: Callable[[Snapshot], Made], snapshot: Snapshot, subjects: Sequence[Subject]) -> Subject | None:
    """The first subject whose addition to all subjects before it makes planning fail; None if planning fails without
    any, or succeeds with all."""
    keys = [_key(subject) for subject in subjects]

    def holds(first: int) -> bool:
        return _holds(decide, _without(snapshot, keys[first:]))

    if not subjects or not holds(0) or holds(len(subjects)):
        return None
    good, bad = 0, len(subjects)  # succeeds with the first `good`, fails with the first `bad`
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return subjects[good]


def _holds(decide: Callable[[Snapshot], Made], snapshot: Snapshot) -> bool:
    try:
        decide(snapshot)
    except Exception:  # noqa: BLE001  # the same boundary
        return False
    return True


def _subjects(snapshot: Snapshot) -> chain[Subject]:
    return chain(snapshot.pods, snapshot.pools, snapshot.blocks, snapshot.classes)


def _key(subject: Subject) -> str:
    name = subject.key if isinstance(subject, Pod) else subject.name
    return f"{_KINDS[type(subject)]} {name}"


def _without(snapshot: Snapshot, keys: Collection[str]) -> Snapshot:
    """The snapshot without these objects. Their pools, and the pools of these blocks, are closed."""
    if not keys:
        return snapshot
    out = frozenset(keys)
    pools = {block.pool for block in snapshot.blocks if _key(block) in out}
    return replace(
        snapshot,
        pods=tuple(pod for pod in snapshot.pods if _key(pod) not in out),
        pools=tuple(_closed(p) if _key(p) in out or p.name in pools else p for p in snapshot.pools),
        blocks=tuple(block for block in snapshot.blocks if _key(block) not in out),
        classes=tuple(_unknown(found) if _key(found) in out else found for found in snapshot.classes),
    )


def _closed(pool: CapacityPool) -> CapacityPool:
    """A closed pool: nothing is launched for it, as if it was being deleted, and no node is removed because of it."""
    return CapacityPool(
        pool.name,
        mode=pool.mode,
        node_template=pool.node_template,
        disruption=Disruption(consolidate=ConsolidationPolicy.NEVER, drift=DriftDisruption.NEVER),
        deletion_policy=DeletionPolicy.RETAIN,
        uid=pool.uid,
        deleting=True,
        generation=pool.generation,
    )


def _unknown(found: DeviceClass) -> DeviceClass:
    """The class with unknown matches."""
    return DeviceClass(found.name, extended_resource_name=found.extended_resource_name, unsupported=("spec",))
