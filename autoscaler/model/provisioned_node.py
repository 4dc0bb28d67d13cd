"""ProvisionedNode and LaunchBatch: the requests to a provider, and their progress. lifecycle/ has the edges."""

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
    __hash__ = object.__hash__  # its members are unique, and every predicate of a node asks for it

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
    """An offering by name. `reservation` is the provider's id for reserved capacity; `block` the CapacityBlock.

    Facts that a plan only shows are not part of its identity and are not stored: the `region`, and the region and date
    of the price.
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
    """A phase that a node entered, the time, and the reason (a value of lifecycle's Why, or "Adopted")."""

    phase: Phase
    at: datetime
    why: str


class BootTimes(NamedTuple):
    """The times of `boots` machines from their launch until pods could run on them: half of them at most `median`, nine
    in ten at most `slow` (None: too few machines)."""

    boots: int
    median: timedelta
    slow: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ProvisionedNode:
    """One requested node. `offerings` are in order of preference, each proven to fit the same pods."""

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
    instance_id: str = ""  # that of its machine, if another one may get the same provider_id; "": none can, or unknown
    recreated_as: str = ""  # the id of such another machine
    place: str = ""  # account/region that the provider called for its machine; "" or a part of it: unknown
    token: str = ""
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    pods: tuple[str, ...] = ()  # keys of the pods for which it is launched
    boot_timeout: timedelta | None = None  # from launch to Node, set at the launch; None: by an earlier version
    hosts: int = 1  # the number of nodes in its batch that are one slice, and end together
    replaces: tuple[str, ...] = ()  # ProvisionedNodes whose pods move to it, at less cost
    reasons: tuple[Reason, ...] = ()
    empty_since: datetime | None = None
    unhealthy_since: datetime | None = None  # its Node was ready once and is not now
    reclaim_at: datetime | None = None  # when the provider takes this machine back, if announced
    noticed_at: datetime | None = None  # an end that the provider announced once and does not repeat
    stopped_since: datetime | None = None  # its machine was stopped, and may be started again
    history: tuple[PhaseChange, ...] = ()
    uid: str = ""
    resource_version: str = ""
    deleting: bool = False  # the object was deleted; its finalizer keeps it until the machine is gone
    created: float = field(default=0.0, compare=False)  # creation time in seconds of the epoch; 0: never created

    @property
    def offering(self) -> OfferingRef:
        """The offering that was obtained, or the first that is requested."""
        return self.obtained or self.offerings[0]


class BatchOutcome(StrEnum):
    """The progress of a LaunchBatch: no call yet, a call in progress, or all available machines obtained."""

    INTENDED = "Intended"
    CALLING = "Calling"
    LAUNCHED = "Launched"
    FAILED = "Failed"

    @property
    def finished(self) -> bool:
        """True if no further call is made."""
        return self in (BatchOutcome.LAUNCHED, BatchOutcome.FAILED)


@dataclass(frozen=True, slots=True)
class BatchMember:
    """One node of a LaunchBatch, with the keys of the pods for which it is launched.

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
    """Nodes launched together. Written before any provider call, with all inputs of the calls and the nodes.

    The parameters (`labels`, `taints`, `kubelet_reserved`, `template`) are copied from the pool, so that a repetition
    after a restart is identical even if the pool changed meanwhile. `token` is hash(batch, attempt, zone).
    """

    name: str
    pool: str
    members: tuple[BatchMember, ...]
    offerings: tuple[OfferingRef, ...]
    attempt: int = 0  # index of the offering that is requested
    token: str = ""
    parameter_hash: str = ""
    answered: bool = False  # True if the answer of a call was persisted
    outcome: BatchOutcome = BatchOutcome.INTENDED
    uid: str = ""
    resource_version: str = ""
    minimum: int = 1  # the least number of nodes, otherwise none
    provider: str = ""
    prediction: Prediction | None = None
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    taints: tuple[Taint, ...] = ()
    kubelet_reserved: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    template: NodeTemplateRef = NO_TEMPLATE
    deleting: bool = False  # the object was deleted; its finalizer keeps it until it is finished
    guarded: bool = False  # it has this finalizer
    place: str = ""  # account/region of its attempt at the provider
    waiting_since: datetime | None = None  # when the provider began to hold its request; None: it does not
    boot_timeout: timedelta | None = None
    whole: bool = False  # its nodes are the hosts of one slice: they start together, and end together
    replaces: tuple[str, ...] = ()  # ProvisionedNodes whose pods move to its nodes

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(member.node for member in self.members)

    @property
    def asked(self) -> bool:
        """True if a call was begun for it."""
        return self.outcome is not BatchOutcome.INTENDED or bool(self.token)

    @property
    def pods(self) -> tuple[str, ...]:
        return tuple(pod for member in self.members for pod in member.pods)
