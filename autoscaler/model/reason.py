"""Reasons: closed enums plus data. Only report/ makes text.

A `Reason` is one finding about one thing (a pod on a node, a claim, a device, a pool). `code` is closed, `detail` has
the facts as text-free data (names, numbers), so that equal findings compare equal and can be counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias

from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap

Fact: TypeAlias = str | int | float | bool | tuple[str, ...]


class Code(Enum):
    """All reasons of Foreslice. The value is the stable identifier in JSON and metrics."""

    __hash__ = object.__hash__  # its members are unique, and looked up for each node of a reconcile

    # DRA: why a claim does not fit a node
    NO_DEVICE_OF_CLASS = "NoDeviceOfClass"  # no device on the node passes the class selectors
    SELECTOR_FALSE = "SelectorFalse"  # devices of the class exist, none passes the request's selectors
    TOO_FEW_DEVICES = "TooFewDevices"  # wanted, found
    DEVICES_IN_USE = "DevicesInUse"
    CONSTRAINT_UNSATISFIED = "ConstraintUnsatisfied"  # attribute
    COUNTERS_EXHAUSTED = "CountersExhausted"
    CAPACITY_INSUFFICIENT = "CapacityInsufficient"
    DEVICE_TAINTED = "DeviceTainted"
    NO_COMBINATION = "NoCombination"  # each request alone could be satisfied, all together not
    INVALID_POOL = "InvalidPool"
    INCOMPLETE_POOL = "IncompletePool"
    CLAIM_ALLOCATED_ELSEWHERE = "ClaimAllocatedElsewhere"
    CLAIM_RESERVED_FULL = "ClaimReservedFull"
    CLAIM_DELETING = "ClaimDeleting"
    BINDING_FAILED = "BindingFailed"
    SEARCH_TIMEOUT = "SearchTimeout"  # kube-scheduler would give up
    CLAIM_NOT_SHAREABLE = "ClaimNotShareable"  # claim: its devices are amounts of the node, counted for one pod
    # resource, wanted, of_claims, free: with what the claims take of the node's own amounts
    INSUFFICIENT_WITH_CLAIMS = "InsufficientWithClaims"
    POD_LEVEL_EXCEEDED = "PodLevelExceeded"  # resource, and container where its limit exceeds that of the pod
    PREPARE_REFUSED = "PrepareRefused"  # the driver would refuse after scheduling
    # DRA: fatal for the pod
    SELECTOR_ERROR = "SelectorError"
    SELECTOR_INVALID = "SelectorInvalid"
    CLASS_NOT_FOUND = "ClassNotFound"  # device_class, or missing_class: those that are not in the files
    CLAIM_NOT_FOUND = "ClaimNotFound"
    CLAIM_NOT_CREATED = "ClaimNotCreated"
    CLAIM_NOT_OWNED = "ClaimNotOwned"
    POD_GROUP_NOT_FOUND = "PodGroupNotFound"
    TOO_MANY_DEVICES = "TooManyDevices"  # above 32 per claim
    FEATURE_DISABLED = "FeatureDisabled"
    MALFORMED_REQUEST = "MalformedRequest"
    ALL_OVER_UNFINISHED_POOL = "AllOverUnfinishedPool"
    ALL_VIOLATES_CONSTRAINT = "AllViolatesConstraint"
    BAD_NODE_SELECTOR = "BadNodeSelector"
    NODE_AMOUNT_UNDECIDED = "NodeAmountUndecided"  # device, problem: the amounts of the node that its claim takes
    # DRA: unknown
    RUNTIME_ATTRIBUTE = "RuntimeAttribute"  # decided by a value that exists only at run time
    CATALOG_UNKNOWN = "CatalogUnknown"  # decided by a fact that the catalog lacks
    PLANNING_FAILED = "PlanningFailed"  # a bug of Foreslice that affects this pod, pool or block
    UNSUPPORTED = "Unsupported"  # a field or feature that this version does not support
    CONTESTED_RESOURCE = "ContestedResource"  # resource: it is unknown if its class serves it
    WAITS_FOR_TURN = "WaitsForTurn"  # objects, pods: the limits of one reconcile
    WORK_BUDGET = "WorkBudget"  # expression, or kinds of pods of the namespace: more work than a plan allows
    UNREADABLE = "Unreadable"  # right: without it a kind that decides this cannot be read
    # other predicates
    INSUFFICIENT_RESOURCE = "InsufficientResource"  # resource, wanted, free
    NODE_SELECTOR_MISMATCH = "NodeSelectorMismatch"
    NODE_AFFINITY_MISMATCH = "NodeAffinityMismatch"
    NODE_NAME_MISMATCH = "NodeNameMismatch"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    NODE_NOT_READY = "NodeNotReady"
    PORT_CONFLICT = "PortConflict"
    VOLUME_ZONE_CONFLICT = "VolumeZoneConflict"
    VOLUME_UNBOUND = "VolumeUnbound"
    VOLUME_IN_USE = "VolumeInUse"
    VOLUME_LIMIT = "VolumeLimit"
    NO_STORAGE = "NoStorage"  # claim, driver
    NODE_FEATURE_MISSING = "NodeFeatureMissing"
    TOPOLOGY_SPREAD = "TopologySpread"
    POD_AFFINITY = "PodAffinity"
    POD_ANTI_AFFINITY = "PodAntiAffinity"
    SCHEDULING_GATED = "SchedulingGated"
    OTHER_SCHEDULER = "OtherScheduler"
    # planning
    OUT_OF_SCOPE = "OutOfScope"  # no claim and no extended resource served by DRA
    NOT_SELECTED = "NotSelected"  # pool: its scope selects other pods
    OTHER_LAUNCHER = "OtherLauncher"  # pool: Cluster Autoscaler decides on its nodes
    # request, of another autoscaler's class_name: that autoscaler provides its capacity; with its condition or end, or
    # the condition that is missing
    PROVISIONING_REQUEST = "ProvisioningRequest"
    TEMPLATE_NOT_FOUND = "TemplateNotFound"  # the template of pods or their claims
    BUFFERS_SERVED = "BuffersServed"  # kind: it serves CapacityBuffers of every strategy
    BOOKED = "Booked"  # kept for the consumers of a ProvisioningRequest
    NOMINATED = "Nominated"  # node: other pods are preempted for it there
    AWAITS_BINDING = "AwaitsBinding"  # node: launched for it and ready; kube-scheduler will bind it soon
    SCALE_UP_DELAYED = "ScaleUpDelayed"  # until: by its annotation, no node is launched before
    COMES_FIRST = "ComesFirst"  # it would take a node that is launched for a pod behind it in the queue
    # block, begins; without it instance_type, capacity_type, usd_per_hour: it waits for a CapacityBlock to begin
    WAITS_FOR_BLOCK = "WaitsForBlock"
    NOT_TRIED = "NotTried"  # kube-scheduler has not reported anything about it yet
    UNSCHEDULABLE = "Unschedulable"  # kube-scheduler's message
    SCHEDULER_ERROR = "SchedulerError"  # kube-scheduler's error
    NO_CANDIDATE = "NoCandidate"  # no offering of any pool fits
    NO_POOL = "NoPool"  # no pool admits the offering that would fit
    NOT_PREDICTED = "NotPredicted"  # driver, device_class (one or more): not predicted; nodes: that publish them
    NOTHING_HAS = "NothingHas"  # name, wanted, where; largest or best, and (instance_type, accelerator) or simulated_by
    ALTERNATIVE_NOWHERE = "AlternativeNowhere"  # alternative, passed over; the rest as of NothingHas
    GIVES_WAY = "GivesWay"  # node: kept for a buffer until a real pod needed its part of a limit
    POOL_LIMIT = "PoolLimit"  # resource, limit, wanted
    POOL_REFUSES = "PoolRefuses"  # requirement of the pool
    NO_PRICE = "NoPrice"  # never launched without a price
    NOT_RUNNABLE = "NotRunnable"  # problem, source: the drivers or node images do not run on the instance type
    FRACTION_UNASKED = "FractionUnasked"  # share: a part of a card, which the pool does not allow
    NOT_IN_GROUPS = "NotInGroups"  # kind, template: no group of the node template starts it; block: of this block
    GROUPS_FULL = "GroupsFull"  # kind, template, instance_type, zone, most: its groups are full
    # capacity_type: sold only to holders of a reservation or block; sold_as, or the block that is full, or block and
    # when it begins, or ended, or drains and ends
    NEEDS_RESERVATION = "NeedsReservation"
    OVERFLOW_NEVER = "OverflowNever"  # pool, blocks: it may launch these alone; ended: when the last of them did
    ARCHITECTURE_UNASKED = "ArchitectureUnasked"  # an implicit pool does not offer it unless the pod names it
    SHORTAGE = "Shortage"  # the provider had none
    LAUNCH_FAILED = "LaunchFailed"  # error, message, until: the provider's answer
    QUARANTINED = "Quarantined"
    GANG_INCOMPLETE = "GangIncomplete"  # placed, wanted; missing: the object that says how many are wanted
    GANG_TOPOLOGY = "GangTopology"
    BUNDLE_SPLIT = "BundleSplit"  # pods sharing a claim do not fit one node together; first: this many get one
    TIED_SPLIT = "TiedSplit"  # the same for pods that required affinity ties to one node
    JOINS_NODE = "JoinsNode"  # nodes: with the pods that affinity selects, and no room
    BLOCK_ENDS_TOO_SOON = "BlockEndsTooSoon"  # block, needed seconds, left seconds
    BLOCK_DURATION_UNKNOWN = "BlockDurationUnknown"
    BLOCK_NOT_CONSUMER = "BlockNotConsumer"
    BLOCK_FULL = "BlockFull"
    BREAKS_OTHER_POD = "BreaksOtherPod"  # its devices would make another pending pod's selector fail
    SPENDING_GUARD = "SpendingGuard"
    REPLAY_STUCK = "ReplayStuck"
    CHEAPER_UNKNOWN = "CheaperUnknown"  # types, example, price, attributes: unknown values may have been enough
    PRICE_GUESSED = "PriceGuessed"  # types: the price of a launch is an estimate
    ADVICE = "Advice"  # problem: allowed, but probably not intended
    PLAN_BUDGET = "PlanBudget"  # the search used up its step budget
    # checks before launches
    UNUSABLE = "Invalid"  # field, problem: a defect of a pool or block that no schema can find
    MAY_NOT_ACT = "MayNotAct"  # problem: the controller lacks the rights of foreslice-act
    NO_PROVIDER = "NoProvider"  # kind, served: no provider launches from such node templates
    PROVIDER_REFUSES = "ProviderRefuses"  # provider, message: it refuses even read calls
    SLICE_NOT_LAUNCHED = "SliceNotLaunched"  # hosts, instance_type: a TPU slice, which is planned only
    OTHER_AUTOSCALER = "OtherAutoscaler"  # kind, pods: it would launch for the same pods
    FOREIGN_NODES = "ForeignNodes"  # count, example: nodes of the pool that Foreslice has not started
    NO_DRIVER = "NoDriver"  # profile: no DaemonSet runs it
    DRIVER_NEEDS_LABEL = "DriverNeedsLabel"  # driver, labels
    DRIVER_REFUSES_TAINT = "DriverRefusesTaint"  # driver, taint
    DRIVER_REFUSES_STARTUP_TAINT = "DriverRefusesStartupTaint"  # driver, taint
    NO_QUOTA = "NoQuota"  # driver, daemon_set, priority_class
    DEVICE_PLUGIN_RUNS = "DevicePluginRuns"  # driver
    DRIVER_SILENT = "DriverSilent"  # driver, daemon_set: it runs there but publishes nothing
    DEVICES_TWICE = "DevicesTwice"  # driver, resources
    GPUDIRECT_BROKEN = "GpuDirectBroken"  # instance_type, branch, instead, parameter
    # good outcomes
    FITS = "Fits"
    CHEAPEST = "Cheapest"
    PREFERRED = "Preferred"  # an earlier firstAvailable alternative
    PREPAID = "Prepaid"
    WHOLE_SLICE = "WholeSlice"  # hosts, topology: a TPU slice of several hosts is launched as a whole
    SAME_DOMAIN = "SameDomain"  # key: a label for which pod affinity requires one value
    ALREADY_BOUND = "AlreadyBound"
    EXISTING_NODE = "ExistingNode"
    COMING_NODE = "ComingNode"  # since: the provider holds the request and has not started it
    BLOCK_HELD = "BlockHeld"
    BLOCK_ENDING = "BlockEnding"
    NODE_EMPTY = "NodeEmpty"
    NODE_UNHEALTHY = "NodeUnhealthy"
    NODE_STOPPED = "NodeStopped"  # since: its machine was stopped
    NODE_FAILED = "NodeFailed"  # why: the edge of its life on which it failed
    NODE_DRIFTED = "NodeDrifted"  # what: the changed field of the pool
    NODE_DISPENSABLE = "NodeDispensable"  # saved: USD an hour; its pods fit on other nodes; to: those launched for them
    NODE_CLOSING = "NodeClosing"  # to: the node that its pods move to, if they do
    NODE_REPLACED = "NodeReplaced"  # saved, by, together: its pods, with those of others, move to machines of type `by`
    NODE_REPLACES = "NodeReplaces"  # replaced: ProvisionedNodes whose pods move to it
    PODS_STAY = "PodsStay"  # pod, and a fact: why it is not moved to save money
    POD_ENDING = "PodEnding"  # pod: it is being deleted, so its node is left alone
    NO_OTHER_PLACE = "NoOtherPlace"  # pod: it has no other place that costs less
    NOT_CHEAPER = "NotCheaper"  # saved, least: USD an hour; cost: USD; minutes: how long pods stay
    NODE_RECLAIMED = "NodeReclaimed"  # the provider takes the machine
    MACHINE_RECREATED = "MachineRecreated"  # machine: another one, which its group has made under its name; was
    DO_NOT_DISRUPT = "DoNotDisrupt"  # mark
    POOL_DELETED = "PoolDeleted"
    SLICE_BROKEN = "SliceBroken"  # hosts, left: other hosts of its slice are gone or ending, and it is of no use alone
    SLICE_IN_USE = "SliceInUse"  # hosts: it stays with the other hosts of its slice
    BASELINE = "Baseline"
    SHARES_CLAIM = "SharesClaim"


# The free amount of a resource is insufficient: `resource`, `wanted` and `free`.
SHORT_AMOUNTS: Final = frozenset({Code.INSUFFICIENT_RESOURCE, Code.INSUFFICIENT_WITH_CLAIMS})


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a reason: one object ("pod default/train"), and perhaps a part of it ("claim default/gpu, request
    gpu").

    Its text is printed, and stored in the cluster; `parse` reads what is stored.
    """

    kind: str = ""
    name: str = ""
    part: Subject | None = None
    """A request or constraint of a claim, or a claim of a pod."""
    others: int = 0
    """So many other objects have the same reason."""

    def __bool__(self) -> bool:
        return bool(self.kind)

    def __str__(self) -> str:
        text = f"{self.kind} {self.name}" if self.name else self.kind
        if self.part is not None:
            text = f"{text}, {self.part}"
        return f"{text} and {self.others} more" if self.others else text

    def renamed(self, names: Mapping[str, str]) -> Subject:
        """The same subject about other objects, by the old name; a part that has no such name keeps its own."""
        part = self.part and self.part.renamed(names)
        return Subject(self.kind, names.get(self.name, self.name), part, self.others)

    @staticmethod
    def claim(key: str, request: str = "") -> Subject:
        """A claim, or one of its requests."""
        return Subject("claim", key, Subject("request", request) if request else None)

    @staticmethod
    def parse(text: str) -> Subject:
        """The subject that has this text."""
        own, _, part = text.partition(", ")
        kind, _, name = own.partition(" ")
        return Subject(kind, name, Subject.parse(part) if part else None)


NO_SUBJECT: Final = Subject()


@dataclass(frozen=True, slots=True)
class Reason:
    """One finding about its subject."""

    code: Code
    subject: Subject = NO_SUBJECT
    detail: FrozenMap[str, Fact] = field(default_factory=FrozenMap)

    @staticmethod
    def of(code: Code, subject: Subject = NO_SUBJECT, **detail: Fact) -> Reason:
        """Shorthand: Reason.of(Code.TOO_FEW_DEVICES, Subject("claim", "default/gpu"), wanted=8, found=4)."""
        return Reason(code, subject, FrozenMap(detail))
