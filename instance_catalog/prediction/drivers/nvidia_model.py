"""gpu.nvidia.com: attributes that depend on the GPU model alone, not on the driver's release and options.

Must not know MIG, nor how devices are made.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device, Version
from instance_catalog.prediction.tokens import catalog_gap
from instance_catalog.types.instance_type import Accelerator, InstanceType

_NAMES: Final = ("productName", "brand", "architecture")


def attributes(accelerator: Accelerator) -> dict[str, AttributeValue]:
    """Its names, and the CUDA compute capability."""

    def known(value: str | None, name: str) -> AttributeValue:
        return value if value is not None else catalog_gap("string", accelerator.key, name)

    capability = accelerator.cuda_compute_capability
    return {
        "productName": accelerator.product_name
        or catalog_gap("string", accelerator.key, "productName", one_of=accelerator.product_names),
        "brand": known(accelerator.brand, "brand"),
        "architecture": known(accelerator.architecture, "architecture"),
        "cudaComputeCapability": (
            Version(capability) if capability else catalog_gap("version", accelerator.key, "cudaComputeCapability")
        ),
    }


def memory(accelerator: Accelerator) -> FrozenMap[str, Capacity]:
    """Of a whole GPU."""
    known = accelerator.memory or accelerator.api_memory
    # The driver leaves memory out where NVML has none; a figure of the cloud's API is only near what NVML will say.
    guess, bounds = accelerator.memory is None, accelerator.memory_bounds
    if known is None and bounds is not None:
        known = bounds[1]
    return FrozenMap({} if known is None else {"memory": Capacity(_bytes(known), guess=guess, bounds=bounds)})


def most(instance_type: InstanceType) -> Device:
    """Names of the model, which its parts have as well, and the memory, of which parts have less."""
    accelerator = instance_type.accelerator
    assert accelerator is not None  # runs_on
    names = attributes(accelerator)
    return Device("gpu", FrozenMap({name: names[name] for name in _NAMES}), memory(accelerator))


def _bytes(quantity: Quantity) -> Quantity:
    """As the driver publishes it: resource.NewQuantity(bytes, BinarySI)."""
    return Quantity.of(quantity.int64_value(), "BinarySI")
