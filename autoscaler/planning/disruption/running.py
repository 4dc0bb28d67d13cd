"""What is known of running nodes and their pods: prices, chosen alternatives, and how long they are expected to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.resource_claim import FirstAvailable, ResourceClaim
from autoscaler.planning.demand.demand import claim_keys
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType

# Capacity that may start late, or that its provider takes away at a known time: no move uses it.
NOT_FOR_MOVES: Final = frozenset({CapacityType.FLEX_START, CapacityType.CAPACITY_BLOCK})


def price_now(node: ProvisionedNode, catalog: Catalog) -> Decimal | None:
    """The hourly price of the node: the lower one of its purchase and today's catalog; None if unknown."""
    offering = node.offering
    if offering.usd_per_hour is None:
        return None
    kinds = {kind.value: kind for kind in CapacityType}
    listed = None
    if offering.instance_type in catalog.types and offering.capacity_type in kinds:
        known = catalog.get(offering.instance_type).price_in(offering.zone, kinds[offering.capacity_type])
        listed = known.usd_per_hour if known else None
    return offering.usd_per_hour if listed is None else min(offering.usd_per_hour, listed)


def ends_soon(node: ProvisionedNode) -> bool:
    """True if its machine ends at a known or limited time: pods on it have to move again."""
    offering = node.offering
    return bool(offering.block) or offering.capacity_type in NOT_FOR_MOVES or node.reclaim_at is not None


def remaining(pods: Iterable[Pod], now: datetime) -> timedelta | None:
    """The time until the last of the pods is expected to end; None if one has no expected duration, or all should have
    ended.

    A pod's age includes the time that it waited, so this is never too long.
    """
    ends = [None if pod.expected_seconds is None else pod.created + pod.expected_seconds for pod in pods]
    if not ends or None in ends:
        return None
    left = max(end for end in ends if end is not None) - now.timestamp()
    return timedelta(seconds=left) if left > 0 else None


def expected_rest(node: ProvisionedNode, pods: Iterable[Pod], least: timedelta, now: datetime) -> timedelta:
    """The time until the last of the node's pods is expected to end.

    A pod ends when it says. One that does not, or that outlives what it said, is expected to run as long as it has run
    so far, but at least `least`: of tasks whose durations have a heavy tail, those that have run for days run for days
    more. Its age on the node counts, since it may have waited before.
    """
    ready = node.phase_since.timestamp() if node.phase_since is not None else now.timestamp()
    return max((_rest(pod, ready, least, now.timestamp()) for pod in pods), default=least)


def _rest(pod: Pod, ready: float, least: timedelta, now: float) -> timedelta:
    if pod.expected_seconds is not None and (left := pod.created + pod.expected_seconds - now) > 0:
        return timedelta(seconds=left)
    return max(least, timedelta(seconds=now - max(pod.created, ready)))


def preference_now(pod: Pod, claims: Mapping[str, ResourceClaim]) -> int:
    """The sum of the firstAvailable indexes that the pod's claims have now."""
    return sum(_chosen(claims[key]) for key in claim_keys(pod) if key in claims)


def _chosen(claim: ResourceClaim) -> int:
    taken = {device.request for device in claim.allocation.devices} if claim.allocation else set()
    alternatives = (
        (index, f"{request.name}/{sub.name}")
        for request in claim.requests
        if isinstance(request, FirstAvailable)
        for index, sub in enumerate(request.subrequests)
    )
    return sum(index for index, name in alternatives if name in taken)
