"""Carries out what is pending, one item after the other; an item that fails stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final

from autoscaler.cluster.api import BlockedError, KubernetesApi
from autoscaler.cluster.backoffs import Backoffs
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.journal import UNFINISHED, Journal, Pending
from autoscaler.errors import ConfigurationError
from autoscaler.execution.drain import Drained, cordon, evict_all, occupants, occupants_now
from autoscaler.execution.hold import give_notice, hold, release
from autoscaler.execution.launch import Providers, give_up, launch
from autoscaler.execution.orphans import find_orphans, sweep
from autoscaler.execution.pools import guard
from autoscaler.execution.terminate import bury, terminate
from autoscaler.model.node import Node
from autoscaler.model.plan import Disposal, NodeDecision
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import LaunchBatch, Phase, ProvisionedNode
from autoscaler.model.snapshot import Snapshot
from providers.contract import Instance, Provider

# When somebody takes the taint away again as often as it is put there, the machine ends all the same.
_CORDONED_BY: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Seen:
    """What the tick observed: the cluster, and the machines of each provider that answered, by provider id."""

    snapshot: Snapshot
    machines: Mapping[str, Mapping[str, Instance]]

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """The Nodes by name."""
        return {node.name: node for node in self.snapshot.nodes}

    @cached_property
    def occupants(self) -> Mapping[str, Sequence[Pod]]:
        """The pods that keep a node from being empty, by its name."""
        return occupants(self.snapshot.pods)


@dataclass(frozen=True, slots=True)
class Executor:
    """The hands of the loop."""

    api: KubernetesApi
    journal: Journal
    backoffs: Backoffs
    providers: Providers

    def carry_out(self, pending: Pending, seen: Seen, now: datetime) -> tuple[Trouble, ...]:
        """Launch, drain, terminate, hold and give notice as written down. What failed is told and tried again."""
        work: list[tuple[str, str, Callable[[], None]]] = [
            *(("LaunchBatch", b.name, partial(self._launch, b, seen, now)) for b in self._in_turn(pending.launches)),
            *(("ProvisionedNode", node.name, partial(self._remove, node, seen, now)) for node in pending.leaving),
            *(("ProvisionedNode", n.name, partial(self._tend, n, d, seen)) for n, d in pending.decisions),
            *(("CapacityPool", p.name, partial(guard, self.api, p, self._now(seen))) for p in seen.snapshot.pools),
            *(("Provider", p.name, partial(self._sweep, p, seen, now)) for p in self.providers.by_template.values()),
        ]
        isolation = Isolation(self.api)
        attempts = (isolation.attempt(kind, name, action) for kind, name, action in work)
        return (*(trouble for trouble in attempts if trouble is not None), *self.backoffs.take_troubles())

    def _in_turn(self, launches: Sequence[LaunchBatch]) -> Iterator[LaunchBatch]:
        """A launch whose failure pauses its pool would, asked first each time, keep the pool's others waiting for good:
        with every failure another one is first."""
        by_pool: dict[str, list[LaunchBatch]] = {}
        for batch in launches:
            by_pool.setdefault(batch.pool, []).append(batch)
        for pool, batches in by_pool.items():
            turn = self.backoffs.failures(pool) % len(batches)
            yield from (*batches[turn:], *batches[:turn])

    def _launch(self, batch: LaunchBatch, seen: Seen, now: datetime) -> None:
        """Launch for pools that act. What a pool asked for before it was told to observe, or deleted, is given up."""
        acts = any(pool.name == batch.pool and pool.acts for pool in seen.snapshot.pools)
        if not acts and batch.outcome == "Intended":
            give_up(batch, self.journal, now)
            return
        launch(batch, providers=self.providers, journal=self.journal, backoffs=self.backoffs, now=now)

    def _remove(self, node: ProvisionedNode, seen: Seen, now: datetime) -> None:
        """One step of a node on its way out."""
        # A launch just carried out may have given it its machine.
        node = self.journal.node(node.name) or node
        if node.phase is Phase.GONE or (not node.provider_id and not self._may_still_come(node)):
            bury(node, api=self.api, journal=self.journal)
            return
        if node.phase is Phase.DRAINING and not self._empty(node, seen, now):
            return
        provider = self.providers.named(node.provider)
        if provider is not None:
            machines = seen.machines.get(provider.name, {})
            terminate(node, provider=provider, machines=machines, journal=self.journal, now=now)

    def _sweep(self, provider: Provider, seen: Seen, now: datetime) -> None:
        """Adopt or terminate a provider's machines that have no object."""
        machines = seen.machines.get(provider.name, {})
        orphans = find_orphans(machines, journal=self.journal, nodes=seen.snapshot.nodes, now=now)
        if orphans.stopped:
            raise ConfigurationError(
                f"more than max(2, 10 %) of the {len(machines)} machines of provider {provider.name} have no object",
                next_step="restore the ProvisionedNodes, or end the machines by hand; none is terminated until then",
            )
        sweep(orphans, provider=provider, journal=self.journal, now=now)

    def _now(self, seen: Seen) -> Snapshot:
        """What was seen, with the nodes as they are written down now."""
        return replace(seen.snapshot, provisioned=self.journal.nodes)

    def _may_still_come(self, node: ProvisionedNode) -> bool:
        """Whether a call that is under way may yet produce the node's machine."""
        return any(batch.name == node.batch and batch.outcome in UNFINISHED for batch in self.journal.batches)

    def _empty(self, node: ProvisionedNode, seen: Seen, now: datetime) -> bool:
        """Take one step of a drain; whether the machine may go. BlockedError names the pods that may not leave yet."""
        if not node.provider_id:
            return False
        cordoned = self._cordoned(node, seen.nodes.get(node.node_name), now)
        block = next((b for b in seen.snapshot.blocks if b.name == node.offering.block), None)
        ends_at = block.reclaimed if block else node.reclaim_at
        drained = evict_all(self.api, seen.occupants.get(node.node_name, ()), ends_at=ends_at, now=now)
        if not drained.remaining and cordoned:
            drained = evict_all(self.api, occupants_now(self.api, node.node_name), ends_at=ends_at, now=now)
            if not drained.remaining:
                return True
        if block is not None and now >= block.reclaimed and block.drain.at_deadline == "Delete":
            return True
        if drained.blocked or drained.marked:
            message, next_step = _obstacles(node, drained)
            raise BlockedError(message, next_step=next_step)
        return False

    def _cordoned(self, node: ProvisionedNode, found: Node | None, now: datetime) -> bool:
        """Keep new pods away; whether that was seen, or has had its time."""
        if found is None or cordon(self.api, found):
            return True
        return node.phase_since is not None and now - node.phase_since > _CORDONED_BY

    def _tend(self, node: ProvisionedNode, decision: NodeDecision, seen: Seen) -> None:
        """Hold a node, let it go again, or give notice on it; the other decisions need no hands."""
        found = seen.nodes.get(node.node_name)
        if found is None:
            return
        if decision.disposal is Disposal.KEEP:
            release(self.api, found)
        elif decision.disposal is Disposal.HOLD:
            hold(self.api, found)
        elif decision.disposal is Disposal.NOTICE and decision.deadline is not None:
            give_notice(self.api, found, seen.occupants.get(found.name, ()), decision.deadline)


def _obstacles(node: ProvisionedNode, drained: Drained) -> tuple[str, str]:
    """What keeps a drain from going on, and what a person can do about it."""
    why, steps = [], []
    if drained.blocked:
        why.append(f"PodDisruptionBudgets protect {', '.join(drained.blocked)}")
        steps.append("allow a disruption in the PodDisruptionBudgets")
    if drained.marked:
        why.append(f"marks protect {', '.join(drained.marked)}")
        steps.append("take the do-not-disrupt or safe-to-evict annotation away")
    return f"node {node.node_name} cannot be drained: {'; '.join(why)}", f"{', '.join(steps)}, or delete the pods"
