"""CapacityPools and CapacityBlocks: what may be launched, and prepaid reservations. kube/ validates them."""

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
    """Observe only proposes launches, Act launches."""

    OBSERVE = "Observe"
    ACT = "Act"


class Launcher(Enum):
    """The component that decides on the nodes of a pool: their number, and which of them are removed."""

    FORESLICE = "Foreslice"
    CLUSTER_AUTOSCALER = "ClusterAutoscaler"  # over gRPC: the loop only carries out its calls


class DeletionPolicy(Enum):
    """The action for the nodes when their pool or block is deleted."""

    DRAIN = "Drain"
    RETAIN = "Retain"


class ConsolidationPolicy(Enum):
    """The working nodes that are removed to save money."""

    NEVER = "Never"
    WHEN_EMPTY = "WhenEmpty"
    CLOSE = "Close"  # only in simulations: nodes admit no more pods than those that they were bought for, and end empty
    CHEAPER = "Cheaper"  # also nodes whose pods move to cheaper nodes


class DriftDisruption(Enum):
    """The rule for empty nodes that a changed pool or block would launch differently: remove them or not."""

    NEVER = "Never"
    WHEN_EMPTY = "WhenEmpty"


class StoppedMachines(Enum):
    """The action for a machine that was stopped in the cloud: keep it for a later start, or terminate it."""

    KEEP = "Keep"
    END = "End"


class Permission(Enum):
    """The permission of a pool to launch what it does not launch by default."""

    NEVER = "Never"
    ALLOW = "Allow"


class Hold(Enum):
    """The time for which the machines of a block run: from its start to its end, or while pods need them."""

    ALWAYS = "Always"
    WHILE_NEEDED = "WhileNeeded"


class AtDeadline(Enum):
    """The action for pods that still run when the time for evictions is over."""

    DELETE = "Delete"
    LEAVE = "Leave"


class UnknownDurationPolicy(Enum):
    """The permission to use a block for pods that do not declare how long they run."""

    ALLOW = "Allow"
    DENY = "Deny"


class PodScope(Enum):
    """The pending pods that a pool serves."""

    DEVICE_CLAIMS = "DeviceClaims"  # those with resource claims, or extended resources that a DeviceClass serves
    SELECTED = "Selected"  # those that the selectors match, with claims or without
    ALL = "All"


# kube-scheduler, and GKE's build of it: the schedulers whose decisions the planner predicts.
KNOWN_SCHEDULERS = ("default-scheduler", "gke.io/optimize-utilization-scheduler")


@dataclass(frozen=True, slots=True)
class Scope:
    """The pods that a pool launches nodes for. The selectors count for SELECTED only; None selects everything."""

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
    """Upper bounds over all nodes of a pool; None means no limit. `of_accelerators` is the name of the accelerator
    limit in the object, a resource in Karpenter's."""

    accelerators: int | None = None
    nodes: int | None = None
    usd_per_hour: Decimal | None = None
    of_accelerators: str = field(default="accelerators", compare=False)

    def path(self, resource: str) -> str:
        """The path of the limit of "accelerators", "nodes" or "usdPerHour" in the object, such as spec.limits.nodes."""
        name = self.of_accelerators if resource == "accelerators" else resource
        return f'spec.limits["{name}"]' if "/" in name else f"spec.limits.{name}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """`replicas` nodes that are kept without pods: always, or in the cron `schedule` window in `time_zone`."""

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
    """The saving that moving running pods must reach: `percent` of the price of the removed nodes, and within `payback`
    more than the cost of the move. `restart`: the time for which a moved pod does not work."""

    percent: int = 15
    payback: timedelta = timedelta(hours=2)
    restart: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Disruption:
    """The conditions for removing nodes. `after` is the time for which a node must have been empty; `saving` is the
    saving that moving pods must reach."""

    consolidate: ConsolidationPolicy = ConsolidationPolicy.WHEN_EMPTY
    after: timedelta = timedelta(minutes=5)
    drift: DriftDisruption = DriftDisruption.WHEN_EMPTY
    budgets: tuple[DisruptionBudget, ...] = ()
    stopped: StoppedMachines = StoppedMachines.KEEP
    saving: Saving = Saving()


@dataclass(frozen=True, slots=True)
class GroupNodes:
    """The labels and taints of nodes in existing groups, beside those that follow from their machine. `offering` is
    what the groups start; None: anything. `same` are keys of labels that all of them have with one value, which is
    unknown until one has registered."""

    offering: GroupOffering | None
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    taints: tuple[Taint, ...] = ()
    same: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupOffering:
    """The offering that an existing group of machines starts."""

    instance_type: str
    zone: str
    capacity_type: CapacityType
    reservation: str = ""  # the provider's id; "" if there is none, or if it is unknown

    def starts(self, block: CapacityBlock) -> bool:
        """True if the group starts machines of the block, which may use any kind of reservation."""
        return (
            (self.instance_type, self.zone) == (block.instance_type, block.zone)
            and self.capacity_type.needs_reservation
            and self.reservation in ("", block.reservation)
        )


@dataclass(frozen=True, slots=True)
class GroupRoom:
    """`most` is the largest total number of machines, whoever starts them, in all groups that start the offering."""

    offering: GroupOffering
    most: int


DEFAULT_CAPACITY_TYPES: Final = (CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED, CapacityType.ON_DEMAND)


@dataclass(frozen=True, slots=True)
class CapacityPool:
    """A team's permission to launch: requirements limit the offerings, limits the amount.

    `drivers` are driver profile names, () means Auto. `capacity_types` are in order of preference. `implicit` pools
    exist only in `foreslice plan` without any CapacityPool: they offer the whole catalog in every driver variant, or
    the part that a NodePool of Karpenter admits. `uid` is part of launch tokens.
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
    overflow: Permission = Permission.NEVER  # permission to launch unreserved capacity when its reservations are full
    baselines: tuple[Baseline, ...] = ()
    disruption: Disruption = Disruption()
    weight: int = 0
    fractional: Permission = Permission.NEVER  # permission to launch types with a part of a card (a vGPU)
    deletion_policy: DeletionPolicy = DeletionPolicy.DRAIN
    scope: Scope = Scope()
    launcher: Launcher = Launcher.FORESLICE
    boot_timeout: timedelta | None = None  # from launch to Node; None: that of the node template or the machine
    groups: frozenset[GroupOffering] | None = None  # the offerings of its node template's groups; None: it needs none
    registers: tuple[GroupNodes, ...] = ()  # labels and taints of their nodes beside `labels` and `taints`
    rooms: tuple[GroupRoom, ...] = ()  # offerings of which these groups have no more
    implicit: bool = False
    held_back: bool = False  # a check before launches failed: it only proposes until that is corrected
    uid: str = ""
    deleting: bool = False  # it was deleted, and its finalizer keeps it until its nodes are gone
    guarded: bool = False  # it has this finalizer
    generation: int = 0  # the version of the spec
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def of_karpenter(self) -> bool:
        """True if it is a NodePool, for which Karpenter launches and Foreslice does not."""
        return self.implicit and self.labels.get(KARPENTER_NODE_POOL) == self.name

    @property
    def acts(self) -> bool:
        """True if it may launch."""
        return self.mode is Mode.ACT and not self.deleting and not self.held_back

    @property
    def ordered(self) -> bool:
        """True if Cluster Autoscaler decides on its nodes, and not the loop."""
        return self.launcher is Launcher.CLUSTER_AUTOSCALER


@dataclass(frozen=True, slots=True)
class Consumers:
    """The pods that may use a block."""

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

    `reclaim_at` is the time at which the provider takes the machines back (None until it was observed: then `ends_at`
    counts). `available` is the number of further instances that the provider would start now (None if not observed:
    then `count` less the known nodes).
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
    max_wait: timedelta = timedelta(0)  # longest wait of a pod for its start, unless the pod has its own
    drain: Drain = Drain()
    reclaim_at: datetime | None = None
    available: int | None = None
    drivers: tuple[str, ...] = ()
    reservation_tags: FrozenMap[str, str] = field(default_factory=FrozenMap)  # finds the reservation instead of an id
    note: str = ""  # the last observed reason why the reservation cannot be used
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN
    uid: str = ""
    generation: int = 0  # the version of the spec
    ahead: bool = False  # only in a plan that looks ahead: pods that await it are planned on it before it begins
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def reclaimed(self) -> datetime:
        """The time at which the machines are gone."""
        return self.reclaim_at or self.ends_at

    @property
    def drain_starts(self) -> datetime:
        """The time from which evictions may run."""
        return self.reclaimed - self.drain.budget

    @property
    def notice_at(self) -> datetime:
        """The time from which pods have a notice."""
        return self.drain_starts - self.drain.notice

    def open_at(self, now: datetime) -> bool:
        """True if nodes may be started and used."""
        return (self.ahead or self.starts_at <= now) and now < self.drain_starts
