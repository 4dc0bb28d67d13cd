"""Which kind a document is of, and what to say when it is none that can be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems
from autoscaler.manifests.document import Document
from autoscaler.manifests.kinds import KINDS, Kind, kind_of, reason_to_ignore
from instance_catalog.spelling import did_you_mean

_CLAIM_V1 = "resource.k8s.io/v1"
_GROUPS = {kind.group for kind in KINDS} | {"extensions"}  # where Deployments and DaemonSets once were


def classify(document: Document, problems: Problems) -> Kind | None:
    """The kind of a document; None, with a problem, where it is ignored or cannot be used."""
    value = document.value
    if not isinstance(value, dict):
        problems.error((), "is not a Kubernetes object", "an object has apiVersion, kind and metadata")
        return None
    version, name = header(value)
    if not version or not name:
        missing = " and ".join(part for part, found in (("apiVersion", version), ("kind", name)) if not found)
        step = "Helm values and Kustomize patches are not objects: give rendered manifests"
        problems.error((), f"is not a Kubernetes object: {missing} is missing", step)
        return None
    group, _, short = version.rpartition("/")
    kind = kind_of(group, name)
    if kind is not None and short in kind.versions:
        return kind
    if group == "resource.k8s.io" and (name, short) != ("DeviceTaintRule", "v1alpha3"):
        removed = _removed(value, name, short)
        if removed is not None:
            problems.error(*removed)
            return None
    if kind is not None:
        step = f"write apiVersion: {'/'.join(part for part in (group, kind.versions[0]) if part)}"
        problems.error(("apiVersion",), f"{name} of {version} is not known", step)
        return None
    reason = reason_to_ignore(group, name)
    if reason is not None:
        problems.warn((), f"ignored: {reason}")
        return None
    problems.error(*_unknown(version, name))
    return None


def _unknown(version: str, name: str) -> tuple[tuple[str, ...], str, str]:
    """Names are compared within the groups that are read here: the Job of another group is another thing."""
    group = version.rpartition("/")[0]
    if group in _GROUPS:
        for kind in KINDS:
            if kind.name == name:
                right = "/".join(part for part in (kind.group, kind.versions[0]) if part)
                return ("apiVersion",), f"{name} is not a kind of {version}", f"write apiVersion: {right}"
        near = did_you_mean(name, {kind.name for kind in KINDS if kind.group == group})
        if near:
            return ("kind",), f"unknown kind {name!r}", near
    step = "if it makes pods, give the pods instead (kubectl get pods -o yaml); otherwise leave it out"
    return ("kind",), f"unknown kind {name!r} of {version}: its pods cannot be known", step


def _removed(value: dict[str, Any], name: str, version: str) -> tuple[tuple[str, ...], str, str] | None:
    """What to say about kinds and versions that resource.k8s.io no longer has, with the YAML that replaces them."""
    replacements: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "ResourceClass": _class_for,
        "ResourceClaim": _claim_for,
        "ResourceClaimTemplate": _template_for,
    }
    if name == "PodSchedulingContext":
        return (
            (),
            "PodSchedulingContext is no longer served",
            "leave it out: the scheduler allocates itself",
        )
    if name == "ResourceClass" or (version == "v1alpha2" and name in replacements):
        written = yaml.safe_dump(replacements[name](value), sort_keys=False, allow_unicode=True).rstrip()
        message = f"{name} of resource.k8s.io/{version} was removed with Kubernetes 1.31"
        return (), message, f"write it for {_CLAIM_V1}:\n{written}"
    if version == "v1alpha3":
        step = "write apiVersion: resource.k8s.io/v1beta1, which has the same form, or v1"
        return ("apiVersion",), f"{name} of resource.k8s.io/v1alpha3 is no longer served", step
    return None


def _metadata(value: dict[str, Any]) -> dict[str, str]:
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    found = {part: metadata.get(part) for part in ("name", "namespace")}
    return {part: text for part, text in found.items() if isinstance(text, str)}


def _class_for(value: dict[str, Any]) -> dict[str, Any]:
    driver = value.get("driverName")
    driver = driver if isinstance(driver, str) else "<driver name>"
    return {
        "apiVersion": _CLAIM_V1,
        "kind": "DeviceClass",
        "metadata": _metadata(value),
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


def _claim_for(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": _CLAIM_V1,
        "kind": "ResourceClaim",
        "metadata": _metadata(value),
        "spec": _claim_spec(value.get("spec")),
    }


def _template_for(value: dict[str, Any]) -> dict[str, Any]:
    spec = value.get("spec")
    return {
        "apiVersion": _CLAIM_V1,
        "kind": "ResourceClaimTemplate",
        "metadata": _metadata(value),
        "spec": {"spec": _claim_spec(spec.get("spec") if isinstance(spec, dict) else None)},
    }


def _claim_spec(spec: object) -> dict[str, Any]:
    name = spec.get("resourceClassName") if isinstance(spec, dict) else None
    name = name if isinstance(name, str) else "<device class>"
    return {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": name}}]}}
