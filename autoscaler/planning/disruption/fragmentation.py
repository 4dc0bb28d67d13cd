"""Measures, for each accelerator, the part of its free devices that the pods of the cluster cannot use.

The measure is F of FGD ("Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC 2023, section 3): F = Σ_n Σ_m p_m F_n(m), where p_m is the share of the kind of pods m, and F_n(m)
is the free part of the devices of node n that m cannot use: all of it if m does not fit on n, otherwise that of the
devices with too little free for m.

With DRA, the allocator decides whether m fits on n and whether it could get a device; devices of one counter set count
as one. Pods that share a claim are one kind together. Here M is, for each accelerator, the pods that request it. FGD's
M has all pods, also those without a GPU, so a cluster with many web servers would be fragmented completely.
docs/defragmentation.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Final, TypeAlias

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account, pay
from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.usable import usable_groups
from autoscaler.dra.claims.extended_resources import extended_resource_claim
from autoscaler.dra.outcome import FatalError
from autoscaler.model.node import Node
from autoscaler.model.plan import Fragmentation, Target
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.verdict import Fits
from autoscaler.planning.disruption.free_units import FreeUnit, free_units
from autoscaler.planning.disruption.kinds import Kind, kinds_of
from autoscaler.planning.placement.existing import Present
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field, replace

# Rarer kinds change F by less than its printed precision; FGD's own tool leaves out the rarest as well.
_KINDS: Final = 64
# The most checks of a kind on a node: about two seconds. In larger clusters fewer kinds are checked.
_QUESTIONS: Final = 40_000
# One check, in units of work.
_LOOK: Final = 200
# The minimum of a kind in addition to its checks: selectors cost some hundred units, their compilation ten thousand.
_LEAST: Final = 20_000
# The nodes with an accelerator that are checked to find the kinds that request it: such nodes are similar.
_SAMPLES: Final = 8

_Units: TypeAlias = Mapping[str, Sequence[FreeUnit]]  # by accelerator


def fragmentation(present: Present, policy: Policy) -> tuple[Fragmentation, ...]:
    """The fragmentation of each accelerator of existing nodes, by its name. `policy` limits the work."""
    nodes = {name: units for name in _there(present) if (units := _units(present.world, name))}
    if not nodes:
        return ()
    kinds = kinds_of(present.world, max(1, min(_KINDS, _QUESTIONS // len(nodes))))
    each = max(_LEAST + 3 * _LOOK * len(nodes), policy.work.per_round // max(1, len(kinds)))
    dear = policy.work.selectors_per_round // max(1, len(kinds))
    accounts = [Account(own=each, shared=Purse(dear), most=each + dear) for _ in kinds]
    tasks = [_Task(kind, present.world, account) for kind, account in zip(kinds, accounts, strict=True)]
    names = sorted({name for units in nodes.values() for name in units})
    return tuple(_of_accelerator(name, nodes, tasks) for name in names)


def _there(present: Present) -> Iterator[str]:
    return (name for name, target in present.targets.items() if target is Target.EXISTING)


def _units(world: World, name: str) -> _Units:
    """The node's own accelerators, free or not; none if its slices cannot be read."""
    try:
        at = AllocationContext.of(world.nodes[name].node, world.devices, world.allocated)
    except FatalError:
        return {}
    found: dict[str, list[FreeUnit]] = {}
    for unit in free_units(at):
        found.setdefault(unit.accelerator, []).append(unit)
    return found


def _of_accelerator(name: str, nodes: Mapping[str, _Units], tasks: Sequence[_Task]) -> Fragmentation:
    having = {node: units[name] for node, units in nodes.items() if name in units}
    asking = [task for task in tasks if task.asks_for(name, having)]
    lost = {id(task): task.unusable(having) for task in asking}
    decided = [task for task in asking if task.decided]
    pods = sum(task.kind.pods for task in decided)
    free = sum((unit.free for units in having.values() for unit in units), Fraction(0))
    shares = (Fraction(task.kind.pods, pods) * lost[id(task)] for task in decided)
    return Fragmentation(
        accelerator=name,
        devices=sum(map(len, having.values())),
        free=free,
        unusable=sum(shares, Fraction(0)) if decided else free,
        kinds=len(decided),
        undecided=len(asking) - len(decided),
    )


@dataclass
class _Task:
    """A kind of pods with its remaining work. Once that is used up, its answers are unknown."""

    kind: Kind
    world: World
    account: Account
    fits: dict[str, bool] = field(default_factory=dict)

    @property
    def decided(self) -> bool:
        return self.account.refused is None

    @cached_property
    def _asking(self) -> World:
        """The cluster in which the sample's claims are not allocated yet."""
        return replace(self.world, claims={**self.world.claims, **self.kind.claims})

    def asks_for(self, name: str, having: Mapping[str, Sequence[FreeUnit]]) -> bool:
        """True if a pod of the kind has or could have the accelerator, whatever is free."""
        if name in self.kind.accelerators:
            return True
        try:
            with on_account(self.account):
                return any(self._admits(node, units[0]) for node, units in islice(having.items(), _SAMPLES))
        except BudgetSpentError:
            return True  # unknown, which is reported

    def unusable(self, having: Mapping[str, Sequence[FreeUnit]]) -> Fraction:
        """The free part that the kind cannot use; without meaning once its work is used up."""
        total = Fraction(0)
        try:
            with on_account(self.account):
                for node, units in having.items():
                    total += self._unusable(node, [unit for unit in units if unit.free])
        except BudgetSpentError:
            pass
        return total

    def _unusable(self, name: str, units: Sequence[FreeUnit]) -> Fraction:
        if not units:
            return Fraction(0)
        if name not in self.fits:
            pay(_LOOK * len(self.kind.sample.pods))
            self.fits[name] = isinstance(fit(self.kind.sample.pods, name, self._asking), Fits)
        useful: set[str] = set()
        groups = {unit.name: unit.devices for unit in units}
        for request in self._requests(self.world.nodes[name].node) if self.fits[name] else ():
            left = {key: members for key, members in groups.items() if key not in useful}
            pay(_LOOK)
            useful.update(
                usable_groups(
                    request,
                    left,
                    self.world.nodes[name].node,
                    devices=self.world.devices,
                    allocated=self.world.allocated,
                )
            )
        return sum((unit.free for unit in units if unit.name not in useful), Fraction(0))

    def _requests(self, node: Node) -> Iterator[DeviceRequest]:
        yield from dict.fromkeys(one for claim in self.kind.claims.values() for one in claim.exact_requests)
        for pod in self.kind.sample.pods:
            extra = extended_resource_claim(pod, node, self.world.extended_resources, self.world.profile)
            yield from extra.exact_requests if extra is not None else ()

    def _admits(self, name: str, unit: FreeUnit) -> bool:
        """True if the selectors of one of the kind's requests match a device of the unit."""
        node = self.world.nodes[name].node
        pools, memo = self.world.devices.pools_of(node)
        members = [pooled for pooled in pools.devices if pooled.id in unit.devices]
        for request in self._requests(node):
            device_class = self.world.devices.classes.get(request.device_class)
            if device_class is None or request.admin_access:
                continue
            matches = memo.matches(device_class, request)
            try:
                if any(matches.admits(pooled, unknown_is_yes=True) for pooled in members):
                    return True
            except FatalError:
                continue
        return False
