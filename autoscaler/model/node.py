"""Nodes, real or hypothetical."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.quantity import Quantity
from instance_catalog.taint import Taint


@dataclass(frozen=True, slots=True)
class Node:
    """A node as the scheduler sees it. `provider_id` links it to an instance."""

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
    origin: Origin = field(default=CLUSTER, compare=False)
