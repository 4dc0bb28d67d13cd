"""Resource quotas: how much of something the machines of a project may have in a region, or everywhere.

Compute Engine refuses what exceeds one in three ways: the call itself (403 quotaExceeded), its operation, or the last
attempt of a managed instance (QUOTA_EXCEEDED in both). A resize request waits. Machines of Spot and flex-start count in
the preemptible quota of a project that has one, and those that are bound to a reservation in none. Sources: Compute
Engine documentation, allocation quotas; GKE documentation, quotas of TPUs; read 2026-11-26. Names of quotas are
Google's, as its messages quote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final

from instance_catalog.files.loader import load_catalog
from tests.fakes.gce.errors import ApiError

if TYPE_CHECKING:
    from tests.fakes.gce.state import Error, Group, Machine, Project

_PREEMPTIBLE: Final = frozenset({"SPOT", "FLEX_START"})
_GPUS: Final[Mapping[str, str]] = {
    "a2": "NVIDIA_A100_GPUS",
    "a3": "NVIDIA_H100_GPUS",
    "a4": "NVIDIA_B200_GPUS",
    "g2": "NVIDIA_L4_GPUS",
}
_TPUS: Final[Mapping[str, str]] = {"ct5lp": "TPU_LITE_PODSLICE_V5"}


class Way(Enum):
    """Where it says no."""

    CALL = "the call"
    OPERATION = "the operation"
    ATTEMPT = "the attempt"


@dataclass
class Quotas:
    """`limits` by name; of what is not there as much as anybody wants. A `way` for all of them."""

    limits: dict[str, int] = field(default_factory=dict)
    way: Way = Way.ATTEMPT

    def exceeded(self, project: Project, group: Group, machines: int) -> Error | None:
        """Why a group cannot have so many machines more."""
        if not self.limits or group.model == "RESERVATION_BOUND":
            return None
        for name, each in _needs(group.machine_type):
            named = self._counted_in(name, group.model)
            if named in self.limits and self._used(project, named, group.zone) + machines * each > self.limits[named]:
                where = "globally" if named.endswith("ALL_REGIONS") else f"in region {_region(group.zone)}"
                return "QUOTA_EXCEEDED", f"Quota '{named}' exceeded.  Limit: {self.limits[named]:.1f} {where}."
        return None

    def refuse(self, project: Project, group: Group, machines: int) -> Error | None:
        """The error of the operation of a call for so many machines. Raises ApiError where the call itself fails."""
        error = self.exceeded(project, group, machines) if self.way is not Way.ATTEMPT else None
        if error is not None and self.way is Way.CALL:
            raise ApiError(403, "quotaExceeded", error[1])
        return error

    def _counted_in(self, name: str, model: str) -> str:
        own = f"PREEMPTIBLE_{name}"
        return own if model in _PREEMPTIBLE and own in self.limits else name

    def _used(self, project: Project, named: str, zone: str) -> int:
        def counts(machine: Machine) -> bool:
            near = named.endswith("ALL_REGIONS") or _region(machine.zone) == _region(zone)
            return near and machine.model != "RESERVATION_BOUND" and bool(project.status(machine))

        return sum(
            each
            for machine in project.machines.values()
            if counts(machine)
            for name, each in _needs(machine.machine_type)
            if self._counted_in(name, machine.model) == named
        )


def _region(zone: str) -> str:
    return zone.rpartition("-")[0]


@cache
def _needs(machine_type: str) -> tuple[tuple[str, int], ...]:
    """What one machine takes, by the quota that counts it."""
    return tuple(_counted(machine_type))


def _counted(machine_type: str) -> Iterator[tuple[str, int]]:
    known = load_catalog().types[machine_type]
    family = machine_type.partition("-")[0]
    yield "CPUS", known.vcpu
    yield f"{family.upper()}_CPUS", known.vcpu  # of families that have one, as 'A2_CPUS'
    if family in _GPUS:
        yield _GPUS[family], known.device_count
        yield "GPUS_ALL_REGIONS", known.device_count
    elif family.startswith(("ct", "tpu")):
        yield _TPUS.get(family, "TPUS_PER_TPU_FAMILY"), known.device_count
