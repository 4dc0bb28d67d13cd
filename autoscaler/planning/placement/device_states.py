"""What claims take of a fresh node's devices, asked once for equal claims on equally used devices.

What decides whether a pod fits a fresh node has two halves: its claims, and everything else. Pods differ in their
amounts of CPU and memory far more than in their claims, so the second half is computed for each pod and the first is
remembered here. Where the halves depend on each other (shared or allocated claims, extended resources that a class
serves, volumes, host ports, devices that take of the node's own amounts) there is nothing to remember: `claims_apart`
says so, and the pod is decided as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from autoscaler.planning.placement.class_counts import devices_there
from autoscaler.planning.placement.matching import Matching, Requests
from autoscaler.planning.supply.hypothetical import Shape
from autoscaler.planning.supply.units import Unit, devices_of
from autoscaler.scheduling.fit import fit_claims
from autoscaler.scheduling.node_filters import amounts_of
from autoscaler.scheduling.node_state import host_ports
from autoscaler.scheduling.world import World
from instance_catalog.frozen_map import FrozenMap


@dataclass(frozen=True, slots=True)
class PodApart:
    """A pod whose claims and amounts are decided apart.

    `wants` is equal for pods whose claims ask for the same, `selects` for those that choose and tolerate the same
    nodes. `amounts` are in scheduler units. `devices` is how many devices the claims take at least, if none is shared.
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
    """The only pod of the bundle, if nothing but amounts connects its claims with the rest of what it needs.

    Pods that look at others (affinity, spreading) are decided as a whole, and a node that holds one decides all that
    follow so. What running pods keep away depends on labels, which count as what a pod selects. `numbers` stand for
    what pods want and select, because comparing it would cost more than all else. `looking`: for what a pod takes at
    least, whatever pods it looks at. They may keep it away, and never make it take less.
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
    """How many devices the request takes for itself at least."""
    if isinstance(request, FirstAvailable):
        return min((_least(one) for one in request.subrequests), default=0)
    return request.count if request.allocation_mode == "ExactCount" and not request.admin_access else 0


@dataclass(frozen=True, eq=False, slots=True)
class DeviceState:
    """The devices of one fresh node with what is in use; `held` are the claims that hold them.

    `left` is how many devices are free, where each is used by one claim alone; None where they are divided or shared,
    or where the node reaches devices that are not its own.
    """

    allocated: AllocatedState
    left: int | None
    held: tuple[ResourceClaim, ...] = ()
    steps: dict[int, Step] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """What came of asking for claims in a state: `verdict` is about `asked`, which stand for all that match the same.

    `after` is None if they do not fit.
    """

    asked: PodApart
    verdict: Verdict
    after: DeviceState | None = None
    units: frozenset[Unit] = frozenset()

    @property
    def refused(self) -> bool:
        """Whether the devices do not suffice. Drivers may refuse one combination and take another one."""
        verdict = self.verdict
        return isinstance(verdict, DoesNotFit) and all(r.code is not Code.PREPARE_REFUSED for r in verdict.reasons)

    @property
    def preference(self) -> int:
        """The sum of the chosen firstAvailable indexes."""
        return self.verdict.preference if isinstance(self.verdict, Fits) else 0

    def verdict_for(self, pod: PodApart) -> Verdict:
        """The verdict about another pod that wants the same, or that the claims fit of which match the same."""
        if pod.pod is self.asked.pod:
            return self.verdict
        pairs = list(zip(self.asked.claims, pod.claims, strict=True))
        if isinstance(self.verdict, Fits):
            allocations = {
                new.key: with_shares_of(owner_of_shares(new), self.verdict.allocations[old.key]) for old, new in pairs
            }
            return replace(self.verdict, allocations=FrozenMap(allocations))
        names = {f"claim {old.key}": f"claim {new.key}" for old, new in pairs}
        return replace(self.verdict, reasons=tuple(named_after(reason, names) for reason in self.verdict.reasons))


@dataclass(frozen=True, eq=False)
class Filled:
    """A hypothetical node with bundles on it: `counts` of each class that is there, and the device units they use.

    `free` are the amounts left of the node, in scheduler units. `devices` is None as soon as something is on the node
    whose claims cannot be decided apart from the rest.
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
        """The world with the node as it is now. Most are never looked at."""
        if self.last is None:
            return self.empty
        verdict = self.last.verdict()
        assert isinstance(verdict, Fits)
        return self.last.before.world.placed(self.last.pods, self.last.node, verdict)


@dataclass(frozen=True, slots=True)
class Put:
    """How a node came to hold what it holds."""

    before: Filled
    pods: tuple[Pod, ...]
    node: str
    verdict: Callable[[], Verdict]


class DeviceStates:
    """The states that the devices of a fresh node of one shape go through, the same ones being one object.

    `world` has the empty node in it.
    """

    def __init__(self, shape: Shape, world: World, requests: Requests) -> None:
        self._shape = shape
        self._world = world
        self.matching = Matching(shape.node, world, requests)
        self._known: dict[Hashable, DeviceState] = {}
        self._told: dict[tuple[int, int], Step] = {}
        self._counts: dict[str, int | None] = {}
        # Devices of other nodes or of none may be within reach as well.
        self.empty = DeviceState(world.allocated, None if world.devices.layers.shared() else shape.whole_devices)

    def most(self, device_class: str) -> int | None:
        """How many devices of the class claims take together at most; None if that has no bound."""
        if device_class not in self._counts:
            devices = self._world.devices
            # Devices that several nodes reach; slices of one node with counters are not among them.
            others = any(not piece.reach.node_name and piece.devices for piece in devices.layers.shared())
            found = None if others else devices.classes.get(device_class)
            slices = self._shape.sample.slices
            self._counts[device_class] = devices_there(slices, found, devices.engine) if found else None
        return self._counts[device_class]

    def known(self, state: DeviceState, pod: PodApart) -> Step | None:
        """What is known of the claims of the pod in the state."""
        return state.steps.get(self.matching.known(pod.wants, pod.claims))

    def step(self, state: DeviceState, pod: PodApart) -> Step:
        """What kube-scheduler and the drivers say about the claims of the pod on top of the state.

        Its verdict may be about claims that match the same: `told` is about these.
        """
        wants = self.matching.of(pod.wants, pod.claims)
        step = state.steps.get(wants)
        if step is None:
            alone = self.empty.steps.get(wants)
            # What free devices do not give, fewer of them do not give either.
            refused = alone is not None and alone.refused
            step = state.steps[wants] = alone if alone and refused else self._asked(state, pod)
        return step

    def told_alike(self, step: Step, pod: PodApart) -> Verdict | None:
        """The verdict of the step about this pod, where that needs no question; see `told`."""
        if isinstance(step.verdict, Fits) or step.asked.wants == pod.wants:
            return step.verdict_for(pod)
        known = self._told.get((id(step), pod.wants))
        return None if known is None else known.verdict_for(pod)

    def told(self, state: DeviceState, step: Step, pod: PodApart, paid: Iterable[Pod]) -> Verdict:
        """The same where it does: why claims are refused is in the words of their own selectors."""
        next(iter(paid))
        asked = self._told[id(step), pod.wants] = self._asked(state, pod)
        return asked.verdict_for(pod)

    def _asked(self, state: DeviceState, pod: PodApart) -> Step:
        if not pod.claims:
            return Step(pod, Fits(), state)
        # Equal states are one: a claim that holds devices here stands for another one, perhaps for that of this pod.
        held = {f"/{number}": claim for number, claim in enumerate(state.held)}
        world = replace(self._world, claims={**self._world.claims, **held}, allocated=state.allocated)
        verdict = fit_claims(pod.pod, self._shape.node, world)
        if not isinstance(verdict, Fits):
            return Step(pod, verdict)
        held_now = list(state.held)
        for claim in pod.claims:
            allocation = verdict.allocations[claim.key]
            # The claim may stand here twice: its place among those held names its shares.
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
    """What the next allocation, and the drivers' rules about other claims on the node, can see of the claims held.

    Whose a device is matters only for claims with a configuration, which drivers compare with that of others.
    """
    return frozenset(Counter(_facts(state)).items())


def _facts(state: DeviceState) -> Iterator[Hashable]:
    for claim in state.held:
        devices = claim.allocation.devices if claim.allocation else ()
        # Ids of shares say whose they are: all that matters is that each is another one.
        seen = tuple(
            (d.driver, d.pool, d.device, d.admin_access, d.share_id is None, d.consumed_capacity) for d in devices
        )
        if claim.config:
            yield claim.config, seen
        else:
            yield from seen
