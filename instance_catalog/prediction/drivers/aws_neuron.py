"""neuron.aws.com: Trainium devices and their device groups (AWS Neuron documentation, mid 2026).

A group of n devices has an id that is computed from the EFA addresses serving them; dranet gives the same ids to those
EFA devices, which is how the two are aligned (PCIe roots do not align them). Must not know other drivers.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final

from instance_catalog.drivers.facts import NeuronFacts, driver_facts
from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import AttributeValue, Device
from instance_catalog.prediction.driver import Prediction, SliceContents
from instance_catalog.prediction.tokens import of_unit, on_node
from instance_catalog.types.instance_type import InstanceType

AWS: Final = "AWS"
GROUP_SIZES: Final = (4, 8, 16)
_COLUMNS: Final = 4  # sixteen devices are wired as a 4 × 4 torus


def runs_on(instance_type: InstanceType) -> bool:
    accelerator = instance_type.accelerator
    return accelerator is not None and accelerator.vendor == AWS


def why_unpredictable(instance_type: InstanceType, profile: DriverProfile) -> str | None:
    """The reason why the slices cannot be predicted, or None if they can."""
    accelerator = instance_type.accelerator
    if accelerator is None or not runs_on(instance_type):
        return None
    if instance_type.name in _facts().ultra_servers:
        return f"{instance_type.name} is part of an UltraServer, whose device is not documented"
    if accelerator.key not in _facts().described:
        return f"what the Neuron driver publishes for {accelerator.model} is not documented"
    recorded, devices = len(_facts().efa_addresses.get(instance_type.name, ())), instance_type.device_count
    if 0 < recorded < devices:
        return f"the EFA addresses of {instance_type.name} are recorded for {recorded} devices, not for {devices}"
    return None


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice. Capacities are not documented, so there are none."""
    return (SliceContents(tuple(_device(instance_type, index) for index in range(instance_type.device_count))),)


def efa_addresses(instance_type: InstanceType) -> tuple[str, ...]:
    """PCI addresses of the type's EFA devices that serve Neuron devices, sorted; () where none are recorded."""
    return tuple(sorted(set(_facts().efa_addresses.get(instance_type.name, ()))))


@cache
def groups_of_efa(type_name: str) -> FrozenMap[str, FrozenMap[str, str]]:
    """EFA address → its devicegroup attributes."""
    addresses = _facts().efa_addresses.get(type_name, ())
    return FrozenMap({address: _groups(addresses, index) for index, address in enumerate(addresses)})


def _device(instance_type: InstanceType, index: int) -> Device:
    values: dict[str, AttributeValue] = {
        "deviceId": index,
        "instanceType": instance_type.name,
        "resourceType": "neuron_device",
        "neuronDriverVersion": on_node("string", "image", "neuronDriverVersion"),
        "draDriverVersion": on_node("version", "image", "draDriverVersion"),
    }
    values |= {f"networkNodeLayer{n}": of_unit("string", "placement", f"networkNodeLayer{n}") for n in (1, 2)}
    values["networkNodeLayer3"] = on_node("string", "host", "networkNodeLayer3")
    if instance_type.device_count > 1:
        values |= {"topology_x": index // _COLUMNS, "topology_y": index % _COLUMNS}
    addresses = _facts().efa_addresses.get(instance_type.name, ())
    if addresses:
        values |= _groups(addresses, index)
    return Device(f"neuron-device-{index}", FrozenMap(values))


def _groups(addresses: tuple[str, ...], index: int) -> FrozenMap[str, str]:
    """Group of n: devices with equal index // n. Its id hashes their EFA addresses, sorted and each once."""
    found = {"resource.aws.com/devicegroup1_id": addresses[index]}
    for size in GROUP_SIZES:
        start = index // size * size
        joined = ",".join(sorted(set(addresses[start : start + size])))
        found[f"resource.aws.com/devicegroup{size}_id"] = hashlib.sha256(joined.encode()).hexdigest()[:16]
    return FrozenMap(found)


def _facts() -> NeuronFacts:
    facts = driver_facts()["neuron"].neuron
    assert facts is not None  # the package's own data, checked by tests
    return facts


PREDICTION: Final = Prediction(runs_on, contents, why_unpredictable=why_unpredictable)
