"""Prices for Cluster Autoscaler's expander `price`: of a node for a time, and of a pod's part of a node. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.supply.candidates import Candidate
from instance_catalog.types.node_allocatable import node_allocatable

_SECONDS = 3600


def hours_of(asked: Mapping[str, Any]) -> float:
    """Hours from `startTimestamp` to `endTimestamp`, never negative."""
    start, end = (_seconds(asked.get(name, {})) for name in ("startTimestamp", "endTimestamp"))
    return max(0.0, end - start) / _SECONDS


def _seconds(timestamp: Mapping[str, int]) -> float:
    return float(timestamp.get("seconds", 0) + timestamp.get("nanos", 0) / 1e9)


def share_of(key: str, candidate: Candidate, snapshot: Snapshot) -> float:
    """The part of a node that a pod takes: the largest of its parts of CPU, memory and accelerators, at most 1."""
    pod = next((found for found in snapshot.pods if found.key == key), None)
    if pod is None:
        return 1.0
    shares = [0.0]
    allocatable = node_allocatable(candidate.instance_type, reserved=candidate.pool.kubelet_reserved)
    for resource in ("cpu", "memory"):
        asked = sum(float(box.requests[resource].value) for box in pod.containers if resource in box.requests)
        if resource in allocatable and allocatable[resource].sign > 0:
            shares.append(asked / float(allocatable[resource].value))
    if claim_keys(pod) and candidate.instance_type.accelerator_count > 0:
        claims = [snapshot.claims[name] for name in claim_keys(pod) if name in snapshot.claims]
        devices = sum(getattr(request, "count", 1) for claim in claims for request in claim.requests)
        shares.append(devices / float(candidate.instance_type.accelerator_count))
    return min(1.0, max(shares))
