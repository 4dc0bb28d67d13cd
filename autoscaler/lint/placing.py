"""Reasons why a claim may not be placed although devices match: number of devices, constraints, taints, capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from autoscaler.cel.interpreter.device import split_name
from autoscaler.dra.inventory.taints import blocking_taints, tolerated
from autoscaler.lint.devices.offers import Offer, Specimen
from autoscaler.lint.devices.reach import Reach
from autoscaler.lint.published_names import PublishedNames
from autoscaler.lint.rules import (
    CONSTRAINT_UNMET,
    MISSING_TOLERATION,
    MORE_THAN_A_NODE,
    UNKNOWN_ATTRIBUTE,
    Finding,
)
from autoscaler.lint.subjects import ClaimSubject
from autoscaler.model.resource_claim import DeviceRequest, DistinctAttribute, MatchAttribute
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.taint import Taint


def check_count(name: str, path: Path, request: DeviceRequest, found: Reach) -> Iterator[Finding]:
    """More devices than the best offer has. Published slices count as one node, since some are shared by several."""
    shareable = any(specimen.device.allow_multiple_allocations for specimen in found.possible)
    if not found.possible or request.allocation_mode != "ExactCount" or shareable:
        return
    counts: dict[Offer, int] = {}
    for specimen in found.possible:
        for offer, count in specimen.counts.items():
            counts[offer] = counts.get(offer, 0) + count
    best = max(counts, key=lambda offer: counts[offer])
    if request.count > counts[best]:
        message = f"asks for {request.count} devices; no node has more than {counts[best]} that match ({best})"
        step = "ask for fewer in each pod and run more pods"
        yield Finding.of(MORE_THAN_A_NODE, name, (*path, "count"), message, step)


def check_capacity(
    name: str, path: Path, request: DeviceRequest, found: Reach, known: PublishedNames
) -> Iterator[Finding]:
    """A capacity that none of the matching devices has keeps all of them away."""
    for wanted in request.capacity or ():
        holders = [one for one in found.possible if _qualified(wanted, one) in _names(one.device.capacity, one)]
        if found.possible and not holders:
            example = found.possible[0]
            domain, identifier = split_name(wanted, example.driver)
            wrong = known.judge("capacity", domain, identifier)
            step = wrong[1] if wrong else "ask for a capacity that the devices have"
            message = f"none of the matching devices has capacity {domain}/{identifier}, {example.example} for one"
            yield Finding.of(UNKNOWN_ATTRIBUTE, name, (*path, "capacity", "requests", wanted), message, step)


def check_tolerations(
    name: str, path: Path, request: DeviceRequest, found: Reach, profile: KubernetesProfile
) -> Iterator[Finding]:
    """Taints of matching devices that the request does not tolerate, each once."""
    tainted: dict[Taint, list[Specimen]] = {}
    for specimen in found.possible:
        for taint in blocking_taints(specimen.device, profile):
            if not tolerated((taint,), request.tolerations):
                tainted.setdefault(taint, []).append(specimen)
    total = sum(specimen.total for specimen in found.possible)
    for taint, specimens in tainted.items():
        kept = sum(specimen.total for specimen in specimens)
        share = "all matching devices carry" if kept == total else f"{kept} of {total} matching devices carry"
        text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        message = f"{share} the taint {text}, {specimens[0].example} for one"
        step = f"if that is intended, add the toleration {{key: {taint.key}, operator: Exists}}"
        yield Finding.of(MISSING_TOLERATION, name, (*path, "tolerations"), message, step)


def check_constraints(subject: ClaimSubject, reached: Mapping[str, Reach], known: PublishedNames) -> Iterator[Finding]:
    """Constraints on attributes that nothing publishes, or that one of the requests' devices never have.

    `reached` holds what the selectors of each request let through, by the request's full name.
    """
    for index, constraint in enumerate(subject.claim.constraints):
        if not isinstance(constraint, MatchAttribute | DistinctAttribute) or "/" not in constraint.attribute:
            continue
        key = "matchAttribute" if isinstance(constraint, MatchAttribute) else "distinctAttribute"
        path = (*subject.path, "constraints", index, key)
        domain, _, identifier = constraint.attribute.partition("/")
        wrong = known.judge("attributes", domain, identifier)
        if wrong:
            yield Finding.of(UNKNOWN_ATTRIBUTE, subject.object, path, *wrong)
            continue
        for name in _without(constraint.attribute, constraint.requests, reached):
            message = f"none of the devices that request {name} can get has {constraint.attribute}"
            step = "name the requests it is for in `requests`, or use an attribute that all of them have"
            yield Finding.of(CONSTRAINT_UNMET, subject.object, path, message, step)


def _without(attribute: str, requests: Sequence[str], reached: Mapping[str, Reach]) -> Iterator[str]:
    """The covered requests whose devices all lack the attribute. A name covers the alternatives below it."""
    for name, found in reached.items():
        covered = not requests or name in requests or name.partition("/")[0] in requests
        if covered and found.possible and not any(attribute in _names(o.device.attributes, o) for o in found.possible):
            yield name


def _names(published: Mapping[str, object], specimen: Specimen) -> set[str]:
    return {_qualified(name, specimen) for name in published}


def _qualified(name: str, specimen: Specimen) -> str:
    return "/".join(split_name(name, specimen.driver))
