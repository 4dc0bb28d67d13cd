"""Device plugins: they hand out a driver's devices as extended resources, without DRA."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from instance_catalog.frozen_map import FrozenMap
from instance_catalog.package_data import contents


@dataclass(frozen=True, slots=True)
class DevicePlugin:
    """A device plugin hands out the devices of `driver` without DRA. `images` are ends of its image's repository,
    `resource_prefixes` beginnings of the extended resources it offers; a `managed` one is installed by the cloud.
    `parts`: how many of a resource one device is, by resource and model of the device."""

    driver: str
    images: tuple[str, ...]
    resource_prefixes: tuple[str, ...]
    source: str
    managed: bool = False
    parts: FrozenMap[str, FrozenMap[str, int]] = field(default_factory=FrozenMap)


@cache
def device_plugins() -> tuple[DevicePlugin, ...]:
    """The device plugins that compete with a driver for its devices (device_plugins.yaml)."""
    content = contents("drivers")["device_plugins"]
    return tuple(
        DevicePlugin(
            row["of"],
            tuple(row["images"]),
            tuple(row["resources"]),
            row["source"],
            managed=row.get("managed", False),
            parts=FrozenMap({resource: FrozenMap(models) for resource, models in row.get("parts", {}).items()}),
        )
        for row in content["plugins"]
    )


@cache
def shared_gpu_resources() -> FrozenMap[str, str]:
    """Resources that share GPUs among pods, and who hands them out: no node of a plan has them."""
    return FrozenMap(contents("drivers")["device_plugins"]["shared_gpus"])
