"""Converts the chosen devices to an AllocationResult in upstream's form (Allocate and createNodeSelector, v0.36)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.search import Choice
from autoscaler.dra.outcome import FatalError
from autoscaler.model.reason import Code, Subject
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement


def allocation_of(claim: ResourceClaim, choices: Sequence[Choice], context: AllocationContext) -> Allocation:
    """The allocation of one claim. Raises FatalError for a chosen device whose node selector has several terms."""
    devices = tuple(_result(claim, position, choice, context) for position, choice in enumerate(choices))
    return Allocation(devices, _node_selector(claim, choices, context))


def owner_of_shares(claim: ResourceClaim) -> str:
    """The prefix of the ids of a claim's shares."""
    return claim.uid or claim.key


def with_shares_of(owner: str, allocation: Allocation) -> Allocation:
    """The same allocation for another claim with the same requests: its shares have other ids."""
    if all(device.share_id is None for device in allocation.devices):
        return allocation
    devices = (
        device if device.share_id is None else replace(device, share_id=_share_id(owner, position))
        for position, device in enumerate(allocation.devices)
    )
    return replace(allocation, devices=tuple(devices))


def _share_id(owner: str, position: int) -> str:
    return f"{owner}/{position}"


def _result(claim: ResourceClaim, position: int, choice: Choice, context: AllocationContext) -> AllocatedDevice:
    pooled, request, profile = choice.pooled, choice.plan.request, context.profile
    binding = profile.gates.binding_conditions
    return AllocatedDevice(
        request=choice.plan.name,
        driver=pooled.driver,
        pool=pooled.pool.name,
        device=pooled.name,
        admin_access=choice.plan.admin,
        # Upstream draws a random id. Any unique id works, and plans have to be reproducible.
        share_id=None if choice.consumed is None else _share_id(owner_of_shares(claim), position),
        consumed_capacity=choice.consumed or None,
        tolerations=request.tolerations if profile.allocator.tolerations_in_result else (),
        binding_conditions=(pooled.device.binding_conditions or ()) if binding else (),
        binding_failure_conditions=(pooled.device.binding_failure_conditions or ()) if binding else (),
    )


def _node_selector(claim: ResourceClaim, choices: Sequence[Choice], context: AllocationContext) -> NodeSelector | None:
    """The nodes where the allocation can be used: this one, those that all devices reach, or None for all nodes."""
    expressions: list[Requirement] = []
    fields: list[Requirement] = []
    for choice in choices:
        reach = choice.pooled.reach
        if reach.node_name is not None or choice.pooled.device.binds_to_node:
            return _this_node(context.node.name)
        terms = reach.node_selector.terms if reach.node_selector is not None else ()
        if len(terms) > 1:
            raise FatalError.of(
                Code.BAD_NODE_SELECTOR,
                Subject("claim", claim.key),
                device=str(choice.pooled.id),
                problem=f"a ResourceSlice node selector with {len(terms)} terms",
            )
        for term in terms:
            _merge(fields, term.match_fields)
            _merge(expressions, term.match_expressions)
    if not expressions and not fields:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


_this_node = lru_cache(maxsize=128)(NodeSelector.for_node)  # the same for every claim on a node


def _merge(into: list[Requirement], new: Sequence[Requirement]) -> None:
    for requirement in new:
        alike = (
            known.key == requirement.key
            and known.operator == requirement.operator
            and set(known.values) == set(requirement.values)
            for known in into
        )
        if not any(alike):
            into.append(requirement)
