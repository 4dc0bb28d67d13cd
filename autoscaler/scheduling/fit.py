"""Checks that pods fit a node together, scheduled in this order, for planning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from autoscaler.dra.allocation.search import DEFAULT_BUDGET, SearchBudget
from autoscaler.dra.filter import filter_claims
from autoscaler.dra.prepare import refusals
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import Allocation
from autoscaler.model.verdict import DoesNotFit, Fits, Unknown, Verdict
from autoscaler.scheduling.claim_amounts import too_little
from autoscaler.scheduling.filters import FILTERS, Filter
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.frozen_map import FrozenMap

_UNKNOWN = (Code.UNSUPPORTED, Code.CONTESTED_RESOURCE)


def fit(pods: Iterable[Pod], node_name: str, world: World, *, budget: SearchBudget = DEFAULT_BUDGET) -> Verdict:
    """Verdict of kube-scheduler for `pods` on the node named `node_name` of `world`.

    Each pod is checked after the ones before it are placed, so pods that share a claim or compete for devices are
    decided as a sequence of scheduling cycles on this node. The first pod that does not fit decides. `budget` limits
    the searches for devices.
    """
    allocations: dict[str, Allocation] = {}
    preference = 0
    before: tuple[Pod, Fits] | None = None
    for pod in pods:
        if before is not None:  # the world after the last pod is not used, and costs a copy of the devices in use
            world = world.placed(before[:1], node_name, before[1])
        verdict = fit_one(pod, node_name, world, budget=budget)
        if not isinstance(verdict, Fits):
            return verdict
        allocations.update(verdict.allocations)
        preference += verdict.preference
        before = pod, verdict
    return Fits(FrozenMap(allocations), preference)


def fit_one(pod: Pod, node_name: str, world: World, *, budget: SearchBudget = DEFAULT_BUDGET) -> Verdict:
    """The same for one pod: the filters in order, the claims last, then the rules of the drivers."""
    state = world.nodes[node_name]
    return filtered(pod, state, world) or fit_claims(pod, state.node, world, budget=budget)


def filtered(
    pod: Pod, state: NodeState, world: World, *, filters: Sequence[Filter] = FILTERS
) -> DoesNotFit | Unknown | None:
    """The result of the first filter that refuses the pod; None if all let it pass. The claims are not checked."""
    if pod.unsupported:
        return Unknown(tuple(Reason.of(Code.UNSUPPORTED, Subject("pod", pod.key), feature=f) for f in pod.unsupported))
    for entry in filters:
        reasons = entry.rule(pod, state, world)
        if reasons:
            return Unknown(reasons) if all(r.code in _UNKNOWN for r in reasons) else DoesNotFit(reasons)
    return None


def fit_claims(pod: Pod, node: Node, world: World, *, budget: SearchBudget = DEFAULT_BUDGET) -> Verdict:
    """The verdict on whether a pod that passed the filters gets its claims on the node, and the drivers prepare them.

    `node` is one of the world, perhaps as another object.
    """
    verdict = filter_claims(
        pod,
        node,
        claims=world.claims,
        extended_resources=world.extended_resources,
        devices=world.devices,
        allocated=world.allocated,
        pod_groups=world.snapshot.gangs,
        room=partial(too_little, pod, world.nodes[node.name]),
        budget=budget,
    )
    if isinstance(verdict, Fits) and verdict.allocations:
        refused = refusals(verdict.allocations, node, world.devices, world.claims, world.drivers)
        return DoesNotFit(refused) if refused else verdict
    return verdict
