"""The kernel's side of a probe: PCI tree, network cards, CPUs and memory, from sysfs and procfs.

Reads below a root directory, which is /host/root in a container and a temporary one in tests. Must not know NVML.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from instance_catalog.probe.record import HostRecord, NicRecord, PciRecord, ProbeError

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_ADDRESS: Final = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_ROOT: Final = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}\Z")
# Class codes of the PCI code and id assignment: network controllers, InfiniBand among them.
_NETWORK: Final = "0x02"


def read_host(root: Path) -> HostRecord:
    """CPUs, memory and architecture of the machine whose /proc and /sys are below `root`. Raises ProbeError."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise ProbeError(f"unknown machine architecture {machine!r}", "run the probe on an amd64 or arm64 node")
    total = re.search(r"^MemTotal:\s+(\d+) kB$", _text(root / "proc/meminfo"), re.MULTILINE)
    processors = re.findall(r"^processor\s*:", _text(root / "proc/cpuinfo"), re.MULTILINE)
    if total is None or not processors:
        raise ProbeError(f"no CPUs or memory below {root / 'proc'}", "give the node's root directory with --host-root")
    return HostRecord.model_validate(
        {"architecture": _ARCHITECTURES[machine], "vcpu": len(processors), "memoryKiB": int(total[1])}
    )


def pci_record(root: Path, address: str) -> PciRecord:
    """The position of the PCI device with this address; without sysfs, the address alone.

    The root is the first element below /sys/devices, as in dranet and the GPU driver.
    """
    link = root / "sys/bus/pci/devices" / address
    if not link.exists():
        return PciRecord(address=address)
    parts = link.resolve().parts
    found = next((index for index, part in enumerate(parts) if _ROOT.match(part)), None)
    numa = _text(link / "numa_node").strip()
    return PciRecord(
        address=address,
        root=parts[found] if found is not None else None,
        path=tuple(part for part in parts[found:-1] if _ADDRESS.match(part)) if found is not None else (),
        numa_node=int(numa) if numa.isdigit() else None,  # -1: the kernel does not know
    )


def read_nics(root: Path) -> tuple[NicRecord, ...]:
    """The network cards on the PCI bus, by address."""
    default = _default_interfaces(root)
    return tuple(_nic(root, link, default) for link in _network_links(root))


def _network_links(root: Path) -> Iterator[Path]:
    directory = root / "sys/bus/pci/devices"
    links = sorted(directory.iterdir()) if directory.is_dir() else []
    return (link for link in links if _text(link / "class").startswith(_NETWORK))


def _nic(root: Path, link: Path, default: frozenset[str]) -> NicRecord:
    interfaces = _names(link / "net")
    return NicRecord(
        pci=pci_record(root, link.name),
        vendor=_hexadecimal(link / "vendor"),
        device=_hexadecimal(link / "device"),
        subsystem=_hexadecimal(link / "subsystem_device"),
        interfaces=interfaces,
        rdma_devices=_names(link / "infiniband"),
        default_route=not default.isdisjoint(interfaces),
    )


def _default_interfaces(root: Path) -> frozenset[str]:
    """Interfaces of IPv4 default routes: destination and mask are zero. PID 1 is in the node's network namespace."""
    rows = (line.split() for line in _text(root / "proc/1/net/route").splitlines()[1:])
    return frozenset(row[0] for row in rows if len(row) > 7 and row[1] == row[7] == "00000000")


def _names(directory: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in directory.iterdir())) if directory.is_dir() else ()


def _hexadecimal(path: Path) -> str:
    return _text(path).strip().removeprefix("0x")


def _text(path: Path) -> str:
    """The content of a file; "" if it does not exist, or may not be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
