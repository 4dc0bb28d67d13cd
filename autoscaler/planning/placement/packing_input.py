"""The packing problem of a plan: its classes, candidates and limits, in the optimizer's numbers.

Built once per plan. Every attempt (without a gang that turned out impossible, without a node that would break another
pod) gets a Problem from it and shares all verdicts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import TypeAlias

from autoscaler.dra.claims.extended_resources import extended_resource_classes
from autoscaler.model.reason import Code, Reason
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import BundleClass, unserved
from autoscaler.planning.demand.demand import claim_keys, running_members, uses_channel
from autoscaler.planning.demand.scope import Scopes, network_card_alone, requested_resources, served_resources
from autoscaler.planning.packing.kept_solutions import KeptSolutions
from autoscaler.planning.packing.problem import Budget, GangRule, Item, Kind, Problem, Solution
from autoscaler.planning.packing.solve import solve
from autoscaler.planning.placement.kept_verdicts import question, rules_of
from autoscaler.planning.placement.trial import PackingOracle
from autoscaler.planning.placement.whole_slices import SliceOracle
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.architecture import asks_for_architecture, offered_unasked
from autoscaler.planning.supply.blocks import Admission, admission
from autoscaler.planning.supply.candidates import Candidate, Named, candidates_of
from autoscaler.planning.supply.drivers import FEATURE_DISCOVERY, wanted_drivers
from autoscaler.planning.supply.hypothetical import Shape, shapes_of, watched_labels
from autoscaler.planning.supply.limits import Limit, limits_of
from autoscaler.planning.supply.places import named_places
from autoscaler.planning.supply.remembered import Same
from autoscaler.planning.work import Ledger
from autoscaler.scheduling.volume_filters import contends_for_volume
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.drivers import opaque
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.device_plugins import driver_of_plugin
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType

ADMITTED = Admission()
PoolAndZone: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class PackingInput:
    """Classes and candidates by index; `shape_of` has the shape of each candidate. `now` decides about blocks.

    `unserved` are, by pool, the classes that its scope excludes, with the reason.
    """

    snapshot: Snapshot
    now: datetime
    classes: tuple[BundleClass, ...]
    candidates: tuple[Candidate, ...]
    shapes: tuple[Shape, ...]
    shape_of: tuple[int, ...]
    limits: tuple[Limit, ...]
    trials: PackingOracle
    pods_relate: bool
    unserved: Mapping[str, Mapping[int, Reason]]
    world: World
    solutions: KeptSolutions | None = None

    @cached_property
    def gangs(self) -> tuple[str, ...]:
        """Keys of the classes' gangs."""
        return tuple(dict.fromkeys(c.sample.gang for c in self.classes if c.sample.gang))

    @cached_property
    def running(self) -> Mapping[str, int]:
        """The number of pods that run, by the key of their gang."""
        return running_members(self.snapshot.pods)

    @cached_property
    def described_drivers(self) -> frozenset[str]:
        """Drivers that a profile describes, shipped or of the catalog, whether an offering has them or not."""
        own = {driver.driver for c in self.candidates for driver in c.instance_type.custom_drivers.values()}
        return frozenset(own | {facts.driver for facts in driver_facts().values()})

    @cached_property
    def oracle(self) -> SliceOracle:
        """`trials`, with each slice of several hosts as one node."""
        return SliceOracle(self.trials, [shape.candidate.hosts for shape in self.shapes])

    def solved(self, problem: Problem, budget: Budget) -> Solution:
        """The best set of nodes for the problem. If all nodes are single machines, it uses `trials` directly."""
        if not all(shape.candidate.hosts == 1 for shape in self.shapes):
            return solve(problem, self.oracle, budget)
        asked = self._asked(problem)
        if self.solutions is None or asked is None:
            return solve(problem, self.trials, budget)
        wanted = [item for item, count in enumerate(problem.demand) if count]
        return self.solutions.of(
            Same(self.shapes),
            (asked, budget),
            problem,
            lambda bounded: solve(bounded, self.trials, budget),
            lambda: not any(map(self.trials.ledger.refused, wanted)),
        )

    def _asked(self, problem: Problem) -> Hashable | None:
        """Everything that decides about the problem's bundles on the shapes; None if other pods or devices do, too."""
        if self.solutions is None or self.trials.devices_anywhere or not self.trials.alone:
            return None
        wanted = (c.sample for c, count in zip(self.classes, problem.demand, strict=True) if count)
        asked = tuple(question(sample, self.world) for sample in wanted)
        return None if None in asked else (rules_of(self.world), asked)

    @cached_property
    def by_cost(self) -> tuple[int, ...]:
        """Candidates by price, those without a price last."""
        prices = [candidate.usd_per_hour for candidate in self.candidates]
        return tuple(sorted(range(len(prices)), key=lambda i: (prices[i] is None, prices[i] or Decimal(0), i)))

    @cached_property
    def place_by_cost(self) -> Mapping[int, int]:
        """The position of each candidate in `by_cost`."""
        return {index: place for place, index in enumerate(self.by_cost)}

    @cached_property
    def of_shape(self) -> tuple[tuple[int, ...], ...]:
        """By shape, its candidates."""
        found: list[list[int]] = [[] for _ in self.shapes]
        for index, shape in enumerate(self.shape_of):
            found[shape].append(index)
        return tuple(map(tuple, found))

    @cached_property
    def labels(self) -> tuple[FrozenMap[str, str], ...]:
        """The labels of the shapes that decide about pods, without repetitions."""
        return tuple(dict.fromkeys(shape.node.labels for shape in self.shapes))

    @cached_property
    def of_type(self) -> Mapping[str, Sequence[int]]:
        """By instance type, its candidates."""
        found: dict[str, list[int]] = {}
        for index, candidate in enumerate(self.candidates):
            found.setdefault(candidate.instance_type.name, []).append(index)
        return found

    @cached_property
    def _restricted(self) -> frozenset[int]:
        """The candidates that do not admit every class."""
        return frozenset(
            index
            for index, candidate in enumerate(self.candidates)
            if candidate.block is not None or not offered_unasked(candidate) or candidate.pool.name in self.unserved
        )

    @cached_property
    def _selective(self) -> frozenset[int]:
        """Those of them that do not admit every class which requires an architecture, or every one which does not."""
        candidates = self.candidates
        return frozenset(
            i for i in self._restricted if candidates[i].block is not None or candidates[i].pool.name in self.unserved
        )

    @cached_property
    def _asking(self) -> tuple[bool, ...]:
        """By class, true if it requires an architecture."""
        return tuple(asks_for_architecture(found.sample) for found in self.classes)

    @cached_property
    def _ranks(self) -> int:
        """The same for every problem: the domains of a gang are compared, and each has other candidates."""
        return max((1 + candidate.rank for candidate in self.candidates if not candidate.barred), default=0)

    def same_outcomes(self, item: int) -> Hashable:
        """Equal for classes with the same known verdicts about every candidate; None if that is not certain."""
        same = self.trials.same_verdicts(item)
        if same is None:
            return None
        return same, self._asking[item], frozenset(i for i in self._selective if self.admission(i, item).refusal)

    def admission(self, candidate: int, item: int) -> Admission:
        """The answer of the candidate's pool, and of its block if it has one, for the class."""
        if candidate not in self._restricted:
            return ADMITTED
        offered, bundle = self.candidates[candidate], self.classes[item].sample
        stranger = self.unserved.get(offered.pool.name, {}).get(item)
        if stranger:
            return Admission(stranger)
        if not offered_unasked(offered) and not self._asking[item]:
            architecture = offered.instance_type.architecture
            return Admission(Reason.of(Code.ARCHITECTURE_UNASKED, architecture=architecture))
        return ADMITTED if offered.block is None else admission(bundle, offered.block, self.snapshot, self.now)

    def bar(self, candidate: int, item: int) -> Reason | None:
        """The reason why the candidate is not bought for the class although it may fit."""
        return self.candidates[candidate].barred or self.admission(candidate, item).refusal

    def everything(self) -> Offered:
        """All candidates, nothing bought yet, every class protected."""
        return Offered(frozenset(range(len(self.candidates))), tuple(range(len(self.classes))))

    def problem(
        self, counts: Mapping[int, int], started: Mapping[str, int], offered: Offered, banned: frozenset[int]
    ) -> Supply:
        """The problem of placing `counts` bundles of the classes on the offered candidates, without the shapes
        `banned`.

        `started`: the number of pods of each gang that have a place already.
        """
        levels = sorted({c.sample.priority for c in self.classes}, reverse=True)
        items = tuple(
            Item(
                count=counts.get(i, 0),
                pods=len(c.sample.pods),
                level=levels.index(c.sample.priority),
                gang=self.gangs.index(c.sample.gang) if c.sample.gang else None,
            )
            for i, c in enumerate(self.classes)
        )
        buyable = tuple(
            i for i in sorted(offered.candidates) if not self.candidates[i].barred and self.shape_of[i] not in banned
        )
        used = [sum((limit.uses(c) for c in offered.bought), Decimal(0)) for limit in self.limits]
        # More than a limit may exist, once it was lowered: that must not stop nodes that do not count for it.
        limits = [max(limit.remaining - amount, Decimal(0)) for limit, amount in zip(self.limits, used, strict=True)]
        return Supply(
            Problem(
                items=items,
                kinds=tuple(self._kind(i, offered.places) for i in buyable),
                limits=(*limits, Decimal("Infinity") if offered.most_nodes is None else Decimal(offered.most_nodes)),
                gangs=tuple(self._rule(key, items, index, started) for index, key in enumerate(self.gangs)),
                ranks=self._ranks,
            ),
            buyable,
        )

    def _kind(self, index: int, places: Mapping[int, PoolAndZone | None]) -> Kind:
        candidate = self.candidates[index]
        restricted = index in self._restricted
        admissions = [self.admission(index, item) for item in range(len(self.classes))] if restricted else []
        refuses = {i for i, a in enumerate(admissions) if a.refusal}
        refuses |= {item for item, place in places.items() if place != pool_and_zone(candidate)}
        spot = candidate.offering.capacity_type is CapacityType.SPOT
        return Kind(
            shape=self.shape_of[index],
            usd_per_hour=(candidate.usd_per_hour or Decimal(0)) * candidate.hosts,
            rank=candidate.rank,
            weight=candidate.pool.weight,
            uses=(*(limit.uses(candidate) * candidate.hosts for limit in self.limits), Decimal(candidate.hosts)),
            refuses=frozenset(refuses),
            risk=tuple(len(c.sample.pods) for c in self.classes) if spot else tuple(a.at_risk for a in admissions),
            nodes=candidate.hosts,
        )

    def _rule(self, key: str, items: Sequence[Item], index: int, started: Mapping[str, int]) -> GangRule:
        """The number of pods that may be left out, of those that still need a place."""
        wanted = sum(item.pods * item.count for item in items if item.gang == index)
        missing = self.snapshot.gangs[key].min_count - started.get(key, 0)
        return GangRule(max(0, wanted - max(0, missing)))


@dataclass(frozen=True, slots=True)
class Offered:
    """The candidates that may be bought, after earlier purchases; at most `most_nodes` more nodes.

    `protected` are the classes whose pods must not be broken by purchases. `places`: for classes that must be in one
    pool and zone, that place; None: nowhere.
    """

    candidates: frozenset[int]
    protected: tuple[int, ...] = ()
    bought: tuple[Candidate, ...] = ()
    most_nodes: int | None = None
    places: Mapping[int, PoolAndZone | None] = field(default_factory=dict)


def pool_and_zone(candidate: Candidate) -> PoolAndZone:
    """The pool and zone of a node of the candidate."""
    return candidate.pool.name, candidate.offering.zone


@dataclass(frozen=True, slots=True)
class Supply:
    """A problem and, for each of its kinds, its candidate."""

    problem: Problem
    candidates: tuple[int, ...]


def build_packing_input(
    classes: tuple[BundleClass, ...],
    world: World,
    snapshot: Snapshot,
    catalog: Catalog,
    *,
    scopes: Scopes,
    policy: Policy,
    now: datetime,
    ledger: Ledger,
) -> PackingInput:
    """Everything that could be bought for the classes in this cluster; the ledger pays for evaluations."""
    pods = [pod for c in classes for pod in c.sample.pods]
    pods_relate = (
        any(pod.pod_affinity or pod.pod_anti_affinity or pod.topology_spread for pod in pods)
        or any(name in world.nodes for name in world.repellers)
        or contends_for_volume(snapshot.pods, snapshot.volume_claims)
    )
    candidates = candidates_of(snapshot, catalog, policy, now=now, named=named_in(classes, snapshot))
    shapes, shape_of = shapes_of(candidates, snapshot, watched_labels(snapshot, pods))
    return PackingInput(
        snapshot=snapshot,
        now=now,
        classes=classes,
        candidates=candidates,
        shapes=shapes,
        shape_of=shape_of,
        limits=limits_of(snapshot, catalog, policy, now),
        world=world,
        # Without pods that depend on other pods, a new node is decided alone.
        trials=PackingOracle(world if pods_relate else replace(world, nodes={}), shapes, classes, ledger, apart=True),
        pods_relate=pods_relate,
        unserved=unserved(classes, scopes),
    )


def named_in(classes: Sequence[BundleClass], snapshot: Snapshot) -> Named:
    """The facts by which the pods of the classes name properties of candidates."""
    return Named(
        named_places([pod for c in classes for pod in c.sample.pods], snapshot),
        named_drivers(classes, snapshot),
        sharing_gates(classes, snapshot) | discovery(classes),
        named_topologies(classes),
        named_plugins(classes, snapshot),
        linked=any(uses_channel(pod, snapshot) for c in classes for pod in c.sample.pods),
    )


def named_topologies(classes: Sequence[BundleClass]) -> frozenset[str]:
    """The topologies of TPU slices in pods' node selectors, as GKE's documentation describes them."""
    key = labels.GKE_TPU_TOPOLOGY
    pods = [pod for c in classes for pod in c.sample.pods]
    terms = [term for pod in pods for term in (pod.affinity.terms if pod.affinity else ())]
    asked = (r for term in terms for r in term.match_expressions if r.key == key and r.operator == "In")
    selected = {pod.node_selector[key] for pod in pods if key in pod.node_selector}
    return frozenset(selected.union(*(r.values for r in asked)))


def named_plugins(classes: Sequence[BundleClass], snapshot: Snapshot) -> frozenset[str]:
    """The drivers whose devices pods request as extended resources of device plugins.

    No plugin is assumed for resources that a DeviceClass serves, nor for pods that request only a network card: such a
    pod has lost its accelerators.
    """
    assumes = snapshot.from_files or not snapshot.pools
    pods = (pod for c in classes for pod in c.sample.pods if not (assumes and network_card_alone(pod)))
    asked = {resource for pod in pods for resource in requested_resources(pod)}
    asked -= served_resources(snapshot) if assumes else frozenset()
    return frozenset(driver for resource in asked if (driver := driver_of_plugin(resource)) is not None)


def named_drivers(classes: Sequence[BundleClass], snapshot: Snapshot) -> frozenset[str]:
    """The drivers of the DeviceClasses that the claims of pods name."""
    known = {found.name: found for found in snapshot.classes}
    keys = {key for c in classes for pod in c.sample.pods for key in claim_keys(pod)}
    requests = (request for key in keys if key in snapshot.claims for request in snapshot.claims[key].requests)
    asked = {r for c in classes for pod in c.sample.pods for box in pod.containers for r in box.requests}
    served = extended_resource_classes(known.values()) if snapshot.profile.gates.extended_resource else {}
    extended = (DeviceRequest("", served[resource].name) for resource in sorted(asked & served.keys()))
    return wanted_drivers((*requests, *extended), known)


def sharing_gates(classes: Sequence[BundleClass], snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """The feature gates that drivers need for the claims' sharing strategies, as (profile name, gate)."""
    keys = {key for c in classes for pod in c.sample.pods for key in claim_keys(pod)}
    configs = [config for key in keys if key in snapshot.claims for config in snapshot.claims[key].config]
    return frozenset(
        (facts.profile, gate)
        for facts in driver_facts().values()
        for strategy, gate in facts.sharing_gates.items()
        if any(c.driver == facts.driver and opaque.strategy(c.parameters) == strategy for c in configs)
    )


def discovery(classes: Sequence[BundleClass]) -> frozenset[tuple[str, str]]:
    """GPU feature discovery, as (profile name, option), if a pod selects nodes by its labels."""
    pods = (pod for c in classes for pod in c.sample.pods)
    selects = any(labels.DISCOVERED_LABELS & pod.selected_labels for pod in pods)
    return frozenset({FEATURE_DISCOVERY} if selects else ())


def started_members(packing: PackingInput, placed: Mapping[str, int]) -> dict[str, int]:
    """The number of pods of each gang that run or were just placed (`placed` by gang key)."""
    return {key: packing.running.get(key, 0) + placed.get(key, 0) for key in packing.gangs}
