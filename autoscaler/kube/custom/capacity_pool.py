"""CapacityPool: a team's permission to launch. The provider's node template has the platform fields."""

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
# Keeps a deleted pool until its nodes are gone.
FINALIZER: Final = f"{GROUP}/nodes"


# The readers of a schedule validate its fields and the time zone.
Cron = Annotated[str, StringConstraints(pattern=CRON_PATTERN, max_length=128)]
TimeZone = Annotated[str, StringConstraints(pattern=TIME_ZONE_PATTERN, max_length=64)]


class DriversSpec(ApiModel):
    """The DRA drivers that publish devices on the nodes."""

    profiles: Annotated[Items[Text], Field(min_length=1, max_length=16)] = (AUTO,)
    """Names of driver profiles; or the one word Auto: those of the DaemonSets and DeviceClasses in the cluster."""

    RULES = (
        Rule(
            f"!('{AUTO}' in self.profiles) || size(self.profiles) == 1",
            f"{AUTO} excludes other entries: list driver profiles or leave the detection to {AUTO}",
            lambda self: AUTO not in self.profiles or len(self.profiles) == 1,
            field="profiles",
        ),
    )

    def model(self) -> tuple[str, ...]:
        """The profiles; () for Auto."""
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
    """List price of all nodes together; prepaid nodes cost nothing."""

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
    """A number of nodes that are kept without demand, always or while a schedule's window is open."""

    replicas: Annotated[int, Field(ge=0, le=10000)]
    """The least number of nodes of the pool, with and without pods."""
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
    """The conditions for moving running pods to other nodes."""

    percent: Annotated[int, Field(ge=1, le=90)] = 15
    """The least saving, in percent of the price of the nodes that are removed."""
    payback: DurationText = "2h"
    """Within this time the saving exceeds the cost of the move: its nodes are paid for while their pods do not work.
    For pods that say how long they run, or have run for longer on their node, that time counts instead."""
    restart: DurationText = "10m"
    """The time for which a moved pod does not work."""

    def model(self) -> Saving:
        return Saving(self.percent, duration(self.payback), duration(self.restart))


class DisruptionSpec(ApiModel):
    """The conditions for removing nodes that still work."""

    consolidate: Literal["Never", "WhenEmpty", "Close", "Cheaper"] = "WhenEmpty"
    """The working nodes that are removed to save money. WhenEmpty: those without pods. Cheaper: like WhenEmpty, and
    those whose pods all cost less on other nodes; these are evicted within their PodDisruptionBudgets. Close: only in
    `foreslice simulate`, where nodes accept no more pods than those that they were bought for, and are removed when
    these have ended; a controller treats it as WhenEmpty."""
    saving: SavingSpec = SavingSpec()
    """The saving that moving pods must reach."""
    after: DurationText = "5m"
    """The time for which a node must have been empty."""
    drift: Literal["Never", "WhenEmpty"] = "WhenEmpty"
    stopped: Literal["Keep", "End"] = "Keep"
    """The action for a machine that was stopped in the cloud: Keep keeps it for a later start, End terminates it."""
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
    """The pending pods that the pool serves. It ignores all others."""

    pods: Literal["DeviceClaims", "Selected", "All"] = "DeviceClaims"
    """DeviceClaims: pods with resource claims, or extended resources that a DeviceClass serves. Selected: pods that the
    selectors match, with claims or without. All: every pod."""
    pod_selector: SelectorSpec | None = None
    namespace_selector: SelectorSpec | None = None
    scheduler_names: Annotated[Items[Text], Field(min_length=1, max_length=16)] = KNOWN_SCHEDULERS
    """Values of spec.schedulerName. If a scheduler does not decide like kube-scheduler, it may not use the node that is
    launched for its pod."""

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
    """The offerings that may be launched, the limits, and the conditions for removal."""

    mode: Literal["Observe", "Act"] = "Observe"
    """Observe only shows what it would launch; Act launches."""
    requirements: Annotated[Items[RequirementSpec], Field(max_length=100)] = ()
    """An offering must meet all of them: instance type, zone, architecture, capacity type, accelerator, ..."""
    capacity_types: Annotated[
        Items[CapacityTypeName],
        Field(min_length=1, max_length=5, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = ("capacity-block", "reserved", "on-demand")
    """In order of preference. spot and flex-start are only used if they are listed."""
    node_template_ref: TemplateReference | None = None
    """Required to launch."""
    labels: Labels = NO_ENTRIES
    """Labels of the nodes; keys under foreslice.dev/ are reserved."""
    taints: Annotated[Items[TaintSpec], Field(max_length=50)] = ()
    startup_taints: Annotated[Items[TaintSpec], Field(max_length=50)] = ()
    """Taints that another component removes once a node is usable. Every expected driver must tolerate them."""
    kubelet_reserved: Quantities = NO_ENTRIES
    """The resources that kubelet and system reserve, instead of the provider's formula."""
    drivers: DriversSpec = DriversSpec()
    limits: LimitsSpec
    overflow: Literal["Never", "Allow"] = "Never"
    """Only in pools that a CapacityBlock names in spec.pool. Never: the pool launches no on-demand, spot or flex-start
    capacity as long as the CapacityBlock exists, even if the block is full, has not begun or has ended. Allow: it does
    where the blocks are not enough."""
    baseline: Annotated[Items[BaselineSpec], Field(max_length=20)] = ()
    """The nodes that the pool keeps even without pods: of entries whose windows are open, the greatest number counts.
    Example: `[{replicas: 2, schedule: "* 8-18 * * 1-5", timeZone: Europe/Berlin}]`. Missing nodes are of the offering
    that the pool would launch first, and `limits` counts them. A slice of several hosts is never kept."""
    disruption: DisruptionSpec = DisruptionSpec()
    weight: Annotated[int, Field(ge=0, le=100)] = 0
    """Of two pools that serve equally well, the one with the greater weight launches."""
    fractional: Literal["Never", "Allow"] = "Never"
    """Allow: instance types with a part of a card, such as 1/8 of an L4, are offered. Never: they are not."""
    deletion_policy: Literal["Drain", "Retain"] = "Drain"
    """The action for the nodes when the pool is deleted."""
    scope: ScopeSpec = ScopeSpec()
    launcher: Literal["Foreslice", "ClusterAutoscaler"] = "Foreslice"
    """The component that decides the number of nodes. ClusterAutoscaler: only its gRPC calls launch and end nodes."""
    boot_timeout: BootTimeoutText | None = None
    """The longest time from a machine's launch to its Node, from 2m to 1d; after it the machine is ended. Absent: that
    of the node template, otherwise 15m, 30m for bare metal and 45m for UltraServers. It applies to later launches."""

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
    """The launches that a pool in mode Observe would make."""

    instance_type: Text
    zone: Text
    capacity_type: CapacityTypeName
    count: Annotated[int, Field(ge=1)]
    usd_per_hour: DollarsValue | None = None
    pods: Annotated[int, Field(ge=0)] = 0
    """The number of pods that they would serve."""


class BackoffStatus(ApiModel):
    """An offering that is not requested again before `until`; an absent field means all."""

    until: TimeText
    instance_type: LongText = ""
    zone: LongText = ""
    capacity_type: LongText = ""
    reservation: LongText = ""
    """Only this reservation."""
    reason: LongText = ""
    failures: Annotated[int, Field(ge=1)] = 1
    """Consecutive failures; each one lengthens the wait."""
    message: LongText = ""
    """The provider's message, and the next step."""


class QuarantineStatus(ApiModel):
    """An instance type that does not boot, or does not publish what was predicted, with these driver profiles."""

    instance_type: Text
    drivers: Annotated[Items[Text], Field(max_length=16)] = ()
    failed_boots: Annotated[Items[LongText], Field(max_length=20)] = ()
    """Machines (provider ids) whose boot failed, since the last successful one."""
    mispredictions: Annotated[Items[LongText], Field(max_length=20)] = ()
    """Pods that stayed pending although the plan placed them, each with its machine."""
    drifts: Annotated[Items[LongText], Field(max_length=20)] = ()
    """Machines (provider ids) whose drivers published other devices than predicted."""
    times: Annotated[int, Field(ge=0)] = 0
    """The number of quarantines; each one lasts longer."""
    until: TimeText | None = None
    """Absent: counted, but not quarantined yet."""


class CapacityPoolStatus(ApiModel):
    """The observed state, and the state that must survive a restart."""

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
    """A CapacityPool; None if it cannot be used, with the reasons in `problems`."""
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
