"""Managed instances: the names of a group, with or without machines, and their states."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from providers.contract import Clock
from providers.errors import BusyError, ProviderError, ThrottledError, UncertainError
from providers.gcp.describe import moment
from providers.gcp.errors import of_code
from providers.gcp.names import Launched, read
from providers.gcp.node_template.template import GroupRef
from providers.gcp.operations import finished
from providers.gcp.session import Gcp

# In these states a machine has no host yet, and its creation may still fail.
_COMING: Final = frozenset({"", "PENDING", "PROVISIONING"})
# The most machines that Google accepts in one call.
CHUNK: Final = 1000
LEAVING: Final = frozenset({"DELETING", "ABANDONING"})
# Errors of an attempt that may not occur in the group's next attempt.
_PASSING: Final = (ThrottledError, BusyError, UncertainError)
# Actions whose errors explain why there is no machine; "" if Google does not name the action.
_CREATIONS: Final = frozenset({"", "CREATING", "CREATING_WITHOUT_RETRIES", "RECREATING"})
# In these states a machine that a group is creating is being deleted, because its creation has failed.
_UNDONE: Final = frozenset({"STOPPING", "DEPROVISIONING"})


@dataclass(frozen=True, slots=True)
class Member:
    """A name in a group, with its state. `queued`: it has no URL yet."""

    name: str
    launched: Launched
    id: str
    status: str
    action: str
    errors: tuple[ProviderError, ...]
    queued: bool = False

    @property
    def started(self) -> bool:
        """True if its machine has, or had, a host. A machine that somebody has stopped since is not given up."""
        return bool(self.id) and self.status not in _COMING and self.action not in LEAVING and not self._undone

    @property
    def _undone(self) -> bool:
        return bool(self.action) and self.action in _CREATIONS and self.status in _UNDONE

    @property
    def settled(self) -> bool:
        """True if it has a machine, an error, or is being deleted."""
        return self.started or self.failure is not None or self.action in LEAVING

    @property
    def failure(self) -> ProviderError | None:
        """The reason why it has no machine; None while it may still get one."""
        if self.id and not self._undone:
            return None
        return next((error for error in self.errors if not isinstance(error, _PASSING)), None)


def managed(gcp: Gcp, group: GroupRef) -> Iterator[Any]:
    """The members of a group, whoever named them, as Google describes them."""
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
    """The errors of attempts to create these members since `since`, by name.

    The group keeps errors for weeks. A member shows only the errors of its last attempt, and none while a new attempt
    runs. Errors without a timestamp belong to no known attempt and are left out.
    """
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
    """Delete members. A name that is no member any more does not affect the others.

    `queued` members have only names, no URLs, and no call may have both: Google would ignore their URLs (API reference,
    deleteInstances).
    """
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
    if launched is None:  # the base name is not compared: it may have changed since the launch
        return None
    errors = tuple(of_code(f"group {group}", error.code, error.message) for error in found.last_attempt.errors.errors)
    machine = str(found.id) if found.id else ""
    queued = not found.instance and not machine
    return Member(name, launched, machine, found.instance_status, found.current_action, errors, queued)
