"""KWOK with a reservation: a provider of a third party, found by its entry point, for the life of a block on KWOK.

Machines are those of the kwok provider. The reservation is a file, and its state follows from the clock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from autoscaler.composition.kwok import KwokMachines
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.types.instance_type import CapacityType
from providers.contract import (
    Clock,
    Instance,
    InstancePage,
    LaunchAnswer,
    LaunchRequest,
    OfferingStatus,
    Provider,
    Reservation,
    ReservationState,
    TerminateAnswer,
    Traits,
)
from providers.kwok.provider import KwokProvider
from providers.plugins import Surroundings
from tests.e2e.harness.block_life import RECLAIM, TYPE, ZONE, Block, text

NAME: Final = "reserving"
FILE: Final = "E2E_RESERVATION"


def plug_in(folder: Path) -> dict[str, str]:
    """Declare the provider as an installed package does; the environment in which it is found."""
    declared = folder / "plugin/foreslice_e2e-1.dist-info"
    declared.mkdir(parents=True)
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: foreslice-e2e\nVersion: 1\n", encoding="ascii")
    (declared / "entry_points.txt").write_text(f"[foreslice.providers]\n{NAME} = {__name__}:providers\n", "ascii")
    return {"PYTHONPATH": str(declared.parent), FILE: str(folder / "reservation.json")}


def reserve(folder: Path, block: Block) -> None:
    """Make the reservation of a block."""
    facts = {"id": block.reservation, "startsAt": text(block.starts_at), "endsAt": text(block.ends_at)}
    (folder / "reservation.json").write_text(json.dumps(facts), encoding="ascii")


def providers(surroundings: Surroundings) -> Mapping[str, Provider]:
    """The ProviderFactory."""
    machines = KwokMachines(surroundings.objects, surroundings.catalog, REFERENCE)
    kwok = KwokProvider(surroundings.objects, machines)
    return {"KwokNodeTemplate": Reserving(kwok, surroundings, Path(os.environ[FILE]))}


class Reserving:
    """The kwok provider, with machines of capacity type capacity-block in the reservation."""

    def __init__(self, kwok: KwokProvider, surroundings: Surroundings, file: Path) -> None:
        self._kwok = kwok
        self._clock: Clock = surroundings.clock
        self._file = file

    @property
    def name(self) -> str:
        return NAME

    @property
    def traits(self) -> Traits:
        return self._kwok.traits

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        plain = replace(request, offerings=tuple(replace(one, reservation="") for one in request.offerings))
        answer = self._kwok.launch(plain)
        return replace(answer, instances=tuple(map(self._reserved, answer.instances)))

    def describe(self, tags: Mapping[str, str], *, page: str = "") -> InstancePage:
        found = self._kwok.describe(tags, page=page)
        return replace(found, instances=tuple(map(self._reserved, found.instances)))

    def look_up(self, provider_ids: Sequence[str]) -> Mapping[str, Instance]:
        return {key: self._reserved(one) for key, one in self._kwok.look_up(provider_ids).items()}

    def place(self) -> str:
        return self._kwok.place()

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        return self._kwok.terminate(ids)

    def reservations(self) -> tuple[Reservation, ...]:
        if not self._file.exists():
            return ()
        facts = json.loads(self._file.read_text(encoding="ascii"))
        starts_at, ends_at = (datetime.fromisoformat(facts[moment]) for moment in ("startsAt", "endsAt"))
        state = ReservationState.SCHEDULED
        if self._clock.now() >= starts_at:
            state = ReservationState.ENDED if self._clock.now() >= ends_at else ReservationState.ACTIVE
        one = Reservation(
            id=facts["id"],
            capacity_type=CapacityType.CAPACITY_BLOCK,
            instance_type=TYPE,
            zone=ZONE,
            state=state,
            count=1,
            available=1,
            starts_at=starts_at,
            ends_at=ends_at,
            reclaim_at=ends_at - RECLAIM,
        )
        return (one,)

    def offerings(self) -> tuple[OfferingStatus, ...]:
        return self._kwok.offerings()

    def _reserved(self, machine: Instance) -> Instance:
        if machine.offering.capacity_type != "capacity-block":
            return machine
        (one,) = self.reservations()
        return replace(machine, offering=one.offering, reclaim_at=one.reclaim_at)
