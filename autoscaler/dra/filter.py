"""What kube-scheduler's plugin DynamicResources says about a pod on a node (Filter, v1.36), as a Verdict."""

from __future__ import annotations

from collections.abc import Mapping

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
from autoscaler.dra.claims.pod_claims import check_selectors, claims_of, extended_resource_claim, full, unavailable
from autoscaler.dra.claims.pod_groups import group_of
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.gang import Gang
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from instance_catalog.frozen_map import FrozenMap


def filter_claims(
    pod: Pod,
    node: Node,
    *,
    claims: Mapping[str, ResourceClaim],
    extended_resources: Mapping[str, DeviceClass],
    devices: ClusterDevices,
    allocated: AllocatedState,
    pod_groups: Mapping[str, Gang],
    now: float | None = None,
    budget: SearchBudget = DEFAULT_BUDGET,
) -> Verdict:
    """Whether the pod's claims can be satisfied on the node; Fits carries the new allocations by claim key.

    `claims` is keyed by namespace/name; `extended_resources` is `extended_resource_classes` of the snapshot, empty if
    none are served; `pod_groups` are the gangs of the snapshot by namespace/name; `now` in seconds since the epoch
    decides binding timeouts and may be left out.
    """
    mine = claims_of(pod, claims, devices.profile, devices.classes)
    if not isinstance(mine, tuple):
        return mine
    group = group_of(pod, devices.profile)
    if group and f"{pod.namespace}/{group}" not in pod_groups:
        return DoesNotFit((Reason.of(Code.POD_GROUP_NOT_FOUND, f"PodGroup {pod.namespace}/{group}", pod=pod.key),))
    present = [claim for claim in mine if claim.allocation is not None]
    wanted = [claim for claim in mine if claim.allocation is None]
    fatal = check_selectors(present)
    if fatal is not None:
        return fatal
    extra = extended_resource_claim(pod, node, extended_resources, devices.profile)
    if extra is not None:
        wanted.append(extra)
    reasons = (
        reason for claim in present for reason in (full(claim, pod, devices.profile), unavailable(claim, node, now=now))
    )
    elsewhere = tuple(reason for reason in reasons if reason is not None)
    verdict = _allocated(wanted, node, devices, allocated, budget) if wanted else Fits()
    # The allocation is tried even if a claim is elsewhere: an error has to win over "not available here".
    if elsewhere and not isinstance(verdict, Fatal):
        return DoesNotFit(elsewhere)
    return verdict


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
