"""Launches that the provider holds until it can start all of their machines: withdraws those that are not needed.

Such a launch costs nothing, may wait for weeks, and may start its machines at any time; so its nodes count against
limits. It is withdrawn if its pods are gone or have another place, if a user deletes it or its nodes, and if its pool
may not buy any more. While the pool observes, the request stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from autoscaler.cluster.journal import Journal, Pending
from autoscaler.cluster.status_memory import Backoffs
from autoscaler.errors import ConfigurationError
from autoscaler.execution.launch import Providers, elsewhere, give_up, members_with, request_of
from autoscaler.lifecycle.provisioned_node import may_take_pods
from autoscaler.model.provisioned_node import LaunchBatch, ProvisionedNode
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from providers.abilities import Withdrawer
from providers.contract import Provider
from providers.places import same_place


def needed_nodes(pending: Pending) -> frozenset[str]:
    """Names of the ProvisionedNodes that the plan has pods for; none if no launch is pending that could wait."""
    if not pending.launches:
        return frozenset()
    bound = ((node.name, decision.reasons) for node, decision in pending.decisions)
    return frozenset(name for name, reasons in bound if any(reason.code is Code.ALREADY_BOUND for reason in reasons))


def unwanted(
    batch: LaunchBatch, snapshot: Snapshot, nodes: Iterable[ProvisionedNode], needed: frozenset[str], *, acts: bool
) -> bool:
    """True if a waiting launch is to be withdrawn. `nodes` are those with an object.

    One that was bought for no pod is needed for itself: a baseline, a buffer, an order.
    """
    if batch.waiting_since is None:
        return False
    found = [node for node in nodes if node.name in batch.nodes]
    if batch.deleting or not acts or not any(may_take_pods(node) for node in found):
        return True
    if not batch.pods or needed.intersection(batch.nodes):
        return False
    waiting = {pod.key for pod in snapshot.pods if pod.node_name is None}
    return waiting.isdisjoint(batch.pods)


def end_waiting(
    batch: LaunchBatch, *, providers: Providers, journal: Journal, backoffs: Backoffs, now: datetime
) -> None:
    """Withdraws a waiting launch, and requests nothing more. Machines that started before are its nodes'.

    Raises the error that prevents the withdrawal: nothing is concluded then, and it is withdrawn again.
    """
    provider = providers.of(batch)
    if not same_place(batch.place, provider.place()):
        raise elsewhere(provider, batch.place, f"LaunchBatch {batch.name}")
    if not isinstance(provider, Withdrawer):
        text = f"provider {provider.name} cannot withdraw LaunchBatch {batch.name}, which waits"
        raise ConfigurationError(text, next_step="run the version of Foreslice, or of the plugin, that launched it")
    answer = provider.withdraw(request_of(batch, cluster=providers.cluster))
    if answer.instances:
        backoffs.succeeded(batch.pool, batch.offerings[batch.attempt], now)
    members = members_with(batch, answer)
    give_up(replace(batch, members=members, answered=True, waiting_since=None), journal, now)


def may_wait(batch: LaunchBatch, provider: Provider, *, cluster: str) -> bool:
    """True if machines that the provider does not list may still start: it holds the request. Only reads."""
    return isinstance(provider, Withdrawer) and provider.waits(request_of(batch, cluster=cluster))
