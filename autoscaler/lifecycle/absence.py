"""Conclusions from a machine that its provider does not list: as few as possible.

A list may lack machines that run: it lags behind launches, a page is lost, a wrong account or region answers. So
nothing is concluded from absence alone if the machine's Node is Ready (Kubernetes removes that condition 40 seconds
after the last heartbeat), and if an improbable number of a provider's machines is missing at once, nothing is concluded
about any of them. Those wait until they are listed again, or until a person deletes the ProvisionedNode. A machine of a
node that is Terminating or Failed is expected to leave its list; while its Node is Ready it still exists, because the
provider may not have accepted the call yet.

A provider that looks up machines by id has better information; `World.machines` then has the machine as TERMINATED, and
this module does not apply.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import Why, can_take, has_machine
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap


@dataclass(frozen=True, slots=True)
class Absence:
    """Machines that are missing from their providers' lists, by provider id. `gone` are those that have ended.

    `waiting`, by name of the provider: machines of which nothing is concluded.
    """

    gone: frozenset[str] = frozenset()
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenMap)


def absence(
    provisioned: Collection[ProvisionedNode],
    nodes: OwnNodes,
    *,
    listed: Collection[str],
    windows: Mapping[str, timedelta],
    now: datetime,
) -> Absence:
    """Decide on the missing machines. `listed` are provider ids, only from the providers in `windows`; `windows` has
    their consistency windows, the times for which a new machine may be missing."""
    if all(n.provider_id in listed or n.provider not in windows or not has_machine(n) for n in provisioned):
        return Absence()  # as nearly always
    machines: dict[str, int] = {}
    expected: set[str] = set()
    missing: dict[str, list[str]] = {}
    waiting: dict[str, list[str]] = {}
    for node in provisioned:
        window = windows.get(node.provider)
        if window is None or not has_machine(node):
            continue
        machines[node.provider] = machines.get(node.provider, 0) + 1
        if node.provider_id in listed or not overdue(node, window, now):
            continue
        found = nodes.of(node)
        if not can_take(node, Why.MACHINE_LOST):
            if found is None or not found.ready:
                expected.add(node.provider_id)
        elif found is not None and found.ready:
            waiting.setdefault(node.provider, []).append(node.provider_id)
        else:
            missing.setdefault(node.provider, []).append(node.provider_id)
    gone = set(expected)
    for provider, ids in missing.items():
        if len(ids) + len(waiting.get(provider, ())) <= max(2, machines[provider] // 10):
            gone.update(ids)
        else:
            waiting.setdefault(provider, []).extend(ids)
    return Absence(frozenset(gone), FrozenMap({provider: tuple(sorted(ids)) for provider, ids in waiting.items()}))


def overdue(node: ProvisionedNode, window: timedelta, now: datetime) -> bool:
    """True if its machine is old enough that its provider must list it."""
    launched = launched_at(node)
    return has_machine(node) and launched is not None and now >= launched + window


def launched_at(node: ProvisionedNode) -> datetime | None:
    """The time at which its machine was obtained, as far as its history shows."""
    moments = (change.at for change in node.history if change.phase is Phase.LAUNCHED)
    return next(moments, node.phase_since)
