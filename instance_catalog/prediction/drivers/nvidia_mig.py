"""MIG: GPU instances that fit on a GPU together, the layouts of nvidia-mig-parted, and the names of instances.

The rules follow NVIDIA's placements (nvidia-smi mig -lgipp) and are the same for every GPU of a geometry; figures are
those of the model's table. Must not know instance types, attributes or slices: nvidia_gpu.py converts placements to
devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from instance_catalog.dataclass import dataclass
from instance_catalog.drivers.facts import MigProfile, MigTable
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Capacity

_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]")
_CAPITAL = re.compile(r"([A-Z])")
_ONE = Quantity.of(1, "BinarySI")


@dataclass(frozen=True, slots=True)
class Placed:
    """A GPU instance on a GPU: it occupies memory slices start … start + profile.size - 1."""

    profile: MigProfile
    start: int

    @property
    def slices(self) -> range:
        """The occupied memory slices."""
        return range(self.start, self.start + self.profile.size)


@cache
def every_placement(table: MigTable) -> tuple[Placed, ...]:
    """All GPU instances that could be made on an empty GPU."""
    return tuple(Placed(profile, start) for profile in table.profiles for start in profile.starts)


@cache
def counters_of_gpu(table: MigTable) -> FrozenMap[str, Quantity]:
    """The counter set of one GPU: the maximum of each figure over the profiles, and one per memory slice.

    kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 partitions.go.
    """
    totals = {counter_name(name): value for name, value in capacities_of_gpu(table).items()}
    return FrozenMap({**totals, **{memory_slice(i): _ONE for i in range(table.memory_slices)}})


@cache
@cache
def published(placed: Placed, gpu_memory: Quantity | None) -> FrozenMap[str, Capacity]:
    """The published capacities. Guessed figures keep counters consistent, and so the combinations of instances. Claims
    on them are unknown, except for the memory, which is a part of the GPU's."""
    profile = placed.profile
    return _guessed(profile.figures, gpu_memory, guess=profile.guess)


@cache
def published_of_gpu(table: MigTable, gpu_memory: Quantity | None) -> FrozenMap[str, Capacity]:
    """The capacities of a whole GPU under dynamic MIG. The instance that is the whole GPU has the most of
    everything."""
    guess = any(profile.guess for profile in table.profiles if profile.size == table.memory_slices)
    return _guessed(capacities_of_gpu(table), gpu_memory, guess=guess)


def _guessed(figures: Mapping[str, Quantity], gpu_memory: Quantity | None, *, guess: bool) -> FrozenMap[str, Capacity]:
    bounds = {"memory": (Quantity.of(0), gpu_memory)} if guess and gpu_memory is not None else {}
    return FrozenMap({name: Capacity(value, guess=guess, bounds=bounds.get(name)) for name, value in figures.items()})


def capacities_of_gpu(table: MigTable) -> FrozenMap[str, Quantity]:
    """The capacities of a whole GPU under dynamic MIG: the maximum of each figure over all profiles."""
    figures = [profile.figures for profile in table.profiles]
    return FrozenMap({name: max(f[name] for f in figures) for name in figures[0]})


@cache
def counters_of(placed: Placed) -> FrozenMap[str, Quantity]:
    """The counters that one GPU instance uses from its GPU's counter set."""
    drawn = {counter_name(name): value for name, value in placed.profile.figures.items()}
    return FrozenMap({**drawn, **{memory_slice(i): _ONE for i in placed.slices}})


def possible_together(table: MigTable, chosen: Iterable[Placed]) -> bool:
    """True if NVIDIA's driver allows the instances together.

    Memory slices must not overlap, and there must be enough of the engines that cannot be divided further (only one +me
    instance can have the one set of media engines of an A100). The figures of the profiles do not matter.
    """
    occupied: set[int] = set()
    left = dict(table.shared)
    for placed in chosen:
        if not occupied.isdisjoint(placed.slices):
            return False
        occupied.update(placed.slices)
        for engine, count in placed.profile.takes.items():
            left[engine] -= count
    return all(count >= 0 for count in left.values())


def place(table: MigTable, counts: Mapping[str, int]) -> tuple[Placed, ...] | None:
    """A way to make `counts` instances (by profile kind) on an empty GPU, or None if there is none.

    NVIDIA's own choice among several ways is not documented. Here the larger instances choose first, the lowest start
    that works; profiles, counts and free room are the same either way.
    """
    by_kind = {profile.kind: profile for profile in table.profiles}
    wanted = [by_kind[kind] for kind, count in counts.items() for _ in range(count)]
    return next(_ways(table, sorted(wanted, key=lambda p: (-p.size, p.gi_id)), ()), None)


def _ways(table: MigTable, wanted: list[MigProfile], chosen: tuple[Placed, ...]) -> Iterator[tuple[Placed, ...]]:
    if not wanted:
        yield tuple(sorted(chosen, key=lambda p: (p.start, p.profile.gi_id)))
        return
    profile = wanted[0]
    last = chosen[-1] if chosen else None
    for start in profile.starts:
        # Equal instances are interchangeable: only ascending starts, or the search repeats itself.
        if last is not None and last.profile == profile and start <= last.start:
            continue
        more = (*chosen, Placed(profile, start))
        if possible_together(table, more):
            yield from _ways(table, wanted[1:], more)


@cache
def layouts(table: MigTable) -> FrozenMap[str, FrozenMap[str, int]]:
    """nvidia-mig-parted's layouts for this GPU: name → instances by profile kind.

    all-<profile> fills the GPU with one profile, all-balanced mixes sizes (NVIDIA/mig-parted v0.15.0
    deployments/systemd/config-default.yaml).
    """
    full = {f"all-{p.plain_name}": FrozenMap({p.kind: _most(table, p)}) for p in table.profiles}
    return FrozenMap({**full, "all-balanced": table.balanced})


def _most(table: MigTable, profile: MigProfile) -> int:
    count = 1
    while count < len(profile.starts) and place(table, {profile.kind: count + 1}) is not None:
        count += 1
    return count


@cache
def placements_in(table: MigTable, layout: str) -> tuple[Placed, ...]:
    """The instances of a layout of `layouts` on one GPU."""
    return place(table, layouts(table)[layout]) or ()


def device_name(minor: int, placed: Placed, *, with_profile: bool) -> str:
    """The device's name: gpu-0-mig-1g10gb-19-0; releases up to v25.8 wrote gpu-0-mig-19-0-1 (start and size)."""
    profile = placed.profile
    if not with_profile:
        return f"gpu-{minor}-mig-{profile.gi_id}-{placed.start}-{profile.size}"
    name = _NOT_IN_NAMES.sub("-", profile.name.lower().replace(".", "")).strip("-")
    return f"gpu-{minor}-mig-{name}-{profile.gi_id}-{placed.start}"


def counter_name(capacity: str) -> str:
    """Counters are named like capacities, hyphenated: copyEngines → copy-engines."""
    return _CAPITAL.sub(lambda found: "-" + found[1].lower(), capacity)


def memory_slice(index: int) -> str:
    """The counter of one memory slice."""
    return f"memory-slice-{index}"
