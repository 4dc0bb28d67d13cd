"""What ProvisioningRequests and CapacityBuffers are answered: conditions as data. Their text is made in report/."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from enum import StrEnum
from typing import Final

from autoscaler.model.plan import NearMiss
from autoscaler.model.reason import Reason
from autoscaler.model.requested_capacity import CapacityBuffer, ProvisioningRequest
from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap

EMPTY_COUNTS: Final[FrozenMap[str, int]] = FrozenMap()


class Why(StrEnum):
    """Reasons of conditions: those of Cluster Autoscaler 1.36 and Karpenter 1.14 where they have one."""

    ACCEPTED = "Accepted"
    PROVISIONED = "CapacityIsProvisioned"
    FOUND = "CapacityIsFound"
    NOT_FOUND = "CapacityIsNotFound"
    UNCHECKED = "FailedToCheckCapacity"
    COMING = "CapacityIsComing"  # own: nodes are launched, or about to be
    SCATTERED = "CapacityIsScattered"  # own: kube-scheduler may need more nodes than the pods fill
    NO_PODS = "FailedToCreatePods"
    EXPIRED = "Expired"
    BOOKING_EXPIRED = "CapacityReservationTimeExpired"
    CONSUMED = "CapacityBookingConsumed"
    RECLAIMED = "CapacityIsReclaimed"  # own: its nodes end, or are gone
    # of buffers
    RESOLVED = "Resolved"
    TEMPLATE_MISSING = "PodTemplateNotFound"
    SCALABLE_MISSING = "ScalableRefNotFound"
    UNRESOLVED = "ResolutionFailed"
    FITS = "FitsExistingCapacity"
    NEEDS_NODES = "RequiresNewCapacity"
    NOT_READY = "NotReadyForProvisioning"
    EMPTY = "BufferEmpty"


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """One condition: its type, whether it is True, and why. `count` of `total` pods have a place; `nodes` are meant.

    `obstacle`: what prevents it does not pass by itself, so the request fails if this lasts.
    """

    type: str
    why: Why
    reasons: tuple[Reason, ...] = ()
    miss: NearMiss | None = None
    count: int = 0
    total: int = 0
    nodes: tuple[str, ...] = ()
    usd_per_hour: Decimal | None = None
    obstacle: bool = False
    true: bool = dataclasses.field(kw_only=True)


@dataclass(frozen=True, slots=True)
class RequestAnswer:
    """The conditions of a request that hold now. `nodes` get its label before anything is said.

    `spares`: of how many pods more it needs room, by PodTemplate; they are kept in its details.
    """

    request: ProvisioningRequest
    said: tuple[Said, ...]
    nodes: tuple[str, ...] = ()
    spares: FrozenMap[str, int] = EMPTY_COUNTS


@dataclass(frozen=True, slots=True)
class BufferAnswer:
    """What a buffer's status is: the template that counts, how many of its pods are wanted, and conditions.

    `usd_per_hour` is the price of the nodes that nothing but buffers needs, this one's share of them; None when one of
    them has no price.
    """

    buffer: CapacityBuffer
    said: tuple[Said, ...]
    template: str = ""
    generation: int = 0
    replicas: int = 0
    usd_per_hour: Decimal | None = Decimal(0)
