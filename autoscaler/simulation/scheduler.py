"""kube-scheduler of the simulated cluster: it binds pods and allocates claims with the same rules as planning.

It sees only published objects: real nodes, published slices. A plan's choice is at most a nomination, tried first. It
scores as kube-scheduler does, preempts no pods, and binds gangs all or nothing. Pods wait in the order of
pkg/scheduler/framework/plugins/queuesort (v1.36.3): by priority, then by the time at which they were queued.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import NODES, PODS, RESOURCE_CLAIMS
from autoscaler.cluster.store import Store
from autoscaler.dra.claims.extended_resources import extended_resource_claim
from autoscaler.dra.claims.node_allocatable import ClaimShare
from autoscaler.dra.claims.pod_groups import consumer_of
from autoscaler.kube.writing.allocation import write_allocation, write_consumer
from autoscaler.kube.writing.objects import write_claim
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import Allocation, Consumer, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits, Verdict
from autoscaler.planning.demand.bundles import Bundle, bundles_of, classes_of
from autoscaler.planning.placement.kept_verdicts import REFUSED, KeptVerdicts
from autoscaler.scheduling.fit import fit_one
from autoscaler.scheduling.schedule import Choice, everywhere, first, schedule
from autoscaler.scheduling.world import World, WorldMemory
from autoscaler.simulation.api_server import ApiServer
from autoscaler.simulation.controllers import finished
from instance_catalog.kubernetes.labels import EXTENDED_RESOURCE_CLAIM, GROUP

# Fields of a pod's status of which only a part matters.
_INDIFFERENT: Final = frozenset({"phase", "startTime", "nominatedNodeName"})


class Scheduler:
    """Schedules what can be scheduled when asked to."""

    def __init__(self, api: ApiServer, store: Store, choose: Choice = first) -> None:
        self._api = api
        self._store = store
        self._choose = choose
        self._memory = WorldMemory()
        self._known = KeptVerdicts()
        self._in_vain: tuple[int, tuple[Object, ...]] = (-1, ())  # other objects and pods when it bound none last

    def step(self) -> bool:
        """One pass over all pods that wait; whether any was bound."""
        pods, others = self._api.stored(PODS), self._api.changed_at(but=GROUP, apart=PODS)
        if not any(_is_unbound(pod) for pod in pods):
            return False
        if others == self._in_vain[0] and not self._matters(pods):
            return False
        bound = self._schedule_all()
        self._in_vain = (-1, ()) if bound else (others, pods)
        return bound

    def _matters(self, pods: tuple[Object, ...]) -> bool:
        """Whether one of these pods may be bound, though none was when only pods were different.

        It does not matter that a pod runs, nor that it is nominated to a node that is not there: kube-scheduler's
        queue ignores most of the status too (isPodUpdated in pkg/scheduler/backend/queue/scheduling_queue.go)."""
        before = self._in_vain[1]
        nodes = {node["metadata"]["name"] for node in self._api.stored(NODES)}
        changed = ((old, new) for old, new in zip(before, pods, strict=False) if old is not new)
        return len(before) != len(pods) or any(_decisive(old, nodes) != _decisive(new, nodes) for old, new in changed)

    def _schedule_all(self) -> bool:
        """Tries all pods that wait."""
        self._store.refresh()
        snapshot = self._store.snapshot()
        queue = _queue(snapshot)
        if not queue:
            return False
        world = World.of(snapshot, kept=self._memory)
        self._known.begin(world)
        kinds = _kinds(snapshot) if len(queue) > 1 else {}  # what a kind is refused matters to those behind it
        refused: set[int] = set()  # kinds of pods that fit nowhere since a pod was bound last
        bound = False
        for group, needed in queue:
            kind = kinds.get(group[0].key)
            if kind in refused:
                continue
            found = schedule(group, world, self._choose, self._verdicts)
            if not found.bound or len(found.bound) < needed:
                if kind is not None:
                    refused.add(kind)
                continue
            refused.clear()
            for entry in found.bound:
                shares = found.world.claim_shares(entry.pod, world.nodes[entry.node].node)
                self._bind(entry.pod, entry.node, entry.verdict, world, shares)
            world, bound = found.world, True
        return bound

    def _verdicts(self, pod: Pod, world: World) -> Mapping[str, Verdict]:
        """The verdicts of the nodes, without those that refused such a pod before and are unchanged since."""
        known = self._known.about(Bundle((pod,)), world)
        if known is None:
            return everywhere(pod, world)
        found: dict[str, Verdict] = {}
        for name in world.nodes:
            if known.of(name, world) != REFUSED:
                found[name] = fit_one(pod, name, world)
                known.keep(name, world, found[name])
        return found

    def _bind(self, pod: Pod, node: str, verdict: Fits, world: World, shares: Sequence[ClaimShare]) -> None:
        """Write the claims' status first, then the binding, as kube-scheduler's PreBind and Bind do."""
        for name, entry in {entry.claim: entry for entry in pod.claims if entry.claim}.items():
            claim = self._api.get(RESOURCE_CLAIMS, name, namespace=pod.namespace)
            consumer = consumer_of(pod, entry, world.snapshot.gangs, world.profile)
            self._reserve(claim, consumer, verdict.allocations.get(f"{pod.namespace}/{name}"))
        extended = extended_resource_claim(pod, world.nodes[node].node, world.extended_resources, world.profile)
        if extended is not None:
            claim = self._api.create(RESOURCE_CLAIMS, _manifest(extended, pod))
            self._reserve(claim, Consumer("pods", pod.name, pod.uid), verdict.allocations[extended.key])
            noted = {"status": {"extendedResourceClaimStatus": {"resourceClaimName": claim["metadata"]["name"]}}}
            self._api.patch(PODS, pod.name, noted, namespace=pod.namespace, subresource="status")
        if shares:
            taken = {"status": {"nodeAllocatableResourceClaimStatuses": [_taken(share) for share in shares]}}
            self._api.patch(PODS, pod.name, taken, namespace=pod.namespace, subresource="status")
        self._api.patch(PODS, pod.name, {"spec": {"nodeName": node}}, namespace=pod.namespace)
        if pod.nominated_node:
            cleared = {"status": {"nominatedNodeName": None}}
            self._api.patch(PODS, pod.name, cleared, namespace=pod.namespace, subresource="status")

    def _reserve(self, claim: Object, by: Consumer, allocation: Allocation | None) -> None:
        """Reserve a claim, and allocate it unless another pod's binding did."""
        status = claim.setdefault("status", {})
        if allocation is not None and "allocation" not in status:
            status["allocation"] = write_allocation(allocation)
        consumer = write_consumer(by)
        if consumer not in status.setdefault("reservedFor", []):
            status["reservedFor"].append(consumer)
        self._api.update(RESOURCE_CLAIMS, claim, subresource="status")


def _manifest(claim: ResourceClaim, pod: Pod) -> Object:
    """The claim that the scheduler makes up for a pod's extended resources."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    metadata = {
        "generateName": f"{claim.name}-",
        "namespace": claim.namespace,
        "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
        "ownerReferences": [owner],
    }
    return {**write_claim(claim), "metadata": metadata}


def _taken(share: ClaimShare) -> Object:
    """An entry of status.nodeAllocatableResourceClaimStatuses."""
    costs = {"perPod": share.per_pod, "perContainer": share.per_container}
    return {
        "resourceClaimName": share.claim,
        "containers": list(share.containers),
        "mapping": [{"name": resource, "quantity": str(amount)} for resource, amount in sorted(share.mapped.items())],
        "overhead": [
            {"name": resource, **{kind: str(part[resource]) for kind, part in costs.items() if resource in part}}
            for resource in sorted({*share.per_pod, *share.per_container})
        ],
    }


def _queue(snapshot: Snapshot) -> Sequence[tuple[Sequence[Pod], int]]:
    """Groups that are scheduled together with how many of them must fit: by priority, then by age, then by name."""
    groups: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        if _waits(pod):
            groups.setdefault(pod.gang.key if pod.gang else f"pod {pod.key}", []).append(pod)
    bound = _bound_members(snapshot)

    def turn(key: str) -> tuple[int, float, str]:
        return -max(pod.priority for pod in groups[key]), min(pod.created for pod in groups[key]), key

    def needed(key: str) -> int:
        gang = snapshot.gangs.get(key)
        return 1 if gang is None else max(1, gang.min_count - bound.get(key, 0))

    return [(groups[key], needed(key)) for key in sorted(groups, key=turn)]


def _kinds(snapshot: Snapshot) -> Mapping[str, int]:
    """By key of the pod, the number of its kind: while no pod is bound, none of a kind fits if one did not.

    Pods of gangs and pods that share a claim have none: what becomes of them depends on others.
    """
    waiting = [pod for pod in snapshot.pods if pod.gang is None and _waits(pod)]
    classes = enumerate(classes_of(bundles_of(waiting, snapshot.claims), snapshot))
    return {b.key: number for number, found in classes for b in found.members if len(b.pods) == 1}


def _is_unbound(pod: Object) -> bool:
    return not pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") == "Pending"


def _decisive(pod: Object, nodes: Set[str]) -> Object:
    """What of a pod may decide whether it, or another one, fits."""
    status = pod.get("status", {})
    told = {name: value for name, value in status.items() if name not in _INDIFFERENT}
    told |= {
        "waits": _is_unbound(pod),
        "finished": finished(pod),
        "nominated": nodes & {status.get("nominatedNodeName")},
    }
    metadata = {name: value for name, value in pod["metadata"].items() if name != "resourceVersion"}
    return {**pod, "metadata": metadata, "status": told}


def _waits(pod: Pod) -> bool:
    ready = pod.node_name is None and pod.phase == "Pending" and not pod.deleting and not pod.scheduling_gates
    return ready and all(entry.claim is not None for entry in pod.claims)


def _bound_members(snapshot: Snapshot) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for pod in snapshot.pods:
        if pod.gang is not None and pod.node_name is not None:
            counts[pod.gang.key] = counts.get(pod.gang.key, 0) + 1
    return counts
