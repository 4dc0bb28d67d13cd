"""The plan: a value. Not executing it is the dry run."""

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
    """What came of an offering, in the order in which people read about them."""

    CHOSEN = "chosen"
    FITS = "fits"
    UNKNOWN = "unknown"
    FATAL = "fatal"
    DOES_NOT_FIT = "does-not-fit"

    @property
    def fits(self) -> bool:
        """Whether the demand fits on it, bought or not."""
        return self in (ConsideredOutcome.CHOSEN, ConsideredOutcome.FITS)


class LeftOutVerdict(StrEnum):
    """Why a pod gets no node."""

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
    """Where a pod is placed and what its unallocated claims get (by claim key). `reasons` say why there."""

    pod: str
    target: Target
    node: str
    allocations: FrozenMap[str, Allocation] = field(default_factory=FrozenMap)
    preference: int = 0
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class HandedOut:
    """What pods use and leave of an extended resource that a device plugin hands out. `profile` is the driver profile
    that would publish the same devices, as in PlannedNode.drivers; "" if there is none among them."""

    resource: str
    used: int
    free: int
    profile: str = ""


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node to launch. `offerings` in order of preference, the first is the chosen one; others fit the same pods.

    `node` is the hypothetical node, `predicted` what its drivers will publish, whatever the node is called: equal nodes
    share it. `devices_used` are devices that the placements allocate, `devices_total` all that could have been (devices
    sharing a counter set count as one).
    `usd_per_hour` None means not priced (only possible when an operator allows it).
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
    whole: str = ""  # what it is a part of, if that is launched as a whole or not at all: a slice of several hosts
    ready_in: BootTimes | None = None  # how long such machines took in this cluster; None: none was launched yet
    handed_out: tuple[HandedOut, ...] = ()

    @property
    def slices(self) -> tuple[ResourceSlice, ...]:
        """What its drivers will publish, under its own name; made anew each time."""
        return under_name(self.predicted, self.name)

    @property
    def publishing(self) -> tuple[str, ...]:
        """The driver profiles that the node needs: not those whose devices its pods have of a device plugin."""
        plugged = {found.profile for found in self.handed_out}
        return tuple(profile for profile in self.drivers if profile not in plugged)

    @property
    def offering(self) -> OfferingRef:
        """The chosen one."""
        return self.offerings[0]


@dataclass(frozen=True, slots=True)
class Considered:
    """An offering that was looked at for a group of equal demands.

    `reasons` say why it does not fit, or why another won.
    """

    pool: str
    drivers: tuple[str, ...]
    offering: OfferingRef
    outcome: ConsideredOutcome
    reasons: tuple[Reason, ...] = ()
    nodes: int = 0  # how many of it the plan launches


@dataclass(frozen=True, slots=True)
class NearMiss:
    """One failed condition with how many instance types failed on it first, and an example of them."""

    reason: Reason
    types: int
    example: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A pod that gets no node, its claims, and why.

    `types` is how many instance types were on offer.
    """

    pod: str
    verdict: LeftOutVerdict
    reasons: tuple[Reason, ...]
    claims: tuple[str, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()
    types: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """One group of equal pods or pods that must land together, with everything that was considered for it."""

    pods: tuple[str, ...]
    considered: tuple[Considered, ...] = ()


class NodeAction(Enum):
    HOLD = "hold"
    KEEP = "keep"
    NOTICE = "notice"
    DRAIN = "drain"
    CLOSE = "close"  # no new pods; those that are there stay


@dataclass(frozen=True, slots=True)
class NodeDecision:
    """The action on an existing or starting node of Foreslice, with its reasons."""

    provisioned_node: str
    action: NodeAction
    reasons: tuple[Reason, ...] = ()
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """How much of the free devices of one accelerator its pods cannot use, in devices; parts of devices count as parts.

    `unusable` is F of FGD ("Beware of Fragmentation", USENIX ATC 2023) summed over the nodes: what of `free` a pod
    cannot use that is drawn from those that run or wait and ask for this accelerator. `kinds`: how many kinds of pods
    that is; `undecided`: kinds left out, because they took more than their share of the work.
    """

    accelerator: str
    devices: int
    free: Fraction
    unusable: Fraction
    kinds: int
    undecided: int = 0

    @property
    def share(self) -> Fraction:
        """`unusable` as a part of `free`; 0 where nothing is free."""
        return self.unusable / self.free if self.free else Fraction(0)


@dataclass(frozen=True, slots=True)
class Relocation:
    """A running pod that would be evicted and created again on another node that is there."""

    pod: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class RoomMade:
    """A proposal: `moves` would give the pending `pods` a place on nodes that are there.

    `devices` by name of the node that the pods get them on. `usd_per_hour`: what the plan launches for these pods alone
    and would not be needed; None where it launches nothing for them.
    """

    pods: tuple[str, ...]
    moves: tuple[Relocation, ...]
    devices: FrozenMap[str, int]
    usd_per_hour: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision. Everything pending in scope appears in exactly one of placements and left_out."""

    launches: tuple[PlannedNode, ...] = ()
    placements: tuple[Placement, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    demands: tuple[Demand, ...] = ()
    nodes: tuple[NodeDecision, ...] = ()
    outside: tuple[LeftOut, ...] = ()  # pending pods that no pool serves: verdict "out-of-scope", and why
    warnings: tuple[Reason, ...] = ()
    usd_per_hour: Decimal = Decimal(0)
    # What placing the same pods on the same capacity types costs at least; None where nobody knows.
    at_least_usd_per_hour: Decimal | None = None
    fragmentation: tuple[Fragmentation, ...] = ()  # where it was asked for, by accelerator
    room: tuple[RoomMade, ...] = ()  # where it was asked for: nothing moves by it
    profile: str = ""
    catalog_digest: str = ""
    # Units of fresh work that the decision took: fewer when the same is asked again.
    work: int = field(default=0, compare=False)

    @property
    def above_least(self) -> Decimal | None:
        """How much more it costs than the lower bound, as a part of that; None where there is no bound above 0."""
        least = self.at_least_usd_per_hour
        return self.usd_per_hour / least - 1 if least else None

    @property
    def out_of_scope(self) -> tuple[str, ...]:
        """Keys of the pods that no pool serves."""
        return tuple(entry.pod for entry in self.outside)
