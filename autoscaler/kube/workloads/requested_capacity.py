"""PodTemplates, ProvisioningRequests and CapacityBuffers, and the workloads that a buffer may refer to.

Facts: autoscaling.x-k8s.io v1 (ProvisioningRequest) and v1beta1 (CapacityBuffer), cluster-autoscaler/apis of 2026-08.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from autoscaler.kube.autoscalers.other_autoscalers import parse_autoscaler
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.pod import NO_PRIORITIES, parse_pod_template
from autoscaler.kube.priority import PriorityClass
from autoscaler.kube.problem import Problems
from autoscaler.kube.workloads.stamping import MOST_PODS
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.other_autoscalers import Autoscaler
from autoscaler.model.pod import Pod
from autoscaler.model.requested_capacity import (
    CapacityBuffer,
    Condition,
    PodSet,
    PodTemplate,
    ProvisioningRequest,
    Scalable,
    ScalableRef,
)
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

_MOST_POD_SETS: Final = 32
_STATUS_TEXTS: Final = ("provisioningStrategy",)
_STATUS_NUMBERS: Final = ("replicas", "podTemplateGeneration")


def parse_pod_template_object(
    raw: object,
    problems: Problems | None = None,
    *,
    origin: Origin = CLUSTER,
    priorities: Mapping[str, PriorityClass] = NO_PRIORITIES,
) -> PodTemplate:
    fields = Fields(raw, problems)
    fields.ignore("apiVersion", "kind")
    metadata = parse_metadata(fields)
    template = fields.child("template")
    pod = _pod_of(template, metadata.namespace, metadata.name, origin=origin, priorities=priorities)
    fields.unread()
    return PodTemplate(metadata.namespace, metadata.name, pod, metadata.generation, origin)


def _pod_of(
    template: Fields, namespace: str, name: str, *, origin: Origin, priorities: Mapping[str, PriorityClass]
) -> Pod:
    return parse_pod_template(template, namespace=namespace, name=name, labels={}, origin=origin, priorities=priorities)


def parse_provisioning_request(
    raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> ProvisioningRequest:
    """A ProvisioningRequest, also one with defects, of any class."""
    fields = Fields(raw, problems)
    fields.ignore("apiVersion", "kind")
    metadata = parse_metadata(fields)
    spec, status = fields.child("spec"), fields.child("status")
    pod_sets = tuple(_pod_set(entry) for entry in spec.children("podSets"))
    if not 1 <= len(pod_sets) <= _MOST_POD_SETS:
        step = f"list 1 to {_MOST_POD_SETS} sets of a podTemplateRef and a count"
        spec.error("podSets", f"there are {len(pod_sets)} pod sets", step)
    too_many, total = 0, sum(pod_set.count for pod_set in pod_sets)
    if total > MOST_PODS:
        spec.error("podSets", f"{total} pods are more than {MOST_PODS}", "split it into several requests")
        pod_sets, too_many = (), total
    found = ProvisioningRequest(
        namespace=metadata.namespace,
        name=metadata.name,
        class_name=spec.required("provisioningClassName"),
        pod_sets=pod_sets,
        parameters=spec.text_map("parameters"),
        uid=metadata.uid,
        conditions=tuple(_conditions(status)),
        details=status.text_map("provisioningClassDetails"),
        created=metadata.created,
        generation=metadata.generation,
        resource_version=metadata.resource_version,
        deleting=metadata.deleting,
        too_many=too_many,
        origin=origin,
    )
    spec.unread()
    fields.unread()
    return found


def _pod_set(entry: Fields) -> PodSet:
    reference = entry.child("podTemplateRef")
    found = PodSet(reference.required("name"), entry.integer("count"))
    if found.count < 1:
        entry.error("count", "must be at least 1", "say how many pods of the template there will be")
        found = PodSet(found.template, 0)
    reference.unread()
    entry.unread()
    return found


def _conditions(status: Fields) -> Iterator[Condition]:
    for entry in status.children("conditions"):
        yield Condition(
            type=entry.text("type"),
            status=entry.text("status"),
            reason=entry.text("reason"),
            message=entry.text("message"),
            since=entry.time("lastTransitionTime"),
            generation=entry.integer("observedGeneration"),
        )


def parse_capacity_buffer(raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER) -> CapacityBuffer:
    """A CapacityBuffer of any strategy."""
    fields = Fields(raw, problems)
    fields.ignore("apiVersion", "kind")
    metadata = parse_metadata(fields)
    spec, status = fields.child("spec"), fields.child("status")
    template, scalable = spec.optional_child("podTemplateRef"), spec.optional_child("scalableRef")
    if (template is None) == (scalable is None):
        spec.error("podTemplateRef", "needs either podTemplateRef or scalableRef", "keep one of the two")
    reference = None
    if scalable is not None:
        reference = ScalableRef(scalable.text("apiGroup"), scalable.required("kind"), scalable.required("name"))
        scalable.unread()
    amounts = {name: _amount(spec, name) for name in ("replicas", "percentage")}
    limits = spec.quantities("limits") if "limits" in spec else None
    found = CapacityBuffer(
        namespace=metadata.namespace,
        name=metadata.name,
        strategy=spec.text("provisioningStrategy"),
        template=template.required("name") if template is not None else "",
        scalable=reference,
        replicas=amounts["replicas"],
        percentage=amounts["percentage"],
        limits=limits,
        uid=metadata.uid,
        conditions=tuple(_conditions(status)),
        status=_status_texts(status),
        created=metadata.created,
        generation=metadata.generation,
        resource_version=metadata.resource_version,
        deleting=metadata.deleting,
        odd=(*_odd_reference(template, scalable), *_odd_amounts(spec, amounts, limits)),
        origin=origin,
    )
    if template is not None:
        template.unread()
    spec.unread()
    fields.unread()
    return found


def _status_texts(status: Fields) -> FrozenMap[str, str]:
    texts = {name: status.text(name) for name in _STATUS_TEXTS if name in status}
    texts |= {name: str(status.integer(name)) for name in _STATUS_NUMBERS if name in status}
    seen = status.optional_child("podTemplateRef")
    if seen is not None:
        texts["podTemplateRef"] = seen.text("name")
    return FrozenMap(texts) if texts else EMPTY


def _odd_reference(template: Fields | None, scalable: Fields | None) -> Iterator[str]:
    if (template is None) == (scalable is None):
        which = "podTemplateRef and scalableRef at once" if template is not None else "a spec without a reference"
        yield f"{which} (keep one of podTemplateRef and scalableRef)"


def _odd_amounts(
    spec: Fields, amounts: Mapping[str, int | None], limits: Mapping[str, Quantity] | None
) -> Iterator[str]:
    for name, amount in amounts.items():
        if amount is None and name in spec:
            yield f"a value of {name} outside 0 … {MOST_PODS} (ask for fewer)"
    if limits is not None:
        for name in spec.child("limits").names():
            if name not in limits:
                yield f"limits.{name} as written (write a quantity such as 4 or 16Gi)"


def _amount(spec: Fields, name: str) -> int | None:
    found = spec.optional_integer(name)
    if found is not None and not 0 <= found <= MOST_PODS:
        spec.error(name, f"{found} is outside 0 … {MOST_PODS}", "ask for fewer")
        return None
    return found


def parse_scalable(raw: object, kind: str) -> Scalable:
    """A workload of the group apps that a CapacityBuffer may refer to. Its defects are not reported: it was not written
    for Foreslice."""
    fields = Fields(raw)
    metadata, spec = parse_metadata(fields), fields.child("spec")
    pod = _pod_of(spec.child("template"), metadata.namespace, metadata.name, origin=CLUSTER, priorities=NO_PRIORITIES)
    return Scalable("apps", kind, metadata.namespace, metadata.name, spec.integer("replicas", 1), pod)


def parse_deployment(raw: object, problems: Problems | None = None) -> Autoscaler | Scalable:
    """The autoscaler that the Deployment runs; otherwise a workload that a CapacityBuffer may refer to."""
    return parse_autoscaler(raw, problems) or parse_scalable(raw, "Deployment")


def parse_stateful_set(raw: object, problems: Problems | None = None) -> Scalable:
    """A workload that a CapacityBuffer may refer to."""
    return parse_scalable(raw, "StatefulSet")
