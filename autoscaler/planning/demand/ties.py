"""Finds the pending pods that required affinity ties to one node.

A pod whose required affinity over the hostname selects a pod needs the node of that pod. Pods that select each other,
such as the replicas of a Deployment with affinity to its own labels, are all on one node, wherever the first one is.
kube-scheduler chooses the node for the first one alone, so a new node has to be large enough for all of them.

Pods with a choice, because they select several pods that need not be on one node, are not tied.
Upstream: plugin interpodaffinity of k8s.io/kubernetes v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.reason import Code, Reason
from autoscaler.model.virtual_pods import is_virtual
from autoscaler.planning.demand.labelled_pods import LabelledPods
from autoscaler.scheduling.pod_filters import domains_of_selected, term_of_pod_matches
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes import labels

Terms: TypeAlias = tuple[PodAffinityTerm, ...]


@dataclass(frozen=True, slots=True)
class Ties:
    """By key of the pod, the key of a pod that stands for its group; and how many others have to be placed before it:
    0 for a pod that may be the first."""

    group: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)


NO_TIES = Ties()


def needs_a_node_of_others(pod: Pod) -> bool:
    """True if its required affinity is about single nodes."""
    return any(term.topology_key == labels.HOSTNAME for term in pod.pod_affinity)


def joins(pod: Pod, world: World) -> Reason | None:
    """The reason why no new node helps a pod: the pods that it must join, by affinity, are on other nodes."""
    if not needs_a_node_of_others(pod):
        return None
    nodes = tuple(sorted(domains_of_selected(pod, world, labels.HOSTNAME)))
    return Reason.of(Code.JOINS_NODE, nodes=nodes) if nodes else None


def ties_of(pods: Sequence[Pod], world: World) -> Ties:
    """The pods that must be on one node, none of which has to join a pod that runs."""
    if not any(map(needs_a_node_of_others, pods)):
        return NO_TIES
    able = {pod.key: pod for pod in _able(pods, world)}
    asking: dict[Terms, list[Pod]] = {}
    for pod in able.values():
        if needs_a_node_of_others(pod):
            asking.setdefault(pod.pod_affinity, []).append(pod)
    bound = (pod for state in world.nodes.values() for pod in state.pods)
    index = LabelledPods((*bound, *pods))
    selected = {terms: _selected(terms, index, world) for terms in asking}
    joinable = {terms: found for terms, found in selected.items() if found and found <= able.keys()}
    ties = _Ties(able)
    for terms, found in joinable.items():
        ties.tie_equals(terms, found, asking, joinable, able)
    ties.join(asking, joinable)
    return Ties({key: ties.find(key) for key in ties.tied}, ties.after)


def _able(pods: Iterable[Pod], world: World) -> Iterator[Pod]:
    """Without pods of gangs that may start in part, and without those of CapacityBuffers."""
    members = Counter(pod.gang.key for pod in pods if pod.gang)
    gangs = world.snapshot.gangs
    for pod in pods:
        whole = pod.gang is not None and members[pod.gang.key] <= gangs[pod.gang.key].min_count
        if whole or (pod.gang is None and not is_virtual(pod.key)):
            yield pod


def _selected(terms: Terms, index: LabelledPods, world: World) -> frozenset[str]:
    """The keys of the pods that all of the terms select; nothing if one of them is on a node."""
    selector = terms[0].selector
    near = index.perhaps(selector) if selector is not None else ()
    found = [pod for pod in near if all(term_of_pod_matches(term, pod, world) for term in terms)]
    return frozenset() if any(pod.node_name for pod in found) else frozenset(pod.key for pod in found)


class _Ties:
    """Groups that grow."""

    def __init__(self, pods: Mapping[str, Pod]) -> None:
        self._pods = pods
        self._leader: dict[str, str] = {}
        self.after: dict[str, int] = {}

    @property
    def tied(self) -> Iterable[str]:
        return self._leader.keys()

    def find(self, key: str) -> str:
        while (leader := self._leader.get(key, key)) != key:
            key = leader
        return key

    def tie(self, keys: Sequence[str]) -> None:
        """Put the pods of a gang, and those of no gang, into one group each."""
        first: dict[object, str] = {}
        for key in keys:
            gang = self._pods[key].gang
            start = self.find(first.setdefault(gang.key if gang else None, key))
            self._leader.setdefault(start, start)
            self._leader[self.find(key)] = start

    def tie_equals(
        self,
        terms: Terms,
        found: frozenset[str],
        asking: Mapping[Terms, Sequence[Pod]],
        joinable: Mapping[Terms, frozenset[str]],
        able: Mapping[str, Pod],
    ) -> None:
        """Tie the pods with these terms that select each other, and the pods of others that do."""
        own = [pod.key for pod in asking[terms] if pod.key in found]
        others = dict.fromkeys(able[key].pod_affinity for key in sorted(found))
        if not own or any(other not in joinable for other in others):
            return  # one of the selected pods may be placed anywhere
        self.tie(own)
        for other in others:
            back = [pod.key for pod in asking[other] if pod.key in found]
            mutual = [pod.key for pod in asking[terms] if pod.key in joinable[other]]
            if mutual and back:
                self.tie([*mutual, *back])

    def join(self, asking: Mapping[Terms, Sequence[Pod]], joinable: Mapping[Terms, frozenset[str]]) -> None:
        """Add the pods that select only pods of one group, or one pod, until nothing is added."""
        waiting = dict(joinable)
        while waiting:
            ready = [terms for terms, found in waiting.items() if len({self.find(key) for key in found}) == 1]
            for terms in ready:
                found = waiting.pop(terms)
                depth = 1 + max(self.after.get(key, 0) for key in found)
                joining = [pod.key for pod in asking[terms] if pod.key not in found and self.find(pod.key) == pod.key]
                self.after |= dict.fromkeys(joining, depth)
                if joining:
                    self.tie([*sorted(found)[:1], *joining])
            if not ready:
                return
