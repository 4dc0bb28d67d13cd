"""What the providers say at the beginning of a tick: their machines and reservations, and which did not answer.

It asks and concludes nothing: what an answer means for nodes and blocks is lifecycle's to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.execution.launch import Providers
from autoscaler.execution.terminate import ALIVE
from autoscaler.lifecycle.provisioned_node import MachineState
from autoscaler.lifecycle.reflect import SeenReservation, World
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.words import advised
from providers.contract import (
    TAG_BATCH,
    TAG_CLUSTER,
    Instance,
    NoticeReader,
    Provider,
    Reservation,
    ReservationState,
    TemplateJudge,
    TemplateVerdict,
    describe_all,
)
from providers.errors import ProviderError, RefusedError


@dataclass(frozen=True, slots=True)
class ProvidersSeen:
    """`machines` and `windows` are those of the providers that answered, by name; machines by provider id.

    `reservations` is None unless all of them answered: a block must not end because nobody could be asked.
    `reserving` are the kinds of node templates whose providers reserve; `silent` tells about those without an answer.
    `serving` are all kinds of node templates, with why their provider refuses to answer if it does.
    """

    machines: Mapping[str, Mapping[str, Instance]]
    windows: Mapping[str, timedelta]
    reservations: tuple[SeenReservation, ...] | None
    reserving: frozenset[str]
    silent: tuple[Trouble, ...]
    serving: Mapping[str, Reason | None]

    def world(
        self, snapshot: Snapshot, expected_drivers: Mapping[str, frozenset[str]], *, batches: frozenset[str]
    ) -> World:
        """The snapshot beside what the providers say. `batches`: the LaunchBatches that are written down."""
        listed = [entry for machines in self.machines.values() for entry in machines.items()]
        return World(
            snapshot=snapshot,
            machines={key: MachineState(machine.state.value) for key, machine in listed},
            windows=self.windows,
            reclaims={key: machine.reclaim_at for key, machine in listed if machine.reclaim_at is not None},
            notices={key: machine.noticed_at for key, machine in listed if machine.noticed_at is not None},
            expected_drivers=expected_drivers,
            reservations=self.reservations,
            reserving=self.reserving,
            batches=batches,
            launched=None if self.silent else frozenset(_batches(machine for _, machine in listed)),
        )


def _batches(machines: Iterable[Instance]) -> Iterator[str]:
    """The batches whose calls have left machines that did not end."""
    for machine in machines:
        if machine.state in ALIVE:
            yield machine.tags.get(TAG_BATCH, "")


def ask(providers: Providers) -> ProvidersSeen:
    """Ask all of them. Nothing may be concluded from one that did not answer; it is told."""
    machines: dict[str, Mapping[str, Instance]] = {}
    windows: dict[str, timedelta] = {}
    reservations: list[SeenReservation] = []
    reserving: set[str] = set()
    silent: list[Trouble] = []
    serving: dict[str, Reason | None] = dict.fromkeys(providers.by_template)
    isolation = Isolation()
    for template, provider in providers.by_template.items():
        listed: list[Instance] = []
        held: list[SeenReservation] = []
        trouble = isolation.attempt(
            "Provider", provider.name, partial(_read, provider, providers.cluster, listed, held)
        )
        if trouble is not None:
            silent.append(trouble)
            if isinstance(trouble.error, RefusedError):
                why = advised(trouble.error.message, trouble.error.next_step)
                serving[template] = Reason.of(Code.PROVIDER_REFUSES, provider=provider.name, message=why)
            continue
        if provider.traits.reserves:
            reserving.add(template)
        windows[provider.name] = provider.traits.consistency_window
        machines[provider.name] = {machine.provider_id: machine for machine in listed}
        reservations += held
    return ProvidersSeen(
        machines=machines,
        windows=windows,
        reservations=None if silent else tuple(reservations),
        reserving=frozenset(reserving),
        silent=tuple(silent),
        serving=serving,
    )


def acknowledge(providers: Providers, seen: ProvidersSeen) -> tuple[Trouble, ...]:
    """Let those that answered remove the notices that their answers came from: what they say is written down."""
    isolation = Isolation()
    troubles = [
        isolation.attempt("Provider", provider.name, provider.acknowledge)
        for provider in providers.by_template.values()
        if provider.name in seen.machines and isinstance(provider, NoticeReader)
    ]
    return tuple(trouble for trouble in troubles if trouble is not None)


def _read(provider: Provider, cluster: str, listed: list[Instance], held: list[SeenReservation]) -> None:
    listed += describe_all(provider, {TAG_CLUSTER: cluster})
    held += map(_seen, provider.reservations())


def verdicts(providers: Providers) -> tuple[tuple[TemplateVerdict, ...], tuple[Trouble, ...]]:
    """What the providers say of their node templates, and what kept one from saying it other than its cloud.

    One that could not say is asked again at the next tick.
    """
    found: list[TemplateVerdict] = []
    troubles: list[Trouble] = []
    for provider in providers.by_template.values():
        if isinstance(provider, TemplateJudge):
            trouble = Isolation().attempt("Provider", provider.name, partial(_judge, provider, found))
            if trouble is not None and not isinstance(trouble.error, ProviderError):
                troubles.append(trouble)
    return tuple(found), tuple(troubles)


def _judge(judge: TemplateJudge, found: list[TemplateVerdict]) -> None:
    found += judge.judged()


def _seen(reservation: Reservation) -> SeenReservation:
    return SeenReservation(
        id=reservation.id,
        instance_type=reservation.instance_type,
        zone=reservation.zone,
        available=reservation.available,
        ends_at=reservation.ends_at,
        reclaim_at=reservation.reclaim_at,
        over=reservation.state is ReservationState.ENDED,
        tags=reservation.tags,
        note=reservation.note,
    )
