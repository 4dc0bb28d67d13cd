"""Makes one decision for all nodes of a TPU slice of several hosts: they stay or end together.

A host with pods keeps the others. If a host is lost, or the provider takes it back, the others end as well: they cost
money without use, and the pods of the slice's job cannot continue. A host whose machine a person stopped does not keep
the others once they are empty: they run at their full price, and no job fits on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from autoscaler.lifecycle.provisioned_node import is_coming, is_stopped
from autoscaler.lifecycle.slices import is_lost, slice_of
from autoscaler.model.plan import NodeAction, NodeDecision
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason
from instance_catalog.dataclass import replace


def used_slices(nodes: Iterable[ProvisionedNode], busy: Collection[str | None]) -> frozenset[str]:
    """The slices with pods, or with pods that wait for them. `busy` are names of Nodes."""
    used = (node for node in nodes if node.node_name in busy or (is_coming(node) and not is_stopped(node)))
    return frozenset(whole for node in used if (whole := slice_of(node)))


def together(
    decisions: Sequence[NodeDecision], nodes: Sequence[ProvisionedNode], unwritten: Mapping[str, int]
) -> tuple[NodeDecision, ...]:
    """The decisions, with the same decision for all hosts of a slice. `unwritten`: Snapshot.unwritten."""
    slices: dict[str, list[ProvisionedNode]] = {}
    for node in nodes:
        if whole := slice_of(node):
            slices.setdefault(whole, []).append(node)
    if not slices:
        return tuple(decisions)
    decided = {decision.provisioned_node: decision for decision in decisions}
    for whole, hosts in slices.items():
        decided |= _of_slice(hosts, decided, unwritten.get(whole, 0))
    return tuple(decided[decision.provisioned_node] for decision in decisions)


def _of_slice(
    hosts: Sequence[ProvisionedNode], decided: Mapping[str, NodeDecision], unwritten: int
) -> dict[str, NodeDecision]:
    """The decisions for one slice. A host without a decision is being removed already. `unwritten` hosts exist without
    a ProvisionedNode, because a user removed it by force or a restore lost it, and the controller adopts them."""
    own = [decided[host.name] for host in hosts if host.name in decided]
    lost = [host for host in hosts if is_lost(host)]
    count = max(host.hosts for host in hosts)
    ending = [one for one in own if one.deadline is not None and one.action in (NodeAction.DRAIN, NodeAction.NOTICE)]
    there = len(hosts) + unwritten
    if lost or there < count:
        why = (Reason.of(Code.SLICE_BROKEN, hosts=count, left=there - len(lost)),)
        failed = {host.name for host in lost}
        return {
            one.provisioned_node: one if one.provisioned_node in failed or _ends(one) else _ended(one, why)
            for one in own
        }
    if ending:
        first = min(ending, key=lambda one: (one.action is NodeAction.NOTICE, one.deadline))
        return {one.provisioned_node: replace(first, provisioned_node=one.provisioned_node) for one in own}
    drained = any(one.action is NodeAction.DRAIN for one in own)
    staying = [one for one in own if one.action is not NodeAction.DRAIN]
    if drained and all(_only_stopped(one) for one in staying):
        return {one.provisioned_node: replace(one, action=NodeAction.DRAIN) for one in staying}
    if staying:
        also = Reason.of(Code.SLICE_IN_USE, hosts=count)
        return {
            one.provisioned_node: replace(one, action=NodeAction.KEEP, reasons=(also, *one.reasons))
            for one in own
            if one.action is NodeAction.DRAIN
        }
    return {}


def _only_stopped(decision: NodeDecision) -> bool:
    """True if the host is kept only because its machine is stopped: no mark, no pod."""
    return decision.action is NodeAction.KEEP and decision.reasons[0].code is Code.NODE_STOPPED


def _ends(decision: NodeDecision) -> bool:
    """True if it drains before an end that its provider has announced."""
    return decision.action is NodeAction.DRAIN and decision.deadline is not None


def _ended(decision: NodeDecision, why: tuple[Reason, ...]) -> NodeDecision:
    return replace(decision, action=NodeAction.DRAIN, reasons=why, deadline=None)
