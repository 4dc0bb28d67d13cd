"""CapacityBlock: a prepaid reservation, used until the provider takes its machines back."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from autoscaler.kube.custom.capacity_pool import DriversSpec
from autoscaler.kube.custom.objects import custom_object, read_spec, read_status
from autoscaler.kube.custom.schema import (
    NO_ENTRIES,
    ApiModel,
    Conditions,
    DurationText,
    Items,
    LabelKey,
    LabelValue,
    LongText,
    Name,
    Rule,
    Text,
    TimeText,
    duration,
    duration_text,
    moment,
    moment_text,
    taint_json,
)
from autoscaler.kube.custom.selectors import SelectorSpec, selector_json
from autoscaler.kube.problem import Problems
from autoscaler.model.capacity import (
    AtDeadline,
    CapacityBlock,
    Consumers,
    DeletionPolicy,
    Drain,
    Hold,
    UnknownDurationPolicy,
)
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import CAPACITY_BLOCK
from instance_catalog.kubernetes.taint import Taint

NO_TAINT: Final = "None"


class ConsumersSpec(ApiModel):
    """The pods that may use the block; absent selectors admit every pod that tolerates its taint."""

    namespace_selector: SelectorSpec | None = None
    pod_selector: SelectorSpec | None = None
    min_accelerators: Annotated[int, Field(ge=0)] = 0
    """Pods that claim fewer accelerators are not placed here, so that one device does not occupy a whole machine."""

    def model(self) -> Consumers:
        return Consumers(
            self.namespace_selector.model() if self.namespace_selector else None,
            self.pod_selector.model() if self.pod_selector else None,
            self.min_accelerators,
        )


class BlockTaint(ApiModel):
    """The taint that keeps other pods off the block's nodes."""

    key: LabelKey = CAPACITY_BLOCK
    value: LabelValue | None = None
    """Absent: the name of the block."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", "None"] = "NoSchedule"
    """None: no taint."""


class UnknownDuration(ApiModel):
    """The rule for pods that do not declare how long they run."""

    policy: Literal["Allow", "Deny"] = "Allow"
    min_remaining: DurationText = "0s"
    """With Allow: only while at least this much time of the block is left."""


class DrainSpec(ApiModel):
    """The end of the block, counted back from the time at which the provider takes the machines."""

    notice: DurationText = "30m"
    """The time between the notice to pods and nodes and the evictions."""
    budget: DurationText = "15m"
    """The longest time for evictions."""
    at_deadline: Literal["Delete", "Leave"] = "Delete"
    """The action for pods that remain at the end of the budget."""

    def model(self) -> Drain:
        return Drain(duration(self.notice), duration(self.budget), AtDeadline(self.at_deadline))


class CapacityBlockSpec(ApiModel):
    """The purchased capacity, its consumers and its end."""

    pool: Name
    """The CapacityPool whose node template, labels and mode the block's nodes get."""
    reservation: LongText = ""
    """The provider's id of the reservation."""
    reservation_tags: Annotated[dict[str, LongText], Field(max_length=50)] = NO_ENTRIES
    """Instead of an id: tags that exactly one reservation has."""
    instance_type: Text
    zone: Text
    count: Annotated[int, Field(ge=1, le=10000)]
    """The number of machines."""
    starts_at: TimeText
    ends_at: TimeText
    """The end of the purchased period; an extension at the provider takes precedence."""
    hold: Literal["Always", "WhileNeeded"] = "Always"
    """Always: all machines run from start to end. WhileNeeded: they are launched on demand and removed when idle."""
    consumers: ConsumersSpec = ConsumersSpec()
    taint: BlockTaint = BlockTaint()
    unknown_duration: UnknownDuration = UnknownDuration()
    max_wait: DurationText = "0s"
    """The longest time after its creation that a pod may wait for the block to begin, instead of getting a machine that
    costs more at once. 0s: pods do not wait. A pod's annotation foreslice.dev/max-wait takes precedence."""
    drain: DrainSpec = DrainSpec()
    drivers: DriversSpec = DriversSpec()
    deletion_policy: Literal["Retain", "Drain"] = "Retain"
    """The action for the nodes when this object is deleted."""

    RULES = (
        Rule(
            "self.startsAt < self.endsAt",
            "startsAt must be before endsAt",
            lambda self: moment(self.starts_at) < moment(self.ends_at),
            field="endsAt",
        ),
        Rule(
            "(self.reservation != '') != (size(self.reservationTags) > 0)",
            "name the reservation by its id or by tags: exactly one of reservation and reservationTags",
            lambda self: bool(self.reservation) != bool(self.reservation_tags),
            field="reservation",
        ),
        Rule(
            "self.instanceType == oldSelf.instanceType && self.zone == oldSelf.zone && "
            "self.reservation == oldSelf.reservation",
            "reservation, instanceType and zone cannot change: another reservation is another CapacityBlock",
        ),
    )


BlockPhaseName = Literal["Pending", "Active", "Notice", "Draining", "Ended"]


class BlockNodeStatus(ApiModel):
    """One of the block's nodes."""

    name: Name
    phase: Text
    pods: Annotated[int, Field(ge=0)] = 0


class CapacityBlockStatus(ApiModel):
    """The state of the reservation at the provider, and the phase of the block."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    conditions: Conditions = ()
    phase: BlockPhaseName = "Pending"
    reservation: LongText = ""
    """The id that was found by reservationTags."""
    reclaim_at: TimeText | None = None
    """The time at which the provider takes the machines back, according to the provider, after extensions."""
    available: Annotated[int, Field(ge=0)] | None = None
    """The number of further machines that the provider would start now."""
    note: Annotated[str, StringConstraints(max_length=4096)] = ""
    """The reason why the reservation cannot be used, or the impaired part of it."""
    nodes: Annotated[Items[BlockNodeStatus], Field(max_length=10000)] = ()


def parse_capacity_block(
    raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> CapacityBlock | None:
    """A CapacityBlock; None if it cannot be used. The provider's answer (its status) overrides the spec."""
    metadata, spec = read_spec(CapacityBlockSpec, raw, problems)
    if spec is None:
        return None
    status = read_status(CapacityBlockStatus, raw, problems) or CapacityBlockStatus()
    return CapacityBlock(
        name=metadata.name,
        instance_type=spec.instance_type,
        zone=spec.zone,
        count=spec.count,
        starts_at=moment(spec.starts_at),
        ends_at=moment(spec.ends_at),
        pool=spec.pool,
        reservation=spec.reservation or status.reservation,
        reservation_tags=FrozenMap(spec.reservation_tags),
        hold=Hold(spec.hold),
        consumers=spec.consumers.model(),
        taint=_taint(spec.taint, metadata.name),
        unknown_duration=UnknownDurationPolicy(spec.unknown_duration.policy),
        min_remaining=duration(spec.unknown_duration.min_remaining),
        max_wait=duration(spec.max_wait),
        drain=spec.drain.model(),
        reclaim_at=moment(status.reclaim_at) if status.reclaim_at else None,
        available=status.available,
        note=status.note,
        drivers=spec.drivers.model(),
        deletion_policy=DeletionPolicy(spec.deletion_policy),
        uid=metadata.uid,
        generation=metadata.generation,
        origin=origin,
    )


def _taint(spec: BlockTaint, block: str) -> Taint | None:
    if spec.effect == NO_TAINT:
        return None
    return Taint(spec.key, block if spec.value is None else spec.value, spec.effect)


def write_capacity_block(block: CapacityBlock) -> dict[str, Any]:
    """The manifest of a block (spec only; its status is written separately)."""
    taint = block.taint
    spec = CapacityBlockSpec.model_validate(
        {
            "pool": block.pool,
            "reservation": "" if block.reservation_tags else block.reservation,
            "reservationTags": dict(block.reservation_tags),
            "instanceType": block.instance_type,
            "zone": block.zone,
            "count": block.count,
            "startsAt": moment_text(block.starts_at),
            "endsAt": moment_text(block.ends_at),
            "hold": block.hold.value,
            "consumers": {
                "namespaceSelector": selector_json(block.consumers.namespace_selector),
                "podSelector": selector_json(block.consumers.pod_selector),
                "minAccelerators": block.consumers.min_accelerators,
            },
            "taint": taint_json(taint) if taint else {"effect": NO_TAINT},
            "unknownDuration": {
                "policy": block.unknown_duration.value,
                "minRemaining": duration_text(block.min_remaining),
            },
            "maxWait": duration_text(block.max_wait),
            "drain": {
                "notice": duration_text(block.drain.notice),
                "budget": duration_text(block.drain.budget),
                "atDeadline": block.drain.at_deadline.value,
            },
            "drivers": DriversSpec.of(block.drivers).manifest(),
            "deletionPolicy": block.deletion_policy.value,
        }
    )
    return custom_object("CapacityBlock", block.name, spec=spec, uid=block.uid)
