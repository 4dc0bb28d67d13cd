"""dra.cpu: CPUs, one by one or in groups (kubernetes-sigs/dra-driver-cpu v0.2.0 pkg/device).

CPU numbers follow Linux on the clouds' machines: first one thread of every core, socket by socket, then the second
threads in the same order; NUMA nodes divide the cores evenly. Must not know other drivers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from instance_catalog.dataclass import dataclass
from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import AttributeValue, Capacity, Device, ListValue
from instance_catalog.prediction.driver import (
    MOST_ADVANCED_DEVICES,
    MOST_DEVICES,
    Prediction,
    SliceContents,
    devices_in_chunks,
)
from instance_catalog.prediction.pci import NUMA_NODE, PCIE_ROOT
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.instance_type import InstanceType


@dataclass(frozen=True, slots=True)
class _Cpu:
    number: int
    core: int
    numa: int | None
    socket: int | None


def runs_on(instance_type: InstanceType) -> bool:
    """Every machine has CPUs."""
    return True


def why_unpredictable(instance_type: InstanceType, profile: DriverProfile) -> str | None:
    """The reason why the slices cannot be predicted, or None if they can."""
    name, cpu = instance_type.name, instance_type.cpu
    if any(number >= instance_type.vcpu for number in _reserved(profile)):
        return (
            f"reserved={profile.option('reserved')} names CPUs that {name} does not have; it has {instance_type.vcpu}"
        )
    grouping = profile.option("group-by") if profile.option("mode") == "grouped" else "cpu"
    needed = {"machine": {}, "socket": {"sockets": cpu.sockets}, "numanode": {"numaNodes": cpu.numa_nodes}}.get(
        grouping or "", {"numaNodes": cpu.numa_nodes, "threadsPerCore": cpu.threads_per_core}
    )
    missing = [field for field, value in needed.items() if value is None]
    if missing:
        fields = " and ".join(f"cpu.{field}" for field in missing)
        values = " ".join(f"cpu.{field}=N" for field in missing)
        # Not group-by=machine, which needs no such fact: it serves claims to which another scheduler assigns cores.
        return (
            f"the catalog has no {fields} for {name}: `foreslice catalog set {name} {values} --into DIR --reason WHY`"
        )
    if profile.option("pcie-roots") and _roots(instance_type) is None:
        return f"the PCIe roots of {name} are not recorded; add pci.root and pci.numa, or drop pcie-roots"
    return None


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """The devices, cut into slices of the size that the API allows. PCIe roots are lists, which lowers it."""
    grouped = profile.option("mode") == "grouped"
    devices = list(_groups(instance_type, profile) if grouped else _single(instance_type, profile))
    return devices_in_chunks(devices, MOST_ADVANCED_DEVICES if profile.option("pcie-roots") else MOST_DEVICES)


def _groups(instance_type: InstanceType, profile: DriverProfile) -> Iterator[Device]:
    """One device per group with allocatable CPUs; claims take shares of its capacity."""
    grouping, free = profile.option("group-by"), _allocatable(instance_type, profile)
    smt = _smt(instance_type)
    if grouping == "machine":
        yield _group("cpudevmachine", free, {**smt, **_root_lists(instance_type, profile, free)})
        return
    by_numa = grouping == "numanode"
    for key in sorted({(cpu.numa if by_numa else cpu.socket) or 0 for cpu in free}):
        members = [cpu for cpu in free if (cpu.numa if by_numa else cpu.socket) == key]
        attributes = {**smt, "dra.cpu/socketID": _socket(instance_type, members[0])}
        attributes |= _numa(members[0]) if by_numa else {}
        attributes |= _root_lists(instance_type, profile, members)
        yield _group(f"cpudev{'numa' if by_numa else 'socket'}{key:03d}", members, attributes)


def _group(name: str, members: list[_Cpu], attributes: dict[str, AttributeValue]) -> Device:
    return Device(
        name,
        FrozenMap({**attributes, "dra.cpu/numCPUs": len(members)}),
        FrozenMap({"dra.cpu/cpu": Capacity(Quantity.of(len(members)))}),
        allow_multiple_allocations=True,
    )


def _single(instance_type: InstanceType, profile: DriverProfile) -> Iterator[Device]:
    """One device per CPU; the threads of a core are neighbours."""
    free = sorted(_allocatable(instance_type, profile), key=lambda cpu: (cpu.core, cpu.number))
    for index, cpu in enumerate(free):
        attributes = {
            **_smt(instance_type),
            **_numa(cpu),
            **_root_lists(instance_type, profile, [cpu]),
            "dra.cpu/socketID": _socket(instance_type, cpu),
            "dra.cpu/cpuID": cpu.number,
            "dra.cpu/coreID": on_node("int", f"core-{cpu.core}", "coreID"),
            "dra.cpu/cacheL3ID": catalog_gap("int", instance_type.name, f"cpu-{cpu.number}", "cacheL3ID"),
            "dra.cpu/coreType": "standard",
        }
        yield Device(f"cpudev{index:03d}", FrozenMap(attributes))


def _allocatable(instance_type: InstanceType, profile: DriverProfile) -> list[_Cpu]:
    reserved = _reserved(profile)
    return [cpu for cpu in _cpus(instance_type) if cpu.number not in reserved]


def _cpus(instance_type: InstanceType) -> Iterator[_Cpu]:
    cpu = instance_type.cpu
    cores = max(1, instance_type.vcpu // (cpu.threads_per_core or 1))
    for number in range(instance_type.vcpu):
        core = number % cores
        yield _Cpu(number, core, _part(core, cores, cpu.numa_nodes), _part(core, cores, cpu.sockets))


def _part(core: int, cores: int, parts: int | None) -> int | None:
    return None if parts is None else core * parts // cores


def _numa(cpu: _Cpu) -> dict[str, AttributeValue]:
    """The standard attribute and the two of older releases that are kept."""
    numa = cpu.numa or 0
    return {NUMA_NODE: numa, "dra.cpu/numaNodeID": numa, "dra.net/numaNode": numa}


def _socket(instance_type: InstanceType, cpu: _Cpu) -> AttributeValue:
    if cpu.socket is not None:
        return cpu.socket
    return catalog_gap("int", instance_type.name, f"numa-{cpu.numa}", "socketID")


def _smt(instance_type: InstanceType) -> dict[str, AttributeValue]:
    threads = instance_type.cpu.threads_per_core
    known = threads is not None
    return {"dra.cpu/smtEnabled": threads != 1 if known else catalog_gap("bool", instance_type.name, "smtEnabled")}


def _root_lists(instance_type: InstanceType, profile: DriverProfile, cpus: list[_Cpu]) -> dict[str, AttributeValue]:
    """The PCIe roots local to any of the CPUs."""
    roots = _roots(instance_type) if profile.option("pcie-roots") else None
    if roots is None:
        return {}
    nodes = {cpu.numa for cpu in cpus}
    local = sorted({root for root, numa in roots if numa in nodes or None in nodes})
    return {PCIE_ROOT: ListValue("string", tuple(local))} if local else {}


def _roots(instance_type: InstanceType) -> frozenset[tuple[str, int]] | None:
    """The verified roots with their NUMA nodes; None unless both are known of every recorded device."""
    places = [*instance_type.placements, *(card.placement for card in instance_type.network_cards if not card.primary)]
    known = [(p.pcie_root, p.numa_node) for p in places if isinstance(p.pcie_root, str) and p.numa_node is not None]
    found = frozenset((root, numa) for root, numa in known)
    return found if found and len(known) == len(places) else None


def _reserved(profile: DriverProfile) -> frozenset[int]:
    """0-1+48-49 → {0, 1, 48, 49}."""
    numbers: set[int] = set()
    for part in (profile.option("reserved") or "").split("+"):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1) if first else ())
    return frozenset(numbers)


PREDICTION: Final = Prediction(runs_on, contents, why_unpredictable=why_unpredictable, in_implicit_pools=False)
