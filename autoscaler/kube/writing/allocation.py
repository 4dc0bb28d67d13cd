"""Converts allocations and their consumers to JSON (resource.k8s.io/v1), as kube-scheduler writes a claim's status."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.taint import Toleration


def write_allocation(allocation: Allocation) -> dict[str, Any]:
    """The value of status.allocation."""
    written: dict[str, Any] = {"devices": {"results": [_result(device) for device in allocation.devices]}}
    if allocation.node_selector is not None:
        written["nodeSelector"] = write_node_selector(allocation.node_selector)
    if allocation.allocated_at is not None:
        moment = datetime.fromtimestamp(allocation.allocated_at, UTC)
        written["allocationTimestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return written


def write_consumer(consumer: Consumer) -> dict[str, str]:
    """An entry of status.reservedFor."""
    written = {"resource": consumer.resource, "name": consumer.name, "uid": consumer.uid}
    return {"apiGroup": consumer.api_group, **written} if consumer.api_group else written


def _result(device: AllocatedDevice) -> dict[str, Any]:
    written: dict[str, Any] = {
        "request": device.request,
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
    }
    optional = {
        "adminAccess": device.admin_access,
        "shareID": device.share_id,
        "consumedCapacity": {name: str(amount) for name, amount in (device.consumed_capacity or {}).items()},
        "tolerations": [write_toleration(toleration) for toleration in device.tolerations],
        "bindingConditions": list(device.binding_conditions),
        "bindingFailureConditions": list(device.binding_failure_conditions),
    }
    return written | {name: value for name, value in optional.items() if value}


def write_toleration(toleration: Toleration) -> dict[str, Any]:
    """A toleration; the operator is written even if it is the default, as in the API server."""
    written = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.toleration_seconds,
    }
    return {name: value for name, value in written.items() if value not in ("", None)}


def write_node_selector(selector: NodeSelector) -> dict[str, Any]:
    """A core/v1 NodeSelector."""
    return {"nodeSelectorTerms": [_term(term) for term in selector.terms]}


def _term(term: NodeSelectorTerm) -> dict[str, Any]:
    parts = {"matchExpressions": term.match_expressions, "matchFields": term.match_fields}
    return {name: [_requirement(entry) for entry in entries] for name, entries in parts.items() if entries}


def _requirement(requirement: Requirement) -> dict[str, Any]:
    written: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    return written | ({"values": list(requirement.values)} if requirement.values else {})
