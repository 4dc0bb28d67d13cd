"""Scores that depend on pods on other nodes: soft topology spread and preferred pod (anti-)affinity.

Upstream: plugins podtopologyspread and interpodaffinity of k8s.io/kubernetes v1.36.3 (scoring.go of each).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import floor, log
from typing import Final

from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod, PodAffinityTerm, TopologySpread, WhenUnsatisfiable
from autoscaler.scheduling.feasible import MOST, Feasible
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.pod_filters import counted_nodes, matching_pods, term_matches, term_of_pod_matches
from autoscaler.scheduling.world import World
from instance_catalog.kubernetes import labels

_HARD_AFFINITY_WEIGHT: Final = 1  # of the required terms of existing pods: InterPodAffinityArgs
# The constraints of pods of a Service or controller that have none (podtopologyspread/plugin.go).
_SYSTEM_DEFAULTS: Final = ((labels.HOSTNAME, 3), (labels.ZONE, 5))


def topology_spread(pod: Pod, feasible: Sequence[Feasible], world: World) -> Sequence[int]:
    """PodTopologySpread, soft constraints: domains with fewer matching pods are better.

    Nodes without one of the topology labels get 0, unless the constraints are the system's defaults.
    """
    constraints = [c for c in pod.topology_spread if c.when_unsatisfiable is WhenUnsatisfiable.SCHEDULE_ANYWAY]
    own = bool(pod.topology_spread)
    if not own:
        constraints = _defaults(pod, world)
    if not constraints:
        return ()
    keys = {c.topology_key for c in constraints} if own else frozenset[str]()
    taking_part = [keys <= node.state.node.labels.keys() for node in feasible]
    raw = [0.0] * len(feasible)
    for constraint in constraints:
        candidates = [node.state for node, part in zip(feasible, taking_part, strict=True) if part]
        counts = _counts(pod, constraint, candidates, keys, world)
        weight = log(len(counts) + 2)
        for index, (node, part) in enumerate(zip(feasible, taking_part, strict=True)):
            key = _domain(constraint, node.state)
            if part and key is not None:
                raw[index] += counts[key] * weight + (constraint.max_skew - 1)
    return _reversed([floor(score + 0.5) if part else None for score, part in zip(raw, taking_part, strict=True)])


def _counts(
    pod: Pod, constraint: TopologySpread, candidates: Sequence[NodeState], keys: frozenset[str] | set[str], world: World
) -> Mapping[str, int]:
    """Matching pods in each domain of the candidates. A node as domain counts its own pods, whatever the policies."""
    if constraint.topology_key == labels.HOSTNAME:
        return {state.node.name: matching_pods(pod, constraint, state) for state in candidates}
    found: Counter[str] = Counter({state.node.labels.get(constraint.topology_key, ""): 0 for state in candidates})
    for state in counted_nodes(pod, constraint, [s for s in world.states() if keys <= s.node.labels.keys()]):
        domain = state.node.labels.get(constraint.topology_key, "")
        if domain in found:
            found[domain] += matching_pods(pod, constraint, state)
    return found


def _domain(constraint: TopologySpread, state: NodeState) -> str | None:
    """The key of the node in `_counts`; None if it does not have the label."""
    domain = state.node.labels.get(constraint.topology_key)
    return state.node.name if domain is not None and constraint.topology_key == labels.HOSTNAME else domain


def _reversed(raw: Sequence[int | None]) -> list[int]:
    given = [score for score in raw if score is not None]
    low, high = min(given, default=0), max(given, default=0)
    return [0 if score is None else MOST if high == 0 else MOST * (high + low - score) // high for score in raw]


def _defaults(pod: Pod, world: World) -> list[TopologySpread]:
    """The system's constraints over the pods that the pod's Services and its controller select."""
    requirements = tuple(
        requirement
        for selection in world.snapshot.selections
        if selection.namespace == pod.namespace
        and (
            selection.selector.matches(pod.labels)
            if selection.kind == "Service"
            else pod.owner == f"{selection.kind}/{selection.name}"
        )
        for requirement in selection.selector.requirements
    )
    if not requirements:
        return []
    selector = LabelSelector(requirements)
    return [TopologySpread(skew, key, WhenUnsatisfiable.SCHEDULE_ANYWAY, selector) for key, skew in _SYSTEM_DEFAULTS]


def inter_pod_affinity(pod: Pod, feasible: Sequence[Feasible], world: World) -> Sequence[int]:
    """InterPodAffinity: the weights of matching preferred terms, of the pod and of existing pods.

    Required affinity terms of existing pods count as preferred ones of weight 1.
    """
    weights: Counter[tuple[str, str]] = Counter()
    matched = False
    for state in world.states():
        for weight, term in _matching_terms(pod, state, world):
            domain = state.node.labels.get(term.topology_key)
            if domain is not None:
                matched = True
                weights[term.topology_key, domain] += weight
    if not matched:
        return ()
    raw = [
        sum(weight for (key, domain), weight in weights.items() if node.state.node.labels.get(key) == domain)
        for node in feasible
    ]
    low, high = min(raw, default=0), max(raw, default=0)
    return [int(float(MOST) * ((score - low) / (high - low))) if high > low else 0 for score in raw]


def _matching_terms(pod: Pod, state: NodeState, world: World) -> Iterator[tuple[int, PodAffinityTerm]]:
    """Terms for (or, with a negative weight, against) the domains of a node, each as often as it matches."""
    for other in state.pods:
        for sign, mine, theirs in (
            (1, pod.preferred_pod_affinity, other.preferred_pod_affinity),
            (-1, pod.preferred_pod_anti_affinity, other.preferred_pod_anti_affinity),
        ):
            yield from ((sign * p.weight, p.term) for p in mine if term_of_pod_matches(p.term, other, world))
            yield from ((sign * p.weight, p.term) for p in theirs if term_matches(p.term, pod, world))
        for term in other.pod_affinity:
            if term_matches(term, pod, world):
                yield _HARD_AFFINITY_WEIGHT, term
