"""The plan, a value. A plan that is not executed is a dry run."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from fractions import Fraction

from autoscaler.model.node import Node
from autoscaler.model.provisioned_node import BootTimes, OfferingRef, Prediction
from autoscaler.model.reason import Reason
from autoscaler.model.resource_claim import Allocation
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.resource_slice import DeviceId, ResourceSlice
from instance_catalog.prediction.concrete import under_name


class ConsideredOutcome(StrEnum):
    """The result for an offering, in the order of display."""

    CHOSEN = "chosen"
    FITS = "fits"
    UNKNOWN = "unknown"
    FATAL = "fatal"
    DOES_NOT_FIT = "does-not-fit"

    @property
    def fits(self) -> bool:
        """True if the demand fits on it, launched or not."""
        return self in (ConsideredOutcome.CHOSEN, ConsideredOutcome.FITS)


class LeftOutVerdict(StrEnum):
    """The verdict for a pod that gets no node."""

    DOES_NOT_FIT = "does-not-fit"
    FATAL = "fatal"
    UNKNOWN = "unknown"
    OUT_OF_SCOPE = "out-of-scope"


class Target(Enum):
    """The kind of node that a pod is placed on."""

    EXISTING = "existing"
    COMING = "coming"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of a pod and the devices of its unallocated claims (by claim key). `reasons` explain the choice."""

    pod: str
    target: Target
    node: str
    allocations: FrozenMap[str, Allocation] = field(default_factory=FrozenMap)
    preference: int = 0
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The used and free part of an extended resource that a device plugin serves. `profile` is the driver profile that
    would publish the same devices, as in PlannedNode.drivers; "" if there is none among them."""

    resource: str
    used: int
    free: int
    profile: str = ""


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node to launch. `offerings` are in order of preference, the first is the chosen one; others fit the same pods.

    `node` is the hypothetical node, `predicted` the slices that its drivers will publish, without the node's name:
    equal nodes share it. `devices_used` are devices that the placements allocate, `devices_total` all that could have
    been (devices sharing a counter set count as one). `usd_per_hour` None means not priced (only possible if an
    operator allows it).
    """

    name: str
    pool: str
    drivers: tuple[str, ...]
    offerings: tuple[OfferingRef, ...]
    node: Node
    predicted: tuple[ResourceSlice, ...]
    pods: tuple[str, ...]
    devices_used: tuple[DeviceId, ...]
    devices_total: int
    usd_per_hour: Decimal | None
    prediction: Prediction
    reasons: tuple[Reason, ...] = ()
    boot_timeout: timedelta | None = None
    replaces: tuple[str, ...] = ()  # ProvisionedNodes whose pods move to it, at less cost
    whole: str = ""  # the slice of several hosts that it is a part of, which is launched as a whole or not at all
    ready_in: BootTimes | None = None  # times of such machines in this cluster; None: none was launched yet
    handed_out: tuple[HandedOut, ...] = ()

    @property
    def slices(self) -> tuple[ResourceSlice, ...]:
        """The slices that its drivers will publish, under its own name; created again each time."""
        return under_name(self.predicted, self.name)

    @property
    def publishing(self) -> tuple[str, ...]:
        """The driver profiles that the node needs: without those whose devices its pods get from a device plugin."""
        plugged = {found.profile for found in self.handed_out}
        return tuple(profile for profile in self.drivers if profile not in plugged)

    @property
    def offering(self) -> OfferingRef:
        """The chosen offering."""
        return self.offerings[0]


@dataclass(frozen=True, slots=True)
class Considered:
    """An offering that was considered for a group of equal demands.

    `reasons` explain why it does not fit, or why another one was chosen.
    """

    pool: str
    drivers: tuple[str, ...]
    offering: OfferingRef
    outcome: ConsideredOutcome
    reasons: tuple[Reason, ...] = ()
    nodes: int = 0  # the number of them that the plan launches


@dataclass(frozen=True, slots=True)
class NearMiss:
    """One failed condition with the number of instance types that failed on it first, and an example of them."""

    reason: Reason
    types: int
    example: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A pod that gets no node, its claims, and the reasons.

    `types` is the number of instance types on offer.
    """

    pod: str
    verdict: LeftOutVerdict
    reasons: tuple[Reason, ...]
    claims: tuple[str, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    types: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """One group of equal pods or of pods that need the same node, with everything that was considered for it."""

    pods: tuple[str, ...]
    considered: tuple[Considered, ...] = ()


class NodeAction(Enum):
    HOLD = "hold"
    KEEP = "keep"
    NOTICE = "notice"
    DRAIN = "drain"
    CLOSE = "close"  # no new pods; the existing ones stay


@dataclass(frozen=True, slots=True)
class NodeDecision:
    """The action on an existing or starting node of Foreslice, with its reasons."""

    provisioned_node: str
    action: NodeAction
    reasons: tuple[Reason, ...] = ()
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """The free devices of one accelerator that its pods cannot use, in devices; parts of devices count as parts.

    `unusable` is F of FGD ("Beware of Fragmentation", USENIX ATC 2023) summed over the nodes: the part of `free` that a
    pod cannot use which is drawn from the running and pending pods that request this accelerator. `kinds`: the number
    of kinds of these pods; `undecided`: kinds left out, because they took more than their share of the work.
    """

    accelerator: str
    devices: int
    free: Fraction
    unusable: Fraction
    kinds: int
    undecided: int = 0

    @property
    def share(self) -> Fraction:
        """`unusable` as a part of `free`; 0 if nothing is free."""
        return self.unusable / self.free if self.free else Fraction(0)


@dataclass(frozen=True, slots=True)
class Relocation:
    """A running pod that would be evicted and created again on another existing node."""

    pod: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class RoomMade:
    """A proposal: `moves` would give the pending `pods` a place on existing nodes.

    `devices` by name of the node that has them. `usd_per_hour`: the price of launches for these pods alone that would
    not be needed; None if the plan launches nothing for them.
    """

    pods: tuple[str, ...]
    moves: tuple[Relocation, ...]
    devices: FrozenMap[str, int]
    usd_per_hour: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision. Every pending pod in scope is in exactly one of placements and left_out."""

    launches: tuple[PlannedNode, ...] = ()
    placements: tuple[Placement, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    demands: tuple[Demand, ...] = ()
    nodes: tuple[NodeDecision, ...] = ()
    outside: tuple[LeftOut, ...] = ()  # pending pods that no pool serves: verdict "out-of-scope", and why
    warnings: tuple[Reason, ...] = ()
    usd_per_hour: Decimal = Decimal(0)
    # A lower bound of the cost of the same pods on the same capacity types, with claims served as preferred; None if
    # unknown.
    at_least_usd_per_hour: Decimal | None = None
    fragmentation: tuple[Fragmentation, ...] = ()  # only on request, by accelerator
    room: tuple[RoomMade, ...] = ()  # only on request: nothing moves because of it
    profile: str = ""
    catalog_digest: str = ""
    # Units of new work for the decision: fewer if the same was decided before.
    work: int = field(default=0, compare=False)

    @property
    def above_least(self) -> Decimal | None:
        """The additional cost over the lower bound, as a part of that; None without a bound above 0."""
        least = self.at_least_usd_per_hour
        return self.usd_per_hour / least - 1 if least else None

    @property
    def out_of_scope(self) -> tuple[str, ...]:
        """Keys of the pods that no pool serves."""
        return tuple(entry.pod for entry in self.outside)
