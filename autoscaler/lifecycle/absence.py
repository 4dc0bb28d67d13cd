"""What follows from a machine that its provider does not list: as little as possible.

A list may lack machines that run: it lags behind launches, a page is lost, a wrong account or region answers. So
absence alone concludes nothing of a machine whose Node is Ready (Kubernetes takes that condition away 40 seconds after
the last heartbeat), and when more of a provider's machines are missing at once than is likely, of none of them. Those
wait until they are listed again, or until a person deletes the ProvisionedNode. A machine of a node that is Terminating
or Failed is expected to leave its list; while its Node is Ready it is there all the same, because the provider may not
have accepted the order yet.

Whoever can look a machine up by its id knows more; `World.machines` then has it as TERMINATED, and nothing here counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.lifecycle.provisioned_node import Why, can_take, has_machine
from autoscaler.model.provisioned_node import Phase, ProvisionedNode
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap


@dataclass(frozen=True, slots=True)
class Absence:
    """Machines that are missing from their providers' lists, by provider id. `gone` are those that have ended.

    `waiting`, by name of the provider: those of which nothing is concluded.
    """

    gone: frozenset[str] = frozenset()
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=FrozenMap)


def absence(
    provisioned: Iterable[ProvisionedNode],
    nodes: OwnNodes,
    *,
    listed: Collection[str],
    windows: Mapping[str, timedelta],
    now: datetime,
) -> Absence:
    """Decide about the machines that are missing. `listed` are provider ids, of the providers in `windows` only; each
    of these is given with its consistency window, so long a new machine may be missing."""
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
    """Whether its machine is old enough that its provider has to know it."""
    launched = launched_at(node)
    return has_machine(node) and launched is not None and now >= launched + window


def launched_at(node: ProvisionedNode) -> datetime | None:
    """When its machine was obtained, as far back as history remembers."""
    moments = (change.at for change in node.history if change.phase is Phase.LAUNCHED)
    return next(moments, node.phase_since)
