"""CapacityPool: a team's permission to launch. Platform fields live in the provider's node template instead."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from autoscaler.kube.custom.objects import read_spec, read_status
from autoscaler.kube.custom.schema import (
    CRON_PATTERN,
    NO_ENTRIES,
    TIME_ZONE_PATTERN,
    ApiModel,
    BootTimeoutText,
    CapacityTypeName,
    Conditions,
    DollarsValue,
    DurationText,
    Items,
    Labels,
    LongText,
    Name,
    NodesOrPercentage,
    Quantities,
    RequirementSpec,
    Rule,
    TaintSpec,
    Text,
    TimeText,
    dollars,
    duration,
)
from autoscaler.kube.custom.selectors import SelectorSpec
from autoscaler.kube.problem import Problems
from autoscaler.model.capacity import (
    KNOWN_SCHEDULERS,
    Baseline,
    CapacityPool,
    ConsolidationPolicy,
    DeletionPolicy,
    Disruption,
    DisruptionBudget,
    DriftDisruption,
    Launcher,
    Limits,
    Mode,
    NodeTemplateRef,
    Permission,
    PodScope,
    Saving,
    Scope,
    StoppedMachines,
)
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import GROUP
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.instance_type import CapacityType

AUTO: Final = "Auto"
# Holds a deleted pool until its nodes are gone.
FINALIZER: Final = f"{GROUP}/nodes"


# Whether the fields make sense is judged by what reads the schedule, and so is whether a time zone exists.
Cron = Annotated[str, StringConstraints(pattern=CRON_PATTERN, max_length=128)]
TimeZone = Annotated[str, StringConstraints(pattern=TIME_ZONE_PATTERN, max_length=64)]


class DriversSpec(ApiModel):
    """Which DRA drivers publish devices on the nodes."""

    profiles: Annotated[Items[Text], Field(min_length=1, max_length=16)] = (AUTO,)
    """Names of driver profiles; or the one word Auto: read from the DaemonSets and DeviceClasses that run."""

    RULES = (
        Rule(
            f"!('{AUTO}' in self.profiles) || size(self.profiles) == 1",
            f"{AUTO} excludes other entries: list driver profiles or leave the detection to {AUTO}",
            lambda self: AUTO not in self.profiles or len(self.profiles) == 1,
            field="profiles",
        ),
    )

    def model(self) -> tuple[str, ...]:
        """() for Auto, as in the model."""
        return () if self.profiles == (AUTO,) else self.profiles

    @staticmethod
    def of(drivers: tuple[str, ...]) -> DriversSpec:
        return DriversSpec(profiles=drivers or (AUTO,))


class LimitsSpec(ApiModel):
    """Upper bounds over all nodes of the pool; at least one is required."""

    accelerators: Annotated[int, Field(ge=0)] | None = None
    """Accelerators of all nodes together, counted as whole devices."""
    nodes: Annotated[int, Field(ge=0)] | None = None
    usd_per_hour: DollarsValue | None = None
    """List price of all nodes together; prepaid nodes count as nothing."""

    RULES = (
        Rule(
            "has(self.accelerators) || has(self.nodes) || has(self.usdPerHour)",
            "limits needs at least one of accelerators, nodes and usdPerHour",
            lambda self: (self.accelerators, self.nodes, self.usd_per_hour) != (None, None, None),
        ),
    )


class TemplateReference(ApiModel):
    """The provider's own kind with the fields of its platform."""

    kind: Text
    name: Name


class BaselineSpec(ApiModel):
    """A floor of nodes that are kept without demand, always or while a schedule's window is open."""

    replicas: Annotated[int, Field(ge=0, le=10000)]
    schedule: Cron | None = None
    """Cron expression of the minutes in which the baseline applies, such as `* 8-18 * * 1-5`. Absent: always."""
    time_zone: TimeZone = "UTC"
    """IANA name."""


class BudgetSpec(ApiModel):
    """The highest number of nodes disrupted at once."""

    nodes: NodesOrPercentage
    """A number, or a percentage of the pool's nodes."""
    schedule: Cron | None = None
    """Cron expression of the minutes in which the budget applies, in UTC. Absent: always."""


class SavingSpec(ApiModel):
    """What it takes to move running pods to other nodes."""

    percent: Annotated[int, Field(ge=1, le=90)] = 15
    """The least saving, in percent of the price of the nodes that go."""
    payback: DurationText = "2h"
    """Within this time the saving exceeds what the move costs: its nodes are paid for while their pods do not work."""
    restart: DurationText = "10m"
    """How long a pod that is moved does not work."""

    def model(self) -> Saving:
        return Saving(self.percent, duration(self.payback), duration(self.restart))


class DisruptionSpec(ApiModel):
    """When nodes that still work may be removed."""

    consolidate: Literal["Never", "WhenEmpty", "Close", "Cheaper"] = "WhenEmpty"
    """Which nodes that work go to save money. WhenEmpty: those without pods. Cheaper: as WhenEmpty, and those whose
    pods all cost less on other nodes; these are evicted within their PodDisruptionBudgets. Close: only in `foreslice
    simulate`, where also those whose pods would cost less on new machines take no more pods, and go when these have
    ended; a controller does as for WhenEmpty."""
    saving: SavingSpec = SavingSpec()
    """With consolidate: Cheaper, what moving pods must save. With consolidate: Close, its percent alone counts."""
    after: DurationText = "5m"
    """How long a node must have been empty."""
    drift: Literal["Never", "WhenEmpty"] = "WhenEmpty"
    stopped: Literal["Keep", "End"] = "Keep"
    """What happens to a machine that was stopped in the cloud: Keep keeps it for a later start, End terminates it."""
    budgets: Annotated[Items[BudgetSpec], Field(max_length=50)] = ()

    def model(self) -> Disruption:
        return Disruption(
            consolidate=ConsolidationPolicy(self.consolidate),
            after=duration(self.after),
            drift=DriftDisruption(self.drift),
            stopped=StoppedMachines(self.stopped),
            budgets=tuple(DisruptionBudget(str(b.nodes), b.schedule) for b in self.budgets),
            saving=self.saving.model(),
        )


class ScopeSpec(ApiModel):
    """Which pending pods the pool serves. Others are left to other autoscalers."""

    pods: Literal["DeviceClaims", "Selected", "All"] = "DeviceClaims"
    """DeviceClaims: pods with resource claims, or extended resources that a DeviceClass serves. Selected: pods that the
    selectors pick, with claims or without. All: every pod."""
    pod_selector: SelectorSpec | None = None
    namespace_selector: SelectorSpec | None = None
    scheduler_names: Annotated[Items[Text], Field(min_length=1, max_length=16)] = KNOWN_SCHEDULERS
    """Values of spec.schedulerName. A pod of a scheduler that does not decide like kube-scheduler may get a node that
    it is then not put on."""

    RULES = (
        Rule(
            "(self.pods == 'Selected') == (has(self.podSelector) || has(self.namespaceSelector))",
            "Selected needs podSelector or namespaceSelector, and these count for Selected only",
            lambda self: (
                (self.pods == "Selected") == (self.pod_selector is not None or self.namespace_selector is not None)
            ),
            field="pods",
        ),
    )

    def model(self) -> Scope:
        return Scope(
            PodScope(self.pods),
            self.pod_selector.model() if self.pod_selector else None,
            self.namespace_selector.model() if self.namespace_selector else None,
            self.scheduler_names,
        )


class CapacityPoolSpec(ApiModel):
    """What may be launched, how much of it, and when it is removed."""

    mode: Literal["Observe", "Act"] = "Observe"
    """Observe only says what it would launch; Act launches."""
    requirements: Annotated[Items[RequirementSpec], Field(max_length=100)] = ()
    """An offering must meet all of them: instance type, zone, architecture, capacity type, accelerator, ..."""
    capacity_types: Annotated[
        Items[CapacityTypeName],
        Field(min_length=1, max_length=5, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = ("capacity-block", "reserved", "on-demand")
    """In order of preference. spot and flex-start must be asked for."""
    node_template_ref: TemplateReference | None = None
    """Required to launch."""
    labels: Labels = NO_ENTRIES
    """Labels of the nodes; keys under foreslice.dev/ are reserved."""
    taints: Annotated[Items[TaintSpec], Field(max_length=50)] = ()
    startup_taints: Annotated[Items[TaintSpec], Field(max_length=50)] = ()
    """Taints that something removes once a node is usable. Every expected driver must tolerate them."""
    kubelet_reserved: Quantities = NO_ENTRIES
    """What kubelet and system keep for themselves, instead of the provider's formula."""
    drivers: DriversSpec = DriversSpec()
    limits: LimitsSpec
    overflow: Literal["Never", "Allow"] = "Never"
    """Whether a pool of reserved capacity may buy what is not reserved once that is full."""
    baseline: Annotated[Items[BaselineSpec], Field(max_length=20)] = ()
    disruption: DisruptionSpec = DisruptionSpec()
    weight: Annotated[int, Field(ge=0, le=100)] = 0
    """Of two pools that serve equally well, the heavier one launches."""
    fractional: Literal["Never", "Allow"] = "Never"
    """Whether instance types with a part of a card, such as 1/8 of an L4, are offered."""
    deletion_policy: Literal["Drain", "Retain"] = "Drain"
    """What happens to the nodes when the pool is deleted."""
    scope: ScopeSpec = ScopeSpec()
    launcher: Literal["Foreslice", "ClusterAutoscaler"] = "Foreslice"
    """Who decides how many nodes there are. ClusterAutoscaler: only what it orders over gRPC is launched and ended."""
    boot_timeout: BootTimeoutText | None = None
    """How long a machine may take from its launch to its Node before it is ended, from 2m to 1d. Absent: as the node
    template says, otherwise 15m, 30m for bare metal and 45m for UltraServers. It applies to later launches."""

    RULES = (
        Rule(
            "self.mode != 'Act' || has(self.nodeTemplateRef)",
            "a pool in mode Act needs a nodeTemplateRef",
            lambda self: self.mode != "Act" or self.node_template_ref is not None,
            field="nodeTemplateRef",
        ),
        Rule(
            f"self.labels.all(key, !key.startsWith('{GROUP}/'))",
            f"label keys under {GROUP}/ are set by Foreslice itself",
            lambda self: not any(key.startswith(f"{GROUP}/") for key in self.labels),
            field="labels",
        ),
    )


class ProposedLaunch(ApiModel):
    """What a pool in mode Observe would launch."""

    instance_type: Text
    zone: Text
    capacity_type: CapacityTypeName
    count: Annotated[int, Field(ge=1)]
    usd_per_hour: DollarsValue | None = None
    pods: Annotated[int, Field(ge=0)] = 0
    """How many pods they would serve."""


class BackoffStatus(ApiModel):
    """Not requested again before `until`; an absent field means all."""

    until: TimeText
    instance_type: LongText = ""
    zone: LongText = ""
    capacity_type: LongText = ""
    reservation: LongText = ""
    """Only this reservation."""
    reason: LongText = ""
    failures: Annotated[int, Field(ge=1)] = 1
    """In a row; each one lengthened the wait."""
    message: LongText = ""
    """What the provider said, and what to do about it."""


class QuarantineStatus(ApiModel):
    """An instance type that does not boot, or does not publish what was predicted, with these driver profiles."""

    instance_type: Text
    drivers: Annotated[Items[Text], Field(max_length=16)] = ()
    failed_boots: Annotated[Items[LongText], Field(max_length=20)] = ()
    """Machines (provider ids) whose boot failed, since the last one that succeeded."""
    mispredictions: Annotated[Items[LongText], Field(max_length=20)] = ()
    """Pods that stayed pending although the plan placed them, and on which machine."""
    drifts: Annotated[Items[LongText], Field(max_length=20)] = ()
    """Machines (provider ids) whose drivers published something else than predicted."""
    times: Annotated[int, Field(ge=0)] = 0
    """How often it was quarantined; each time lasts longer."""
    until: TimeText | None = None
    """Absent: counted, but not quarantined yet."""


class CapacityPoolStatus(ApiModel):
    """What was seen, and what must survive a restart."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    conditions: Conditions = ()
    nodes: Annotated[int, Field(ge=0)] = 0
    accelerators: Annotated[int, Field(ge=0)] = 0
    usd_per_hour: DollarsValue | None = None
    proposed_launches: Annotated[Items[ProposedLaunch], Field(max_length=200)] = ()
    backoffs: Annotated[Items[BackoffStatus], Field(max_length=500)] = ()
    quarantines: Annotated[Items[QuarantineStatus], Field(max_length=200)] = ()


def parse_capacity_pool(
    raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> CapacityPool | None:
    """A CapacityPool; None when it cannot be used, with the reasons in `problems`."""
    metadata, spec = read_spec(CapacityPoolSpec, raw, problems)
    if spec is None:
        return None
    reference = spec.node_template_ref
    return CapacityPool(
        name=metadata.name,
        mode=Mode(spec.mode),
        requirements=tuple(requirement.model() for requirement in spec.requirements),
        capacity_types=tuple(map(CapacityType, spec.capacity_types)),
        node_template=NodeTemplateRef(reference.kind, reference.name) if reference else NodeTemplateRef(),
        labels=FrozenMap(spec.labels),
        taints=tuple(taint.model() for taint in spec.taints),
        startup_taints=tuple(taint.model() for taint in spec.startup_taints),
        kubelet_reserved=FrozenMap({k: Quantity.parse(str(v)) for k, v in spec.kubelet_reserved.items()}),
        drivers=spec.drivers.model(),
        limits=Limits(spec.limits.accelerators, spec.limits.nodes, dollars(spec.limits.usd_per_hour)),
        overflow=Permission(spec.overflow),
        baselines=tuple(Baseline(b.replicas, b.schedule, b.time_zone) for b in spec.baseline),
        disruption=spec.disruption.model(),
        weight=spec.weight,
        fractional=Permission(spec.fractional),
        deletion_policy=DeletionPolicy(spec.deletion_policy),
        scope=spec.scope.model(),
        launcher=Launcher(spec.launcher),
        boot_timeout=duration(spec.boot_timeout) if spec.boot_timeout else None,
        uid=metadata.uid,
        deleting=metadata.deleting,
        guarded=FINALIZER in metadata.finalizers,
        generation=metadata.generation,
        origin=origin,
    )


def parse_pool_status(raw: object, problems: Problems | None = None) -> CapacityPoolStatus:
    """The status of a CapacityPool; an unreadable one counts as empty."""
    return read_status(CapacityPoolStatus, raw, problems) or CapacityPoolStatus()
