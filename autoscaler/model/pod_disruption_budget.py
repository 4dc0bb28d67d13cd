"""PodDisruptionBudgets, with the parts that decide if a pod may be evicted now."""

from __future__ import annotations

from autoscaler.model.labels import LabelSelector
from autoscaler.model.namespaced import Namespaced
from autoscaler.model.pod import Pod
from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget(Namespaced):
    """`selector` None selects nothing. `allowed`: the number of its pods that may be evicted now, from its status."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0

    def protects(self, pod: Pod) -> bool:
        """True if the budget selects the pod."""
        return self.namespace == pod.namespace and self.selector is not None and self.selector.matches(pod.labels)
