"""Deployments of other autoscalers, and ResourceQuotas, for the checks before launches; ComputeClasses of GKE.

Facts: Karpenter core 1.14 pkg/operator/options (IGNORE_DRA_REQUESTS, default true; FEATURE_GATES, of which
CapacityBuffer serves buffers of every strategy, default false) and the AWS chart 1.15 (settings.enableDRA); Cluster
Autoscaler 1.36.1 config/flags (--enable-dynamic-resource-allocation, locked on since 1.35; --allowed-scheduler-names).
Fields of a ComputeClass: docs.cloud.google.com, kubernetes-engine/docs/reference/crds/computeclass (2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.model.other_autoscalers import Autoscaler, AutoscalerKind, ComputeClass, MachineRule, Quota
from instance_catalog.dataclass import dataclass

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
_DRA_ALWAYS: Final = (1, 35)  # since this version Cluster Autoscaler cannot be configured to ignore claims
_OFF: Final = ("false", "0", "f")


def parse_autoscaler(raw: object, problems: Problems | None = None) -> Autoscaler | None:
    """The autoscaler that a Deployment runs; None for any other Deployment, and for one with 0 replicas."""
    fields = Fields(raw, problems)
    spec = fields.child("spec")
    if spec.optional_integer("replicas") == 0:
        return None
    containers = Fields(spec.child("template").raw("spec")).children("containers")
    for container in map(_container, containers):
        kind = _kind(container)
        if kind is not None:
            metadata = parse_metadata(Fields(raw))
            return Autoscaler(
                kind=kind,
                namespace=metadata.namespace,
                name=metadata.name,
                claims=_serves_claims(kind, container),
                schedulers=tuple(
                    name for name in container.flags.get("allowed-scheduler-names", "").split(",") if name
                ),
                version=container.tag,
                buffers=kind is AutoscalerKind.KARPENTER and _has_gate(container, "CapacityBuffer"),
            )
    return None


@dataclass(frozen=True, slots=True)
class _Container:
    repository: str
    tag: str
    flags: Mapping[str, str]  # without dashes; "true" for a bare one
    environment: Mapping[str, str]


def _container(fields: Fields) -> _Container:
    image = fields.text("image").partition("@")[0]
    head, colon, tag = image.rpartition(":")
    tagged = colon and "/" not in tag
    words = [*_words(fields, "command"), *_words(fields, "args")]
    return _Container(
        repository=head if tagged else image,
        tag=tag if tagged else "",
        flags=dict(_flags(words)),
        environment={entry.text("name"): entry.text("value") for entry in fields.children("env")},
    )


def _words(fields: Fields, name: str) -> Iterator[str]:
    found = fields.raw(name)
    for part in found if isinstance(found, list) else ():
        yield from str(part).split()


def _flags(words: list[str]) -> Iterator[tuple[str, str]]:
    for index, word in enumerate(words):
        if word.startswith("-"):
            name, has_value, value = word.lstrip("-").partition("=")
            following = words[index + 1] if index + 1 < len(words) else "-"
            yield name, value if has_value else "true" if following.startswith("-") else following


def _kind(container: _Container) -> AutoscalerKind | None:
    name = container.repository.rpartition("/")[2]
    if "karpenter" in container.repository and name in ("controller", "karpenter", "karpenter-controller"):
        return AutoscalerKind.KARPENTER
    if name.startswith("cluster-autoscaler"):
        return AutoscalerKind.CLUSTER_AUTOSCALER
    return None


def _serves_claims(kind: AutoscalerKind, container: _Container) -> bool:
    if kind is AutoscalerKind.KARPENTER:
        ignores = container.flags.get("ignore-dra-requests", container.environment.get("IGNORE_DRA_REQUESTS", "true"))
        enabled = container.environment.get("ENABLE_DRA", "false")
        return ignores.lower() in _OFF or enabled.lower() == "true"
    version = _VERSION.match(container.tag)
    if version and (int(version[1]), int(version[2])) >= _DRA_ALWAYS:
        return True
    return container.flags.get("enable-dynamic-resource-allocation", "false").lower() not in _OFF


def _has_gate(container: _Container, name: str) -> bool:
    """True if a feature gate is on: NodeRepair=true,CapacityBuffer=true."""
    gates = container.flags.get("feature-gates", container.environment.get("FEATURE_GATES", ""))
    switches = (entry.partition("=") for entry in gates.split(","))
    return any(gate.strip() == name and value.strip().lower() == "true" for gate, _, value in switches)


def parse_quota(raw: object, problems: Problems | None = None) -> Quota:
    """A ResourceQuota, with the limits on pods of certain priority classes."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    spec = fields.child("spec")
    classes: list[str] = []
    for expression in spec.child("scopeSelector").children("matchExpressions"):
        if expression.text("scopeName") == "PriorityClass" and expression.text("operator") == "In":
            classes += expression.texts("values")
    hard = spec.quantities("hard").get("pods")
    return Quota(metadata.namespace, metadata.name, tuple(classes), None if hard is None else int(hard.value))


def parse_compute_class(raw: object, problems: Problems | None = None) -> ComputeClass:
    """The machines of a ComputeClass: what else it says of nodes (disks, zones, taints) is not read."""
    fields = Fields(raw, problems)
    rules = fields.child("spec").children("priorities")
    return ComputeClass(parse_metadata(fields).name, tuple(map(_machine_rule, rules)))


def _machine_rule(fields: Fields) -> MachineRule:
    gpu, tpu = fields.child("gpu"), fields.child("tpu")
    return MachineRule(
        machine_type=fields.text("machineType"),
        machine_family=fields.text("machineFamily"),
        gpu=gpu.text("type"),
        gpu_count=gpu.integer("count"),
        tpu=tpu.text("type"),
        tpu_count=tpu.integer("count"),
        tpu_topology=tpu.text("topology"),
        min_cores=fields.integer("minCores"),
        min_memory_gb=fields.integer("minMemoryGb"),
        spot=fields.flag("spot"),
        flex_start=fields.child("flexStart").flag("enabled"),
        reserved=fields.child("reservations").text("affinity") == "Specific",
        node_pools="nodepools" in fields,
    )
