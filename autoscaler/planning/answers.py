"""Computes the conditions of ProvisioningRequests from a plan that includes their pods. Pure; nothing is written here.

Conditions as in Cluster Autoscaler (provisioningrequest, 1.36): Accepted at once; Provisioned False with the reason for
waiting, True when every pod has a place on a ready node; Failed when nothing can satisfy the request, and never after
Provisioned; BookingExpired when its consumers are bound or ten minutes have passed; CapacityRevoked when nodes end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from autoscaler.kube.workloads.stamping import MOST_PODS
from autoscaler.model.capacity_answers import AnswerCondition, RequestAnswer, Why
from autoscaler.model.plan import LeftOut, LeftOutVerdict, NodeAction, Plan, Target
from autoscaler.model.reason import Code, Reason
from autoscaler.model.requested_capacity import Condition, ProvisioningRequest, RequestClass, RequestCondition
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import owner_of
from autoscaler.planning.demand.virtual_pods import MOST_OBJECTS, request_problems
from autoscaler.planning.placement.placement_risk import pods_at_risk
from autoscaler.planning.request_state import GRACE, RequestState, asks, next_check
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels

BOOKING: Final = timedelta(minutes=10)
VALID: Final = timedelta(days=7)
# Parameters of Cluster Autoscaler's classes with the same meaning here.
_VALID_SECONDS: Final = "ValidUntilSeconds"
_NO_RETRY: Final = "noRetry"

_TYPE = RequestCondition
# Codes that mean that no offering of any pool can take the pod, now or later.
_FOR_GOOD: Final = frozenset(
    {
        Code.NO_CANDIDATE,
        Code.NO_POOL,
        Code.NOTHING_HAS,
        Code.BUNDLE_SPLIT,
        Code.TIED_SPLIT,
        Code.NO_DEVICE_OF_CLASS,
        Code.SELECTOR_FALSE,
        Code.TOO_FEW_DEVICES,
        Code.NO_COMBINATION,
        Code.CONSTRAINT_UNSATISFIED,
        Code.COUNTERS_EXHAUSTED,
        Code.CAPACITY_INSUFFICIENT,
        Code.INSUFFICIENT_RESOURCE,
        Code.INSUFFICIENT_WITH_CLAIMS,
        Code.CLAIM_NOT_SHAREABLE,
        Code.POD_LEVEL_EXCEEDED,
        Code.NODE_SELECTOR_MISMATCH,
        Code.NODE_AFFINITY_MISMATCH,
        Code.TAINT_NOT_TOLERATED,
        Code.CLASS_NOT_FOUND,
        Code.SELECTOR_INVALID,
        Code.SELECTOR_ERROR,
        Code.TOO_MANY_DEVICES,
        Code.FEATURE_DISABLED,
        Code.MALFORMED_REQUEST,
        Code.OUT_OF_SCOPE,
        Code.NOT_SELECTED,
        Code.OTHER_SCHEDULER,
    }
)
_OF_GANGS: Final = (Code.GANG_INCOMPLETE, Code.GANG_TOPOLOGY)
_ENDS: Final = (Code.BLOCK_ENDING, Code.NODE_RECLAIMED)


def request_answers(
    snapshot: Snapshot,
    plan: Plan,
    now: datetime,
    checked: Mapping[str, Plan],
    seen: RequestState | None = None,
) -> tuple[RequestAnswer, ...]:
    """One answer for each request of our classes whose conditions change.

    `checked` are the plans for requests that only check capacity, by key. `seen` has the time since when a request
    cannot be met; without it, the age of the request decides whether it fails.
    """
    outcomes = _VirtualPodOutcomes(plan)
    looked_at = {key: _VirtualPodOutcomes(made) for key, made in checked.items()}
    settled = partial(_settled, now=now, seen=seen)
    return tuple(
        answer
        for request in snapshot.provisioning_requests
        if (
            answer := _answer(
                request,
                snapshot,
                now,
                outcomes=looked_at.get(request.key, outcomes),
                looked=looked_at,
                settled=settled(request),
            )
        )
    )


def _settled(request: ProvisioningRequest, now: datetime, seen: RequestState | None) -> bool:
    """True if the obstacle of the request has lasted so long that it is not temporary."""
    since = _created(request, now) if seen is None else seen.hopeless_since(request)
    return since is not None and now - since >= GRACE


def _answer(
    request: ProvisioningRequest,
    snapshot: Snapshot,
    now: datetime,
    *,
    outcomes: _VirtualPodOutcomes,
    looked: Mapping[str, _VirtualPodOutcomes],
    settled: bool,
) -> RequestAnswer | None:
    done = request.deleting or request.has(_TYPE.FAILED) or request.has(_TYPE.CAPACITY_REVOKED)
    if request.served is None or done:
        return None
    accepted = AnswerCondition(_TYPE.ACCEPTED, Why.ACCEPTED, true=True)
    if request.served is RequestClass.CHECK:
        if not asks(request) or request.key not in looked:
            return None
        condition = _unmakeable(request, snapshot, settled=settled) or _found(request, outcomes)
        return RequestAnswer(request, (accepted, condition))
    if request.has(_TYPE.PROVISIONED):
        after = _after(request, snapshot, outcomes.plan, now)
        return None if after is None else RequestAnswer(request, (after,))
    if request.over:
        return None
    condition = (
        _unmakeable(request, snapshot, settled=settled)
        or _expired(request, now)
        or _progress(request, outcomes, settled=settled)
    )
    if condition.why is not Why.PROVISIONED:
        return RequestAnswer(request, (accepted, condition), spares=request.spares)
    lacking = pods_at_risk(request, snapshot, condition.nodes)
    # At the latest then each pod has a node to itself, and none takes the place of another.
    if lacking and sum(request.spares.values()) < request.pods * len(request.pod_sets):
        count = request.pods - sum(lacking.values())
        condition = AnswerCondition(
            condition.type, Why.SCATTERED, count=count, total=request.pods, nodes=condition.nodes, true=False
        )
        return RequestAnswer(request, (accepted, condition), spares=_more(request, lacking))
    return RequestAnswer(request, (accepted, condition), condition.nodes, request.spares)


def _more(request: ProvisioningRequest, lacking: Mapping[str, int]) -> FrozenMap[str, int]:
    """The spare pods, increased in each set by the number that kube-scheduler might leave without a place."""
    spares = dict(request.spares)
    for template, count in lacking.items():
        spares[template] = spares.get(template, 0) + count
    return FrozenMap(spares)


def _unmakeable(request: ProvisioningRequest, snapshot: Snapshot, *, settled: bool) -> AnswerCondition | None:
    """The reasons why its pods cannot be created."""
    problems = request_problems(request, snapshot)
    if not problems:
        return None
    if any(problem.code is Code.UNREADABLE for problem in problems):
        return AnswerCondition(_TYPE.PROVISIONED, Why.UNCHECKED, problems, true=False)
    # A missing template may be created later; spec.podSets never change.
    final = settled or any(problem.code is Code.UNSUPPORTED for problem in problems)
    condition = (
        AnswerCondition(_TYPE.FAILED, Why.NO_PODS, problems, true=True) if final else _waiting(request, problems)
    )
    return replace(condition, obstacle=True)


def _waiting(request: ProvisioningRequest, problems: tuple[Reason, ...]) -> AnswerCondition:
    return AnswerCondition(_TYPE.PROVISIONED, Why.COMING, problems, total=request.pods, true=False)


def _created(request: ProvisioningRequest, now: datetime) -> datetime:
    return request.created_at or now - GRACE


def _valid_until(request: ProvisioningRequest, now: datetime) -> datetime:
    seconds = request.parameters.get(_VALID_SECONDS, "")
    valid = timedelta(seconds=int(seconds)) if seconds.isascii() and seconds.isdigit() and len(seconds) < 9 else VALID
    return _created(request, now) + valid


def _expired(request: ProvisioningRequest, now: datetime) -> AnswerCondition | None:
    return AnswerCondition(_TYPE.FAILED, Why.EXPIRED, true=True) if now >= _valid_until(request, now) else None


def _progress(request: ProvisioningRequest, outcomes: _VirtualPodOutcomes, *, settled: bool) -> AnswerCondition:
    """The state of its nodes: all ready, some starting, or none available."""
    placed = outcomes.targets.get(request.key, [])
    ready = [node for target, node in placed if target is Target.EXISTING]
    nodes = tuple(sorted({node for _, node in placed}))
    if len(ready) == request.wanted:
        return AnswerCondition(
            _TYPE.PROVISIONED, Why.PROVISIONED, count=request.pods, total=request.pods, nodes=nodes, true=True
        )
    if len(placed) == request.wanted:
        return AnswerCondition(
            _TYPE.PROVISIONED,
            Why.COMING,
            count=min(len(ready), request.pods),
            total=request.pods,
            nodes=nodes,
            true=False,
        )
    left = outcomes.left.get(request.key, [])
    if not placed and not left:
        turn = Reason.of(Code.WAITS_FOR_TURN, objects=MOST_OBJECTS, pods=MOST_PODS)
        return AnswerCondition(_TYPE.PROVISIONED, Why.NOT_FOUND, (turn,), total=request.pods, true=False)
    worst = _decisive(left)
    hopeless = next((entry for entry in left if _for_good(entry)), None)
    if hopeless is not None and settled:
        return _out(request, hopeless, AnswerCondition(_TYPE.FAILED, Why.NOT_FOUND, obstacle=True, true=True))
    return _out(
        request, worst, AnswerCondition(_TYPE.PROVISIONED, Why.NOT_FOUND, obstacle=hopeless is not None, true=False)
    )


def _found(request: ProvisioningRequest, outcomes: _VirtualPodOutcomes) -> AnswerCondition:
    """The answer to a request that only checks capacity: whether existing nodes can take it."""
    placed = outcomes.targets.get(request.key, [])
    ready = [node for target, node in placed if target is Target.EXISTING]
    nodes = tuple(sorted({node for _, node in placed}))
    if len(ready) == request.pods:
        return AnswerCondition(
            _TYPE.PROVISIONED, Why.FOUND, count=request.pods, total=request.pods, nodes=nodes, true=True
        )
    final = request.parameters.get(_NO_RETRY, "").lower() == "true"
    kind = _TYPE.FAILED if final else _TYPE.PROVISIONED
    condition = AnswerCondition(kind, Why.NOT_FOUND, count=len(ready), total=request.pods, nodes=nodes, true=final)
    worst = _decisive(outcomes.left.get(request.key, []))
    return condition if worst is None else _out(request, worst, condition)


def _out(request: ProvisioningRequest, left: LeftOut | None, condition: AnswerCondition) -> AnswerCondition:
    """The answer with the reason of one pod without a place."""
    reasons = tuple(r for r in left.reasons if r.code not in _OF_GANGS) if left is not None else ()
    miss = left.near_misses[0] if left is not None and left.near_misses else None
    return replace(condition, reasons=reasons, miss=miss, total=request.pods, nodes=())


def _decisive(left: Iterable[LeftOut]) -> LeftOut | None:
    """The pod without a place that has a reason of its own, instead of being left out with the others of its gang."""
    entries = list(left)
    own = (entry for entry in entries if any(reason.code not in _OF_GANGS for reason in entry.reasons))
    return next(own, entries[0] if entries else None)


def _for_good(left: LeftOut) -> bool:
    """True if only lasting reasons keep the pod out: no shortage, no limit, no budget."""
    own = [reason for reason in left.reasons if reason.code not in _OF_GANGS]
    known = left.verdict is not LeftOutVerdict.UNKNOWN
    return known and bool(own) and all(reason.code in _FOR_GOOD for reason in own)


def _after(request: ProvisioningRequest, snapshot: Snapshot, plan: Plan, now: datetime) -> AnswerCondition | None:
    """The conditions after provisioning: the capacity was used, has expired, or is revoked."""
    own = {n.name for n in snapshot.nodes if n.labels.get(labels.PROVISIONING_REQUEST) == request.node_label}
    consumers = [pod for pod in snapshot.pods if request.consumed_by(pod)]
    used = {pod.node_name for pod in consumers if pod.bound}
    booked = not request.has(_TYPE.BOOKING_EXPIRED)
    ending = dict(_ending(snapshot, plan, own if booked else own & used))
    there = {node.name for node in snapshot.nodes}
    gone = (
        [name for name in request.details.get(labels.REQUEST_NODES, "").split(",") if name and name not in there]
        if booked
        else []
    )
    # Pods of an earlier run may have the same names; they do not use this capacity.
    taken = sum(1 for pod in consumers if pod.node_name in own and not pod.deleting)
    if booked and taken >= request.pods:
        return AnswerCondition(_TYPE.BOOKING_EXPIRED, Why.CONSUMED, count=taken, total=request.pods, true=True)
    if ending or gone:
        names = tuple(sorted({*ending, *gone}))
        return AnswerCondition(
            _TYPE.CAPACITY_REVOKED, Why.RECLAIMED, tuple(dict.fromkeys(ending.values())), nodes=names, true=True
        )
    provisioned = request.condition(_TYPE.PROVISIONED)
    if booked and now >= _since(provisioned, now) + BOOKING:
        return AnswerCondition(_TYPE.BOOKING_EXPIRED, Why.BOOKING_EXPIRED, count=taken, total=request.pods, true=True)
    return None


def _since(condition: Condition | None, now: datetime) -> datetime:
    return condition.since if condition is not None and condition.since is not None else now


def _ending(snapshot: Snapshot, plan: Plan, names: set[str]) -> Iterator[tuple[str, Reason]]:
    nodes = {node.name: node.node_name for node in snapshot.provisioned}
    for decision in plan.nodes:
        node = nodes.get(decision.provisioned_node, "")
        if node in names and decision.action in (NodeAction.NOTICE, NodeAction.DRAIN):
            for reason in decision.reasons:
                if reason.code in _ENDS:
                    yield node, reason


class _VirtualPodOutcomes:
    """The outcome of the virtual pods in the plan, by the key of their request."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.targets: dict[str, list[tuple[Target, str]]] = {}
        self.left: dict[str, list[LeftOut]] = {}
        for placement in plan.placements:
            owner = owner_of(placement.pod)
            if owner is not None and owner.kind == "ProvisioningRequest":
                self.targets.setdefault(owner.key, []).append((placement.target, placement.node))
        for entry in (*plan.left_out, *plan.outside):
            owner = owner_of(entry.pod)
            if owner is not None and owner.kind == "ProvisioningRequest":
                self.left.setdefault(owner.key, []).append(entry)


def next_answer(snapshot: Snapshot, now: datetime, seen: RequestState) -> datetime | None:
    """The next time at which a request changes its conditions although the cluster does not change."""
    return min((moment for moment in _moments(snapshot, now, seen) if moment > now), default=None)


def _moments(snapshot: Snapshot, now: datetime, seen: RequestState) -> Iterator[datetime]:
    for request in snapshot.provisioning_requests:
        if request.served is None or request.over:
            continue
        since = seen.hopeless_since(request)
        if request.has(_TYPE.PROVISIONED):
            yield _since(request.condition(_TYPE.PROVISIONED), now) + BOOKING
        else:
            yield _valid_until(request, now)
        if since is not None and request.served is RequestClass.ATOMIC:
            yield since + GRACE
    check = next_check(snapshot, now, seen)
    if check is not None:
        yield check
