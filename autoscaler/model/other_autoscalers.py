"""Objects in the cluster that decide if a pool may act: other autoscalers, quotas; and GKE's classes of machines."""

from __future__ import annotations

from enum import Enum

from autoscaler.model.namespaced import Namespaced
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import dataclass, field


class AutoscalerKind(Enum):
    """Other autoscalers that are recognised. The values are their usual names."""

    KARPENTER = "Karpenter"
    CLUSTER_AUTOSCALER = "Cluster Autoscaler"


@dataclass(frozen=True, slots=True)
class Autoscaler(Namespaced):
    """Another autoscaler that runs. `claims`: it launches for pods with resource claims, too.

    `schedulers` are the schedulers whose pods it launches for; () means all. `buffers`: it serves CapacityBuffers with
    any provisioningStrategy.
    """

    kind: AutoscalerKind
    namespace: str
    name: str
    claims: bool
    schedulers: tuple[str, ...] = ()
    version: str = ""
    buffers: bool = False
    origin: Origin = field(default=CLUSTER, compare=False)


@dataclass(frozen=True, slots=True)
class Quota(Namespaced):
    """A ResourceQuota on pods of some priority classes. `pods` is the greatest number of pods; None is no limit."""

    namespace: str
    name: str
    priority_classes: tuple[str, ...] = ()
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class MachineRule:
    """One of the priorities of a ComputeClass: fields that are "" or 0 admit any machine. `node_pools`: it names node
    pools, whose machines only these know; `reserved`: only machines of reservations."""

    machine_type: str = ""
    machine_family: str = ""
    gpu: str = ""
    gpu_count: int = 0
    tpu: str = ""
    tpu_count: int = 0
    tpu_topology: str = ""
    min_cores: int = 0
    min_memory_gb: int = 0
    spot: bool = False
    flex_start: bool = False
    reserved: bool = False
    node_pools: bool = False


@dataclass(frozen=True, slots=True)
class ComputeClass:
    """A ComputeClass of GKE: the machines that pods with its name as label may get, in GKE's order."""

    name: str
    rules: tuple[MachineRule, ...] = ()
