"""ResourceClaims generated from templates for pods, as the resourceclaim controller of Kubernetes does.

Ported from pkg/controller/resourceclaim/controller.go (v1.36.3); the random suffix of the name is left out, so that the
same pods always have the same claims.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from autoscaler.kube.pod import uid_of
from autoscaler.model.pod import Pod, PodClaim
from autoscaler.model.resource_claim import ResourceClaim, ResourceClaimTemplate


def generate_claims(
    pod: Pod, templates: Mapping[str, ResourceClaimTemplate], taken: Container[str]
) -> tuple[Pod, tuple[ResourceClaim, ...]]:
    """The pod with its claims named, and the claims. `taken` are keys of claims that exist.

    Entries whose template is not among `templates` (by namespace/name) stay as they are: not created yet.
    """
    entries: list[PodClaim] = []
    made: list[ResourceClaim] = []
    for entry in pod.claims:
        template = templates.get(f"{pod.namespace}/{entry.template}") if entry.claim is None else None
        if template is None:
            entries.append(entry)
            continue
        name = _free_name(f"{pod.name}-{entry.name}", pod.namespace, taken)
        made.append(
            replace(
                template.spec,
                namespace=pod.namespace,
                name=name,
                uid=uid_of("ResourceClaim", pod.namespace, name),
                controller=pod.uid,
                origin=pod.origin,
            )
        )
        entries.append(replace(entry, claim=name))
    return (replace(pod, claims=tuple(entries)), tuple(made)) if made else (pod, ())


def _free_name(wanted: str, namespace: str, taken: Container[str]) -> str:
    name, number = wanted, 1
    while f"{namespace}/{name}" in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name
