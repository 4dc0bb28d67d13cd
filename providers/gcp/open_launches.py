"""Finds a launch in groups that its GCPNodeTemplate no longer lists.

A user may remove a group from the template while the outcome of a launch is unknown. A repetition would then choose
another group, and the machines would start twice. So before names are requested, the project is searched for machines
of the launch, and for groups that are creating machines: a name without a machine is in no list of machines.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

from instance_catalog.types.instance_type import ANY_ZONE
from providers.errors import AmbiguousError, GoneError
from providers.gcp.describe import group_of, listed
from providers.gcp.names import Launched, read
from providers.gcp.node_template.template import GroupRef
from providers.gcp.session import Gcp


def groups_with_launch(
    gcp: Gcp,
    cluster: str,
    zone: str,
    launched: Callable[[Launched], bool],
    *,
    but: Container[GroupRef],
    asked: Callable[[GroupRef], bool],
) -> Iterator[GroupRef]:
    """The groups of a zone, other than `but`, that have a name of the launch, or a resize request of it (`asked`).

    With ANY_ZONE the groups of all zones are searched.
    """
    for one in listed(gcp, cluster):
        name, group = read(one.name, cluster), group_of(one)
        if name is None or group is None or group in but:
            continue
        if zone in (group.zone, ANY_ZONE) and launched(name):
            yield group
    for one in _groups(gcp, zone):
        group = _ref(one)
        if group in but or not group.zone:  # templates cannot name regional groups
            continue
        if (_makes(one) and _has(gcp, group, cluster, launched)) or asked(group):
            yield group


def making(gcp: Gcp, zone: str) -> Iterator[GroupRef]:
    """The groups of a zone that are creating machines, or have names without a machine: a group that repairs nothing
    keeps the name of a deleted machine, and does nothing for it.

    Source: InstanceGroupManagerStatusInstanceStatusSummary.nonExistent of Compute Engine's API.
    """
    return (_ref(one) for one in _groups(gcp, zone) if _makes(one) or one.status.current_instance_statuses.non_existent)


def _ref(one: Any) -> GroupRef:
    return GroupRef(one.zone.rpartition("/")[2], one.name)


def _makes(one: Any) -> bool:
    actions = one.current_actions
    return bool(actions.creating or actions.creating_without_retries or actions.recreating or actions.verifying)


def _groups(gcp: Gcp, zone: str) -> Iterator[Any]:
    if zone != ANY_ZONE:
        for page in gcp.pages("instanceGroupManagers.list", about=zone, zone=zone):
            yield from page.items
        return
    for page in gcp.pages("instanceGroupManagers.aggregatedList"):
        for scoped in page.items.values():
            yield from scoped.instance_group_managers


def _has(gcp: Gcp, group: GroupRef, cluster: str, launched: Callable[[Launched], bool]) -> bool:
    asked = {"about": str(group), "zone": group.zone, "instance_group_manager": group.name}
    try:
        for page in gcp.pages("instanceGroupManagers.listManagedInstances", **asked):
            for one in page.managed_instances:
                name = read(one.instance.rpartition("/")[2] or one.name, cluster)
                if name is not None and launched(name):
                    return True
    except GoneError as error:
        # The error itself would mean that nothing of the launch exists.
        step = "Nothing to do: the launch is repeated."
        raise AmbiguousError(f"group {group} was deleted while it was read", next_step=step) from error
    return False
