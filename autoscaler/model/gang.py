"""Gangs: pods that start together or not at all, whatever kind of object says so."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoscaler.model.origin import CLUSTER, Origin


@dataclass(frozen=True, slots=True)
class Gang:
    """`kind` is the API kind that declared it ("PodGroup scheduling.x-k8s.io/v1alpha1", "LeaderWorkerSet", …).

    `min_count` pods must be placed at once. `topology_key` is a node label all of them must share (an NVLink domain, a
    placement group); None when nothing demands it.
    """

    namespace: str
    name: str
    kind: str
    min_count: int
    topology_key: str | None = None
    unsupported: tuple[str, ...] = ()
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"
