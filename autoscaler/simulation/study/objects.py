"""A task's objects as its owner would write them: pods, the template of their claims, a PodGroup for a gang."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import CLAIM_TEMPLATES, POD_GROUPS, PODS, Resource
from autoscaler.kube.custom.schema import duration_text
from autoscaler.simulation.kubelets import RUNS_FOR
from autoscaler.simulation.study.task import Shape, Task
from instance_catalog.kubernetes.labels import CHECKPOINT_INTERVAL, EXPECTED_DURATION
from instance_catalog.types.catalog import Catalog

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


def product_names(catalog: Catalog) -> Mapping[str, tuple[str, ...]]:
    """By common name (H100), the possible NVML names of its accelerators; without unknown ones."""
    found: dict[str, list[str]] = {}
    for accelerator in catalog.accelerators.values():
        names = accelerator.product_names or ((accelerator.product_name,) if accelerator.product_name else ())
        if accelerator.vendor == "NVIDIA" and not accelerator.virtual:
            found.setdefault(accelerator.model, []).extend(names)
    return {model: tuple(dict.fromkeys(names)) for model, names in found.items() if names}


def template_name(shape: Shape) -> str:
    """Equal claims share a template."""
    claims = json.dumps([shape.gpus, shape.models, shape.device_class, shape.selectors])
    return f"devices-{sha256(claims.encode()).hexdigest()[:10]}"


def claim_template(shape: Shape, names: Mapping[str, tuple[str, ...]]) -> Object:
    """The ResourceClaimTemplate of a shape; `names` are the product names by model."""
    products = [name for model in shape.models for name in names[model]]
    selectors = list(shape.selectors)
    if products:
        listed = ", ".join(f"'{name}'" for name in products)
        selectors.append(f"device.attributes['gpu.nvidia.com'].productName in [{listed}]")
    exactly: dict[str, Any] = {"deviceClassName": shape.device_class, "count": shape.gpus}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    spec = {"spec": {"devices": {"requests": [{"name": "devices", "exactly": exactly}]}}}
    return {"metadata": {"name": template_name(shape), "namespace": "default"}, "spec": spec}


def task_objects(task: Task) -> Iterator[tuple[Resource, Object]]:
    """The pods of a task, after its PodGroup if it is a gang."""
    if task.gang:
        group = {"metadata": {"name": task.name, "namespace": "default"}, "spec": {"minMember": task.replicas}}
        yield POD_GROUPS, group
    for index in range(task.replicas):
        name = task.name if task.replicas == 1 else f"{task.name}-r{index}"
        yield PODS, _pod(task, name)


def templates_of(tasks: tuple[Task, ...], catalog: Catalog) -> Iterator[tuple[Resource, Object]]:
    """A template for each different claim."""
    names = product_names(catalog)
    shapes = {template_name(task.shape): task.shape for task in tasks if task.shape.gpus}
    for _, shape in sorted(shapes.items()):
        yield CLAIM_TEMPLATES, claim_template(shape, names)


def _pod(task: Task, name: str) -> Object:
    shape = task.shape
    container: dict[str, Any] = {"name": "main", "image": "simulated"}
    requests = {"cpu": f"{shape.cpu}m", "memory": f"{shape.memory}Mi"}
    container["resources"] = {"requests": {key: value for key, value in requests.items() if value[0] != "0"}}
    spec: dict[str, Any] = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if shape.gpus:
        container["resources"]["claims"] = [{"name": "devices"}]
        spec["resourceClaims"] = [{"name": "devices", "resourceClaimTemplateName": template_name(shape)}]
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if task.runs is not None:
        metadata["annotations"] = {RUNS_FOR: duration_text(task.runs)}
        if task.says_duration and task.runs:
            metadata["annotations"][EXPECTED_DURATION] = duration_text(task.runs)
    if task.checkpoint is not None:
        metadata.setdefault("annotations", {})[CHECKPOINT_INTERVAL] = duration_text(task.checkpoint)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{name}", "controller": True}
        metadata["ownerReferences"] = [owner]
    if task.gang:
        metadata["labels"] = {GROUP_LABEL: task.name}
    return {"metadata": metadata, "spec": spec}
