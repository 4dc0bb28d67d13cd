"""Finds the pending replicas of a workload that required affinity ties to one node.

Replicas whose required affinity over the hostname selects their own labels are all on one node, wherever the first one
is. kube-scheduler chooses the node for the first one alone, so a new node has to be large enough for all of them.

Only replicas of one workload are tied, and only if their affinity selects no other pod: what other pods ask for has no
influence on them, and a replica with a choice of nodes is not tied. Members of gangs are planned together anyway.
Upstream: plugin interpodaffinity of k8s.io/kubernetes v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.virtual_pods import is_virtual
from autoscaler.planning.demand.labelled_pods import LabelledPods
from autoscaler.scheduling.pod_filters import domains_of_selected, term_of_pod_matches
from autoscaler.scheduling.world import World
from instance_catalog.kubernetes import labels

# The most pods of a namespace that are compared with terms; workloads after that are not tied.
_MOST_COMPARED: Final = 100_000


def joins(pod: Pod, world: World) -> Reason | None:
    """The reason why no new node helps a tied pod: those that it must join, by affinity, are on other nodes."""
    nodes = tuple(sorted(domains_of_selected(pod, world, labels.HOSTNAME)))
    return Reason.of(Code.JOINS_NODE, nodes=nodes) if nodes else None


def ties_of(pods: Sequence[Pod], world: World) -> Mapping[str, str]:
    """By key of a pod that must be on one node with others, the key of a pod that stands for its group."""
    groups: dict[object, list[Pod]] = {}
    for pod in pods:
        if pod.owner and pod.gang is None and needs_a_node_of_others(pod) and not is_virtual(pod.key):
            groups.setdefault((pod.namespace, pod.owner, pod.labels, pod.pod_affinity), []).append(pod)
    tied = [group for group in groups.values() if len(group) > 1]
    if not tied:
        return {}
    # All others that the terms may select, also those for which nothing is bought.
    bound = (pod for state in world.nodes.values() for pod in state.pods)
    waiting = (pod for pod in world.snapshot.pods if pod.node_name is None)
    index, compared = LabelledPods((*bound, *waiting)), Counter[str]()
    found = [group for group in tied if _selects_itself_alone(group, index, world, compared)]
    return {pod.key: group[0].key for group in found for pod in group}


def needs_a_node_of_others(pod: Pod) -> bool:
    """True if its required affinity is about single nodes."""
    return any(term.topology_key == labels.HOSTNAME for term in pod.pod_affinity)


def _selects_itself_alone(group: Sequence[Pod], index: LabelledPods, world: World, compared: Counter[str]) -> bool:
    first = group[0]
    if not all(term_of_pod_matches(term, first, world) for term in first.pod_affinity):
        return False
    selector = first.pod_affinity[0].selector
    near = index.perhaps(selector) if selector is not None else ()
    compared[first.namespace] += len(near)
    if compared[first.namespace] > _MOST_COMPARED:
        return False
    own = {pod.key for pod in group}
    others = (pod for pod in near if pod.key not in own)
    return not any(all(term_of_pod_matches(term, pod, world) for term in first.pod_affinity) for pod in others)
