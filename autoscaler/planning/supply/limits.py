"""Computes how much may still be bought: limits of pools, machines left in blocks, the spending guard.

Each becomes one number in the packing problem, minus the present use. This module does not know pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import ceil

from autoscaler.lifecycle.provisioned_node import counts_against_limits
from autoscaler.lifecycle.spending import hours_left_today, recent_launches, spent_today
from autoscaler.model.capacity import NO_TEMPLATE, GroupOffering, NodeTemplateRef
from autoscaler.model.plan import Plan
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.spending import Spending
from autoscaler.planning.demand.scope import pools_of
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.blocks import available
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.groups import is_of
from instance_catalog.dataclass import dataclass
from instance_catalog.types.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Limit:
    """`remaining` of `resource` ("accelerators", "nodes", "usdPerHour", "machines") in a pool, block or the groups
    of a `template` that start an offering, or overall."""

    resource: str
    bound: Decimal
    remaining: Decimal
    pool: str | None = None
    block: str | None = None
    guard: str = ""  # the setting's name, for limits over all pools
    template: NodeTemplateRef = NO_TEMPLATE
    group: GroupOffering | None = None

    def uses(self, candidate: Candidate) -> Decimal:
        if self.pool is not None and candidate.pool.name != self.pool:
            return Decimal(0)
        if self.block is not None:
            return Decimal(candidate.offering.block == self.block)
        if self.group is not None:
            return Decimal(candidate.pool.node_template == self.template and is_of(self.group, candidate.offering))
        match self.resource:
            case "accelerators":
                return _accelerators(candidate.instance_type.accelerator_count)
            case "nodes":
                return Decimal(1)
            case _:
                return candidate.usd_per_hour or Decimal(0)

    def reason(self) -> Reason:
        """The reason of a pod that this limit keeps from a node."""
        if self.block is not None:
            return Reason.of(Code.BLOCK_FULL, Subject("block", self.block), block=self.block, count=int(self.bound))
        if self.group is not None:
            return Reason.of(
                Code.GROUPS_FULL,
                Subject("node template", self.template.name),
                kind=self.template.kind,
                template=self.template.name,
                instance_type=self.group.instance_type,
                zone=self.group.zone,
                most=int(self.bound),
            )
        if self.pool is not None:
            return Reason.of(
                Code.POOL_LIMIT,
                Subject("pool", self.pool),
                pool=self.pool,
                resource=self.resource,
                limit=str(self.bound),
            )
        return Reason.of(Code.SPENDING_GUARD, guard=self.guard, limit=str(self.bound))


def limits_of(snapshot: Snapshot, catalog: Catalog, policy: Policy, now: datetime) -> tuple[Limit, ...]:
    """Every limit that is set, minus the use of managed nodes."""
    alive = [node for node in snapshot.provisioned if counts_against_limits(node)]
    found: list[Limit] = []
    for pool in pools_of(snapshot):
        own = [node for node in alive if node.pool == pool.name]
        bounds = (
            ("accelerators", pool.limits.accelerators, partial(_accelerators_of, own, catalog)),
            ("nodes", pool.limits.nodes, partial(len, own)),
            ("usdPerHour", pool.limits.usd_per_hour, partial(_spent, own)),
        )
        found += [
            Limit(resource, Decimal(bound), Decimal(bound) - used(), pool=pool.name)
            for resource, bound, used in bounds
            if bound is not None
        ]
    found += [
        Limit("machines", Decimal(b.count), Decimal(available(b, snapshot.provisioned)), block=b.name)
        for b in snapshot.blocks
    ]
    found += _rooms(snapshot, alive)
    return (*found, *_guards(snapshot.spending, _spent(alive), policy, now))


def _rooms(snapshot: Snapshot, alive: Iterable[ProvisionedNode]) -> Iterator[Limit]:
    """The free room in existing groups, beside managed machines.

    A provider's count is minutes old, and may include machines of Foreslice that have ended. Machines of others are
    found by the launch, which skips full groups.
    """
    templates = {pool.name: pool.node_template for pool in snapshot.pools}
    rooms = {(pool.node_template, room.offering): room for pool in pools_of(snapshot) for room in pool.rooms}
    nodes = [(templates.get(node.pool), node.offering) for node in alive] if rooms else []
    for (template, group), room in rooms.items():
        own = sum(1 for theirs, ref in nodes if theirs == template and is_of(group, ref))
        left = Decimal(room.most - own)
        yield Limit("machines", Decimal(room.most), left, template=template, group=group)


def accelerators_in_use(snapshot: Snapshot, catalog: Catalog) -> Mapping[str, int]:
    """By pool, the accelerators of its nodes in the units of its limit; a type that left the catalog counts as none.

    Parts of accelerators, which some types have, are added before they are rounded up.
    """
    own: dict[str, list[ProvisionedNode]] = {}
    for node in snapshot.provisioned:
        if counts_against_limits(node):
            own.setdefault(node.pool, []).append(node)
    return {pool: ceil(_accelerators_of(nodes, catalog)) for pool, nodes in own.items()}


def _guards(account: Spending | None, usd_per_hour: Decimal, policy: Policy, now: datetime) -> Iterator[Limit]:
    """The limits over all pools. The daily limit is converted to dollars per hour for the rest of the day."""
    if (most := policy.max_usd_per_hour) is not None:
        yield Limit("usdPerHour", most, most - usd_per_hour, guard="maxUsdPerHour")
    if (daily := policy.max_usd_per_day) is not None:
        left = (daily - spent_today(account, now)) / hours_left_today(now) - usd_per_hour
        yield Limit("usdPerHour", daily, left, guard="maxUsdPerDay")
    if (launches := policy.max_launches_per_hour) is not None:
        used = recent_launches(account, launches, now)
        yield Limit("nodes", Decimal(launches), launches - used, guard="maxLaunchesPerHour")


def binding_guards(plan: Plan) -> tuple[str, ...]:
    """The guards that are the reason of a pod without a node in the plan."""
    reasons = (reason for left in plan.left_out for reason in left.reasons)
    return tuple(sorted({str(r.detail["guard"]) for r in reasons if r.code is Code.SPENDING_GUARD}))


def binding(candidate: Candidate, limits: Sequence[Limit], bought: Iterable[Candidate]) -> Limit | None:
    """The limit that one more node of the candidate would exceed after `bought`, or None."""
    return binding_after(candidate, limits, uses_of(bought, limits))


def uses_of(bought: Iterable[Candidate], limits: Sequence[Limit]) -> tuple[Decimal, ...]:
    """The part of each limit that these nodes use."""
    nodes = list(bought)
    return tuple(sum(map(limit.uses, nodes), Decimal(0)) for limit in limits)


def binding_after(candidate: Candidate, limits: Sequence[Limit], used: Sequence[Decimal]) -> Limit | None:
    """The same, if this part of each limit is used."""
    for limit, amount in zip(limits, used, strict=True):
        use = limit.uses(candidate)
        if use and use + amount > limit.remaining:
            return limit
    return None


def _spent(nodes: Iterable[ProvisionedNode]) -> Decimal:
    return sum((node.offering.usd_per_hour or Decimal(0) for node in nodes), Decimal(0))


def _accelerators(count: Fraction) -> Decimal:
    return Decimal(count.numerator) / Decimal(count.denominator)


def _accelerators_of(nodes: Iterable[ProvisionedNode], catalog: Catalog) -> Decimal:
    """Those of all nodes: most are of a few types."""
    count = Counter(node.offering.instance_type for node in nodes)
    known = ((catalog.types.get(name), number) for name, number in count.items())
    return _accelerators(sum((found.accelerator_count * number for found, number in known if found), Fraction(0)))
