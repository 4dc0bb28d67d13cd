"""Fields that the API server refuses or drops, and claims that the scheduler gives up on, whatever devices exist.

Limits: k8s.io/kubernetes pkg/apis/resource/validation and k8s.io/api resource/v1, v1.36.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sized
from typing import Final

from autoscaler.lint.rules import (
    ADMIN_NAMESPACE,
    FEATURE_OFF,
    INVALID_OBJECT,
    TOO_MANY_DEVICES,
    TOO_MANY_ENTRIES,
    UNQUALIFIED_NAME,
    Finding,
)
from autoscaler.lint.subjects import ClaimSubject, ClassSubject
from autoscaler.model.resource_claim import (
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
    Request,
)
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes.labels import ADMIN_ACCESS
from instance_catalog.kubernetes.profile import Gates

MAX_DEVICES: Final = 32  # of one claim; only the allocator enforces it
_MAX_ENTRIES: Final = 32  # requests, constraints, config, selectors
_MAX_ALTERNATIVES: Final = 8
_MAX_TOLERATIONS: Final = 16
_MAX_PARAMETERS: Final = 10 * 1024  # bytes of JSON
_MODES: Final = ("ExactCount", "All")
MAX_DOMAIN, MAX_IDENTIFIER = 63, 32
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def check_claim_limits(subject: ClaimSubject) -> Iterator[Finding]:
    """Lists that are too long, names that are not qualified, and more devices than one claim may have."""
    claim, path = subject.claim, subject.path
    yield from check_entries(subject.object, (*path, "requests"), claim.requests, _MAX_ENTRIES)
    yield from check_entries(subject.object, (*path, "constraints"), claim.constraints, _MAX_ENTRIES)
    yield from check_entries(subject.object, (*path, "config"), claim.config, _MAX_ENTRIES)
    for index, request in enumerate(claim.requests):
        if isinstance(request, FirstAvailable):
            place = (*path, "requests", index, "firstAvailable")
            yield from check_entries(subject.object, place, request.subrequests, _MAX_ALTERNATIVES)
    for place, _, exact in subject.requests():
        yield from check_entries(subject.object, (*place, "selectors"), exact.selectors, _MAX_ENTRIES)
        yield from check_entries(subject.object, (*place, "tolerations"), exact.tolerations, _MAX_TOLERATIONS)
        if exact.allocation_mode not in _MODES:
            message = f"unknown allocation mode {exact.allocation_mode!r}"
            yield Finding.of(
                INVALID_OBJECT, subject.object, (*place, "allocationMode"), message, "write ExactCount or All"
            )
    for index, config in enumerate(claim.config):
        size = len(config.parameters.encode())
        if size > _MAX_PARAMETERS:
            place = (*path, "config", index, "opaque", "parameters")
            message = f"{size} bytes of parameters; the API allows {_MAX_PARAMETERS}"
            yield Finding.of(TOO_MANY_ENTRIES, subject.object, place, message, "shorten them")
    yield from _constraint_names(subject)
    total = sum(_least(request) for request in claim.requests)
    if total > MAX_DEVICES:
        message = f"asks for at least {total} devices; the scheduler gives a claim at most {MAX_DEVICES}"
        step = "split it into several claims of the same pod: the limit is for each claim"
        yield Finding.of(TOO_MANY_DEVICES, subject.object, (*path, "requests"), message, step)


def check_class_limits(subject: ClassSubject) -> Iterator[Finding]:
    yield from check_entries(subject.object, ("spec", "selectors"), subject.device_class.selectors, _MAX_ENTRIES)


def check_gates(subject: ClaimSubject, gates: Gates, version: str) -> Iterator[Finding]:
    """Fields that this Kubernetes version has switched off."""
    for index, request in enumerate(subject.claim.requests):
        if isinstance(request, FirstAvailable) and not gates.prioritized_list:
            place = (*subject.path, "requests", index, "firstAvailable")
            yield _gate_off(subject, place, "DRAPrioritizedList", version)
    for place, _, exact in subject.requests():
        if exact.capacity is not None and not gates.consumable_capacity:
            yield _gate_off(subject, (*place, "capacity"), "DRAConsumableCapacity", version)
        if exact.admin_access is not None and not gates.admin_access:
            yield _gate_off(subject, (*place, "adminAccess"), "DRAAdminAccess", version)


def check_admin_access(subject: ClaimSubject, namespaces: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    """Admin access is for namespaces with a label; those of the manifests are looked at."""
    namespace = subject.claim.namespace
    if namespaces.get(namespace, {}).get(ADMIN_ACCESS) == "true":
        return
    for place, _, exact in subject.requests():
        if exact.admin_access:
            message = f"admin access needs the label {ADMIN_ACCESS}: true on namespace {namespace}"
            step = "label the namespace; to let this check see it, give its manifest too"
            yield Finding.of(ADMIN_NAMESPACE, subject.object, (*place, "adminAccess"), message, step)


def check_entries(name: str, path: Path, found: Sized, limit: int) -> Iterator[Finding]:
    """A list at `path` that has more entries than the API allows."""
    if len(found) > limit:
        message = f"{len(found)} {path[-1]}; the API allows {limit}"
        yield Finding.of(TOO_MANY_ENTRIES, name, path, message, f"remove {len(found) - limit} of them")


def _constraint_names(subject: ClaimSubject) -> Iterator[Finding]:
    for index, constraint in enumerate(subject.claim.constraints):
        if not isinstance(constraint, MatchAttribute | DistinctAttribute):
            continue
        key = "matchAttribute" if isinstance(constraint, MatchAttribute) else "distinctAttribute"
        place = (*subject.path, "constraints", index, key)
        domain, slash, identifier = constraint.attribute.partition("/")
        if not slash:
            step = f"write the driver in front: gpu.nvidia.com/{constraint.attribute}"
            message = f"{constraint.attribute!r} has no domain"
            yield Finding.of(UNQUALIFIED_NAME, subject.object, place, message, step)
        elif not domain or not _IDENTIFIER.fullmatch(identifier):
            message = f"{constraint.attribute!r} is not of the form <domain>/<name>"
            step = "a name has letters, digits and '_', as in gpu.nvidia.com/parentUUID"
            yield Finding.of(UNQUALIFIED_NAME, subject.object, place, message, step)
        elif len(domain) > MAX_DOMAIN or len(identifier) > MAX_IDENTIFIER:
            message = f"domains have at most {MAX_DOMAIN} characters, names {MAX_IDENTIFIER}"
            yield Finding.of(TOO_MANY_ENTRIES, subject.object, place, message, "no driver publishes such a name")


def _gate_off(subject: ClaimSubject, path: Path, gate: str, version: str) -> Finding:
    message = f"{path[-1]} needs the feature gate {gate}, which is off in Kubernetes {version}"
    step = "if your cluster has it, say so in spec.featureGates of a PlanContext (foreslice.dev/v1alpha1)"
    return Finding.of(FEATURE_OFF, subject.object, path, message, step)


def _least(request: Request) -> int:
    """The least devices that a request takes: of alternatives the smallest, as the allocator counts."""
    counts = (one.count if one.allocation_mode == "ExactCount" else 0 for one in request.alternatives)
    return min(counts, default=0)
