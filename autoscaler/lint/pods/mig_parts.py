"""Resources by which pods ask NVIDIA's device plugin for MIG parts of GPUs, and the claims that ask for the same."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

from autoscaler.model.device_class import Selector
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.device_plugins import MIG_CLASS, mig_condition, mig_profile

_ENTRY: Final = "mig-parts"  # of spec.resourceClaims
WHOLE: Final = "nvidia.com/gpu"
_PART: Final = "nvidia.com/mig-"
# With MIG strategy "single" the device plugin counts parts as whole GPUs, and GPU feature discovery adds the profile to
# the product: NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery (NVIDIA-A100-SXM4-40GB-MIG-1g.5gb).
_OF_PARTS: Final = "-MIG-"
_LAYOUT: Final = "all-"  # of nvidia-mig-parted: all-1g.5gb divides each GPU into parts of one profile


def part_selected(pod: Pod) -> str:
    """The resource that names the MIG parts which nvidia.com/gpu counts on the nodes that the pod selects, by their
    layout or their product; "" if it selects no such nodes."""
    layouts = [v for values in pod.required_values({labels.NVIDIA_MIG_CONFIG}) for v in values]
    profiles = {value.removeprefix(_LAYOUT) for value in layouts if value.startswith(_LAYOUT)}
    products = [v for values in pod.required_values({labels.NVIDIA_GPU_PRODUCT}) for v in values]
    profiles |= {value.partition(_OF_PARTS)[2] for value in products}
    named = {f"{_PART}{profile}" for profile in profiles}
    return named.pop() if len(named) == 1 and all(map(mig_profile, named)) else ""


def product_of_parts(value: str) -> str:
    """The product whose parts such a value of nvidia.com/gpu.product names; "" for one of whole GPUs."""
    product, mark, _ = value.partition(_OF_PARTS)
    return product if mark else ""


def naming_parts(pod: Pod) -> Pod:
    """The pod with the resource of its MIG parts in the place of nvidia.com/gpu, if it selects nodes by these."""
    part = part_selected(pod)
    if not part:
        return pod
    containers, before = (_named(every, part) for every in (pod.containers, pod.init_containers))
    return replace(pod, containers=containers, init_containers=before)


def _named(containers: Iterable[Container], part: str) -> tuple[Container, ...]:
    return tuple(
        replace(one, requests=FrozenMap({part if n == WHOLE else n: amount for n, amount in one.requests.items()}))
        if WHOLE in one.requests and part not in one.requests
        else one
        for one in containers
    )


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
