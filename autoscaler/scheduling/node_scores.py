"""Scores that need one node and one pod: taints, preferred node affinity, resources, images.

Upstream: plugins tainttoleration, nodeaffinity, noderesources and imagelocality of k8s.io/kubernetes v1.36.3. All
divisions are of whole numbers, or of floats where upstream has floats: the results are equal, not approximate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from autoscaler.model.pod import Pod, PreferredTerm
from autoscaler.scheduling.feasible import MOST, Feasible, normalized
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.resources import pod_requests, scored_requests
from autoscaler.scheduling.world import World
from instance_catalog.kubernetes.node_selector import BadSelectorError, NodeSelector, matches

_MIB: Final = 1024 * 1024
_LEAST_IMAGE, _MOST_IMAGE = 23 * _MIB, 1000 * _MIB
_RESOURCES = ("cpu", "memory")


def taint_toleration(pod: Pod, feasible: Sequence[Feasible], _: World) -> Sequence[int]:
    """TaintToleration: the fewer PreferNoSchedule taints are not tolerated, the better."""
    return normalized([_disliked(pod, node.state) for node in feasible], reverse=True)


def _disliked(pod: Pod, state: NodeState) -> int:
    return sum(
        1
        for taint in state.node.taints
        if taint.effect == "PreferNoSchedule" and not any(t.tolerates(taint) for t in pod.tolerations)
    )


def node_affinity(pod: Pod, feasible: Sequence[Feasible], _: World) -> Sequence[int]:
    """NodeAffinity: the weights of the preferred terms that the node meets."""
    if not pod.preferred_affinity:
        return ()
    return normalized(
        [sum(entry.weight for entry in pod.preferred_affinity if _prefers(entry, node.state)) for node in feasible]
    )


def _prefers(entry: PreferredTerm, state: NodeState) -> bool:
    """True if a node meets the term. A term that the API server would have refused prefers nothing."""
    try:
        return matches(NodeSelector((entry.term,)), name=state.node.name, labels=state.node.labels)
    except BadSelectorError:
        return False


def least_allocated(pod: Pod, feasible: Sequence[Feasible], _: World) -> Sequence[int]:
    """NodeResourcesFit, strategy LeastAllocated: the free share of cpu and memory (least_allocated.go)."""
    wanted = scored_requests(pod, bound=False)
    return [_free_share(wanted, node.state) for node in feasible]


def _free_share(wanted: tuple[int, int], state: NodeState) -> int:
    present = [scored_requests(other, bound=True) for other in state.pods]
    shares = []
    for index, resource in enumerate(_RESOURCES):
        allocatable = state.allocatable.get(resource, 0)
        if allocatable:
            requested = wanted[index] + sum(other[index] for other in present)
            shares.append(MOST * (allocatable - requested) // allocatable if requested <= allocatable else 0)
    return sum(shares) // len(shares) if shares else 0


def balanced_allocation(pod: Pod, feasible: Sequence[Feasible], world: World) -> Sequence[int]:
    """NodeResourcesBalancedAllocation: how much the pod brings the used shares of cpu and memory together.

    Up to 1.35: how close they are then. A pod that requests neither is not scored (balanced_allocation.go).
    """
    wanted = pod_requests(pod)
    if not any(wanted.get(resource) for resource in _RESOURCES):
        return ()
    if not world.profile.scheduler.balance_is_gain:
        return [_balance(node.state, wanted) for node in feasible]
    nothing: dict[str, int] = {}
    half = MOST // 2
    return [half + (half + _balance(n.state, wanted) - _balance(n.state, nothing)) // 2 for n in feasible]


def _balance(state: NodeState, wanted: dict[str, int]) -> int:
    """100 if equal shares of cpu and memory are used, less by half of the difference."""
    shares = [
        min((state.used.get(resource, 0) + wanted.get(resource, 0)) / state.allocatable[resource], 1.0)
        for resource in _RESOURCES
        if state.allocatable.get(resource)
    ]
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == len(_RESOURCES) else 0.0
    return int((1 - deviation) * MOST)


def image_locality(pod: Pod, feasible: Sequence[Feasible], world: World) -> Sequence[int]:
    """ImageLocality: bytes of the pod's images that the node has, each by the share of nodes that have it."""
    containers, behaviour = (*pod.init_containers, *pod.containers), world.profile.scheduler
    mounted = pod.image_volumes if behaviour.image_volumes_scored else ()
    names = [_tagged(name) for name in (*(container.image for container in containers), *mounted)]
    spread = Counter(name for state in world.states() for name in state.node.images.keys() & set(names))
    total = len(world.nodes)
    most = _MOST_IMAGE * (len(names) if behaviour.image_volumes_counted else len(containers))

    def score(state: NodeState) -> int:
        present = sum(int(float(size) * (spread[name] / total)) for name, size in _sizes(names, state))
        return MOST * (min(max(present, _LEAST_IMAGE), most) - _LEAST_IMAGE) // (most - _LEAST_IMAGE)

    return [score(node.state) for node in feasible]


def _sizes(names: Iterable[str], state: NodeState) -> Iterable[tuple[str, int]]:
    return ((name, state.node.images[name]) for name in names if name in state.node.images)


def _tagged(image: str) -> str:
    """The name with its tag, ":latest" if it has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
