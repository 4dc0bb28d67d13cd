"""A group that is one TPU slice of several hosts: it has all of its machines or none.

GKE's own autoscaler starts such a group with a resize request and ends it with the size 0; its source notes that
deleteInstances does not work there. Foreslice does the same, with two conditions of its own. It requests a slice only
if the group is empty, so the group never gets a second one. It sets the size 0 only if every machine of the group is to
end, so Google cannot choose machines and no machine of others ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from instance_catalog.dataclass import dataclass
from providers.contract import Clock, LaunchRequest
from providers.errors import RefusedError, ShortageError, TemplateError
from providers.gcp.in_group.members import LEAVING, managed
from providers.gcp.in_group.resize_requests import held_by, together
from providers.gcp.names import read
from providers.gcp.node_template.groups import Group
from providers.gcp.node_template.template import GroupRef
from providers.gcp.operations import finished
from providers.gcp.session import Gcp

SLICE_IN_USE: Final = "SliceInUse"
_MOST: Final = 3  # the most names in a message


@dataclass(frozen=True, slots=True)
class _Member:
    """A managed instance, whoever named it."""

    name: str
    id: int
    action: str


def check(request: LaunchRequest, group: Group) -> None:
    """Raise TemplateError unless the request is for the whole slice, all machines or none."""
    if not together(request) or len(request.nodes) != group.hosts:
        text = f"group {group.ref} is one slice of {group.hosts} hosts, and {len(request.nodes)} were asked for"
        raise TemplateError(
            text, code="NotAWholeSlice", next_step="report this to the project: plans have whole slices"
        )


def occupied(gcp: Gcp, group: Group) -> ShortageError | None:
    """The reason why no slice can be requested now: the group has one, or one is starting or ending."""
    members = (member.name for member in _members(gcp, group.ref))
    found = [*members, *held_by(gcp, group.ref)]
    if not found and not group.size:
        return None
    what = ", ".join(found[:_MOST]) or f"size {group.size}"
    step = "Nothing to do, or make another node pool: each is one slice. gcloud container node-pools create"
    return ShortageError(f"group {group.ref} is not empty ({what}): it is one slice", code=SLICE_IN_USE, next_step=step)


def end(gcp: Gcp, clock: Clock, group: GroupRef, names: Collection[str], *, cluster: str, request_id: str) -> None:
    """End the slice with the machines `names`.

    Raises RefusedError while the group has other machines, and makes no call if it has none of `names` left.
    """
    left = [member for member in _members(gcp, group) if member.action not in LEAVING]
    launched = {(one.batch, one.token) for name in names if (one := read(name, cluster)) is not None}

    def goes(member: _Member) -> bool:
        """True if the member ends with the slice: it is one of `names`, or a name of the same launch without a
        machine."""
        found = read(member.name, cluster)
        mine = found is not None and (found.batch, found.token) in launched
        return member.name in names or (mine and not member.id)

    others = [member.name for member in left if not goes(member)]
    if others:
        text = f"group {group} is one slice and ends as a whole: {', '.join(others[:_MOST])} would end as well"
        step = f"end them, too: gcloud compute instance-groups managed resize {group.name} --zone {group.zone} --size 0"
        raise RefusedError(text, code="PartOfASlice", next_step=step)
    if not left:
        return
    about = str(group)
    begun = gcp.call(
        "instanceGroupManagers.resize",
        about=about,
        zone=group.zone,
        instance_group_manager=group.name,
        size=0,
        request_id=request_id,
    )
    finished(gcp, clock, begun, zone=group.zone, what=f"resize {about}")


def _members(gcp: Gcp, group: GroupRef) -> Iterator[_Member]:
    for one in managed(gcp, group):
        yield _Member(one.instance.rpartition("/")[2] or one.name, one.id, one.current_action)
