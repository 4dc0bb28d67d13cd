"""The table of kube-scheduler's score plugins with the weights of its default profile (v1.36.3).

Filters find the nodes that a pod fits; kube-scheduler chooses one with the highest total, any of those that tie.
Weights: pkg/scheduler/apis/config/v1/default_plugins.go, the same from 1.34 to 1.37; where plugins differ, the rules
follow the profile. VolumeBinding would score with a shape in its configuration, which the default does not have. In a
cluster of more than 100 nodes upstream checks only a part: see docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from autoscaler.model.pod import Pod
from autoscaler.model.verdict import Fits
from autoscaler.scheduling.claim_scores import dynamic_resources
from autoscaler.scheduling.feasible import Feasible
from autoscaler.scheduling.node_scores import (
    balanced_allocation,
    image_locality,
    least_allocated,
    node_affinity,
    taint_toleration,
)
from autoscaler.scheduling.pod_scores import inter_pod_affinity, topology_spread
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass

# The normalised score of each feasible node, 0 to 100; empty if the plugin is not used.
Rule: TypeAlias = Callable[[Pod, Sequence[Feasible], World], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Score:
    """A plugin's name in Kubernetes, its weight, and its rule."""

    plugin: str
    weight: int
    rule: Rule


SCORES: tuple[Score, ...] = (
    Score("TaintToleration", 3, taint_toleration),
    Score("NodeAffinity", 2, node_affinity),
    Score("NodeResourcesFit", 1, least_allocated),
    Score("PodTopologySpread", 2, topology_spread),
    Score("InterPodAffinity", 2, inter_pod_affinity),
    Score("DynamicResources", 2, dynamic_resources),
    Score("NodeResourcesBalancedAllocation", 1, balanced_allocation),
    Score("ImageLocality", 1, image_locality),
)


def plugin_scores(pod: Pod, fitting: Mapping[str, Fits], world: World) -> dict[str, dict[str, int]]:
    """For each used plugin: its weighted score of each node of `fitting`, the verdicts by node name."""
    feasible = [Feasible(world.nodes[name], verdict) for name, verdict in fitting.items()]
    found = {}
    for entry in SCORES:
        given = entry.rule(pod, feasible, world)
        if given:
            found[entry.plugin] = {name: entry.weight * score for name, score in zip(fitting, given, strict=True)}
    return found


def scores(pod: Pod, fitting: Mapping[str, Fits], world: World) -> dict[str, int]:
    """The total of every node of `fitting` for the pod."""
    given = plugin_scores(pod, fitting, world).values()
    return {name: sum(by_node[name] for by_node in given) for name in fitting}


def likely_nodes(pod: Pod, fitting: Mapping[str, Fits], world: World) -> tuple[str, ...]:
    """The nodes that kube-scheduler may choose for the pod, in the order of `fitting`; empty if that is empty."""
    if len(fitting) <= 1:
        return tuple(fitting)
    totals = scores(pod, fitting, world)
    best = max(totals.values())
    return tuple(name for name, total in totals.items() if total == best)
