"""ProvisionedNode and LaunchBatch: what was asked of a provider, and how far it got. Edges live in lifecycle/."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import NamedTuple

from autoscaler.model.capacity import NO_TEMPLATE, NodeTemplateRef
from autoscaler.model.reason import Reason
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType


class Phase(Enum):
    INTENDED = "Intended"
    LAUNCHING = "Launching"
    LAUNCHED = "Launched"
    REGISTERED = "Registered"
    DRIVERS_READY = "DriversReady"
    READY = "Ready"
    DRAINING = "Draining"
    TERMINATING = "Terminating"
    GONE = "Gone"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class OfferingRef:
    """An offering by name. `reservation` is the provider's id for reserved capacity; `block` our CapacityBlock.

    What a plan shows beside the name is not part of it and is not stored: the `region`, and of the price the region
    and date that it was read for.
    """

    instance_type: str
    zone: str
    capacity_type: CapacityType
    usd_per_hour: Decimal | None = None  # as planned; None: no price was known
    reservation: str = ""
    block: str = ""
    region: str = field(default="", compare=False)
    price_region: str = field(default="", compare=False)
    price_date: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction at the time of the launch, as digests."""

    instance_type: str
    drivers: tuple[str, ...]
    catalog_digest: str
    slices_digest: str


class PhaseChange(NamedTuple):
    """A phase that a node entered, when, and why (a value of lifecycle's Why, or "Adopted")."""

    phase: Phase
    at: datetime
    why: str


class BootTimes(NamedTuple):
    """How long so many machines took from their launch until pods could run on them: half of them at most `median`,
    nine in ten at most `slow` (None: too few to say)."""

    boots: int
    median: timedelta
    slow: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ProvisionedNode:
    """One node asked of a provider. `offerings` are in order, each proven to fit the same pods."""

    name: str
    pool: str
    node_name: str
    batch: str
    offerings: tuple[OfferingRef, ...]
    prediction: Prediction
    phase: Phase = Phase.INTENDED
    phase_since: datetime | None = None
    obtained: OfferingRef | None = None
    provider: str = ""
    provider_id: str = ""
    instance_id: str = ""  # that of its machine, where another one may get the provider_id; "": none can, or unknown
    recreated_as: str = ""  # the id of such another machine
    place: str = ""  # account/region that the provider called for its machine; "" or a part of it: unknown
    token: str = ""
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    pods: tuple[str, ...] = ()  # keys of the pods it was bought for
    boot_timeout: timedelta | None = None  # from launch to Node, as it was at the launch; None: of an earlier version
    hosts: int = 1  # how many nodes of its batch are one slice, and end together
    replaces: tuple[str, ...] = ()  # ProvisionedNodes whose pods move to it, at less cost
    reasons: tuple[Reason, ...] = ()
    empty_since: datetime | None = None
    unhealthy_since: datetime | None = None  # its Node was ready once and is not now
    reclaim_at: datetime | None = None  # when the provider takes this one machine, if it has said so
    noticed_at: datetime | None = None  # an end that the provider announced once and does not repeat
    stopped_since: datetime | None = None  # its machine was stopped, and may be started again
    history: tuple[PhaseChange, ...] = ()
    uid: str = ""
    resource_version: str = ""
    deleting: bool = False  # the object was deleted; its finalizer keeps it until the machine is gone
    created: float = field(default=0.0, compare=False)  # when the API server made it, seconds of the epoch; 0: never

    @property
    def offering(self) -> OfferingRef:
        """The offering that was obtained, or the first that is requested."""
        return self.obtained or self.offerings[0]


class BatchOutcome(StrEnum):
    """How far a LaunchBatch got: its nodes wait for a call, a call is under way, all that can be had is there."""

    INTENDED = "Intended"
    CALLING = "Calling"
    LAUNCHED = "Launched"
    FAILED = "Failed"

    @property
    def finished(self) -> bool:
        """Whether nothing will be asked for any more."""
        return self in (BatchOutcome.LAUNCHED, BatchOutcome.FAILED)


@dataclass(frozen=True, slots=True)
class BatchMember:
    """One node of a LaunchBatch, with the keys of the pods that it is bought for.

    `provider_id` and `obtained` are the machine and the offering that it got, "" and None as long as there is none;
    `instance_id` as in ProvisionedNode.
    """

    node: str
    pods: tuple[str, ...] = ()
    provider_id: str = ""
    obtained: OfferingRef | None = None
    instance_id: str = ""


@dataclass(frozen=True, slots=True)
class LaunchBatch:
    """Nodes launched together. Written before any provider call, with everything the calls and the nodes derive from.

    The parameters (`labels`, `taints`, `kubelet_reserved`, `template`) are copied from the pool, so that a repetition
    after a restart is identical even when the pool changed meanwhile. `token` is hash(batch, attempt, zone).
    """

    name: str
    pool: str
    members: tuple[BatchMember, ...]
    offerings: tuple[OfferingRef, ...]
    attempt: int = 0  # index of the offering that is requested
    token: str = ""
    parameter_hash: str = ""
    answered: bool = False  # whether the answer of a call was persisted
    outcome: BatchOutcome = BatchOutcome.INTENDED
    uid: str = ""
    resource_version: str = ""
    minimum: int = 1  # so many nodes come together or none
    provider: str = ""
    prediction: Prediction | None = None
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    taints: tuple[Taint, ...] = ()
    kubelet_reserved: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    template: NodeTemplateRef = NO_TEMPLATE
    deleting: bool = False  # the object was deleted; its finalizer keeps it until it is finished
    guarded: bool = False  # that finalizer is there
    place: str = ""  # account/region that the provider calls for its attempt
    waiting_since: datetime | None = None  # since when the provider holds its request; None: it does not
    boot_timeout: timedelta | None = None
    whole: bool = False  # its nodes are the hosts of one slice: they come together, and end together
    replaces: tuple[str, ...] = ()  # ProvisionedNodes whose pods move to its nodes

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(member.node for member in self.members)

    @property
    def asked(self) -> bool:
        """Whether a call was begun for it."""
        return self.outcome is not BatchOutcome.INTENDED or bool(self.token)

    @property
    def pods(self) -> tuple[str, ...]:
        return tuple(pod for member in self.members for pod in member.pods)
