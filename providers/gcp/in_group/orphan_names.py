"""Deletes names whose machines are gone: a group tries to recreate the machine of each of its names, without end.

A user, a rolling update or a health check has deleted such a machine, and the group has not created another one yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from uuid import NAMESPACE_URL, uuid5

from providers.contract import Clock
from providers.errors import BusyError, GoneError, RefusedError
from providers.gcp.in_group.members import LEAVING, Member, delete, listed
from providers.gcp.in_group.tpu_slice import end
from providers.gcp.node_template.groups import Groups, MissingGroupError
from providers.gcp.node_template.template import GroupRef
from providers.gcp.open_launches import making
from providers.gcp.session import Gcp


def names_without_machine(gcp: Gcp, cluster: str, zone: str) -> frozenset[str]:
    """The names of launches of this cluster for which groups of a zone have no machine."""
    found: set[str] = set()
    for group in making(gcp, zone):
        with suppress(GoneError):
            found |= {one.name for one in _without_machine(gcp, group, cluster)}
    return frozenset(found)


def release(gcp: Gcp, clock: Clock, groups: Groups, cluster: str, provider_ids: Sequence[str]) -> None:
    """Delete the names without a machine from their groups. The names of a slice are deleted with the whole slice.

    Raises BusyError if a group keeps a name that it has agreed to delete.
    """
    for zone, names in by_zone(provider_ids, gcp.project).items():
        for group in making(gcp, zone):
            with suppress(GoneError, MissingGroupError):
                _delete(gcp, clock, groups, group, cluster, names)


def _delete(gcp: Gcp, clock: Clock, groups: Groups, group: GroupRef, cluster: str, names: Sequence[str]) -> None:
    left = [one for one in _without_machine(gcp, group, cluster) if one.name in names]
    if not left:
        return
    request = str(uuid5(NAMESPACE_URL, f"release {' '.join(names)} {clock.now().isoformat()}"))
    if groups.group(group).hosts > 1:
        with suppress(RefusedError):  # its other hosts exist, and end first
            end(gcp, clock, group, [one.name for one in left], cluster=cluster, request_id=request)
        return
    for queued in (False, True):
        alike = [one.name for one in left if one.queued is queued]
        if alike:
            again = str(uuid5(NAMESPACE_URL, f"{queued} {request}"))
            delete(gcp, clock, group, alike, request_id=again, queued=queued)
    # An operation may end without an error and without an effect. A name that stays gets a machine that nobody wants.
    kept = {one.name for one in left}.intersection(one.name for one in _without_machine(gcp, group, cluster))
    if kept:
        step = "Nothing to do: the names are deleted again."
        raise BusyError(f"group {group} still has {', '.join(sorted(kept))}, deleted just now", next_step=step)


def _without_machine(gcp: Gcp, group: GroupRef, cluster: str) -> Iterator[Member]:
    return (one for one in listed(gcp, group, cluster) if not one.id and one.action not in LEAVING)


def by_zone(provider_ids: Sequence[str], project: str) -> dict[str, list[str]]:
    """The names in the provider ids of the project, by zone."""
    found: dict[str, list[str]] = {}
    for one in provider_ids:
        owner, _, rest = one.removeprefix("gce://").partition("/")
        zone, _, name = rest.partition("/")
        if owner == project and zone and name:
            found.setdefault(zone, []).append(name)
    return found
