"""A plan for all but the pods on which planning breaks: a bug that one pod meets must not cost others their nodes.

Pure. Nothing of this happens as long as planning ends well. When it does not, the pods that look for a node are tried
in growing numbers, by halves, until the one is found whose coming breaks the plan. After a few such pods their
namespaces wait as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from autoscaler.model.plan import LeftOut, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys, pending_pods

# Pods that are looked for in one plan; each costs as many plans as their number has binary digits.
_MOST: Final = 4


@dataclass(frozen=True, slots=True)
class Odd:
    """A pod on which planning breaks, and how."""

    pod: Pod
    error: Exception


def plan_apart(
    plan: Callable[[Snapshot], Plan], snapshot: Snapshot, known: Mapping[str, Odd]
) -> tuple[Plan, Mapping[str, Odd]]:
    """The plan without the pods on which it breaks, and these by their keys.

    Of the `known` ones those that are as they were are left out at once. They stand in the plan as left out, with the
    verdict unknown. What breaks the plan without any pod is raised.
    """
    apart = {}
    if known:
        apart = {p.key: odd for p in snapshot.pods if (odd := known.get(p.key)) is not None and odd.pod == p}
    for _ in range(_MOST):
        try:
            return _with(plan(_without(snapshot, apart)), apart), apart
        except Exception as error:  # the boundary: whatever one pod makes planning raise
            culprit = _culprit(plan, _without(snapshot, apart))
            if culprit is None:
                raise
            apart[culprit.key] = Odd(culprit, error)
    try:
        return _with(plan(_without(snapshot, apart)), apart), apart
    except Exception as error:  # noqa: BLE001  # the same boundary
        # Too many to be looked for one by one: the namespaces that they come from wait, and the others go on.
        namespaces = {odd.pod.namespace for odd in apart.values()}
        waiting = (pod for pod in pending_pods(snapshot) if pod.namespace in namespaces and pod.key not in apart)
        apart |= {pod.key: Odd(pod, error) for pod in waiting}
    return _with(plan(_without(snapshot, apart)), apart), apart


def _culprit(plan: Callable[[Snapshot], Plan], snapshot: Snapshot) -> Pod | None:
    """The first pod with which, after all before it, planning breaks; None if it breaks without any."""
    pods = pending_pods(snapshot)
    if not _holds(plan, _without(snapshot, _keys(pods))):
        return None
    good, bad = 0, len(pods)  # it holds with the first `good`, and breaks with the first `bad`
    while bad - good > 1:
        middle = (good + bad) // 2
        if _holds(plan, _without(snapshot, _keys(pods[middle:]))):
            good = middle
        else:
            bad = middle
    return pods[good] if pods else None


def _holds(plan: Callable[[Snapshot], Plan], snapshot: Snapshot) -> bool:
    try:
        plan(snapshot)
    except Exception:  # noqa: BLE001  # the same boundary
        return False
    return True


def _keys(pods: Iterable[Pod]) -> frozenset[str]:
    return frozenset(pod.key for pod in pods)


def _without(snapshot: Snapshot, keys: Collection[str]) -> Snapshot:
    return replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.key not in keys)) if keys else snapshot


def _with(plan: Plan, apart: Mapping[str, Odd]) -> Plan:
    left = tuple(
        LeftOut(key, "unknown", (Reason.of(Code.UNSUPPORTED, f"pod {key}"),), claims=claim_keys(odd.pod))
        for key, odd in apart.items()
    )
    return replace(plan, left_out=(*plan.left_out, *left)) if left else plan
