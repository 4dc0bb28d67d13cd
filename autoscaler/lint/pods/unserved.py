"""Resources of pods that nothing on offer has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Final

from autoscaler.lint.pods.cloud_terms import cloud_named
from autoscaler.model.pod import Pod
from autoscaler.planning.demand.scope import requested_resources
from instance_catalog.diagnostic import Path, all_of
from instance_catalog.drivers.device_plugins import network_card, other_device, retired, shared_gpu_resources
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.device_plugins import (
    EFA,
    is_plugin_resource,
    plugin_of,
    plugin_resources,
    undescribed_device,
)
from instance_catalog.prediction.runnable import NeedsMore, what_else_it_needs
from instance_catalog.types.catalog import Catalog

RDMA_HERE: Final = (
    f"for RDMA, machines of AWS have {EFA} (that of g4dn and g5 has no RDMA read), and DRANET hands out the RDMA cards "
    "of Google Cloud's (driver dra.net)"
)


def foreign_resource(name: str) -> bool:
    """True if no machine of the catalog's clouds can have the resource: another cloud has it, or it is a network card
    that another system hands out."""
    return bool(cloud_named(name)) or network_card(name)


def unserved_resources(pod: Pod, given: Set[str], catalog: Catalog) -> list[str]:
    """Resources of devices that the pod requests and that are not `given`, no instance type has, and no known device
    plugin or sharing system hands out."""
    asked = [name for name in dict.fromkeys(requested_resources(pod)) if "/" in name and name not in given]
    unknown = [name for name in asked if not (is_plugin_resource(name) or retired(name))]
    had = {name for one in catalog for name in (*one.allocatable, *one.extended_resources)} if unknown else set()
    return [name for name in unknown if name not in had and name not in shared_gpu_resources()]


def absent_devices(
    pod: Pod, given: Set[str], vendors: Set[str], having: Callable[[str], Mapping[str, Quantity]]
) -> list[str]:
    """The resources by which the pod asks for devices that the catalog does not have: it has none of their vendor, or
    none that the device plugin hands out, and no node or pool is `given` with them. `having`: as `machines_having`."""
    asked = [(name, other_device(name)) for name in dict.fromkeys(requested_resources(pod)) if name not in given]
    return [
        name
        for name, what in asked
        if what and (what.rpartition(" of ")[2] not in vendors or (is_plugin_resource(name) and not having(name)))
    ]


def absent_told(found: str, *, catalog: Catalog) -> tuple[Path, str, str]:
    """The warning about resources of devices that the catalog lacks: field, message, next step."""
    names = found.split()
    plugin = plugin_of(names[0])
    served = "".join(f" but the {model}: {why}" for model, why in plugin.unserved.items()) if plugin else ""
    return (
        ("spec", "containers", "resources"),
        f"asks for {' and '.join(names)}, and no instance type in the catalog has "
        f"{_with_article(other_device(names[0]))}{served}",
        _to_have_it(names, catalog),
    )


def _with_article(device: str) -> str:
    """The kind of a device with its article: an NPU, an MLU, a GPU."""
    return f"an {device}" if device[:1] in "AEFHILMNORSX" else f"a {device}"


def _to_have_it(names: list[str], catalog: Catalog) -> str:
    if undescribed_device(names[0]):
        clouds = all_of(sorted({one.cloud for one in catalog}))
        return (
            f"no machine of {clouds} replaces it: leave such pods to existing nodes, and give these with -f, and "
            "their ResourceSlices if a DRA driver publishes the devices, to see whether the pods fit"
        )
    needs = ""
    if unknown := [name for name in names if not is_plugin_resource(name)]:
        amounts = ", ".join(f"{name}: N" for name in unknown)
        driver = f"gpu.{unknown[0].partition('/')[0].removeprefix('gpu.')}"
        claim = f", unless pods claim DeviceClass {driver} instead" if driver in _drivers() else ""
        needs = f" with extendedResources: {{{amounts}}} in its file{claim};"
    return (
        f"add one with `foreslice catalog add` (docs/examples/catalog has one of another cloud){needs or ','} or leave "
        "such pods to existing nodes"
    )


def _drivers() -> frozenset[str]:
    return frozenset(facts.driver for facts in driver_facts().values())


def machines_having(resource: str, catalog: Catalog) -> dict[str, Quantity]:
    """The amount of a device plugin's resource on each instance type that has any."""
    if not is_plugin_resource(resource):
        return {}
    found = ((t.name, r, n) for t in catalog for amounts in plugin_resources(t).values() for r, n in amounts.items())
    return {name: amount for name, of, amount in found if of == resource}


def preparations(resource: str, catalog: Catalog) -> dict[str, NeedsMore]:
    """The needs of instance types with a device plugin's resource before its devices work; {} if one needs nothing."""
    found = {name: what_else_it_needs(catalog.types[name]) for name in machines_having(resource, catalog)}
    needed = {name: needs for name, needs in found.items() if needs is not None}
    return needed if len(needed) == len(found) else {}
