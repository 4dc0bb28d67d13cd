"""Carries out a LaunchRequest with one createInstances call, with names that Foreslice chooses, and reads the outcome.

The operation is DONE once the group has accepted the names. Errors appear later, in the last attempt of each member,
and the group retries without end. So a launch waits, at most as long as one call may take, until every name has an
error or a machine with a host. Names that failed are deleted before the launch reports them: otherwise they could still
become machines. A repetition finds its names in the group and continues from there.

in_group/attempt.py has the part of a launch that concerns one group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from instance_catalog.dataclass import dataclass
from providers.contract import (
    TAG_BATCH,
    Clock,
    Instance,
    LaunchAnswer,
    LaunchRequest,
    OfferingFailure,
    OfferingKey,
    ReservationState,
)
from providers.errors import (
    AcceleratorQuotaError,
    FamilyQuotaError,
    NotInGroupsError,
    NotOfferedError,
    ProviderError,
    RefusedError,
    RegionQuotaError,
    ReservationExhaustedError,
    TemplateError,
)
from providers.gcp.in_group.attempt import Attempt
from providers.gcp.in_group.domain import DOMAIN_IN_USE
from providers.gcp.in_group.resize_requests import find, may_wait, name_of
from providers.gcp.in_group.tpu_slice import SLICE_IN_USE
from providers.gcp.names import MAX_NODES, Names
from providers.gcp.node_template.groups import Group, Groups, MissingGroupError
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.node_template.tpu import topology_of
from providers.gcp.open_launches import groups_with_launch
from providers.gcp.reserved.capacity import Reservations
from providers.gcp.session import Gcp
from providers.gcp.sharing import Exceeded, sharing

# Errors of a group without room for a launch. Another group of the offering may have room.
_NO_ROOM: Final = frozenset({SLICE_IN_USE, DOMAIN_IN_USE})


@dataclass(frozen=True, slots=True)
class Launcher:
    gcp: Gcp
    clock: Clock
    groups: Groups
    reservations: Reservations
    cluster: str

    def launch(self, request: LaunchRequest, template: GroupTemplate) -> LaunchAnswer:
        """Machines of the first offering with capacity. Names that a group already has show where an earlier call
        began."""
        if len(request.nodes) > MAX_NODES:
            raise TemplateError(f"a launch has at most {MAX_NODES} nodes, found {len(request.nodes)}")
        refused: list[OfferingFailure] = []
        attempts: list[tuple[OfferingKey, Attempt]] = []
        for offering in request.offerings:
            try:
                found = self.groups.serving(template, offering, topology_of(request.labels))
                attempts += [(offering, self._attempt(request, group)) for group in found]
            except (NotInGroupsError, NotOfferedError, MissingGroupError) as error:
                refused.append(OfferingFailure(offering, error))
        begun = [(offering, attempt) for offering, attempt in attempts if attempt.begun()]
        if not begun:
            known = [attempt.group.ref for _, attempt in attempts]
            begun = [(request.offerings[0], attempt) for attempt in self._elsewhere(request, template, but=known)]
            refused = [] if begun else refused
        failures, full = refused, Exceeded()
        for offering, attempt in begun or attempts:
            closed = None if begun else self._closed(offering, attempt.group) or full.refuses(attempt.group)
            adopt, queue = bool(begun), template.resize_requests
            try:
                machines, failure = ([], closed) if closed is not None else attempt.run(adopt=adopt, queue=queue)
            except RefusedError as error:  # of this group alone, which has none of the names
                if not error.settled:
                    raise
                machines, failure = [], error
            if failure is not None:
                failures.append(OfferingFailure(offering, failure, self._also(failure, attempt.group, template)))
                full.add(failure, attempt.group)
            if offering.reservation:
                self._book(offering.reservation, attempt.group, machines, failure)
            if machines:
                missing = tuple(node for node in request.nodes if node not in {one.node for one in machines})
                others = [one for one in failures if one.offering != offering or one.error is failure]
                return LaunchAnswer(tuple(machines), missing, _one_of_each(others))
        return LaunchAnswer(missing=request.nodes, failures=_one_of_each(failures))

    def _also(self, failure: ProviderError, group: Group, template: GroupTemplate) -> tuple[OfferingKey, ...]:
        """The other offerings that the template's groups cannot start for the same reason. Groups that cannot be read
        are left out."""
        if not isinstance(failure, AcceleratorQuotaError | FamilyQuotaError | RegionQuotaError):
            return ()
        found = (one for one, _ in self.groups.existing(template) if one is not None)
        return sharing(failure, group, found)

    def _attempt(self, request: LaunchRequest, group: Group) -> Attempt:
        return Attempt(self.gcp, self.clock, self.cluster, request, group)

    def _closed(self, offering: OfferingKey, group: Group) -> ProviderError | None:
        """The reason why nothing is requested in a reservation before it begins and after it ends: a group would retry
        forever."""
        if not offering.reservation or group.reserved is None:
            return None
        held = self.reservations.of(group.reserved, group.instance_type)
        if held is not None and held.state is ReservationState.ACTIVE:
            return None
        why = held.note or held.state.value if held is not None else "it does not exist"
        return ReservationExhaustedError(f"nothing can be started in {offering.reservation} now: {why}")

    def _book(
        self, reservation: str, group: Group, machines: Iterable[Instance], failure: ProviderError | None
    ) -> None:
        if isinstance(failure, ReservationExhaustedError):
            self.reservations.exhausted(reservation)
        else:
            self.reservations.launched(reservation, [machine.id for machine in machines], group.instance_type)

    def _elsewhere(
        self, request: LaunchRequest, template: GroupTemplate, *, but: Sequence[GroupRef]
    ) -> Iterator[Attempt]:
        """The launch in a group that has got another instance template, or has left the GCPNodeTemplate, since it
        began."""
        looked = set(but)
        for group in self.groups.of(template):
            if group.ref not in looked:
                looked.add(group.ref)
                attempt = self._attempt(request, group)
                if attempt.begun():
                    yield attempt
        yield from self._in_zone(request, but=looked)

    def _in_zone(self, request: LaunchRequest, *, but: Collection[GroupRef] = ()) -> Iterator[Attempt]:
        """The launch in all groups of its zone, whether or not a GCPNodeTemplate lists them."""
        names = Names(self.cluster, request.tags.get(TAG_BATCH, ""), request.token, "", "")
        name = name_of(self.cluster, request)

        def asked(group: GroupRef) -> bool:
            return may_wait(request) and find(self.gcp, group, name) is not None

        found = groups_with_launch(self.gcp, self.cluster, request.zone, names.has, but=but, asked=asked)
        for ref in dict.fromkeys(found):
            yield self._attempt(request, self.groups.group(ref))

    def waits(self, request: LaunchRequest) -> bool:
        """True if a group has a resize request of this launch."""
        found = [attempt.asked() for attempt in self._in_zone(request)]
        return any(one is not None and one.waits for one in found)

    def withdraw(self, request: LaunchRequest) -> LaunchAnswer:
        """Cancel the waiting resize requests of this launch, and return the machines that started nevertheless.

        All groups of the zone are searched, because the GCPNodeTemplate may be deleted already.
        """
        machines: list[Instance] = []
        for attempt in self._in_zone(request):
            found = attempt.withdraw()
            if attempt.group.reservation:
                self._book(attempt.group.reservation, attempt.group, found, None)
            machines += found
        missing = tuple(node for node in request.nodes if node not in {one.node for one in machines})
        return LaunchAnswer(tuple(machines), missing)


def _one_of_each(failures: Iterable[OfferingFailure]) -> tuple[OfferingFailure, ...]:
    """One failure of each kind for each offering, whatever the number of its groups: each reported failure lengthens
    the back-off. Missing capacity in the cloud is reported before missing room in a group."""
    found: dict[tuple[OfferingKey, type[ProviderError]], OfferingFailure] = {}
    for one in failures:
        key = (one.offering, type(one.error))
        if key not in found or found[key].error.code in _NO_ROOM:
            found[key] = one
    return tuple(found.values())
