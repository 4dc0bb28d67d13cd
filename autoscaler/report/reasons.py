"""Reason → sentence. Exhaustive over `Code`: a code without a sentence fails the tests.

A sentence is a template over the reason's `detail`; facts that the template does not name follow in brackets, so that
nothing a decision was based on is hidden.
"""

from __future__ import annotations

import string
from collections.abc import Mapping

from autoscaler.model.reason import Code, Fact, Reason

_TEXTS: dict[Code, str] = {
    Code.NO_DEVICE_OF_CLASS: "no device of class {device_class}",
    Code.SELECTOR_FALSE: "no device passes the selector {expression}",
    Code.TOO_FEW_DEVICES: "{found} of {wanted} devices",
    Code.DEVICES_IN_USE: "all matching devices are in use",
    Code.CONSTRAINT_UNSATISFIED: "constraint on {attribute} cannot be met",
    Code.COUNTERS_EXHAUSTED: "shared counters are exhausted",
    Code.CAPACITY_INSUFFICIENT: "not enough capacity {capacity} left on any device",
    Code.DEVICE_TAINTED: "device taint {key} is not tolerated",
    Code.NO_COMBINATION: "each request could be met alone, but not all together",
    Code.INVALID_POOL: "the pool {pool} is invalid",
    Code.INCOMPLETE_POOL: "the pool {pool} is incomplete",
    Code.CLAIM_ALLOCATED_ELSEWHERE: "the claim is allocated where this node cannot reach it",
    Code.CLAIM_RESERVED_FULL: "the claim is reserved for as many pods as Kubernetes allows",
    Code.CLAIM_DELETING: "the claim is being deleted",
    Code.BINDING_FAILED: "the claim's devices failed to bind",
    Code.SEARCH_TIMEOUT: "kube-scheduler would give up after its filter timeout",
    Code.PREPARE_REFUSED: "the driver {driver} would refuse to prepare the claim",
    Code.SELECTOR_ERROR: "the selector {expression} fails: {error}",
    Code.SELECTOR_INVALID: "the selector {expression} does not compile: {error}",
    Code.CLASS_NOT_FOUND: "DeviceClass {device_class} does not exist",
    Code.CLAIM_NOT_FOUND: "ResourceClaim {claim} does not exist",
    Code.CLAIM_NOT_CREATED: "the ResourceClaim was not created from its template yet",
    Code.CLAIM_NOT_OWNED: "ResourceClaim {claim} was not created for this pod",
    Code.TOO_MANY_DEVICES: "{wanted} devices exceed the limit of {limit} per claim",
    Code.FEATURE_DISABLED: "{feature} is disabled in this Kubernetes version",
    Code.MALFORMED_REQUEST: "the request is malformed: {error}",
    Code.ALL_OVER_UNFINISHED_POOL: "allocationMode All over the unfinished pool {pool}",
    Code.ALL_VIOLATES_CONSTRAINT: "allocationMode All cannot meet the constraint on {attribute}",
    Code.BAD_NODE_SELECTOR: "a node selector cannot be parsed: {error}",
    Code.RUNTIME_ATTRIBUTE: "depends on {attributes}, which exist only once the node runs",
    Code.CATALOG_UNKNOWN: "depends on {attributes}, which the catalog does not know",
    Code.UNSUPPORTED: "{feature} is not supported by this version",
    Code.INSUFFICIENT_RESOURCE: "insufficient {resource}: {wanted} wanted, {free} free",
    Code.NODE_SELECTOR_MISMATCH: "node selector wants {key}={wanted}",
    Code.NODE_AFFINITY_MISMATCH: "node affinity on {keys} does not match",
    Code.NODE_NAME_MISMATCH: "the pod is pinned to node {wanted}",
    Code.TAINT_NOT_TOLERATED: "taint {key}={value}:{effect} is not tolerated",
    Code.NODE_UNSCHEDULABLE: "the node is cordoned",
    Code.NODE_NOT_READY: "the node is not ready",
    Code.PORT_CONFLICT: "host port {port}/{protocol} is taken",
    Code.VOLUME_ZONE_CONFLICT: "a volume is in another zone",
    Code.VOLUME_UNBOUND: "volume claim {claim} is not bound",
    Code.TOPOLOGY_SPREAD: "topology spread over {key} would be violated",
    Code.POD_AFFINITY: "pod affinity over {keys} is not met",
    Code.POD_ANTI_AFFINITY: "pod anti-affinity over {key} is violated",
    Code.SCHEDULING_GATED: "the pod waits for scheduling gates {gates}",
    Code.OTHER_SCHEDULER: "another scheduler is responsible: {scheduler}",
    Code.OUT_OF_SCOPE: "no resource claim and no extended resource served by DRA",
    Code.NO_CANDIDATE: "no offering fits",
    Code.NO_POOL: "no CapacityPool admits an offering that fits",
    Code.POOL_LIMIT: "the limit of pool {pool} on {resource} is reached",
    Code.POOL_REFUSES: "the pool's requirement on {key} excludes it",
    Code.NO_PRICE: "no price is known; set one with an overlay to allow buying it",
    Code.NEEDS_RESERVATION: "{capacity_type} capacity needs a reservation; declare a CapacityBlock to use it",
    Code.SHORTAGE: "the provider has none left until {until}",
    Code.QUARANTINED: "quarantined after failed boots",
    Code.GANG_INCOMPLETE: "the gang needs {wanted} pods at once, {placed} could be placed",
    Code.GANG_TOPOLOGY: "the gang must share one {key}",
    Code.BUNDLE_SPLIT: "pods that share a claim do not fit one node together",
    Code.BLOCK_ENDS_TOO_SOON: "capacity block {block} ends too soon",
    Code.BLOCK_DURATION_UNKNOWN: "the pod does not say how long it runs and block {block} requires it",
    Code.BLOCK_NOT_CONSUMER: "the pod is not a consumer of block {block}",
    Code.BLOCK_FULL: "capacity block {block} is full",
    Code.BREAKS_OTHER_POD: "its devices would make the selector of pod {pod} fail",
    Code.SPENDING_GUARD: "the spending guard of {limit} $/h is reached",
    Code.PLAN_BUDGET: "the search ended at its step budget",
    Code.FITS: "fits",
    Code.CHEAPEST: "cheapest offering that fits",
    Code.PREFERRED: "an earlier alternative of firstAvailable",
    Code.PREPAID: "prepaid by capacity block {block}",
    Code.ALREADY_BOUND: "already bound",
    Code.EXISTING_NODE: "fits an existing node",
    Code.COMING_NODE: "fits a node that is coming up",
    Code.BLOCK_HELD: "held while capacity block {block} lasts",
    Code.BLOCK_ENDING: "capacity block {block} ends",
    Code.NODE_EMPTY: "empty for {seconds} s",
    Code.BASELINE: "part of the pool's baseline",
    Code.SHARES_CLAIM: "shares claim {claim}",
}


class _Lenient(string.Formatter):
    """Fills what is there, remembers what was used, writes "?" for what is missing."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    def get_value(self, key: int | str, args: object, kwargs: Mapping[str, object]) -> str:
        name = str(key)
        self.used.add(name)
        return str(kwargs.get(name, "?"))


def text_of(reason: Reason) -> str:
    """One line: "claim default/gpu: 4 of 8 devices (class=gpu.nvidia.com)"."""
    formatter = _Lenient()
    facts = {key: _fact(value) for key, value in reason.detail.items()}
    sentence = formatter.format(_TEXTS[reason.code], **facts)
    rest = [f"{key}={value}" for key, value in facts.items() if key not in formatter.used and value != ""]
    if rest:
        sentence += f" ({', '.join(rest)})"
    return f"{reason.subject}: {sentence}" if reason.subject else sentence


def texts_of(reasons: tuple[Reason, ...]) -> str:
    """All reasons on one line."""
    return "; ".join(text_of(reason) for reason in reasons)


def _fact(value: Fact) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
