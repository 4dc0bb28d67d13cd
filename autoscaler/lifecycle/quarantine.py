"""When a type is not launched any more with certain drivers, because reality contradicts what was assumed of it.

Three things speak against a pair (instance type, driver profiles) of a pool: machines that never become usable nodes;
mispredictions: nodes that are there as planned, but do not take the pods they were bought for; and drift: nodes that
published something else than predicted, as far as it is to be avoided. Without this, any of them would launch, fail and
launch again for as long as the pods wait.

Pure. The evidence names the machine it was seen on (names of nodes come again), so a restart that sees it once more
does not count it twice.
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

# One failed boot may be the cloud's, three in a row are not chance.
FAILED_BOOTS: Final = 3
# kube-scheduler looks at every unschedulable pod again after five minutes at the latest (scheduling queue, 1.36), so a
# pod that still waits then was not overlooked.
SCHEDULER_GRACE: Final = timedelta(minutes=6)
# The reason of PodScheduled=False for every failure but "no node fits" (kube-scheduler schedule_one.go, v1.36).
_SCHEDULER_ERROR: Final = "SchedulerError"
# Watches of pods, claims and slices do not arrive together: for a moment a pod looks pending that is bound already.
WATCH_SKEW: Final = timedelta(seconds=30)
FIRST: Final = timedelta(hours=1)
LONGEST: Final = timedelta(hours=24)
# The last pieces of evidence are kept; a person needs no more.
_EVIDENCE: Final = 10

# What keeps a plan from a node that would serve the pod.
_KEEPS_FROM_BUYING: Final = frozenset(
    {
        Code.POOL_LIMIT,
        Code.SPENDING_GUARD,
        Code.BLOCK_FULL,
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
"""A pool, with an instance type and the driver profiles that it is launched with."""


@dataclass(frozen=True, slots=True)
class Misprediction:
    """A pod that waits although its node is there: the plan and kube-scheduler, or the drivers, disagree."""

    pod: str
    node: ProvisionedNode

    @property
    def evidence(self) -> str:
        """The pod and the machine, as the pool's status stores them."""
        return f"{self.pod} on {self.node.provider_id}"


@dataclass(frozen=True, slots=True)
class Drift:
    """A node whose drivers published something else than predicted; `avoided`: its type is not to be bought again."""

    node: ProvisionedNode
    differences: tuple[Difference, ...]
    avoided: bool

    @property
    def evidence(self) -> str:
        """What is written down: the machine, which is compared once."""
        return self.node.provider_id


def mispredicted(snapshot: Snapshot, plan: Plan, now: datetime) -> tuple[Misprediction, ...]:
    """Pods whose ready node, which nobody else took, does not take them.

    Either the plan itself, made with what the drivers really published, needs a new node for the pod, though a limit or
    a shortage may keep it from one; or it still says that the pod fits, and kube-scheduler does not bind it. A pod that
    no new node would serve either (its claim is deleted, or allocated elsewhere, or its gang has grown) says nothing
    about the type: who owns a pod must not have a type avoided for all by that. Nor does a node with a tainted device,
    or one that is closed to pods. Nor does one that the plan gives to other pods, or that is booked for
    another ProvisioningRequest; and of pods that exist only in the plan only those count for which it would buy again.
    """
    if not any(node.phase is Phase.READY for node in snapshot.provisioned):
        return ()  # before the pods of the whole cluster are looked at
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
    """Whether kube-scheduler has found a node for a pod that is not bound: what fails after that (a binding that etcd
    refuses as too large, a driver's condition) is no matter of the node's type."""
    asked = (claims.get(f"{pod.namespace}/{entry.claim}") for entry in pod.claims if entry.claim)
    return pod.unscheduled == _SCHEDULER_ERROR or any(claim and claim.allocation for claim in asked)


def _wanting(plan: Plan) -> frozenset[str]:
    """The pods for which another node would be bought, if only that were possible now."""
    return frozenset(
        left.pod for left in plan.left_out if left.reasons and all(r.code in _KEEPS_FROM_BUYING for r in left.reasons)
    )


def _grown(snapshot: Snapshot, pods: Mapping[str, Pod]) -> frozenset[GangRef]:
    """The gangs that want more members now than nodes were bought for: they wait for those, whatever the nodes are."""
    members = {key for node in snapshot.provisioned for key in node.pods}
    members |= {pod.key for pod in snapshot.pods if occupies(pod)}
    count = Counter(pods[key].gang for key in members if key in pods)
    wanted = ((gang, snapshot.gangs.get(gang.key)) for gang in count if gang is not None)
    return frozenset(ref for ref, found in wanted if found is not None and count[ref] < found.min_count)


def _taken(snapshot: Snapshot, plan: Plan) -> frozenset[str]:
    """The nodes that the plan gives to other pods than those they were bought for, or that a request has booked."""
    bought = {node.node_name: set(node.pods) for node in snapshot.provisioned}
    given = {p.node for p in plan.placements if p.pod not in bought.get(p.node, ())}
    return frozenset(given | {node.name for node in snapshot.nodes if labels.PROVISIONING_REQUEST in node.labels})


def quarantined(
    snapshot: Snapshot, mispredictions: Iterable[Misprediction], now: datetime, *, drifts: Iterable[Drift] = ()
) -> tuple[Quarantine, ...]:
    """What the pools know after this reconcile, with boots that failed and succeeded, mispredictions and drift.

    A node that becomes ready as predicted proves all that was held against its type wrong; one that has drifted to be
    avoided only proves that the type boots.
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
    """How long the quarantine lasts that a pair is in for the so many-th time: an hour, then twice as long each."""
    return min(FIRST * (1 << min(max(times, 1) - 1, 10)), LONGEST)


def pair_of(quarantine: Quarantine) -> Pair:
    """What it is about."""
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
    """One piece of evidence more; enough of it begins a quarantine, longer each time."""
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
    """Ready nodes with published devices that nobody marked, and with no pods but those they were bought for."""
    nodes = OwnNodes(snapshot.nodes)
    occupants: dict[str | None, set[str]] = {}
    for pod in snapshot.pods:
        if occupies(pod):
            occupants.setdefault(pod.node_name, set()).add(pod.key)
    publishing = complete_drivers(snapshot.slices)
    marked = {piece.reach.node_name for piece in snapshot.slices if any(device.taints for device in piece.devices)}
    for provisioned in snapshot.provisioned:
        node = nodes.of(provisioned)
        if provisioned.phase is not Phase.READY or node is None or not node.ready or node.unschedulable:
            continue
        alone = occupants.get(node.name, set()) <= set(provisioned.pods)
        if alone and publishing.get(node.name) and node.name not in marked and not snapshot.taint_rules:
            yield provisioned


def _waiting(node: ProvisionedNode, pods: Mapping[str, Pod], claims: Mapping[str, ResourceClaim]) -> Iterator[Pod]:
    """The pods it was bought for that still wait, and that no other pod or volume keeps from it.

    A pod or claim that was made after the node was decided on is another one by the same name, whatever it asks for:
    who may make them in one namespace must not have a type avoided for all. All moments are the API server's.
    """
    for key in node.pods:
        pod = pods.get(key)
        if pod is None or pod.node_name is not None or pod.deleting or pod.scheduling_gates:
            continue
        asked = (claims.get(f"{pod.namespace}/{entry.claim}") for entry in pod.claims if entry.claim)
        made = [pod.created, *(claim.created for claim in asked if claim is not None)]
        if max(made) > node.created > 0:
            continue
        # Requests are kept on different nodes; that never keeps a pod from the node that was bought for it.
        apart = [term for term in pod.pod_anti_affinity if not between_requests(term)]
        if not (pod.pod_affinity or apart or pod.topology_spread or pod.volumes):
            yield pod
