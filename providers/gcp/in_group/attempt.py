"""One launch in one group: requests its names, waits for the outcome, and deletes names that failed.

Once the group may have accepted the names, only the group knows the outcome. If a later call fails (reading the
operation, listing the group, deleting names), the outcome is unknown, whatever the error is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from providers.contract import TAG_BATCH, TAG_CLUSTER, Clock, Instance, InstanceState, LaunchRequest
from providers.errors import (
    AmbiguousError,
    CapacityError,
    GoneError,
    ProviderError,
    RefusedError,
    TemplateError,
    TokenReusedError,
    UncertainError,
)
from providers.fingerprint import fingerprint
from providers.gcp.errors import of_group
from providers.gcp.in_group.domain import room, too_small
from providers.gcp.in_group.members import CHUNK, LEAVING, Member, delete, failures, listed
from providers.gcp.in_group.resize_requests import (
    ResizeRequest,
    ask,
    cancel,
    find,
    forget,
    may_wait,
    name_of,
    together,
)
from providers.gcp.in_group.tpu_slice import check, end, occupied
from providers.gcp.names import Names, provider_id, read
from providers.gcp.node_template.groups import Group, MissingGroupError
from providers.gcp.operations import outcome
from providers.gcp.session import Gcp

# A launch waits at most as long as the slowest call of another provider.
PATIENCE: Final = timedelta(seconds=45)
_LOOK: Final = timedelta(seconds=2)
# The age of errors that count for this launch. A name belongs to one launch, but an earlier try may have had it too.
_OF_LATE: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request in one group. `cluster` is the uid that the launches belong to."""

    gcp: Gcp
    clock: Clock
    cluster: str
    request: LaunchRequest
    group: Group

    @property
    def names(self) -> Names:
        batch = self.request.tags.get(TAG_BATCH, "")
        if self.request.tags[TAG_CLUSTER] != self.cluster:
            raise TemplateError("the request is of another cluster than this provider's")
        return Names(self.cluster, batch, self.request.token, fingerprint(self.request), self.group.base)

    def members(self) -> dict[str, Member]:
        """The names of this launch that the group has.

        Raises TokenReusedError if they were requested with other parameters, and TemplateError if the group does not
        exist: an earlier call may have launched nevertheless.
        """
        names = self.names
        try:
            members = tuple(listed(self.gcp, self.group.ref, self.cluster))
        except GoneError as error:
            step = "correct the GCPNodeTemplate, or find out who deletes the group"
            raise MissingGroupError(
                f"there is no instance group {self.group.ref}", code="NoGroup", next_step=step
            ) from error
        found = {member.name: member for member in members if names.has(member.launched)}
        if any(not names.alike(member.launched) for member in found.values()):
            raise TokenReusedError(f"token {self.request.token} was used with other parameters")
        return found

    def asked(self) -> ResizeRequest | None:
        """The resize request of this launch. Raises TokenReusedError if its machines were requested with other
        parameters."""
        if not may_wait(self.request):
            return None
        found = find(self.gcp, self.group.ref, name_of(self.cluster, self.request))
        machines = () if found is None else tuple(read(name, self.cluster) for name in found.machines)
        if any(one is None or not self.names.has(one) or not self.names.alike(one) for one in machines):
            raise TokenReusedError(f"token {self.request.token} was used with other parameters")
        return found

    def begun(self) -> bool:
        """True if the group has a name or a resize request of this launch."""
        return bool(self.members()) or self.asked() is not None

    def run(self, *, adopt: bool, queue: bool) -> tuple[list[Instance], ProviderError | None]:
        """The machines, and the error of those that are missing. Raises the errors that refuse the launch as a whole.

        `queue`: machines that must start together are requested by a resize request if the group takes any. Flex-start
        machines are always requested by a resize request.
        """
        wanted = {self.names.of(index): node for index, node in enumerate(self.request.nodes)}
        asked = self.asked() if adopt else None
        if not adopt and self.group.hosts > 1:
            check(self.request, self.group)
            full = occupied(self.gcp, self.group)
            if full is not None:
                return [], full
        if not adopt and self.group.domain:
            small = too_small(self.request, self.group)
            if small is not None:
                return [], small
            wanted = dict(list(wanted.items())[: room(self.group, len(wanted))])
        queue = queue and self.group.queues and together(self.request)
        if not adopt:
            try:
                if self.group.run_duration is not None or self.group.hosts > 1 or queue:
                    asked = self._ask(list(wanted))
                else:
                    adopt = not self._create(list(wanted))
            except CapacityError as error:
                return [], error
            except TemplateError as error:
                raise of_group(error) from error
        if asked is not None and asked.waits:
            raise asked.waiting
        with _open(f"group {self.group.ref}"):
            started, failure = self._over(asked) if asked is not None else self._carried_out(wanted, adopt=adopt)
        failure = of_group(failure) if failure is not None else None
        if failure is not None and not started and not isinstance(failure, CapacityError):
            raise _settled(failure)
        return self._machines(started), failure

    def _carried_out(
        self, wanted: Mapping[str, str], *, adopt: bool
    ) -> tuple[Mapping[str, Member], ProviderError | None]:
        """The members that stay, and the errors of the others, which are deleted."""
        found = self._settled(wanted, adopt=adopt)
        started = {name: member for name, member in found.items() if member.started}
        errors = [member.failure for member in found.values() if member.failure is not None]
        given_up = [member for member in found.values() if not member.started and member.action not in LEAVING]
        if len(started) < self.request.minimum:
            given_up, started = [*given_up, *started.values()], {}
        self._give_up(given_up)
        return started, next(iter(errors), None)

    def _settled(self, wanted: Mapping[str, str], *, adopt: bool) -> dict[str, Member]:
        """The members, once each has a machine or an error. Raises AmbiguousError if that takes too long."""
        clock, seen = self.clock, set[str]()
        deadline = clock.monotonic() + PATIENCE.total_seconds()
        while True:
            found = self.members()
            seen |= found.keys()
            # An accepted name that was never listed will be listed soon; a name that was listed before is gone.
            expected = set(wanted) if not adopt else set(found)
            open_ = [
                name
                for name in expected
                if (name not in found and name not in seen) or (name in found and not found[name].settled)
            ]
            if not open_:
                return found
            if clock.monotonic() >= deadline:
                found = self._with_errors(found, open_)
                if all(name in found and found[name].settled for name in open_):
                    return found
                raise AmbiguousError(
                    f"group {self.group.ref} has not started {len(open_)} of {len(wanted)} machines yet",
                    next_step="Nothing to do: it is checked again until the group has started its machines.",
                )
            clock.wait(_LOOK.total_seconds())

    def _with_errors(self, found: dict[str, Member], names: Sequence[str]) -> dict[str, Member]:
        """The members with their recent errors: while the group retries a member, the member itself shows no error."""
        said = failures(self.gcp, self.group.ref, names, since=self.clock.now() - _OF_LATE)
        return {name: replace(one, errors=(*one.errors, *said.get(name, ()))) for name, one in found.items()}

    def withdraw(self) -> list[Instance]:
        """Cancel the launch, and return the machines that have started."""
        asked = self.asked()
        with _open(f"group {self.group.ref}"):
            if asked is not None and asked.waits:
                asked = cancel(self.gcp, self.clock, asked, request_id=self._request_id("cancel"))
            wanted = dict.fromkeys(self.members(), "")
            started, _ = self._over(asked) if asked is not None else self._carried_out(wanted, adopt=True)
        return self._machines(started)

    def _over(self, asked: ResizeRequest) -> tuple[Mapping[str, Member], ProviderError | None]:
        """The outcome of a resize request. It is deleted once the outcome is known, so that its token can be used
        again."""
        members = self.members()
        failure = asked.failure
        if failure is None:
            there = [name for name in asked.machines if name in members or self._exists(name)]
            started, failure = self._carried_out(dict.fromkeys(there, ""), adopt=False)
        else:
            started = {}
            self._give_up([member for member in members.values() if member.action not in LEAVING])
        forget(self.gcp, self.clock, asked, request_id=self._request_id("forget"))
        return started, failure

    def _exists(self, name: str) -> bool:
        """True if the machine exists. A list of members may be old, and a machine may have ended since its request
        succeeded."""
        try:
            self.gcp.call("instances.get", about=name, zone=self.group.ref.zone, instance=name)
        except GoneError:
            return False
        return True

    def _ask(self, machines: Sequence[str]) -> ResizeRequest:
        """Request the machines by a resize request, and read the outcome. Raises the error that refuses it."""
        gcp, group, name = self.gcp, self.group.ref, name_of(self.cluster, self.request)
        lasts = self.group.run_duration
        begun = ask(gcp, group, name, machines, lasts=lasts, request_id=self._request_id("ask"))
        what = f"resize request {name} in group {group}"
        with _open(what):
            error = outcome(gcp, self.clock, begun, zone=group.zone, what=what)
            found = self.asked()
            if found is not None:
                return found
        if error is not None:
            raise _settled(error)
        raise AmbiguousError(f"{what} is not there yet")

    def _create(self, names: Sequence[str]) -> bool:
        """Request the names, and return True if the group has accepted all of them.

        Raises the error that refuses them, also if the operation reports it later and the group has none of the names.
        """
        about = str(self.group.ref)
        begun = self.gcp.call(
            "instanceGroupManagers.createInstances",
            about=about,
            zone=self.group.ref.zone,
            instance_group_manager=self.group.ref.name,
            request_id=self._request_id("create"),
            instance_group_managers_create_instances_request_resource={"instances": [{"name": n} for n in names]},
        )
        what, zone = f"createInstances {about}", self.group.ref.zone
        with _open(what):
            error = outcome(self.gcp, self.clock, begun, zone=zone, what=what)
            if error is None or self.members():
                return error is None
        raise _settled(error)

    def _give_up(self, members: Sequence[Member]) -> None:
        """Delete names, with or without machines. Raises AmbiguousError unless the group has deleted them all: the
        repetition of the launch deletes the rest."""
        if not members:
            return
        gcp, clock, ref = self.gcp, self.clock, self.group.ref
        names = [member.name for member in members]
        if self.group.hosts > 1:
            end(gcp, clock, ref, names, cluster=self.cluster, request_id=self._request_id("resize"))
        for queued in (False, True) if self.group.hosts == 1 else ():
            alike = [member.name for member in members if member.queued is queued]
            for start in range(0, len(alike), CHUNK):
                # Google ignores a second call with the same id, and these names would stay.
                again = self._request_id(f"delete{' queued' if queued else ''} {start}")
                delete(gcp, clock, ref, alike[start : start + CHUNK], request_id=again, queued=queued)
        left = [name for name, member in self.members().items() if name in names and member.action not in LEAVING]
        if left:
            step = "Nothing to do: the call is repeated until the group has deleted them."
            raise AmbiguousError(f"group {self.group.ref} still has {', '.join(left)}", next_step=step)

    def _request_id(self, what: str) -> str:
        """An id for this call alone: Google ignores a second call with the same id, and a token that yielded nothing is
        used again. The names make a repetition harmless."""
        now = self.clock.now().isoformat()
        return str(uuid5(NAMESPACE_URL, f"{what} {self.request.token} {self.group.ref} {now}"))

    def _machines(self, started: Mapping[str, Member]) -> list[Instance]:
        """The machines, by the index in their names: after a change of the group's base name, the names cannot be
        computed again."""
        zone, now, nodes = self.group.ref.zone, self.clock.now(), self.request.nodes
        return [
            Instance(
                id=member.id,
                provider_id=provider_id(self.gcp.project, zone, member.name),
                offering=self.group.offering,
                state=InstanceState.PENDING,
                launched_at=now,
                tags=FrozenMap(self.request.tags),
                node=nodes[member.launched.node],
            )
            for member in sorted(started.values(), key=lambda one: one.launched.node)
            if member.launched.node < len(nodes)
        ]


def _settled(error: ProviderError) -> ProviderError:
    """The error, once the group has no name of the token left."""
    if isinstance(error, RefusedError):
        error.settled = True
    return error


@contextmanager
def _open(what: str) -> Iterator[None]:
    """Wraps the calls after a launch that may have been accepted: none of their errors settles the outcome."""
    try:
        yield
    except (UncertainError, TokenReusedError):
        raise
    except ProviderError as error:
        raise AmbiguousError(
            f"{what}: the launch was accepted, and its outcome is not known: {error.message}",
            code=error.code,
            next_step=error.next_step,
            retry_after=error.retry_after,
        ) from error
