"""Computes the status of CapacityBuffers: the template in use, the pods with room, and their cost. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, TypeVar

from autoscaler.lifecycle.reflect import occupied_nodes
from autoscaler.model.capacity_answers import AnswerCondition, BufferAnswer, Why
from autoscaler.model.plan import LeftOut, Placement, Plan, Target
from autoscaler.model.reason import Code, Reason
from autoscaler.model.requested_capacity import CapacityBuffer
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import owner_of
from autoscaler.planning.demand.buffers import need_of
from autoscaler.planning.demand.virtual_pods import missing_claims

E = TypeVar("E", Placement, LeftOut)
_READY: Final = "ReadyForProvisioning"
_PROVISIONING: Final = "Provisioning"


def buffer_answers(snapshot: Snapshot, plan: Plan) -> tuple[BufferAnswer, ...]:
    served = [buffer for buffer in snapshot.capacity_buffers if buffer.served]
    if not served:
        return ()
    placed, left = _of_buffers(plan.placements), _of_buffers((*plan.left_out, *plan.outside))
    shares = _shares(snapshot, plan, placed)
    return tuple(
        _answer(b, snapshot, placed.get(b.key, ()), left.get(b.key, ()), shares.get(b.key, Decimal(0))) for b in served
    )


def _of_buffers(entries: Iterable[E]) -> dict[str, list[E]]:
    """The entries by the key of the buffer that their pods belong to."""
    found: dict[str, list[E]] = {}
    for entry in entries:
        owner = owner_of(entry.pod)
        if owner is not None and owner.kind == "CapacityBuffer":
            found.setdefault(owner.key, []).append(entry)
    return found


def _answer(
    buffer: CapacityBuffer,
    snapshot: Snapshot,
    placed: Iterable[Placement],
    left: Iterable[LeftOut],
    price: Decimal | None,
) -> BufferAnswer:
    need = need_of(buffer, snapshot)
    problems = need.problems or (tuple(missing_claims(need.pod, snapshot)) if need.pod is not None else ())
    if problems:
        not_ready = AnswerCondition(_READY, _why_not(buffer, problems), problems, true=False)
        idle = AnswerCondition(_PROVISIONING, Why.NOT_READY, problems, true=False)
        return BufferAnswer(buffer, (not_ready, idle), need.template, need.generation)
    ready = AnswerCondition(_READY, Why.RESOLVED, count=need.replicas, total=need.replicas, true=True)
    provisioning = _provisioning(need.replicas, list(placed), list(left), price)
    return BufferAnswer(buffer, (ready, provisioning), need.template, need.generation, need.replicas, price)


def _why_not(buffer: CapacityBuffer, problems: tuple[Reason, ...]) -> Why:
    missing = any(problem.code is Code.TEMPLATE_NOT_FOUND for problem in problems)
    if not missing:
        return Why.UNRESOLVED
    return Why.TEMPLATE_MISSING if buffer.scalable is None else Why.SCALABLE_MISSING


def _provisioning(total: int, placed: list[Placement], left: list[LeftOut], price: Decimal | None) -> AnswerCondition:
    ready = sum(placement.target is Target.EXISTING for placement in placed)
    nodes = tuple(sorted({placement.node for placement in placed}))
    if not total:
        return AnswerCondition(_PROVISIONING, Why.EMPTY, true=False)
    if left:
        miss = left[0].near_misses[0] if left[0].near_misses else None
        return AnswerCondition(
            _PROVISIONING, Why.NOT_FOUND, left[0].reasons, miss, ready, total, nodes, usd_per_hour=price, true=False
        )
    why = Why.FITS if ready == total else Why.NEEDS_NODES
    return AnswerCondition(_PROVISIONING, why, count=ready, total=total, nodes=nodes, usd_per_hour=price, true=True)


def _shares(snapshot: Snapshot, plan: Plan, placed: Mapping[str, Iterable[Placement]]) -> dict[str, Decimal | None]:
    """The hourly cost of each buffer, by its key: nodes that only buffers need, shared equally by the buffers that
    use them."""
    real = {placement.node for placement in plan.placements if _is_real(placement.pod)}
    real |= occupied_nodes(snapshot.pods)
    prices = {node.node_name: node.offering.usd_per_hour for node in snapshot.provisioned}
    prices |= {launch.name: launch.offering.usd_per_hour for launch in plan.launches}
    users: dict[str, set[str]] = {}
    for key, placements in placed.items():
        for placement in placements:
            users.setdefault(placement.node, set()).add(key)
    costs: dict[str, Decimal | None] = {}
    for node, keys in users.items():
        if node in real or node not in prices:
            continue
        price = prices[node]
        for key in keys:
            before = costs.get(key, Decimal(0))
            costs[key] = None if price is None or before is None else before + price / len(keys)
    return costs


def _is_real(pod: str) -> bool:
    owner = owner_of(pod)
    return owner is None or owner.kind != "CapacityBuffer"
