"""One change of one object, as data for a sentence and as an edit of a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import reduce
from typing import TypeAlias, TypeVar

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Fact
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.planning.policy import Where
from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog

Edit: TypeAlias = Callable[[Snapshot], Snapshot]
EditWhere: TypeAlias = Callable[[Where], Where]
EditCatalog: TypeAlias = Callable[[Catalog], Catalog]


class ChangeKind(Enum):
    """The kind of a change, ordered by size: the kind with the least work for people first."""

    TOLERATE = "Tolerate"  # taint: a pod's toleration
    TOLERATE_CLOUD = (
        "TolerateCloud"  # taint, resource: of a cloud's nodes with such devices; select: of an architecture
    )
    TOLERATE_DEVICE = "TolerateDevice"  # taint: a claim's toleration
    ALLOW_CAPACITY_TYPE = "AllowCapacityType"  # capacity_type
    ALLOW_OVERFLOW = "AllowOverflow"  # blocks: to which alone the pool keeps
    ALLOW_PARTS = "AllowParts"  # share: instance types with a part of a card
    ADD_VOLUME_CLAIMS = "AddVolumeClaims"  # claims: PersistentVolumeClaims that do not exist; tried: with which volume
    ADD_STORAGE_CLASSES = "AddStorageClasses"  # classes: that are not in sight; shared: by pods of several nodes; tried
    WAIT_FOR_POD = "WaitForPod"  # classes: StorageClasses whose volumes are made before the pod is scheduled
    GIVE_PODS = "GivePods"  # wanted: pods that are not in the files, near which (keys) the pod has to be; tried without
    DROP_ANNOTATION = "DropAnnotation"  # annotation: by which the pod waits for somebody else's capacity
    RAISE_LIMIT = "RaiseLimit"  # limited, limit, instead
    ADD_SCHEDULER = "AddScheduler"  # scheduler
    DESCRIBE_DRIVER = "DescribeDriver"  # device_classes, claims: whose devices nobody predicts, tried as if they fit
    WIDEN_SCOPE = "WidenScope"  # scope: also of pods without a claim
    RUN_PLUGIN = "RunPlugin"  # resource: what no DaemonSet in sight hands out
    DROP_CLAIM = "DropClaim"  # claim: for devices that no node has beside those of another
    REWRITE_SELECTOR = "RewriteSelector"  # condition, instead; value, was: what differs
    RENAME_CAPACITY = "RenameCapacity"  # was, value: the name under capacity.requests
    REWRITE_TYPE = "RewriteType"  # key, value, was: the name of a type; memory: of the GPU, where it differs
    RENAME_LABELS = "RenameLabels"  # labels, was: keys of labels that only a cloud's own autoscaler gives
    # key, was, label, accelerators: a label of somebody else's nodes; flavor, given: of whose labels it is one;
    # profile: with which nodes of a pool would have it
    REWRITE_LABEL = "RewriteLabel"
    NAME_ZONE = "NameZone"  # key, zones: their ids; regions: of these, () if unknown; command: that lists the names
    DROP_RESOURCES = "DropResources"  # resources: what only nodes of other clouds or systems have
    CORRECT_CONFIG = "CorrectConfig"  # was, value: the version of the configuration that a driver reads
    DROP_CONFIG = "DropConfig"
    CLAIM_PARTS = "ClaimParts"  # resources: of MIG parts; devices: "COUNT with CONDITION"; device_class
    WHOLE_GPUS = "WholeGpus"  # resources: parts of GPUs; instead: the request for whole ones
    SELECT_HOLDING = "SelectHolding"  # label: of GPUs that hold a model; weights; gpus, have: that do not
    REQUIRE_MEMORY = "RequireMemory"  # label, accelerators, memory: GPUs with as much
    NEAREST_MODEL = "NearestModel"  # as RewriteLabel, with accelerators that the label does not name
    ENLARGE_DISK = "EnlargeDisk"  # instance_type, disk, setting, allocatable: the correction of the catalog
    # requests: of each resource what is asked for, and what instead; small: by little; instance_type, estimated: of
    # which resource nobody has measured how much the machine has for pods
    LOWER_REQUEST = "LowerRequest"
    LOWER_COUNT = "LowerCount"  # wanted, instead
    SET_DRIVERS = "SetDrivers"  # drivers
    ADD_REQUIREMENT = "AddRequirement"  # key, value: of the nodes of a pool
    ADD_LABELS = "AddLabels"  # labels: to the nodes of a pool
    LIST_GROUP = "ListGroup"  # labels: that a cloud gives the nodes of a group by its name; group, field: of a template
    SET_PRICE = "SetPrice"  # instance_type: of what fits and nobody knows the price of
    ADD_BLOCK = "AddBlock"  # instance_type: of what fits and is sold only as bought capacity; domains: how often
    DROP_NODE_SELECTOR = "DropNodeSelector"  # key, value; nodes, ports: as below
    # key, values: that it would have taken; of the name of a node, nodes: names of all pods, ports: their host ports
    DROP_NODE_AFFINITY = "DropNodeAffinity"
    DROP_REQUIREMENT = "DropRequirement"  # key, operator, values
    ASK_ELSEWHERE = "AskElsewhere"  # option, values: without an option of the command line
    DROP_CONDITION = "DropCondition"  # condition
    DROP_CONSTRAINT = "DropConstraint"  # attribute


_SIZE = {kind: position for position, kind in enumerate(ChangeKind)}


Given = TypeVar("Given")


def unchanged(given: Given) -> Given:
    return given


@dataclass(frozen=True, slots=True)
class Change:
    """`subject` names the object as reasons do ("pool gpu"). Equal changes are those that read alike."""

    kind: ChangeKind
    subject: str
    edit: Edit = field(compare=False, repr=False)
    detail: FrozenMap[str, Fact] = field(default_factory=FrozenMap)
    where: EditWhere = field(default=unchanged, compare=False, repr=False)  # of what the command line allows
    catalog: EditCatalog = field(default=unchanged, compare=False, repr=False)  # of what is known of instance types
    parts: tuple[Change, ...] = ()  # the changes that are made together; () for a single one

    @staticmethod
    def of(kind: ChangeKind, subject: str, edit: Edit, **detail: Fact) -> Change:
        return Change(kind, subject, edit, FrozenMap(detail))

    @staticmethod
    def together(*changes: Change) -> Change:
        """Changes made together; the largest one gives the kind. One alone stays as it is."""
        parts = tuple(part for change in changes for part in change.steps)
        if len(parts) == 1:
            return parts[0]
        largest = max(parts, key=lambda change: change.size)
        return Change(
            largest.kind,
            "",
            lambda snapshot: reduce(lambda found, part: part.edit(found), parts, snapshot),
            where=lambda where: reduce(lambda found, part: part.where(found), parts, where),
            catalog=lambda catalog: reduce(lambda found, part: part.catalog(found), parts, catalog),
            parts=parts,
        )

    @property
    def steps(self) -> tuple[Change, ...]:
        """The single changes: its parts, or itself."""
        return self.parts or (self,)

    @property
    def size(self) -> int:
        """Its place among the kinds."""
        return _SIZE[self.kind]

    @property
    def concerns_others(self) -> bool:
        """True if it may cost other pods the places that they have: other drivers publish other devices."""
        return any(part.kind is ChangeKind.SET_DRIVERS for part in self.steps)

    def takes_back(self, first: Change) -> bool:
        """True if it drops a requirement that the first one gives the pool: what a label says about the machine."""
        added = {part.detail["key"] for part in first.steps if part.kind is ChangeKind.ADD_REQUIREMENT}
        return self.kind is ChangeKind.DROP_REQUIREMENT and self.detail["key"] in added

    def buys_otherwise(self, other: Change) -> bool:
        """True if both say which capacity types are bought, and not the same."""
        return len({part.detail.get("allow") for part in (*self.steps, *other.steps)} - {None}) > 1


def on_pods(keys: frozenset[str], edit: Callable[[Pod], Pod]) -> Edit:

    def apply(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, pods=tuple(edit(pod) if pod.key in keys else pod for pod in snapshot.pods))

    return apply


def on_claims(keys: frozenset[str], edit: Callable[[ResourceClaim], ResourceClaim]) -> Edit:

    def apply(snapshot: Snapshot) -> Snapshot:
        changed = {key: edit(claim) if key in keys else claim for key, claim in snapshot.claims.items()}
        return replace(snapshot, claims=FrozenMap(changed))

    return apply


def on_pool(name: str, edit: Callable[[CapacityPool], CapacityPool]) -> Edit:
    """The edit on one pool; a snapshot without pools gets the CapacityPool that the change has somebody create."""

    def apply(snapshot: Snapshot) -> Snapshot:
        pools = (as_created(pool) for pool in snapshot.pools or (IMPLICIT,))
        return replace(snapshot, pools=tuple(edit(pool) if pool.name == name else pool for pool in pools))

    return apply


def as_created(pool: CapacityPool) -> CapacityPool:
    """The implicit pool as one that exists: it assumes one set of drivers and offers no other variant of them."""
    return replace(pool, implicit=False)


def as_assumed(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which the pool that a change has somebody create offers every variant of drivers again."""
    pools = (replace(pool, implicit=True) if pool.name == IMPLICIT.name else pool for pool in snapshot.pools)
    return replace(snapshot, pools=tuple(pools))


def pool_subject(pool: CapacityPool) -> str:
    """The name of a pool in changes; "" for the one that a plan without CapacityPools assumes."""
    if pool.of_karpenter:
        return f"NodePool {pool.name}"
    return "" if pool.name == IMPLICIT.name else f"pool {pool.name}"
