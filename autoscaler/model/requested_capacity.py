"""Capacity that is requested without pods: ProvisioningRequests and CapacityBuffers, and the objects they refer to.

Facts: cluster-autoscaler/apis, provisioningrequest autoscaling.x-k8s.io/v1 and capacitybuffer v1beta1 (2026-08).
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

from autoscaler.model.namespaced import Namespaced
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.pod import Pod
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity


class RequestClass(StrEnum):
    """The classes of ProvisioningRequests that Foreslice serves; other autoscalers serve the rest."""

    ATOMIC = "atomic.foreslice.dev"
    CHECK = "check.foreslice.dev"


# A class of GKE's autoscaler, which pays for the machines as flex-start: docs.cloud.google.com/kubernetes-engine/docs,
# how-to/provisioningrequest and concepts/dws (2026-11).
QUEUED_CLASS: Final = "queued-provisioning.gke.io"


class RequestCondition(StrEnum):
    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    FAILED = "Failed"
    BOOKING_EXPIRED = "BookingExpired"
    CAPACITY_REVOKED = "CapacityRevoked"


CONSUMES_REQUEST: Final = (labels.CONSUME_PROVISIONING_REQUEST, labels.CA_CONSUME_PROVISIONING_REQUEST)
_CLASS_OF_REQUEST: Final = (labels.PROVISIONING_CLASS_NAME, labels.CA_PROVISIONING_CLASS_NAME)
ENDS_REQUEST: Final = (RequestCondition.FAILED, RequestCondition.BOOKING_EXPIRED, RequestCondition.CAPACITY_REVOKED)


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of status.conditions. `since` is its lastTransitionTime."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class PodTemplate(Namespaced):
    """A PodTemplate. `pod` is the pod that is created from it, with the name of the template."""

    namespace: str
    name: str
    pod: Pod
    generation: int = 0
    origin: Origin = field(default=CLUSTER, compare=False)


@dataclass(frozen=True, slots=True)
class PodSet:
    """`count` pods of the PodTemplate `template` in the namespace of the request."""

    template: str
    count: int


@dataclass(frozen=True, slots=True)
class ProvisioningRequest(Namespaced):
    """A ProvisioningRequest of any class. `conditions` in the order of its status; `created` in seconds of the epoch, 0
    if no API server has stored it. `too_many` are the pods of a request for more than Foreslice accepts at once; it has
    no pod sets then."""

    namespace: str
    name: str
    class_name: str
    pod_sets: tuple[PodSet, ...]
    parameters: FrozenMap[str, str] = EMPTY
    uid: str = ""
    conditions: tuple[Condition, ...] = ()
    details: FrozenMap[str, str] = EMPTY
    created: float = 0.0
    generation: int = 0
    resource_version: str = ""
    deleting: bool = False
    too_many: int = 0
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def served(self) -> RequestClass | None:
        """The class if Foreslice serves it; None for others."""
        return RequestClass(self.class_name) if self.class_name in tuple(RequestClass) else None

    @property
    def pods(self) -> int:
        return sum(pod_set.count for pod_set in self.pod_sets)

    @property
    def spares(self) -> FrozenMap[str, int]:
        """The extra pods that it gets room for, by PodTemplate: kube-scheduler may scatter its pods."""
        entries = (entry.partition("=") for entry in self.details.get(labels.SPARE_PODS, "").split(","))
        return FrozenMap({name: int(number) for name, _, number in entries if number.isdigit() and len(number) < 6})

    @property
    def wanted(self) -> int:
        """The number of pods that need room, extra ones included."""
        return self.pods + sum(self.spares.values())

    @property
    def node_label(self) -> str:
        """The value of the label foreslice.dev/provisioning-request on its nodes: unique, and a valid label."""
        return self.uid or self.name[:63].rstrip("-.")

    def condition(self, kind: RequestCondition) -> Condition | None:
        return next((found for found in self.conditions if found.type == kind.value), None)

    def has(self, kind: RequestCondition) -> bool:
        """True if the condition is True."""
        found = self.condition(kind)
        return found is not None and found.status == "True"

    @property
    def last(self) -> Condition | None:
        """The last condition, in the order of a request's life, that is True."""
        return next((self.condition(kind) for kind in reversed(RequestCondition) if self.has(kind)), None)

    @property
    def over(self) -> bool:
        """True if nothing is provisioned or kept for it any more."""
        return self.deleting or any(self.has(kind) for kind in ENDS_REQUEST)

    @property
    def wants_nodes(self) -> bool:
        """True if it needs nodes, existing or new ones."""
        return self.served is RequestClass.ATOMIC and not self.over and not self.has(RequestCondition.PROVISIONED)

    @property
    def created_at(self) -> datetime | None:
        """The time at which the API server created it."""
        return datetime.fromtimestamp(self.created, UTC) if self.created else None

    def consumed_by(self, pod: Pod) -> bool:
        """True if an annotation of the pod refers to this request."""
        return pod.namespace == self.namespace and consumed_request(pod) == self.name


def consumed_request(pod: Pod) -> str:
    """The name of the ProvisioningRequest whose capacity the pod uses; "" if none."""
    return next((pod.annotations[key] for key in CONSUMES_REQUEST if key in pod.annotations), "")


def consuming_key(pod: Pod) -> str:
    """The annotation of the pod with that name; "" if it has none."""
    return next((key for key in CONSUMES_REQUEST if key in pod.annotations), "")


def named_class(pod: Pod) -> str:
    """The class of that ProvisioningRequest in the pod's annotations; "" if there is none."""
    return next((pod.annotations[key] for key in _CLASS_OF_REQUEST if key in pod.annotations), "")


class ScalableRef(NamedTuple):
    """A workload in the buffer's namespace."""

    group: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Scalable:
    """A workload that a CapacityBuffer may refer to, with its requested `replicas` and the pod that it creates."""

    group: str
    kind: str
    namespace: str
    name: str
    replicas: int
    pod: Pod

    @property
    def reference(self) -> ScalableRef:
        """The reference to it in a CapacityBuffer of its namespace."""
        return ScalableRef(self.group, self.kind, self.name)


@dataclass(frozen=True, slots=True)
class CapacityBuffer(Namespaced):
    """A CapacityBuffer. `scalable` is in the same namespace; either it or `template` is set.

    `limits` limit the sum of its pods' requests. `strategy` "" means the default of the API. `odd` is the unsupported
    part of its spec, with the next step.
    """

    namespace: str
    name: str
    strategy: str = ""
    template: str = ""
    scalable: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: FrozenMap[str, Quantity] | None = None
    uid: str = ""
    conditions: tuple[Condition, ...] = ()
    status: FrozenMap[str, str] = EMPTY  # the other fields of its status, as text
    created: float = 0.0
    generation: int = 0
    resource_version: str = ""
    deleting: bool = False
    odd: tuple[str, ...] = ()
    origin: Origin = field(default=CLUSTER, compare=False)

    @property
    def served(self) -> bool:
        """True if Foreslice serves its strategy."""
        return self.strategy == labels.ACTIVE_CAPACITY and not self.deleting
