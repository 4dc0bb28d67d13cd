"""Nodes, real or hypothetical."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint


@dataclass(frozen=True, slots=True)
class Node:
    """A node as the scheduler sees it. `provider_id` links it to an instance.

    `volume_limits` are attachable volumes by CSI driver (CSINode); a driver without one has no limit. None there, or in
    `declared_features`: unknown. `features_assumed`: they are the default declarations of kubelets, as for a node that
    does not exist yet; its kubelet may declare more. `refused_sharing` are the sharing strategies that its GPU driver
    refuses, each with the feature gate that is off; empty for existing nodes, which do not publish it.
    """

    name: str
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    annotations: FrozenMap[str, str] = field(default_factory=FrozenMap)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    provider_id: str = ""
    ready: bool = True
    deleting: bool = False
    uid: str = ""
    images: FrozenMap[str, int] = field(default_factory=FrozenMap)  # name -> bytes, of images that were pulled
    volume_limits: FrozenMap[str, int] | None = None
    declared_features: tuple[str, ...] | None = ()
    features_assumed: bool = False
    refused_sharing: FrozenMap[str, str] = field(default_factory=FrozenMap)
    created: float = field(default=0.0, compare=False)  # creation time in seconds of the epoch; 0: unknown
    origin: Origin = field(default=CLUSTER, compare=False)


def with_volume_limits(nodes: Iterable[Node], limits: Mapping[str, FrozenMap[str, int]]) -> tuple[Node, ...]:
    """The nodes, each with the limits of its CSI drivers; unknown if a node has none."""
    return tuple(replace(node, volume_limits=limits[node.name]) if node.name in limits else node for node in nodes)
