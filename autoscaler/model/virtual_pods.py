"""Names of pods that exist only in a plan: those of ProvisioningRequests and CapacityBuffers.

No object of Kubernetes has a name with a colon, so they are never mistaken for real ones.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from autoscaler.model.pod import PodAffinityTerm
from instance_catalog.kubernetes import labels

_KINDS: Final = {"request": "ProvisioningRequest", "buffer": "CapacityBuffer"}


class VirtualOwner(NamedTuple):
    """The object that a virtual pod represents."""

    kind: str
    namespace: str
    name: str

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


def request_pod(request: str, template: str, index: int) -> str:
    """The name of a pod that a ProvisioningRequest is for."""
    return f"request:{request}:{template}-{index}"


def request_gang(request: str) -> str:
    """The name of the gang that the pods of a ProvisioningRequest form."""
    return f"request:{request}"


def buffer_pod(buffer: str, index: int) -> str:
    """The name of a pod that a CapacityBuffer keeps room for."""
    return f"buffer:{buffer}:{index}"


def pod_set_of(name: str) -> tuple[str, int]:
    """The PodTemplate of a request's pod and its index, from its name."""
    template, _, index = name.rpartition(":")[2].rpartition("-")
    return template, int(index)


def is_virtual(name: str) -> bool:
    """True if the name, or namespace/name, is that of a virtual pod, claim or gang."""
    return name.rpartition("/")[2].partition(":")[0] in _KINDS and ":" in name


def owner_of(key: str) -> VirtualOwner | None:
    """The object that the virtual pod `namespace/name` represents; None for a real pod."""
    namespace, _, name = key.rpartition("/")
    kind, colon, rest = name.partition(":")
    if not colon or kind not in _KINDS:
        return None
    return VirtualOwner(_KINDS[kind], namespace, rest.partition(":")[0])


def between_requests(term: PodAffinityTerm) -> bool:
    """True if the term only keeps the nodes of different ProvisioningRequests apart."""
    asked = term.selector.requirements if term.selector is not None else ()
    return bool(asked) and all(requirement.key == labels.PROVISIONING_REQUEST for requirement in asked)
