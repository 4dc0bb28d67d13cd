"""Claims as the resource claim controller leaves them within seconds (pkg/controller/resourceclaim, v1.36).

Until then kube-scheduler counts the devices of finished pods, but a node launched for that moment would not be needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from autoscaler.dra.claims.pod_groups import replaced
from autoscaler.model.gang import Gang
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import replace


def will_not_run(pod: Pod) -> bool:
    """True if the pod has finished, or was given up before it had a node."""
    return pod.finished or (pod.deleting and pod.node_name is None)


def without_finished_consumers(
    claims: Mapping[str, ResourceClaim], done: Collection[str], pod_groups: Mapping[str, Gang]
) -> dict[str, ResourceClaim]:
    """Those of the claims that change, by namespace/name: without the reservations of pods that will not run any more.

    A claim that loses its last consumer loses its devices, and so does one that is being deleted and has none. One that
    was generated for such a pod is deleted. Unknown consumers stay. `done` are the uids of these pods. `pod_groups` by
    namespace/name, if the gate DRAWorkloadResourceClaims is on: groups that others of the same name have replaced
    reserve nothing either.
    """
    # Nearly all claims have one consumer, which runs: they take no call each.
    doubtful = [
        (key, claim)
        for key, claim in claims.items()
        if pod_groups or not (held := claim.reserved_for) or len(held) > 1 or held[0].uid in done
    ]
    found: dict[str, ResourceClaim] = {}
    for key, claim in doubtful:
        if pod_groups or not _stays(claim, done):
            left = _without_finished_consumers(claim, done, pod_groups)
            if left is not claim:
                found[key] = left
    return found


def _stays(claim: ResourceClaim, done: Collection[str]) -> bool:
    """A fast check, true for most claims: the claim stays as it is. Only valid if no group may be replaced."""
    for one in claim.reserved_for:
        if one.uid in done:
            return False
    return bool(claim.reserved_for) or not (claim.deleting or claim.controller in done)


def _without_finished_consumers(
    claim: ResourceClaim, done: Collection[str], pod_groups: Mapping[str, Gang]
) -> ResourceClaim:
    left = tuple(
        one
        for one in claim.reserved_for
        if not (one.resource == "pods" and one.uid in done) and not replaced(one, claim.namespace, pod_groups)
    )
    if left:
        return claim if len(left) == len(claim.reserved_for) else replace(claim, reserved_for=left)
    deleting = claim.deleting or (claim.controller != "" and claim.controller in done)
    freed = bool(claim.reserved_for) or deleting
    return replace(claim, reserved_for=(), deleting=deleting, allocation=None) if freed else claim
