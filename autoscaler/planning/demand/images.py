"""Finds machines that the images of pods need although the pods do not select them: machines with Google Cloud's
GPUDirect, and machines with accelerators that the software in the image supports."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import requested_resources
from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import GpuDirectProtocol, gpudirect_protocols
from instance_catalog.drivers.images import Superseded, superseded_types
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.prediction.system_labels import MACHINE_KEYS
from instance_catalog.types.clouds import cloud_facts

TYPE_KEYS: Final = frozenset({labels.INSTANCE_TYPE, "beta.kubernetes.io/instance-type"})
# A pod that selects by one of these labels has chosen its machine.
OF_MACHINES: Final = TYPE_KEYS | MACHINE_KEYS | {labels.ACCELERATOR, labels.HOSTNAME}


def gpudirect_image(pod: Pod, protocol: GpuDirectProtocol, pools: Collection[CapacityPool] = ()) -> str:
    """The image that shows that the pod uses the protocol, if the pod selects no machine. Only node pools that a
    CapacityPool names are known."""
    groups = node_groups(pod)
    given = (one for pool in pools for one in (pool.labels, *(nodes.labels for nodes in pool.registers)))
    known = any(f"{key}={value}" in groups for labels_of in given for key, value in labels_of.items())
    return "" if known or pod.required_values(OF_MACHINES) else _image(pod, protocol.images)


def node_groups(pod: Pod) -> list[str]:
    """The labels, with values, by which the pod selects node pools. Foreslice does not know the types of these node
    pools."""
    keys = sorted({facts.group_per_type for facts in cloud_facts().values() if facts.group_per_type})
    return [f"{key}={name}" for key in keys for names in pod.required_values({key}) for name in names]


def types_of_images(pod: Pod) -> tuple[str, ...]:
    """The only instance types on which the pod's images work, whatever it selects; empty if no image is known to
    need one."""
    return next((protocol.types for protocol in gpudirect_protocols() if _image(pod, protocol.images)), ())


def accelerators_of_images(pod: Pod) -> tuple[str, ...]:
    """The only accelerators, by key, on which the pod's software works; None for other pods.

    Either its images require them, or it requests a resource of the vendor's device plugin, and neither its images nor
    its selected labels belong to superseded types.
    """
    return next((found.accelerators for found in superseded_types() if _of_today(pod, found)), ())


def superseded_image(pod: Pod, instance_type: str) -> str:
    """The image of the pod that does not run on this superseded type; "" otherwise."""
    return next((_image(pod, found.images) for found in superseded_types() if instance_type in found.types), "")


def _of_today(pod: Pod, found: Superseded) -> bool:
    if _image(pod, found.images):
        return True
    if not any(resource.startswith(found.resources) for resource in requested_resources(pod)):
        return False
    families = {name.partition(".")[0] for name in found.types}
    selected = (value for names in pod.required_values(pod.selected_labels) for value in names)
    return not (_image(pod, found.old_images) or any(family in value for value in selected for family in families))


def selecting_what_images_need(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which pods select the machines on which their images work."""
    return replace(snapshot, pods=tuple(map(_selecting, snapshot.pods)))


def _selecting(pod: Pod) -> Pod:
    for protocol in gpudirect_protocols():
        if gpudirect_image(pod, protocol):
            return requiring(pod, Requirement(labels.INSTANCE_TYPE, "In", protocol.types))
    cards = accelerators_of_images(pod)
    if cards and not pod.required_values(OF_MACHINES):
        return requiring(pod, Requirement(labels.ACCELERATOR, "In", cards))
    return pod


def requiring(pod: Pod, needed: Requirement) -> Pod:
    """The pod with this additional requirement on its node."""
    terms = pod.affinity.terms if pod.affinity else (NodeSelectorTerm(()),)
    narrowed = (replace(term, match_expressions=(*term.match_expressions, needed)) for term in terms)
    return replace(pod, affinity=NodeSelector(tuple(narrowed)))


def _image(pod: Pod, parts: Collection[str]) -> str:
    images = (container.image for container in (*pod.containers, *pod.init_containers))
    return next((image for image in images if any(part in image for part in parts)), "")
