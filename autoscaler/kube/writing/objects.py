"""Converts model values to Kubernetes JSON (resource.k8s.io/v1, core/v1): claims with their status, and nodes.

The forms are those of upstream: fields with their zero value are left out, so that an object that is read and written
again equals the one in an API server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from autoscaler.kube.writing.allocation import write_allocation, write_consumer, write_toleration
from autoscaler.model.device_class import Selector
from autoscaler.model.node import Node
from autoscaler.model.resource_claim import (
    Allocation,
    ClaimConfig,
    Constraint,
    Consumer,
    DeviceRequest,
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
    Request,
    ResourceClaim,
)
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint

Json: TypeAlias = dict[str, Any]


def write_claim(claim: ResourceClaim) -> Json:
    """A ResourceClaim manifest, with its status if it has one."""
    devices = _filled(
        requests=[_write_request(request) for request in claim.requests],
        constraints=[_write_constraint(constraint) for constraint in claim.constraints],
        config=[_write_config(config) for config in claim.config],
    )
    status = claim_status(claim.allocation, claim.reserved_for)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": _filled(name=claim.name, namespace=claim.namespace, uid=claim.uid),
        "spec": {"devices": devices},
        **({"status": status} if status else {}),
    }


def claim_status(allocation: Allocation | None, reserved_for: tuple[Consumer, ...] = ()) -> Json:
    """The status of a claim with this allocation and these consumers, as a merge patch's `status` takes it."""
    return _filled(
        allocation=None if allocation is None else write_allocation(allocation),
        reservedFor=[write_consumer(consumer) for consumer in reserved_for],
    )


def write_node(node: Node) -> Json:
    """A Node manifest. Capacity equals allocatable: reserved resources are not modelled."""
    amounts = write_quantities(node.allocatable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _filled(name=node.name, uid=node.uid, labels=dict(node.labels), annotations=dict(node.annotations)),
        "spec": _filled(
            providerID=node.provider_id,
            unschedulable=node.unschedulable,
            taints=[write_taint(taint) for taint in node.taints],
        ),
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True" if node.ready else "False"}],
            **_filled(declaredFeatures=list(node.declared_features or ())),
        },
    }


def write_taint(taint: Taint) -> Json:
    return _filled(key=taint.key, value=taint.value, effect=taint.effect)


def write_quantities(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """Quantities in canonical text."""
    return {name: str(amount) for name, amount in amounts.items()}


def _filled(**fields: Any) -> Json:
    """The fields with values: Go's omitempty."""
    return {name: value for name, value in fields.items() if value}


def _write_request(request: Request) -> Json:
    if isinstance(request, FirstAvailable):
        alternatives = [{"name": sub.name, **_write_exact(sub)} for sub in request.subrequests]
        return {"name": request.name, "firstAvailable": alternatives}
    return {"name": request.name, "exactly": _write_exact(request)}


def _write_exact(request: DeviceRequest) -> Json:
    counted = request.allocation_mode == "ExactCount"
    found = _filled(
        deviceClassName=request.device_class,
        selectors=[_write_selector(selector) for selector in request.selectors],
        allocationMode=request.allocation_mode,
        count=request.count if counted else None,
        tolerations=[write_toleration(toleration) for toleration in request.tolerations],
    )
    if request.admin_access is not None:
        found["adminAccess"] = request.admin_access
    if request.capacity is not None:
        found["capacity"] = {"requests": write_quantities(request.capacity)}
    return found


def _write_selector(selector: Selector) -> Json:
    return {} if selector.expression is None else {"cel": {"expression": selector.expression}}


def _write_constraint(constraint: Constraint) -> Json:
    requests = list(constraint.requests)
    match constraint:
        case MatchAttribute():
            return _filled(matchAttribute=constraint.attribute, requests=requests)
        case DistinctAttribute():
            return _filled(distinctAttribute=constraint.attribute, requests=requests)
        case _:
            return _filled(requests=requests)


def _write_config(config: ClaimConfig) -> Json:
    opaque = {"driver": config.driver, "parameters": json.loads(config.parameters)}
    return _filled(requests=list(config.requests), opaque=opaque)
