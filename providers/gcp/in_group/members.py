"""Managed instances: names that a group keeps, with or without machines, and what has become of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from providers.contract import Clock
from providers.errors import BusyError, ProviderError, ThrottledError, UncertainError
from providers.gcp.describe import moment
from providers.gcp.errors import of_code
from providers.gcp.names import Launched, read
from providers.gcp.node_template.template import GroupRef
from providers.gcp.operations import finished
from providers.gcp.session import Gcp

# Before these have passed a machine has no host, and its creation may still fail.
_COMING: Final = frozenset({"", "PENDING", "PROVISIONING"})
# Google takes at most so many machines in one call.
CHUNK: Final = 1000
LEAVING: Final = frozenset({"DELETING", "ABANDONING"})
# Errors of an attempt that the group's next attempt may not meet.
_PASSING: Final = (ThrottledError, BusyError, UncertainError)
# Actions whose errors say why there is no machine; "" where Google does not say which action it was.
_CREATIONS: Final = frozenset({"", "CREATING", "CREATING_WITHOUT_RETRIES", "RECREATING"})


@dataclass(frozen=True, slots=True)
class Member:
    """A name in a group, and what has become of it. `queued`: it has no URL yet."""

    name: str
    launched: Launched
    id: str
    status: str
    action: str
    errors: tuple[ProviderError, ...]
    queued: bool = False

    @property
    def started(self) -> bool:
        """Whether its machine has, or had, a host. One that somebody has stopped since is not given up."""
        return bool(self.id) and self.status not in _COMING and self.action not in LEAVING

    @property
    def settled(self) -> bool:
        """Whether it has a machine, an error, or is on its way out."""
        return self.started or self.failure is not None or self.action in LEAVING

    @property
    def failure(self) -> ProviderError | None:
        """Why it got no machine; None while it may still get one."""
        if self.id:
            return None
        return next((error for error in self.errors if not isinstance(error, _PASSING)), None)


def managed(gcp: Gcp, group: GroupRef) -> Iterator[Any]:
    """What a group has or is making, whoever named it, as Google describes it."""
    pages = gcp.pages(
        "instanceGroupManagers.listManagedInstances",
        about=str(group),
        zone=group.zone,
        instance_group_manager=group.name,
    )
    for page in pages:
        yield from page.managed_instances


def listed(gcp: Gcp, group: GroupRef, cluster: str) -> Iterable[Member]:
    """The members of a group that launches of this cluster have named."""
    for found in managed(gcp, group):
        member = _member(found, group, cluster)
        if member is not None:
            yield member


def failures(
    gcp: Gcp, group: GroupRef, names: Collection[str], *, since: datetime
) -> Mapping[str, list[ProviderError]]:
    """Why attempts to create these members have failed since then, by name. The group remembers it for weeks; a member
    shows the errors of its last attempt alone, and none while another one runs. An error without a moment is of no
    attempt in particular, and left out."""
    found: dict[str, list[ProviderError]] = {}
    pages = gcp.pages(
        "instanceGroupManagers.listErrors", about=str(group), zone=group.zone, instance_group_manager=group.name
    )
    for page in pages:
        for one in page.items:
            name = one.instance_action_details.instance.rpartition("/")[2]
            if name not in names or one.instance_action_details.action not in _CREATIONS:
                continue
            with suppress(ValueError):
                if moment(one.timestamp) >= since:
                    found.setdefault(name, []).append(of_code(f"group {group}", one.error.code, one.error.message))
    return found


def delete(
    gcp: Gcp, clock: Clock, group: GroupRef, names: Sequence[str], *, request_id: str, queued: bool = False
) -> None:
    """Delete members. One that is no member any more keeps none of the others. `queued` ones are known by their names
    only, and no call may have both: a URL of theirs would be passed over (API reference, deleteInstances)."""
    about, zone = str(group), group.zone
    begun = gcp.call(
        "instanceGroupManagers.deleteInstances",
        about=about,
        zone=zone,
        instance_group_manager=group.name,
        request_id=request_id,
        instance_group_managers_delete_instances_request_resource={
            "instances": [name if queued else f"zones/{zone}/instances/{name}" for name in names],
            "skip_instances_on_validation_error": True,
        },
    )
    finished(gcp, clock, begun, zone=zone, what=f"deleteInstances {about}")


def _member(found: Any, group: GroupRef, cluster: str) -> Member | None:
    name = found.instance.rpartition("/")[2] or found.name
    launched = read(name, cluster)
    if launched is None:  # the base is no proof: it may have been another when the launch began
        return None
    errors = tuple(of_code(f"group {group}", error.code, error.message) for error in found.last_attempt.errors.errors)
    machine = str(found.id) if found.id else ""
    queued = not found.instance and not machine
    return Member(name, launched, machine, found.instance_status, found.current_action, errors, queued)
