"""The table of kube-scheduler's filter plugins, in the order of its default profile (v1.36).

`DynamicResources` is the last one and is in dra/filter.py, because its verdict is more than yes or no. Plugins that are
not here do not filter (scores, preemption) or do so before a node is checked (SchedulingGates: planning/demand).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Reason
from autoscaler.scheduling.node_filters import (
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources,
    node_unschedulable,
    taint_toleration,
)
from autoscaler.scheduling.node_state import NodeState
from autoscaler.scheduling.pod_filters import inter_pod_affinity, topology_spread
from autoscaler.scheduling.volume_binding import volume_binding
from autoscaler.scheduling.volume_filters import volume_limits, volume_restrictions, volume_zone
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass

Rule: TypeAlias = Callable[[Pod, NodeState, World], tuple[Reason, ...]]


@dataclass(frozen=True, slots=True)
class Filter:
    """A plugin's name in Kubernetes and its rule."""

    plugin: str
    rule: Rule


FILTERS: tuple[Filter, ...] = (
    Filter("NodeUnschedulable", node_unschedulable),
    Filter("NodeName", node_name),
    Filter("TaintToleration", taint_toleration),
    Filter("NodeAffinity", node_affinity),
    Filter("NodePorts", node_ports),
    Filter("NodeResourcesFit", node_resources),
    Filter("VolumeRestrictions", volume_restrictions),
    Filter("NodeVolumeLimits", volume_limits),
    Filter("VolumeBinding", volume_binding),
    Filter("VolumeZone", volume_zone),
    Filter("PodTopologySpread", topology_spread),
    Filter("InterPodAffinity", inter_pod_affinity),
    Filter("NodeDeclaredFeatures", node_declared_features),
)
_AMOUNTS: Final = next(place for place, entry in enumerate(FILTERS) if entry.rule is node_resources)
BEFORE_AMOUNTS: Final = FILTERS[:_AMOUNTS]
AFTER_AMOUNTS: Final = FILTERS[_AMOUNTS + 1 :]
