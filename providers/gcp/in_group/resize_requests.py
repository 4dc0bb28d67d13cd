"""Resize requests: a group starts all machines of a request at once, or none, and waits until it can.

CREATING, then ACCEPTED, which may last for weeks, then SUCCEEDED, FAILED or CANCELLED. One that is ACCEPTED can be
cancelled; one that is over can be deleted, and with it its name can be used again. The name follows from the launch's
token, and the request has the machines' names: whoever repeats a launch finds it. Source: Compute Engine API reference,
v1, instanceGroupManagerResizeRequests; client google-cloud-compute 1.56.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

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
    """What a group says of a request. `why` is what its last attempt lacked; `error` why it failed for good."""

    group: GroupRef
    name: str
    state: str
    machines: tuple[str, ...]
    since: datetime | None
    why: str
    error: ProviderError | None

    @property
    def waits(self) -> bool:
        """Whether it may still start machines. A state that this version does not know may."""
        return self.state not in _OVER

    @property
    def waiting(self) -> WaitingError:
        """What a launch says of it."""
        lacks = f": {self.why}" if self.why else ""
        text = f"group {self.group} holds resize request {self.name} until it can start {len(self.machines)} machines"
        return WaitingError(f"{text} at once{lacks}", code=self.state, since=self.since)

    @property
    def failure(self) -> ProviderError | None:
        """Why it started nothing; None when it has started its machines."""
        if self.state == "CANCELLED":
            text = f"resize request {self.name} in group {self.group} was cancelled"
            return ShortageError(text, code=self.state)
        if self.state != "FAILED":
            return None
        return self.error or ShortageError(f"resize request {self.name} in group {self.group} failed", code=self.state)


def together(request: LaunchRequest) -> bool:
    """Whether a launch is for all of its machines or none, which only matters for several."""
    return 1 < request.minimum == len(request.nodes)


def may_wait(request: LaunchRequest) -> bool:
    """Whether a group may hold a request of the launch: for what comes together, and for flex-start machines."""
    flexible = CapacityType.FLEX_START
    return together(request) or any(offering.capacity_type == flexible for offering in request.offerings)


def name_of(cluster: str, request: LaunchRequest) -> str:
    """The name of the launch's request in whatever group."""
    return Names(cluster, request.tags.get(TAG_BATCH, ""), request.token, "", _PREFIX).of(0)


def find(gcp: Gcp, group: GroupRef, name: str) -> ResizeRequest | None:
    """The request as the group has it; None when it has none, or when there is no such group."""
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
    """The requests of the group that launches of this cluster have made, whatever came of them."""
    for one in _listed(gcp, group):
        if one.name.startswith(f"{_PREFIX}-") and read(one.name, cluster) is not None:
            yield _read(group, one)


def held_by(gcp: Gcp, group: GroupRef) -> Iterator[str]:
    """The names of requests that may still start machines, whoever has made them."""
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
    """Ask for machines by name, which run so long; None: until they are ended. Answers with the operation; raises what
    refuses the request at once."""
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
    """Let a request that waits start nothing more; what it is then. It may have succeeded before the group heard of
    it. Raises AmbiguousError while it still waits, and what the group refuses to cancel it for."""
    refused: RefusedError | None = None
    if found.state == "ACCEPTED":
        try:
            _change(gcp, clock, found, "cancel", request_id)
        except RefusedError as error:  # it may be over by now: only what the group says of it counts
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
    """Delete a request that is over: its name is free again."""
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
