"""Ends machines by name: only those that a launch of this cluster started, and only after a check of their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from instance_catalog.frozen_map import FrozenMap
from providers.contract import Clock, TerminateAnswer
from providers.errors import GoneError, PermissionDeniedError, ProviderError, RefusedError
from providers.gcp.describe import LEAVING, by_id, group_of, is_host, owned
from providers.gcp.in_group.members import CHUNK, delete, listed
from providers.gcp.in_group.tpu_slice import end
from providers.gcp.node_template.template import GroupRef
from providers.gcp.session import Gcp


def terminate(gcp: Gcp, clock: Clock, cluster: str, ids: Sequence[str]) -> TerminateAnswer:
    """Terminate machines of a cluster. The hosts of a slice end in one call or not at all.

    An id without a machine is skipped: its name may belong to another machine by now.
    """
    wanted = tuple(dict.fromkeys(ids))
    found = by_id(gcp, wanted)
    going: list[str] = []
    failures: dict[str, ProviderError] = {}
    asked: dict[GroupRef, list[str]] = {}
    for machine in wanted:
        if machine not in found:
            continue
        group = group_of(found[machine])
        if group is None or not owned(found[machine], cluster):
            failures[machine] = _foreign(machine)
        elif found[machine].status in LEAVING and not is_host(found[machine]):
            going.append(machine)  # a stop has the same status; a stopped machine is ended in a later call
        else:
            asked.setdefault(group, []).append(machine)
    gone = [machine for machine in wanted if machine not in found]
    for group, machines in asked.items():
        accepted: list[str] = []
        for start in range(0, len(machines), CHUNK):
            _ask(gcp, clock, cluster, group, machines[start : start + CHUNK], found, accepted, failures)
        failures |= _left(gcp, cluster, group, accepted, found) if accepted else {}
        going += [machine for machine in accepted if machine not in failures]
    return TerminateAnswer(tuple(going), tuple(gone), FrozenMap(failures))


def _ask(
    gcp: Gcp,
    clock: Clock,
    cluster: str,
    group: GroupRef,
    machines: Sequence[str],
    found: Mapping[str, Any],
    asked: list[str],
    failures: dict[str, ProviderError],
) -> None:
    """Call a group to end machines, and add those that it has accepted to `asked`."""
    request_id = str(uuid5(NAMESPACE_URL, f"{' '.join(machines)} {clock.now().isoformat()}"))
    names = [found[one].name for one in machines]
    try:
        if is_host(found[machines[0]]):
            end(gcp, clock, group, names, cluster=cluster, request_id=request_id)
        else:
            delete(gcp, clock, group, names, request_id=request_id)
    except (GoneError, RefusedError) as error:
        if isinstance(error, PermissionDeniedError):
            raise
        failures.update(dict.fromkeys(machines, error))
    else:
        asked.extend(machines)


def _left(
    gcp: Gcp, cluster: str, group: GroupRef, machines: Sequence[str], found: Mapping[str, Any]
) -> Mapping[str, ProviderError]:
    """The machines that the group has ignored. They were abandoned: they run, but are no members of the group.

    A member stays in the list until its machine is gone. If the list cannot be read, the result is empty and the next
    call checks again.
    """
    try:
        members = {member.name for member in listed(gcp, group, cluster)}
        apart = [machine for machine in machines if found[machine].name not in members]
        now = by_id(gcp, apart)
    except ProviderError:
        return {}
    return {
        machine: _abandoned(now[machine].name, group)
        for machine in apart
        if machine in now and now[machine].status not in LEAVING
    }


def _abandoned(name: str, group: GroupRef) -> RefusedError:
    message = f"{name} is no longer a member of group {group}, which alone can delete it, and still exists"
    step = f"gcloud compute instances delete {name} --zone {group.zone}"
    return RefusedError(message, code="NotAMember", next_step=step)


def _foreign(machine: str) -> PermissionDeniedError:
    step = "end it by hand if it is not needed: no launch of this cluster has chosen its name"
    return PermissionDeniedError(f"{machine} was not launched for this cluster", next_step=step)
