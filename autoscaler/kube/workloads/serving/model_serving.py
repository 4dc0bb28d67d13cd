"""ModelServing of Kthena (workload.serving.volcano.sh): groups of roles, each with an entry pod and workers.

Ported rules: volcano-sh/kthena 3cc0572, pkg/apis/workload/v1alpha1 (defaults),
pkg/model-serving-controller/utils/utils.go (names, labels, scheduler of pods) and podgroupmanager/manager.go (a
PodGroup for each serving group, if Volcano schedules it).
"""

from __future__ import annotations

from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.controllers import expander
from autoscaler.kube.workloads.stamping import MOST_PODS, Expansion, Workload, count, stamp
from autoscaler.model.gang import Gang
from autoscaler.model.pod import GangRef
from instance_catalog.dataclass import replace

_IGNORED: Final = ("recoveryPolicy", "rolloutStrategy")
_ROLE_IGNORED: Final = ("maxUnavailable", "partition")
_LABEL: Final = "modelserving.volcano.sh"
_VOLCANO: Final = "volcano"
_PODS: Final = "give the pods that its controller makes (kubectl get pods -o yaml)"


@expander
def expand_model_serving(fields: Fields, workload: Workload) -> Expansion:
    """The pods of all serving groups: <name>-<group>-<role>-<role index>-<pod index>."""
    return serving_groups(fields.child("spec"), workload)


def serving_groups(spec: Fields, workload: Workload) -> Expansion:
    """The pods of the spec of a ModelServing that has the name of the workload."""
    spec.ignore(*_IGNORED)
    if "plugins" in spec:
        spec.error("plugins", "changes pods by rules that are not known here", _PODS)
    spec.ignore("plugins")
    groups, scheduler = count(spec, "replicas", 1), spec.text("schedulerName") or _VOLCANO
    if groups == 0 and workload.metadata.controller is None:
        spec.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    template = spec.child("template")
    template.ignore("restartGracePeriodSeconds")
    _topology(template)
    found = _groups(template, workload, groups, scheduler=scheduler)
    template.unread()
    spec.unread()
    return found


def _topology(template: Fields) -> None:
    if "networkTopology" in template:
        message = "is not considered: the pods are planned without regard to switches"
        template.warn("networkTopology", message, "give the pool nodes of one block or placement group")
    template.ignore("networkTopology")


def _groups(template: Fields, workload: Workload, groups: int, *, scheduler: str) -> Expansion:
    found = Expansion()
    roles = list(template.children("roles"))
    policy = template.child("gangPolicy")
    least = policy.child("minRoleReplicas")
    policy.ignore("minRoleReplicas")
    policy.unread()
    if groups * sum(map(_pods_of, roles)) > MOST_PODS:
        template.error("roles", f"more than {MOST_PODS} pods", "plan for fewer pods at a time")
        return found
    for index in range(groups):
        group, needed = f"{workload.metadata.name}-{index}", 0
        made = Expansion()
        for role in roles:
            # A mistake in a role is reported for the first group only.
            own = role if index == 0 else Fields({name: role.raw(name) for name in role.names()})
            pods, of_each = _role(own, workload, group)
            if index == 0:
                role.unread()
            made += pods
            replicas = own.integer("replicas", 1)
            needed += of_each * min(replicas, least.integer(role.text("name"), replicas))
        found += _scheduled(made, workload, group, scheduler=scheduler, needed=needed)
    return found


def _pods_of(role: Fields) -> int:
    """How many pods a role has in a group, known before any of them is made; a mistake in a number is told later."""
    replicas, workers = (
        value if isinstance(value := role.raw(name), int) and value >= 0 else default
        for name, default in (("replicas", 1), ("workerReplicas", 0))
    )
    return replicas * (1 + workers)


def _role(role: Fields, workload: Workload, group: str) -> tuple[Expansion, int]:
    """The pods of a role in a group, and how many each of its replicas has."""
    role.ignore(*_ROLE_IGNORED)
    name, workers = role.required("name"), count(role, "workerReplicas", 0)
    labels = {f"{_LABEL}/name": workload.metadata.name, f"{_LABEL}/group-name": group, f"{_LABEL}/role": name}
    ids = [f"{name}-{index}" for index in range(count(role, "replicas", 1))]
    found = stamp(
        role.child("entryTemplate"),
        workload,
        [f"{group}-{one}-0" for one in ids],
        labels={**labels, f"{_LABEL}/entry": "true"},
        labels_of=lambda index: {f"{_LABEL}/role-id": ids[index]},
    )
    if workers and "workerTemplate" not in role:
        role.error("workerTemplate", f"is required for {workers} workers", "add it, or set workerReplicas to 0")
    elif workers:
        found += stamp(
            role.child("workerTemplate"),
            workload,
            [f"{group}-{one}-{worker}" for one in ids for worker in range(1, workers + 1)],
            labels=labels,
            labels_of=lambda index: {f"{_LABEL}/role-id": ids[index // workers]},
        )
    role.ignore("workerTemplate")
    return found, 1 + workers


def _scheduled(made: Expansion, workload: Workload, group: str, *, scheduler: str, needed: int) -> Expansion:
    """The pods of a group with their scheduler: as a gang if that is Volcano."""
    namespace = workload.metadata.namespace
    together = scheduler == _VOLCANO and min(needed, len(made.pods)) > 1
    reference = GangRef(namespace, group) if together else None
    pods = tuple(replace(pod, scheduler_name=scheduler, gang=pod.gang or reference) for pod in made.pods)
    gang = Gang(namespace, group, "ModelServing", min(needed, len(pods)), origin=workload.origin)
    return replace(made, pods=pods, gangs=(gang,) if together else ())
