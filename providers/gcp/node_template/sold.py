"""Checks whether the zones of groups have the machine types and accelerators of their machines.

Compute Engine's lists show where a project can use a type; only a launch shows whether capacity is left. This is a
check for users, since the lists change rarely: the controller's role has no permission for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from instance_catalog.dataclass import dataclass
from instance_catalog.types.clouds import region_of
from providers.errors import PermissionDeniedError, ProviderError
from providers.finding import Finding, missing, note
from providers.gcp.node_template.groups import Group
from providers.gcp.session import Gcp

_SHOWN: Final = 8  # the most zones in a message


@dataclass(frozen=True, slots=True)
class Kind:
    """A list of Compute Engine: its `method`, the `field` of its answers, and the `word` for its entries in
    messages."""

    method: str
    field: str
    word: str


TYPES: Final = Kind("machineTypes.aggregatedList", "machine_types", "machine type")
ACCELERATORS: Final = Kind("acceleratorTypes.aggregatedList", "accelerator_types", "accelerator")


def not_sold(gcp: Gcp, groups: Iterable[Group]) -> Iterator[Finding]:
    """A finding for each group whose zone lacks what its machines need, with the zones that have it."""
    groups = tuple(groups)
    for kind in (TYPES, ACCELERATORS):
        wanted = {name for group in groups for name in _names(kind, group)}
        if not wanted:
            continue
        try:
            zones = _zones(gcp, kind, sorted(wanted))
        except ProviderError as error:
            step = error.next_step
            if isinstance(error, PermissionDeniedError):
                permission = f"compute.{kind.method.partition('.')[0]}.list"
                step = f"grant your account the permission {permission}; roles/compute.viewer has it"
            text = f"whether the zones of the groups have each {kind.word} is not known: {error.message}"
            yield note(f"{kind.word}s", text, step)
            continue
        for group in groups:
            for name in _names(kind, group):
                if group.ref.zone not in zones[name]:
                    yield _finding(kind, group, name, zones[name], gcp.project)


def _names(kind: Kind, group: Group) -> Sequence[str]:
    if kind is ACCELERATORS:
        return group.accelerators
    return () if "custom-" in group.instance_type else (group.instance_type,)  # no list contains custom types


def _zones(gcp: Gcp, kind: Kind, names: Sequence[str]) -> Mapping[str, set[str]]:
    """The zones that have all of these names."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for page in gcp.pages(kind.method, filter=f'name eq "({"|".join(names)})"'):
        for scope, listed in page.items.items():
            for one in getattr(listed, kind.field):
                found.get(one.name, set()).add(scope.removeprefix("zones/"))
    return found


def _finding(kind: Kind, group: Group, name: str, zones: Iterable[str], project: str) -> Finding:
    here = region_of(group.ref.zone)
    near = sorted(zones, key=lambda zone: (region_of(zone) != here, zone))
    message = f"zone {group.ref.zone} has no {kind.word} {name}: nothing can start in this group"
    more = f" and {len(near) - _SHOWN} more" if len(near) > _SHOWN else ""
    step = f"make the {'node pool' if group.pool else 'group'} in a zone that has it: {', '.join(near[:_SHOWN])}{more}"
    if not near:
        step = f"no zone shows it to {project}: correct the name, or ask Google for access to it"
    return missing(f"group {group.ref}", message, step)
