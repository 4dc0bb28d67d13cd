"""Caches the devices that claims get on a new node, by equal claims and equally used devices.

Whether a pod fits on a new node depends on its claims, and on everything else. Pods differ in CPU and memory far more
than in their claims. So the second part is computed for each pod, and the first part is cached here. If the parts
depend on each other (shared or allocated claims, extended resources that a class serves, volumes, host ports, devices
that use the node's own amounts), nothing is cached: `claims_apart` returns None, and the pod is decided as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property

from autoscaler.dra.allocation.known_outcomes import named_after
from autoscaler.dra.allocation.results import owner_of_shares, with_shares_of
from autoscaler.dra.claims.pod_claims import claims_of
from autoscaler.dra.claims.pod_groups import group_of
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import FirstAvailable, Request, ResourceClaim
from autoscaler.model.verdict import DoesNotFit, Fits, Verdict
from autoscaler.planning.demand.bundles import Bundle
from autoscaler.planning.placement.matching import Matching, Requests
from autoscaler.planning.supply.class_counts import devices_there
from autoscaler.planning.supply.hypothetical import Shape
from autoscaler.planning.supply.units import Unit, devices_of
from autoscaler.scheduling.fit import fit_claims
from autoscaler.scheduling.node_filters import amounts_of
from autoscaler.scheduling.node_state import host_ports
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap


@dataclass(frozen=True, slots=True)
class PodApart:
    """A pod whose claims and amounts are decided separately.

    `wants` is equal for pods whose claims request the same, `selects` for those that select and tolerate the same
    nodes. `amounts` are in scheduler units. `devices` is the least number of devices that the claims use, if none is
    shared.
    """

    pod: Pod
    claims: tuple[ResourceClaim, ...]
    wants: int
    selects: int
    amounts: Mapping[str, int]
    devices: int


def claims_apart(
    bundle: Bundle, world: World, numbers: dict[Hashable, int], *, looking: bool = False
) -> PodApart | None:
    """The only pod of the bundle, if its claims and the rest of its requirements depend on each other only by amounts.

    Pods with terms about others (affinity, spreading) are decided as a whole, and so are all pods after them on the
    node. Terms of running pods about this one depend on labels, which count as selectors of the pod. `numbers`
    represent requests and selectors, because comparing these would cost more than everything else. `looking`: for the
    minimum that a pod uses, also with terms about other pods: these may exclude it, but never reduce its devices.
    """
    if len(bundle.pods) > 1:
        return None
    pod = bundle.pods[0]
    amounts = amounts_of(pod)
    if not looking and (pod.pod_affinity or pod.pod_anti_affinity or pod.topology_spread):
        return None
    if pod.unsupported or pod.volumes or group_of(pod, world.profile) or any(host_ports(pod)):
        return None
    if any(world.served_by_dra(resource) for resource in amounts) or (pod.claims and world.claims_take_amounts):
        return None
    claims = claims_of(pod, world.claims, world.profile, world.devices.classes)
    if not isinstance(claims, tuple) or any(claim.allocation or claim.reserved_for for claim in claims):
        return None
    wants = (pod.namespace, tuple(claim.spec_key() for claim in claims))
    seen = (pod.namespace, pod.labels) if world.repellers else ()
    selects = (pod.node_name, pod.node_selector, pod.affinity, pod.tolerations, pod.node_features, seen)
    number = numbers.setdefault
    least = sum(_least(request) for claim in claims for request in claim.requests)
    return PodApart(pod, claims, number(wants, len(numbers)), number(selects, len(numbers)), amounts, least)


def _least(request: Request) -> int:
    """The least number of devices that the request uses for itself."""
    if isinstance(request, FirstAvailable):
        return min((_least(one) for one in request.subrequests), default=0)
    return request.count if request.allocation_mode == "ExactCount" and not request.admin_access else 0


@dataclass(frozen=True, eq=False, slots=True)
class DeviceState:
    """The devices of one new node with those in use; `held` are the claims that use them.

    `left` is the number of free devices if each serves one claim only; None if they are divided or shared, or if the
    node can reach devices that are not its own.
    """

    allocated: AllocatedState
    left: int | None
    held: tuple[ResourceClaim, ...] = ()
    steps: dict[int, Step] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of allocating claims in a state: `verdict` is about `asked`, which represent all claims with equal
    matches.

    `after` is None if they do not fit.
    """

    asked: PodApart
    verdict: Verdict
    after: DeviceState | None = None
    units: frozenset[Unit] = frozenset()

    @property
    def refused(self) -> bool:
        """True if the devices do not suffice. Drivers may refuse one combination and accept another one."""
        verdict = self.verdict
        return isinstance(verdict, DoesNotFit) and all(r.code is not Code.PREPARE_REFUSED for r in verdict.reasons)

    @property
    def preference(self) -> int:
        """The sum of the chosen firstAvailable indexes."""
        return self.verdict.preference if isinstance(self.verdict, Fits) else 0

    def verdict_for(self, pod: PodApart) -> Verdict:
        """The verdict for another pod with equal requests; or, if the claims fit, with claims that match the same."""
        if pod.pod is self.asked.pod:
            return self.verdict
        pairs = list(zip(self.asked.claims, pod.claims, strict=True))
        if isinstance(self.verdict, Fits):
            allocations = {
                new.key: with_shares_of(owner_of_shares(new), self.verdict.allocations[old.key]) for old, new in pairs
            }
            return replace(self.verdict, allocations=FrozenMap(allocations))
        names = {old.key: new.key for old, new in pairs}
        return replace(self.verdict, reasons=tuple(named_after(reason, names) for reason in self.verdict.reasons))


@dataclass(frozen=True, eq=False)
class Filled:
    """A hypothetical node with bundles: `counts` of each class on it, and the device units that they use.

    `free` are the remaining amounts of the node, in scheduler units. `devices` is None once the node has a pod whose
    claims cannot be decided separately.
    """

    shape: int
    empty: World
    free: Mapping[str, int]
    devices: DeviceState | None
    counts: Mapping[int, int] = field(default_factory=dict)
    preference: int = 0
    units: frozenset[Unit] = frozenset()
    last: Put | None = None

    @cached_property
    def world(self) -> World:
        """The cluster with the node in its present state. Most of them are never read."""
        if self.last is None:
            return self.empty
        verdict = self.last.verdict()
        assert isinstance(verdict, Fits)
        return self.last.before.world.placed(self.last.pods, self.last.node, verdict)


@dataclass(frozen=True, slots=True)
class Put:
    """The bundle and the verdict by which a node got its present state."""

    before: Filled
    pods: tuple[Pod, ...]
    node: str
    verdict: Callable[[], Verdict]


class DeviceStates:
    """The states of the devices of a new node of one shape; equal states are one object.

    `world` contains the empty node.
    """

    def __init__(self, shape: Shape, world: World, requests: Requests) -> None:
        self._shape = shape
        self._world = world
        self.matching = Matching(shape.node, world, requests)
        self._known: dict[Hashable, DeviceState] = {}
        self._own_steps: dict[tuple[int, int], Step] = {}
        self._counts: dict[str, int | None] = {}
        # The node may also reach devices of other nodes or of no node.
        self.empty = DeviceState(world.allocated, None if world.devices.layers.shared() else shape.whole_devices)

    def most(self, device_class: str) -> int | None:
        """The most devices of the class that claims use together; None if there is no bound."""
        if device_class not in self._counts:
            devices = self._world.devices
            # Devices that several nodes can reach; slices of one node with counters are no such devices.
            others = any(not slice_.reach.node_name and slice_.devices for slice_ in devices.layers.shared())
            found = None if others else devices.classes.get(device_class)
            slices = self._shape.sample.slices
            self._counts[device_class] = devices_there(slices, found, devices.engine) if found else None
        return self._counts[device_class]

    def known(self, state: DeviceState, pod: PodApart) -> Step | None:
        """The cached result for the claims of the pod in the state."""
        return state.steps.get(self.matching.known(pod.wants, pod.claims))

    def step(self, state: DeviceState, pod: PodApart) -> Step:
        """The verdict of kube-scheduler and the drivers about the claims of the pod in addition to those of the state.

        Its verdict may be about other claims that match the same: `verdict` converts it.
        """
        wants = self.matching.of(pod.wants, pod.claims)
        step = state.steps.get(wants)
        if step is None:
            alone = self.empty.steps.get(wants)
            # Claims that the free devices cannot serve cannot be served by fewer of them.
            refused = alone is not None and alone.refused
            step = state.steps[wants] = alone if alone and refused else self._asked(state, pod)
        return step

    def verdict_if_known(self, step: Step, pod: PodApart) -> Verdict | None:
        """The verdict of the step for this pod if no further evaluation is needed; see `verdict`."""
        if isinstance(step.verdict, Fits) or step.asked.wants == pod.wants:
            return step.verdict_for(pod)
        known = self._own_steps.get((id(step), pod.wants))
        return None if known is None else known.verdict_for(pod)

    def verdict(self, state: DeviceState, step: Step, pod: PodApart, paid: Iterable[Pod]) -> Verdict:
        """The verdict for this pod, evaluated with its own claims: the reason of a refusal names the pod's own
        selectors."""
        next(iter(paid))
        asked = self._own_steps[id(step), pod.wants] = self._asked(state, pod)
        return asked.verdict_for(pod)

    def _asked(self, state: DeviceState, pod: PodApart) -> Step:
        if not pod.claims:
            return Step(pod, Fits(), state)
        # Equal states are one object: a claim that holds devices here may represent a claim of this pod.
        held = {f"/{number}": claim for number, claim in enumerate(state.held)}
        # Other claims hold no devices of a new node, and there may be thousands of them.
        claims = {claim.key: claim for claim in pod.claims} | held
        world = replace(self._world, claims=claims, allocated=state.allocated)
        verdict = fit_claims(pod.pod, self._shape.node, world)
        if not isinstance(verdict, Fits):
            return Step(pod, verdict)
        held_now = list(state.held)
        for claim in pod.claims:
            allocation = verdict.allocations[claim.key]
            # The claim may be here twice: its position among the held claims names its shares.
            held_now.append(replace(claim, allocation=with_shares_of(str(len(held_now)), allocation)))
        taken = [claim.allocation for claim in held_now[len(state.held) :] if claim.allocation]
        left = None if state.left is None else state.left - len(set(devices_of(taken)))
        after = DeviceState(state.allocated.plus(taken), left, tuple(held_now))
        return Step(
            pod,
            verdict,
            self._known.setdefault(_use(after), after),
            self._shape.units.touched(devices_of(taken)),
        )


def _use(state: DeviceState) -> Hashable:
    """The part of the held claims that the next allocation, and the drivers' rules about other claims on the node, can
    read.

    The owner of a device matters only for claims with a configuration, which drivers compare with that of others.
    """
    return frozenset(Counter(_facts(state)).items())


def _facts(state: DeviceState) -> Iterator[Hashable]:
    for claim in state.held:
        devices = claim.allocation.devices if claim.allocation else ()
        # Ids of shares name their claim: here they only need to differ.
        seen = tuple(
            (d.driver, d.pool, d.device, d.admin_access, d.share_id is None, d.consumed_capacity) for d in devices
        )
        if claim.config:
            yield claim.config, seen
        else:
            yield from seen
