"""Which members a call deletes: by their URLs, or by the names of those that have no URL yet, and never both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tests.fakes.gce.errors import ApiError

if TYPE_CHECKING:
    from tests.fakes.gce.state import Group, Member, Project


def queued(project: Project, group: Group, member: Member) -> bool:
    """Whether a member has no URL yet."""
    return group.queues_names and project.named(member.name, group.zone) is None


def chosen(project: Project, group: Group, named: Iterable[str], *, skip: bool) -> Iterator[Member]:
    """The members that are named. Raises ApiError for what Google refuses; `skip`: others are passed over."""
    prefix = f"zones/{group.zone}/instances/"
    tails = [(url, url[url.find("zones/") :] if "zones/" in url else "") for url in named]
    if len({bool(tail) for _, tail in tails}) > 1:
        raise ApiError(400, "invalid", "Invalid value for field 'resource.instances': URLs and names in one request")
    for url, tail in tails:
        if tail and not tail.startswith(prefix):
            raise ApiError(400, "invalid", f"Invalid value for field 'resource.instances': '{url}'. Not a URL")
        name = tail.removeprefix(prefix) or url
        member = group.members.get(name)
        if member is not None and queued(project, group, member) is not bool(tail):
            yield member
        elif not skip:
            raise ApiError(400, "invalid", f"Instance '{name}' is not a member of {group.name}")
