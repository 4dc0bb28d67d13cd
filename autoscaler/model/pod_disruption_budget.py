"""PodDisruptionBudgets, as far as they say whether a pod may be evicted now."""

from __future__ import annotations

from autoscaler.model.labels import LabelSelector
from autoscaler.model.namespaced import Namespaced
from autoscaler.model.pod import Pod
from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget(Namespaced):
    """`selector` None selects nothing. `allowed`: how many of its pods may be evicted now, as its status says."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0

    def protects(self, pod: Pod) -> bool:
        """Whether the pod is one of its pods."""
        return self.namespace == pod.namespace and self.selector is not None and self.selector.matches(pod.labels)
