"""ProvisionedNode (pnode): one requested node. Only Foreslice writes it; its spec never changes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from autoscaler.kube.custom.launch_parts import (
    Offerings,
    OfferingSpec,
    PredictionSpec,
    Reasons,
    reasons_json,
    reasons_model,
)
from autoscaler.kube.custom.objects import custom_object, read_own
from autoscaler.kube.custom.schema import (
    NO_ENTRIES,
    ApiModel,
    Conditions,
    DurationText,
    Items,
    LongText,
    Name,
    PodKeys,
    RecordedLabels,
    Rule,
    TimeText,
    duration,
    duration_text,
    moment,
    moment_text,
)
from autoscaler.model.provisioned_node import Phase, PhaseChange, ProvisionedNode
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import POOL

# The number of history entries of a node; the latest are kept.
_HISTORY = 50
_LONGEST_REASON = 253
# The phases that are also conditions, for `kubectl wait`.
_MILESTONES = (Phase.LAUNCHED, Phase.REGISTERED, Phase.DRIVERS_READY, Phase.READY)

PhaseName = Literal[
    "Intended",
    "Launching",
    "Launched",
    "Registered",
    "DriversReady",
    "Ready",
    "Draining",
    "Terminating",
    "Gone",
    "Failed",
]


class ProvisionedNodeSpec(ApiModel):
    """The intent."""

    pool: Name
    node_name: Name
    """The name that the machine registers with."""
    batch: LongText = ""
    """The LaunchBatch that requests it; empty for an adopted machine."""
    offerings: Offerings
    """In order of preference, each proven to fit the same pods."""
    prediction: PredictionSpec
    labels: RecordedLabels = NO_ENTRIES
    pods: PodKeys = ()
    """Keys (namespace/name) of the pods for which it is launched."""
    boot_timeout: DurationText | None = None
    """The longest time from launch to Node, from its pool or node template at the launch. Absent: 15m."""
    hosts: Annotated[int, Field(ge=1)] = 1
    """The number of nodes in its LaunchBatch that are the hosts of one slice and end together. 1 for other nodes."""
    replaces: Annotated[Items[Name], Field(max_length=100)] = ()
    """ProvisionedNodes whose pods move to it, at less cost."""

    RULES = (Rule("self == oldSelf", "a ProvisionedNode's spec cannot change"),)


class HistoryEntry(ApiModel):
    """A phase that was entered."""

    phase: PhaseName
    at: TimeText
    reason: LongText = ""


class ProvisionedNodeStatus(ApiModel):
    """The progress of the node."""

    observed_generation: Annotated[int, Field(ge=0)] = 1
    """The generation of its only spec, which never changes."""
    conditions: Conditions = ()
    phase: PhaseName = "Intended"
    phase_since: TimeText | None = None
    obtained: OfferingSpec | None = None
    """The offering that was available."""
    provider: LongText = ""
    provider_id: Annotated[LongText, Field(alias="providerID")] = ""
    """The id of the machine at its provider."""
    instance_id: Annotated[LongText, Field(alias="instanceID")] = ""
    """A value that distinguishes the machine from another one that its group creates with the same name, and so with
    the same providerID. Empty if names are not used again."""
    recreated_as: LongText = ""
    """The instanceID of such another machine. The node is drained, and that machine is ended."""
    place: LongText = ""
    """The account and region of the machine, as account/region. A missing part is unknown."""
    node_name: LongText = ""
    """The Node with this id, if the cloud names nodes itself; until it registers, spec.nodeName is expected."""
    token: LongText = ""
    reasons: Reasons = ()
    empty_since: TimeText | None = None
    unhealthy_since: TimeText | None = None
    """The time at which its Node, once ready, became not ready."""
    reclaim_at: TimeText | None = None
    """The time at which the provider takes the machine back, if it has announced this."""
    noticed_at: TimeText | None = None
    """The end in a notice that the provider does not repeat."""
    stopped_since: TimeText | None = None
    """The time at which its machine was stopped. It is left alone until it is started again or the node is deleted."""
    history: Annotated[Items[HistoryEntry], Field(max_length=_HISTORY)] = ()


def parse_provisioned_node(raw: object) -> ProvisionedNode:
    """A ProvisionedNode as read from the API. Raises BadInputError if it is not one that Foreslice wrote."""
    metadata, spec, status = read_own(ProvisionedNodeSpec, ProvisionedNodeStatus, raw, "ProvisionedNode")
    return ProvisionedNode(
        name=metadata.name,
        pool=spec.pool,
        node_name=status.node_name or spec.node_name,
        batch=spec.batch,
        offerings=tuple(offering.model for offering in spec.offerings),
        prediction=spec.prediction.model(),
        phase=Phase(status.phase),
        phase_since=moment(status.phase_since) if status.phase_since else None,
        obtained=status.obtained.model if status.obtained else None,
        provider=status.provider,
        provider_id=status.provider_id,
        instance_id=status.instance_id,
        recreated_as=status.recreated_as,
        place=status.place,
        token=status.token,
        labels=FrozenMap(spec.labels),
        pods=spec.pods,
        boot_timeout=duration(spec.boot_timeout) if spec.boot_timeout else None,
        hosts=spec.hosts,
        replaces=spec.replaces,
        reasons=reasons_model(status.reasons),
        empty_since=moment(status.empty_since) if status.empty_since else None,
        unhealthy_since=moment(status.unhealthy_since) if status.unhealthy_since else None,
        reclaim_at=moment(status.reclaim_at) if status.reclaim_at else None,
        noticed_at=moment(status.noticed_at) if status.noticed_at else None,
        stopped_since=moment(status.stopped_since) if status.stopped_since else None,
        history=tuple(PhaseChange(Phase(entry.phase), moment(entry.at), entry.reason) for entry in status.history),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        deleting=metadata.deleting,
        created=metadata.created,
    )


def write_provisioned_node(node: ProvisionedNode) -> dict[str, Any]:
    """The manifest with spec and status; its resourceVersion guards the write if the node was read before."""
    spec = ProvisionedNodeSpec.model_validate(
        {
            "pool": node.pool,
            "nodeName": node.node_name,
            "batch": node.batch,
            "offerings": [OfferingSpec.of(offering) for offering in node.offerings],
            "prediction": PredictionSpec.of(node.prediction),
            "labels": dict(node.labels),
            "pods": node.pods,
            "bootTimeout": duration_text(node.boot_timeout) if node.boot_timeout else None,
            "hosts": node.hosts,
            "replaces": node.replaces,
        }
    )
    return custom_object(
        "ProvisionedNode",
        node.name,
        spec=spec,
        status=_status(node),
        uid=node.uid,
        version=node.resource_version,
        labels={POOL: node.pool},
    )


def _status(node: ProvisionedNode) -> ProvisionedNodeStatus:
    return ProvisionedNodeStatus.model_validate(
        {
            "conditions": _conditions(node),
            "phase": node.phase.value,
            "phaseSince": moment_text(node.phase_since) if node.phase_since else None,
            "obtained": OfferingSpec.of(node.obtained) if node.obtained else None,
            "provider": node.provider,
            "providerID": node.provider_id,
            "instanceID": node.instance_id,
            "recreatedAs": node.recreated_as,
            "place": node.place,
            "nodeName": node.node_name if node.node_name != node.name else "",
            "token": node.token,
            "reasons": reasons_json(node.reasons),
            "emptySince": moment_text(node.empty_since) if node.empty_since else None,
            "unhealthySince": moment_text(node.unhealthy_since) if node.unhealthy_since else None,
            "reclaimAt": moment_text(node.reclaim_at) if node.reclaim_at else None,
            "noticedAt": moment_text(node.noticed_at) if node.noticed_at else None,
            "stoppedSince": moment_text(node.stopped_since) if node.stopped_since else None,
            "history": [
                {"phase": phase.value, "at": moment_text(at), "reason": reason}
                for phase, at, reason in node.history[-_HISTORY:]
            ],
        }
    )


def _conditions(node: ProvisionedNode) -> list[dict[str, Any]]:
    """The milestones, passed or not; Ready may become False again. Empty before the first phase."""
    if node.phase_since is None:
        return []
    passed = {phase: (at, why) for phase, at, why in node.history}
    began = node.history[0].at if node.history else node.phase_since
    found = {phase: (True, *passed[phase]) if phase in passed else (False, began, "NotYet") for phase in _MILESTONES}
    if node.phase is not Phase.READY and Phase.READY in passed:
        found[Phase.READY] = (False, node.phase_since, node.phase.value)
    elif node.unhealthy_since is not None:
        found[Phase.READY] = (False, node.unhealthy_since, "NodeNotReady")
    conditions = {phase.value: milestone for phase, milestone in found.items()}
    if node.stopped_since is not None:
        conditions["MachineStopped"] = (True, node.stopped_since, "Stopped")
    return [
        {
            "type": name,
            "status": str(holds),
            "reason": why[:_LONGEST_REASON] or name,
            "lastTransitionTime": moment_text(at),
        }
        | {"observedGeneration": 1}
        for name, (holds, at, why) in conditions.items()
    ]
