"""Converts DeviceClasses and DeviceTaintRules (resource.k8s.io); in the fields read here all versions agree."""

from __future__ import annotations

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_selectors
from autoscaler.kube.selectors import DEVICE_TAINT_EFFECTS, parse_taint
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule
from autoscaler.model.origin import CLUSTER, Origin


def parse_device_class(raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER) -> DeviceClass:
    """A DeviceClass. Its opaque `config` has no effect on placement."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind")
    spec = fields.child("spec")
    spec.ignore("config")
    selectors, extended = parse_selectors(spec), spec.optional_text("extendedResourceName")
    return DeviceClass(
        name=metadata.name,
        selectors=selectors,
        extended_resource_name=extended or None,
        created=metadata.created,
        unsupported=(*spec.unread(), *fields.unread()),
        origin=origin,
    )


def parse_device_taint_rule(
    raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> DeviceTaintRule:
    """A DeviceTaintRule (v1alpha3, v1beta2, v1). Selecting by class or CEL, which only 1.34 had, is unsupported."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind", "status")
    spec = fields.child("spec")
    has_selector = "deviceSelector" in spec
    selector = spec.child("deviceSelector")
    if "taint" not in spec:
        spec.error("taint", "is required", "add the taint with key, value and effect")
    taint = parse_taint(spec.child("taint"), effects=DEVICE_TAINT_EFFECTS)
    return DeviceTaintRule(
        name=metadata.name,
        taint=taint,
        driver=selector.optional_text("driver"),
        pool=selector.optional_text("pool"),
        device=selector.optional_text("device"),
        has_selector=has_selector,
        unsupported=(*selector.unread(), *spec.unread(), *fields.unread()),
        origin=origin,
    )
