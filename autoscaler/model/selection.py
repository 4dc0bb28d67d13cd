"""What Services and controllers select: scores spread the pods that one of them owns or serves."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoscaler.model.labels import LabelSelector
from autoscaler.model.origin import CLUSTER, Origin


@dataclass(frozen=True, slots=True)
class Selection:
    """A Service, ReplicationController, ReplicaSet or StatefulSet as the pods it selects."""

    kind: str
    namespace: str
    name: str
    selector: LabelSelector
    origin: Origin = field(default=CLUSTER, compare=False)
