"""A change in a sentence: what people edit, create or tell the plan."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Final

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.report.cel_words import one_line_cel
from autoscaler.report.reasons import fact_text, list_items
from autoscaler.report.words import few

_BLOCK: Final = (
    "add a CapacityBlock of it (spec.pool, zone, count, startsAt, endsAt and reservation) whose taint the pods "
    "tolerate, or with spec.taint: {{effect: None}}"
)
_TEXTS: Final[dict[ChangeKind, str]] = {
    ChangeKind.TOLERATE: "tolerate taint {taint}",
    ChangeKind.TOLERATE_CLOUD: (
        "tolerate taint {taint}, which GKE gives nodes with these devices (it adds the toleration to pods that request "
        "{resource}, and not to pods with claims)"
    ),
    ChangeKind.TOLERATE_DEVICE: "tolerate device taint {taint}",
    ChangeKind.ALLOW_CAPACITY_TYPE: "add {capacity_type} to spec.capacityTypes",
    ChangeKind.ALLOW_OVERFLOW: "set spec.overflow to Allow, so that it launches more than CapacityBlock {blocks}",
    ChangeKind.ALLOW_PARTS: "set spec.fractional to Allow, so that {share} is offered",
    ChangeKind.ADD_VOLUME_CLAIMS: (
        "create PersistentVolumeClaim {claims} (give it with its StorageClass of volumeBindingMode "
        "WaitForFirstConsumer, or bound with its PersistentVolume: `kubectl get pvc,pv,sc -o yaml`; tried with {tried})"
    ),
    ChangeKind.ADD_STORAGE_CLASSES: (
        "give StorageClass {classes} with -f (`kubectl get sc -o yaml`; tried with {tried})"
    ),
    ChangeKind.WAIT_FOR_POD: (
        "use a StorageClass with volumeBindingMode: WaitForFirstConsumer instead of {classes} (one that exists cannot "
        "be changed), or give the bound claim with its PersistentVolume (`kubectl get pvc,pv -o yaml`)"
    ),
    ChangeKind.GIVE_PODS: (
        "give the {wanted} with -f, which required pod affinity over {keys} wants and no file has, or drop that term "
        "(tried without it)"
    ),
    ChangeKind.DROP_ANNOTATION: "remove the annotation {annotation}, so that a node is planned for the pod itself",
    ChangeKind.RAISE_LIMIT: "raise {limited} from {limit} to {instead}",
    ChangeKind.ADD_SCHEDULER: "add {scheduler} to spec.scope.schedulerNames",
    ChangeKind.DESCRIBE_DRIVER: (
        "describe the driver of DeviceClass {device_classes} under a NAME in a file of --catalog DIR (docs/slices.md, "
        "A driver of your own), which spec.drivers.profiles of a CapacityPool lists beside the other drivers, or give "
        "Nodes with its ResourceSlices (tried as if claim {claims} fits on every node)"
    ),
    ChangeKind.WIDEN_SCOPE: "set spec.scope.pods to {scope}",
    ChangeKind.RUN_PLUGIN: "run the device plugin of {resource}",
    ChangeKind.SET_PRICE: (
        "say what {instance_type} costs (`foreslice catalog set {instance_type} {price}=DOLLARS --into DIR "
        "--reason WHY`) and plan with {plan_with}"
    ),
    ChangeKind.ADD_BLOCK: (f"buy {{instance_type}} for a time (it is sold only as {{only}}), and {_BLOCK}"),
    ChangeKind.REWRITE_SELECTOR: "write {value} instead of {was} in {condition}",
    ChangeKind.RENAME_CAPACITY: "write {value} instead of {was} in capacity.requests",
    ChangeKind.REWRITE_TYPE: "write {value} instead of {was} for {key}",
    ChangeKind.RENAME_LABELS: (
        "select {labels} instead of {was}, which only nodes of EKS Auto Mode have (it launches them itself: leave the "
        "pod to it there)"
    ),
    ChangeKind.REWRITE_LABEL: (
        "require {label} In [{accelerators}] instead of {key} In [{was}], a label that no node of the plan has"
    ),
    ChangeKind.NAME_ZONE: (
        "select topology.kubernetes.io/zone with the name of zone {zones} instead of {key}, which the cloud writes and "
        "no plan predicts (`{command} --region {regions}` says the name, which may differ between accounts; tried in "
        "any zone of {regions})"
    ),
    ChangeKind.DROP_RESOURCES: "drop the request of {resources}, which only nodes of other clouds or systems have",
    ChangeKind.DROP_CLAIM: "drop claim {claim}, whose devices no node has beside those of the others",
    ChangeKind.CORRECT_CONFIG: (
        "write apiVersion {value} instead of {was} in spec.devices.config, which its driver refuses"
    ),
    ChangeKind.DROP_CONFIG: "drop spec.devices.config, which its driver refuses",
    ChangeKind.WHOLE_GPUS: "request {instead} instead of {resources}, for whole GPUs",
    ChangeKind.REQUIRE_MEMORY: "require {label} In [{accelerators}], the GPUs with {memory} of memory or more",
    ChangeKind.CLAIM_PARTS: (
        "claim devices of DeviceClass {device_class} ({devices}) instead of requesting {resources}, "
        "as in docs/examples/mig-parts.yaml"
    ),
    ChangeKind.SELECT_HOLDING: (
        "select {label} (the weights of its model take about {weights}; {gpus}, which it would get, {have})"
    ),
    ChangeKind.NEAREST_MODEL: (
        "require {label} In [{accelerators}], the nearest in the catalog, instead of {key} In [{was}], which no "
        "instance type in it has"
    ),
    ChangeKind.ENLARGE_DISK: (
        "give {instance_type} a root disk of {disk} or more ({setting}), say so (`foreslice catalog set "
        "{instance_type} allocatable.ephemeral-storage={allocatable} --into DIR --reason WHY`) and plan with "
        "--catalog DIR"
    ),
    ChangeKind.LOWER_REQUEST: "request {requests}",
    ChangeKind.LOWER_COUNT: "request {instead} devices instead of {wanted}",
    ChangeKind.SET_DRIVERS: "set spec.drivers.profiles to [{drivers}]",
    ChangeKind.ADD_REQUIREMENT: "add {key} In [{value}] to spec.requirements",
    ChangeKind.ADD_LABELS: "add {labels} to spec.labels",
    ChangeKind.LIST_GROUP: "list {group} alone in {field}, which spec.nodeTemplateRef names",
    ChangeKind.DROP_NODE_SELECTOR: "drop nodeSelector {key}={value}",
    ChangeKind.DROP_NODE_AFFINITY: "drop the node affinity on {key}",
    ChangeKind.DROP_REQUIREMENT: "drop the requirement {key} {operator} [{values}]",
    ChangeKind.ASK_ELSEWHERE: "leave out {option} {values}",
    ChangeKind.DROP_CONDITION: "drop {condition}",
    ChangeKind.DROP_CONSTRAINT: "drop the constraint on {attribute}",
}
# Without a CapacityPool: the options for a plan …
_WITHOUT_POOL: Final[dict[ChangeKind, str]] = {
    ChangeKind.ALLOW_CAPACITY_TYPE: "allow {capacity_type} capacity: --allow {allow}",
}
# … or the fields of a new pool.
_OF_NEW_POOL: Final[dict[ChangeKind, str]] = {
    ChangeKind.ALLOW_CAPACITY_TYPE: "spec.capacityTypes [{allow}]",
    ChangeKind.ALLOW_PARTS: "spec.fractional Allow, so that {share} is offered",
    ChangeKind.ADD_SCHEDULER: "{scheduler} in spec.scope.schedulerNames",
    ChangeKind.WIDEN_SCOPE: "spec.scope.pods {scope}",
    ChangeKind.ADD_REQUIREMENT: "{key} In [{value}] in spec.requirements",
    ChangeKind.ADD_LABELS: "{labels} in spec.labels",
    ChangeKind.LIST_GROUP: "{group} alone in {field}, which spec.nodeTemplateRef names",
    ChangeKind.SET_DRIVERS: "spec.drivers.profiles [{drivers}]",
}
# For types that are never sold on demand, or that pods request as flex-start or Spot.
_SOLD_OTHERWISE: Final[dict[ChangeKind, str]] = {
    ChangeKind.SET_PRICE: (
        "say what {instance_type} costs as {sold_as}, of which no price is shipped (`foreslice catalog set "
        "{instance_type} {price}=DOLLARS --into DIR --reason WHY`) and plan with {plan_with}; `foreslice catalog sync "
        "{cloud}` gets prices"
    ),
    ChangeKind.ADD_BLOCK: (
        f"buy {{instance_type}} for a time, and {_BLOCK} (it is never sold on demand; to buy it as {{sold_as}} "
        "instead, allow that with --allow or in spec.capacityTypes of a pool, and get its price with `foreslice "
        "catalog sync {cloud}` or `foreslice catalog set`)"
    ),
}
# From the ResourceFlavor of Kueue that adds the labels.
_OF_FLAVOR: Final = (
    "require {label} In [{accelerators}] instead of what spec.nodeLabels of ResourceFlavor {flavor} adds ({given}), "
    "which no node of the plan has: correct the flavor"
)
# GPU feature discovery writes the label.
_DISCOVERED: Final = (
    "require {label} In [{accelerators}] instead of {key} In [{was}] (or list {profile}, GPU feature discovery, in "
    "spec.drivers.profiles of the pool: it writes that label)"
)
# Its id does not say the region.
_OF_NO_REGION: Final = (
    "select topology.kubernetes.io/zone with the name of zone {zones} instead of {key}, which the cloud writes and no "
    "plan predicts (`{command} --region REGION` says the name; from the id {zones} the region is not known here: tried "
    "in any, so name it with --region)"
)
_OF_ARCHITECTURE: Final = (
    "select {select}, so that GKE adds the toleration of taint {taint}, which it gives all nodes of this architecture"
)
# What a pod lacks of a machine by little may be there: nobody has measured it.
_ESTIMATED: Final = (
    " (what {instance_type} has of {estimated} for pods is an estimate: if yours has more, say so instead: `foreslice "
    "catalog set {instance_type} allocatable.{estimated}=… --into DIR --reason WHY`)"
)
_OF_DOMAINS: Final = (
    " ({domains} times: podAntiAffinity over nvidia.com/gpu.clique wants {domains} NVLink domains, and a block is one)"
)
CREATE_POOL: Final = "create a CapacityPool with"
_DAEMON_SET: Final = " (a plan knows of it by its DaemonSet, given with -f or read with --live)"


def change_steps(change: Change, *, nodes: int = 0) -> tuple[str, ...]:
    """ "pool gpu: add spot to spec.capacityTypes". Changes of one object that belong together are one step.

    A new pool needs a limit: the `nodes` that are launched with the change, or more.
    """
    objects: dict[str, list[str]] = {}
    parts = change.steps
    plugins = [part for part in parts if part.kind is ChangeKind.RUN_PLUGIN]
    created = [part for part in parts if not part.subject and part.kind in _OF_NEW_POOL]
    if all(part.kind is ChangeKind.ALLOW_CAPACITY_TYPE for part in created):
        created = []  # as an option of the command line it needs no pool
    for part in parts:
        new = part in created
        texts = objects.setdefault(CREATE_POOL if new else part.subject and f"{part.subject}:", [])
        texts.append(_part_text(part, new=new) + (_DAEMON_SET if part in plugins[-1:] else ""))
    if CREATE_POOL in objects:
        objects[CREATE_POOL].insert(0, f"spec.limits.nodes {max(1, nodes)} or more")
    return tuple(f"{head} {_listed(found)}".strip() for head, found in objects.items())


def _part_text(change: Change, *, new: bool) -> str:
    """The change without the object; `new`: in a new pool."""
    of_none = _OF_NEW_POOL if new else _WITHOUT_POOL
    template = _TEXTS[change.kind] if change.subject else of_none.get(change.kind, _TEXTS[change.kind])
    template += _ESTIMATED if "estimated" in change.detail else ""
    template = _SOLD_OTHERWISE[change.kind] if "sold_as" in change.detail else template
    template += _OF_DOMAINS if "domains" in change.detail else ""
    template = _OF_FLAVOR if "flavor" in change.detail else template
    template = _DISCOVERED if "profile" in change.detail else template
    template = _OF_ARCHITECTURE if "select" in change.detail else template
    template = _OF_NO_REGION if change.kind is ChangeKind.NAME_ZONE and not change.detail["regions"] else template
    facts = {key: fact_text(value) for key, value in change.detail.items()}
    facts |= {key: few(value) for key, value in change.detail.items() if key == "claims" and isinstance(value, tuple)}
    if change.kind is ChangeKind.ADD_SCHEDULER:
        facts["scheduler"] = list_items(change.detail["scheduler"])
    if "condition" in facts:
        facts["condition"] = one_line_cel(facts["condition"])
    wanted = {name for _, name, _, _ in string.Formatter().parse(template) if name}
    return template.format_map({name: facts.get(name, "?") for name in wanted})


def _listed(texts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join((", ".join(texts[:-1]), texts[-1])) if len(texts) > 1 else texts[0]
