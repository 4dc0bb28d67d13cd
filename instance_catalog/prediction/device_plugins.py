"""Extended resources that device plugins offer on a type, beside DRA, by the driver of the devices.

Whether a plugin runs on a node is unknown here. Entries of types (extendedResources) replace the values that follow
from the devices. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, get_args

from instance_catalog.drivers.device_plugins import DevicePlugin, device_plugins, other_device
from instance_catalog.drivers.facts import mig_tables
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.instance_type import InstanceType, Vendor

EFA: Final = "vpc.amazonaws.com/efa"
TPU: Final = "google.com/tpu"
MIG_CLASS: Final = "mig.nvidia.com"
NO_DRIVER: Final = ""  # in place of the driver of devices that only a vendor's own device plugin is known to hand out
# NVIDIA/k8s-device-plugin 4caff14, internal/rm/rm.go: "mig-" and the profile's name, with a dot for its plus.
_MIG_RESOURCES: Final = "nvidia.com/mig-"


@lru_cache(maxsize=1024)
def plugin_resources(instance_type: InstanceType) -> FrozenMap[str, FrozenMap[str, Quantity]]:
    """By driver: resource and amount. Those of no known driver are under NO_DRIVER: only an entry of a type names them,
    also as measured (allocatable)."""
    found: dict[str, Quantity] = {}
    efa = len(instance_type.cards("efa"))
    if efa:
        found[EFA] = Quantity.of(efa)
    accelerator = instance_type.accelerator
    if accelerator is not None:
        serving = (p for p in device_plugins() if p.whole and p.vendor == accelerator.vendor)
        wholes = (p.whole for p in serving if accelerator.model not in p.unserved)
        found |= {resource: Quantity.of(instance_type.device_count) for resource in wholes}
        for resource, parts in _parts(accelerator.model):
            found[resource] = Quantity.of(instance_type.device_count * parts)
    found |= instance_type.extended_resources
    measured = ((name, amount) for name, amount in instance_type.allocatable.items() if "/" in name and amount.sign > 0)
    found |= {name: amount for name, amount in measured if not is_plugin_resource(name)}
    by_driver: dict[str, dict[str, Quantity]] = {}
    for resource, amount in found.items():
        driver = next((p.driver for p in device_plugins() if resource.startswith(p.resource_prefixes)), NO_DRIVER)
        by_driver.setdefault(driver, {})[resource] = amount
    return FrozenMap({driver: FrozenMap(amounts) for driver, amounts in by_driver.items()})


def _parts(model: str) -> Iterator[tuple[str, int]]:
    """Resources that count parts of a device, with the parts that one device of the model has."""
    for plugin in device_plugins():
        yield from ((resource, models[model]) for resource, models in plugin.parts.items() if model in models)


def is_plugin_resource(resource: str) -> bool:
    """True if a known device plugin offers the extended resource; nvidia.com/gpumem is no nvidia.com/gpu. Of MIG parts,
    other names than those of profiles are what an administrator calls them (nvidia.com/mig-small)."""
    return plugin_of(resource) is not None and (not resource.startswith(_MIG_RESOURCES) or mig_profile(resource) != "")


def driver_of_plugin(resource: str) -> str | None:
    """The driver whose devices a device plugin hands out as this resource; None for a resource of no device."""
    if "/" not in resource:
        return None
    plugin = plugin_of(resource)
    return plugin.driver if plugin else NO_DRIVER


def mig_profile(resource: str) -> str:
    """The MIG profile whose devices the resource counts: "1g.5gb" of nvidia.com/mig-1g.5gb and "1g.5gb+me" of
    nvidia.com/mig-1g.5gb.me; "" for other resources and profiles that no known GPU has."""
    profile = resource.removeprefix(_MIG_RESOURCES)
    return _mig_profiles().get(profile, "") if profile != resource else ""


def mig_layout(resource: str) -> str:
    """The layout of nvidia-mig-parted that fills a GPU with such devices."""
    return f"all-{resource.removeprefix(_MIG_RESOURCES)}"


def mig_condition(resource: str) -> str:
    """The CEL condition of these devices where the DRA driver publishes them, in DeviceClass MIG_CLASS."""
    return f'device.attributes["gpu.nvidia.com"].profile == "{mig_profile(resource)}"'


@lru_cache(maxsize=1)
def _mig_profiles() -> dict[str, str]:
    """The names of profiles by those without a plus."""
    return {profile.plain_name: profile.name for table in mig_tables().values() for profile in table.profiles}


@lru_cache(maxsize=1024)
def plugin_of(resource: str) -> DevicePlugin | None:
    return next((found for found in device_plugins() if _hands_out(found, resource)), None)


def _hands_out(plugin: DevicePlugin, resource: str) -> bool:
    known = plugin.resource_prefixes
    return any(resource == one or (one.endswith("-") and resource.startswith(one)) for one in known)


def undescribed_device(resource: str) -> str:
    """The kind of device behind a resource that no catalog file can give to a machine, because files know no such
    vendor or kind ("MLU of Cambricon"); "" for all others."""
    what = other_device(resource)
    kind, _, vendor = what.partition(" of ")
    return "" if kind == "GPU" and vendor in get_args(Vendor) else what
