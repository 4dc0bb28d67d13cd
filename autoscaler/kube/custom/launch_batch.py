"""LaunchBatch: the write-ahead record of machines launched together. Every repetition derives from its spec."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from autoscaler.errors import BadInputError
from autoscaler.kube.custom.capacity_pool import TemplateReference
from autoscaler.kube.custom.launch_parts import Offerings, OfferingSpec, PredictionSpec
from autoscaler.kube.custom.objects import RESTORE, custom_object, read_own
from autoscaler.kube.custom.schema import (
    NO_ENTRIES,
    ApiModel,
    Conditions,
    DurationText,
    Items,
    LongText,
    Name,
    PodKeys,
    Quantities,
    RecordedLabels,
    RecordedTaint,
    Rule,
    TimeText,
    duration,
    duration_text,
    moment,
    moment_text,
    taint_json,
)
from autoscaler.model.capacity import NodeTemplateRef
from autoscaler.model.provisioned_node import BatchMember, BatchOutcome, LaunchBatch, OfferingRef
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import GROUP, POOL
from instance_catalog.kubernetes.quantity import Quantity

# Keeps a deleted LaunchBatch until its call has an answer, or is given up.
FINALIZER: Final = f"{GROUP}/launch"
_NODES = 100


class LaunchBatchSpec(ApiModel):
    """The input of the provider calls and the ProvisionedNodes."""

    pool: Name
    nodes: Annotated[Items[Name], Field(min_length=1, max_length=_NODES)]
    """Names of the nodes and of their ProvisionedNodes."""
    offerings: Offerings
    minimum: Annotated[int, Field(ge=1, le=_NODES)] = 1
    """The least number of machines: if fewer are available, none is launched."""
    pods: Annotated[Items[PodKeys], Field(max_length=_NODES)] = ()
    """Keys of the pods for each node, in the order of nodes."""
    prediction: PredictionSpec | None = None
    labels: RecordedLabels = NO_ENTRIES
    taints: Annotated[Items[RecordedTaint], Field(max_length=128)] = ()
    kubelet_reserved: Quantities = NO_ENTRIES
    node_template_ref: TemplateReference | None = None
    boot_timeout: DurationText | None = None
    """The boot timeout of each of its nodes."""
    whole: bool = False
    """True if its nodes are the hosts of one slice, which are launched together and end together."""
    replaces: Annotated[Items[Name], Field(max_length=100)] = ()
    """ProvisionedNodes whose pods move to its nodes."""

    RULES = (
        Rule("self == oldSelf", "a LaunchBatch's spec cannot change"),
        Rule(
            "self.minimum <= size(self.nodes)",
            "minimum cannot exceed the number of nodes",
            lambda self: self.minimum <= len(self.nodes),
            field="minimum",
        ),
    )


class LaunchBatchStatus(ApiModel):
    """The progress of the launch."""

    observed_generation: Annotated[int, Field(ge=0)] = 1
    """The generation of its only spec, which never changes."""
    conditions: Conditions = ()
    outcome: Literal["Intended", "Calling", "Launched", "Failed"] = "Intended"
    provider: LongText = ""
    place: LongText = ""
    """The account and region of the attempt, as account/region. A missing part is unknown."""
    attempt: Annotated[int, Field(ge=0)] = 0
    """Index of the offering that is requested."""
    token: LongText = ""
    """Idempotency token of the attempt."""
    waiting_since: TimeText | None = None
    """The time at which the provider began to hold the request, until all machines can start. Nothing is paid
    before."""
    parameter_hash: LongText = ""
    """Hash of the attempt's parameters; a repetition must have the same."""
    instances: Annotated[Items[LongText], Field(max_length=_NODES)] = ()
    """Ids at the provider in the order of nodes, empty for nodes without a machine."""
    instance_ids: Annotated[Items[LongText], Field(alias="instanceIDs", max_length=_NODES)] = ()
    """Values that distinguish each of them from other machines with the same id; absent if ids are not used again."""
    obtained: Annotated[Items[int], Field(max_length=_NODES)] = ()
    """Index of the offering that each node got, -1 for none."""


def parse_launch_batch(raw: object) -> LaunchBatch:
    """A LaunchBatch as read from the API. Raises BadInputError if it is not one that Foreslice wrote."""
    metadata, spec, status = read_own(LaunchBatchSpec, LaunchBatchStatus, raw, "LaunchBatch")
    if not _agrees(spec, status):
        raise BadInputError(
            f"LaunchBatch {metadata.name!r} cannot be read: its status is not one of its nodes and offerings",
            next_step=RESTORE,
        )
    reference = spec.node_template_ref
    offerings = tuple(offering.model for offering in spec.offerings)
    return LaunchBatch(
        name=metadata.name,
        pool=spec.pool,
        members=tuple(_members(spec, status, offerings)),
        offerings=offerings,
        attempt=status.attempt,
        token=status.token,
        parameter_hash=status.parameter_hash,
        answered=bool(status.instances),
        outcome=BatchOutcome(status.outcome),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        minimum=spec.minimum,
        provider=status.provider,
        place=status.place,
        waiting_since=moment(status.waiting_since) if status.waiting_since else None,
        prediction=spec.prediction.model() if spec.prediction else None,
        labels=FrozenMap(spec.labels),
        taints=tuple(taint.model() for taint in spec.taints),
        kubelet_reserved=FrozenMap({k: Quantity.parse(str(v)) for k, v in spec.kubelet_reserved.items()}),
        template=NodeTemplateRef(reference.kind, reference.name) if reference else NodeTemplateRef(),
        boot_timeout=duration(spec.boot_timeout) if spec.boot_timeout else None,
        whole=spec.whole,
        replaces=spec.replaces,
        deleting=metadata.deleting,
        guarded=FINALIZER in metadata.finalizers,
    )


def _members(
    spec: LaunchBatchSpec, status: LaunchBatchStatus, offerings: tuple[OfferingRef, ...]
) -> Iterator[BatchMember]:
    none = ((),) * len(spec.nodes), ("",) * len(spec.nodes), (-1,) * len(spec.nodes)
    pods, instances, obtained = spec.pods or none[0], status.instances or none[1], status.obtained or none[2]
    ids = status.instance_ids or none[1]
    for node, keys, machine, own, index in zip(spec.nodes, pods, instances, ids, obtained, strict=True):
        yield BatchMember(node, keys, machine, offerings[index] if machine else None, own)


def _agrees(spec: LaunchBatchSpec, status: LaunchBatchStatus) -> bool:
    """True if the lists have an entry for each node, and every obtained offering is among the requested ones."""
    lists = (status.instances, status.instance_ids, status.obtained, spec.pods)
    got = zip(status.instances, status.obtained, strict=False)
    return (
        all(len(found) in (0, len(spec.nodes)) for found in lists)
        and len(status.instances) == len(status.obtained)
        and all(0 <= index < len(spec.offerings) if machine else index >= -1 for machine, index in got)
        and status.attempt < len(spec.offerings) + (status.outcome != "Calling")
    )


def write_launch_batch(batch: LaunchBatch) -> dict[str, Any]:
    """The manifest with spec and status; its resourceVersion guards the write if the batch was read before."""
    kind, name = batch.template
    spec = LaunchBatchSpec.model_validate(
        {
            "pool": batch.pool,
            "nodes": batch.nodes,
            "offerings": [OfferingSpec.of(offering) for offering in batch.offerings],
            "minimum": batch.minimum,
            "pods": tuple(member.pods for member in batch.members),
            "prediction": PredictionSpec.of(batch.prediction) if batch.prediction else None,
            "labels": dict(batch.labels),
            "taints": [taint_json(taint) for taint in batch.taints],
            "kubeletReserved": {key: str(value) for key, value in batch.kubelet_reserved.items()},
            "nodeTemplateRef": {"kind": kind, "name": name} if kind else None,
            "bootTimeout": duration_text(batch.boot_timeout) if batch.boot_timeout else None,
            "whole": batch.whole,
            "replaces": batch.replaces,
        }
    )
    return custom_object(
        "LaunchBatch",
        batch.name,
        spec=spec,
        status=_status(batch),
        uid=batch.uid,
        version=batch.resource_version,
        labels={POOL: batch.pool},
    )


def _status(batch: LaunchBatch) -> LaunchBatchStatus:
    members = batch.members if batch.answered else ()
    return LaunchBatchStatus.model_validate(
        {
            "outcome": batch.outcome.value,
            "provider": batch.provider,
            "place": batch.place,
            "attempt": batch.attempt,
            "token": batch.token,
            "waitingSince": moment_text(batch.waiting_since) if batch.waiting_since else None,
            "parameterHash": batch.parameter_hash,
            "instances": tuple(member.provider_id for member in members),
            "instanceIDs": ids if any(ids := tuple(member.instance_id for member in members)) else (),
            "obtained": tuple(-1 if m.obtained is None else batch.offerings.index(m.obtained) for m in members),
        }
    )
