"""Taints and tolerations of nodes and devices: the two kinds differ in which effects block, not in shape."""

from __future__ import annotations

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Taint:
    """`effect` is NoSchedule, PreferNoSchedule, NoExecute (nodes) or NoSchedule, NoExecute, None (devices)."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """An empty key (with Exists) tolerates every key, an empty effect every effect; seconds do not matter here."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Upstream: component-helpers scheduling/corev1, dynamic-resource-allocation resourceclaim (v1.36)."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "Exists":
                return True
            case "" | "Equal":
                return self.value == taint.value
            case _:
                return False
