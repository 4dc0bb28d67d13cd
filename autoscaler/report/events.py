"""Kubernetes Events, with the reasons that other autoscalers use.

Pure factories: a plan and a snapshot in, event values out. Equal events are one event, whichever process sends them.
Events of a namespace do not name pods of other namespaces, because their readers may not be allowed to read those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from autoscaler.lifecycle.leaving import checked_first, evicts
from autoscaler.lifecycle.observing import acts_on_nodes
from autoscaler.lifecycle.provisioned_node import Why, has_failed, is_leaving, last_edge
from autoscaler.lifecycle.quarantine import Drift, Misprediction
from autoscaler.lifecycle.reflect import occupies
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import LeftOut, NodeAction, NodeDecision, Placement, Plan, PlannedNode, Target
from autoscaler.model.provisioned_node import OfferingRef, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Backoff, Snapshot
from autoscaler.model.virtual_pods import VirtualOwner, owner_of
from autoscaler.report.drift_text import drift_text
from autoscaler.report.reasons import text_of, texts_of
from autoscaler.report.redaction import of_namespace, redacted
from autoscaler.report.words import counted, money
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Diagnostic


class Subject(NamedTuple):
    """The object of an Event. `namespace` is "" for cluster-scoped objects, `uid` "" if it is unknown."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @staticmethod
    def of(kind: str, key: str, uid: str = "") -> Subject:
        """The subject for namespace/name, or for the name of a cluster-scoped object."""
        namespace, _, name = key.rpartition("/")
        return Subject(kind, name, namespace, uid)

    @property
    def key(self) -> str:
        """namespace/name, or the name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Event:
    """`type` is Normal or Warning."""

    about: Subject
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ObjectEvents:
    """The events about one object of the cluster. `events` creates them."""

    about: Subject
    events: Callable[[], Iterator[Event]]


def object_events(plan: Plan, snapshot: Snapshot) -> Iterator[ObjectEvents]:
    """The events of a plan, object by object: pods that get a node, pods that get none, nodes that change."""
    named = {p.pod for p in plan.placements if p.target is Target.NEW} | {left.pod for left in plan.left_out}
    uids = {key: pod.uid for pod in snapshot.pods if named and (key := pod.key) in named}
    owners = dict(_owners(snapshot))
    announced: set[tuple[VirtualOwner, str]] = set()
    launches = {launch.name: launch for launch in plan.launches}
    pools = {pool.name: pool for pool in snapshot.pools}
    waiting = _claims_by_hand(snapshot)
    for placement in plan.placements:
        if placement.target is Target.NEW and placement.node in launches:
            launch = launches[placement.node]
            placed = partial(_placed, placement, launch, uids.get(placement.pod, ""), pools.get(launch.pool))
            if owner := owner_of(placement.pod):
                yield from _of_owner(owner, placement.node, placed, announced, owners)
            else:
                yield _of_pod(placement.pod, placed, waiting.pop(placement.pod, []))
    for left in plan.left_out:
        if left.reasons and all(reason.code is Code.AWAITS_BINDING for reason in left.reasons):
            continue  # its node exists, and kube-scheduler will write the event
        missing = partial(_left_out, left, uids.get(left.pod, ""))
        if owner := owner_of(left.pod):
            yield from _of_owner(owner, "", missing, announced, owners)
        else:
            yield _of_pod(left.pod, missing, waiting.pop(left.pod, []))
    for node in snapshot.provisioned:
        if has_failed(node):
            failed = partial(_of_failed, node, snapshot.backoffs)
            yield ObjectEvents(Subject("ProvisionedNode", node.name), failed)
    nodes = {node.name: node for node in snapshot.provisioned}
    for decision in plan.nodes:
        if decision.action is NodeAction.KEEP and not any(reason.code in _TOLD for reason in decision.reasons):
            continue
        decided = nodes.get(decision.provisioned_node)
        if decided is None:
            continue
        create = partial(_of_decision, decision, decided, pools.get(decided.pool), snapshot)
        yield ObjectEvents(Subject("ProvisionedNode", decided.name), create)


def _of_pod(pod: str, create: Callable[[], Event], claims: Iterable[ResourceClaim]) -> ObjectEvents:
    def events() -> Iterator[Event]:
        event = create()
        yield event
        yield from (_of_claim(claim, event) for claim in claims)

    return ObjectEvents(Subject.of("Pod", pod), events)


def _owners(snapshot: Snapshot) -> Iterator[tuple[VirtualOwner, str]]:
    """The owners of virtual pods, with uids."""
    for request in snapshot.provisioning_requests:
        yield VirtualOwner("ProvisioningRequest", request.namespace, request.name), request.uid
    for buffer in snapshot.capacity_buffers:
        yield VirtualOwner("CapacityBuffer", buffer.namespace, buffer.name), buffer.uid


def _of_owner(
    owner: VirtualOwner,
    node: str,
    create: Callable[[], Event],
    announced: set[tuple[VirtualOwner, str]],
    uids: Mapping[VirtualOwner, str],
) -> Iterator[ObjectEvents]:
    """The event of a virtual pod, on its request or buffer: once for each node, not for each pod."""
    if (owner, node) not in announced:
        announced.add((owner, node))
        about = Subject(owner.kind, owner.name, owner.namespace)
        yield ObjectEvents(about, lambda: iter([on_owner(create(), uids.get(owner, ""))]))


def on_owner(event: Event, uid: str = "") -> Event:
    """The event of a pod; if the pod exists only in the plan, the event of its request or buffer."""
    owner = owner_of(event.about.key) if event.about.kind == "Pod" else None
    if owner is None:
        return event
    about = Subject(owner.kind, owner.name, event.about.namespace, uid)
    return replace(event, about=about, message=event.message.removeprefix("pod "))


def _of_failed(node: ProvisionedNode, backoffs: Iterable[Backoff]) -> Iterator[Event]:
    yield _failed(node, backoffs)


def _of_decision(
    decision: NodeDecision, node: ProvisionedNode, pool: CapacityPool | None, snapshot: Snapshot
) -> Iterator[Event]:
    if decision.action is NodeAction.KEEP and any(reason.code is Code.NODE_STOPPED for reason in decision.reasons):
        yield _stopped(decision, node)
    elif decision.action is NodeAction.KEEP and any(reason.code in _BROKEN for reason in decision.reasons):
        yield _stays(decision, node)
    elif decision.action in (NodeAction.KEEP, NodeAction.CLOSE):
        yield from _consolidation(decision, node)
    if decision.action in _REMOVALS and not _only_considered(decision, node, pool):
        yield _decided(decision, node.uid)
        yield from _notices(decision, node, snapshot)


def _claims_by_hand(snapshot: Snapshot) -> dict[str, list[ResourceClaim]]:
    """By pod, its unallocated claims that were created by hand; for generated claims the pod's event is enough.

    A claim of several pods gets the event of the first of them.
    """
    found: dict[str, list[ResourceClaim]] = {}
    seen: set[str] = set()
    for pod in snapshot.pods:
        for entry in pod.claims if pod.node_name is None else ():
            claim = snapshot.claims.get(f"{pod.namespace}/{entry.claim}")
            if claim is not None and not claim.controller and claim.allocation is None and claim.key not in seen:
                seen.add(claim.key)
                found.setdefault(pod.key, []).append(claim)
    return found


def _of_claim(claim: ResourceClaim, pod: Event) -> Event:
    """The event of a pod, on a claim of it that is not allocated."""
    about = Subject("ResourceClaim", claim.name, claim.namespace, claim.uid)
    return Event(about, pod.type, pod.reason, f"{pod.about.name}: {pod.message}")


# Reasons of nodes that stay only because pods run on them.
_BROKEN = (Code.NODE_FAILED, Code.NODE_UNHEALTHY)
_CONSOLIDATION = {
    Code.NODE_DISPENSABLE: "CheaperElsewhere",
    Code.NODE_REPLACED: "CheaperElsewhere",
    Code.NODE_CLOSING: "Closing",
    Code.PODS_STAY: "NotMoved",
    Code.NO_OTHER_PLACE: "NotMoved",
    Code.NOT_CHEAPER: "NotMoved",
    Code.UNREADABLE: "NotMoved",
}
# A kept node without one of these has no event, as nearly all of them.
_TOLD = frozenset({Code.NODE_STOPPED, *_BROKEN, *_CONSOLIDATION})
_REMOVALS = {NodeAction.NOTICE: ("Warning", "CapacityEnding"), NodeAction.DRAIN: ("Normal", "Draining")}


def offering_text(offering: OfferingRef) -> str:
    """p5.48xlarge in us-east-1a (capacity-block cb-1)."""
    block = f" {offering.block}" if offering.block else ""
    zone = "" if offering.zone == "any" else f" in {offering.zone}"
    return f"{offering.instance_type}{zone} ({offering.capacity_type}{block})"


def misprediction_event(wrong: Misprediction) -> Event:
    """The event for a pod that a node refuses although it was launched for the pod."""
    node = wrong.node
    message = (
        f"node {node.node_name} ({offering_text(node.offering)}) was bought for this pod and does not take it; "
        f"{node.offering.instance_type} is quarantined in pool {node.pool}. Compare what its drivers published: "
        f"foreslice catalog verify --slices published.yaml --type {node.offering.instance_type}"
    )
    return on_owner(Event(Subject.of("Pod", wrong.pod), "Warning", "Misprediction", message))


def invalid_event(kind: str, key: str, uid: str, problem: Diagnostic) -> Event:
    """The event for an object with a part that cannot be read; `key` is its namespace/name, or its name."""
    return Event(Subject.of(kind, key, uid), "Warning", "Invalid", str(problem))


def drift_event(drift: Drift) -> Event:
    """The event for a node whose drivers published other devices than predicted for its type."""
    node = drift.node
    instance_type = node.offering.instance_type
    follows = f"; {instance_type} is quarantined in pool {node.pool}" if drift.avoided else ""
    message = (
        f"node {node.node_name} ({offering_text(node.offering)}) published something else than predicted{follows}: "
        f"{drift_text(drift.differences)}. All of it: "
        f"foreslice catalog verify --slices published.yaml --type {instance_type} --node {node.node_name}"
    )
    kind = "Warning" if drift.avoided else "Normal"
    return Event(Subject("ProvisionedNode", node.name, uid=node.uid), kind, "Drifted", message)


def trouble_event(kind: str, namespace: str, name: str, uid: str, *, reason: str, text: str) -> Event:
    """The event for an action on an object that failed, with the next step."""
    return on_owner(Event(Subject(kind, name, namespace, uid), "Warning", reason, text))


def withheld_event(kind: str, name: str, uid: str, *, pool: str, would: str) -> Event:
    """The event for an action on an existing object that is not carried out, because its pool observes."""
    observes = f"pool {pool} only observes" if pool else "no pool acts"
    return Event(Subject(kind, name, uid=uid), "Normal", "Observing", f"{observes}: it would {would}")


def not_launched_event(pod: str, uid: str, batch: str, reason: str) -> Event:
    """The event for a pod whose node is not launched, because the LaunchBatch could not be written.

    `pod` is its namespace/name. The refusal may name pods of others, so only the event of the LaunchBatch has it.
    """
    message = (
        f"no node is launched for this pod: LaunchBatch {batch} was refused ({reason}); its events say why: "
        f"kubectl get events -A --field-selector involvedObject.name={batch}"
    )
    return on_owner(Event(Subject.of("Pod", pod, uid), "Warning", "NotLaunched", message))


def _placed(placement: Placement, launch: PlannedNode, uid: str, pool: CapacityPool | None) -> Event:
    about = Subject.of("Pod", placement.pod, uid)
    price = "" if launch.usd_per_hour is None else f" at {money(launch.usd_per_hour)} $/h"
    why = texts_of(redacted(placement.reasons or launch.reasons, of_namespace(about.namespace)))
    acts = pool is not None and pool.acts
    reason = "TriggeredScaleUp" if acts else "ProposedScaleUp"
    did = "pod triggered scale-up" if acts else f"pod would trigger scale-up, but pool {launch.pool} {_idle(pool)}"
    # The boot time is left out: it changes with each observed boot, and so would the event.
    message = f"{did}: node {launch.name}, {offering_text(launch.offering)}{price}"
    return Event(about, "Normal", reason, f"{message}: {why}" if why else message)


def _idle(pool: CapacityPool | None) -> str:
    """The reason why a pool does not act."""
    if pool is not None and pool.deleting:
        return "is being deleted"
    if pool is not None and pool.held_back:
        return "is held back by one of its conditions"
    return "only observes"


def _left_out(left: LeftOut, uid: str) -> Event:
    about = Subject.of("Pod", left.pod, uid)
    if left.reasons and all(reason.code is Code.WAITS_FOR_BLOCK for reason in left.reasons):
        return Event(about, "Normal", Code.WAITS_FOR_BLOCK.value, texts_of(left.reasons))
    message = f"pod didn't trigger scale-up: {texts_of(redacted(left.reasons, of_namespace(about.namespace)))}"
    if left.near_misses:
        nearest = left.near_misses[0]
        (miss,) = redacted([nearest.reason], of_namespace(about.namespace))
        message += f"; nearest miss: {text_of(miss)} on {counted(nearest.types, 'type')} such as {nearest.example}"
    return Event(about, "Warning", "NotTriggerScaleUp", message)


def _failed(node: ProvisionedNode, backoffs: Iterable[Backoff]) -> Event:
    """The event for a node that never became usable: its last edge as reason, with the provider's answer."""
    why = last_edge(node) or node.phase.value
    resting = (one for one in backoffs if one.pool == node.pool and one.covers(node.offering) and one.message)
    answer = next(resting, None) if why == Why.NO_OFFERING_LEFT.value else None
    cause = f": {answer.message}" if answer is not None else ""
    message = f"{offering_text(node.offering)} did not become a node{cause}; the next reconcile plans its pods again"
    return Event(Subject("ProvisionedNode", node.name, uid=node.uid), "Warning", why, message)


def _only_considered(decision: NodeDecision, node: ProvisionedNode, pool: CapacityPool | None) -> bool:
    """True if the drain is not recorded: a pod that is found may end it, or the pool of the node observes."""
    if decision.action is not NodeAction.DRAIN or is_leaving(node):
        return False
    looks = checked_first(decision.reasons) or not evicts(decision.reasons)
    return pool is None or not acts_on_nodes(pool) or looks


def _stays(decision: NodeDecision, node: ProvisionedNode) -> Event:
    why = texts_of(tuple(reason for reason in decision.reasons if reason.code in _BROKEN))
    message = (
        f"{why}, but pods run on node {node.node_name}: its machine stays until they have ended. "
        f"To evict them and end the machine now: kubectl delete provisionednode {node.name}"
    )
    return Event(Subject("ProvisionedNode", node.name, uid=node.uid), "Warning", "NotEmpty", message)


def _consolidation(decision: NodeDecision, node: ProvisionedNode) -> Iterator[Event]:
    """The event for the next step of consolidation, carried out or only proposed, or for the reason why pods stay."""
    about = Subject("ProvisionedNode", node.name, uid=node.uid)
    for reason in decision.reasons:
        if reason.code in _CONSOLIDATION:
            yield Event(about, "Normal", _CONSOLIDATION[reason.code], text_of(reason))


def _stopped(decision: NodeDecision, node: ProvisionedNode) -> Event:
    message = (
        f"{texts_of(decision.reasons)}: it runs no pods, counts against limits and may still cost money. Start it, or "
        f"end it: kubectl delete provisionednode {node.name}. Pools with disruption.stopped: End end such machines"
    )
    return Event(Subject("ProvisionedNode", node.name, uid=node.uid), "Warning", "MachineStopped", message)


def _notices(decision: NodeDecision, node: ProvisionedNode, snapshot: Snapshot) -> Iterator[Event]:
    """An event on every pod of a machine that ends, so that its job can write a checkpoint."""
    if decision.deadline is None:
        return
    message = f"node {node.node_name} ends at {decision.deadline:%Y-%m-%dT%H:%M:%SZ}: {texts_of(decision.reasons)}"
    for pod in snapshot.pods:
        if pod.node_name == node.node_name and occupies(pod):
            yield Event(Subject.of("Pod", pod.key, pod.uid), "Warning", "CapacityEnding", message)


def _decided(decision: NodeDecision, uid: str) -> Event:
    kind, reason = _REMOVALS[decision.action]
    about = Subject("ProvisionedNode", decision.provisioned_node, uid=uid)
    return Event(about, kind, reason, texts_of(decision.reasons))
