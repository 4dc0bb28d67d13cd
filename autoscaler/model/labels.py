"""Label selectors (metav1.LabelSelector) as values, with matching, and the selectors of Services."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes.node_selector import Requirement, requirement_matches


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """matchLabels and matchExpressions as requirements. Without requirements it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if all requirements hold."""
        return all(requirement_matches(r, labels) for r in self.requirements)


@dataclass(frozen=True, slots=True)
class Selection:
    """A Service, ReplicationController, ReplicaSet or StatefulSet as the pods it selects."""

    kind: str
    namespace: str
    name: str
    selector: LabelSelector
    origin: Origin = field(default=CLUSTER, compare=False)
