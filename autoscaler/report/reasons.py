"""Sentences for reasons: of a code's templates, the first one whose facts are all in the reason's `detail`.

Facts that a template does not name follow in brackets, so that no basis of a decision is hidden.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterable
from typing import Final

from autoscaler.model.reason import SHORT_AMOUNTS, Code, Fact, Reason
from autoscaler.report.cel_words import one_line_cel, short_cel
from autoscaler.report.printable import one_line
from autoscaler.report.reason_texts import (
    CLASS_TEXTS,
    DEVICE_TEXTS,
    NAME_DROPPED,
    NODE_TEXTS,
    NOT_GIVEN,
    REQUEST_TEXTS,
    SCOPE_TEXTS,
    VOLUME_TEXTS,
)
from autoscaler.report.words import with_cut_words
from instance_catalog.dataclass import replace
from instance_catalog.prediction.predict import PLACEHOLDER_NODE

_TEXTS: dict[Code, tuple[str, ...]] = {
    **DEVICE_TEXTS,
    Code.CLAIM_ALLOCATED_ELSEWHERE: ("is allocated where node {node} cannot reach it", "is allocated elsewhere"),
    Code.CLAIM_RESERVED_FULL: ("is reserved for {limit} pods already", "is reserved for as many pods as possible"),
    Code.CLAIM_DELETING: ("is being deleted",),
    Code.BINDING_FAILED: ("device {device} reported {conditions}", "its devices failed to bind"),
    Code.CLAIM_NOT_SHAREABLE: (
        "node allocatable resource claim {claim} has a mapped device and cannot be shared across pods",
    ),
    Code.SEARCH_TIMEOUT: ("kube-scheduler would exceed its filter timeout",),
    Code.PREPARE_REFUSED: (
        "the driver {driver} only prepares claims for all {published} devices of the node, not for {taken}",
        "the driver {driver} would refuse to prepare the claim of ComputeDomain {domain}: the node has {other}",
        "the driver {driver} would refuse to prepare the claim: {attribute} {value} cannot share a node with {other}",
        "the driver {driver} would refuse to prepare the claim: {problem}",
        "the driver {driver} would refuse to prepare the claim: sharing strategy {strategy} needs its feature gate "
        "{gate}, which the pool's driver profile does not turn on",
        "the driver {driver} would refuse to prepare the claim",
    ),
    Code.SELECTOR_ERROR: ("{expression} fails: {message}", "a selector fails"),
    Code.SELECTOR_INVALID: ("{expression} does not compile: {message}", "a selector does not compile"),
    Code.CLAIM_NOT_FOUND: ("there is no ResourceClaim {claim}", "does not exist"),
    Code.CLAIM_NOT_CREATED: (NAME_DROPPED, "the claim was not created from template {template} yet", "not created yet"),
    Code.CLAIM_NOT_OWNED: ("was not created for pod {pod}", "was created for another pod"),
    Code.POD_GROUP_NOT_FOUND: ("does not exist, and pod {pod} waits for it", "does not exist"),
    Code.TOO_MANY_DEVICES: ("{wanted} devices exceed the limit of {limit} per claim", "exceeds 32 devices per claim"),
    Code.FEATURE_DISABLED: ("the feature gate {gate} is off", "the feature is off in this Kubernetes version"),
    Code.MALFORMED_REQUEST: ("is malformed: {problem}", "is malformed"),
    Code.ALL_OVER_UNFINISHED_POOL: ("asks for all devices while {pool} is being updated", "a pool is being updated"),
    Code.ALL_VIOLATES_CONSTRAINT: ("taking all devices violates a constraint",),
    Code.BAD_NODE_SELECTOR: (
        "a node selector cannot be parsed: {error}",
        "a node selector cannot be parsed: {problem}",
    ),
    Code.NODE_AMOUNT_UNDECIDED: ("device {device}: {problem}",),
    Code.RUNTIME_ATTRIBUTE: ("depends on {attributes}: known only once the node runs",),
    Code.CATALOG_UNKNOWN: ("depends on {attributes}: not in the catalog",),
    Code.PLANNING_FAILED: ("planning fails on it: report it with the log line unexpected_error",),
    Code.UNSUPPORTED: (
        "driver profile {drivers} leaves out {types} instance types, such as {example}: {problem}",
        *NOT_GIVEN,
        "{feature} is not supported",
        "fields not supported: {fields}",
        "is not supported",
    ),
    Code.CONTESTED_RESOURCE: (
        "{resource} is served or not, depending on the order in which kube-scheduler saw two DeviceClasses with one "
        "extendedResourceName: give one of them another name, or request the extendedResourceName itself",
        "whether a DeviceClass serves it is open",
    ),
    Code.UNREADABLE: ("is unknown without the right to {right}: grant it, as the ClusterRole foreslice-observe does",),
    Code.INSUFFICIENT_RESOURCE: (
        "Insufficient {resource}: {wanted} requested, {free} free; nor any {nor}",
        "Insufficient {resource}: {wanted} requested, {free} free",
    ),
    Code.INSUFFICIENT_WITH_CLAIMS: (
        "Insufficient {resource}: {wanted} requested, {of_claims} of it by claims, {free} free",
    ),
    Code.POD_LEVEL_EXCEEDED: (
        "pod level limit for {resource} is insufficient to cover the limit and DRA overhead for container {container}",
        "pod level request for {resource} is insufficient to cover the aggregated container and node-allocatable DRA "
        "requests",
    ),
    Code.NODE_SELECTOR_MISMATCH: (
        "node selector wants {labels}, node affinity {affinity}",
        "node selector wants {labels}",
        "node selector wants {key}={wanted}",
    ),
    Code.NODE_AFFINITY_MISMATCH: ("node affinity wants {wanted}", "node affinity on {keys} does not match"),
    Code.NODE_NAME_MISMATCH: ("is pinned to node {wanted}",),
    Code.TAINT_NOT_TOLERATED: ("does not tolerate {key}={value}:{effect}",),
    Code.NODE_UNSCHEDULABLE: ("is cordoned",),
    Code.NODE_NOT_READY: ("is not ready",),
    Code.PORT_CONFLICT: ("host port {port}/{protocol} is taken",),
    Code.NODE_FEATURE_MISSING: ("the node does not declare {features}",),
    Code.TOPOLOGY_SPREAD: (
        "spreading over {key} would have skew {skew}, {max_skew} is allowed",
        "spreading over {key} cannot be kept",
    ),
    Code.POD_AFFINITY: ("pod affinity over {keys} is not met",),
    Code.POD_ANTI_AFFINITY: ("pod anti-affinity over {key} is violated",),
    Code.SCHEDULING_GATED: ("waits for scheduling gates {gates}",),
    Code.TEMPLATE_NOT_FOUND: ("does not exist: create it, or correct the name that refers to it",),
    Code.NOMINATED: ("is nominated to node {node}, where a place is being made for it",),
    Code.AWAITS_BINDING: ("waits for kube-scheduler to bind it to node {node}, which was launched for it",),
    Code.SCALE_UP_DELAYED: ("no node is launched for it before {until} (annotation pod-scale-up-delay)",),
    Code.COMES_FIRST: ("gets a node too: kube-scheduler would put it onto one of pods behind it in the queue",),
    Code.NOT_TRIED: ("kube-scheduler has not tried it yet",),
    Code.UNSCHEDULABLE: ("kube-scheduler finds no node: {message}", "kube-scheduler finds no node"),
    Code.SCHEDULER_ERROR: ("kube-scheduler fails on it, {error}: {message}", "kube-scheduler fails on it, {error}"),
    Code.NO_CANDIDATE: ("no instance type on offer fits",),
    Code.NOTHING_HAS: (
        "no network card {where} has {name} {wanted}; interfaces that software makes on a node (dummy, veth, VLAN) are "
        "published by {driver} there alone: give the node's ResourceSlices",
        "no accelerator {where} has {name} {wanted}; the nearest is {best} ({accelerator}, {instance_type})",
        "no accelerator {where} has {name} {wanted}; the largest is {accelerator} with {largest} ({instance_type})",
        "no device of {simulated_by} has {name} {wanted}; the nearest is {best}",
        "no device of {simulated_by} has {name} {wanted}; the largest has {largest}",
        "no accelerator {where} has {name} {wanted}: give the ResourceSlices of existing nodes, or add your own "
        "type with `foreslice catalog add`",
    ),
    Code.ALTERNATIVE_NOWHERE: (
        "not alternative {alternative}: no device {where} has {name} {wanted}; the nearest is {best} ({accelerator}, "
        "{instance_type})",
        "not alternative {alternative}: no device {where} has {name} {wanted}; the largest is {accelerator} with "
        "{largest} ({instance_type})",
        "not alternative {alternative}: no device of {simulated_by} has {name} {wanted}; the nearest is {best}",
        "not alternative {alternative}: no device of {simulated_by} has {name} {wanted}; the largest has {largest}",
        "not alternative {alternative}: no device {where} has {name} {wanted}",
    ),
    Code.NO_POOL: (
        "{instance_type} would fit, but pool {pool} excludes it: {why}",
        "{instance_type} would fit, but the nodes of pool {pool} run {running}: {step}, and run the "
        "device plugin of {plugins} (a plan knows of it by its DaemonSet, given with -f or read with --live)",
        "{instance_type} would fit, but pool {pool} excludes it: its nodes run {running}; {step}",
        "{instance_type} would fit, but pool {pool} excludes it: its nodes run no such driver; {step}, and run the "
        "device plugin of {plugins} (a plan knows of it by its DaemonSet, given with -f or read with --live)",
        "{instance_type} would fit, but pool {pool} excludes it: its nodes run no such driver; {step}",
        "{instance_type} would fit in pool {pool} with the device plugin of {plugins}: a plan knows of it by its "
        "DaemonSet, given with -f or read with --live",
        "an offering would fit, but no CapacityPool allows it",
    ),
    Code.GROUPS_FULL: ("no group of {kind} {template} has room for more {instance_type} in {zone} ({most} at most)",),
    Code.POOL_LIMIT: ("the limit of pool {pool} on {resource} ({limit}) is reached",),
    Code.POOL_REFUSES: ("the pool's requirement on {key} excludes it", "the pool excludes it"),
    Code.NO_PRICE: (
        "no price is known in {region}: get prices there with `foreslice catalog sync {cloud} --into DIR --write`, or "
        "set one with `foreslice catalog set TYPE price.{region}=DOLLARS --into DIR --reason WHY`; then give "
        "--catalog DIR",
        "no price is known: get prices with `foreslice catalog sync`, or set one with `foreslice catalog set` or an "
        "InstanceTypeOverlay",
    ),
    Code.NOT_RUNNABLE: ("{problem} (source: {source})", "{problem}", "have no driver in the supported node images"),
    Code.FRACTION_UNASKED: (
        "has {share}: set spec.fractional to Allow in a CapacityPool to be offered parts of a card",
        "offer only a part of a GPU",  # a change that is tried says where a part would do
    ),
    Code.NOT_IN_GROUPS: (
        "no group of {kind} {template} starts {of}: its status has the groups, and what is wrong with them",
        "no group of {kind} {template} starts it: its status has the groups, and what is wrong with them",
        "are started by no group of the node template",
    ),
    Code.ARCHITECTURE_UNASKED: (
        "{architecture} nodes are offered to pods that select kubernetes.io/arch, by pools that require it or a type",
    ),
    Code.SHORTAGE: (
        "insufficient capacity at the provider; tried again at {until}",
        "insufficient capacity at the provider",
    ),
    Code.LAUNCH_FAILED: (
        "the last launch failed, {error}: {message}; tried again at {until}",
        "the last launch failed, {error}; tried again at {until}",
    ),
    Code.QUARANTINED: (
        "is quarantined until {until} after {boots} failed boots, {mispredictions} mispredictions and {drifts} drifts",
        "is quarantined",
    ),
    Code.GANG_INCOMPLETE: (
        "needs {wanted} pods at once, {placed} could be placed",
        "its {missing}, such as a PodGroup, does not exist, which says how many pods start together: create it; if "
        "{scheduler} needs no such object, a plan of its pods does",
        "its {missing}, such as a PodGroup, does not exist, which says how many pods start together: create it",
        "is incomplete",
    ),
    Code.GANG_TOPOLOGY: ("all pods must share one {key}", "all pods must share one topology domain"),
    Code.BUNDLE_SPLIT: (
        "pods that share a claim do not fit one node together; {first} of them come first",
        "pods that share a claim do not fit one node together",
    ),
    Code.BLOCK_ENDS_TOO_SOON: (
        "capacity block {block} ends too soon: {left} s left, {needed} s needed",
        "capacity block {block} ends too soon",
    ),
    Code.BLOCK_DURATION_UNKNOWN: (
        "does not say how long it runs (annotation foreslice.dev/expected-duration or "
        "activeDeadlineSeconds), as block {block} requires",
    ),
    Code.BLOCK_NOT_CONSUMER: ("is not a consumer of capacity block {block}",),
    Code.BLOCK_FULL: ("capacity block {block} is full",),
    Code.BREAKS_OTHER_POD: (
        "its devices would make the selector of pod {pod} fail",
        "its devices would make the selector of another pod fail",
    ),
    Code.SPENDING_GUARD: ("the spending limit {guard} of {limit} is reached",),
    Code.REPLAY_STUCK: ("may find no node, depending on which of equally good nodes kube-scheduler picks",),
    Code.CHEAPER_UNKNOWN: (
        "of {types} instance type(s) that may be cheaper, such as {example} at {price} $/h, it is not known whether "
        "they fit: that depends on {attributes}, which the catalog does not have (-o wide lists them)",
        "of {types} instance type(s) that may be cheaper, such as {example} at {price} $/h, it is not known whether "
        "they fit (-o wide lists them)",
    ),
    Code.PRICE_GUESSED: (
        "the price of {types} is a guess, so another offering may be cheaper: set the price in a catalog overlay",
    ),
    Code.WAITS_FOR_TURN: (
        "one reconcile plans for at most {objects} ProvisioningRequests and CapacityBuffers, and for no more of them "
        "once they have {pods} pods together: this one waits, because its namespace asks for more than others",
    ),
    Code.WORK_BUDGET: (
        "the decision needs more work than a plan may spend on it (settings work.*), last for the selector "
        "{expression}: simplify the selector or raise the budget (`foreslice plan --work 10`)",
        "the plan has no work left for it: its namespace has {kinds} different kinds of pending pods, which share what "
        "a plan may spend (settings work.*). The controller decides some of them in each reconcile; "
        "`foreslice plan` decides more with --work 10, or with fewer pods at once",
        "the decision needs more work than a plan may spend on it (settings work.*): ask for fewer devices or "
        "alternatives at once, or raise the budget (`foreslice plan --work 10`)",
    ),
    Code.PLAN_BUDGET: ("search limit reached: the plan is valid but may not be the cheapest",),
    Code.ADVICE: ("{problem}; {next_step}", "{problem}"),
    Code.UNUSABLE: ("{field}: {problem}",),
    Code.MAY_NOT_ACT: (
        "the controller may only observe, {problem}: install it with rbac.act=true, or put the pool into mode Observe",
    ),
    Code.NO_PROVIDER: (
        "no provider launches from {kind} objects: name a {served} in spec.nodeTemplateRef, or run its provider "
        "(setting cluster.providers)",
    ),
    Code.PROVIDER_REFUSES: ("provider {provider} refuses requests: {message}",),
    Code.SLICE_NOT_LAUNCHED: (
        "{instance_type} would form slices of {hosts} hosts, which Foreslice launches only from a GCPNodeTemplate, and "
        "with 100 hosts at most (docs/gcp.md, TPU slices): leave the type out by spec.requirements",
    ),
    Code.OTHER_AUTOSCALER: (
        "{kind} would launch for {pods}, too: turn that off there, or narrow spec.scope of the pool",
    ),
    Code.FOREIGN_NODES: (
        "nodes with the pool's label that Foreslice has not started: {count}, such as {example} (an upgrade or repair "
        "of a node pool makes such nodes, or a person). Pods may use them, no limit counts them, and Foreslice never "
        "drains or ends them: end their machines when you no longer need them",
    ),
    Code.NO_DRIVER: (
        "no DaemonSet runs it (driver profile {profile}): install the driver, or list what runs in "
        "spec.drivers.profiles of the pool",
    ),
    Code.DRIVER_NEEDS_LABEL: (
        "will not run {driver} on the node, because it selects nodes by {labels}: set such labels in spec.labels "
        "of the pool, or change the DaemonSet",
    ),
    Code.DRIVER_REFUSES_TAINT: (
        "does not tolerate {taint}, so {driver} will not run on the node: let it tolerate the taint, or drop that from "
        "spec.taints of the pool",
    ),
    Code.DRIVER_REFUSES_STARTUP_TAINT: (
        "does not tolerate startup taint {taint}, so the node would never become ready: let it tolerate the taint, or "
        "drop that from spec.startupTaints of the pool",
    ),
    Code.NO_QUOTA: (
        "GKE refuses the pods of DaemonSet {daemon_set} ({driver}): create a ResourceQuota there whose scopeSelector "
        "names PriorityClass {priority_class}",
    ),
    Code.DRIVER_SILENT: (
        "DaemonSet {daemon_set} runs {driver} there, which has published nothing: look at the logs of its pod",
    ),
    Code.DEVICES_TWICE: (
        "{driver} publishes devices that a device plugin offers as {resources}, too: uninstall one of them",
    ),
    Code.GPUDIRECT_BROKEN: (
        "branch {branch} of NVIDIA's driver has no GPUDirect RDMA over EFA on {instance_type}, so collectives end or "
        "use sockets: run branch {instead} with the module parameter {parameter}",
    ),
    Code.DEVICE_PLUGIN_RUNS: (
        "would hand out the devices of {driver} on the same node: keep this device plugin off it by a label in "
        "spec.labels of the pool, or uninstall it",
    ),
    Code.SHARES_CLAIM: ("shares claim {claim}",),
    **NODE_TEXTS,
    **CLASS_TEXTS,
    **VOLUME_TEXTS,
    **SCOPE_TEXTS,
    **REQUEST_TEXTS,
}

_AMOUNTS = frozenset({"wanted", "of_claims", "free"})
_SELECTORS = frozenset({"expression", "expressions"})
_BYTES = frozenset({"memory", "ephemeral-storage"})
_READABLE = 10**30  # greater numbers are written as powers of two
# Facts that the sentence has in other words.
_IMPLIED = frozenset(
    {"cloud", "device_class", "devices", "wanted", "found", "of", "offerings", "stage", "existing", "requests", "pods"}
    | {"keys", "missing_key"}  # `message` names it
    | {"not_working", "may_cost_less", "asking"}  # the first line counts them
)
# What people paste into lists of YAML.
_LISTED: Final = frozenset({"scheduler"})
_PLAIN: Final = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[a-z](?:[\w./=+:@-]*\w)?", re.IGNORECASE)


def text_of(reason: Reason, *, abbreviated: bool = False) -> str:
    """One line: "claim default/gpu, request gpu: 4 of 8 devices". `abbreviated`: long selectors are abbreviated."""
    facts = {key: fact_text(value) for key, value in reason.detail.items() if value not in ("", ())}
    for key in _SELECTORS & facts.keys():
        value = reason.detail[key]
        texts = value if isinstance(value, tuple) else (str(value),)
        facts[key] = ", ".join(map(short_cel if abbreviated else one_line_cel, texts))
    facts |= {key: list_items(reason.detail[key]) for key in _LISTED & facts.keys()}
    if reason.code in SHORT_AMOUNTS:
        facts |= {key: amount_text(facts.get("resource", ""), reason.detail[key]) for key in _AMOUNTS & facts.keys()}
    template = next((t for t in _TEXTS[reason.code] if _fields(t) <= facts.keys()), _TEXTS[reason.code][-1])
    rest = [f"{key} {facts[key]}" for key in facts if key not in _fields(template) and key not in _IMPLIED]
    sentence = template.format_map(_Shown(facts)) + (f" ({', '.join(rest)})" if rest else "")
    # A device of a node that does not exist yet has only driver and name.
    subject = str(reason.subject).replace(f"/{PLACEHOLDER_NODE}/", "/")
    return one_line(f"{subject}: {sentence}" if subject else sentence)


def texts_of(reasons: tuple[Reason, ...], *, abbreviated: bool = False) -> str:
    """All reasons on one line; equal reasons of several devices appear once."""
    return "; ".join(text_of(reason, abbreviated=abbreviated) for reason in joined(reasons))


def joined(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """One reason for each group that differs only in the subject."""
    alike: dict[tuple[Code, object], list[Reason]] = {}
    for reason in reasons:
        alike.setdefault((reason.code, reason.detail), []).append(reason)
    return tuple(_joined(group) for group in alike.values())


def _joined(group: list[Reason]) -> Reason:
    subjects = dict.fromkeys(reason.subject for reason in group)
    if len(subjects) == 1:
        return group[0]
    others = sum(1 + subject.others for subject in subjects) - 1
    return replace(group[0], subject=replace(group[0].subject, others=others))


def amount_text(resource: str, units: Fact) -> str:
    """An amount in scheduler units (thousandths of a core, bytes) in the usual units."""
    assert isinstance(units, int), f"{resource}: {units!r} is not a number of units"
    if abs(units) > _READABLE:
        return _whole(units)
    if resource == "cpu":
        return f"{units / 1000:g}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return f"{units / 2**30:.4g}Gi"
    return str(units)


def _whole(number: int) -> str:
    """A whole number in digits; as a power of two if it is too long to read, or for Python to write."""
    return str(number) if abs(number) <= _READABLE else f"more than 2^{number.bit_length() - 1}"


class _Shown(dict[str, str]):
    """Facts for a template. A missing one shows as "?", so that the rest of the report is still printed."""

    def __missing__(self, key: str) -> str:
        return "?"


def _fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def fact_text(value: Fact) -> str:
    """A fact as text for sentences, in which words that no name is as long as are cut."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _whole(value)
    return with_cut_words(", ".join(value) if isinstance(value, tuple) else str(value))


def list_items(value: Fact) -> str:
    """A fact as items of a list in YAML; in quotes where a text could end the item, or be of another type."""
    texts = map(fact_text, value if isinstance(value, tuple) else (value,))
    return ", ".join(one if _PLAIN.fullmatch(one) else json.dumps(one, ensure_ascii=False) for one in texts)
