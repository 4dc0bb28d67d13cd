"""The catalog entry of a Probe, for review by a person, and the differences of MIG from the tables. Pure.

A probe has devices and their positions. It cannot know prices, capacity types, and the sizes of NVLink domains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, TypeAlias

from instance_catalog.drivers.facts import CardFacts, MigProfile, MigTable, driver_facts
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.probe.record import GpuRecord, MigProfileRecord, NicRecord, PciRecord, Probe, ProbeError
from instance_catalog.types.instance_type import Accelerator, InstanceType

Content: TypeAlias = dict[str, Any]
_KIB_PER_GIB: Final = 2**20


def catalog_content(
    probe: Probe, *, name: str, cloud: str, models: Mapping[str, Accelerator], existing: InstanceType | None = None
) -> Content:
    """The content of a catalog file that describes the probed node as type `name`.

    `models` are the catalog's accelerators; one that is not among them is added to the content. Of an `existing` type,
    the values that the catalog knows better (nominal memory, capacity types) stay. Raises ProbeError for GPUs of
    several models.
    """
    gpu = _common(probe.gpus)
    known = _model(gpu, models)
    model, key = ([], known.key) if known else ([_new_model(gpu, probe)], _key(gpu.product_name))
    entry: Content = {"name": name, "cloud": cloud}
    if existing is None:
        gib = -(-probe.host.memory_ki_b // _KIB_PER_GIB)
        entry |= {"architecture": probe.host.architecture, "vcpu": probe.host.vcpu, "memory": f"{gib}Gi"}
        entry |= {"capacityTypes": ["on-demand"]}
    entry["accelerator"] = {"model": key, "count": len(probe.gpus), **_differing(gpu, known)}
    entry |= {field: value for field, value in _devices(probe).items() if value}
    if existing is not None:
        entry["pci"] = _replacing(entry["pci"], existing, len(probe.gpus))
    entry["provenance"] = _provenance(probe, entry, exists=existing is not None)
    return {**({"accelerators": model} if model else {}), "types": [entry]}


def left_to_say(probe: Probe) -> tuple[str, ...]:
    """The facts that the probe could not read, and a person should add."""
    found = list(probe.notes)
    unknown = [nic for nic in probe.nics if _kind(nic) is None]
    found += [
        f"network card {nic.pci.address} ({nic.vendor}:{nic.device}): of no known kind, left out" for nic in unknown
    ]
    if any(gpu.pci.root is None for gpu in probe.gpus):
        found.append("PCIe roots: not in sysfs; a matchAttribute on pcieRoot will be unknown")
    if any(gpu.fabric for gpu in probe.gpus):
        found.append("NVLink domain across nodes: add fabric.domainNodes, the sizes in nodes in which it is sold")
    if any(gpu.mig and gpu.mig.enabled for gpu in probe.gpus):
        found.append("MIG mode is on: the node image turned it on, so it belongs in the pool's driver profile")
    return tuple(found)


def _devices(probe: Probe) -> Content:
    """PCI places, fabric and network cards."""
    links = [link for gpu in probe.gpus for link in gpu.nv_links]
    switched = any(link.peer == "switch" for link in links)
    return {
        "pci": _places(gpu.pci for gpu in probe.gpus),
        "fabric": {"link": "NVLink", "shape": "switch" if switched else "mesh"} if links else {},
        "networkCards": _cards(probe.nics),
    }


def _replacing(places: Content, existing: InstanceType, count: int) -> Content:
    """The columns of places. They merge one by one, so columns that the probe contradicts (another count, groups of
    roots) are emptied."""
    emptied = ["root", "rootGroup", "numa"] if count != existing.device_count else []
    emptied += ["rootGroup"] if "root" in places else []
    return {**{column: [] for column in emptied}, **places}


def _provenance(probe: Probe, entry: Content, *, exists: bool) -> Content:
    node = f"probe of a node with NVIDIA driver {probe.driver_version}"
    facts = {"source": node, "date": probe.taken_on}
    found: Content = {"accelerator": facts}
    if not exists:
        # The kernel and the firmware reserve part of the memory, and users decide the capacity types.
        shape = f"{node}; memory is what the kernel shows, rounded up; how it is sold is assumed"
        found = {"shape": {"source": shape, "date": probe.taken_on, "guess": True}, **found}
    groups = {"pci": "pci", "networkCards": "network"}
    return {**found, **{group: dict(facts) for field, group in groups.items() if field in entry}}


def _common(gpus: tuple[GpuRecord, ...]) -> GpuRecord:
    names = sorted({gpu.product_name for gpu in gpus})
    if len(names) != 1:
        step = "the catalog describes types with one model; write the entry by hand for the model that claims use"
        raise ProbeError(f"the node has GPUs of several models: {', '.join(names) or 'none'}", step)
    return gpus[0]


def _model(gpu: GpuRecord, models: Mapping[str, Accelerator]) -> Accelerator | None:
    """The model with NVML's name; of several, the one with the same memory, else the first by key."""
    named = [model for _, model in sorted(models.items()) if model.product_name == gpu.product_name]
    same = (model for model in named if gpu.memory_bytes is not None and model.memory == _memory(gpu.memory_bytes))
    return next(same, named[0] if named else None)


def _differing(gpu: GpuRecord, model: Accelerator | None) -> Content:
    if model is None or gpu.memory_bytes is None or model.memory == _memory(gpu.memory_bytes):
        return {}
    return {"memory": str(_memory(gpu.memory_bytes))}


def _new_model(gpu: GpuRecord, probe: Probe) -> Content:
    """A model without a MIG table: the partitions must be described first, so claims on partitions do not fit."""
    facts = {"source": f"probe of a node with NVIDIA driver {probe.driver_version}", "date": probe.taken_on}
    found = {
        "key": _key(gpu.product_name),
        "vendor": "NVIDIA",
        "model": gpu.product_name.removeprefix("NVIDIA "),
        "productName": gpu.product_name,
        "architecture": gpu.architecture,
        "cudaComputeCapability": gpu.cuda_compute_capability,
        "brand": gpu.brand,
        "memory": None if gpu.memory_bytes is None else str(_memory(gpu.memory_bytes)),
        "virtual": gpu.virtual or None,
        "provenance": {group: dict(facts) for group in ("identity", "productName", "memory")},
    }
    return {field: value for field, value in found.items() if value is not None}


def _key(product_name: str) -> str:
    words = re.findall(r"[a-z0-9]+", product_name.lower())
    return "-".join(words if words[:1] == ["nvidia"] else ["nvidia", *words])


def _memory(count: int) -> Quantity:
    """Bytes as a quantity, in Mi if that is exact."""
    return Quantity.parse(f"{count // 2**20}Mi" if count % 2**20 == 0 else str(count))


def _cards(nics: Iterable[NicRecord]) -> list[Content]:
    """Known cards, neighbours of one kind together."""
    named = [(kind, nic) for nic in nics if (kind := _kind(nic)) is not None]
    facts = driver_facts()["dranet"].cards
    found: list[Content] = []
    for (kind, subsystem, primary), group in groupby(named, key=_alike):
        members = [nic for _, nic in group]
        own = subsystem if subsystem and subsystem != facts[kind].subsystem else None
        count = len(members) if len(members) > 1 else None
        entry = {"kind": kind, "count": count, "subsystem": own, "primary": primary or None}
        found.append({**{f: v for f, v in entry.items() if v is not None}, **_places(nic.pci for nic in members)})
    return found


def _alike(item: tuple[str, NicRecord]) -> tuple[str, str, bool]:
    kind, nic = item
    return kind, nic.subsystem, nic.default_route


def _kind(nic: NicRecord) -> str | None:
    """The kind of card whose PCI ids begin like the card's."""
    name = f"{nic.vendor}:{nic.device}"
    facts: Mapping[str, CardFacts] = driver_facts()["dranet"].cards
    return next((kind for kind, card in facts.items() if name.startswith(card.pci_ids or ("none",))), None)


def _places(records: Iterable[PciRecord]) -> Content:
    """Columns that are known for every device."""
    places = list(records)
    columns: dict[str, list[str | int | None]] = {
        "bus": [place.address for place in places],
        "root": [place.root for place in places],
        "numa": [place.numa_node for place in places],
    }
    return {name: values for name, values in columns.items() if values and None not in values}


def mig_differences(gpu: GpuRecord, table: MigTable) -> Iterator[str]:
    """The differences of the table from the GPU, one line each; nothing if the GPU reports no profiles.

    Only profiles of the table are compared: the driver announces no others as devices (graphics profiles, say).
    """
    if gpu.mig is None or not gpu.mig.profiles:
        return
    read = {profile.id: profile for profile in gpu.mig.profiles}
    for expected in table.profiles:
        found = read.get(expected.gi_id)
        if found is None:
            yield f"MIG profile {expected.name} of table {table.model}: the GPU has none with id {expected.gi_id}"
            continue
        for what, stated, probed in _compared(expected, found):
            yield f"MIG profile {expected.name} of table {table.model}: {what} {stated}, but the GPU says {probed}"


def _compared(expected: MigProfile, found: MigProfileRecord) -> Iterator[tuple[str, str, str]]:
    values = {
        "multiprocessors": found.multiprocessors,
        "copyEngines": found.copy_engines,
        "decoders": found.decoders,
        "encoders": found.encoders,
        "jpegEngines": found.jpeg_engines,
        "ofaEngines": found.ofa_engines,
    }
    probed = {name: Quantity.of(value) for name, value in values.items()}
    probed["memory"] = Quantity.parse(f"{found.memory_mib}Mi")
    for name, stated in expected.figures.items():
        if name in probed and probed[name] != stated:
            yield name, str(stated), str(probed[name])
    places = tuple((start, expected.size) for start in expected.starts)
    if found.placements is not None and found.placements != places:
        yield "placements", _placements_text(places), _placements_text(found.placements)


def _placements_text(places: tuple[tuple[int, int], ...]) -> str:
    return " ".join(f"{start}:{size}" for start, size in places) or "none"
