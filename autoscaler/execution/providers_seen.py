"""The providers' answers at the beginning of a reconcile: their machines and reservations, and the failed requests.

It reads and concludes nothing: lifecycle decides what an answer means for nodes and blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from autoscaler.clock import ClockJumps
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.errors import ConfigurationError
from autoscaler.execution.launch import Providers, elsewhere
from autoscaler.execution.patience import Patience
from autoscaler.execution.terminate import ALIVE
from autoscaler.lifecycle.absence import overdue
from autoscaler.lifecycle.provisioned_node import MachineState, has_machine
from autoscaler.lifecycle.recreation import SeenMachine
from autoscaler.lifecycle.reflect import SeenReservation, World
from autoscaler.model.capacity import CapacityBlock, CapacityPool, GroupNodes, GroupOffering, GroupRoom, NodeTemplateRef
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.words import advised
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from providers.abilities import BootTimes, NoticeReader
from providers.contract import (
    TAG_BATCH,
    TAG_CLUSTER,
    Instance,
    InstanceState,
    OfferingKey,
    Provider,
    Reservation,
    ReservationState,
    TemplateJudge,
    TemplateStatus,
    describe_all,
)
from providers.errors import ProviderError, RefusedError
from providers.places import same_place

# So old no machine is.
_UNBOUNDED: Final = timedelta(days=36_500)
_STATES: Final = {state: MachineState(state.value) for state in InstanceState}


@dataclass(frozen=True, slots=True)
class ProvidersSeen:
    """`machines` and `windows` are those of the providers that answered, by name; machines by provider id.

    `reservations` is None unless all of them answered: a block must not end because no provider could be asked.
    `reserving` are the kinds of node templates whose providers reserve; `silent` are the providers without an answer.
    `places` are the providers' places, by name. `doubts` are machines that exist and are not listed with the cluster's
    tags. `serving` are all kinds of node templates, each with the reason if its provider refuses to answer. `boots`:
    the boot time-outs of node templates (kind, name) that set one.
    """

    machines: Mapping[str, Mapping[str, Instance]]
    windows: Mapping[str, timedelta]
    reservations: tuple[SeenReservation, ...] | None
    reserving: frozenset[str]
    silent: tuple[Trouble, ...]
    serving: Mapping[str, Reason | None]
    places: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[Trouble, ...] = ()
    boots: Mapping[NodeTemplateRef, timedelta] = field(default_factory=dict)

    def world(
        self, snapshot: Snapshot, expected_drivers: Mapping[str, frozenset[str]], *, batches: frozenset[str]
    ) -> World:
        """The snapshot with the providers' answers. `batches`: the recorded LaunchBatches."""
        listed = [entry for machines in self.machines.values() for entry in machines.items()]
        return World(
            snapshot=replace(
                snapshot,
                pools=tuple(map(self._with_boot_timeout, snapshot.pools)),
                unwritten=self._unwritten(snapshot),
            ),
            machines={key: _STATES[machine.state] for key, machine in listed},
            known_as={k: SeenMachine(one.id, one.launched_at) for k, one in listed if one.state in ALIVE},
            windows=self.windows,
            reclaims={key: machine.reclaim_at for key, machine in listed if machine.reclaim_at is not None},
            notices={key: machine.noticed_at for key, machine in listed if machine.noticed_at is not None},
            places=self.places,
            expected_drivers=expected_drivers,
            reservations=self.reservations,
            reserving=self.reserving,
            batches=batches,
            launched=None if self.silent else frozenset(_batches(machine for _, machine in listed)),
        )

    def _unwritten(self, snapshot: Snapshot) -> FrozenMap[str, int]:
        """Machines that orphans.py adopts, by LaunchBatch: pods may run on them, and no object exists for them."""
        joined = {node.provider_id for node in snapshot.nodes} - {node.provider_id for node in snapshot.provisioned}
        if not joined:
            return FrozenMap()
        found = (one for machines in self.machines.values() for one in machines.values() if one.provider_id in joined)
        return FrozenMap(Counter(_batches(found)))

    def _with_boot_timeout(self, pool: CapacityPool) -> CapacityPool:
        """The pool's own wins over its node template's."""
        said = self.boots.get(pool.node_template)
        return pool if said is None or pool.boot_timeout is not None else replace(pool, boot_timeout=said)


def _batches(machines: Iterable[Instance]) -> Iterator[str]:
    """The batches whose calls have left machines that did not end."""
    for machine in machines:
        if machine.state in ALIVE:
            yield machine.tags.get(TAG_BATCH, "")


def ask(
    providers: Providers,
    provisioned: Collection[ProvisionedNode] = (),
    *,
    now: datetime,
    patience: Patience | None = None,
    jumps: ClockJumps | None = None,
) -> ProvidersSeen:
    """Ask all of them. Nothing may be concluded from one that did not answer, or that calls another place than the one
    in which its machines are; that is a trouble. A machine of `provisioned` that is not listed is looked up by its id.
    With `patience`, one that failed is not asked for a while, and its trouble stays. After a jump of the wall clock
    nothing is concluded from a missing machine for a consistency window: it may be younger than it looks."""
    answers = _Answers(providers.cluster, serving=dict.fromkeys(providers.by_template))
    if jumps is not None:
        jumps.measure()  # also while no provider answers: a clock that is set and set back would hide the jump
    for template, provider in providers.by_template.items():
        listed: list[Instance] = []
        held: list[SeenReservation] = []
        mine = [node for node in provisioned if node.provider == provider.name and has_machine(node)]
        read = partial(_read, provider, providers.cluster, mine, now, listed, held)
        wait = read if patience is None else partial(patience.attempt, provider.name, read)
        trouble = answers.isolation.attempt("Provider", provider.name, wait)
        if trouble is not None:
            answers.failed(template, provider, trouble)
            continue
        window = provider.traits.consistency_window
        answers.windows[provider.name] = _UNBOUNDED if jumps is not None and jumps.within(window) else window
        answers.answered(template, provider, mine, listed, held)
    return answers.seen()


@dataclass(slots=True)
class _Answers:
    """The providers' answers so far; ProvidersSeen describes the fields."""

    cluster: str
    serving: dict[str, Reason | None]
    isolation: Isolation = field(default_factory=Isolation)
    machines: dict[str, Mapping[str, Instance]] = field(default_factory=dict)
    windows: dict[str, timedelta] = field(default_factory=dict)
    reservations: list[SeenReservation] = field(default_factory=list)
    reserving: set[str] = field(default_factory=set)
    silent: list[Trouble] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)
    doubts: list[Trouble] = field(default_factory=list)
    boots: dict[NodeTemplateRef, timedelta] = field(default_factory=dict)

    def failed(self, template: str, provider: Provider, trouble: Trouble) -> None:
        """Records that it did not answer; if a person has to correct something, with the reason for its templates."""
        self.silent.append(trouble)
        if isinstance(trouble.error, (RefusedError, ConfigurationError)):
            why = advised(trouble.error.message, trouble.error.next_step)
            self.serving[template] = Reason.of(Code.PROVIDER_REFUSES, provider=provider.name, message=why)

    def answered(
        self,
        template: str,
        provider: Provider,
        mine: Sequence[ProvisionedNode],
        listed: Iterable[Instance],
        held: Iterable[SeenReservation],
    ) -> None:
        """Its machines and reservations, and what may be doubted of `mine`."""
        if provider.traits.reserves:
            self.reserving.add(template)
        self.machines[provider.name] = {machine.provider_id: machine for machine in listed}
        self.reservations += held
        self.places[provider.name] = provider.place()
        unread = self.isolation.attempt("Provider", provider.name, partial(_read_boots, provider, self.boots))
        self.doubts += [] if unread is None else [unread]
        self.doubts += _doubts(mine, self.machines[provider.name], self.cluster)

    def seen(self) -> ProvidersSeen:
        """All of them together."""
        return ProvidersSeen(
            machines=self.machines,
            windows=self.windows,
            reservations=None if self.silent else tuple(self.reservations),
            reserving=frozenset(self.reserving),
            silent=tuple(self.silent),
            serving=self.serving,
            places=self.places,
            doubts=tuple(self.doubts),
            boots=self.boots,
        )


def _read_boots(provider: Provider, boots: dict[NodeTemplateRef, timedelta]) -> None:
    if isinstance(provider, BootTimes):
        boots.update(
            {NodeTemplateRef(template.kind, template.name): said for template, said in provider.boot_timeouts().items()}
        )


def acknowledge(providers: Providers, seen: ProvidersSeen) -> tuple[Trouble, ...]:
    """Lets the providers that answered remove the notices behind their answers, which are recorded now."""
    isolation = Isolation()
    troubles = [
        isolation.attempt("Provider", provider.name, provider.acknowledge)
        for provider in providers.by_template.values()
        if provider.name in seen.machines and isinstance(provider, NoticeReader)
    ]
    return tuple(trouble for trouble in troubles if trouble is not None)


def _read(
    provider: Provider,
    cluster: str,
    mine: Sequence[ProvisionedNode],
    now: datetime,
    listed: list[Instance],
    held: list[SeenReservation],
) -> None:
    """Describe machines and reservations. `mine` are the nodes that have one of its machines."""
    place = provider.place()
    far = [node for node in mine if node.place != place and not same_place(node.place, place)]
    if far:
        what = f"the machine of node {far[0].name}" + (f" and {len(far) - 1} more" if far[1:] else "")
        raise elsewhere(provider, far[0].place, what)
    listed += describe_all(provider, {TAG_CLUSTER: cluster})
    known = {machine.provider_id for machine in listed}
    window = provider.traits.consistency_window
    missing = [n.provider_id for n in mine if n.provider_id not in known and overdue(n, window, now)]
    if missing:
        listed += (replace(one, provider_id=key) for key, one in provider.look_up(missing).items())
    held += map(_seen, provider.reservations())


def _doubts(mine: Iterable[ProvisionedNode], machines: Mapping[str, Instance], cluster: str) -> Iterator[Trouble]:
    """Machines of nodes that no longer have the cluster's tags. They stay counted, and no provider ends them."""
    for node in mine:
        machine = machines.get(node.provider_id)
        if machine is not None and machine.state in ALIVE and machine.tags.get(TAG_CLUSTER) != cluster:
            error = ConfigurationError(
                f"machine {machine.id} of node {node.name} has lost the tags that its launch gave it: "
                "it counts against limits and spending as before, and cannot be ended",
                next_step=f"give it the tags of its neighbours back, above all {TAG_CLUSTER} and "
                f"{labels.LAUNCH_TOKEN}, or end it by hand",
            )
            yield Trouble("ProvisionedNode", node.name, error)


def verdicts(providers: Providers) -> tuple[tuple[TemplateStatus, ...], tuple[Trouble, ...]]:
    """The providers' statuses of their node templates, and the failures that are not their clouds'.

    A provider that failed is asked again at the next reconcile.
    """
    found: list[TemplateStatus] = []
    troubles: list[Trouble] = []
    for provider in providers.by_template.values():
        if isinstance(provider, TemplateJudge):
            trouble = Isolation().attempt("Provider", provider.name, partial(_judge, provider, found))
            if trouble is not None and not isinstance(trouble.error, ProviderError):
                troubles.append(trouble)
    return tuple(found), tuple(troubles)


def with_groups(pools: Iterable[CapacityPool], templates: Iterable[TemplateStatus]) -> tuple[CapacityPool, ...]:
    """The pools with the offerings of their node templates' groups, and the labels and taints of their nodes, if
    known."""
    known = {NodeTemplateRef(one.template.kind, one.template.name): one for one in templates}
    return tuple(
        replace(pool, **_groups(known[pool.node_template])) if pool.node_template in known else pool for pool in pools
    )


def _groups(status: TemplateStatus) -> dict[str, Any]:
    """The fields of a pool that describe the groups of its node template."""
    nodes = sorted(status.registers.items(), key=lambda item: repr(item[0]))
    registers = tuple(GroupNodes(_offering(key), FrozenMap(seen.labels), seen.taints, seen.same) for key, seen in nodes)
    groups = None if status.groups is None else frozenset(map(_offering, status.groups))
    rooms = sorted(status.rooms.items(), key=lambda item: repr(item[0]))
    full = tuple(GroupRoom(_offering(key), room.most) for key, room in rooms)
    return {"registers": registers, "groups": groups, "rooms": full}


def _offering(key: OfferingKey) -> GroupOffering:
    return GroupOffering(key.instance_type, key.zone, key.capacity_type, key.reservation)


def with_unserved(blocks: Iterable[CapacityBlock], pools: Sequence[CapacityPool]) -> tuple[CapacityBlock, ...]:
    """The blocks, with a note on each whose machines no group of its pools starts: otherwise a paid block would stay
    idle without a message."""
    return tuple(block if block.note else replace(block, note=_unserved(block, pools)) for block in blocks)


def _unserved(block: CapacityBlock, pools: Iterable[CapacityPool]) -> str:
    templates = {pool.node_template: pool.groups for pool in pools if block.pool in ("", pool.name)}
    known = [groups for groups in templates.values() if groups is not None]
    started = any(group.starts(block) for groups in known for group in groups)
    if not known or len(known) < len(templates) or started:
        return ""
    names = ", ".join(f"{template.kind} {template.name}" for template in templates)
    return (
        f"no group of {names} starts machines of reservation {block.reservation or '(none found)'}: "
        "name a group that does in its spec, or correct spec.reservation of the CapacityBlock"
    )


def _judge(judge: TemplateJudge, found: list[TemplateStatus]) -> None:
    found += judge.template_statuses()


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
