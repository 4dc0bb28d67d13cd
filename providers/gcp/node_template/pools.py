"""GKE node pools: their groups, the properties of their nodes, and the faults that prevent launches in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from providers.errors import TemplateError
from providers.gcp.node_template.same_shape import kept, sold_as
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.node_template.tpu import chips_of, slice_topology

# Without the first, GKE's device plugin runs. The kubelet plugin of the NVIDIA DRA driver selects nodes by the second.
# The third tells GKE and pods that the GPUs are allocated by claims. Plans assume all of them.
_OF_GPUS: Final = (labels.GKE_NO_DEVICE_PLUGIN, labels.NVIDIA_GPU_PRESENT, labels.GKE_NVIDIA_GPU_DRA_DRIVER)
# Without it GKE's device plugin manages the TPUs (kubernetes-sigs/dra-driver-google-tpu, demo/clusters/gke,
# 2026-11-27).
_OF_TPUS: Final = (labels.GKE_TPU_DRA_DRIVER,)
_NO_DRIVER: Final = "INSTALLATION_DISABLED"
# With these values GKE installs its default driver, since 1.30.1-gke.1156000; claims need 1.34 (gcloud container
# node-pools create, option --accelerator; Terraform's google_container_node_pool; read 2026-11-27).
_UNSAID: Final = frozenset({"", "GPU_DRIVER_VERSION_UNSPECIFIED"})
# Pods on a node that the catalog assumes (instance_catalog/data/nodes.yaml): GKE's default on Standard clusters.
PODS: Final = 110
# GKE adds these taints to pools with GPUs and with TPUs.
_TAINTS_OF_GKE: Final = frozenset({"nvidia.com/gpu", "google.com/tpu"})
_EFFECTS: Final = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


@dataclass(frozen=True, slots=True)
class Pool:
    """A GKE node pool, with its groups and everything that may prevent launches in it.

    `policy` is the resource policy that places its machines, `place` its cluster, `sold_as` its capacity (--spot,
    --flex-start), `kept` all other properties as options of gcloud. `accelerators` are those of one machine.
    """

    name: str
    groups: tuple[GroupRef, ...]
    autoscaling: bool = False
    auto_repair: bool = False
    queued: bool = False
    ending: bool = False
    machine_type: str = ""
    sold_as: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    reservation: str = ""
    accelerator: str = ""
    accelerators: int = 0
    driver: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    max_pods: int | None = None
    slice_topology: str = ""
    policy: str = ""
    place: str = ""

    @property
    def has_gpus(self) -> bool:
        """True if its machines have GPUs of NVIDIA."""
        return self.accelerator.startswith("nvidia")

    @property
    def for_claims(self) -> tuple[str, ...]:
        """The labels that claims of its devices need, each with the value true."""
        return _OF_GPUS if self.has_gpus else _OF_TPUS if chips_of(self.machine_type) else ()


def pool_of(template: GroupTemplate, name: str, found: Mapping[str, Any], *, project: str) -> Pool:
    """A node pool as GKE describes it. Raises TemplateError if its groups belong to another project."""
    config, placement = found.get("config") or {}, found.get("placementPolicy") or {}
    accelerators: Sequence[Mapping[str, Any]] = config.get("accelerators") or ({},)
    return Pool(
        name=name,
        groups=tuple(_ref(url, name, project) for url in _staying(found)),
        autoscaling=bool((found.get("autoscaling") or {}).get("enabled")),
        auto_repair=bool((found.get("management") or {}).get("autoRepair")),
        queued=bool((found.get("queuedProvisioning") or {}).get("enabled")),
        ending=found.get("status") == "STOPPING",
        machine_type=str(config.get("machineType", "")),
        sold_as=tuple(sold_as(config)),
        kept=kept(found),
        reservation=next(iter((config.get("reservationAffinity") or {}).get("values") or ()), ""),
        accelerator=str(accelerators[0].get("acceleratorType", "")),
        accelerators=int(accelerators[0].get("acceleratorCount") or 0),
        driver=str((accelerators[0].get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion", "")),
        labels=dict(config.get("labels") or {}),
        taints=tuple(_taint(found) for found in config.get("taints") or ()),
        slice_topology=slice_topology(str(config.get("machineType", "")), placement),
        max_pods=int((found.get("maxPodsConstraint") or {}).get("maxPodsPerNode") or 0) or None,
        policy=str(placement.get("policyName", "")),
        place=f"--cluster {template.cluster} --location {template.location} --project {project}",
    )


@dataclass(frozen=True, slots=True)
class PoolFault:
    """A defect of a node pool and the command that corrects it. It becomes a TemplateFault.

    `blocking`: nothing is launched in it. TemplateFault has no such field, so launches check it here.
    """

    kind: str
    message: str
    next_step: str
    blocking: bool


def pool_faults(pool: Pool, *, hosts: int, wanted: Pool | None = None) -> Iterator[PoolFault]:
    """The faults that prevent or impair the use of a node pool. `hosts`: of its group. `wanted`: the pool with the
    labels and taints that it should have; each command sets all of them."""
    yield from _not_ours_to_size(pool, hosts)
    yield from _not_made_for_claims(pool, wanted or with_dra_labels(pool))


def _not_ours_to_size(pool: Pool, hosts: int) -> Iterator[PoolFault]:
    if pool.ending:
        yield PoolFault(
            "PoolEnds",
            f"GKE is deleting node pool {pool.name}, with all machines in it",
            f"take it out of spec.nodePools, or make another one: {create(pool)}",
            blocking=True,
        )
    if pool.queued:
        yield PoolFault(
            "QueuedProvisioning",
            f"node pool {pool.name} has queued provisioning: only GKE's autoscaler can size it",
            "name a node pool that was made without --enable-queued-provisioning. Pods that are to run in this one "
            "need a ProvisioningRequest of class queued-provisioning.gke.io: `foreslice gcp provisioning-request -f "
            "FILES` prints it (docs/gcp.md, Queued provisioning)",
            blocking=True,
        )
    if pool.autoscaling:
        yield PoolFault(
            "Autoscaling",
            f"GKE's autoscaling is on for node pool {pool.name}: two autoscalers would undo each other's work",
            f"gcloud container node-pools update {pool.name} {pool.place} --no-enable-autoscaling",
            blocking=True,
        )
    if pool.slice_topology and hosts == 1:
        yield PoolFault(
            "MultiHostSlice",
            f"node pool {pool.name} is one TPU slice of several hosts ({pool.slice_topology}), and its instance "
            f"template does not say so: its nodes would lack the label {labels.GKE_TPU_TOPOLOGY}",
            f"name a node pool that GKE makes as a slice: {create(pool)}; GKE's autoscaler can size this one",
            blocking=True,
        )


def with_dra_labels(pool: Pool) -> Pool:
    """The pool with the labels that claims of its devices need."""
    return replace(pool, labels={**pool.labels, **dict.fromkeys(pool.for_claims, "true")})


def _not_made_for_claims(pool: Pool, wanted: Pool) -> Iterator[PoolFault]:
    of = f"{pool.name} {pool.place}"
    if pool.has_gpus and pool.driver != _NO_DRIVER:
        why = "its default, since the node pool names none" if pool.driver in _UNSAID else pool.driver
        yield PoolFault(
            "DriverInstalled",
            f"GKE installs GPU drivers on node pool {pool.name} ({why}), and its device plugin takes the GPUs",
            f"while it has no nodes: gcloud container node-pools update {of} --accelerator {_accelerator(pool)}; nodes "
            f"that it has would be recreated. If GKE refuses that, make another node pool: {create(wanted)}",
            blocking=False,
        )
    missing = [label for label in pool.for_claims if pool.labels.get(label) != "true"]
    if missing:
        what = (
            "GKE's device plugin takes the GPUs, or the DRA driver or pods that select its nodes cannot run there"
            if pool.has_gpus
            else "GKE's device plugin takes the TPUs, which is right if all pods request google.com/tpu"
        )
        yield PoolFault(
            "LabelsMissing",
            f"node pool {pool.name} lacks the labels {' and '.join(missing)}: {what}",
            f"gcloud container node-pools update {of} --node-labels={pairs(wanted.labels)}",
            blocking=False,
        )
    if pool.auto_repair:
        yield PoolFault(
            "AutoRepair",
            f"auto-repair is on for node pool {pool.name}: GKE replaces machines that Foreslice knows",
            f"gcloud container node-pools update {of} --no-enable-autorepair",
            blocking=False,
        )


def create(pool: Pool) -> str:
    """The gcloud command that creates a node pool like this one, with corrections that an existing pool does not allow.

    The new pool has no GPU driver or device plugin of GKE, the size 0, and at least PODS pods per node. The user
    chooses its name.
    """
    zones = ",".join(sorted({group.zone for group in pool.groups}))
    taints = taint_list(taint for taint in pool.taints if taint.key not in _TAINTS_OF_GKE)
    options = (
        ("--node-locations", zones),
        ("--machine-type", pool.machine_type),
        ("--accelerator", _accelerator(pool)),
        ("--reservation-affinity specific --reservation", pool.reservation),
        ("--placement-policy", pool.policy),
        ("--tpu-topology", "" if pool.policy else pool.slice_topology),
        ("--max-pods-per-node", str(max(pool.max_pods or PODS, PODS))),
        ("--node-labels", pairs(with_dra_labels(pool).labels)),
        ("--node-taints", taints),
    )
    start = f"gcloud container node-pools create NEW {pool.place} --num-nodes 0 --no-enable-autorepair"
    return " ".join((start, *pool.sold_as, *pool.kept, *(f"{option} {value}" for option, value in options if value)))


def _accelerator(pool: Pool) -> str:
    """The value of gcloud's option --accelerator, without a driver of GKE."""
    driver = ",gpu-driver-version=disabled" if pool.has_gpus else ""
    return pool.accelerator and f"type={pool.accelerator},count={pool.accelerators}{driver}"


def pairs(found: Mapping[str, str]) -> str:
    """Labels in the format of gcloud's options."""
    return ",".join(f"{key}={value}" for key, value in sorted(found.items()))


def taint_list(found: Iterable[Taint]) -> str:
    """Taints in the format of gcloud's options."""
    return ",".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in found)


def _staying(found: Mapping[str, Any]) -> Iterator[str]:
    """The groups of a node pool, without those that GKE empties and deletes at the end of a blue-green upgrade.

    Source: GKE API reference v1, NodePool.instanceGroupUrls ("both blue and green") and UpdateInfo.BlueGreenInfo.
    """
    upgrade = (found.get("updateInfo") or {}).get("blueGreenInfo") or {}
    going = "greenInstanceGroupUrls" if upgrade.get("phase") == "ROLLBACK_STARTED" else "blueInstanceGroupUrls"
    return (url for url in found.get("instanceGroupUrls", ()) if url not in upgrade.get(going, ()))


def _ref(url: str, pool: str, project: str) -> GroupRef:
    """The group of a URL. A group of another project may have the same name as a group of this one."""
    parts = url.split("/")
    owner = parts[parts.index("projects") + 1] if "projects" in parts else ""
    # A project also has a number, and this code does not know which project a number belongs to.
    if owner != project and owner.isdecimal() == project.isdecimal():
        raise TemplateError(
            f"the groups of node pool {pool} are in project {owner or '(none)'}: only those of {project} are sized",
            code="OtherProject",
            next_step=f"set gcp.project to the project of the cluster ({owner}), or name a cluster of {project}",
        )
    return GroupRef(parts[parts.index("zones") + 1], parts[-1])


def _taint(found: Mapping[str, Any]) -> Taint:
    """A taint. GKE spells the effect like the enums of its API."""
    effect = str(found.get("effect", "NO_SCHEDULE"))
    return Taint(str(found.get("key", "")), str(found.get("value", "")), _EFFECTS.get(effect, effect))
