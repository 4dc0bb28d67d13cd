"""Resize requests: a group starts all machines of a request at once, or none, and waits until it can.

A request is CREATING, then ACCEPTED, perhaps for weeks, then SUCCEEDED, FAILED or CANCELLED. Only an ACCEPTED request
can be cancelled. A finished request can be deleted; then its name can be used again. The name is derived from the
launch's token, and the request contains the machines' names, so a repeated launch finds it. Source: Compute Engine API
reference, v1, instanceGroupManagerResizeRequests; client google-cloud-compute 1.56.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from instance_catalog.types.instance_type import CapacityType
from providers.contract import TAG_BATCH, Clock, LaunchRequest
from providers.errors import AmbiguousError, GoneError, ProviderError, RefusedError, ShortageError, WaitingError
from providers.gcp.errors import of_code
from providers.gcp.names import Names, read
from providers.gcp.node_template.template import GroupRef
from providers.gcp.operations import finished
from providers.gcp.session import Gcp

_PREFIX: Final = "foreslice"
_OVER: Final = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


@dataclass(frozen=True, slots=True)
class ResizeRequest:
    """The state of a request in a group. `why` is the shortage of its last attempt, `error` the reason why it failed
    for good."""

    group: GroupRef
    name: str
    state: str
    machines: tuple[str, ...]
    since: datetime | None
    why: str
    error: ProviderError | None

    @property
    def waits(self) -> bool:
        """True if it may still start machines. A state that this version does not know counts as waiting."""
        return self.state not in _OVER

    @property
    def waiting(self) -> WaitingError:
        """The error that the launch raises while the request waits."""
        lacks = f": {self.why}" if self.why else ""
        text = f"group {self.group} holds resize request {self.name} until it can start {len(self.machines)} machines"
        return WaitingError(f"{text} at once{lacks}", code=self.state, since=self.since)

    @property
    def failure(self) -> ProviderError | None:
        """The reason why it started nothing; None if it has started its machines."""
        if self.state == "CANCELLED":
            text = f"resize request {self.name} in group {self.group} was cancelled"
            return ShortageError(text, code=self.state)
        if self.state != "FAILED":
            return None
        return self.error or ShortageError(f"resize request {self.name} in group {self.group} failed", code=self.state)


def together(request: LaunchRequest) -> bool:
    """True if a launch needs all of its machines or none, and has several."""
    return 1 < request.minimum == len(request.nodes)


def may_wait(request: LaunchRequest) -> bool:
    """True if a group may have a resize request of the launch: for gangs, and for flex-start machines."""
    flexible = CapacityType.FLEX_START
    return together(request) or any(offering.capacity_type == flexible for offering in request.offerings)


def name_of(cluster: str, request: LaunchRequest) -> str:
    """The name of the launch's request, the same in every group."""
    return Names(cluster, request.tags.get(TAG_BATCH, ""), request.token, "", _PREFIX).of(0)


def find(gcp: Gcp, group: GroupRef, name: str) -> ResizeRequest | None:
    """The request in the group; None if there is none, or the group does not exist."""
    try:
        found = gcp.call(
            "instanceGroupManagerResizeRequests.get",
            about=f"{group} {name}",
            zone=group.zone,
            instance_group_manager=group.name,
            resize_request=name,
        )
    except GoneError:
        return None
    return _read(group, found)


def open_of(gcp: Gcp, group: GroupRef, cluster: str) -> Iterator[ResizeRequest]:
    """The requests of the group that launches of this cluster have made, in any state."""
    for one in _listed(gcp, group):
        if one.name.startswith(f"{_PREFIX}-") and read(one.name, cluster) is not None:
            yield _read(group, one)


def held_by(gcp: Gcp, group: GroupRef) -> Iterator[str]:
    """The names in requests that may still start machines, whoever made them."""
    return (one.name for one in _listed(gcp, group) if one.state not in _OVER)


def _listed(gcp: Gcp, group: GroupRef) -> Iterator[Any]:
    asked = {"about": str(group), "zone": group.zone, "instance_group_manager": group.name}
    return (one for page in gcp.pages("instanceGroupManagerResizeRequests.list", **asked) for one in page.items)


def _read(group: GroupRef, found: Any) -> ResizeRequest:
    what = f"resize request {found.name} in group {group}"
    fatal = next(iter(found.status.error.errors), None)
    tried = next(iter(found.status.last_attempt.error.errors), None)
    return ResizeRequest(
        group=group,
        name=found.name,
        state=found.state,
        machines=tuple(one.name for one in found.instances),
        since=_moment(found.creation_timestamp),
        why="" if tried is None else f"{tried.message or tried.code} ({tried.code})",
        error=None if fatal is None else of_code(what, fatal.code, fatal.message),
    )


def ask(
    gcp: Gcp, group: GroupRef, name: str, machines: Sequence[str], *, lasts: timedelta | None, request_id: str
) -> Any:
    """Request machines by name, and return the operation. Raises the error that refuses the request at once.

    `lasts`: the run duration of the machines; None: they run until they are ended.
    """
    return gcp.call(
        "instanceGroupManagerResizeRequests.insert",
        about=f"{group} {name}",
        zone=group.zone,
        instance_group_manager=group.name,
        request_id=request_id,
        instance_group_manager_resize_request_resource={
            "name": name,
            "instances": [{"name": machine} for machine in machines],
            **({"requested_run_duration": {"seconds": int(lasts.total_seconds())}} if lasts is not None else {}),
        },
    )


def cancel(gcp: Gcp, clock: Clock, found: ResizeRequest, *, request_id: str) -> ResizeRequest | None:
    """Cancel a waiting request and return its new state. It may have succeeded before the group processed the call.

    Raises AmbiguousError while it still waits, and the error if the group refuses to cancel it.
    """
    refused: RefusedError | None = None
    if found.state == "ACCEPTED":
        try:
            _change(gcp, clock, found, "cancel", request_id)
        except RefusedError as error:  # it may have finished by now: only the group's answer counts
            refused = error
    after = find(gcp, found.group, found.name)
    if after is not None and after.waits:
        if refused is not None:
            raise refused
        step = "Nothing to do: it is cancelled again until the group has done so."
        text = f"resize request {found.name} in group {found.group} is {after.state} and not cancelled yet"
        raise AmbiguousError(text, code=after.state, next_step=step)
    return after


def forget(gcp: Gcp, clock: Clock, found: ResizeRequest, *, request_id: str) -> None:
    """Delete a finished request, so that its name is free again."""
    with suppress(GoneError):
        _change(gcp, clock, found, "delete", request_id)


def _change(gcp: Gcp, clock: Clock, found: ResizeRequest, verb: str, request_id: str) -> None:
    begun = gcp.call(
        f"instanceGroupManagerResizeRequests.{verb}",
        about=f"{found.group} {found.name}",
        zone=found.group.zone,
        instance_group_manager=found.group.name,
        resize_request=found.name,
        request_id=request_id,
    )
    finished(gcp, clock, begun, zone=found.group.zone, what=f"{verb} resize request {found.name}")


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None
