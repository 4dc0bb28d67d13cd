"""Pods, with only the parts that decide where a pod may run."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum
from math import ceil
from typing import Final

from autoscaler.model.labels import LabelSelector
from autoscaler.model.namespaced import Namespaced
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Toleration

FINISHED: Final = ("Succeeded", "Failed")  # phases
_PRESENT: Final = frozenset({"In", "Exists", "Gt", "Lt"})  # operators that no node without the label meets


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host port of a container; host_ip "" and "0.0.0.0" mean all addresses. `added`: who adds it, and why it is one,
    where no file has it."""

    port: int
    protocol: str = "TCP"
    host_ip: str = ""
    added: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Container:
    """`requests` are effective (a limit alone counts); `sidecar` is an init container with restartPolicy Always.

    `limits` only decide if devices that take of the node's own amounts may be added (KEP-5517). `model_billions` are
    the parameters of a model that it serves or trains in `model_bits`, as far as is visible. Its name is not kept:
    similar text in arguments and variables may be a secret. `model_spread`: it may have only a part of it, and other
    pods of its group the rest. `model_latent`: it is one like DeepSeek-V3, published in blocks of FP8. `model_context`:
    the bytes of the KV cache for its longest request, which vLLM needs to start. `model_beside`: it asks a server in
    its pod for it. `quantized`: its text speaks of weights with fewer bits and not of how many.
    `serves_model`: a model server loads it, with no more of the GPU's memory than by default.
    `memory_share`: the share that an option gives its vLLM; 0 without one.
    `vllm_bfloat16`: an option sets bfloat16 for its vLLM, or none sets a type and the version may be too old to replace
    bfloat16. `quantization`: the method that an option sets for its vLLM, or that the name of its model says, if a
    version that may be meant needs a newer GPU for it. `never_pulls`: its image has to be on the node already.
    """

    name: str
    requests: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    sidecar: bool = False
    host_ports: tuple[HostPort, ...] = ()
    claims: tuple[str, ...] = ()  # names of entries of spec.resourceClaims
    image: str = ""
    model_billions: float | None = None
    model_bits: int = 16
    model_spread: bool = False
    model_beside: bool = False
    quantized: bool = False
    serves_model: bool = False
    vllm_bfloat16: bool = False
    quantization: str = ""
    model_latent: bool = False
    memory_share: float = 0
    model_context: int = 0
    never_pulls: bool = False
    restarts_all: bool = False  # a restart rule of it restarts all containers of the pod
    limits: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)


@dataclass(frozen=True, slots=True)
class PodClaim:
    """An entry of spec.resourceClaims, resolved.

    `claim` is the name of the ResourceClaim in the pod's namespace; "" means intentionally no claim (skipped). None
    means that the claim was not created yet: `template` is its template.
    """

    name: str
    claim: str | None
    template: str | None = None


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """preferredDuringScheduling…: it only affects scores."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """A pod (anti-)affinity term; namespaces are resolved names, `namespace_selector` adds further ones."""

    selector: LabelSelector | None
    topology_key: str
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class PreferredPodTerm:
    """A preferred pod (anti-)affinity term: it only affects scores."""

    weight: int
    term: PodAffinityTerm


class WhenUnsatisfiable(Enum):
    """The effect of a constraint: it filters nodes, or only scores them."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


@dataclass(frozen=True, slots=True)
class TopologySpread:
    """One topologySpreadConstraint with upstream's defaults applied; matchLabelKeys are merged into the selector."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: WhenUnsatisfiable
    selector: LabelSelector | None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


@dataclass(frozen=True, slots=True)
class Unread:
    """An object that adds to the spec of a pod and is not in the files, so that it may ask for devices: `what` names
    it, `step` gets it."""

    what: str
    step: str


@dataclass(frozen=True, slots=True)
class GangRef(Namespaced):
    """The gang of a pod: (namespace, name) of a PodGroup-like object in the snapshot's gangs."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Pod(Namespaced):
    """A pod. `node_name` is set once bound; `phase` as in status; `nominated_node` as in status.nominatedNodeName."""

    namespace: str
    name: str
    uid: str = ""
    labels: FrozenMap[str, str] = field(default_factory=FrozenMap)
    annotations: FrozenMap[str, str] = field(default_factory=FrozenMap)
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    pod_requests: FrozenMap[str, Quantity] | None = None  # pod-level resources (KEP-2837)
    pod_limits: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    # For a bound pod: the node's own amounts, such as cpu, that its claims take (KEP-5517).
    claim_amounts: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    claims: tuple[PodClaim, ...] = ()
    node_name: str | None = None
    nominated_node: str | None = None
    unscheduled: str = ""  # reason of condition PodScheduled=False; "" until the scheduler has tried
    unscheduled_why: str = ""  # its message
    node_selector: FrozenMap[str, str] = field(default_factory=FrozenMap)
    # Labels of node_selector that a ResourceFlavor of Kueue gives the pod, with its name.
    flavor_labels: FrozenMap[str, str] = field(default_factory=FrozenMap, compare=False)
    affinity: NodeSelector | None = None
    preferred_affinity: tuple[PreferredTerm, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_pod_affinity: tuple[PreferredPodTerm, ...] = ()
    preferred_pod_anti_affinity: tuple[PreferredPodTerm, ...] = ()
    topology_spread: tuple[TopologySpread, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[str, ...] = ()  # names of PersistentVolumeClaims in the pod's namespace
    image_volumes: tuple[str, ...] = ()  # references of images that are mounted
    host_paths: tuple[str, ...] = ()  # paths of the node that must exist for it to start; schedulers do not check them
    paths_read: tuple[str, ...] = field(default=(), compare=False)  # directories of the node whose files it needs
    rdma: str = field(default="", compare=False)  # the path of its node by which it uses RDMA cards
    memory_volume: Quantity | None = None  # the largest sizeLimit of its emptyDir volumes of medium Memory
    csi_drivers: tuple[str, ...] = ()  # of volumes in the pod spec; schedulers do not check them
    node_features: tuple[str, ...] = ()  # features that its node must declare (KEP-5328)
    host_network: bool = False
    scheduler_name: str = "default-scheduler"
    runtime_class: str = ""
    scheduling_gates: tuple[str, ...] = ()
    priority: int = 0
    gang: GangRef | None = None
    pod_group: str = ""  # spec.schedulingGroup.podGroupName: the group whose claims it may use
    phase: str = "Pending"
    deleting: bool = False
    owner: str = ""  # "Job/train", "DaemonSet/x"; from the controlling owner reference
    # The upper bound of the pod's run time, in seconds (activeDeadlineSeconds); None: unknown.
    active_deadline_seconds: int | None = None
    no_node_before: datetime | None = None  # until then it may use existing nodes, but none is launched for it
    checkpoint_interval: timedelta | None = None  # the most work that a restart loses; None: not declared
    expected_duration: timedelta | None = None  # the run time according to the pod or Kueue; None: not declared
    max_wait: timedelta | None = None  # longest wait for a block to begin, from its creation; None: that of the blocks
    awaits: frozenset[str] = frozenset()  # in a plan that looks ahead: blocks on which it may be before they begin
    termination_grace_seconds: int = 30
    unsupported: tuple[str, ...] = ()
    unread: Unread | None = None
    origin: Origin = field(default=CLUSTER, compare=False)
    # When the API server created it, seconds of the epoch; 0: never. Equal pods are one kind, whatever their age.
    created: float = field(default=0.0, compare=False)

    @property
    def turn(self) -> tuple[int, float]:
        """The sort key of kube-scheduler's queue: by priority, then by age.

        Source: pkg/scheduler/framework/plugins/queuesort (v1.36.3), which compares when pods were queued. Other
        programs cannot read this time; pods from files have no age, and keep their order.
        """
        return -self.priority, self.created

    @property
    def bound(self) -> bool:
        """True if it occupies a node (assigned and not finished)."""
        return self.node_name is not None and not self.finished

    @property
    def asks_for_devices(self) -> bool:
        """True if it claims devices or requests an extended resource."""
        containers = (*self.containers, *self.init_containers)
        return bool(self.claims) or any("/" in name for container in containers for name in container.requests)

    @property
    def selected_labels(self) -> frozenset[str]:
        """The keys of the node labels that it has requirements on."""
        terms = self.affinity.terms if self.affinity else ()
        return frozenset(self.node_selector) | {r.key for term in terms for r in term.match_expressions}

    def requires_label(self, key: str) -> bool:
        """True if only nodes with the label run it, whatever the value."""
        terms = self.affinity.terms if self.affinity else ()
        named = [any(r.key == key and r.operator in _PRESENT for r in term.match_expressions) for term in terms]
        return key in self.node_selector or (bool(named) and all(named))

    def required_values(self, keys: Collection[str]) -> list[tuple[str, ...]]:
        """For each of these keys that it requires of nodes, the values of which a node must have one."""
        terms = self.affinity.terms if self.affinity else ()
        required = [r for term in terms for r in term.match_expressions] if len(terms) == 1 else []
        values: list[tuple[str, ...]] = [(value,) for key, value in self.node_selector.items() if key in keys]
        return values + [tuple(r.values) for r in required if r.key in keys and r.operator == "In"]

    @property
    def expected_seconds(self) -> int | None:
        """The lesser of its declared run time and its deadline, in seconds; None: unknown."""
        said = None if self.expected_duration is None else ceil(self.expected_duration.total_seconds())
        return min((bound for bound in (said, self.active_deadline_seconds) if bound is not None), default=None)

    @property
    def finished(self) -> bool:
        """True if it has ended, with success or failure."""
        return self.phase in FINISHED
