"""Creates virtual pods for ProvisioningRequests and CapacityBuffers, so that they are demand like real pods.

Their claims are made from ResourceClaimTemplates, as the resourceclaim controller makes them for real pods. The pods of
a ProvisioningRequest are one gang. The pods of a buffer come after every real pod. This module makes no decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Final

from autoscaler.kube.pod import uid_of
from autoscaler.kube.workloads.generated_claims import generate_claims
from autoscaler.kube.workloads.stamping import MOST_PODS
from autoscaler.model.gang import Gang
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import GangRef, Pod, PodAffinityTerm
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.requested_capacity import (
    CapacityBuffer,
    ProvisioningRequest,
    RequestClass,
    RequestCondition,
    consumed_request,
)
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import buffer_pod, is_virtual, request_gang, request_pod
from autoscaler.planning.demand.buffers import BufferNeed, need_of
from autoscaler.planning.demand.demand import unreadable
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement

# Lower than the lowest priority of a PriorityClass, so after every real pod.
BUFFER_PRIORITY: Final = -(2**31)
# The most requests and buffers with pods in one reconcile.
MOST_OBJECTS: Final = 100
# Names of pods in a LaunchBatch have at most 317 characters, including kind and index.
_LONGEST_NAMES: Final = 290


def with_virtual_pods(snapshot: Snapshot, checks: Iterable[ProvisioningRequest] = ()) -> Snapshot:
    """The snapshot with the pods, claims and gangs of requests and buffers.

    `checks` are requests that only check capacity; they become pods as well. A request or buffer with a missing
    template has no pods. A second call changes nothing.
    """
    found = without_virtual_pods(snapshot)
    held = _held_labels(found)
    wanting = [r for r in found.provisioning_requests if r.wants_nodes and not request_problems(r, found)]
    needs = {buffer.key: need_of(buffer, found) for buffer in found.capacity_buffers}
    admitted = admitted_keys(wanting, {key: need.replicas for key, need in needs.items()})
    requests = [r for r in wanting if f"ProvisioningRequest {r.key}" in admitted]
    requests += [r for r in checks if not request_problems(r, found)]
    if not requests and not found.capacity_buffers:
        return found
    found = _unmarked(found) if requests else found
    made = _Made(dict(found.claims.items()), [])
    gangs = dict(found.gangs)
    ordered = tuple(sorted(pool.name for pool in found.pools if pool.ordered))
    for request in requests:
        gang = Gang(
            request.namespace, request_gang(request.name), f"ProvisioningRequest {request.name}", request.wanted
        )
        gangs[gang.key] = gang
        others = [value for value, holder in held.items() if holder.key != request.key]
        for pod in _request_pods(request, found):
            steered = _steered(pod, request, others, alone=len(requests) == 1)
            made.add(_kept_off(steered, ordered), found)
    for buffer in found.capacity_buffers:
        if f"CapacityBuffer {buffer.key}" in admitted:
            for pod in _buffer_pods(buffer, needs[buffer.key], found):
                made.add(pod, found)
    if not made.pods:
        return found
    return replace(found, pods=(*found.pods, *made.pods), claims=FrozenMap(made.claims), gangs=FrozenMap(gangs))


def without_virtual_pods(snapshot: Snapshot) -> Snapshot:
    """The snapshot with only the objects of the cluster."""
    if not any(map(is_virtual, [pod.name for pod in snapshot.pods if ":" in pod.name])):
        return snapshot
    return replace(
        snapshot,
        pods=tuple(pod for pod in snapshot.pods if not is_virtual(pod.name)),
        claims=FrozenMap({key: claim for key, claim in snapshot.claims.items() if not is_virtual(claim.name)}),
        gangs=FrozenMap({key: gang for key, gang in snapshot.gangs.items() if not is_virtual(gang.name)}),
    )


def admitted_keys(requests: Iterable[ProvisioningRequest], buffers: Mapping[str, int]) -> frozenset[str]:
    """The requests and buffers that get pods in one reconcile, as "Kind namespace/name". `buffers`: pods by key.

    At most MOST_OBJECTS, and none after they have MOST_PODS pods together, because each costs memory and time of all
    others. The namespace with the fewest pods after its next object is served first: a large namespace delays only
    itself, and small ones are always served.
    """
    waiting: dict[str, list[tuple[int, str]]] = {}
    for request in requests:
        wanted = sum(s.count for s in request.pod_sets) + sum(request.spares.values())
        waiting.setdefault(request.namespace, []).append((wanted, f"ProvisioningRequest {request.key}"))
    for key, replicas in buffers.items():
        waiting.setdefault(key.partition("/")[0], []).append((replicas, f"CapacityBuffer {key}"))
    heap = [(objects[0][0], namespace) for namespace, objects in waiting.items()]
    heapify(heap)
    pods, admitted = 0, set[str]()
    while heap and pods < MOST_PODS and len(admitted) < MOST_OBJECTS:
        total, namespace = heappop(heap)
        count, key = waiting[namespace].pop(0)
        pods += count
        admitted.add(key)
        if waiting[namespace]:
            heappush(heap, (total + waiting[namespace][0][0], namespace))
    return frozenset(admitted)


def _unmarked(snapshot: Snapshot) -> Snapshot:
    """The pods of tenants without the label that separates requests: only virtual pods may have it."""
    key = labels.PROVISIONING_REQUEST

    def clean(pod: Pod) -> Pod:
        if key not in pod.labels:
            return pod
        return replace(pod, labels=FrozenMap({name: value for name, value in pod.labels.items() if name != key}))

    daemons = tuple(replace(found, pod=clean(found.pod)) for found in snapshot.daemon_sets)
    return replace(snapshot, pods=tuple(map(clean, snapshot.pods)), daemon_sets=daemons)


@dataclass(slots=True)
class _Made:
    """The objects made so far, and all claims."""

    claims: dict[str, ResourceClaim]
    pods: list[Pod]

    def add(self, pod: Pod, snapshot: Snapshot) -> None:
        """Add a pod, and make its claims."""
        named, claims = generate_claims(pod, snapshot.claim_templates, self.claims)
        self.pods.append(named)
        self.claims.update((claim.key, claim) for claim in claims)


def request_problems(request: ProvisioningRequest, snapshot: Snapshot) -> tuple[Reason, ...]:
    """The reasons why its pods cannot be made: templates that are missing or cannot be read; () if they can be made."""
    return tuple(dict.fromkeys(_problems(request, snapshot)))


def _problems(request: ProvisioningRequest, snapshot: Snapshot) -> Iterator[Reason]:
    for pod_set in request.pod_sets:
        key = f"{request.namespace}/{pod_set.template}"
        template = snapshot.pod_templates.get(key)
        if template is None and "PodTemplate" in snapshot.unreadable:
            yield from unreadable(snapshot, Subject("PodTemplate", key), "PodTemplate")
        elif template is None:
            yield Reason.of(Code.TEMPLATE_NOT_FOUND, Subject("PodTemplate", key))
        else:
            yield from missing_claims(template.pod, snapshot)
    subject, templates = Subject("ProvisioningRequest", request.key), [pod_set.template for pod_set in request.pod_sets]
    if request.too_many:
        pods = f"{request.too_many} pods in one request (at most {MOST_PODS} at once: split it into several requests)"
        yield Reason.of(Code.UNSUPPORTED, subject, feature=pods)
    elif not request.pods:
        yield Reason.of(Code.UNSUPPORTED, subject, feature="spec.podSets as written")
    if len(set(templates)) < len(templates):
        yield Reason.of(Code.UNSUPPORTED, subject, feature="one PodTemplate in two pod sets")
    longest = max(map(len, templates), default=0)
    if len(request.key) + longest > _LONGEST_NAMES:
        names = f"names of more than {_LONGEST_NAMES} characters together (namespace, request and PodTemplate)"
        yield Reason.of(Code.UNSUPPORTED, subject, feature=names)


def missing_claims(pod: Pod, snapshot: Snapshot) -> Iterator[Reason]:
    """The ResourceClaimTemplates and ResourceClaims that the pod names and that do not exist."""
    for entry in pod.claims:
        if entry.claim:
            key = f"{pod.namespace}/{entry.claim}"
            if key not in snapshot.claims:
                yield Reason.of(Code.TEMPLATE_NOT_FOUND, Subject("ResourceClaim", key))
        elif entry.claim is None and f"{pod.namespace}/{entry.template}" not in snapshot.claim_templates:
            key = f"{pod.namespace}/{entry.template}"
            if "ResourceClaimTemplate" in snapshot.unreadable:
                yield from unreadable(snapshot, Subject("ResourceClaimTemplate", key), "ResourceClaimTemplate")
            else:
                yield Reason.of(Code.TEMPLATE_NOT_FOUND, Subject("ResourceClaimTemplate", key))


def _request_pods(request: ProvisioningRequest, snapshot: Snapshot) -> Iterator[Pod]:
    gang = GangRef(request.namespace, request_gang(request.name))
    for pod_set in request.pod_sets:
        template = snapshot.pod_templates[f"{request.namespace}/{pod_set.template}"].pod
        model = replace(template, gang=gang, owner=f"ProvisioningRequest/{request.name}", created=request.created)
        for index in range(pod_set.count + request.spares.get(pod_set.template, 0)):
            yield _named(model, request_pod(request.name, pod_set.template, index))


def _buffer_pods(buffer: CapacityBuffer, need: BufferNeed, snapshot: Snapshot) -> Iterator[Pod]:
    if need.pod is None or need.problems or any(missing_claims(need.pod, snapshot)):
        return
    model = replace(
        need.pod,
        gang=None,
        owner=f"CapacityBuffer/{buffer.name}",
        priority=BUFFER_PRIORITY,
        created=buffer.created,
    )
    for index in range(need.replicas):
        yield _named(model, buffer_pod(buffer.name, index))


def _named(model: Pod, name: str) -> Pod:
    """The pod as kube-scheduler would see it, without scheduling gates and other fields that hold real pods back. A
    template that names a node takes no node from others."""
    return replace(
        model,
        name=name,
        uid=uid_of("Pod", model.namespace, name),
        annotations=EMPTY,
        scheduling_gates=(),
        pod_group="",
        node_name=None,
    )


def _steered(pod: Pod, request: ProvisioningRequest, others: list[str], *, alone: bool) -> Pod:
    """The pod with an anti-affinity to nodes of other requests: a node has one value of the label that selects
    consumers."""
    steered = replace(pod, labels=pod.labels.with_items({labels.PROVISIONING_REQUEST: request.node_label}))
    if not alone:
        steered = replace(steered, pod_anti_affinity=(*pod.pod_anti_affinity, _apart(request)))
    if others:
        free = Requirement(labels.PROVISIONING_REQUEST, "NotIn", tuple(sorted(others)))
        steered = replace(steered, affinity=_narrowed(pod.affinity, free))
    return steered


def _kept_off(pod: Pod, pools: tuple[str, ...]) -> Pod:
    """The pod excluded from nodes of pools of another autoscaler, which may end them at any time."""
    if not pools:
        return pod
    return replace(pod, affinity=_narrowed(pod.affinity, Requirement(labels.POOL, "NotIn", pools)))


def _apart(request: ProvisioningRequest) -> PodAffinityTerm:
    others = (
        Requirement(labels.PROVISIONING_REQUEST, "Exists"),
        Requirement(labels.PROVISIONING_REQUEST, "NotIn", (request.node_label,)),
    )
    every_namespace = LabelSelector()
    return PodAffinityTerm(LabelSelector(others), labels.HOSTNAME, namespace_selector=every_namespace)


def _narrowed(affinity: NodeSelector | None, requirement: Requirement) -> NodeSelector:
    if affinity is None:
        return NodeSelector((NodeSelectorTerm((requirement,)),))
    # An empty term matches nothing, and must not match after the change.
    filled = (
        replace(term, match_expressions=(*term.match_expressions, requirement))
        if term.match_expressions or term.match_fields
        else term
        for term in affinity.terms
    )
    return NodeSelector(tuple(filled))


def _held_labels(snapshot: Snapshot) -> Mapping[str, ProvisioningRequest]:
    """The requests whose nodes keep their label, by its value: those with a booking, or with consumers that need it."""
    atomic = [r for r in snapshot.provisioning_requests if r.served is RequestClass.ATOMIC]
    held = [request for request in atomic if request.has(RequestCondition.PROVISIONED)]
    if not held:
        return {}
    consumed = {(pod.namespace, consumed_request(pod)) for pod in snapshot.pods if not pod.finished}
    return {r.node_label: r for r in held if not r.over or (r.namespace, r.name) in consumed}


def booked_nodes(snapshot: Snapshot) -> frozenset[str]:
    """The names of nodes that are kept for the consumers of a request until these are bound or the booking expires."""
    booked = {
        request.node_label
        for request in snapshot.provisioning_requests
        if request.served is RequestClass.ATOMIC and request.has(RequestCondition.PROVISIONED) and not request.over
    }
    if not booked:
        return frozenset()
    return frozenset(node.name for node in snapshot.nodes if node.labels.get(labels.PROVISIONING_REQUEST) in booked)
