"""Managed instance groups as Compute Engine describes them, and what their machines are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, TypeVar

from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType
from providers.contract import Clock, OfferingKey, Reservation
from providers.errors import GoneError, NotOfferedError, ProviderError, TemplateError
from providers.gcp.capacity import Reservations
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.node_template.tpu import hosts_of, kube_labels, slice_topology, topology_of
from providers.gcp.parts import Ref, ref_of
from providers.gcp.session import Gcp

# Instance templates never change under their name; which one a group uses, and what a node pool is, is read again.
_LIFETIME: Final = timedelta(minutes=5)
# Without the first, GKE's device plugin runs; the kubelet plugin of the NVIDIA DRA driver selects nodes by the second.
_DRA_LABELS: Final = (labels.GKE_NO_DEVICE_PLUGIN, labels.NVIDIA_GPU_PRESENT)
_MODELS: Final = {
    "SPOT": CapacityType.SPOT,
    "FLEX_START": CapacityType.FLEX_START,
    "STANDARD": CapacityType.ON_DEMAND,
    "": CapacityType.ON_DEMAND,
    "RESERVATION_BOUND": CapacityType.CAPACITY_BLOCK,
}
# Machines of others come from a reservation or from elsewhere, which is not known before they run.
_AFFINITIES: Final = frozenset({"", "UNSPECIFIED", "NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION"})
_HELD: Final = frozenset({CapacityType.CAPACITY_BLOCK.value, CapacityType.RESERVED.value})
_EFFECTS: Final = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Pool:
    """A GKE node pool: its groups, and what keeps this provider from sizing it."""

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


@dataclass(frozen=True, slots=True)
class Group:
    """A group and what it starts. `unsupported` says why nothing is launched in it; "" when something may be,
    and `step` what to do about it, where that is more than to name another group. `run_duration` is how long its
    machines run, of flex-start ones. `unreadable` is what to do where its reservation may not be read."""

    ref: GroupRef
    base: str
    size: int
    instance_type: str
    capacity_type: str
    repairs: bool
    pool: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    unsupported: str = ""
    step: str = ""
    run_duration: timedelta | None = None
    reservation: str = ""
    reserved: Ref | None = None
    unreadable: str = ""

    @property
    def hosts(self) -> int:
        """How many machines it has if it has any: those of one TPU slice; 1 where machines come one by one."""
        return hosts_of(self.instance_type, topology_of(self.labels))

    def serves(self, offering: OfferingKey, topology: str = "") -> bool:
        """Whether its machines are what the offering says. A CapacityBlock may hold any kind of reservation.
        `topology`: that of the wanted slice."""
        kinds = _HELD if self.reservation else {self.capacity_type}
        return (
            not self.unsupported
            and offering.instance_type == self.instance_type
            and offering.zone in (self.ref.zone, ANY_ZONE)
            and offering.capacity_type in kinds
            and offering.reservation == self.reservation
            and (topology if hosts_of(self.instance_type, topology) > 1 else "") == self._slice
        )

    @property
    def _slice(self) -> str:
        return topology_of(self.labels) if self.hosts > 1 else ""

    @property
    def offering(self) -> OfferingKey:
        """What its machines are."""
        return OfferingKey(self.instance_type, self.ref.zone, self.capacity_type, self.reservation)


class Groups:
    """Reads groups and node pools."""

    def __init__(self, gcp: Gcp, clock: Clock, reservations: Reservations) -> None:
        self._gcp = gcp
        self._reservations = reservations
        self._clock = clock
        self._known: dict[object, tuple[float, Any]] = {}

    def serving(self, template: GroupTemplate, offering: OfferingKey, topology: str = "") -> tuple[Group, ...]:
        """The group that starts such machines; for slices of several hosts all of them, since each has room for one.
        Raises NotOfferedError when none does, TemplateError when the node pool is sized by somebody else."""
        groups = tuple(self.of(template))
        chosen = [group for group in groups if group.serves(offering, topology)]
        if not chosen:
            known = ", ".join(f"{g.ref} ({g.unsupported or g.offering})" for g in groups)
            wanted = f"{offering} {topology}".rstrip()
            raise NotOfferedError(f"no group of GCPNodeTemplate {template.name} starts {wanted}: {known}")
        chosen = chosen if chosen[0].hosts > 1 else chosen[:1]
        for group in (one for one in chosen if one.pool):
            for fault in pool_faults(template, self.pool(template, group.pool), hosts=group.hosts):
                if fault.blocking:
                    raise TemplateError(fault.message, code=fault.kind, next_step=fault.next_step)
        return tuple(chosen)

    def of(self, template: GroupTemplate) -> Iterator[Group]:
        """The groups of a template as they are now. Raises TemplateError when one of them does not exist."""
        for name in template.node_pools:
            for ref in self.pool(template, name).groups:
                yield _for(template, self.group(ref, pool=name))
        for ref in template.groups:
            yield _for(template, self.group(ref))

    def existing(self, template: GroupTemplate) -> Iterator[tuple[Group | None, ProviderError | None]]:
        """Each of its groups, or why it cannot be read."""
        for name in template.node_pools:
            try:
                refs = self.pool(template, name).groups
            except ProviderError as error:
                yield None, error
                continue
            yield from (self._tried(template, ref, name) for ref in refs)
        yield from (self._tried(template, ref, "") for ref in template.groups)

    def _tried(self, template: GroupTemplate, ref: GroupRef, pool: str) -> tuple[Group | None, ProviderError | None]:
        try:
            return _for(template, self.group(ref, pool=pool)), None
        except ProviderError as error:
            return None, error

    def pool(self, template: GroupTemplate, name: str) -> Pool:
        """A node pool. Raises TemplateError when there is none, or when Google sizes the whole cluster."""
        place = f"locations/{template.location}/clusters/{template.cluster}"
        autopilot = self._remembered(("cluster", place), lambda: self._autopilot(place))
        if autopilot:
            step = "use a Standard cluster: on Autopilot Google alone makes nodes"
            raise TemplateError(f"cluster {template.cluster} is an Autopilot cluster", code="Autopilot", next_step=step)
        return self._remembered(("pool", place, name), lambda: self._read_pool(template, place, name))

    def group(self, ref: GroupRef, *, pool: str = "") -> Group:
        """A group. Raises TemplateError when there is none."""
        try:
            found = self._gcp.call(
                "instanceGroupManagers.get", about=str(ref), zone=ref.zone, instance_group_manager=ref.name
            )
        except GoneError as error:
            step = "correct spec.groups or spec.nodePools of the GCPNodeTemplate, or create the group"
            raise TemplateError(f"there is no instance group {ref}", code="NoGroup", next_step=step) from error
        url = found.instance_template or next((one.instance_template for one in found.versions), "")
        properties = self._remembered(("template", url), lambda: self._properties(ref, url))
        model = properties.scheduling.provisioning_model
        affinity = properties.reservation_affinity
        reserved = _reserved(ref, affinity, self._gcp.project)
        held = self._reservations.of(reserved) if reserved is not None else None
        capacity = held.capacity_type if held is not None else getattr(_MODELS.get(model), "value", "")
        return Group(
            ref=ref,
            base=found.base_instance_name,
            size=found.target_size,
            instance_type=properties.machine_type.rpartition("/")[2],
            capacity_type=capacity,
            repairs=found.instance_lifecycle_policy.default_action_on_failure != "DO_NOTHING",
            pool=pool,
            labels=kube_labels(properties.metadata),
            unsupported=_unsupported(model, affinity, reserved, held) or _in_bulk(found),
            reservation=held.id if held is not None else "",
            reserved=reserved,
            unreadable=self._reservations.unreadable(reserved) if reserved is not None else "",
        )

    def forget(self) -> None:
        """Read everything again."""
        self._known.clear()

    def _properties(self, ref: GroupRef, url: str) -> Any:
        parts = url.split("/")
        about, name = str(ref), parts[-1]
        if "regions" in parts:
            region = parts[parts.index("regions") + 1]
            found = self._gcp.call("regionInstanceTemplates.get", about=about, region=region, instance_template=name)
        else:
            found = self._gcp.call("instanceTemplates.get", about=about, instance_template=name)
        return found.properties

    def _autopilot(self, place: str) -> bool:
        try:
            found = self._gcp.container("container.clusters.get", place)
        except GoneError as error:
            step = "correct spec.cluster and spec.location of the GCPNodeTemplate: gcloud container clusters list"
            raise TemplateError(f"there is no GKE cluster {place}", code="NoCluster", next_step=step) from error
        return bool((found.get("autopilot") or {}).get("enabled"))

    def _read_pool(self, template: GroupTemplate, place: str, name: str) -> Pool:
        try:
            found = self._gcp.container("container.nodePools.get", f"{place}/nodePools/{name}")
        except GoneError as error:
            step = (
                f"correct spec.nodePools, or create it: gcloud container node-pools list --cluster {template.cluster} "
                f"--location {template.location}"
            )
            message = f"there is no node pool {name!r} in cluster {template.cluster}"
            raise TemplateError(message, code="NoNodePool", next_step=step) from error
        config = found.get("config") or {}
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
            slice_topology=slice_topology(str(config.get("machineType", "")), found.get("placementPolicy") or {}),
            max_pods=int((found.get("maxPodsConstraint") or {}).get("maxPodsPerNode") or 0) or None,
        )

    def _remembered(self, key: object, read: Callable[[], V]) -> V:
        known, now = self._known.get(key), self._clock.monotonic()
        if known is not None and now - known[0] < _LIFETIME.total_seconds():
            value: V = known[1]
            return value
        value = read()
        self._known[key] = (now, value)
        return value


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
    of = f"{pool.name} --cluster {template.cluster} --location {template.location}"
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


def _for(template: GroupTemplate, group: Group) -> Group:
    """The group as the template lets it be used: flex-start machines and slices of several hosts need resize requests,
    which Google does not document for the groups of GKE."""
    flexible = group.capacity_type == CapacityType.FLEX_START.value
    if group.unsupported or (not flexible and group.hosts == 1):
        return group
    if flexible and template.flex_start is None:
        why = "its machines are flex-start, and the GCPNodeTemplate does not say how long they shall run"
        return replace(
            group, unsupported=why, step="set spec.flexStart.runDuration of the GCPNodeTemplate (docs/gcp.md)"
        )
    if not template.on_trial and group.ref not in template.tried:
        step = f"foreslice gcp trial --template {template.name} --type {group.instance_type} --resize-requests"
        return replace(group, unsupported="no trial has started machines in it by a resize request", step=step)
    return replace(group, run_duration=template.flex_start) if flexible else group


def _reserved(ref: GroupRef, affinity: Any, project: str) -> Ref | None:
    """The reservation that the machines of a group start in; None for those that need none."""
    if affinity.consume_reservation_type != "SPECIFIC_RESERVATION" or not affinity.values:
        return None
    return ref_of(ref.zone, affinity.values[0], project)


def _unsupported(model: str, affinity: Any, reserved: Ref | None, held: Reservation | None) -> str:
    if model not in _MODELS:
        return f"the provisioning model {model} is not supported yet"
    if model == "SPOT" and reserved is not None:
        return "Spot machines of a reservation do not exist"
    if model == "FLEX_START" and reserved is not None:
        return "flex-start machines of a reservation do not exist"
    if affinity.consume_reservation_type not in _AFFINITIES:
        return f"the reservation affinity {affinity.consume_reservation_type} is not supported yet"
    if reserved is not None and len(affinity.values) > 1:
        return "it names more than one reservation"
    if reserved is not None and held is None:
        return f"{reserved.id} does not exist, or cannot be read"
    if model == "RESERVATION_BOUND" and reserved is None:
        return "its machines are bound to a reservation, and it names none"
    return ""


def _in_bulk(found: Any) -> str:
    bulk = found.target_size_policy.mode == "BULK"
    return "it starts its machines all at once (target size policy BULK): not supported yet" if bulk else ""


def _ref(url: str) -> GroupRef:
    parts = url.split("/")
    return GroupRef(parts[parts.index("zones") + 1], parts[-1])


def _taint(found: Mapping[str, Any]) -> Taint:
    """GKE writes the effect as its API's enums are written."""
    effect = str(found.get("effect", "NO_SCHEDULE"))
    return Taint(str(found.get("key", "")), str(found.get("value", "")), _EFFECTS.get(effect, effect))
