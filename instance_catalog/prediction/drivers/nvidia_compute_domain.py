"""compute-domain.nvidia.com: one channel and one daemon per node (kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1).

The same two devices on every node where the plugin runs, with or without an NVLink fabric. The clique is no attribute:
it appears as node label nvidia.com/gpu.clique. Must not know GPUs.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device
from instance_catalog.prediction.driver import Prediction, SliceContents
from instance_catalog.types.instance_type import InstanceType


def runs_on(instance_type: InstanceType) -> bool:
    """The plugin runs on every node with NVIDIA GPUs."""
    return instance_type.accelerator is not None and instance_type.accelerator.vendor == "NVIDIA"


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice. Of the hardware's 2048 channels only channel 0 is published; the driver's order is random.

    If the host runs the IMEX daemon (v0.5.0 driver.go), there is no daemon to claim.
    """
    kinds = ["channel"] if profile.option("imex-mode") == "hostManaged" else ["channel", "daemon"]
    return (SliceContents(tuple(_device(kind) for kind in kinds)),)


def _device(kind: str) -> Device:
    attributes: dict[str, AttributeValue] = {"type": kind, "id": 0}
    return Device(f"{kind}-0", FrozenMap(attributes))


PREDICTION: Final = Prediction(runs_on, contents)
