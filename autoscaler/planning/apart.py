"""A decision without the objects on which it breaks: a bug that one object meets must not cost others their nodes.

Pure. Nothing of this happens as long as deciding ends well. When it does not, the pods that look for a node are tried
in growing numbers, by halves, until the one is found whose coming breaks the decision. After a few such pods their
namespaces wait as a whole. If no pod is to blame, or one was left out in vain, blocks, classes and pools are tried
likewise, unless pods of other namespaces can be decided for with all of them: no tenant closes a pool for others.
A pool that is left out is closed: it must not be forgotten, or pods would be planned for as if there were no pools.
Claims of a class that is left out are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
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

# Objects that are looked for in one reconcile; each costs as many plans as their number has binary digits.
_MOST: Final = 4
Subject: TypeAlias = Pod | CapacityPool | CapacityBlock | DeviceClass
# In the Kubernetes API; an Event about the object has it.
_KINDS: Final[Mapping[type[Subject], str]] = {
    Pod: "Pod",
    CapacityPool: "CapacityPool",
    CapacityBlock: "CapacityBlock",
    DeviceClass: "DeviceClass",
}
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Odd:
    """An object on which deciding breaks, and how."""

    subject: Subject
    error: Exception
    among: frozenset[str] | None = None
    """The namespace whose pods alone looked for nodes when a pool, block or class was found; None with others."""
    waits: bool = False
    """Whether it is a pod that waits because others of its namespace break deciding."""

    def holds_with(self, namespaces: frozenset[str]) -> bool:
        """Whether it was found with the pods of all these namespaces in sight."""
        return self.among is None or namespaces <= self.among

    @property
    def key(self) -> str:
        """Unlike that of any other object."""
        return _key(self.subject)

    @property
    def kind(self) -> str:
        """Its kind in the Kubernetes API."""
        return _KINDS[type(self.subject)]

    @property
    def namespace(self) -> str:
        """Its namespace, "" where there is none."""
        return self.subject.namespace if isinstance(self.subject, Pod) else ""

    @property
    def pool(self) -> str:
        """The pool that does nothing meanwhile, "" for pods and classes. A block takes its pool along: what that pool
        may buy is not known without it."""
        if isinstance(self.subject, CapacityBlock):
            return self.subject.pool
        return self.subject.name if isinstance(self.subject, CapacityPool) else ""


def decided_apart(
    decide: Callable[[Snapshot], Made], snapshot: Snapshot, known: Mapping[str, Odd]
) -> tuple[Made, Mapping[str, Odd]]:
    """What is decided without the objects on which deciding breaks, and these by their keys.

    Of the `known` ones those that are as they were are left out at once. What breaks without any pod, pool, block and
    class is raised.
    """
    apart = _still(known, snapshot) if known else {}
    before, pods = apart, 0
    while True:
        rest = _without(snapshot, apart)
        try:
            return decide(rest), apart
        except Exception as error:  # the boundary: whatever one object makes planning raise
            culprit: Subject | None = _culprit(decide, rest, pending_pods(rest))
            blamed = [odd.subject for key, odd in apart.items() if key not in before]
            if not isinstance(culprit, Pod) or (pods and not _own_fault(decide, rest, [*blamed, culprit])):
                supply = _supply(decide, _without(snapshot, before))
                if supply is not None:
                    before = apart = {**before, _key(supply): _judged(supply, error, snapshot)}
                    pods = 0
                    continue
            if not isinstance(culprit, Pod):
                raise
            pods += 1
            apart = {**apart, _key(culprit): Odd(culprit, error)}
            if pods > _MOST:
                # Too many to be looked for one by one: the namespaces that they come from wait, and the others go on.
                names = {odd.namespace for key, odd in apart.items() if key not in before}
                late = (pod for pod in pending_pods(snapshot) if pod.namespace in names and _key(pod) not in apart)
                apart = {**apart, **{_key(pod): Odd(pod, error, waits=True) for pod in late}}


def _still(known: Mapping[str, Odd], snapshot: Snapshot) -> Mapping[str, Odd]:
    """The known objects that are as they were. Pods that wait for others do so while one of those is among them."""
    present = {_key(subject): subject for subject in _subjects(snapshot)}
    namespaces = _namespaces(pending_pods(snapshot))
    same = {key: odd for key, odd in known.items() if present.get(key) == odd.subject and odd.holds_with(namespaces)}
    guilty = {odd.namespace for odd in same.values() if not odd.waits}
    return {key: odd for key, odd in same.items() if not odd.waits or odd.namespace in guilty}


def _own_fault(decide: Callable[[Snapshot], Made], snapshot: Snapshot, blamed: Iterable[Subject]) -> bool:
    """Whether pods of other namespaces look for nodes, and can be decided for without those of the blamed pods: two
    pods of one tenant do not close a pool for all others."""
    names = _namespaces(pod for pod in blamed if isinstance(pod, Pod))
    pods = pending_pods(snapshot)
    own = [_key(pod) for pod in pods if pod.namespace in names]
    return len(own) < len(pods) and _holds(decide, _without(snapshot, own))


def _judged(supply: Subject, error: Exception, snapshot: Snapshot) -> Odd:
    """While the pods of one namespace alone look for nodes, the fault may be theirs: it is judged again with others."""
    names = _namespaces(pending_pods(snapshot))
    return Odd(supply, error, names) if len(names) == 1 else Odd(supply, error)


def _namespaces(pods: Iterable[Pod]) -> frozenset[str]:
    return frozenset(pod.namespace for pod in pods)


def _supply(decide: Callable[[Snapshot], Made], snapshot: Snapshot) -> Subject | None:
    """The object without which all pods can be decided for, or, where none is found, without pods."""
    # Pools last: leaving a block out takes its pool along, so a pool's turn comes when all blocks are there.
    subjects: tuple[Subject, ...] = (*snapshot.blocks, *snapshot.classes, *snapshot.pools)
    found = _culprit(decide, snapshot, subjects)
    if found is not None and _holds(decide, _without(snapshot, [_key(found)])):
        return found
    return _culprit(decide, _without(snapshot, [_key(pod) for pod in pending_pods(snapshot)]), subjects)


def _culprit(decide: Callable[[Snapshot], Made], snapshot: Snapshot, subjects: Sequence[Subject]) -> Subject | None:
    """The first of the subjects with which, after all before it, deciding breaks; None if it breaks without any, or
    holds with all."""
    keys = [_key(subject) for subject in subjects]

    def holds(first: int) -> bool:
        return _holds(decide, _without(snapshot, keys[first:]))

    if not subjects or not holds(0) or holds(len(subjects)):
        return None
    good, bad = 0, len(subjects)  # it holds with the first `good`, and breaks with the first `bad`
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
    """The snapshot without these objects; their pools, and those of these blocks, are closed."""
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
    """Nothing is launched for it, as if it was being deleted, and none of its nodes ends for its sake."""
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
    """What it selects is not known."""
    return DeviceClass(found.name, extended_resource_name=found.extended_resource_name, unsupported=("spec",))
