"""Machines for probes: the fake NVML of a new and of an old driver, and a node's /proc and /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.nvml.library import compile_library

ROUTES = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"


@pytest.fixture(scope="session")
def new_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with every function that the probe asks for."""
    return compile_library(tmp_path_factory.mktemp("nvml-new"))


@pytest.fixture(scope="session")
def old_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library without what newer drivers brought."""
    return compile_library(tmp_path_factory.mktemp("nvml-old"), "-DOLD_DRIVER")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node's root: 4 CPUs, two GPUs below one bridge, an ENA with the default route and an EFA beside the GPUs."""
    root = tmp_path / "root"
    _file(root / "proc/meminfo", "MemTotal:       65011712 kB\nMemFree: 1 kB\n")
    _file(root / "proc/cpuinfo", "".join(f"processor\t: {n}\nmodel name: any\n\n" for n in range(4)))
    _file(root / "proc/1/net/route", f"{ROUTES}ens5\t00000000\t0101000A\t0003\t0\t0\t512\t00000000\t0\t0\t0\n")
    for address in ("0000:53:00.0", "0000:64:00.0", "0000:10:1c.0", "0000:10:1d.0"):
        _device(root, f"pci0000:{address[5:7]}", address, ids=("10de", "2330", "16c1"), numa="0", kind="0x030200")
    for address in ("0008:06:00.0", "0009:06:00.0"):
        _device(root, f"pci{address[:4]}:00", address, ids=("10de", "2941", "2046"), numa="-1", kind="0x030200")
    ena = _device(root, "pci0000:00", "0000:00:05.0", ids=("1d0f", "ec20", "ec20"), numa="0", kind="0x020000")
    (ena / "net" / "ens5").mkdir(parents=True)
    efa = _device(root, "pci0000:53", "0000:54:00.0", ids=("1d0f", "efa1", "efa1"), numa="0", kind="0x020000")
    (efa / "infiniband" / "rdmap84s0").mkdir(parents=True)
    return root


def _device(root: Path, domain: str, address: str, *, ids: tuple[str, str, str], numa: str, kind: str) -> Path:
    """A PCI device behind a bridge, with the link that /sys/bus/pci/devices has to it."""
    place = root / "sys/devices" / domain / f"{domain[3:]}:01.0" / address
    for name, value in zip(("vendor", "device", "subsystem_device"), ids, strict=True):
        _file(place / name, f"0x{value}\n")
    _file(place / "class", f"{kind}\n")
    _file(place / "numa_node", f"{numa}\n")
    link = root / "sys/bus/pci/devices" / address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(place)
    return place


def _file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
