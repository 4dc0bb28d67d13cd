"""Kinds and versions that Kubernetes no longer has, and the YAML that replaces those of resource.k8s.io.

v1alpha2 asked for a class and left the rest to parameters: objects of the driver's own kinds (GpuClaimParameters and
MigDeviceClaimParameters of NVIDIA), or inline ones. What they say is written as requests, selectors and config of v1;
what v1 has no words for is listed. Source: k8s-dra-driver v0.1.0, api/nvidia.com/resource/gpu/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import yaml

from autoscaler.kube.metadata import header
from autoscaler.manifests.document import Document
from instance_catalog.dataclass import dataclass, field
from instance_catalog.diagnostic import Diagnostic, Severity
from instance_catalog.drivers.facts import driver_facts

_CLAIM_V1: Final = "resource.k8s.io/v1"
_BETAS: Final = ("resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2")
_WITH_V1: Final = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice")
_NVIDIA: Final = "gpu.nvidia.com"
_OPERATORS: Final = {
    "Equals": "==",
    "LessThan": "<",
    "LessThanOrEqualTo": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqualTo": ">=",
}
# Fields of NVIDIA's selectors whose value is compared as text, with * for anything.
_TEXTS: Final = ("uuid", "productName", "brand", "architecture")
_VERSIONS: Final = {
    "cudaComputeCapability": "attributes",
    "driverVersion": "attributes",
    "cudaDriverVersion": "attributes",
}

# kubernetes.io/docs/reference/using-api/deprecation-guide (2026-11): the release that serves a version no longer, what
# to write instead ("" for nothing), the version, and its kinds.
_GONE: Final = (
    ("1.32", "v1", "flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema PriorityLevelConfiguration"),
    ("1.29", "v1", "flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema PriorityLevelConfiguration"),
    ("1.27", "v1", "storage.k8s.io/v1beta1", "CSIStorageCapacity"),
    ("1.26", "v1", "flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema PriorityLevelConfiguration"),
    ("1.26", "v2", "autoscaling/v2beta2", "HorizontalPodAutoscaler"),
    ("1.25", "v2", "autoscaling/v2beta1", "HorizontalPodAutoscaler"),
    ("1.25", "v1", "batch/v1beta1", "CronJob"),
    ("1.25", "v1", "discovery.k8s.io/v1beta1", "EndpointSlice"),
    ("1.25", "v1", "events.k8s.io/v1beta1", "Event"),
    ("1.25", "v1", "node.k8s.io/v1beta1", "RuntimeClass"),
    ("1.25", "v1", "policy/v1beta1", "PodDisruptionBudget"),
    ("1.25", "", "policy/v1beta1", "PodSecurityPolicy"),
    (
        "1.22",
        "v1",
        "admissionregistration.k8s.io/v1beta1",
        "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    ),
    ("1.22", "v1", "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
    ("1.22", "v1", "apiregistration.k8s.io/v1beta1", "APIService"),
    ("1.22", "v1", "certificates.k8s.io/v1beta1", "CertificateSigningRequest"),
    ("1.22", "v1", "coordination.k8s.io/v1beta1", "Lease"),
    ("1.22", "networking.k8s.io/v1", "extensions/v1beta1", "Ingress"),
    ("1.22", "v1", "networking.k8s.io/v1beta1", "Ingress IngressClass"),
    ("1.22", "v1", "rbac.authorization.k8s.io/v1beta1", "ClusterRole ClusterRoleBinding Role RoleBinding"),
    ("1.22", "v1", "scheduling.k8s.io/v1beta1", "PriorityClass"),
    ("1.22", "v1", "storage.k8s.io/v1beta1", "CSIDriver CSINode StorageClass VolumeAttachment"),
    ("1.16", "networking.k8s.io/v1", "extensions/v1beta1", "NetworkPolicy"),
    ("1.16", "", "extensions/v1beta1", "PodSecurityPolicy"),
    ("1.16", "apps/v1", "extensions/v1beta1", "DaemonSet Deployment ReplicaSet"),
    ("1.16", "v1", "apps/v1beta1", "Deployment StatefulSet"),
    ("1.16", "v1", "apps/v1beta2", "DaemonSet Deployment ReplicaSet StatefulSet"),
)

# A GPU in MIG mode is no device of the driver of v1 by itself, and a MIG device needs no claim of it beside its own.
_LEAVE_OUT: Final = (
    "leave it out, and its entries in pods (spec.resourceClaims, and resources.claims of their containers): it asks "
    "for a GPU in MIG mode, and a claim of a MIG device of v1 needs none for the GPU"
)

Object: TypeAlias = dict[str, Any]
Parameters: TypeAlias = Mapping[tuple[str, str], Object]


@dataclass(frozen=True, slots=True)
class Gone:
    """A version that no API server serves any more: since which release, and the version to write, "" for none."""

    release: str
    instead: str

    @property
    def step(self) -> str:
        """What to do about an object of it."""
        if not self.instead:
            return "remove it: API servers refuse it, and no version replaces it"
        return f"write apiVersion: {self.instead}, whose fields may have other names"


def no_longer_served(version: str, kind: str) -> Gone | None:
    """What became of a version of a kind; None for those that are served."""
    for release, instead, old, kinds in _GONE:
        if version == old and kind in kinds.split():
            same = instead and "/" not in instead
            return Gone(release, f"{old.partition('/')[0]}/{instead}" if same else instead)
    return None


def parameters_of(values: Iterator[object]) -> dict[tuple[str, str], Object]:
    """The objects that claims of v1alpha2 may refer to, by kind and name."""
    found: dict[tuple[str, str], Object] = {}
    for value in values:
        if isinstance(value, dict) and is_parameters(value):
            metadata = value.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            found[str(value["kind"]), str(name)] = value
    return found


def is_parameters(value: Object) -> bool:
    """True if an object holds parameters of claims or classes."""
    group = str(value.get("apiVersion", "")).partition("/")[0]
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("Parameters") and "resource." in group


def removed(value: Object, name: str, version: str, parameters: Parameters) -> tuple[tuple[str, ...], str, str] | None:
    """The message about a removed kind or version: field, message, next step. None for all others."""
    replacements: dict[str, Callable[[Object, _Kept], Object]] = {
        "ResourceClass": _class_for,
        "ResourceClaim": _claim_for,
        "ResourceClaimTemplate": _template_for,
    }
    if name == "PodSchedulingContext":
        return (), "PodSchedulingContext is no longer served", "leave it out: the scheduler allocates itself"
    if name == "ResourceClass" or (version == "v1alpha2" and name in replacements):
        kept = _Kept(parameters)
        if name != "ResourceClass" and _is_parent_of_parts(value, kept):
            return (), f"{name} of resource.k8s.io/{version} was removed with Kubernetes 1.31", _LEAVE_OUT
        written = yaml.safe_dump(replacements[name](value, kept), sort_keys=False, allow_unicode=True, width=1000)
        lost = "".join(f"\n# cannot be kept: {what}" for what in kept.lost)
        old = _class_named(value) if name != "ResourceClass" else ""
        if old and old not in _known_classes():
            lost += (
                f"\n# give DeviceClass {old}, too: ResourceClass {old} becomes one (driverName: its device.driver);"
                "\n# and the ResourceSlices of a node that runs the driver: no prediction knows what it publishes"
            )
        message = f"{name} of resource.k8s.io/{version} was removed with Kubernetes 1.31"
        return (), message, f"write it for {_CLAIM_V1}:\n{written.rstrip()}{lost}"
    if version == "v1alpha3":
        step = "write apiVersion: resource.k8s.io/v1beta1, which has the same form, or v1"
        return ("apiVersion",), f"{name} of resource.k8s.io/v1alpha3 is no longer served", step
    return None


def _class_named(value: Object) -> str:
    """The ResourceClass that a claim or template names; "" if it names none."""
    spec = value.get("spec")
    inner = spec.get("spec", spec) if isinstance(spec, dict) else None
    name = inner.get("resourceClassName") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else ""


def _known_classes() -> frozenset[str]:
    return frozenset(row.name for facts in driver_facts().values() for row in facts.device_classes)


@dataclass(slots=True)
class _Kept:
    """Objects to look parameters up in, and what of them v1 has no words for."""

    parameters: Parameters
    lost: list[str] = field(default_factory=list)


def _metadata(value: Object) -> dict[str, str]:
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    found = {part: metadata.get(part) for part in ("name", "namespace")}
    return {part: text for part, text in found.items() if isinstance(text, str)}


def _class_for(value: Object, kept: _Kept) -> Object:
    spec = value.get("spec")
    driver = value.get("driverName") or (spec.get("driverName") if isinstance(spec, dict) else None)
    # The class of NVIDIA's first driver was named like its driver of today, whose own name differed.
    driver = driver.replace("gpu.resource.nvidia.com", _NVIDIA) if isinstance(driver, str) else "<driver name>"
    if isinstance(value.get("suitableNodes"), dict):
        kept.lost.append("suitableNodes: give the pods a nodeSelector or node affinity instead")
    if isinstance(value.get("parametersRef"), dict):
        kept.lost.append(f"parametersRef {_named(value['parametersRef'])}: write selectors or config of the class")
    return {
        "apiVersion": _CLAIM_V1,
        "kind": "DeviceClass",
        "metadata": _metadata(value),
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


def _claim_for(value: Object, kept: _Kept) -> Object:
    return {
        "apiVersion": _CLAIM_V1,
        "kind": "ResourceClaim",
        "metadata": _metadata(value),
        "spec": _claim_spec(value.get("spec"), kept),
    }


def _template_for(value: Object, kept: _Kept) -> Object:
    spec = value.get("spec")
    return {
        "apiVersion": _CLAIM_V1,
        "kind": "ResourceClaimTemplate",
        "metadata": _metadata(value),
        "spec": {"spec": _claim_spec(spec.get("spec") if isinstance(spec, dict) else None, kept)},
    }


def _claim_spec(spec: object, kept: _Kept) -> Object:
    spec = spec if isinstance(spec, dict) else {}
    name = spec.get("resourceClassName")
    exactly: Object = {"deviceClassName": name if isinstance(name, str) else "<device class>"}
    devices: Object = {"requests": [{"name": "device", "exactly": exactly}]}
    kind, wanted = _wanted(spec, kept)
    selectors = []
    if kind == "MigDeviceClaimParameters":
        exactly["deviceClassName"] = "mig.nvidia.com"
        if isinstance(wanted.get("profile"), str):
            selectors.append(f'device.attributes["{_NVIDIA}"].profile == "{wanted.pop("profile")}"')
        if parent := wanted.pop("gpuClaimName", None):
            kept.lost.append(
                f"gpuClaimName {parent}: a MIG device is of any GPU; several of one GPU are requests of one "
                f"claim, with matchAttribute {_NVIDIA}/parentUUID in its constraints"
            )
    if isinstance(count := wanted.get("count"), int) and not isinstance(count, bool):
        exactly["count"] = count
        del wanted["count"]
    if isinstance(wanted.get("selector"), dict):
        selectors += [text for text in [_expression(wanted.pop("selector"), kept)] if text]
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    if isinstance(wanted.get("sharing"), dict):
        config = "MigDeviceConfig" if kind == "MigDeviceClaimParameters" else "GpuConfig"
        parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": config, "sharing": wanted.pop("sharing")}
        devices["config"] = [{"requests": ["device"], "opaque": {"driver": _NVIDIA, "parameters": parameters}}]
    kept.lost += [f"{key} of its parameters" for key in wanted]
    if spec.get("allocationMode") == "Immediate":
        kept.lost.append("allocationMode Immediate: v1 allocates for the first pod that uses the claim")
    return {"devices": devices}


def _is_parent_of_parts(value: Object, kept: _Kept) -> bool:
    """True if a claim or template asks for a GPU in MIG mode, of which pods used MIG devices alone."""
    spec = value.get("spec")
    inner = spec.get("spec", spec) if isinstance(spec, dict) else None
    _, wanted = _wanted(inner if isinstance(inner, dict) else {}, _Kept(kept.parameters))
    return _asks_for_mig_mode(wanted.get("selector"))


def _asks_for_mig_mode(selector: object) -> bool:
    if not isinstance(selector, dict):
        return False
    every = selector.get("andExpression")
    return selector.get("migEnabled") is True or any(map(_asks_for_mig_mode, every if isinstance(every, list) else ()))


def _wanted(spec: Object, kept: _Kept) -> tuple[str, Object]:
    """The kind of a claim's parameters and what they say."""
    inline = spec.get("parameters")
    if isinstance(inline, dict):
        return "", dict(inline)
    reference = spec.get("parametersRef")
    if not isinstance(reference, dict):
        return "", {}
    kind, name = str(reference.get("kind", "")), str(reference.get("name", ""))
    found = kept.parameters.get((kind, name))
    if found is None:
        kept.lost.append(f"parametersRef {_named(reference)}, which is not among the files: add it to see its v1 form")
        return kind, {}
    content = found.get("spec")
    if not isinstance(content, dict):
        kept.lost.append(f"what {_named(reference)} says: write it as selectors and config")
        return kind, {}
    return kind, dict(content)


def _named(reference: Object) -> str:
    return " ".join(str(reference[part]) for part in ("kind", "name") if reference.get(part))


def _expression(selector: Object, kept: _Kept) -> str:
    """A selector of NVIDIA's parameters as CEL; "" where nothing of it can be kept."""
    parts = []
    for key, value in selector.items():
        match key, value:
            case (("andExpression" | "orExpression"), list()):
                inner = [text for one in value if isinstance(one, dict) and (text := _expression(one, kept))]
                joined = (" && " if key == "andExpression" else " || ").join(inner)
                parts.append(f"({joined})" if len(inner) > 1 else joined)
            case _, str() if key in _TEXTS:
                parts.append(_text(key, value))
            case "memory", dict():
                sign, amount = _OPERATORS.get(str(value.get("operator")), "=="), value.get("value")
                place = f'device.capacity["{_NVIDIA}"].memory'
                parts.append(f'{place}.compareTo(quantity("{amount}")) {sign} 0')
            case _, dict() if key in _VERSIONS:
                sign, amount = _OPERATORS.get(str(value.get("operator")), "=="), value.get("value")
                place = f'device.attributes["{_NVIDIA}"].{key}'
                parts.append(f'{place}.compareTo(semver("{_version(str(amount))}")) {sign} 0')
            case _:
                kept.lost.append(f"selector {key}")
    return " && ".join(part for part in parts if part)


def _text(key: str, value: str) -> str:
    place = f'device.attributes["{_NVIDIA}"].{key}'
    if "*" not in value:
        return f'{place} == "{value}"'
    words = [word for word in value.lower().split("*") if word]
    return " && ".join(f'{place}.lowerAscii().contains("{word}")' for word in words) or "true"


def _version(text: str) -> str:
    return text + ".0" * max(2 - text.count("."), 0)


def warn_of_betas(documents: Sequence[Document]) -> list[Diagnostic]:
    """One warning for all objects of a beta version, which an API server has only if it is enabled.

    Source: betaAPIGroupVersionsDisabledByDefault in pkg/controlplane/instance.go, v1.37.2; v1 is served since 1.34. An
    object with a uid was read from an API server, which has the version.
    """
    found = [(one, header(one.value)) for one in documents if not one.metadata.uid]
    beta = [(one, version) for one, (version, kind) in found if version in _BETAS and kind in _WITH_V1]
    if not beta:
        return []
    versions = sorted({version for _, version in beta})
    objects = "this object" if len(beta) == 1 else f"the {len(beta)} objects of it"
    message = (
        f"API servers serve {' and '.join(versions)} only with "
        f"--runtime-config={','.join(f'{version}=true' for version in versions)}; v1 is served by default"
    )
    step = f"write resource.k8s.io/v1 in {objects}"
    if _BETAS[0] in versions:
        step += ", and what v1beta1 has in a request of a claim below `exactly`"
    return [beta[0][0].located(Diagnostic(message, step, ("apiVersion",), severity=Severity.WARNING))]
