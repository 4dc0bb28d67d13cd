"""Machines that have the cluster's tag and no object: it was deleted, or a restore lost it.

One whose Node is registered is adopted, because pods may run there. One that never registered is terminated once it is
so old that no launch can still be recording it, and that it is no longer booting. Above a bound the sweep stops and
reports it: then it is more likely that Foreslice's objects are lost than that the machines are orphans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from autoscaler.cluster.journal import Journal
from autoscaler.errors import ConfigurationError
from autoscaler.execution.terminate import ALIVE
from autoscaler.lifecycle.boot_times import LONGEST
from autoscaler.lifecycle.recreation import own_id
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.node import Node
from autoscaler.model.provisioned_node import (
    BatchMember,
    LaunchBatch,
    OfferingRef,
    Phase,
    PhaseChange,
    Prediction,
    ProvisionedNode,
)
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.kubernetes.labels import POOL
from providers.contract import TAG_BATCH, TAG_POOL, Clock, Instance, Provider

MINIMUM_AGE: Final = timedelta(minutes=10)
# The largest assumed difference between the provider's clock and the controller's, and the longest call of the previous
# leader.
_SKEW: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Orphans:
    """The result of a sweep: machines to adopt (with the Node each is) and to terminate. `stopped`: too many to act.

    `of_another` are machines that another controller launches under the uid of this cluster: they are left alone.
    """

    adopt: tuple[tuple[Instance, Node], ...] = ()
    terminate: tuple[Instance, ...] = ()
    stopped: bool = False
    of_another: tuple[Instance, ...] = ()


@dataclass(slots=True)
class OwnLaunches:
    """The launches of this process since it leads. A machine that was started since then by none of them has another
    owner: nothing is launched before its LaunchBatch is written, and one replica leads at a time."""

    began: float | None = None  # monotonic
    batches: set[str] = field(default_factory=set)
    machines: set[str] = field(default_factory=set)  # by provider id: a group may recreate one of them

    def note(self, batches: Iterable[LaunchBatch], nodes: Iterable[ProvisionedNode], clock: Clock) -> None:
        """Called at the beginning of each reconcile, after the launches were recorded."""
        self.began = clock.monotonic() if self.began is None else self.began
        self.batches.update(batch.name for batch in batches)
        self.machines.update(node.provider_id for node in nodes)

    def excludes(self, machine: Instance, clock: Clock) -> bool:
        """True if no launch of this process, nor of an earlier one, can have started the machine."""
        known = machine.tags.get(TAG_BATCH, "") in self.batches or machine.provider_id in self.machines
        if self.began is None or known:
            return False
        led = timedelta(seconds=clock.monotonic() - self.began)
        return clock.now() - machine.launched_at < led - _SKEW


def find_orphans(
    machines: Mapping[str, Instance],
    *,
    journal: Journal,
    nodes: Iterable[Node],
    pools: Iterable[CapacityPool] = (),
    others: Callable[[Instance], bool] = lambda machine: False,
    now: datetime,
) -> Orphans:
    """Decides about machines without an object. `machines` are those of this cluster, by provider id; `others` is true
    for machines that another controller has launched."""
    known = {node.provider_id for node in journal.nodes}
    if not any(id_ not in known and machine.state in ALIVE for id_, machine in machines.items()):
        return Orphans()  # as nearly always
    boots = {pool.name: pool.boot_timeout for pool in pools}
    known.update(
        member.provider_id for batch in journal.batches for member in batch.members if _is_kept(member, batch, journal)
    )
    unfinished = {batch.name for batch in journal.batches if not batch.outcome.finished}
    slices = {batch.name for batch in journal.batches if batch.whole}
    slices.update(node.batch for node in journal.nodes if node.hosts > 1)
    registered = {node.provider_id: node for node in nodes if node.provider_id}
    # A machine of an unfinished batch will be mapped when its call is repeated.
    orphans = [
        machine
        for provider_id, machine in machines.items()
        if machine.state in ALIVE and provider_id not in known and machine.tags.get(TAG_BATCH) not in unfinished
    ]
    adopt = tuple((m, registered[m.provider_id]) for m in orphans if m.provider_id in registered)
    slices.update(m.tags.get(TAG_BATCH, "") for m, _ in adopt if m.hosts > 1)
    # One of a slice ends with it.
    alone = (m for m in orphans if m.provider_id not in registered and m.tags.get(TAG_BATCH) not in slices)
    idle = tuple(m for m in alone if _old_enough(m, boots, now))
    of_another = tuple(machine for machine in idle if others(machine))
    if of_another:
        return Orphans(adopt, of_another=of_another)
    if _count(idle) > max(2, _count(machines.values()) // 10):
        return Orphans(adopt, stopped=True)
    return Orphans(adopt, idle)


def _count(machines: Iterable[Instance]) -> int:
    """The number of machines, with the hosts of a slice as one: they start and end together, and one launch without an
    object leaves all of them."""
    return len({(one.tags.get(TAG_BATCH) or one.id) if one.hosts > 1 else one.id for one in machines})


def _is_kept(member: BatchMember, batch: LaunchBatch, journal: Journal) -> bool:
    """True if its machine will be copied to its node. A node that had its machine and is gone gets no other machine
    that the group creates under the same name, while the batch still has other nodes."""
    node = journal.node_of(batch, member.node)
    return node is not None and not node.provider_id


def _old_enough(machine: Instance, boots: Mapping[str, timedelta | None], now: datetime) -> bool:
    """True if no process can still be recording its launch, and it has had the boot time of its pool (`boots`); for a
    pool without one, the time of the slowest kind of machine.

    A launch time in the future is from before the controller's clock was set back; then the batch of a new machine
    protects it.
    """
    boot = boots.get(machine.tags.get(TAG_POOL, "")) or LONGEST
    return abs(now - machine.launched_at) >= max(MINIMUM_AGE, boot)


def pool_of(machine: Instance, node: Node | None = None) -> str:
    """The CapacityPool in the machine's tags, or else in its Node's labels; "" if neither has one."""
    return machine.tags.get(TAG_POOL, "") or (node.labels.get(POOL, "") if node else "")


def adopt_all(found: Iterable[tuple[Instance, Node]], *, provider: Provider, journal: Journal, now: datetime) -> None:
    """Writes objects for machines whose Nodes are registered. Raises ConfigurationError for a machine whose pool is
    unknown, after all others were adopted."""
    nowhere: Instance | None = None
    for machine, node in found:
        if not (pool := pool_of(machine, node)):
            nowhere = machine
            continue
        adopted = _adopted(machine, node, pool=pool, provider=provider.name, now=now)
        batch = machine.tags.get(TAG_BATCH, "")
        whole = next((len(b.members) for b in journal.batches if b.whole and b.name == batch), machine.hosts)
        # It still ends with the other hosts of its slice, and they with it.
        journal.adopt(adopted if whole == 1 else replace(adopted, batch=batch, hosts=whole))
    if nowhere is not None:
        raise ConfigurationError(
            f"machine {nowhere.id} of provider {provider.name} has the tag of this cluster and no ProvisionedNode, and "
            "neither its tags nor its Node name a CapacityPool",
            next_step=f"label its Node with {POOL}=NAME of the CapacityPool, and it is managed again; or end it",
        )


def end_all(found: Iterable[Instance], *, provider: Provider) -> None:
    """Terminate machines. Raises why one of them is not ended, after all were asked for."""
    for error in provider.terminate(tuple(machine.id for machine in found)).failures.values():
        raise error


def second_controller(found: Iterable[Instance], provider: Provider) -> ConfigurationError:
    """Two controllers have one uid, as after a restore of etcd into a second cluster: each takes the other's machines
    for its own."""
    first, *more = found
    which = first.id + (f" and {len(more)} more" if more else "")
    return ConfigurationError(
        f"provider {provider.name} has started {which} with the uid of this cluster for LaunchBatch "
        f"{first.tags.get(TAG_BATCH, '')!r}, which was never written here: another controller uses the same uid, and "
        "no machine without an object is ended",
        next_step="stop one of the two controllers (docs/aws.md, Two clusters in one account). If there is only this "
        "one, restart it: then machines that were launched before are checked again",
    )


def _adopted(machine: Instance, node: Node, *, pool: str, provider: str, now: datetime) -> ProvisionedNode:
    """The object that such a machine would have had. Nothing was predicted for it, so nothing can drift."""
    key = machine.offering
    offering = OfferingRef(key.instance_type, key.zone, key.capacity_type, reservation=key.reservation)
    return ProvisionedNode(
        name=node.name,
        pool=pool,
        node_name=node.name,
        batch="",
        offerings=(offering,),
        prediction=Prediction(key.instance_type, (), "", ""),
        phase=Phase.REGISTERED,
        phase_since=now,
        obtained=offering,
        provider=provider,
        provider_id=machine.provider_id,
        instance_id=own_id(machine.provider_id, machine.id),
        history=(PhaseChange(Phase.REGISTERED, now, "Adopted"),),
    )
