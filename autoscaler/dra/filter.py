"""The result of kube-scheduler's plugin DynamicResources for a pod on a node (Filter, v1.36), as a Verdict.

With the gate DRANodeAllocatableResources, the node's own amounts that claims take count as well (Filter, v1.37.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from autoscaler.dra.allocation.allocator import (
    DEFAULT_BUDGET,
    Allocated,
    ClusterDevices,
    FatalAllocation,
    NotAllocated,
    SearchBudget,
    UnknownAllocation,
    allocate,
)
from autoscaler.dra.claims.node_allocatable import ClaimShare, guessed, not_shareable, shares_of
from autoscaler.dra.claims.pod_claims import check_selectors, claims_of, extended_resource_claim, full, unavailable
from autoscaler.dra.claims.pod_groups import group_of
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.dra.outcome import FatalError
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.gang import Gang
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from instance_catalog.frozen_map import FrozenMap

# The reasons why the node's own amounts do not suffice for a pod whose claims take these shares; none if they do.
Room: TypeAlias = Callable[[tuple[ClaimShare, ...]], tuple[Reason, ...]]


def filter_claims(
    pod: Pod,
    node: Node,
    *,
    claims: Mapping[str, ResourceClaim],
    extended_resources: Mapping[str, DeviceClass],
    devices: ClusterDevices,
    allocated: AllocatedState,
    pod_groups: Mapping[str, Gang],
    room: Room = lambda _: (),
    budget: SearchBudget = DEFAULT_BUDGET,
) -> Verdict:
    """The verdict on whether the node satisfies the pod's claims; Fits has the new allocations by claim key.

    `claims` is keyed by namespace/name; `extended_resources` is `extended_resource_classes` of the snapshot, empty if
    none are served; `pod_groups` are the gangs of the snapshot by namespace/name; `room` is called if devices take of
    the node's own amounts. `budget` limits the search; comparisons with kube-scheduler's code use a larger one.
    """
    mine = claims_of(pod, claims, devices.profile, devices.classes)
    if not isinstance(mine, tuple):
        return mine
    if missing := _missing_group(pod, devices, pod_groups):
        return missing
    present = [claim for claim in mine if claim.allocation is not None]
    wanted = [claim for claim in mine if claim.allocation is None]
    fatal = check_selectors(present)
    if fatal is not None:
        return fatal
    extra = extended_resource_claim(pod, node, extended_resources, devices.profile)
    if extra is not None:
        wanted.append(extra)
    taking = devices.profile.devices_take_node_amounts
    if taking and (refusal := _shared(present, pod, node, devices)) is not None:
        return refusal
    reasons = ((full(claim, pod, devices.profile), unavailable(claim, node)) for claim in present)
    elsewhere = tuple(reason for both in reasons for reason in both if reason is not None)
    verdict = _allocated(wanted, node, devices, allocated, budget) if wanted else Fits()
    if taking and isinstance(verdict, Fits):
        made_up = extra.name if extra else ""
        verdict = _with_amounts(verdict, pod, node, (*present, *wanted), devices=devices, room=room, made_up=made_up)
    # The allocation is tried even if a claim is allocated elsewhere: an error takes precedence over "not available
    # here".
    if elsewhere and not isinstance(verdict, Fatal):
        return DoesNotFit(elsewhere)
    return verdict


def _missing_group(pod: Pod, devices: ClusterDevices, pod_groups: Mapping[str, Gang]) -> DoesNotFit | None:
    group = group_of(pod, devices.profile)
    if not group or f"{pod.namespace}/{group}" in pod_groups:
        return None
    return DoesNotFit(
        (Reason.of(Code.POD_GROUP_NOT_FOUND, Subject("PodGroup", f"{pod.namespace}/{group}"), pod=pod.key),)
    )


def _shared(present: Iterable[ResourceClaim], pod: Pod, node: Node, devices: ClusterDevices) -> Verdict | None:
    """The refusal for the first claim that cannot be shared, of those that can be used on the node."""
    for claim in present:
        why = unavailable(claim, node)
        if why is not None and why.code is Code.CLAIM_ALLOCATED_ELSEWHERE:
            continue
        if (refusal := not_shareable(claim, pod, devices)) is not None:
            return refusal
    return None


def _with_amounts(
    verdict: Fits,
    pod: Pod,
    node: Node,
    claims: Iterable[ResourceClaim],
    *,
    devices: ClusterDevices,
    room: Room,
    made_up: str,
) -> Verdict:
    """The verdict with the node's own amounts that the claims take. `made_up` is the name of the claim for extended
    resources."""
    new = verdict.allocations
    taken = [(claim, found) for claim in claims if (found := claim.allocation or new.get(claim.key))]
    try:
        shares = shares_of(pod, node, taken, devices)
    except FatalError as error:
        return Fatal((error.reason,))
    if doubts := tuple(dict.fromkeys(guessed(node, taken, devices))):
        return Unknown(doubts)
    if any(share.claim == made_up for share in shares):
        # The API server of 1.37.2 refuses the status with this claim, which no entry of the pod names.
        feature = "a device with nodeAllocatableResources for an extended resource"
        return Unknown((Reason.of(Code.UNSUPPORTED, Subject("pod", pod.key), feature=feature),))
    reasons = room(shares) if shares else ()
    return DoesNotFit(reasons) if reasons else verdict


def _allocated(
    claims: list[ResourceClaim], node: Node, devices: ClusterDevices, allocated: AllocatedState, budget: SearchBudget
) -> Verdict:
    outcome = allocate(claims, node=node, devices=devices, allocated=allocated, budget=budget)
    match outcome:
        case Allocated():
            keys = (claim.key for claim in claims)
            return Fits(FrozenMap(zip(keys, outcome.allocations, strict=True)), outcome.preference)
        case NotAllocated():
            return DoesNotFit(outcome.reasons)
        case FatalAllocation():
            return Fatal(outcome.reasons)
        case UnknownAllocation():
            return Unknown(outcome.reasons)
