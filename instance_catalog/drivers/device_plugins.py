"""Device plugins: they offer a driver's devices as extended resources, without DRA."""

from __future__ import annotations

from functools import cache

from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.package_data import contents


@dataclass(frozen=True, slots=True)
class DevicePlugin:
    """A device plugin offers the devices of `driver` without DRA. `images` are suffixes of its image's repository,
    `resource_prefixes` prefixes of the extended resources it offers; a `managed` one is installed by the cloud. `whole`
    is the resource of which a device of `vendor` is one, except for the models in `unserved`, with the reason. `parts`:
    the number of a resource in one device, by resource and model of the device."""

    driver: str
    images: tuple[str, ...]
    resource_prefixes: tuple[str, ...]
    source: str
    managed: bool = False
    vendor: str = ""
    whole: str = ""
    unserved: FrozenMap[str, str] = field(default_factory=FrozenMap)
    parts: FrozenMap[str, FrozenMap[str, int]] = field(default_factory=FrozenMap)


@dataclass(frozen=True, slots=True)
class RetiredResources:
    """Extended resources that `system` offered until `ended`, by prefixes of their names; no node has them now.

    `annotations` are prefixes of annotations on their pods, `now` is the resource that replaces them, and `instead` is
    the text that explains how to request it.
    """

    resources: tuple[str, ...]
    annotations: tuple[str, ...]
    system: str
    ended: str
    now: str
    instead: str
    source: str


@cache
def retired_resources() -> tuple[RetiredResources, ...]:
    """The resources that clouds offered in the past (device_plugins.yaml)."""
    return tuple(
        RetiredResources(
            resources=tuple(row["resources"]),
            annotations=tuple(row["annotations"]),
            system=row["of"],
            ended=str(row["ended"]),
            now=row["now"],
            instead=row["instead"],
            source=row["source"],
        )
        for row in contents("drivers")["device_plugins"]["retired"]
    )


def retired(name: str) -> RetiredResources | None:
    """The retired system of the resource or annotation with this name; None if it is not retired."""
    return next((one for one in retired_resources() if name.startswith((*one.resources, *one.annotations))), None)


@dataclass(frozen=True, slots=True)
class HandingOut:
    """Schedulers, RuntimeClasses and beginnings of labels and annotations of systems that hand out devices beside
    kube-scheduler. `absent` are kinds of devices that no cloud of the catalog has, by words that mean them."""

    schedulers: frozenset[str]
    runtime_classes: frozenset[str]
    keys: tuple[str, ...]
    absent: FrozenMap[str, str]


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
            vendor=row.get("whole", {}).get("vendor", ""),
            whole=row.get("whole", {}).get("resource", ""),
            unserved=FrozenMap(row.get("unserved", {})),
            parts=FrozenMap({resource: FrozenMap(models) for resource, models in row.get("parts", {}).items()}),
        )
        for row in content["plugins"]
    )


@cache
def shared_gpu_resources() -> FrozenMap[str, str]:
    """Resources that share GPUs among pods, and who hands them out: no node of a plan has them."""
    return FrozenMap(contents("drivers")["device_plugins"]["shared_gpus"])


def shares_in_percent() -> frozenset[str]:
    """Those of them that count hundredths of each GPU."""
    return frozenset(contents("drivers")["device_plugins"]["shares_in_percent"])


def shares_counted() -> frozenset[str]:
    """Those of them of which one is a part of one GPU."""
    return frozenset(contents("drivers")["device_plugins"]["shares_counted"])


def shares_of_memory() -> frozenset[str]:
    """Those of them that say how much memory a pod has of each of its GPUs, in MiB."""
    return frozenset(contents("drivers")["device_plugins"]["shares_of_memory"])


def other_device(resource: str) -> str:
    """The kind of device behind a resource that no cloud of the catalog sells under this name: "GPU of Intel"; ""
    for all others."""
    known = contents("drivers")["device_plugins"]["other_devices"]
    return next((str(what) for start, what in known.items() if resource.startswith(start)), "")


@cache
def handing_out() -> HandingOut:
    """What shows that another system hands out devices to a pod that requests none."""
    found = contents("drivers")["device_plugins"]["handing_out"]
    schedulers, classes = frozenset(found["schedulers"]), frozenset(found["runtime_classes"])
    return HandingOut(schedulers, classes, tuple(found["keys"]), FrozenMap(found["absent"]))


def network_card(resource: str) -> bool:
    """True if the extended resource is a network card for RDMA or SR-IOV that no cloud of the catalog has under this
    name: another system's device plugin hands it out."""
    known = contents("drivers")["device_plugins"]["network_cards"]
    if "/" not in resource or resource.startswith(tuple(known["of_clouds"])):
        return False
    return resource.startswith(tuple(known["prefixes"])) or any(word in resource.lower() for word in known["words"])
