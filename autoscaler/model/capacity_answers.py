"""The answers to ProvisioningRequests and CapacityBuffers: conditions as data. report/ makes their texts."""

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
    """Reasons of conditions: those of Cluster Autoscaler 1.36 and Karpenter 1.14 if they have one."""

    ACCEPTED = "Accepted"
    PROVISIONED = "CapacityIsProvisioned"
    FOUND = "CapacityIsFound"
    NOT_FOUND = "CapacityIsNotFound"
    UNCHECKED = "FailedToCheckCapacity"
    COMING = "CapacityIsComing"  # own: nodes are launched, or will be soon
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
class AnswerCondition:
    """One condition: its type, its status and its reason. `count` of `total` pods have a place, on `nodes`.

    `obstacle`: the cause does not end by itself, so the request fails if it lasts.
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
    """The current conditions of a request. `nodes` get its label before the conditions are written.

    `spares`: the number of extra pods that it needs room for, by PodTemplate; they are kept in its details.
    """

    request: ProvisioningRequest
    conditions: tuple[AnswerCondition, ...]
    nodes: tuple[str, ...] = ()
    spares: FrozenMap[str, int] = EMPTY_COUNTS


@dataclass(frozen=True, slots=True)
class BufferAnswer:
    """The status of a buffer: the template in use, the wanted number of its pods, and conditions.

    `usd_per_hour` is the buffer's share of the price of nodes that only buffers need; None if one of them has no price.
    """

    buffer: CapacityBuffer
    conditions: tuple[AnswerCondition, ...]
    template: str = ""
    generation: int = 0
    replicas: int = 0
    usd_per_hour: Decimal | None = Decimal(0)
