"""Placements on both sides: which plugins refuse a pod on which node, each on its own, and the scores of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import TypeVar

from autoscaler.dra.allocation.search import SearchBudget
from autoscaler.dra.filter import filter_claims
from autoscaler.kube.device_class import parse_device_class, parse_device_taint_rule
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import Metadata, parse_metadata
from autoscaler.kube.node import parse_node
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.kube.selectors import parse_selection
from autoscaler.kube.storage import (
    parse_capacity_tracker,
    parse_persistent_volume,
    parse_persistent_volume_claim,
    parse_storage_capacity,
    parse_storage_class,
    parse_volume_attachment,
    parse_volume_limits,
)
from autoscaler.kube.workloads.gang import parse_pod_group
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from autoscaler.scheduling.filters import FILTERS
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.scores import plugin_scores
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from tests.oracle.comparing.allocations import described_allocation, plain
from tests.oracle.comparing.difference import Difference, Field
from tests.oracle.upstream import Given, Json, Release

T = TypeVar("T")
# Upstream writes "!" behind a plugin that ends the attempt; "?" stands behind one that the simulator cannot answer for.
_MARKS: dict[type[Verdict], str] = {DoesNotFit: "", Fatal: "!", Unknown: "?"}
_OPEN = frozenset({Code.UNSUPPORTED, Code.CONTESTED_RESOURCE})
# What is compared are decisions, so nothing may be left undecided for want of steps.
_BUDGET = SearchBudget(steps=10**6)
_SPECIAL = "<extended-resources>"  # upstream's name for the claim that stands for extended resources


def question(case: Json, _: Release) -> Json:
    """What upstream is asked."""
    return dict(case)


def simulated(case: Json, release: Release) -> Given:
    """What the simulator decides."""
    problems = Problems()
    snapshot = snapshot_of(case, release, problems)
    pod = parse_pod(case["pod"], problems)
    if problems.errors:
        return Given({"outcome": "refused", "error": "; ".join(f"{p.field}: {p.message}" for p in problems)}, 0)
    world = World.of(snapshot)
    start = perf_counter_ns()
    verdicts = {state.node.name: _claims(pod, state, world) for state in world.states()}
    refused = {
        state.node.name: sorted(_refusing(pod, state, world, verdicts[state.node.name])) for state in world.states()
    }
    fitting = {name: v for name, v in verdicts.items() if isinstance(v, Fits) and not refused[name]}
    scores = plugin_scores(pod, fitting, world)
    taken = perf_counter_ns() - start
    allocations = {name: _allocations(verdict) for name, verdict in fitting.items()}
    outcome = "unknown" if any(text.endswith("?") for found in refused.values() for text in found) else "decided"
    return Given({"outcome": outcome, "refused": refused, "scores": scores, "allocations": allocations}, taken)


def _allocations(verdict: Fits) -> Json:
    found: Json = {}
    for key, allocation in verdict.allocations.items():
        name = key.partition("/")[2]
        # The claim for extended resources is made up, and upstream gives it a name only when it is written.
        name = _SPECIAL if name.endswith("-extended-resources") else name
        found[name] = described_allocation(allocation)
    return found


def _refusing(pod: Pod, state: NodeState, world: World, verdict: Verdict) -> list[str]:
    found = ["SchedulingGates"] if pod.scheduling_gates else []
    for entry in FILTERS:
        reasons = entry.rule(pod, state, world)
        if reasons:
            unknown = any(reason.code in _OPEN for reason in reasons)
            found.append(entry.plugin + (_MARKS[Unknown] if unknown else ""))
    if not isinstance(verdict, Fits):
        found.append("DynamicResources" + _MARKS[type(verdict)])
    return found


def _claims(pod: Pod, state: NodeState, world: World) -> Verdict:
    return filter_claims(
        pod,
        state.node,
        claims=world.claims,
        extended_resources=world.extended_resources,
        devices=world.devices,
        allocated=world.allocated,
        pod_groups=world.snapshot.gangs,
        budget=_BUDGET,
    )


def snapshot_of(case: Json, release: Release, problems: Problems) -> Snapshot:
    """The case's objects as a manifest's readers would read them."""

    def read(field: str, parse: Callable[[object, Problems], T]) -> tuple[T, ...]:
        return tuple(parse(raw, problems) for raw in case.get(field, ()))

    claims = read("claims", parse_resource_claim)
    volume_claims = read("volumeClaims", parse_persistent_volume_claim)
    limits = dict(read("csiNodes", parse_volume_limits))
    selections = [
        parse_selection(raw, kind, problems)
        for kind, field in (("Service", "services"), ("ReplicaSet", "replicaSets"), ("StatefulSet", "statefulSets"))
        for raw in case.get(field, ())
    ]
    profile = release.profile
    if "taintRulesInForce" in case:
        profile = profile.with_gates(device_taint_rules=case["taintRulesInForce"])
    if case.get("groupClaimsInForce"):
        profile = profile.with_gates(generic_workload=True, workload_resource_claims=True)
    groups = read("podGroups", parse_pod_group)
    return Snapshot(
        profile=profile,
        nodes=tuple(_with_limits(node, limits) for node in read("nodes", parse_node)),
        pods=read("pods", parse_pod),
        claims=FrozenMap({claim.key: claim for claim in claims}),
        gangs=FrozenMap({group.key: group for group in groups}),
        classes=read("classes", parse_device_class),
        slices=read("slices", parse_resource_slice),
        taint_rules=read("taintRules", parse_device_taint_rule),
        namespaces=FrozenMap({found.name: found.labels for found in read("namespaces", _metadata)}),
        selections=tuple(entry for entry in selections if entry is not None),
        volumes=FrozenMap({volume.name: volume for volume in read("volumes", parse_persistent_volume)}),
        volume_claims=FrozenMap({claim.key: claim for claim in volume_claims}),
        storage_classes=FrozenMap({entry.name: entry for entry in read("storageClasses", parse_storage_class)}),
        attachments=tuple(found for found in read("volumeAttachments", parse_volume_attachment) if found is not None),
        storage_capacities=read("storageCapacities", parse_storage_capacity),
        capacity_trackers=frozenset(name for name in read("csiDrivers", parse_capacity_tracker) if name is not None),
    )


def _metadata(raw: object, problems: Problems) -> Metadata:
    return parse_metadata(Fields(raw, problems))


def _with_limits(node: Node, limits: dict[str, FrozenMap[str, int]]) -> Node:
    """The node as its CSINode says, or as it says by not being there."""
    return replace(node, volume_limits=limits.get(node.name, FrozenMap()))


def _same(ours: list[str], theirs: list[str]) -> bool:
    """Whether the same plugins refuse; where an extended resource is short, NodeResourcesFit is enough.

    If nobody serves the resource at all, DynamicResources refuses as well, before it looks at any claim.
    """
    claims = "DynamicResources"
    if "NodeResourcesFit" in ours and claims in theirs:
        return [name for name in ours if name.rstrip("!") != claims] == [name for name in theirs if name != claims]
    return ours == theirs


def differences(found: Json, expected: Json) -> tuple[Difference, ...]:
    """What differs between the simulator's answer and upstream's; the first suffices."""
    return tuple(_differences(found, expected))[:1]


def _differences(found: Json, expected: Json) -> Iterator[Difference]:
    if found["outcome"] != expected["outcome"]:
        why = found.get("error") or expected.get("error")
        yield Difference(Field.OUTCOME, f"{found['outcome']} instead of {expected['outcome']} ({why})")
        return
    for node, names in expected["refused"].items():
        if not _same(found["refused"].get(node, []), names):
            wrong = sorted(set(found["refused"].get(node, ())) ^ set(names))
            text = f"{','.join(wrong)} differ: {found['refused'].get(node)} instead of {names}"
            yield Difference(Field.REFUSAL, text, node)
            return
    # Cases that were recorded before there were scores have none.
    wanted = expected["scores"] if "scores" in expected else found["scores"]
    for plugin in sorted(found["scores"].keys() | wanted):
        if found["scores"].get(plugin) != wanted.get(plugin):
            yield Difference(Field.SCORE, f"{found['scores'].get(plugin)} instead of {wanted.get(plugin)}", plugin)
    # Nor allocations.
    for node, given in expected.get("allocations", {}).items():
        ours, theirs = plain(found["allocations"][node]), plain(given)
        if ours != theirs:
            yield Difference(Field.ALLOCATION, f"{ours} instead of {theirs}", node)
