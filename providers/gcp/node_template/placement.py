"""The workload policy of a group: it decides whether the machines are in one NVLink domain, in one block, or anywhere.

A4X machines need a policy of the type HIGH_THROUGHPUT with the accelerator topology 1x72. Then all machines of the
group are in one sub-block, which is one NVLink domain of at most 18 machines with four GPUs each. Several groups may
have the same policy: each is a domain of its own. A policy never changes. Other types need no policy. A policy with a
maximum distance keeps the machines of a group in one block or sub-block: Google starts no machine that is further away.
HIGH_THROUGHPUT without a distance is best effort and guarantees nothing. TPU slices are read from labels (tpu.py).

Source: Compute Engine and AI Hypercomputer documentation, workload policies and managed instance groups of A4X; API
reference v1 (ResourcePolicy.workloadPolicy); client google-cloud-compute 1.56.0 (MaxTopologyDistance: "must").
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes import labels
from providers.errors import GoneError, PermissionDeniedError, ProviderError
from providers.gcp.node_template.pools import Pool, create
from providers.gcp.node_template.refusal import Refusal
from providers.gcp.node_template.template import GroupRef
from providers.gcp.session import Gcp

TOPOLOGY: Final = "1x72"
MOST: Final = 18
_FAMILY: Final = "a4x-"
_TYPE: Final = "HIGH_THROUGHPUT"
_CONNECTED: Final = frozenset({"", "AUTO_CONNECT"})
# For each distance, the topology labels of GKE's nodes that are equal within it. Source: GKE documentation, topology
# labels of A3 and later machines, read in November 2026.
_LABELS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "BLOCK": frozenset({labels.GCE_TOPOLOGY_BLOCK}),
        "SUBBLOCK": frozenset({labels.GCE_TOPOLOGY_BLOCK, labels.GCE_TOPOLOGY_SUBBLOCK}),
    }
)
_NEW: Final = "foreslice-1x72"


@dataclass(frozen=True, slots=True)
class Placement:
    """The known placement of a group's machines.

    `domain`: all are in one NVLink domain, and this is its maximum; 0 if the type needs no policy, or the group is
    refused. `distance`: the maxTopologyDistance of the policy; the machines are in the same SUBBLOCK, BLOCK or CLUSTER.
    A `refusal` without a step gets the step of `remedy`.
    """

    domain: int = 0
    distance: str = ""
    refusal: Refusal | None = None


def shared_labels(distance: str, domain: int) -> frozenset[str]:
    """The labels with one value, known or not, on all nodes of a group. An NVLink domain is one sub-block."""
    return _LABELS.get("SUBBLOCK" if domain else distance, frozenset())


def needs_policy(machine_type: str) -> bool:
    """True if machines of this type form NVLink domains, which needs a workload policy."""
    return machine_type.startswith(_FAMILY)


def policy_of(manager: Any, pool: Pool | None) -> str:
    """The name of a group's policy, in the region of the group; "" if it has none.

    GKE documents that a node pool is created with a policy, but not whether the group of the pool names it as well.
    """
    url = str(manager.resource_policies.workload_policy)
    return (url or (pool.policy if pool is not None else "")).rpartition("/")[2]


def read_distance(gcp: Gcp, name: str, ref: GroupRef) -> Placement:
    """The placement by a policy of machines that need none. If the policy cannot be read, the placement is unknown."""
    about, region = f"workload policy {name}", _region(ref)
    try:
        found = gcp.call("resourcePolicies.get", about=about, region=region, resource_policy=name)
    except ProviderError:
        return Placement()
    policy = found.workload_policy
    return Placement(distance=policy.max_topology_distance if policy.type_ == _TYPE else "")


def read_placement(gcp: Gcp, name: str, ref: GroupRef) -> Placement:
    """The placement by the policy of machines that need one. A policy that is missing or cannot be read is a
    refusal."""
    about, region = f"workload policy {name}", _region(ref)
    try:
        found = gcp.call("resourcePolicies.get", about=about, region=region, resource_policy=name)
    except GoneError:
        return Placement(refusal=Refusal(f"its workload policy {name} does not exist", "NoWorkloadPolicy"))
    except PermissionDeniedError as error:
        step = "update the controller's role from deploy/gcp/controller-role.yaml"
        why = f"its workload policy {name} cannot be read ({error.code}), so its NVLink domain is not known"
        return Placement(refusal=Refusal(why, "Permission", step))
    policy = found.workload_policy
    said = (
        f"the type {policy.type_ or 'none'}",
        f"the accelerator topology {policy.accelerator_topology or 'none'}",
        *((f"the mode {policy.accelerator_topology_mode}",) if policy.accelerator_topology_mode else ()),
    )
    right = policy.type_ == _TYPE and policy.accelerator_topology == TOPOLOGY
    if right and policy.accelerator_topology_mode in _CONNECTED:
        return Placement(domain=MOST)
    why = f"its workload policy {name} has {', '.join(said)}, and A4X needs {_TYPE} and {TOPOLOGY}"
    return Placement(refusal=Refusal(why, "WorkloadPolicy"))


def missing(machine_type: str) -> Placement:
    """The refusal of a group that needs a policy and has none."""
    why = f"it has no workload policy: the NVLink domain of its {machine_type} machines would not be known"
    return Placement(refusal=Refusal(why, "NoWorkloadPolicy"))


def remedy(ref: GroupRef, pool: Pool | None, *, project: str, size: int) -> str:
    """The commands that give a group its policy. The policy of a node pool is chosen when the pool is created."""
    region = _region(ref)
    make = (
        f"gcloud compute resource-policies create workload-policy {_NEW} --type high-throughput "
        f"--accelerator-topology {TOPOLOGY} --region {region} --project {project}"
    )
    if pool is not None:
        return f"{make}; {create(replace(pool, groups=(ref,), policy=_NEW))}"
    url = f"projects/{project}/regions/{region}/resourcePolicies/{_NEW}"
    group = f"{ref.name} --zone {ref.zone} --project {project}"
    change = f"gcloud compute instance-groups managed update {group} --workload-policy {url}"
    return f"{make}; {change}" + (f"; only once the group has no machines (now {size})" if size else "")


def _region(ref: GroupRef) -> str:
    return ref.zone.rpartition("-")[0]
