"""Changes of claims: selectors, counts, constraints and tolerations of requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, on_claims, on_pods
from autoscaler.advice.situation import Situation
from autoscaler.lint.expressions import conditions
from autoscaler.model.device_class import Selector
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Fact
from autoscaler.model.resource_claim import (
    DeviceRequest,
    DistinctAttribute,
    FirstAvailable,
    MatchAttribute,
    Request,
    ResourceClaim,
)
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.placement.nothing_has import leaves_open
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers import opaque
from instance_catalog.drivers.attribute_names import gated_attributes, renamed_attributes
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Toleration

_SELECTING = frozenset(
    {Code.SELECTOR_FALSE, Code.TOO_FEW_DEVICES, Code.RUNTIME_ATTRIBUTE, Code.CATALOG_UNKNOWN, Code.SELECTOR_ERROR}
)

_NOT_BY_DEFAULT: Final = tuple(name.split("/", 1) for name in (*renamed_attributes(), *gated_attributes()))
# Attributes whose values no two devices of a node share, and which nobody knows before it runs.
_ONE_DEVICE: Final = re.compile(r"\b(ifName|uuid|pciBusID|pciAddress|serialNumber|mac)\b")
# Whole cards or parts of them, for whom people write a claim.
_KIND_OF_DEVICE: Final = re.compile(r"""\]\.type\s*==\s*["'][\w-]+["']""")


@dataclass(frozen=True, slots=True)
class RequestPlace:
    """A request (or an alternative of firstAvailable) in a claim of the pod."""

    claim: ResourceClaim
    request: DeviceRequest
    keys: frozenset[str]  # the claims that ask for the same

    @property
    def subject(self) -> str:
        """As reasons name it."""
        return f"claim {self.claim.key}, request {self.request.name}"

    def edit(self, change: Callable[[DeviceRequest], DeviceRequest]) -> Callable[[ResourceClaim], ResourceClaim]:

        def apply(claim: ResourceClaim) -> ResourceClaim:
            return replace(claim, requests=tuple(self._changed(r, change) for r in claim.requests))

        return apply

    def _changed(self, request: Request, change: Callable[[DeviceRequest], DeviceRequest]) -> Request:
        if isinstance(request, FirstAvailable):
            subrequests = tuple(change(s) if s == self.request else s for s in request.subrequests)
            return replace(request, subrequests=subrequests)
        return change(request) if request == self.request else request


@dataclass(frozen=True, slots=True)
class Condition:
    """One of the conditions that `&&` joins in a selector, and the selector without it or with another in its place."""

    place: RequestPlace
    selector: Selector
    text: str
    parts: tuple[str, ...]

    def change(self, kind: ChangeKind, instead: str = "", **facts: str) -> Change:
        """Without the condition, or with `instead` in its place; `facts` say what that changes."""
        kept = [instead if part == self.text else part for part in self.parts]
        expression = " && ".join(part for part in kept if part)
        selectors = (Selector(expression),) if expression else ()

        def edit(request: DeviceRequest) -> DeviceRequest:
            index = request.selectors.index(self.selector)
            return replace(request, selectors=(*request.selectors[:index], *selectors, *request.selectors[index + 1 :]))

        facts = {"condition": self.text, **({"instead": instead} if instead else {}), **facts}
        return Change.of(kind, self.place.subject, on_claims(self.place.keys, self.place.edit(edit)), **facts)


def requests_of(asked: Situation) -> Iterator[RequestPlace]:
    for claim in asked.claims:
        keys = asked.like(claim)
        for request in claim.requests:
            yield from (RequestPlace(claim, alternative, keys) for alternative in request.alternatives)


def conditions_of(asked: Situation, place: RequestPlace) -> tuple[Condition, ...]:
    """The conditions of a request's own selectors; none where no selector keeps the pod from a place."""
    if not asked.codes & _SELECTING:
        return ()
    found: list[Condition] = []
    for selector in place.request.selectors:
        parts = conditions(selector.expression, asked.snapshot.profile) if selector.expression else ()
        found += [Condition(place, selector, text, parts) for text in dict.fromkeys(parts)]
    return tuple(found)


def dropped_conditions(asked: Situation) -> Iterator[Change]:
    """Without one condition of a selector; not where it asks for what is made on nodes, for one device of one node, for
    a kind of device (a part of a card), or by a name that its driver has changed: no type is nearer to that."""
    if any(r.code is Code.NOTHING_HAS and "driver" in r.detail for r in asked.reasons):
        return
    for place in requests_of(asked):
        found = (
            one
            for one in conditions_of(asked, place)
            if not any(pattern.search(one.text) for pattern in (_ONE_DEVICE, _KIND_OF_DEVICE))
            and not _not_by_default(one.text)
        )
        yield from (one.change(ChangeKind.DROP_CONDITION) for one in found)


def _not_by_default(condition: str) -> bool:
    """True if it reads an attribute by a name that its driver publishes no more, or only with a feature gate."""
    return any(domain in condition and identifier in condition for domain, identifier in _NOT_BY_DEFAULT)


def renamed_capacities(asked: Situation) -> Iterator[Change]:
    """A capacity without its domain, where no device has one of that name: drivers publish their own without."""
    if Code.CAPACITY_INSUFFICIENT not in asked.codes:
        return
    for place in requests_of(asked):
        asked_for = place.request.capacity or FrozenMap[str, Quantity]()
        for name in (name for name in asked_for if "/" in name):
            short = name.rpartition("/")[2]
            renamed = FrozenMap({short if key == name else key: amount for key, amount in asked_for.items()})

            def edit(request: DeviceRequest, renamed: FrozenMap[str, Quantity] = renamed) -> DeviceRequest:
                return replace(request, capacity=renamed)

            edited = on_claims(place.keys, place.edit(edit))
            yield Change.of(ChangeKind.RENAME_CAPACITY, place.subject, edited, was=name, value=short)


def counts(asked: Situation) -> Iterator[Change]:
    """As many devices as some type has."""
    for place in requests_of(asked):
        if place.request.allocation_mode != "ExactCount":
            continue
        found = {
            r.detail["found"]
            for r in asked.reasons
            if r.code in (Code.TOO_FEW_DEVICES, Code.DEVICES_IN_USE) and str(r.subject) == place.subject
        }
        most = max((n for n in found if isinstance(n, int) and 0 < n < place.request.count), default=0)
        if most:
            edit = place.edit(lambda request, most=most: replace(request, count=most))  # type: ignore[misc]
            yield Change.of(
                ChangeKind.LOWER_COUNT,
                place.subject,
                on_claims(place.keys, edit),
                wanted=place.request.count,
                instead=most,
            )


def device_tolerations(asked: Situation) -> Iterator[Change]:
    """For each device taint that kept a request from its devices."""
    for place in requests_of(asked):
        named = [r for r in asked.reasons if r.code is Code.DEVICE_TAINTED and str(r.subject) == place.subject]
        for text in dict.fromkeys(taint for r in named for taint in _texts(r.detail.get("taints"))):
            key, _, rest = text.partition("=")
            value, _, effect = rest.rpartition(":")
            added = Toleration(key, "Equal" if value else "Exists", value, effect)

            def edit(request: DeviceRequest, added: Toleration = added) -> DeviceRequest:
                return replace(request, tolerations=(*request.tolerations, added))

            shown = text if value else f"{key}:{effect}"
            yield Change.of(
                ChangeKind.TOLERATE_DEVICE, place.subject, on_claims(place.keys, place.edit(edit)), taint=shown
            )


def constraints(asked: Situation) -> Iterator[Change]:
    """Without one constraint of a claim; not where its driver publishes the attribute only with a feature gate."""
    if not asked.codes & {Code.CONSTRAINT_UNSATISFIED, Code.NO_COMBINATION}:
        return
    for claim in asked.claims:
        keys = asked.like(claim)
        for constraint in claim.constraints:
            if isinstance(constraint, MatchAttribute | DistinctAttribute) and not _not_by_default(constraint.attribute):

                def edit(found: ResourceClaim, dropped: object = constraint) -> ResourceClaim:
                    return replace(found, constraints=tuple(c for c in found.constraints if c != dropped))

                yield Change.of(
                    ChangeKind.DROP_CONSTRAINT,
                    f"claim {claim.key}",
                    on_claims(keys, edit),
                    attribute=constraint.attribute,
                )


def _texts(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def claims_apart(asked: Situation) -> Iterator[Change]:
    """Without one of the claims whose devices are never on one node together; the one that says least first."""
    apart = [found.detail.get("classes") for found in asked.reasons if found.code is Code.NO_COMBINATION]
    classes = {name for found in apart for name in _texts(found)}
    names = {f"{asked.pod.namespace}/{entry.claim}": entry.name for entry in asked.pod.claims}
    of_these = [one for one in requests_of(asked) if one.request.device_class in classes]
    claims = {place.claim.key: place for place in sorted(of_these, key=lambda one: len(one.request.selectors))}
    for key, place in claims.items() if len(claims) > 1 else ():
        edit = on_pods(asked.keys, partial(_without_claims, claims=place.keys))
        yield Change.of(ChangeKind.DROP_CLAIM, asked.subject, edit, claim=names.get(key, key))


def refused_configs(asked: Situation) -> Iterator[Change]:
    """Claims with the version of the configuration that the driver reads, where only that is wrong; or without the
    configuration that it refuses."""
    if Code.PREPARE_REFUSED not in asked.codes:
        return
    for claim in (claim for claim in asked.claims if claim.config):
        wrong = [one for one in claim.config if one.driver == opaque.DRIVER and opaque.refused(one.parameters)]
        versions = [version for one in wrong if (version := opaque.with_version(one.parameters)[1])]
        if wrong and len(versions) == len(wrong):
            edit, was = on_claims(asked.like(claim), _in_its_version), tuple(dict.fromkeys(versions))
            facts: dict[str, Fact] = {"was": was, "value": opaque.API_VERSION}
            yield Change.of(ChangeKind.CORRECT_CONFIG, f"claim {claim.key}", edit, **facts)
        edit = on_claims(asked.like(claim), lambda claim: replace(claim, config=()))
        yield Change.of(ChangeKind.DROP_CONFIG, f"claim {claim.key}", edit)


def _in_its_version(claim: ResourceClaim) -> ResourceClaim:
    written = (
        replace(one, parameters=opaque.with_version(one.parameters)[0] or one.parameters)
        if one.driver == opaque.DRIVER
        else one
        for one in claim.config
    )
    return replace(claim, config=tuple(written))


def assumed_claims(asked: Situation) -> Change | None:
    """As if the claims of classes whose devices nobody predicts fit on every node, to find what else keeps the pods
    from a place; None where there is no such claim."""
    entries = [entry for entry in asked.plan.left_out if entry.pod in asked.keys]
    open_ = [reason for entry in entries for reason in entry.reasons if leaves_open(reason)]
    claims = frozenset(reason.subject.name for reason in open_ if reason.subject.kind == "claim")
    if not claims:
        return None
    named = (reason.detail.get(key, ()) for reason in open_ for key in ("missing_class", "device_class"))
    classes = [name for found in named for name in (found if isinstance(found, tuple) else (found,))]
    edit = on_pods(asked.keys, partial(_without_claims, claims=claims))
    shown = tuple(key for key in claim_keys(asked.pod) if key in claims)
    facts: dict[str, Fact] = {"device_classes": tuple(dict.fromkeys(map(str, classes))), "claims": shown}
    return Change.of(ChangeKind.DESCRIBE_DRIVER, asked.subject, edit, **facts)


def _without_claims(pod: Pod, claims: frozenset[str]) -> Pod:
    return replace(pod, claims=tuple(one for one in pod.claims if f"{pod.namespace}/{one.claim}" not in claims))
