"""From a LaunchRequest to one createInstances call with names of our own, and from what the group does to an answer.

The operation is DONE once the group has accepted the names; errors come later, in the members' last attempt, and the
group tries again for ever. So a launch waits, within one call's patience, until every name has a machine that its host
has taken, or an error. Names that failed are deleted, and only then the launch says so: what is not deleted would still
become a machine. A repetition finds its names in the group and goes on from there.

Once the names may have been accepted, only the group says what came of them. When another call fails, to read the
operation, to list the group or to delete names, the outcome is unknown, whatever the error is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from instance_catalog.frozen_map import FrozenMap
from providers.contract import (
    TAG_BATCH,
    TAG_CLUSTER,
    Clock,
    Instance,
    InstanceState,
    LaunchAnswer,
    LaunchRequest,
    OfferingFailure,
    OfferingKey,
    ReservationState,
)
from providers.errors import (
    AmbiguousError,
    CapacityError,
    GoneError,
    NotOfferedError,
    ProviderError,
    RefusedError,
    ReservationExhaustedError,
    TemplateError,
    TokenReusedError,
    UncertainError,
)
from providers.gcp.begun import begun_in
from providers.gcp.capacity import Reservations
from providers.gcp.in_group.members import LEAVING, Member, delete, listed
from providers.gcp.in_group.resize_requests import ResizeRequest, ask, cancel, find, forget, name_of, together
from providers.gcp.names import MAX_NODES, Names, provider_id, read
from providers.gcp.node_template.groups import Group, Groups
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.operations import outcome
from providers.gcp.session import Gcp

# A launch takes no longer than another provider's slowest call.
PATIENCE: Final = timedelta(seconds=45)
_LOOK: Final = timedelta(seconds=2)
# Google takes at most so many machines in one call.
CHUNK: Final = 1000


@dataclass(frozen=True, slots=True)
class Launcher:
    """Carries out launches of one cluster."""

    gcp: Gcp
    clock: Clock
    groups: Groups
    reservations: Reservations
    cluster: str

    def launch(self, request: LaunchRequest, template: GroupTemplate) -> LaunchAnswer:
        """Machines of the first offering that can be had. Names that a group has already say where a launch began."""
        if len(request.nodes) > MAX_NODES:
            raise TemplateError(f"a launch has at most {MAX_NODES} nodes, found {len(request.nodes)}")
        refused: list[OfferingFailure] = []
        attempts: list[tuple[OfferingKey, _Attempt]] = []
        for offering in request.offerings:
            try:
                attempts.append((offering, _Attempt(self, request, self.groups.serving(template, offering))))
            except NotOfferedError as error:
                refused.append(OfferingFailure(offering, error))
        begun = [(offering, attempt) for offering, attempt in attempts if attempt.begun()]
        if not begun:
            known = [attempt.group.ref for _, attempt in attempts]
            begun = [(request.offerings[0], attempt) for attempt in self._elsewhere(request, template, but=known)]
            refused = [] if begun else refused
        failures = refused
        for offering, attempt in begun or attempts:
            closed = None if begun else self._closed(offering, attempt.group)
            adopt, queue = bool(begun), template.resize_requests
            machines, failure = ([], closed) if closed is not None else attempt.run(adopt=adopt, queue=queue)
            if failure is not None:
                failures.append(OfferingFailure(offering, failure))
            if offering.reservation:
                self._book(offering.reservation, machines, failure)
            if machines:
                missing = tuple(node for node in request.nodes if node not in {one.node for one in machines})
                return LaunchAnswer(tuple(machines), missing, tuple(failures))
        return LaunchAnswer(missing=request.nodes, failures=tuple(failures))

    def _closed(self, offering: OfferingKey, group: Group) -> ProviderError | None:
        """Why nothing is asked for in a reservation: a group would try for ever before it begins, and after its end."""
        if not offering.reservation or group.reserved is None:
            return None
        held = self.reservations.of(group.reserved)
        if held is not None and held.state is ReservationState.ACTIVE:
            return None
        why = held.note or held.state.value if held is not None else "it does not exist"
        return ReservationExhaustedError(f"nothing can be started in {offering.reservation} now: {why}")

    def _book(self, reservation: str, machines: Iterable[Instance], failure: ProviderError | None) -> None:
        if isinstance(failure, ReservationExhaustedError):
            self.reservations.exhausted(reservation)
        else:
            self.reservations.launched(reservation, [machine.id for machine in machines])

    def _elsewhere(
        self, request: LaunchRequest, template: GroupTemplate, *, but: Sequence[GroupRef]
    ) -> Iterator[_Attempt]:
        """Where the launch began before the group got another instance template, or left the GCPNodeTemplate."""
        looked = set(but)
        for group in self.groups.of(template):
            if group.ref not in looked:
                looked.add(group.ref)
                attempt = _Attempt(self, request, group)
                if attempt.begun():
                    yield attempt
        yield from self._in_zone(request, but=looked)

    def _in_zone(self, request: LaunchRequest, *, but: Collection[GroupRef] = ()) -> Iterator[_Attempt]:
        """The launch in the groups of its zone, whatever a GCPNodeTemplate says of them."""
        names = Names(self.cluster, request.tags.get(TAG_BATCH, ""), request.token, "", "")
        name = name_of(self.cluster, request)

        def asked(group: GroupRef) -> bool:
            return together(request) and find(self.gcp, group, name) is not None

        begun = begun_in(self.gcp, self.cluster, request.zone, names.has, but=but, asked=asked)
        for ref in dict.fromkeys(begun):
            yield _Attempt(self, request, self.groups.group(ref))

    def waits(self, request: LaunchRequest) -> bool:
        """Whether a group holds a request of this launch."""
        found = [attempt.asked() for attempt in self._in_zone(request)]
        return any(one is not None and one.waits for one in found)

    def withdraw(self, request: LaunchRequest) -> LaunchAnswer:
        """Cancel what waits of this launch. It is looked for in all groups of the zone: its GCPNodeTemplate may be gone
        by now. Answers with the machines that came all the same."""
        machines: list[Instance] = []
        for attempt in self._in_zone(request):
            found = attempt.withdraw()
            if attempt.group.reservation:
                self._book(attempt.group.reservation, found, None)
            machines += found
        missing = tuple(node for node in request.nodes if node not in {one.node for one in machines})
        return LaunchAnswer(tuple(machines), missing)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One request in one group."""

    launcher: Launcher
    request: LaunchRequest
    group: Group

    @property
    def names(self) -> Names:
        cluster, batch = self.launcher.cluster, self.request.tags.get(TAG_BATCH, "")
        if self.request.tags[TAG_CLUSTER] != cluster:
            raise TemplateError("the request is of another cluster than this provider's")
        return Names(cluster, batch, self.request.token, fingerprint(self.request), self.group.base)

    def members(self) -> dict[str, Member]:
        """The names of this launch that the group has. Raises TokenReusedError when other parameters chose some, and
        TemplateError when there is no such group: an earlier call may have launched all the same."""
        names = self.names
        try:
            members = tuple(listed(self.launcher.gcp, self.group.ref, self.launcher.cluster))
        except GoneError as error:
            step = "correct the GCPNodeTemplate, or find out who deletes the group"
            raise TemplateError(
                f"there is no instance group {self.group.ref}", code="NoGroup", next_step=step
            ) from error
        found = {member.name: member for member in members if names.has(member.launched)}
        if any(not names.alike(member.launched) for member in found.values()):
            raise TokenReusedError(f"token {self.request.token} was used with other parameters")
        return found

    def asked(self) -> ResizeRequest | None:
        """The resize request of this launch. Raises TokenReusedError when other parameters chose its machines."""
        if not together(self.request):
            return None
        found = find(self.launcher.gcp, self.group.ref, name_of(self.launcher.cluster, self.request))
        machines = () if found is None else tuple(read(name, self.launcher.cluster) for name in found.machines)
        if any(one is None or not self.names.has(one) or not self.names.alike(one) for one in machines):
            raise TokenReusedError(f"token {self.request.token} was used with other parameters")
        return found

    def begun(self) -> bool:
        """Whether the group knows anything of this launch."""
        return bool(self.members()) or self.asked() is not None

    def run(self, *, adopt: bool, queue: bool) -> tuple[list[Instance], ProviderError | None]:
        """The machines, and why some are missing. Raises what refuses the launch as a whole. `queue`: what has to come
        together is asked for by a resize request."""
        wanted = {self.names.of(index): node for index, node in enumerate(self.request.nodes)}
        asked = self.asked() if adopt else None
        if not adopt:
            try:
                if queue and together(self.request):
                    asked = self._ask(list(wanted))
                else:
                    adopt = not self._create(list(wanted))
            except CapacityError as error:
                return [], error
        if asked is not None and asked.waits:
            raise asked.waiting
        with _open(f"group {self.group.ref}"):
            started, failure = self._over(asked) if asked is not None else self._carried_out(wanted, adopt=adopt)
        if failure is not None and not started and not isinstance(failure, CapacityError):
            if isinstance(failure, RefusedError):
                failure.settled = True  # the group has no name of this token any more
            raise failure
        return self._machines(started), failure

    def _carried_out(
        self, wanted: Mapping[str, str], *, adopt: bool
    ) -> tuple[Mapping[str, Member], ProviderError | None]:
        """The members that stay, and why others failed. Those are deleted."""
        found = self._settled(wanted, adopt=adopt)
        started = {name: member for name, member in found.items() if member.started}
        errors = [member.failure for member in found.values() if member.failure is not None]
        given_up = [name for name, member in found.items() if not member.started and member.action not in LEAVING]
        if len(started) < self.request.minimum:
            given_up, started = [*given_up, *started], {}
        self._give_up(given_up)
        return started, next(iter(errors), None)

    def _settled(self, wanted: Mapping[str, str], *, adopt: bool) -> dict[str, Member]:
        """The members once each has a machine or an error. Raises AmbiguousError when that takes too long."""
        clock, seen = self.launcher.clock, set[str]()
        deadline = clock.monotonic() + PATIENCE.total_seconds()
        while True:
            found = self.members()
            seen |= found.keys()
            # A name that was accepted and is not listed yet is on its way; one that was listed once has left.
            expected = set(wanted) if not adopt else set(found)
            open_ = [
                name
                for name in expected
                if (name not in found and name not in seen) or (name in found and not found[name].settled)
            ]
            if not open_:
                return found
            if clock.monotonic() >= deadline:
                raise AmbiguousError(
                    f"group {self.group.ref} has not started {len(open_)} of {len(wanted)} machines yet",
                    next_step="Nothing to do: it is checked again until the group has started its machines.",
                )
            clock.wait(_LOOK.total_seconds())

    def withdraw(self) -> list[Instance]:
        """Let it start nothing more. Answers with the machines that it has started."""
        asked = self.asked()
        with _open(f"group {self.group.ref}"):
            if asked is not None and asked.waits:
                asked = cancel(self.launcher.gcp, self.launcher.clock, asked, request_id=self._request_id("cancel"))
            wanted = dict.fromkeys(self.members(), "")
            started, _ = self._over(asked) if asked is not None else self._carried_out(wanted, adopt=True)
        return self._machines(started)

    def _over(self, asked: ResizeRequest) -> tuple[Mapping[str, Member], ProviderError | None]:
        """What a resize request has come to. It is deleted once that is known, or its token would be used up."""
        members = self.members()
        failure = asked.failure
        if failure is None:
            there = [name for name in asked.machines if name in members or self._exists(name)]
            started, failure = self._carried_out(dict.fromkeys(there, ""), adopt=False)
        else:
            started = {}
            self._give_up([name for name, member in members.items() if member.action not in LEAVING])
        forget(self.launcher.gcp, self.launcher.clock, asked, request_id=self._request_id("forget"))
        return started, failure

    def _exists(self, name: str) -> bool:
        """A list of members may lag, and a machine may have ended since its request succeeded."""
        try:
            self.launcher.gcp.call("instances.get", about=name, zone=self.group.ref.zone, instance=name)
        except GoneError:
            return False
        return True

    def _ask(self, machines: Sequence[str]) -> ResizeRequest:
        """Ask for the machines by a resize request, and read what the group makes of it. Raises what refuses it."""
        gcp, group, name = self.launcher.gcp, self.group.ref, name_of(self.launcher.cluster, self.request)
        begun = ask(gcp, group, name, machines, request_id=self._request_id("ask"))
        what = f"resize request {name} in group {group}"
        with _open(what):
            error = outcome(gcp, self.launcher.clock, begun, zone=group.zone, what=what)
            found = self.asked()
            if found is not None:
                return found
        if error is not None:
            raise error
        raise AmbiguousError(f"{what} is not there yet")

    def _create(self, names: Sequence[str]) -> bool:
        """Ask for the names; whether the group has accepted them all. Raises what refuses them, also when the operation
        says so later and the group has none of them."""
        about = str(self.group.ref)
        begun = self.launcher.gcp.call(
            "instanceGroupManagers.createInstances",
            about=about,
            zone=self.group.ref.zone,
            instance_group_manager=self.group.ref.name,
            request_id=self._request_id("create"),
            instance_group_managers_create_instances_request_resource={"instances": [{"name": n} for n in names]},
        )
        what, zone = f"createInstances {about}", self.group.ref.zone
        with _open(what):
            error = outcome(self.launcher.gcp, self.launcher.clock, begun, zone=zone, what=what)
            if error is None or self.members():
                return error is None
        raise error

    def _give_up(self, names: Sequence[str]) -> None:
        """Delete names, with or without machines. Raises AmbiguousError unless the group is rid of them: the repetition
        of the launch deletes them then."""
        if not names:
            return
        for start in range(0, len(names), CHUNK):
            delete(
                self.launcher.gcp,
                self.launcher.clock,
                self.group.ref,
                names[start : start + CHUNK],
                request_id=self._request_id("delete"),
            )
        left = [name for name, member in self.members().items() if name in names and member.action not in LEAVING]
        if left:
            step = "Nothing to do: the call is repeated until the group has deleted them."
            raise AmbiguousError(f"group {self.group.ref} still has {', '.join(left)}", next_step=step)

    def _request_id(self, what: str) -> str:
        """Of this call alone: Google ignores a second call with an equal one, and a token that yielded nothing is used
        again. What makes a repetition harmless are the names."""
        now = self.launcher.clock.now().isoformat()
        return str(uuid5(NAMESPACE_URL, f"{what} {self.request.token} {self.group.ref} {now}"))

    def _machines(self, started: Mapping[str, Member]) -> list[Instance]:
        """By the index in the name: a group that got another base since has names that would not be chosen now."""
        zone, now, nodes = self.group.ref.zone, self.launcher.clock.now(), self.request.nodes
        return [
            Instance(
                id=member.id,
                provider_id=provider_id(self.launcher.gcp.project, zone, member.name),
                offering=self.group.offering,
                state=InstanceState.PENDING,
                launched_at=now,
                tags=FrozenMap(self.request.tags),
                node=nodes[member.launched.node],
            )
            for member in sorted(started.values(), key=lambda one: one.launched.node)
            if member.launched.node < len(nodes)
        ]


@contextmanager
def _open(what: str) -> Iterator[None]:
    """Around what follows a launch that may have been accepted: no error of these calls settles it."""
    try:
        yield
    except (UncertainError, TokenReusedError):
        raise
    except ProviderError as error:
        raise AmbiguousError(
            f"{what}: the launch was accepted, and what came of it is not known: {error.message}",
            code=error.code,
            next_step=error.next_step,
            retry_after=error.retry_after,
        ) from error


def fingerprint(request: LaunchRequest) -> str:
    """Equal for equal requests, whatever their template says by now."""
    parameters = (
        request.nodes,
        [str(offering) for offering in request.offerings],
        sorted(request.tags.items()),
        request.minimum,
        (request.template.kind, request.template.name),
    )
    return hashlib.sha256(json.dumps(parameters).encode()).hexdigest()[:40]
