"""Quarantine of a type with certain drivers, which is not launched because it behaves differently than assumed.

Three kinds of evidence count against a pair (instance type, driver profiles) of a pool: machines that never become
usable nodes; mispredictions: nodes that exist as planned, but refuse the pods that they were launched for; and drift:
nodes that published other devices than predicted, if the policy avoids it. Without quarantine, any of them would
launch, fail and launch again for as long as the pods wait.

Pure. The evidence names the machine (names of nodes are used again), so it counts once, also after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import Why, became_ready, has_failed, is_coming, last_edge
from autoscaler.lifecycle.reflect import complete_drivers, occupies
from autoscaler.model.plan import Plan, Target
from autoscaler.model.pod import GangRef, Pod
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Quarantine, Snapshot
from autoscaler.model.virtual_pods import between_requests, is_virtual
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drift.compare import Difference
from instance_catalog.kubernetes import labels

# One failed boot may be the cloud's, three consecutive ones are no coincidence.
FAILED_BOOTS: Final = 3
# kube-scheduler tries every unschedulable pod again after five minutes at the latest (scheduling queue, 1.36), so a pod
# that still waits then was not overlooked.
SCHEDULER_GRACE: Final = timedelta(minutes=6)
# The reason of PodScheduled=False for every failure but "no node fits" (kube-scheduler schedule_one.go, v1.36).
_SCHEDULER_ERROR: Final = "SchedulerError"
# Watches of pods, claims and slices do not arrive together: for a moment a bound pod looks pending.
WATCH_SKEW: Final = timedelta(seconds=30)
FIRST: Final = timedelta(hours=1)
LONGEST: Final = timedelta(hours=24)
# The latest pieces of evidence are kept; people need no more.
_EVIDENCE: Final = 10

# Reasons that prevent a plan from using a node that would serve the pod.
_KEEPS_FROM_BUYING: Final = frozenset(
    {
        Code.POOL_LIMIT,
        Code.SPENDING_GUARD,
        Code.BLOCK_FULL,
        Code.OVERFLOW_NEVER,
        Code.GROUPS_FULL,
        Code.SHORTAGE,
        Code.LAUNCH_FAILED,
        Code.QUARANTINED,
        Code.NO_PRICE,
        Code.GANG_INCOMPLETE,
        Code.GANG_TOPOLOGY,
        Code.WAITS_FOR_BLOCK,
    }
)

_BOOT_FAILURES: Final = frozenset({Why.BOOT_TIMED_OUT, Why.DRIVER_NEVER_PUBLISHED, Why.NEVER_READY})


Pair: TypeAlias = tuple[str, str, tuple[str, ...]]
"""A pool, with an instance type and the driver profiles with which it is launched."""


@dataclass(frozen=True, slots=True)
class Misprediction:
    """A pod that waits although its node exists: the plan and kube-scheduler, or the drivers, disagree."""

    pod: str
    node: ProvisionedNode

    @property
    def evidence(self) -> str:
        """The pod and the machine, as the pool's status stores them."""
        return f"{self.pod} on {self.node.provider_id}"


@dataclass(frozen=True, slots=True)
class Drift:
    """A node whose drivers published other devices than predicted; `avoided`: its type must not be launched again."""

    node: ProvisionedNode
    differences: tuple[Difference, ...]
    avoided: bool

    @property
    def evidence(self) -> str:
        """The recorded text: the machine, which is compared once."""
        return self.node.provider_id


def mispredicted(snapshot: Snapshot, plan: Plan, now: datetime) -> tuple[Misprediction, ...]:
    """Pods that their ready node refuses although no other pod uses it.

    Either the plan itself, made with the really published devices, needs a new node for the pod, even if a limit or a
    shortage prevents it; or the plan still places the pod there, and kube-scheduler does not bind it. These do not
    count as evidence against the type: a pod that no new node would serve either (its claim is deleted, or allocated
    elsewhere, or its gang has grown), because an owner of pods must not be able to quarantine a type for all; a node
    with a tainted device, or one that is closed to pods; and a node that the plan gives to other pods, or that is
    booked for another ProvisioningRequest. Of virtual pods only those count for which the plan would launch again.
    """
    if not any(node.phase is Phase.READY for node in snapshot.provisioned):
        return ()  # before all pods of the cluster are read
    unbound = {pod.key for pod in snapshot.pods if pod.node_name is None}
    if all(unbound.isdisjoint(node.pods) for node in snapshot.provisioned if node.phase is Phase.READY):
        return ()  # as in most reconciles
    pods = {pod.key: pod for pod in snapshot.pods}
    placed = {placement.pod: placement for placement in plan.placements}
    gathering = {pods[key].gang for n in snapshot.provisioned if is_coming(n) for key in n.pods if key in pods}
    gathering |= _grown(snapshot, pods)
    wanting = _wanting(plan)
    found = []
    taken = _taken(snapshot, plan)
    for node in _undisturbed(snapshot):
        if node.node_name in taken:
            continue
        ready_for = now - (node.phase_since or now)
        overlooked = ready_for >= SCHEDULER_GRACE
        settled = ready_for >= WATCH_SKEW
        for pod in _waiting(node, pods, snapshot.claims):
            placement = placed.get(pod.key)
            again = placement is not None and placement.target is Target.NEW
            if is_virtual(pod.name):
                found += [Misprediction(pod.key, node)] if again and settled and pod.gang not in gathering else []
                continue
            hindered = placement is None and pod.key in wanting
            bought_again = (again or hindered) and settled
            here = placement is not None and placement.node == node.node_name
            refused = here and overlooked and not _chosen(pod, snapshot.claims)
            if (bought_again or refused) and (pod.gang is None or pod.gang not in gathering):
                found.append(Misprediction(pod.key, node))
    return tuple(found)


def _chosen(pod: Pod, claims: Mapping[str, ResourceClaim]) -> bool:
    """True if kube-scheduler has found a node for a pod that is not bound: a later failure (a binding that etcd refuses
    as too large, a driver's condition) does not depend on the node's type."""
    asked = (claims.get(f"{pod.namespace}/{entry.claim}") for entry in pod.claims if entry.claim)
    return pod.unscheduled == _SCHEDULER_ERROR or any(claim and claim.allocation for claim in asked)


def _wanting(plan: Plan) -> frozenset[str]:
    """The pods for which another node would be launched if it were possible now."""
    return frozenset(
        left.pod for left in plan.left_out if left.reasons and all(r.code in _KEEPS_FROM_BUYING for r in left.reasons)
    )


def _grown(snapshot: Snapshot, pods: Mapping[str, Pod]) -> frozenset[GangRef]:
    """The gangs that now require more members than nodes were launched for: they wait for those, on any node."""
    members = {key for node in snapshot.provisioned for key in node.pods}
    members |= {pod.key for pod in snapshot.pods if occupies(pod)}
    count = Counter(pods[key].gang for key in members if key in pods)
    wanted = ((gang, snapshot.gangs.get(gang.key)) for gang in count if gang is not None)
    return frozenset(ref for ref, found in wanted if found is not None and count[ref] < found.min_count)


def _taken(snapshot: Snapshot, plan: Plan) -> frozenset[str]:
    """The nodes that the plan gives to other pods than those they were launched for, or that a request has booked."""
    bought = {node.node_name: set(node.pods) for node in snapshot.provisioned}
    given = {p.node for p in plan.placements if p.pod not in bought.get(p.node, ())}
    return frozenset(given | {node.name for node in snapshot.nodes if labels.PROVISIONING_REQUEST in node.labels})


def quarantined(
    snapshot: Snapshot, mispredictions: Iterable[Misprediction], now: datetime, *, drifts: Iterable[Drift] = ()
) -> tuple[Quarantine, ...]:
    """The quarantines after this reconcile, with boots that failed and succeeded, mispredictions and drift.

    A node that becomes ready as predicted refutes all evidence against its type; one with avoided drift only proves
    that the type boots.
    """
    drifted = {drift.node.name: drift for drift in drifts if drift.avoided}
    known = {pair_of(q): q for q in snapshot.quarantines}
    for node in snapshot.provisioned:
        if became_ready(node, now) and node.name not in drifted:
            known.pop(_key(node), None)
        elif _failed_to_boot(node):
            _add(known, node, now, boot=node.provider_id)
    for drift in drifted.values():
        _add(known, drift.node, now, drift=drift.evidence)
    for misprediction in mispredictions:
        _add(known, misprediction.node, now, misprediction=misprediction.evidence)
    return tuple(known.values())


def lasts(times: int) -> timedelta:
    """The duration of a pair's quarantine, by the number of its quarantines: an hour, then twice as long each time."""
    return min(FIRST * (1 << min(max(times, 1) - 1, 10)), LONGEST)


def pair_of(quarantine: Quarantine) -> Pair:
    """The pair in quarantine."""
    return (quarantine.pool, quarantine.instance_type, quarantine.drivers)


def _key(node: ProvisionedNode) -> Pair:
    return (node.pool, node.offering.instance_type, node.prediction.drivers)


def _add(
    known: dict[Pair, Quarantine],
    node: ProvisionedNode,
    now: datetime,
    *,
    boot: str = "",
    misprediction: str = "",
    drift: str = "",
) -> None:
    """Add a piece of evidence; enough of it begins a quarantine, longer each time."""
    before = known.get(_key(node), Quarantine(*_key(node)))
    if boot in before.failed_boots or misprediction in before.mispredictions or drift in before.drifts:
        return
    after = replace(
        before,
        failed_boots=() if drift else (*before.failed_boots, *([boot] if boot else []))[-_EVIDENCE:],
        mispredictions=(*before.mispredictions, *([misprediction] if misprediction else []))[-_EVIDENCE:],
        drifts=(*before.drifts, *([drift] if drift else []))[-_EVIDENCE:],
    )
    running = after.until is not None and after.until > now
    if not running and (misprediction or drift or len(after.failed_boots) >= FAILED_BOOTS):
        after = replace(after, times=after.times + 1, until=now + lasts(after.times + 1))
    known[_key(node)] = after


def _failed_to_boot(node: ProvisionedNode) -> bool:
    return has_failed(node) and last_edge(node) in {why.value for why in _BOOT_FAILURES}


def _undisturbed(snapshot: Snapshot) -> Iterator[ProvisionedNode]:
    """Ready, unmarked nodes with published devices, and with no pods but those they were launched for."""
    nodes = OwnNodes(snapshot.nodes)
    occupants: dict[str | None, set[str]] = {}
    for pod in snapshot.pods:
        if occupies(pod):
            occupants.setdefault(pod.node_name, set()).add(pod.key)
    publishing = complete_drivers(snapshot.slices)
    marked = {slice_.reach.node_name for slice_ in snapshot.slices if any(device.taints for device in slice_.devices)}
    for provisioned in snapshot.provisioned:
        node = nodes.of(provisioned)
        if provisioned.phase is not Phase.READY or node is None or not node.ready or node.unschedulable:
            continue
        alone = occupants.get(node.name, set()) <= set(provisioned.pods)
        if alone and publishing.get(node.name) and node.name not in marked and not snapshot.taint_rules:
            yield provisioned


def _waiting(node: ProvisionedNode, pods: Mapping[str, Pod], claims: Mapping[str, ResourceClaim]) -> Iterator[Pod]:
    """The pods it was launched for that still wait, and that no other pod or volume keeps from it.

    A pod or claim that was created after the decision on the node is another one with the same name: anyone who may
    create them in one namespace must not be able to quarantine a type for all. All times are the API server's.
    """
    for key in node.pods:
        pod = pods.get(key)
        if pod is None or pod.node_name is not None or pod.deleting or pod.scheduling_gates:
            continue
        asked = (claims.get(f"{pod.namespace}/{entry.claim}") for entry in pod.claims if entry.claim)
        made = [pod.created, *(claim.created for claim in asked if claim is not None)]
        if max(made) > node.created > 0:
            continue
        # Requests are kept on different nodes; this never keeps a pod from the node that was launched for it.
        apart = [term for term in pod.pod_anti_affinity if not between_requests(term)]
        if not (pod.pod_affinity or apart or pod.topology_spread or pod.volumes):
            yield pod
