"""Filters that depend on pods on other nodes: topology spread and inter-pod affinity.

Upstream: plugins podtopologyspread and interpodaffinity of k8s.io/kubernetes v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import TypeVar

from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import Pod, PodAffinityTerm, TopologySpread, WhenUnsatisfiable
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.scheduling.node_filters import selects_node
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.world import World
from instance_catalog.frozen_map import EMPTY

T = TypeVar("T")


def topology_spread(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """PodTopologySpread, hard constraints (podtopologyspread/filtering.go)."""
    hard = [c for c in pod.topology_spread if c.when_unsatisfiable is WhenUnsatisfiable.DO_NOT_SCHEDULE]
    if not hard:
        return ()
    keys = frozenset(c.topology_key for c in hard)
    for number, constraint in enumerate(hard):
        domain = state.node.labels.get(constraint.topology_key)
        if domain is None:
            return (
                Reason.of(
                    Code.TOPOLOGY_SPREAD, Subject("pod", pod.key), key=constraint.topology_key, missing_label=True
                ),
            )
        pods_by_domain, fewest = _pods_by_domain(pod, constraint, keys, world, kind=f"spread {number}")
        if constraint.min_domains is not None and len(pods_by_domain) < constraint.min_domains:
            fewest = 0
        itself = 1 if constraint.selector is not None and constraint.selector.matches(pod.labels) else 0
        skew = pods_by_domain.get(domain, 0) + itself - fewest
        if skew > constraint.max_skew:
            return (
                Reason.of(
                    Code.TOPOLOGY_SPREAD,
                    Subject("pod", pod.key),
                    key=constraint.topology_key,
                    skew=skew,
                    max_skew=constraint.max_skew,
                ),
            )
    return ()


def _pods_by_domain(
    pod: Pod, constraint: TopologySpread, keys: frozenset[str], world: World, *, kind: str
) -> tuple[Mapping[str, int], int]:
    """Matching pods per domain, over the nodes with these labels that count by the constraint's policies, and the
    fewest of a domain."""

    def read(state: NodeState) -> Iterator[tuple[bool, str]]:
        for counted in counted_nodes(pod, constraint, (state,) if keys <= state.node.labels.keys() else ()):
            domain = counted.node.labels[constraint.topology_key]
            yield False, domain
            yield from repeat((True, domain), matching_pods(pod, constraint, counted))

    def shape(found: Counter[tuple[bool, str]]) -> tuple[Mapping[str, int], int]:
        pods = {domain: found[True, domain] for (matching, domain), count in found.items() if count and not matching}
        return pods, min(pods.values(), default=0)

    key = (constraint, keys, pod.namespace, pod.node_selector, pod.affinity, pod.tolerations)
    return world.counts.of(kind, key, world.nodes, read, shape, price=1)


def counted_nodes(pod: Pod, constraint: TopologySpread, states: Iterable[NodeState]) -> Iterator[NodeState]:
    """The nodes that count by the constraint's policies."""
    for state in states:
        if constraint.node_affinity_policy == "Honor" and selects_node(pod, state):
            continue
        if constraint.node_taints_policy == "Honor" and _untolerated(pod, state):
            continue
        yield state


def matching_pods(pod: Pod, constraint: TopologySpread, state: NodeState) -> int:
    """The number of pods of the node that the constraint of `pod` counts."""
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
    repelling = _repelling(pod, state, world)
    if repelling is not None:
        return (Reason.of(Code.POD_ANTI_AFFINITY, Subject("pod", pod.key), key=repelling, existing=True),)
    if not _affinity_met(pod, state, world):
        keys = tuple(sorted({t.topology_key for t in pod.pod_affinity}))
        return (Reason.of(Code.POD_AFFINITY, Subject("pod", pod.key), keys=keys),)
    if pod.pod_anti_affinity:
        return _own_anti_affinity(pod, state, world)
    return ()


def _own_anti_affinity(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """The first term of the pod that matches a pod in the domain of the node."""

    def read(other: NodeState) -> Iterator[tuple[int, str]]:
        for number, term in enumerate(pod.pod_anti_affinity):
            domain = other.node.labels.get(term.topology_key)
            if domain is not None and any(term_of_pod_matches(term, each, world) for each in other.pods):
                yield number, domain

    terms = pod.pod_anti_affinity
    found = world.counts.of("anti-affinity", terms, world.nodes, read, _as_it_is, price=len(terms))
    for number, term in enumerate(terms):
        if (domain := state.node.labels.get(term.topology_key)) is not None and found[number, domain]:
            return (Reason.of(Code.POD_ANTI_AFFINITY, Subject("pod", pod.key), key=term.topology_key, existing=False),)
    return ()


def _repelling(pod: Pod, state: NodeState, world: World) -> str | None:
    """The topology key of an anti-affinity term of a placed pod that matches this pod and applies to a domain of this
    node. The work is not paid by this pod, because other pods cause it."""
    if not any(name in world.nodes for name in world.repellers):
        return None

    def read(placed: NodeState) -> Iterator[tuple[str, str]]:
        labels = placed.node.labels
        near = [key for key in placed.repelling if key in labels]
        for other in placed.pods if near else ():
            for term in other.pod_anti_affinity:
                domain = labels.get(term.topology_key)
                if domain is not None and term_matches(term, pod, world):
                    yield term.topology_key, domain

    found = world.counts.of("repelling", (pod.namespace, pod.labels), world.nodes, read, _as_it_is, price=0)
    return min((key for key, domain in state.node.labels.items() if found[key, domain]), default=None)


def _affinity_met(pod: Pod, state: NodeState, world: World) -> bool:
    """True if all terms have, in this node's domain, a pod that matches *all* terms; or if the pod is the first of its
    kind.

    The first pod of a group that has affinity to itself may be placed on any node with the topology labels.
    """
    terms = pod.pod_affinity
    if not terms:
        return True
    labels = state.node.labels
    if any(term.topology_key not in labels for term in terms):
        return False
    found = _selected_domains(pod, world)
    if all(found[number, labels[term.topology_key]] for number, term in enumerate(terms)):
        return True
    return not any(found.values()) and all(term_of_pod_matches(t, pod, world) for t in terms)


def domains_of_selected(pod: Pod, world: World, key: str) -> frozenset[str]:
    """The values of the topology key on nodes with a pod that all affinity terms of this pod select."""
    numbers = {number for number, term in enumerate(pod.pod_affinity) if term.topology_key == key}
    found = _selected_domains(pod, world).items()
    return frozenset(domain for (number, domain), count in found if count and number in numbers)


def _selected_domains(pod: Pod, world: World) -> Counter[tuple[int, str]]:
    """The pods that all affinity terms of this pod select, by number of the term and domain."""
    terms = pod.pod_affinity

    def read(other: NodeState) -> Iterator[tuple[int, str]]:
        if any(all(term_of_pod_matches(t, p, world) for t in terms) for p in other.pods):
            domains = (other.node.labels.get(term.topology_key) for term in terms)
            yield from ((number, domain) for number, domain in enumerate(domains) if domain is not None)

    return world.counts.of("affinity", terms, world.nodes, read, _as_it_is, price=len(terms))


def _as_it_is(found: Counter[tuple[T, str]]) -> Counter[tuple[T, str]]:
    return found


def term_matches(term: PodAffinityTerm, other: Pod, world: World) -> bool:
    """True if the term selects `other`; a term without selector matches no pod."""
    return term.selector is not None and _in_scope(term, other, world) and term.selector.matches(other.labels)


def term_of_pod_matches(term: PodAffinityTerm, other: Pod, world: World) -> bool:
    """The same for a term of the pod that is being scheduled.

    Up to 1.36 upstream also evaluates such a namespaceSelector without labels, so that `NotIn` and `DoesNotExist`
    select every namespace (mergeAffinityTermNamespacesIfNotEmpty gets a copy of the term, interpodaffinity/plugin.go).
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
