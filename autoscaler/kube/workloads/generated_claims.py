"""ResourceClaims generated from templates for pods, as the resourceclaim controller of Kubernetes does.

Ported from pkg/controller/resourceclaim/controller.go (v1.36.3); the random suffix of the name is left out, so that the
same pods always have the same claims.
"""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.kube.pod import uid_of
from autoscaler.model.gang import Gang
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.resource_claim import ResourceClaim, ResourceClaimTemplate
from instance_catalog.dataclass import replace


def generate_claims(
    pod: Pod,
    templates: Mapping[str, ResourceClaimTemplate],
    taken: Mapping[str, ResourceClaim],
    group: Gang | None = None,
) -> tuple[Pod, tuple[ResourceClaim, ...]]:
    """The pod with its claims named, and the claims. `taken` are existing claims, by namespace/name.

    Entries whose template is not among `templates` (by namespace/name) are unchanged: not created yet. The claims of
    the pod's PodGroup, if the cluster supports such claims, are created once for all of its pods.
    """
    entries: list[PodClaim] = []
    made: list[ResourceClaim] = []
    for entry in pod.claims:
        template = templates.get(f"{pod.namespace}/{entry.template}") if entry.claim is None else None
        if template is None:
            entries.append(entry)
            continue
        owner = group if group is not None and group.shares(entry) else pod
        of_group = owner.name if isinstance(owner, Gang) else ""
        name = _free_name(f"{owner.name}-{entry.name}", pod.namespace, taken, of_group)
        if f"{pod.namespace}/{name}" not in taken:
            made.append(
                replace(
                    template.spec,
                    namespace=pod.namespace,
                    name=name,
                    uid=uid_of("ResourceClaim", pod.namespace, name),
                    controller=owner.uid,
                    pod_group=of_group,
                    origin=owner.origin,
                )
            )
        entries.append(replace(entry, claim=name))
    return replace(pod, claims=tuple(entries)), tuple(made)


def _free_name(wanted: str, namespace: str, taken: Mapping[str, ResourceClaim], group: str) -> str:
    """A name that no claim has, or that of a claim for the same PodGroup."""
    name, number = wanted, 1
    while (claim := taken.get(f"{namespace}/{name}")) is not None and not (group and claim.pod_group == group):
        number += 1
        name = f"{wanted}-{number}"
    return name
