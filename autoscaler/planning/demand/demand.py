"""Finds the pending pods that need a new node, and the reasons why the others wait.

A pod may be pending for a reason that no node removes: a scheduling gate, a missing claim, a place that is being
prepared. These pods are separated here, before the simulation. This module does not know offerings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial

from autoscaler.lifecycle.provisioned_node import has_come
from autoscaler.lifecycle.quarantine import WATCH_SKEW
from autoscaler.model.capacity import KNOWN_SCHEDULERS
from autoscaler.model.plan import LeftOut, LeftOutVerdict
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.reason import NO_SUBJECT, Code, Reason, Subject
from autoscaler.model.requested_capacity import ENDS_REQUEST, consumed_request, consuming_key, named_class
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import Scopes
from autoscaler.planning.naming import named_like_ours
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.opaque import CHANNEL_DRIVER
from instance_catalog.kubernetes import labels

_UNKNOWN = (Code.UNSUPPORTED, Code.UNREADABLE)
# Reasons that a ProvisioningRequest does not exist, or has another class than the pod names.
_NO_REQUEST = frozenset({"missing", "says"})
NEVER = datetime.max.replace(tzinfo=UTC)
# The kinds that decide about a pod with volumes.
_VOLUME_KINDS = (
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
)


@dataclass(frozen=True, slots=True)
class PendingPods:
    """`wanted` need a node, in the scheduler's order. No node helps the `waiting`. No pool serves the `outside`.

    `bindable` are those of the waiting that kube-scheduler binds wherever they fit, such as pods without a gang whose
    node is delayed forever.
    """

    wanted: tuple[Pod, ...]
    waiting: tuple[LeftOut, ...]
    outside: tuple[LeftOut, ...]
    bindable: tuple[Pod, ...] = ()


def pending(snapshot: Snapshot, scopes: Scopes) -> PendingPods:
    """Sort the snapshot's unbound pods into these groups."""
    wanted: list[Pod] = []
    waiting: list[LeftOut] = []
    outside: list[LeftOut] = []
    bindable: list[Pod] = []
    for pod in pending_pods(snapshot):
        if refusals := scopes.refusals(pod):
            outside.append(LeftOut(pod.key, LeftOutVerdict.OUT_OF_SCOPE, refusals, claims=claim_keys(pod)))
        elif reasons := tuple(_waits(pod, snapshot)):
            waiting.append(LeftOut(pod.key, _verdict(reasons), reasons, claims=claim_keys(pod)))
            if _is_bindable(pod, reasons, snapshot):
                bindable.append(replace(pod, gang=None, no_node_before=NEVER))
        else:
            wanted.append(pod)
    wanted.sort(key=lambda pod: pod.turn)
    incomplete = _incomplete_gangs(wanted, snapshot)
    waiting += [left for pod in wanted if (left := incomplete.get(pod.key))]
    complete = tuple(pod for pod in wanted if pod.key not in incomplete)
    return PendingPods(complete, tuple(waiting), tuple(outside), tuple(sorted(bindable, key=_turn)))


def _turn(pod: Pod) -> tuple[int, float]:
    return pod.turn


def _is_bindable(pod: Pod, reasons: Iterable[Reason], snapshot: Snapshot) -> bool:
    """True if kube-scheduler binds a waiting pod, as far as is known. It reads no annotations, and the name of a group
    only in the pod's spec (feature GangScheduling, v1.36.3 pkg/scheduler/framework/plugins/gangscheduling).

    Whether it has a plugin for groups that labels name cannot be read. If such groups exist, Foreslice assumes a
    plugin.
    """
    grouped = any(gang.kind.startswith("PodGroup") for gang in snapshot.gangs.values())
    held = grouped or (pod.pod_group and snapshot.profile.gates.gang_scheduling)

    def unread(reason: Reason) -> bool:
        if reason.code is Code.PROVISIONING_REQUEST:
            return not _NO_REQUEST.isdisjoint(reason.detail)
        return reason.code is Code.GANG_INCOMPLETE and not held

    return pod.scheduler_name in KNOWN_SCHEDULERS and all(map(unread, reasons))


def pending_pods(snapshot: Snapshot) -> tuple[Pod, ...]:
    """The pods that need a node. Pods of DaemonSets belong to existing nodes and are never demand."""
    return tuple(
        pod
        for pod in snapshot.pods
        if pod.node_name is None and pod.phase == "Pending" and not pod.deleting and not _of_daemon_set(pod)
    )


def _of_daemon_set(pod: Pod) -> bool:
    return pod.owner.startswith("DaemonSet/") or pod.annotations.get(labels.CA_DAEMON_SET_POD) == "true"


def claim_keys(pod: Pod) -> tuple[str, ...]:
    """Keys of the claims that the pod names; entries without a claim are skipped."""
    return tuple(f"{pod.namespace}/{entry.claim}" for entry in pod.claims if entry.claim)


def uses_channel(pod: Pod, snapshot: Snapshot) -> bool:
    """True if the pod claims an IMEX channel of a ComputeDomain.

    The driver prepares such a claim on every node, but adds the channel to the container only if the node's GPUs are in
    an NVLink clique. Source: kubernetes-sigs/dra-driver-nvidia-gpu 9593204,
    cmd/compute-domain-kubelet-plugin/device_state.go.
    """
    found = (snapshot.claims.get(key) for key in claim_keys(pod))
    return any(config.driver == CHANNEL_DRIVER for claim in found if claim for config in claim.config)


def why_pending(pod: Pod, snapshot: Snapshot) -> tuple[Reason, ...]:
    """The reasons why a pending pod does not run, as far as the cluster shows them: what it waits for, or the
    scheduler's last message.

    kube-scheduler 1.36 adds no condition to a pod that waits for a claim or a gang (PreEnqueue).
    """
    subject = Subject("pod", pod.key)
    waits = tuple(_waits(pod, snapshot)) or tuple(_missing_members(pod, snapshot))
    if waits:
        return waits
    match pod.unscheduled:
        case "":
            return (Reason.of(Code.NOT_TRIED, subject),)
        case "Unschedulable":
            return (Reason.of(Code.UNSCHEDULABLE, subject, message=pod.unscheduled_why),)
        case reason:
            return (Reason.of(Code.SCHEDULER_ERROR, subject, error=reason, message=pod.unscheduled_why),)


def _waits(pod: Pod, snapshot: Snapshot) -> Iterator[Reason]:
    """The reasons why no node helps the pod now."""
    subject = Subject("pod", pod.key)
    if pod.unread:
        yield Reason.of(Code.UNSUPPORTED, subject, unread=pod.unread.what, step=pod.unread.step)
    if pod.scheduling_gates:
        yield Reason.of(Code.SCHEDULING_GATED, subject, gates=pod.scheduling_gates)
    if consumed_request(pod):
        yield _asked_for(pod, snapshot)
    if pod.nominated_node and _place_is_made(pod.nominated_node, snapshot):
        yield Reason.of(Code.NOMINATED, subject, node=pod.nominated_node)
    for entry in pod.claims:
        if entry.claim is None:
            yield _not_created(pod, entry, snapshot)
        elif entry.claim and f"{pod.namespace}/{entry.claim}" not in snapshot.claims:
            yield Reason.of(Code.CLAIM_NOT_FOUND, subject, claim=f"{pod.namespace}/{entry.claim}")
    if pod.volumes:
        yield from unreadable(snapshot, subject, *_VOLUME_KINDS)
    gang = snapshot.gangs.get(pod.gang.key) if pod.gang else None
    if pod.gang and gang is None and "PodGroup" in snapshot.unreadable:
        yield from unreadable(snapshot, Subject("gang", pod.gang.key), "PodGroup")
    elif pod.gang and gang is None:
        # Another scheduler may need no more than the name of the group.
        own = {} if pod.scheduler_name in KNOWN_SCHEDULERS else {"scheduler": pod.scheduler_name}
        yield Reason.of(Code.GANG_INCOMPLETE, Subject("gang", pod.gang.key), missing="group object", **own)
    for feature in gang.unsupported if gang else ():
        yield Reason.of(Code.UNSUPPORTED, Subject("gang", pod.gang.key) if pod.gang else NO_SUBJECT, feature=feature)


def _not_created(pod: Pod, entry: PodClaim, snapshot: Snapshot) -> Reason:
    """The claim of a template does not exist, or kube-controller-manager dropped its name from the pod's status.

    The latter happens before Kubernetes 1.37, to pods with several templates (kubernetes/kubernetes#138407): some names
    are there, and others not, alternately.
    """
    why = partial(
        Reason.of, Code.CLAIM_NOT_CREATED, Subject("pod", pod.key), entry=entry.name, template=entry.template or ""
    )
    named = {each.claim for each in pod.claims if each.template and each.claim}
    if not named:  # only now, because looking through all claims takes time
        return why()
    own = (claim for claim in snapshot.claims.values() if pod.uid and claim.controller == pod.uid)
    dropped = tuple(sorted(c.key for c in own if c.name not in named and c.name.startswith(f"{pod.name}-{entry.name}")))
    return why(dropped=dropped) if dropped else why()


def _asked_for(pod: Pod, snapshot: Snapshot) -> Reason:
    """The reasons from the ProvisioningRequest that provides for the pod, and its progress.

    If another autoscaler serves the request, only its last conditions are known.
    """
    name, why = consumed_request(pod), partial(Reason.of, Code.PROVISIONING_REQUEST, Subject("pod", pod.key))
    request = next((each for each in snapshot.provisioning_requests if each.consumed_by(pod)), None)
    if request is None:
        known = "ProvisioningRequest" not in snapshot.unreadable
        if not known:
            return why(request=name)
        of_class = {"of_class": named} if (named := named_class(pod)) else {}
        return why(missing=name, annotation=consuming_key(pod), **of_class)
    if request.class_name and named_class(pod) not in ("", request.class_name):
        return why(request=name, class_name=request.class_name, says=named_class(pod))
    if request.served is not None or not request.class_name:
        return why(request=name)
    of = {"request": name, "class_name": request.class_name}
    said = request.last
    if said is None:
        return why(**of)
    message = said.message or said.reason or "True"
    return why(**of, **{"ended" if said.type in ENDS_REQUEST else "condition": said.type}, message=message)


def unreadable(snapshot: Snapshot, subject: Subject, *kinds: str) -> Iterator[Reason]:
    """One reason for each kind that decides about the subject and that Foreslice has no right to read."""
    for kind in kinds:
        if kind in snapshot.unreadable:
            yield Reason.of(Code.UNREADABLE, subject, right=snapshot.unreadable[kind])


def _place_is_made(node: str, snapshot: Snapshot) -> bool:
    """True if a nomination (KEP-5278) refers to a place that is not visible yet: pods leave the node for a
    preemption, or another autoscaler launches the node. If no pod leaves, the planner searches a place itself."""
    if any(found.name == node for found in snapshot.nodes):
        return any(pod.deleting for pod in snapshot.pods if pod.node_name == node)
    # Foreslice's own nomination may exist after its launch has failed, and must not keep the pod waiting.
    ours = named_like_ours(node, snapshot.pools) or any(found.node_name == node for found in snapshot.provisioned)
    return not ours


def awaited_bindings(snapshot: Snapshot, now: datetime) -> Mapping[str, str]:
    """Pods whose own node has just become available, with that node's name: kube-scheduler binds them now, or just did.

    Pods, claims and nodes have separate watches. If the binding arrives last, the pod's own place looks taken. So no
    other node is bought for the pod until WATCH_SKEW has passed, and its node is kept. Karpenter v1 keeps a nominated
    node for twice its longest batch (state/statenode.go, nominationWindow).
    """
    just_came = (
        node
        for node in snapshot.provisioned
        if has_come(node) and node.phase_since is not None and now - node.phase_since < WATCH_SKEW
    )
    return {pod: node.node_name for node in just_came for pod in node.pods}


def why_postponed(pod: Pod, bindings: Mapping[str, str], now: datetime) -> Reason | None:
    """The reasons why nothing is bought for the pod yet. Any existing node may still take it. `bindings`: of
    awaited_bindings.

    A delay counts from the pod's creation and postpones only purchases (Cluster Autoscaler 1.34
    core/static_autoscaler.go, filterOutYoungPods).
    """
    if pod.key in bindings:
        return Reason.of(Code.AWAITS_BINDING, Subject("pod", pod.key), node=bindings[pod.key])
    if pod.no_node_before is not None and now < pod.no_node_before:
        return Reason.of(Code.SCALE_UP_DELAYED, Subject("pod", pod.key), until=pod.no_node_before.isoformat())
    return None


def _verdict(reasons: Iterable[Reason]) -> LeftOutVerdict:
    return LeftOutVerdict.UNKNOWN if any(r.code in _UNKNOWN for r in reasons) else LeftOutVerdict.DOES_NOT_FIT


def _missing_members(pod: Pod, snapshot: Snapshot) -> Iterator[Reason]:
    if pod.gang is None or pod.gang.key not in snapshot.gangs:
        return
    siblings = [other for other in pending_pods(snapshot) if other.gang == pod.gang]
    if left := _incomplete_gangs(siblings, snapshot).get(pod.key):
        yield from left.reasons


def _incomplete_gangs(wanted: Iterable[Pod], snapshot: Snapshot) -> dict[str, LeftOut]:
    """Pods of gangs that have fewer pods than must start together: they wait for the others."""
    members: dict[str, list[Pod]] = {}
    for pod in wanted:
        if pod.gang:
            members.setdefault(pod.gang.key, []).append(pod)
    result: dict[str, LeftOut] = {}
    running = running_members(snapshot.pods) if members else {}
    for key, pods in members.items():
        gang = snapshot.gangs[key]
        present = len(pods) + running.get(key, 0)
        if present < gang.min_count:
            reason = Reason.of(Code.GANG_INCOMPLETE, Subject("gang", key), wanted=gang.min_count, placed=present)
            result |= {
                p.key: LeftOut(p.key, LeftOutVerdict.DOES_NOT_FIT, (reason,), claims=claim_keys(p)) for p in pods
            }
    return result


def running_members(pods: Iterable[Pod]) -> Mapping[str, int]:
    """The number of pods that have a node already, by the key of their gang."""
    return Counter(pod.gang.key for pod in pods if pod.gang and pod.bound)
