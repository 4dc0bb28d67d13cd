"""ProvisionedNode and LaunchBatch: what was asked of a provider, and how far it got. Edges live in lifecycle/."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from autoscaler.model.reason import Reason
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint


class Phase(Enum):
    """Where a ProvisionedNode is in its life."""

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
    """An offering by name. `reservation` is the provider's id for reserved capacity; `block` our CapacityBlock."""

    instance_type: str
    zone: str
    capacity_type: str
    usd_per_hour: str | None = None  # decimal text, as planned
    reservation: str = ""
    block: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was predicted when the node was bought, as digests."""

    instance_type: str
    drivers: tuple[str, ...]
    catalog_digest: str
    slices_digest: str


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
    place: str = ""  # account/region that the provider called for its machine; "" or a part of it: unknown
    token: str = ""
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    pods: tuple[str, ...] = ()  # keys of the pods it was bought for
    boot_timeout: timedelta | None = None  # from launch to Node, as it was at the launch; None: of an earlier version
    reasons: tuple[Reason, ...] = ()
    empty_since: datetime | None = None
    unhealthy_since: datetime | None = None  # its Node was ready once and is not now
    reclaim_at: datetime | None = None  # when the provider takes this one machine, if it has said so
    noticed_at: datetime | None = None  # an end that the provider announced once and does not repeat
    stopped_since: datetime | None = None  # somebody stopped its machine, which may be started again
    history: tuple[tuple[Phase, datetime, str], ...] = ()
    uid: str = ""
    resource_version: str = ""
    deleting: bool = False  # somebody deleted the object; its finalizer holds it until the machine is gone
    created: float = field(default=0.0, compare=False)  # when the API server made it, seconds of the epoch; 0: never

    @property
    def offering(self) -> OfferingRef:
        """What was obtained, or the one that is asked for first."""
        return self.obtained or self.offerings[0]


@dataclass(frozen=True, slots=True)
class LaunchBatch:
    """Nodes launched together. Written before any provider call, with everything the calls and the nodes derive from.

    The parameters (`labels`, `taints`, `kubelet_reserved`, `template`) are copied from the pool, so that a repetition
    after a restart is identical even when the pool changed meanwhile. `token` is hash(batch, attempt, zone). `pods`,
    `instances` and `obtained` are in the order of `nodes`; the latter two are () until an answer was persisted.
    """

    name: str
    pool: str
    nodes: tuple[str, ...]
    offerings: tuple[OfferingRef, ...]
    attempt: int = 0  # index of the offering that is asked for
    token: str = ""
    parameter_hash: str = ""
    instances: tuple[str, ...] = ()  # provider ids, "" where no offering could be had yet
    outcome: str = "Intended"  # Intended, Calling, Launched, Failed
    uid: str = ""
    resource_version: str = ""
    minimum: int = 1  # so many nodes come together or none
    provider: str = ""
    pods: tuple[tuple[str, ...], ...] = ()  # keys of the pods each node is bought for
    prediction: Prediction | None = None
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    taints: tuple[Taint, ...] = ()
    kubelet_reserved: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    template: tuple[str, str] = ("", "")  # (kind, name)
    obtained: tuple[int, ...] = ()  # index into `offerings`, -1 where no instance was obtained
    deleting: bool = False  # somebody deleted the object; its finalizer holds it until it is finished
    guarded: bool = False  # that finalizer is there
    place: str = ""  # account/region that the provider calls for its attempt
    boot_timeout: timedelta | None = None
