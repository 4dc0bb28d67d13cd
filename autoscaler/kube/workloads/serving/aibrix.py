"""StormService, RoleSet and PodSet of AIBrix (orchestration.aibrix.ai): roles with replicas of one or several pods.

Ported rules: vllm-project/aibrix e3e10f9, api/orchestration/v1alpha1 and pkg/controller/roleset (podset_rollsyncer.go,
and the PodGroup of a scheduling strategy).
"""

from __future__ import annotations

from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander
from autoscaler.kube.workloads.other_projects import spread
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, Workload, count, stamp
from autoscaler.model.gang import Gang
from autoscaler.model.pod import GangRef
from instance_catalog.dataclass import replace

_OF_SERVICE: Final = ("selector", "stateful", "updateStrategy", "revisionHistoryLimit", "paused", "disruptionTolerance")
_OF_ROLE: Final = ("upgradeOrder", "updateStrategy", "stateful", "disruptionTolerance")
_OF_GANG: Final = ("minResources", "scheduleTimeoutSeconds", "queue", "priorityClassName")
_GANGS: Final = ("coschedulingSchedulingStrategy", "volcanoSchedulingStrategy")
_PODS: Final = "give the pods that its controller makes (kubectl get pods -o yaml)"


@expander
def expand_storm_service(fields: Fields, workload: Workload) -> Expansion:
    """The pods of all role sets: <service>-roleset-<set>-<role>-<replica>."""
    spec = fields.child("spec")
    spec.ignore(*_OF_SERVICE)
    template, found = spec.child("template"), Expansion()
    template.ignore("metadata")
    sets = _replicas(spec)
    for index in range(sets):
        # A mistake is reported for the first set only.
        of_set = template.child("spec") if index == 0 else Fields(template.raw("spec"))
        found += _role_set(of_set, workload, f"{workload.metadata.name}-roleset-{index}")
        if len(found.pods) > MOST_PODS:
            spec.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            found = Expansion()
            break
    template.ignore("spec")
    template.unread()
    spec.unread()
    return found


@expander
def expand_role_set(fields: Fields, workload: Workload) -> Expansion:
    """The pods of all roles: <set>-<role>-<replica>, with several to a replica <set>-<role>-<replica>-<index>."""
    return _role_set(fields.child("spec"), workload, workload.metadata.name)


@expander
def expand_pod_set(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a PodSet: <set>-<index>."""
    spec = fields.child("spec")
    spec.ignore("stateful", "recoveryPolicy", "podGroupSize")
    name = workload.metadata.name
    names = [f"{name}-{index}" for index in range(count(spec, "podGroupSize", 1))]
    found = _together(spec, stamp(spec.child("template"), workload, names), workload, name)
    spec.unread()
    return spread(found) if len(names) > 1 else found


def _replicas(holder: Fields) -> int:
    found = count(holder, "replicas", 1)
    if found == 0:
        holder.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    return found


def _role_set(spec: Fields, workload: Workload, name: str) -> Expansion:
    spec.ignore("updateStrategy")
    _topology(spec)
    if "roles" not in spec:
        spec.error("roles", "is required", "add the roles of the set")
    found = Expansion()
    for role in spec.children("roles"):
        found += _role(role, workload, name)
        if len(found.pods) > MOST_PODS:
            spec.error("roles", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
            return Expansion()
    found = _together(spec, found, workload, name)
    spec.unread()
    return found


def _topology(spec: Fields) -> None:
    if "topologyPolicy" in spec:
        message = "is not considered: the pods are planned without regard to which of them share a node or zone"
        spec.warn("topologyPolicy", message, f"to have it considered, {_PODS}")
    spec.ignore("topologyPolicy")


def _role(role: Fields, workload: Workload, group: str) -> Expansion:
    role.ignore(*_OF_ROLE)
    name, replicas, size = role.required("name"), _replicas(role), max(1, count(role, "podGroupSize", 1))
    labels = {"roleset-name": group, "role-name": name}
    if workload.kind == "StormService":
        labels["storm-service-name"] = workload.metadata.name
    if replicas * size > MOST_PODS:
        role.error("replicas", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        replicas = 0
    of_each = [f"{group}-{name}-{index}" for index in range(replicas)]
    names = of_each if size == 1 else [f"{one}-{index}" for one in of_each for index in range(size)]
    found = stamp(role.child("template"), workload, names, labels=labels)
    if size == 1:
        found = _together(role, found, workload, f"{group}-{name}")
    else:
        made = [
            _together(role, replace(found, pods=found.pods[first : first + size]), workload, one)
            for first, one in zip(range(0, len(names), size), of_each, strict=True)
        ]
        gangs = tuple(gang for one in made for gang in one.gangs)
        found = spread(replace(found, pods=tuple(pod for one in made for pod in one.pods), gangs=gangs))
    role.ignore("schedulingStrategy")
    role.unread()
    return found


def _together(holder: Fields, made: Expansion, workload: Workload, name: str) -> Expansion:
    """The pods as the gang of a scheduling strategy, if the holder has one."""
    strategy = holder.child("schedulingStrategy")
    field = next((one for one in _GANGS if one in strategy), "")
    if strategy and not field:
        strategy.unsupported("godelSchedulingStrategy")
        pods = tuple(replace(pod, unsupported=(*pod.unsupported, "schedulingStrategy")) for pod in made.pods)
        return replace(made, pods=pods)
    if not field or not made.pods:
        return made
    policy, namespace = strategy.child(field), workload.metadata.namespace
    policy.ignore(*_OF_GANG)
    unsupported = policy.unsupported("minTaskMember")
    least = min(max(1, policy.integer("minMember", 1)), len(made.pods))
    gang = Gang(namespace, name, f"PodGroup of {workload.kind}", least, unsupported=unsupported, origin=workload.origin)
    pods = tuple(pod if pod.gang else replace(pod, gang=GangRef(namespace, name)) for pod in made.pods)
    return replace(made, pods=pods, gangs=(*made.gangs, gang))
