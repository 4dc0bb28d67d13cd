"""PriorityClasses, resolved into pods when these are read: the model has only numbers."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems, in_shell, left_by_template
from instance_catalog.dataclass import dataclass
from instance_catalog.spelling import did_you_mean

_POLICIES = ("PreemptLowerPriority", "Never")


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A scheduling.k8s.io/v1 PriorityClass."""

    name: str
    value: int
    global_default: bool = False


# Installed by every API server (pkg/apis/scheduling/v1/helpers.go, v1.36.3).
SYSTEM_CLASSES = (
    PriorityClass("system-node-critical", 2_000_001_000),
    PriorityClass("system-cluster-critical", 2_000_000_000),
)

# Installed with KAI Scheduler (kai-scheduler/KAI-Scheduler v0.17.0, templates/priorityclasses of its chart).
KAI_CLASSES = (
    PriorityClass("train", 50),
    PriorityClass("build-preemptible", 75),
    PriorityClass("build", 100),
    PriorityClass("inference", 125),
)


def parse_priority_class(raw: object, problems: Problems | None = None) -> PriorityClass:
    fields = Fields(raw, problems)
    fields.ignore("apiVersion", "kind", "description")
    metadata = parse_metadata(fields)
    if "value" not in fields:
        fields.error("value", "is required", "add the priority as a whole number")
    fields.choice("preemptionPolicy", _POLICIES, _POLICIES[0])  # only validated: plans preempt nothing
    found = PriorityClass(metadata.name, fields.integer("value"), fields.flag("globalDefault"))
    fields.unread()
    return found


def _add(name: str) -> str:
    """The step that adds a class to the files."""
    new = f"{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: {name}}}, value: 0}}"
    command = f"kubectl get priorityclass {in_shell(name)} -o yaml"
    return f"add it to the files (`{command}`), or, before it exists, with the value that it will have: {new}"


def resolve_priority(spec: Fields, classes: Mapping[str, PriorityClass]) -> int:
    """The priority of a pod spec, as the Priority admission plug-in would set it (v1.36.3).

    A priority in the spec wins: the pod was admitted. Without any class the default class counts, of several the one
    with the smallest value. Pods of KAI Scheduler can use its classes, too. Of a class that is not known the priority
    is 0: it decides only which pod comes first.
    """
    installed = (*SYSTEM_CLASSES, *(KAI_CLASSES if spec.text("schedulerName") == "kai-scheduler" else ()))
    known = {found.name: found for found in installed} | dict(classes)
    spec.ignore("preemptionPolicy")
    name = spec.text("priorityClassName")
    number = spec.optional_integer("priority")
    if number is not None:
        return number
    found = known.get(name)
    if name and found is None:
        step = left_by_template(name) or did_you_mean(name, known, _add(name))
        message = f"there is no PriorityClass {name!r} in the files: the API server refuses the pod without it"
        spec.warn("priorityClassName", f"{message}; planned with priority 0", step)
    if not name:
        defaults = [candidate for candidate in known.values() if candidate.global_default]
        found = min(defaults, key=lambda candidate: candidate.value, default=None)
    return found.value if found else 0
