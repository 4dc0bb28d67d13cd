"""Reads the pod template and the number of pods of a CapacityBuffer, by the rules of the API.

The number is the larger one of `replicas` and `percentage` of the workload, at most `limits`. Without both it is the
number of pods that `limits` allow (autoscaling.x-k8s.io/v1beta1, 2026-08).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from autoscaler.dra.allocation.requests import MAX_DEVICES_PER_CLAIM
from autoscaler.kube.workloads.stamping import MOST_PODS
from autoscaler.model.other_autoscalers import Autoscaler
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.requested_capacity import CapacityBuffer
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import unreadable
from autoscaler.scheduling.resources import pod_requests, units
from instance_catalog.dataclass import dataclass

# The name of the devices of a class in a ResourceQuota.
_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"


@dataclass(frozen=True, slots=True)
class BufferNeed:
    """The demand of a buffer: `replicas` times `pod`. With `problems` it demands nothing.

    `template` is the name of its PodTemplate, "" for a workload; `generation` is that of the template.
    """

    pod: Pod | None = None
    replicas: int = 0
    template: str = ""
    generation: int = 0
    problems: tuple[Reason, ...] = ()


def other_server(snapshot: Snapshot) -> Autoscaler | None:
    """Another autoscaler that serves every CapacityBuffer, whatever its strategy is."""
    return next((other for other in snapshot.autoscalers if other.buffers), None)


def need_of(buffer: CapacityBuffer, snapshot: Snapshot) -> BufferNeed:
    """The demand of the buffer; nothing if another autoscaler serves it."""
    if not buffer.served:
        return BufferNeed()
    other = other_server(snapshot)
    if other is not None:
        return BufferNeed(problems=(Reason.of(Code.BUFFERS_SERVED, Subject(other.key), kind=other.kind.value),))
    odd = [*buffer.odd, *_negative(buffer)]
    if odd:
        return _unsupported(buffer, *odd)
    pod, current, template, generation = _shape(buffer, snapshot)
    if pod is None:
        return BufferNeed(problems=tuple(_missing(buffer, snapshot)))
    named = [entry.name for entry in pod.claims if entry.claim]
    if named:
        feature = (
            f"resourceClaimName of {named[0]}: one claim is not enough for more pods; use resourceClaimTemplateName"
        )
        return _unsupported(buffer, feature)
    wanted = _wanted(buffer, current)
    bounds = list(_bounds(buffer, pod, snapshot))
    if wanted is None and not bounds:
        feature = "neither replicas, nor percentage, nor a limit on what its pods request"
        return _unsupported(buffer, feature)
    small = list(_too_small(buffer, pod, snapshot))
    if small:
        return _unsupported(buffer, *small)
    replicas = min([MOST_PODS, *bounds, *([] if wanted is None else [wanted])])
    return BufferNeed(pod, replicas, template, generation)


def _unsupported(buffer: CapacityBuffer, *features: str) -> BufferNeed:
    subject = Subject("CapacityBuffer", buffer.key)
    return BufferNeed(problems=tuple(Reason.of(Code.UNSUPPORTED, subject, feature=each) for each in features))


def _negative(buffer: CapacityBuffer) -> Iterator[str]:
    for resource, limit in buffer.limits.items() if buffer.limits is not None else ():
        if units(resource, limit) < 0:
            yield f"limits.{resource} below zero (write at least 0, or leave the limit out)"


def _shape(buffer: CapacityBuffer, snapshot: Snapshot) -> tuple[Pod | None, int, str, int]:
    """(pod, replicas of the workload, name of the template, its generation)."""
    if buffer.scalable is None:
        found = snapshot.pod_templates.get(f"{buffer.namespace}/{buffer.template}")
        return (None, 0, "", 0) if found is None else (found.pod, 0, found.name, found.generation)
    mine = (each for each in snapshot.scalables if each.namespace == buffer.namespace)
    scalable = next((each for each in mine if each.reference == buffer.scalable), None)
    return (None, 0, "", 0) if scalable is None else (scalable.pod, scalable.replicas, "", 0)


def _missing(buffer: CapacityBuffer, snapshot: Snapshot) -> Iterator[Reason]:
    kind = "PodTemplate" if buffer.scalable is None else buffer.scalable.kind
    name = buffer.template if buffer.scalable is None else buffer.scalable.name
    subject = Subject(kind, f"{buffer.namespace}/{name}")
    if buffer.scalable is not None and (buffer.scalable.group, kind) not in _SCALABLE:
        known = "a Deployment or StatefulSet of the group apps"
        yield Reason.of(
            Code.UNSUPPORTED, Subject("CapacityBuffer", buffer.key), feature=f"scalableRef {kind}: name {known}"
        )
    elif kind in snapshot.unreadable:
        yield from unreadable(snapshot, subject, kind)
    else:
        yield Reason.of(Code.TEMPLATE_NOT_FOUND, subject)


_SCALABLE: Final = (("apps", "Deployment"), ("apps", "StatefulSet"))


def _wanted(buffer: CapacityBuffer, current: int) -> int | None:
    amounts = []
    if buffer.replicas is not None:
        amounts.append(buffer.replicas)
    if buffer.percentage is not None and buffer.scalable is not None:
        share = -(-current * buffer.percentage // 100)
        amounts.append(max(1, share) if buffer.percentage else 0)
    return max(amounts, default=None)


def _bounds(buffer: CapacityBuffer, pod: Pod, snapshot: Snapshot) -> Iterator[int]:
    """The number of pods that each limit allows. A limit on a resource that the pod does not request is ignored."""
    for _, limit, used in _limited(buffer, pod, snapshot):
        yield limit // used


def _too_small(buffer: CapacityBuffer, pod: Pod, snapshot: Snapshot) -> Iterator[str]:
    for resource, limit, used in _limited(buffer, pod, snapshot):
        if 0 < limit < used:
            every = f"; allocationMode All counts as {MAX_DEVICES_PER_CLAIM} devices" if _DEVICES in resource else ""
            yield f"limits.{resource} that does not hold one pod (raise it, or write 0 for no pods{every})"


def _limited(buffer: CapacityBuffer, pod: Pod, snapshot: Snapshot) -> Iterator[tuple[str, int, int]]:
    """(resource, limit, amount that one pod uses), for the resources that it uses."""
    used = {**pod_requests(pod), **_devices(pod, snapshot)}
    for resource, limit in buffer.limits.items() if buffer.limits is not None else ():
        if used.get(resource, 0) > 0:
            yield resource, units(resource, limit), used[resource]


def _devices(pod: Pod, snapshot: Snapshot) -> Mapping[str, int]:
    """The devices that its claims request, by class, with the names of a ResourceQuota."""
    counts: dict[str, int] = {}
    for entry in pod.claims:
        template = snapshot.claim_templates.get(f"{pod.namespace}/{entry.template}")
        for name, count in _counted(template.spec) if template is not None else ():
            counts[name] = counts.get(name, 0) + count
    return {f"{name}{_DEVICES}": count for name, count in counts.items()}


def _counted(claim: ResourceClaim) -> Iterator[tuple[str, int]]:
    """The devices of a claim by class. In a prioritized list every class counts with its largest amount, as in a
    ResourceQuota."""
    for request in claim.requests:
        match request:
            case DeviceRequest():
                yield request.device_class, _most(request)
            case FirstAvailable():
                largest: dict[str, int] = {}
                for each in request.subrequests:
                    largest[each.device_class] = max(_most(each), largest.get(each.device_class, 0))
                yield from largest.items()


def _most(request: DeviceRequest) -> int:
    """The devices that a request counts for.

    With allocationMode All the number is not known before the claim has a node. It counts as the maximum of a claim, as
    in a ResourceQuota (kubernetes/pkg/quota/v1/evaluator/core, 1.34).
    """
    return request.count if request.allocation_mode == "ExactCount" else MAX_DEVICES_PER_CLAIM
