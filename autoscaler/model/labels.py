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

    def __str__(self) -> str:
        """As kubectl takes it after -l: "app=a,tier in (b,c),!old"; "" selects everything."""
        return ",".join(map(_text, self.requirements))


def _text(requirement: Requirement) -> str:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "In" if len(values) == 1:
            return f"{key}={values[0]}"
        case "NotIn" if len(values) == 1:
            return f"{key}!={values[0]}"
        case operator:
            return f"{key} {operator.lower()} ({','.join(values)})"


@dataclass(frozen=True, slots=True)
class Selection:
    """A Service, ReplicationController, ReplicaSet or StatefulSet as the pods it selects."""

    kind: str
    namespace: str
    name: str
    selector: LabelSelector
    origin: Origin = field(default=CLUSTER, compare=False)
