"""CapacityPools and CapacityBlocks: what may be launched, and what is held. Validated at the edge (kube/)."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Final, NamedTuple

from autoscaler.model.labels import LabelSelector
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import KARPENTER_NODE_POOL
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType


class Mode(Enum):
    """Observe proposes, Act launches."""

    OBSERVE = "Observe"
    ACT = "Act"


class Launcher(Enum):
    """Who decides about the nodes of a pool: how many there are, and which of them go."""

    FORESLICE = "Foreslice"
    CLUSTER_AUTOSCALER = "ClusterAutoscaler"  # over gRPC: the loop only carries out what it orders


class DeletionPolicy(Enum):
    """What happens to the nodes when their pool or block is deleted."""

    DRAIN = "Drain"
    RETAIN = "Retain"


class ConsolidationPolicy(Enum):
    """Which nodes that work are removed to save money."""

    NEVER = "Never"
    WHEN_EMPTY = "WhenEmpty"
    CLOSE = "Close"  # only in simulations: nodes whose pods would cost less elsewhere admit no more, and end empty
    CHEAPER = "Cheaper"  # also nodes whose pods move to where they cost less


class DriftDisruption(Enum):
    """Whether empty nodes go that a change of their pool or block would launch otherwise."""

    NEVER = "Never"
    WHEN_EMPTY = "WhenEmpty"


class StoppedMachines(Enum):
    """What happens to a machine that was stopped in the cloud: kept for a later start, or terminated."""

    KEEP = "Keep"
    END = "End"


class Permission(Enum):
    """Whether a pool may buy what it does not buy by default."""

    NEVER = "Never"
    ALLOW = "Allow"


class Hold(Enum):
    """When the machines of a block run: from its start to its end, or while pods need them."""

    ALWAYS = "Always"
    WHILE_NEEDED = "WhileNeeded"


class AtDeadline(Enum):
    """What happens to the pods that still run when the time for evictions is over."""

    DELETE = "Delete"
    LEAVE = "Leave"


class UnknownDurationPolicy(Enum):
    """Whether pods that do not say how long they run may use a block."""

    ALLOW = "Allow"
    DENY = "Deny"


class PodScope(Enum):
    """Which pending pods a pool serves."""

    DEVICE_CLAIMS = "DeviceClaims"  # those with resource claims, or extended resources that a DeviceClass serves
    SELECTED = "Selected"  # those that the selectors pick, with claims or without
    ALL = "All"


# kube-scheduler, and GKE's build of it: the schedulers whose decisions the planner knows.
KNOWN_SCHEDULERS = ("default-scheduler", "gke.io/optimize-utilization-scheduler")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose nodes a pool opens. The selectors count for SELECTED only; None selects everything."""

    pods: PodScope = PodScope.DEVICE_CLAIMS
    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    schedulers: tuple[str, ...] = KNOWN_SCHEDULERS


class NodeTemplateRef(NamedTuple):
    """The provider's node template. Empty in a pool that exists only in `foreslice plan`."""

    kind: str = ""
    name: str = ""


NO_TEMPLATE: Final = NodeTemplateRef()


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds over all nodes of a pool; None does not limit that dimension. `of_accelerators` is the name of that
    limit in the object, a resource in Karpenter's."""

    accelerators: int | None = None
    nodes: int | None = None
    usd_per_hour: Decimal | None = None
    of_accelerators: str = field(default="accelerators", compare=False)

    def path(self, resource: str) -> str:
        """Of the limit of "accelerators", "nodes" or "usdPerHour" in the object, such as spec.limits.nodes."""
        name = self.of_accelerators if resource == "accelerators" else resource
        return f'spec.limits["{name}"]' if "/" in name else f"spec.limits.{name}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A warm floor of `replicas` nodes; always, or while the cron `schedule` window in `time_zone` is open."""

    replicas: int
    schedule: str | None = None
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """At most `nodes` nodes (or a percentage such as "10%") disrupted at once."""

    nodes: str
    schedule: str | None = None


@dataclass(frozen=True, slots=True)
class Saving:
    """What moving running pods must save: `percent` of the price of the nodes that go, and within `payback` more than
    the move costs. `restart`: how long the work of a moved pod stands still."""

    percent: int = 15
    payback: timedelta = timedelta(hours=2)
    restart: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Disruption:
    """When nodes may be removed. `after` is how long a node must have been empty; `saving` is what moving pods must
    save."""

    consolidate: ConsolidationPolicy = ConsolidationPolicy.WHEN_EMPTY
    after: timedelta = timedelta(minutes=5)
    drift: DriftDisruption = DriftDisruption.WHEN_EMPTY
    budgets: tuple[DisruptionBudget, ...] = ()
    stopped: StoppedMachines = StoppedMachines.KEEP
    saving: Saving = Saving()


@dataclass(frozen=True, slots=True)
class GroupNodes:
    """What nodes of groups that exist already register with, beside what follows from their machine. `offering` is what
    the groups start; None: whatever they start. `same` are keys of labels that all of them have with one value, which
    is not known before one has registered."""

    offering: GroupOffering | None
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    taints: tuple[Taint, ...] = ()
    same: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupOffering:
    """What a group of machines that exists already starts more of."""

    instance_type: str
    zone: str
    capacity_type: CapacityType
    reservation: str = ""  # the provider's id; "": none, or it is not known which

    def starts(self, block: CapacityBlock) -> bool:
        """Whether it starts machines of the block, which may hold any kind of reservation."""
        return (
            (self.instance_type, self.zone) == (block.instance_type, block.zone)
            and self.capacity_type.needs_reservation
            and self.reservation in ("", block.reservation)
        )


@dataclass(frozen=True, slots=True)
class GroupRoom:
    """How many machines all groups that start an offering hold at `most`, whoever starts them."""

    offering: GroupOffering
    most: int


DEFAULT_CAPACITY_TYPES: Final = (CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED, CapacityType.ON_DEMAND)


@dataclass(frozen=True, slots=True)
class CapacityPool:
    """A team's permission to launch: requirements bound the offerings, limits the amount.

    `drivers` are driver profile names, () means Auto. `capacity_types` are in order of preference. `implicit` pools
    exist only in `foreslice plan` without any CapacityPool: they offer the whole catalog in every driver variant, or
    what a NodePool of Karpenter admits of it.
    `uid` is part of launch tokens.
    """

    name: str
    mode: Mode = Mode.OBSERVE
    requirements: tuple[Requirement, ...] = ()
    capacity_types: tuple[CapacityType, ...] = DEFAULT_CAPACITY_TYPES
    node_template: NodeTemplateRef = NO_TEMPLATE
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    kubelet_reserved: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    drivers: tuple[str, ...] = ()
    limits: Limits = Limits()
    overflow: Permission = Permission.NEVER  # whether it buys what is not reserved when its reservations are full
    baselines: tuple[Baseline, ...] = ()
    disruption: Disruption = Disruption()
    weight: int = 0
    fractional: Permission = Permission.NEVER  # whether types with a part of a card (a vGPU) are offered
    deletion_policy: DeletionPolicy = DeletionPolicy.DRAIN
    scope: Scope = Scope()
    launcher: Launcher = Launcher.FORESLICE
    boot_timeout: timedelta | None = None  # from launch to Node; None: the node template's, or that of the machine
    groups: frozenset[GroupOffering] | None = None  # what its node template's groups start; None: it needs none
    registers: tuple[GroupNodes, ...] = ()  # what nodes of these groups have beside `labels` and `taints`
    rooms: tuple[GroupRoom, ...] = ()  # offerings of which these groups hold no more
    implicit: bool = False
    held_back: bool = False  # a check before buying failed: it only proposes until that is put right
    uid: str = ""
    deleting: bool = False  # it was deleted, and its finalizer keeps it until its nodes are gone
    guarded: bool = False  # that finalizer is there
    generation: int = 0  # which version of the spec this is
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def of_karpenter(self) -> bool:
        """Whether it is a NodePool, by which Karpenter launches and Foreslice does not."""
        return self.implicit and self.labels.get(KARPENTER_NODE_POOL) == self.name

    @property
    def acts(self) -> bool:
        """Whether it may launch."""
        return self.mode is Mode.ACT and not self.deleting and not self.held_back

    @property
    def ordered(self) -> bool:
        """Whether Cluster Autoscaler decides about its nodes, and the loop decides nothing."""
        return self.launcher is Launcher.CLUSTER_AUTOSCALER


@dataclass(frozen=True, slots=True)
class Consumers:
    """Which pods may use a block."""

    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None
    min_accelerators: int = 0


@dataclass(frozen=True, slots=True)
class Drain:
    """Notice, then eviction for `budget`, before the provider takes the machines back."""

    notice: timedelta = timedelta(minutes=30)
    budget: timedelta = timedelta(minutes=15)
    at_deadline: AtDeadline = AtDeadline.DELETE


@dataclass(frozen=True, slots=True)
class CapacityBlock:
    """A prepaid reservation to hold. Its nodes cost nothing more.

    `reclaim_at` is when the provider takes the machines back (from the provider; None until it was observed, then
    `ends_at` counts). `available` is how many more instances the provider would start now (None: not observed, then
    `count` less the nodes we know of).
    """

    name: str
    instance_type: str
    zone: str
    count: int
    starts_at: datetime
    ends_at: datetime
    pool: str = ""
    reservation: str = ""  # provider's id
    hold: Hold = Hold.ALWAYS
    consumers: Consumers = Consumers()
    taint: Taint | None = None
    unknown_duration: UnknownDurationPolicy = UnknownDurationPolicy.ALLOW
    min_remaining: timedelta = timedelta(0)
    max_wait: timedelta = timedelta(0)  # how long after its creation a pod waits for the start, unless it says itself
    drain: Drain = Drain()
    reclaim_at: datetime | None = None
    available: int | None = None
    drivers: tuple[str, ...] = ()
    reservation_tags: FrozenMap[str, str] = field(default_factory=FrozenMap)  # finds the reservation instead of an id
    note: str = ""  # why the reservation cannot be used, as last observed
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    uid: str = ""
    generation: int = 0  # which version of the spec this is
    ahead: bool = False  # only in a plan that looks ahead: pods that await it are planned on it before it begins
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def reclaimed(self) -> datetime:
        """The moment the machines are gone."""
        return self.reclaim_at or self.ends_at

    @property
    def drain_starts(self) -> datetime:
        """From here on evictions may run."""
        return self.reclaimed - self.drain.budget

    @property
    def notice_at(self) -> datetime:
        """From here on pods have a notice."""
        return self.drain_starts - self.drain.notice

    def open_at(self, now: datetime) -> bool:
        """Whether nodes may be started and used."""
        return (self.ahead or self.starts_at <= now) and now < self.drain_starts
