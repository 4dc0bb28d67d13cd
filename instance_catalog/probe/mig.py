"""A probed GPU's MIG profiles against the partition table that predictions take for its model. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from instance_catalog.drivers.facts import MigProfile, MigTable
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.probe.record import GpuRecord, MigProfileRecord


def mig_differences(gpu: GpuRecord, table: MigTable) -> Iterator[str]:
    """What the table says differently, one line each; nothing where the GPU tells no profiles.

    Only profiles of the table are looked at: the driver announces no others as devices (graphics profiles, say).
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
        yield "placements", _places(places), _places(found.placements)


def _places(places: tuple[tuple[int, int], ...]) -> str:
    return " ".join(f"{start}:{size}" for start, size in places) or "none"
