"""Which pending pods want a node from us, and why the others wait.

A pod may be pending for reasons that no node can cure (a scheduling gate, a claim that does not exist yet, another
scheduler). Those are told apart here, before anything is simulated. It must not know nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autoscaler.model.device_class import DeviceClass
from autoscaler.model.gang import Gang
from autoscaler.model.plan import LeftOut
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Policy, Scope


@dataclass(frozen=True, slots=True)
class PendingPods:
    """`wanted` in the scheduler's order (priority, then as in the snapshot); no node would help the `waiting`."""

    wanted: tuple[Pod, ...]
    waiting: tuple[LeftOut, ...]
    out_of_scope: tuple[str, ...]


def pending(snapshot: Snapshot, policy: Policy, extended_resources: Mapping[str, DeviceClass]) -> PendingPods:
    """Sort the snapshot's unbound pods. Pods of DaemonSets belong to nodes that exist and are never demand."""
    pods = [pod for pod in snapshot.pods if is_pending(pod)]
    gangs_in_scope = {pod.gang for pod in pods if pod.gang and _in_scope(pod, policy, extended_resources)}
    wanted: list[Pod] = []
    waiting: list[LeftOut] = []
    out_of_scope: list[str] = []
    for pod in pods:
        if not _in_scope(pod, policy, extended_resources) and pod.gang not in gangs_in_scope:
            out_of_scope.append(pod.key)
            continue
        reasons = tuple(_waits(pod, snapshot, policy))
        if reasons:
            waiting.append(LeftOut(pod.key, _verdict(reasons), reasons, claims=claim_keys(pod)))
        else:
            wanted.append(pod)
    wanted.sort(key=lambda pod: -pod.priority)
    incomplete = _incomplete_gangs(wanted, snapshot)
    waiting += [left for pod in wanted if (left := incomplete.get(pod.key))]
    return PendingPods(tuple(p for p in wanted if p.key not in incomplete), tuple(waiting), tuple(out_of_scope))


def is_pending(pod: Pod) -> bool:
    """Whether the pod looks for a node."""
    return (
        pod.node_name is None and pod.phase == "Pending" and not pod.deleting and not pod.owner.startswith("DaemonSet/")
    )


def claim_keys(pod: Pod) -> tuple[str, ...]:
    """Keys of the claims the pod names; entries without a claim are skipped."""
    return tuple(f"{pod.namespace}/{entry.claim}" for entry in pod.claims if entry.claim)


def _in_scope(pod: Pod, policy: Policy, extended_resources: Mapping[str, DeviceClass]) -> bool:
    if policy.scope is Scope.ALL:
        return True
    if policy.scope is Scope.SELECTED and pod.namespace not in policy.namespaces:
        return False
    return any(entry.claim != "" for entry in pod.claims) or any(r in extended_resources for r in _requested(pod))


def _requested(pod: Pod) -> Iterable[str]:
    for container in (*pod.containers, *pod.init_containers):
        yield from (resource for resource, amount in container.requests.items() if amount.sign > 0)


def _waits(pod: Pod, snapshot: Snapshot, policy: Policy) -> Iterable[Reason]:
    """Why no node would help the pod now."""
    subject = f"pod {pod.key}"
    if pod.scheduling_gates:
        yield Reason.of(Code.SCHEDULING_GATED, subject, gates=pod.scheduling_gates)
    if pod.scheduler_name not in policy.schedulers:
        yield Reason.of(Code.OTHER_SCHEDULER, subject, scheduler=pod.scheduler_name)
    for entry in pod.claims:
        if entry.claim is None:
            yield Reason.of(Code.CLAIM_NOT_CREATED, subject, entry=entry.name, template=entry.template or "")
        elif entry.claim and f"{pod.namespace}/{entry.claim}" not in snapshot.claims:
            yield Reason.of(Code.CLAIM_NOT_FOUND, subject, claim=f"{pod.namespace}/{entry.claim}")
    gang = snapshot.gangs.get(pod.gang.key) if pod.gang else None
    if pod.gang and gang is None:
        yield Reason.of(Code.GANG_INCOMPLETE, f"gang {pod.gang.key}", wanted="its group object", placed=0)
    for feature in gang.unsupported if gang else ():
        yield Reason.of(Code.UNSUPPORTED, f"gang {pod.gang.key}" if pod.gang else "", feature=feature)


def _verdict(reasons: Iterable[Reason]) -> str:
    return "unknown" if any(r.code is Code.UNSUPPORTED for r in reasons) else "does-not-fit"


def _incomplete_gangs(wanted: Iterable[Pod], snapshot: Snapshot) -> dict[str, LeftOut]:
    """Pods of gangs of which fewer pods exist than must start together: they wait for their siblings."""
    members: dict[str, list[Pod]] = {}
    for pod in wanted:
        if pod.gang:
            members.setdefault(pod.gang.key, []).append(pod)
    result: dict[str, LeftOut] = {}
    for key, pods in members.items():
        gang = snapshot.gangs[key]
        present = len(pods) + running_members(gang, snapshot.pods)
        if present < gang.min_count:
            reason = Reason.of(Code.GANG_INCOMPLETE, f"gang {key}", wanted=gang.min_count, placed=present)
            result |= {p.key: LeftOut(p.key, "does-not-fit", (reason,), claims=claim_keys(p)) for p in pods}
    return result


def running_members(gang: Gang, pods: Iterable[Pod]) -> int:
    """How many pods of the gang have a node already."""
    return sum(1 for pod in pods if pod.gang and pod.gang.key == gang.key and pod.bound)
