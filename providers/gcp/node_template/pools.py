"""GKE node pools: their groups, what their nodes are, and what keeps this provider from sizing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.node_template.tpu import slice_topology

# Without the first, GKE's device plugin runs; the kubelet plugin of the NVIDIA DRA driver selects nodes by the second.
_DRA_LABELS: Final = (labels.GKE_NO_DEVICE_PLUGIN, labels.NVIDIA_GPU_PRESENT)
_EFFECTS: Final = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


@dataclass(frozen=True, slots=True)
class Pool:
    """A GKE node pool: its groups, and what keeps this provider from sizing it. `policy` is the resource policy that
    places its machines, and `place` its cluster, as gcloud's options name it."""

    name: str
    groups: tuple[GroupRef, ...]
    autoscaling: bool = False
    auto_repair: bool = False
    queued: bool = False
    accelerator: str = ""
    driver: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    max_pods: int | None = None
    slice_topology: str = ""
    policy: str = ""
    place: str = ""


def pool_of(template: GroupTemplate, name: str, found: Mapping[str, Any]) -> Pool:
    """A node pool as GKE describes it."""
    config, placement = found.get("config") or {}, found.get("placementPolicy") or {}
    accelerators: Sequence[Mapping[str, Any]] = config.get("accelerators") or ({},)
    return Pool(
        name=name,
        groups=tuple(_ref(url) for url in found.get("instanceGroupUrls", ())),
        autoscaling=bool((found.get("autoscaling") or {}).get("enabled")),
        auto_repair=bool((found.get("management") or {}).get("autoRepair")),
        queued=bool((found.get("queuedProvisioning") or {}).get("enabled")),
        accelerator=str(accelerators[0].get("acceleratorType", "")),
        driver=str((accelerators[0].get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion", "")),
        labels=dict(config.get("labels") or {}),
        taints=tuple(_taint(found) for found in config.get("taints") or ()),
        slice_topology=slice_topology(str(config.get("machineType", "")), placement),
        max_pods=int((found.get("maxPodsConstraint") or {}).get("maxPodsPerNode") or 0) or None,
        policy=str(placement.get("policyName", "")),
        place=f"--cluster {template.cluster} --location {template.location}",
    )


@dataclass(frozen=True, slots=True)
class PoolFault:
    """What is wrong with a node pool, and the command that corrects it: a TemplateFault to be.

    `blocking`: nothing is launched in it. A TemplateFault has no such field; the launch asks here.
    """

    kind: str
    message: str
    next_step: str
    blocking: bool


def pool_faults(template: GroupTemplate, pool: Pool, *, hosts: int) -> Iterator[PoolFault]:
    """What keeps a node pool from being used, or from being used well. `hosts`: of its group."""
    of = f"{pool.name} {pool.place}"
    if pool.queued:
        yield PoolFault(
            "QueuedProvisioning",
            f"node pool {pool.name} has queued provisioning: only GKE's autoscaler can size it",
            "name a node pool that was made without --enable-queued-provisioning",
            blocking=True,
        )
    if pool.autoscaling:
        yield PoolFault(
            "Autoscaling",
            f"GKE's autoscaling is on for node pool {pool.name}: two autoscalers would undo each other's work",
            f"gcloud container node-pools update {of} --no-enable-autoscaling",
            blocking=True,
        )
    if pool.slice_topology and hosts == 1:
        yield PoolFault(
            "MultiHostSlice",
            f"node pool {pool.name} is one TPU slice of several hosts ({pool.slice_topology}), and its instance "
            f"template does not say so: its nodes would lack the label {labels.GKE_TPU_TOPOLOGY}",
            "name node pools that GKE made with --tpu-topology; GKE's autoscaler can size this one",
            blocking=True,
        )
    if pool.driver and pool.driver != "INSTALLATION_DISABLED":
        yield PoolFault(
            "DriverInstalled",
            f"GKE installs GPU drivers on node pool {pool.name} ({pool.driver}), and its device plugin takes the GPUs",
            f"gcloud container node-pools create NEW --cluster {template.cluster} --location {template.location} "
            "--num-nodes 0 --accelerator type=TYPE,count=COUNT,gpu-driver-version=disabled "
            "--node-labels gke-no-default-nvidia-gpu-device-plugin=true,nvidia.com/gpu.present=true",
            blocking=False,
        )
    missing = [label for label in _DRA_LABELS if pool.labels.get(label) != "true"]
    if pool.accelerator.startswith("nvidia") and missing:
        pairs = sorted({**pool.labels, **dict.fromkeys(missing, "true")}.items())
        wanted = ",".join(f"{key}={value}" for key, value in pairs)
        yield PoolFault(
            "LabelsMissing",
            f"node pool {pool.name} lacks the labels {' and '.join(missing)}: GKE's device plugin takes the GPUs, or "
            "the DRA driver does not come to its nodes",
            f"gcloud container node-pools update {of} --node-labels={wanted}",
            blocking=False,
        )
    if pool.auto_repair:
        yield PoolFault(
            "AutoRepair",
            f"auto-repair is on for node pool {pool.name}: GKE replaces machines that Foreslice knows",
            f"gcloud container node-pools update {of} --no-enable-autorepair",
            blocking=False,
        )


def _ref(url: str) -> GroupRef:
    parts = url.split("/")
    return GroupRef(parts[parts.index("zones") + 1], parts[-1])


def _taint(found: Mapping[str, Any]) -> Taint:
    """GKE writes the effect as its API's enums are written."""
    effect = str(found.get("effect", "NO_SCHEDULE"))
    return Taint(str(found.get("key", "")), str(found.get("value", "")), _EFFECTS.get(effect, effect))
