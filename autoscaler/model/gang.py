"""Gangs: pods that start together or not at all, whatever kind of object declares it."""

from __future__ import annotations

from autoscaler.model.namespaced import Namespaced
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.pod import PodClaim
from instance_catalog.dataclass import dataclass, field

API_GROUP = "scheduling.k8s.io"  # of Kubernetes' own PodGroups


@dataclass(frozen=True, slots=True)
class Gang(Namespaced):
    """`kind` is the API kind that declared it ("PodGroup scheduling.x-k8s.io/v1alpha1", "LeaderWorkerSet", …).

    `min_count` pods must be placed at once. `topology_key` is a node label all of them must share (an NVLink domain, a
    placement group); None if nothing requires it. `claims` are those that pods share by an equal entry of their own
    (spec.resourceClaims of scheduling.k8s.io; gate DRAWorkloadResourceClaims).
    """

    namespace: str
    name: str
    kind: str
    min_count: int
    topology_key: str | None = None
    unsupported: tuple[str, ...] = ()
    uid: str = ""
    claims: tuple[PodClaim, ...] = ()
    origin: Origin = field(default=CLUSTER, compare=False)

    def shares(self, entry: PodClaim) -> bool:
        """True if an entry of a pod's spec.resourceClaims is a claim of the group: the same name from the same source.

        BindTo of k8s.io/dynamic-resource-allocation resourceclaim, v0.36.3.
        """
        return any(
            own.name == entry.name and own.template == entry.template and (own.template or own.claim == entry.claim)
            for own in self.claims
        )
