"""Resources by which pods ask NVIDIA's device plugin for MIG parts of GPUs, and the claims that ask for the same."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

from autoscaler.model.device_class import Selector
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.prediction.device_plugins import MIG_CLASS, mig_condition, mig_profile

_ENTRY: Final = "mig-parts"  # of spec.resourceClaims


def mig_resources(pod: Pod, served: Set[str]) -> dict[str, int]:
    """The number of MIG parts that the pod requests by each resource of the device plugin; not those of the `served`
    resources, which DeviceClasses name. Init containers end before the others start and leave them their parts."""
    before = [_parts(container, served) for container in pod.init_containers if not container.sidecar]
    beside = [_parts(c, served) for c in (*pod.containers, *(c for c in pod.init_containers if c.sidecar))]
    names = dict.fromkeys(name for parts in (*beside, *before) for name in parts)
    return {
        name: max([sum(parts.get(name, 0) for parts in beside), *(parts.get(name, 0) for parts in before)])
        for name in names
    }


def _parts(container: Container, served: Set[str]) -> dict[str, int]:
    amounts = container.requests.items()
    return {name: int(n.value) for name, n in amounts if name not in served and mig_profile(name) and n.sign > 0}


def claiming_parts(pod: Pod, served: Set[str]) -> tuple[Pod, ResourceClaim]:
    """A pod with such resources, with a claim of its own in their place, and the claim."""
    wanted = mig_resources(pod, served)
    requests = tuple(
        DeviceRequest(f"part-{number}", MIG_CLASS, (Selector(mig_condition(name)),), count=count)
        for number, (name, count) in enumerate(wanted.items())
    )
    claim = ResourceClaim(pod.namespace, f"{pod.name}-{_ENTRY}", requests)
    containers, before = (_claiming(every, wanted.keys()) for every in (pod.containers, pod.init_containers))
    claims = (*pod.claims, PodClaim(_ENTRY, claim.name))
    return replace(pod, containers=containers, init_containers=before, claims=claims), claim


def _claiming(containers: Iterable[Container], names: Set[str]) -> tuple[Container, ...]:
    return tuple(
        replace(
            one,
            requests=FrozenMap({name: amount for name, amount in one.requests.items() if name not in names}),
            claims=(*one.claims, _ENTRY),
        )
        if names & one.requests.keys()
        else one
        for one in containers
    )
