"""ResourceClaims and their templates (resource.k8s.io v1, v1beta2, v1beta1) to the one model.

Defaults are those of the API server (k8s.io/kubernetes pkg/apis/resource/v1/defaults.go, v1.36.3): ExactCount, count 1,
toleration operator Equal; a count of 0 becomes 1. In v1beta1 a request carries the fields of `exactly` itself.
"""

from __future__ import annotations

import json

import yaml

from autoscaler.kube.equal_parts import read_once
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import Owner, header, parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.kube.selectors import parse_device_toleration, parse_node_selector
from autoscaler.model.device_class import Selector
from autoscaler.model.gang import API_GROUP
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.resource_claim import (
    AllocatedDevice,
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
    ResourceClaimTemplate,
    UnknownConstraint,
)
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.spelling import did_you_mean

_EXACT_FIELDS = ("deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity")
FLAT_VERSION = "resource.k8s.io/v1beta1"  # requests and devices without the nesting that v1beta2 introduced


def parse_resource_claim(raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER) -> ResourceClaim:
    """A ResourceClaim, even one with defects; without `problems` nothing is reported."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind")
    status = fields.child("status")
    spec = fields.child("spec")
    requests, constraints, config, unsupported = _parse_spec(spec, flat=header(raw)[0] == FLAT_VERSION)
    return ResourceClaim(
        namespace=metadata.namespace,
        name=metadata.name,
        requests=requests,
        constraints=constraints,
        config=config,
        uid=metadata.uid,
        controller=metadata.controller.uid if metadata.controller else "",
        pod_group=_pod_group(metadata.controller),
        allocation=_parse_allocation(status.optional_child("allocation")),
        reserved_for=tuple(_parse_consumer(entry) for entry in status.children("reservedFor")),
        deleting=metadata.deleting,
        device_conditions=_parse_device_conditions(status),
        unsupported=(*unsupported, *status.unread(), *fields.unread()),
        created=metadata.created,
        origin=origin,
    )


def parse_resource_claim_template(
    raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> ResourceClaimTemplate:
    """A ResourceClaimTemplate; `spec` is the claim of the template, with its name."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind")
    template = fields.child("spec")
    template.ignore("metadata")
    requests, constraints, config, unsupported = _parse_spec(
        template.child("spec"), flat=header(raw)[0] == FLAT_VERSION
    )
    if "devices" in template:
        step = "nest it once more: spec:\n    spec:\n      devices: …"
        template.error("devices", "a ResourceClaimTemplate holds the claim's spec in spec.spec", step)
        template.ignore("devices")
    claim = ResourceClaim(
        namespace=metadata.namespace,
        name=metadata.name,
        requests=requests,
        constraints=constraints,
        config=config,
        unsupported=(*unsupported, *template.unread(), *fields.unread()),
        origin=origin,
    )
    return ResourceClaimTemplate(metadata.namespace, metadata.name, claim, origin)


_Spec = tuple[tuple[Request, ...], tuple[Constraint, ...], tuple[ClaimConfig, ...], tuple[str, ...]]


@read_once
def _parse_spec(spec: Fields, *, flat: bool) -> _Spec:
    devices = spec.child("devices")
    requests = tuple(_parse_request(entry, flat=flat) for entry in devices.children("requests"))
    constraints = tuple(_parse_constraint(entry) for entry in devices.children("constraints"))
    config = tuple(_parse_config(entry) for entry in devices.children("config"))
    _check_names(devices, requests, constraints)
    return requests, constraints, config, (*devices.unread(), *spec.unread())


def _parse_request(fields: Fields, *, flat: bool) -> Request:
    name = fields.required("name")
    if "firstAvailable" in fields:
        subrequests = tuple(_parse_alternative(entry) for entry in fields.children("firstAvailable"))
        if "exactly" in fields or any(field in fields for field in _EXACT_FIELDS):
            message = "a request has either firstAvailable or one exact request, not both"
            fields.error("firstAvailable", message, "make it one more alternative, or a request of its own")
            fields.ignore("exactly", *_EXACT_FIELDS)
        # An unknown field beside the list could change what every alternative means.
        unknown = fields.unread()
        return FirstAvailable(name, tuple(_with_unsupported(request, unknown) for request in subrequests))
    if flat:
        return _parse_exact(fields, name)
    exactly = fields.optional_child("exactly")
    if exactly is not None:
        request = _parse_exact(exactly, name)
        return _with_unsupported(request, fields.unread())
    misplaced = [field for field in _EXACT_FIELDS if field in fields]
    if misplaced:
        fields.error(
            misplaced[0],
            f"{', '.join(misplaced)} directly in a request is the resource.k8s.io/v1beta1 form",
            "in v1 and v1beta2 write\n" + _corrected(fields, name, misplaced),
        )
        return _parse_exact(fields, name)
    fields.error(
        "exactly", f"request {name!r} asks for nothing", "add `exactly:` with a deviceClassName, or `firstAvailable:`"
    )
    return DeviceRequest(name, "", unsupported=("neither exactly nor firstAvailable", *fields.unread()))


def _with_unsupported(request: DeviceRequest, more: tuple[str, ...]) -> DeviceRequest:
    return replace(request, unsupported=(*request.unsupported, *more)) if more else request


def _corrected(fields: Fields, name: str, misplaced: list[str]) -> str:
    request = {"name": name, "exactly": {field: _shallow(fields.raw(field)) for field in misplaced}}
    return yaml.safe_dump({"requests": [request]}, sort_keys=False, allow_unicode=True).rstrip()


def _shallow(value: object, levels: int = 8) -> object:
    """The value without parts that are nested deeper than in any request, on which a dumper could fail."""
    if isinstance(value, dict):
        return {key: _shallow(inner, levels - 1) for key, inner in value.items()} if levels else "…"
    if isinstance(value, list):
        return [_shallow(inner, levels - 1) for inner in value] if levels else "…"
    return value


def _parse_alternative(fields: Fields) -> DeviceRequest:
    """A DeviceSubRequest: the fields of an exact request, without admin access."""
    request = _parse_exact(fields, fields.required("name"))
    if request.admin_access is None:
        return request
    fields.error("adminAccess", "an alternative has no admin access", "ask for it in a request with `exactly`")
    return replace(request, admin_access=None, unsupported=(*request.unsupported, "adminAccess in an alternative"))


def _parse_exact(fields: Fields, name: str) -> DeviceRequest:
    """The fields of a v1 ExactDeviceRequest or DeviceSubRequest, or of a v1beta1 request."""
    fields.ignore("name")
    capacity = fields.optional_child("capacity")
    tolerations = tuple(parse_device_toleration(entry) for entry in fields.children("tolerations"))
    count = fields.integer("count", 1)
    if count < 0:
        fields.error("count", f"count is {count}", "ask for at least one device")
    elif count and "count" in fields and fields.text("allocationMode") == "All":
        fields.error("count", "is not allowed with allocationMode: All", "remove the count, or the mode")
    request = DeviceRequest(
        name=name,
        device_class=fields.required("deviceClassName"),
        selectors=parse_selectors(fields),
        allocation_mode=fields.text("allocationMode") or "ExactCount",
        count=count or 1,
        admin_access=fields.optional_flag("adminAccess"),
        tolerations=tolerations,
        capacity=None if capacity is None else capacity.quantities("requests"),
    )
    unknown = () if capacity is None else capacity.unread()
    return _with_unsupported(request, (*unknown, *fields.unread()))


def parse_selectors(fields: Fields) -> tuple[Selector, ...]:
    """The `selectors` of a request or class. A selector that is not CEL has expression None."""
    found = []
    for entry in fields.children("selectors"):
        cel = entry.optional_child("cel")
        expression = None if cel is None else cel.optional_text("expression")
        if expression is None:
            entry.error("cel", "a selector needs cel.expression", "write `- cel:` with an `expression:` below it")
        if cel is not None:
            cel.unread()
        # A selector type that a newer Kubernetes may add must not be read as its CEL part alone.
        found.append(Selector(None if entry.unread() else expression))
    return tuple(found)


def _parse_constraint(fields: Fields) -> Constraint:
    requests = fields.texts("requests")
    match, distinct = fields.optional_text("matchAttribute"), fields.optional_text("distinctAttribute")
    unknown = fields.unread()
    if (match is None) == (distinct is None) or unknown:
        if not unknown:
            step = "write `matchAttribute: <domain>/<name>`, or split it into two constraints"
            fields.problems.error(
                fields.path, "a constraint needs matchAttribute or distinctAttribute, one of them", step
            )
        found = (*(("matchAttribute",) if match else ()), *(("distinctAttribute",) if distinct else ()), *unknown)
        return UnknownConstraint(", ".join(found), requests)
    return MatchAttribute(match, requests) if match is not None else DistinctAttribute(distinct or "", requests)


def _parse_config(fields: Fields) -> ClaimConfig:
    opaque = fields.child("opaque")
    try:
        parameters = json.dumps(opaque.raw("parameters"), sort_keys=True)
    except RecursionError:
        parameters = "null"
        opaque.error("parameters", "nested too deeply", "no driver reads that much")
    config = ClaimConfig(fields.texts("requests"), opaque.text("driver"), parameters)
    # In status, the source is the class or the claim that had the configuration; nothing here depends on it.
    fields.ignore("source")
    opaque.unread()
    fields.unread()
    return config


def _check_names(devices: Fields, requests: tuple[Request, ...], constraints: tuple[Constraint, ...]) -> None:
    """Report duplicate request names, and constraints on requests that do not exist (API validation, v1.36.3)."""
    known: set[str] = set()
    for index, request in enumerate(requests):
        path = (*devices.path, "requests", index, "name")
        if request.name in known:
            devices.problems.error(path, f"duplicate request name {request.name!r}", "give each request its own name")
        known.add(request.name)
        if isinstance(request, FirstAvailable):
            known.update(f"{request.name}/{subrequest.name}" for subrequest in request.subrequests)
    for index, constraint in enumerate(constraints):
        for position, name in enumerate(constraint.requests):
            if name in known:
                continue
            step = did_you_mean(name, known, f"this claim has {', '.join(sorted(known)) or 'no requests'}")
            path = (*devices.path, "constraints", index, "requests", position)
            devices.problems.error(path, f"there is no request {name!r}", step)


def _parse_allocation(fields: Fields | None) -> Allocation | None:
    if fields is None:
        return None
    devices = fields.child("devices")
    devices.ignore("config")
    results = tuple(_parse_result(entry) for entry in devices.children("results"))
    selector = parse_node_selector(fields.optional_child("nodeSelector"))
    allocation = Allocation(results, selector, fields.epoch("allocationTimestamp"))
    devices.unread()
    fields.ignore("controller")
    fields.unread()
    return allocation


def _parse_result(fields: Fields) -> AllocatedDevice:
    consumed = fields.quantities("consumedCapacity") or None  # an API server does not store an empty map
    device = AllocatedDevice(
        request=fields.text("request"),
        driver=fields.text("driver"),
        pool=fields.text("pool"),
        device=fields.text("device"),
        admin_access=fields.flag("adminAccess"),
        share_id=fields.optional_text("shareID"),
        consumed_capacity=consumed,
        tolerations=tuple(parse_device_toleration(entry) for entry in fields.children("tolerations")),
        binding_conditions=fields.texts("bindingConditions"),
        binding_failure_conditions=fields.texts("bindingFailureConditions"),
    )
    fields.ignore("consumedCapacity")
    fields.unread()
    return device


def _pod_group(owner: Owner | None) -> str:
    """The name of the owner if it is a PodGroup of Kubernetes, in any version."""
    ours = owner is not None and owner.kind == "PodGroup" and owner.api_version.startswith(f"{API_GROUP}/")
    return owner.name if owner is not None and ours else ""


def _parse_consumer(fields: Fields) -> Consumer:
    consumer = Consumer(fields.text("resource"), fields.text("name"), fields.text("uid"), fields.text("apiGroup"))
    fields.unread()
    return consumer


def _parse_device_conditions(status: Fields) -> FrozenMap[str, tuple[str, ...]]:
    found = {}
    for device in status.children("devices"):
        key = "/".join((device.text("driver"), device.text("pool"), device.text("device")))
        conditions = device.children("conditions")
        found[key] = tuple(entry.text("type") for entry in conditions if entry.raw("status") == "True")
    return FrozenMap(found)
