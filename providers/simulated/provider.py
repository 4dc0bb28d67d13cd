"""The simulated cloud as a provider: the same guarantees and the same errors as the real ones."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from instance_catalog.frozen_map import FrozenMap
from providers.contract import (
    TAG_CLUSTER,
    Instance,
    InstancePage,
    LaunchAnswer,
    LaunchRequest,
    OfferingFailure,
    OfferingKey,
    OfferingStatus,
    Reservation,
    TerminateAnswer,
    Traits,
)
from providers.errors import (
    AmbiguousError,
    CapacityError,
    PermissionDeniedError,
    ProviderError,
    TemplateError,
    TokenReusedError,
)
from providers.simulated.cloud import Call, Fault, Launch, SimulatedCloud
from providers.simulated.machines import Machine


class SimulatedProvider:
    def __init__(self, cloud: SimulatedCloud, name: str = "simulated") -> None:
        self._cloud = cloud
        self._name = name

    @property
    def name(self) -> str:
        """Also the prefix of machine ids' scheme."""
        return self._name

    @property
    def traits(self) -> Traits:
        """Every machine is named; slices are published by the simulation."""
        return Traits(exact=True, consistency_window=self._cloud.behaviour.visibility)

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        """Start machines from the first offerings that have some."""
        fault = self._cloud.begin(Call.LAUNCH)
        if request.template.name in self._cloud.broken_templates:
            raise TemplateError(self._cloud.broken_templates[request.template.name], code="InvalidTemplate")
        known = self._cloud.launches.get(request.token)
        if known is None:
            known = self._start(request)
        elif known.request != request:
            raise TokenReusedError(f"token {request.token} was used with other parameters", code="IdempotentMismatch")
        _lose_answer(fault, Call.LAUNCH)
        machines = [self._cloud.machines[machine] for machine in known.ids]
        now = self._cloud.clock.now()
        nodes = {machine.node for machine in machines}
        return LaunchAnswer(
            instances=tuple(self._cloud.seen(machine, now) for machine in machines),
            missing=tuple(node for node in request.nodes if node not in nodes),
            failures=known.failures,
        )

    def describe(self, tags: Mapping[str, str], *, page: str = "") -> InstancePage:
        fault = self._cloud.begin(Call.DESCRIBE)
        _lose_answer(fault, Call.DESCRIBE)
        now, behaviour, wanted = self._cloud.clock.now(), self._cloud.behaviour, tags.items()
        found = [
            machine
            for _, machine in sorted(self._cloud.machines.items())
            if machine.id > page and machine.visible(now, behaviour) and wanted <= machine.tags.items()
        ]
        shown = found[: behaviour.page_size]
        instances = tuple([self._cloud.seen(machine, now) for machine in shown])
        return InstancePage(instances, shown[-1].id if len(found) > len(shown) else "")

    def look_up(self, provider_ids: Sequence[str]) -> Mapping[str, Instance]:
        """Machines by their ids, with or without the cluster's tags."""
        fault = self._cloud.begin(Call.DESCRIBE)
        _lose_answer(fault, Call.DESCRIBE)
        now, behaviour = self._cloud.clock.now(), self._cloud.behaviour
        known = {one.provider_id: one for one in self._cloud.machines.values() if one.visible(now, behaviour)}
        return {key: self._cloud.seen(known[key], now) for key in provider_ids if key in known}

    def place(self) -> str:
        """The simulated place of the cloud."""
        return self._cloud.place

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        """Stops machines. Invisible ones are reported as gone and continue, as with a cloud whose lists lag."""
        fault = self._cloud.begin(Call.TERMINATE)
        terminating, gone = [], []
        failures: dict[str, ProviderError] = {}
        now, behaviour = self._cloud.clock.now(), self._cloud.behaviour
        for machine_id in dict.fromkeys(ids):
            machine = self._cloud.machines.get(machine_id)
            if machine is None or not machine.visible(now, behaviour) or not machine.occupies(now, behaviour):
                gone.append(machine_id)
                continue
            if TAG_CLUSTER not in machine.tags:
                failures[machine_id] = PermissionDeniedError(f"{machine_id} belongs to an unknown owner")
                continue
            machine.end(now, "terminated by request")
            terminating.append(machine_id)
        _lose_answer(fault, Call.TERMINATE)
        return TerminateAnswer(tuple(terminating), tuple(gone), FrozenMap(failures))

    def reservations(self) -> tuple[Reservation, ...]:
        fault = self._cloud.begin(Call.RESERVATIONS)
        _lose_answer(fault, Call.RESERVATIONS)
        now = self._cloud.clock.now()
        holdings = [holding for _, holding in sorted(self._cloud.holdings.items())]
        return tuple(holding.seen(now, self._cloud.used(holding.offering)) for holding in holdings)

    def offerings(self) -> tuple[OfferingStatus, ...]:
        """The offerings with a price or a limit; everything else is sold without either."""
        fault = self._cloud.begin(Call.OFFERINGS)
        _lose_answer(fault, Call.OFFERINGS)
        return tuple(self._cloud.listed())

    def _start(self, request: LaunchRequest) -> Launch:
        """Start machines, `minimum` of them or none. A token is remembered once it has produced one."""
        ids: list[str] = []
        failures: list[OfferingFailure] = []
        for offering in request.offerings:
            if len(ids) == len(request.nodes):
                break
            free = self._cloud.free(offering)
            if isinstance(free, CapacityError):
                failures.append(OfferingFailure(offering, free))
                continue
            upto = min(len(request.nodes), len(ids) + free)
            ids += [self._boot(request, index, offering) for index in range(len(ids), upto)]
        if len(ids) < request.minimum:
            for machine in ids:
                del self._cloud.machines[machine]
            ids = []
        launch = Launch(request, tuple(ids), tuple(failures))
        if ids:
            self._cloud.launches[request.token] = launch
        return launch

    def _boot(self, request: LaunchRequest, index: int, offering: OfferingKey) -> str:
        digest = hashlib.sha256(f"{request.token}/{index}".encode()).hexdigest()
        machine = Machine(
            id=f"i-{digest[:17]}",
            node=request.nodes[index],
            offering=offering,
            launched_at=self._cloud.clock.now(),
            tags=request.tags,
        )
        self._cloud.machines[machine.id] = machine
        return machine.id


def _lose_answer(fault: Fault | None, call: Call) -> None:
    if fault is Fault.LOST_ANSWER:
        raise AmbiguousError(f"{call.value}: time-out while waiting for the answer")
