"""The claims of a NIMService: `draResources`, and the channel of its ComputeDomain.

Ported rules: NVIDIA/k8s-nim-operator f63f74d, api/apps/v1alpha1/dra_types.go, internal/k8sutil/cel/cel.go (the forms of
expressions), internal/shared/resourceclaims.go and manifests/resourceclaimtemplate.yaml.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.resource_claim import parse_resource_claim_template
from autoscaler.kube.workloads.compute_domain import parse_compute_domain
from autoscaler.kube.workloads.stamping import Workload
from autoscaler.model.resource_claim import ResourceClaimTemplate

_OPERATORS: Final = {
    "Equal": "==",
    "NotEqual": "!=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_PODS: Final = "give the pods that its controller makes, with their claims (kubectl get pods,resourceclaims -o yaml)"


def claims_of(spec: Fields, workload: Workload) -> tuple[list[dict[str, Any]], list[ResourceClaimTemplate]]:
    """The entries of spec.resourceClaims of a pod, and the templates that the operator creates for them."""
    entries: list[dict[str, Any]] = []
    templates: list[ResourceClaimTemplate] = []
    for index, resource in enumerate(spec.children("draResources")):
        name = f"claim-{index}"
        if "claimCreationSpec" in resource:
            made = f"{workload.metadata.name}-{name}"
            templates.append(_template(resource.child("claimCreationSpec"), workload, made))
            entries.append({"name": name, "resourceClaimTemplateName": made})
        else:
            named = {field: resource.raw(field) for field in ("resourceClaimName", "resourceClaimTemplateName")}
            entries.append({"name": name, **{field: value for field, value in named.items() if value is not None}})
        resource.ignore("requests", "resourceClaimName", "resourceClaimTemplateName", "claimCreationSpec")
        resource.unread()
    domain = spec.child("multiNode").child("computeDomain")
    if domain:
        entry, channel = _channel(domain, workload)
        entries += entry
        templates += channel
    return entries, templates


def _template(creation: Fields, workload: Workload, name: str) -> ResourceClaimTemplate:
    requests = [_request(device) for device in creation.children("devices")]
    metadata = {"name": name, "namespace": workload.metadata.namespace}
    raw = {"metadata": metadata, "spec": {"spec": {"devices": {"requests": requests}}}}
    creation.ignore("generateName")
    creation.unread()
    return parse_resource_claim_template(raw, creation.problems, origin=workload.origin)


def _request(device: Fields) -> dict[str, Any]:
    texts = [*_attributes(device), *_capacities(device), *device.texts("celExpressions")]
    exactly: dict[str, Any] = {"deviceClassName": device.text("deviceClassName", "gpu.nvidia.com")}
    exactly["count"] = device.integer("count", 1)
    if texts:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in texts]
    found = {"name": device.required("name"), "exactly": exactly}
    device.ignore("driverName")
    device.unread()
    return found


def _key(selector: Fields, device: Fields) -> tuple[str, str]:
    """Domain and name of an attribute or capacity, by default of the driver."""
    domain, _, name = selector.text("key").rpartition("/")
    return json.dumps(domain or device.text("driverName", "gpu.nvidia.com")), name


def _compared(selector: Fields) -> str:
    return _OPERATORS.get(selector.choice("op", _OPERATORS, "Equal"), "==")


def _attributes(device: Fields) -> Iterator[str]:
    for selector in device.children("attributeSelectors"):
        domain, name = _key(selector, device)
        key, operator, value = f"device.attributes[{domain}].{name}", _compared(selector), selector.child("value")
        for field, text in (("boolValue", value.flag), ("intValue", value.integer), ("stringValue", value.text)):
            if field in value:
                yield f"{key} {operator} {json.dumps(text(field))}"
        if "versionValue" in value:
            yield f"({key}).compareTo(semver({json.dumps(value.text('versionValue'))})) {operator} 0"
        value.unread()
        selector.unread()


def _capacities(device: Fields) -> Iterator[str]:
    for selector in device.children("capacitySelectors"):
        domain, name = _key(selector, device)
        amount = json.dumps(str(selector.raw("value")))
        yield f"(device.capacity[{domain}].{name}).compareTo(quantity({amount})) {_compared(selector)} 0"
        selector.unread()


def _channel(domain: Fields, workload: Workload) -> tuple[list[dict[str, Any]], list[ResourceClaimTemplate]]:
    if not domain.flag("create"):
        message = "names a ComputeDomain whose channel template is not followed"
        domain.error("name", message, f"{_PODS}, or set `create: true`")
        return [], []
    metadata = workload.metadata
    name = f"{metadata.name}-cd-claimtemplate"
    channel = {"resourceClaimTemplate": {"name": name}}
    raw = {"metadata": {"name": metadata.name, "namespace": metadata.namespace}, "spec": {"channel": channel}}
    domain.ignore("name")
    domain.unread()
    template = parse_compute_domain(raw, domain.problems, origin=workload.origin)
    return [{"name": "channel", "resourceClaimTemplateName": name}], [template] if template is not None else []
