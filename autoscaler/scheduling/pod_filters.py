"""Filters that look at pods on other nodes: topology spread and inter-pod affinity.

Upstream: plugins podtopologyspread and interpodaffinity of k8s.io/kubernetes v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod, PodAffinityTerm, TopologySpread, WhenUnsatisfiable
from autoscaler.model.reason import Code, Reason
from autoscaler.scheduling.node_filters import selects_node
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.frozen_map import EMPTY


def topology_spread(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """PodTopologySpread, hard constraints (podtopologyspread/filtering.go)."""
    hard = [c for c in pod.topology_spread if c.when_unsatisfiable is WhenUnsatisfiable.DO_NOT_SCHEDULE]
    if not hard:
        return ()
    keys = {c.topology_key for c in hard}
    counted = [s for s in world.states() if keys <= s.node.labels.keys()]
    for constraint in hard:
        domain = state.node.labels.get(constraint.topology_key)
        if domain is None:
            return (Reason.of(Code.TOPOLOGY_SPREAD, f"pod {pod.key}", key=constraint.topology_key, missing_label=True),)
        pods_by_domain = _pods_by_domain(pod, constraint, counted)
        fewest = min(pods_by_domain.values(), default=0)
        if constraint.min_domains is not None and len(pods_by_domain) < constraint.min_domains:
            fewest = 0
        itself = 1 if constraint.selector is not None and constraint.selector.matches(pod.labels) else 0
        skew = pods_by_domain.get(domain, 0) + itself - fewest
        if skew > constraint.max_skew:
            return (
                Reason.of(
                    Code.TOPOLOGY_SPREAD,
                    f"pod {pod.key}",
                    key=constraint.topology_key,
                    skew=skew,
                    max_skew=constraint.max_skew,
                ),
            )
    return ()


def _pods_by_domain(pod: Pod, constraint: TopologySpread, states: list[NodeState]) -> Counter[str]:
    """Matching pods per domain, over the nodes that the constraint's policies let count."""
    found: Counter[str] = Counter()
    for state in counted_nodes(pod, constraint, states):
        found[state.node.labels[constraint.topology_key]] += matching_pods(pod, constraint, state)
    return found


def counted_nodes(pod: Pod, constraint: TopologySpread, states: Iterable[NodeState]) -> Iterator[NodeState]:
    """The nodes that the constraint's policies let count."""
    for state in states:
        if constraint.node_affinity_policy == "Honor" and selects_node(pod, state):
            continue
        if constraint.node_taints_policy == "Honor" and _untolerated(pod, state):
            continue
        yield state


def matching_pods(pod: Pod, constraint: TopologySpread, state: NodeState) -> int:
    """How many pods of the node the constraint of `pod` counts."""
    selector = constraint.selector
    if selector is None or not selector.requirements:  # upstream counts nothing for an empty selector
        return 0
    return sum(
        1
        for other in state.pods
        if other.namespace == pod.namespace and not other.deleting and selector.matches(other.labels)
    )


def _untolerated(pod: Pod, state: NodeState) -> bool:
    return any(
        taint.effect in ("NoSchedule", "NoExecute") and not any(t.tolerates(taint) for t in pod.tolerations)
        for taint in state.node.taints
    )


def inter_pod_affinity(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """InterPodAffinity: existing pods' anti-affinity, then the pod's own affinity and anti-affinity."""
    repelling = next(_repelling(pod, state, world), None)
    if repelling is not None:
        return (Reason.of(Code.POD_ANTI_AFFINITY, f"pod {pod.key}", key=repelling.topology_key, existing=True),)
    if not _affinity_met(pod, state, world):
        keys = tuple(sorted({t.topology_key for t in pod.pod_affinity}))
        return (Reason.of(Code.POD_AFFINITY, f"pod {pod.key}", keys=keys),)
    for term in pod.pod_anti_affinity:
        if any(term_of_pod_matches(term, other, world) for other in _pods_beside(state, term.topology_key, world)):
            return (Reason.of(Code.POD_ANTI_AFFINITY, f"pod {pod.key}", key=term.topology_key, existing=False),)
    return ()


def _repelling(pod: Pod, state: NodeState, world: World) -> Iterator[PodAffinityTerm]:
    """The anti-affinity terms of placed pods that match this pod and are about a domain in which this node is.

    Domains are compared first: a pod may have thousands of terms, and most are about the node that it is on.
    """
    for placed in (world.nodes[name] for name in world.repellers if name in world.nodes):
        near = {key for key in placed.repelling if _same_domain(key, placed, state)}
        for other in placed.pods if near else ():
            for term in other.pod_anti_affinity:
                if term.topology_key in near and term_matches(term, pod, world):
                    yield term


def _same_domain(key: str, one: NodeState, other: NodeState) -> bool:
    domain = one.node.labels.get(key)
    return domain is not None and other.node.labels.get(key) == domain


def _affinity_met(pod: Pod, state: NodeState, world: World) -> bool:
    """All terms have, in this node's domain, a pod that matches *all* terms; or the pod is the first of its kind.

    The first pod of a group that has affinity to itself may land anywhere that carries the topology labels.
    """
    terms = pod.pod_affinity
    if not terms:
        return True
    labels = state.node.labels
    if any(term.topology_key not in labels for term in terms):
        return False
    anywhere = False
    met = [False] * len(terms)
    for other_state in world.states():
        matching = [p for p in other_state.pods if all(term_of_pod_matches(t, p, world) for t in terms)]
        for index, term in enumerate(terms):
            domain = other_state.node.labels.get(term.topology_key)
            if matching and domain is not None:
                anywhere = True
                met[index] = met[index] or domain == labels[term.topology_key]
    if all(met):
        return True
    return not anywhere and all(term_of_pod_matches(t, pod, world) for t in terms)


def _pods_beside(state: NodeState, key: str, world: World) -> Iterator[Pod]:
    """The pods in the node's domain of a topology key; none if the node has no such label."""
    domain = state.node.labels.get(key)
    if domain is not None:
        for other in world.states():
            if other.node.labels.get(key) == domain:
                yield from other.pods


def term_matches(term: PodAffinityTerm, other: Pod, world: World) -> bool:
    """Whether `other` is one of the pods the term speaks of; a term without selector matches none."""
    return term.selector is not None and _in_scope(term, other, world) and term.selector.matches(other.labels)


def term_of_pod_matches(term: PodAffinityTerm, other: Pod, world: World) -> bool:
    """The same for a term of the pod that is being scheduled.

    Up to 1.36 upstream asks such a namespaceSelector about no labels as well, so that `NotIn` and `DoesNotExist` select
    every namespace (mergeAffinityTermNamespacesIfNotEmpty gets a copy of the term, interpodaffinity/plugin.go).
    """
    if term_matches(term, other, world):
        return True
    if not world.profile.scheduler.selector_asked_without_labels:
        return False
    selector, scope = term.selector, term.namespace_selector
    return selector is not None and scope is not None and scope.matches(EMPTY) and selector.matches(other.labels)


def _in_scope(term: PodAffinityTerm, other: Pod, world: World) -> bool:
    selector: LabelSelector | None = term.namespace_selector
    return other.namespace in term.namespaces or (
        selector is not None and selector.matches(world.namespace_labels(other.namespace))
    )
