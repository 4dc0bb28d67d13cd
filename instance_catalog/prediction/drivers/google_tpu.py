"""tpu.google.com: the chips of a TPU node (kubernetes-sigs/dra-driver-google-tpu v0.2.0 manager.go, util.go).

The driver reads its facts from node labels that GKE sets per node pool, so they are known before launch. A release
without the feature described-chips (v0.1.0) publishes the generation alone. Must not know other drivers.
"""

from __future__ import annotations

import math
import re
from typing import Final

from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device
from instance_catalog.prediction.driver import Prediction, SliceContents
from instance_catalog.prediction.tokens import on_node
from instance_catalog.types.clouds import facts_of
from instance_catalog.types.instance_type import InstanceType

GOOGLE: Final = "Google"
_WHOLE_NAME: Final = re.compile(r"tpu\d+[a-z]?\Z")
_PAST_NAME: Final = re.compile(r"tpu-v\d+([ep]?-slice)?((?:-lite)?-(device|podslice))?\Z")
# The most topologies in a message.
_SHOWN: Final = 8
# Up to v4 the chips are /dev/accel<n>; later ones are bound to VFIO and named by number.
_ACCEL_GENERATIONS: Final = ("v2", "v3", "v4")


def runs_on(instance_type: InstanceType) -> bool:
    return instance_type.accelerator is not None and instance_type.accelerator.vendor == GOOGLE


def why_unpredictable(instance_type: InstanceType, profile: DriverProfile) -> str | None:
    """The reason why the slices cannot be predicted, or None if they can."""
    if not runs_on(instance_type):
        return None
    accelerator = _accelerator(instance_type)
    if accelerator is None:
        return (
            "the catalog has no nodeLabel (cloud.google.com/gke-tpu-accelerator) for the accelerator of "
            f"{instance_type.name}; add it"
        )
    if not (_WHOLE_NAME.match(accelerator) or _PAST_NAME.match(accelerator)):
        return f"the driver understands no accelerator {accelerator!r}; correct its nodeLabel, such as tpu-v6e-slice"
    return _why_no_slice(instance_type, topology_of(instance_type, profile))


def _why_no_slice(instance_type: InstanceType, topology: str | None) -> str | None:
    """The reason why machines of the type do not form a slice of the topology; None if they may."""
    if topology is None and instance_type.slice_topologies:
        return (
            f"{instance_type.name} exists in slices of several hosts only: name one, such as tpu:topology="
            + (instance_type.slice_topologies[0])
        )
    if topology in (None, instance_type.topology, *instance_type.slice_topologies):
        return None
    known = tuple(t for t in (instance_type.topology, *instance_type.slice_topologies) if t)
    if known:
        few = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
        return f"{instance_type.name} has no slices of topology {topology}; it has {few}"
    if chips_of(topology) % instance_type.device_count:
        return f"a slice of topology {topology} is not made of whole machines with {instance_type.device_count} chips"
    return None


def hosts(instance_type: InstanceType, profile: DriverProfile) -> int:
    """The number of machines of its slice, which are created together or not at all (GKE: multi-host TPU slices)."""
    topology = topology_of(instance_type, profile)
    if topology is None or topology == instance_type.topology:
        return 1
    return max(1, chips_of(topology) // instance_type.device_count)


def chips_of(topology: str | None) -> int:
    """4x4x2 → 32."""
    return math.prod(map(int, (topology or "0").split("x")))


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice with every chip, by index; the driver's own order is random. No capacities."""
    accelerator = _accelerator(instance_type)
    if accelerator is None:
        return ()
    generation = tpu_generation(accelerator)
    prefix = "accel" if generation.startswith(_ACCEL_GENERATIONS) else ""
    common: dict[str, AttributeValue] = {
        # Derived from the node's name, hence equal for all chips of a node.
        "uuid": on_node("string", "tpu", "uuid"),
        "tpuGen": generation,
    }
    if "described-chips" in profile.features:
        common |= {"brand": GOOGLE, "accelerator": accelerator, "chipCount": instance_type.device_count}
        if topology := topology_of(instance_type, profile):
            common["topology"] = topology
    chips = (Device(f"{prefix}{i}", FrozenMap({"index": i, **common})) for i in range(instance_type.device_count))
    return (SliceContents(tuple(chips)),)


def topology_of(instance_type: InstanceType, profile: DriverProfile) -> str | None:
    """The slice topology: the pool's choice for multi-host slices, else that of the single host."""
    return profile.option("topology") or instance_type.topology


def node_labels(instance_type: InstanceType, profile: DriverProfile, unit: str) -> dict[str, str]:
    """The labels that GKE gives the nodes of a TPU node pool, and those that users set on one with this driver."""
    found = {labels.GKE_ACCELERATOR_COUNT: str(instance_type.device_count)}
    if instance_type.accelerator and instance_type.accelerator.node_label:
        found[labels.GKE_TPU_ACCELERATOR] = instance_type.accelerator.node_label
    topology = topology_of(instance_type, profile)
    if topology:
        found[labels.GKE_TPU_TOPOLOGY] = topology
    return found | dict(facts_of(instance_type.cloud).driver_labels.get(profile.name, {}))


def tpu_generation(accelerator: str) -> str:
    """tpu-v6e-slice → v6e, tpu-v5-lite-podslice → v5litepod, tpu7x → tpu7x (util.go AcceleratorGen)."""
    if _WHOLE_NAME.match(accelerator):
        return accelerator
    generation = accelerator.split("-")[1]
    if "lite" in accelerator:
        generation += "lite"
    if generation.startswith("v5") and "podslice" in accelerator:
        generation += "pod"
    return generation


def _accelerator(instance_type: InstanceType) -> str | None:
    if instance_type.accelerator is None or not runs_on(instance_type):
        return None
    return instance_type.accelerator.node_label


PREDICTION: Final = Prediction(
    runs_on, contents, why_unpredictable=why_unpredictable, node_labels=node_labels, hosts=hosts
)
