"""Advice, the changes that would help, in sentences: the steps, their result, and remarks."""

from __future__ import annotations

import shlex
import string
from collections.abc import Iterator, Sequence
from typing import Final

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.model_memory import TooSmall
from autoscaler.advice.pod_changes import keys_dropped
from autoscaler.advice.pool_changes import GIVING_LABELS
from autoscaler.advice.trial import Advice, Result
from autoscaler.model.requested_capacity import RequestClass
from autoscaler.model.storage import CLUSTER_DEFAULT
from autoscaler.report.cel_words import one_line_cel
from autoscaler.report.model_texts import old_text, small_text
from autoscaler.report.reasons import fact_text
from autoscaler.report.words import counted, few, money
from instance_catalog.drivers.device_plugins import network_card
from instance_catalog.kubernetes.labels import CLOUD, DEFAULT_STORAGE_CLASS
from instance_catalog.prediction.device_plugins import EFA
from instance_catalog.prediction.system_labels import SYSTEM_KEYS
from instance_catalog.types.clouds import cloud_facts, facts_of

_TEXTS: Final[dict[ChangeKind, str]] = {
    ChangeKind.TOLERATE: "tolerate taint {taint}",
    ChangeKind.TOLERATE_CLOUD: (
        "tolerate taint {taint}, which GKE gives nodes with these devices (it adds the toleration to pods that request "
        "{resource}, and not to pods with claims)"
    ),
    ChangeKind.TOLERATE_DEVICE: "tolerate device taint {taint}",
    ChangeKind.ALLOW_CAPACITY_TYPE: "add {capacity_type} to spec.capacityTypes",
    ChangeKind.ALLOW_PARTS: "set spec.fractional to Allow, so that {share} is offered",
    ChangeKind.ADD_VOLUME_CLAIMS: (
        "create PersistentVolumeClaim {claims} (give it with its StorageClass, or bound with its PersistentVolume: "
        "`kubectl get pvc,pv,sc -o yaml`; tried with {tried})"
    ),
    ChangeKind.ADD_STORAGE_CLASSES: (
        "give StorageClass {classes} with -f (`kubectl get sc -o yaml`; tried with {tried})"
    ),
    ChangeKind.WAIT_FOR_POD: (
        "use a StorageClass with volumeBindingMode: WaitForFirstConsumer instead of {classes} (one that exists cannot "
        "be changed), or give the bound claim with its PersistentVolume (`kubectl get pvc,pv -o yaml`)"
    ),
    ChangeKind.DROP_ANNOTATION: "remove the annotation {annotation}, so that a node is planned for the pod itself",
    ChangeKind.RAISE_LIMIT: "raise {limited} from {limit} to {instead}",
    ChangeKind.ADD_SCHEDULER: "add {scheduler} to spec.scope.schedulerNames",
    ChangeKind.DESCRIBE_DRIVER: (
        "describe the driver of DeviceClass {device_classes} (docs/slices.md, A driver of your own), list it beside "
        "the other profiles in spec.drivers.profiles of a CapacityPool, and plan again, or give Nodes with its "
        "ResourceSlices (tried as if claim {claims} fits on every node)"
    ),
    ChangeKind.WIDEN_SCOPE: "set spec.scope.pods to {scope}",
    ChangeKind.RUN_PLUGIN: "run the device plugin of {resource}",
    ChangeKind.SET_PRICE: (
        "say what {instance_type} costs (`foreslice catalog set {instance_type} {price}=DOLLARS --into DIR "
        "--reason WHY`) and plan with {plan_with}"
    ),
    ChangeKind.ADD_BLOCK: "buy {instance_type} for a time, and add a CapacityBlock for it whose taint the pods "
    "tolerate, or with spec.taint: {{effect: None}}",
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
    ChangeKind.DROP_RESOURCES: "drop the request of {resources}, which only nodes of other clouds or systems have",
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
        "buy {instance_type} for a time, and add a CapacityBlock for it whose taint the pods tolerate, or with "
        "spec.taint: {{effect: None}} (it is never sold on demand; to buy it as {sold_as} instead, allow that with "
        "--allow or in spec.capacityTypes of a pool, and get its price with `foreslice catalog sync {cloud}` or "
        "`foreslice catalog set`)"
    ),
}
# What a pod lacks of a machine by little may be there: nobody has measured it.
_ESTIMATED: Final = (
    " (what {instance_type} has of {estimated} for pods is an estimate: if yours has more, say so instead: `foreslice "
    "catalog set {instance_type} allocatable.{estimated}=… --into DIR --reason WHY`)"
)
CREATE_POOL: Final = "create a CapacityPool with"
_DAEMON_SET: Final = " (a plan knows of it by its DaemonSet, given with -f or read with --live)"


def change_steps(change: Change, *, nodes: int = 0) -> tuple[str, ...]:
    """ "pool gpu: add spot to spec.capacityTypes". Changes of one object that belong together are one step.

    A new pool needs a limit: the `nodes` that are launched with the change, or more.
    """
    objects: dict[str, list[str]] = {}
    parts = change.parts or (change,)
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
    facts = {key: fact_text(value) for key, value in change.detail.items()}
    if "condition" in facts:
        facts["condition"] = one_line_cel(facts["condition"])
    wanted = {name for _, name, _, _ in string.Formatter().parse(template) if name}
    return template.format_map({name: facts.get(name, "?") for name in wanted})


def _listed(texts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join((", ".join(texts[:-1]), texts[-1])) if len(texts) > 1 else texts[0]


def result_text(result: Result) -> str:
    """ "1 × g6.xlarge (on-demand), 0.80 $/h"."""
    parts = [f"{count} × {ref.instance_type} ({ref.capacity_type})" for ref, count in result.launches]
    if result.nodes:
        parts.append(f"{counted(len(result.nodes), 'existing node')}: {', '.join(result.nodes)}")
    if not result.launches:
        return ", ".join(parts)
    prepaid = all(ref.block for ref, _ in result.launches)
    guess = " (a guess)" if result.guessed else ""
    price = "no price known" if result.usd_per_hour is None else f"{money(result.usd_per_hour)} $/h{guess}"
    price = "prepaid" if prepaid else price
    whole = f", as slices of {result.hosts} hosts, which are bought as a whole" if result.hosts > 1 else ""
    smaller = f"; {few(result.smaller)} would do, never sold on demand" if result.smaller else ""
    return f"{', '.join(parts)}, {price}{whole}{smaller}"


def remarks(advice: Advice) -> Iterator[str]:
    """What people need to know of the change and its result, beside them."""
    yield from _guessed(advice)
    yield from _read(advice)
    yield from _of_karpenter(advice)
    yield from _of_cloud(advice)
    yield from _network(advice)
    yield from _example_of_class(advice)
    yield from _of_parts(advice)
    yield from (f"{name} needs more: {each.problem}; {each.next_step}" for name, each in advice.result.needs)
    yield from _of_kueue(advice.result)
    yield from _unfit(advice.result)
    yield from _otherwise(advice)
    yield from _any_gpu(advice)


def _example_of_class(advice: Advice) -> Iterator[str]:
    """A StorageClass of the cloud of the machines, for who has no cluster to read one from."""
    parts = [part for part in advice.change.parts or (advice.change,) if part.kind is ChangeKind.ADD_STORAGE_CLASSES]
    facts = facts_of(advice.result.cloud)
    drivers = facts.file_drivers if any(part.detail["shared"] for part in parts) else facts.disk_drivers
    if not parts or not drivers:
        return
    name = str(_texts(parts[0], "classes")[0])
    metadata = f"{{name: {name}}}"
    if name == CLUSTER_DEFAULT:
        metadata = f'{{name: default, annotations: {{{DEFAULT_STORAGE_CLASS}: "true"}}}}'
    yield (
        f"without a cluster to read it from, one such as {{apiVersion: storage.k8s.io/v1, kind: StorageClass, "
        f"metadata: {metadata}, provisioner: {drivers[0]}, volumeBindingMode: WaitForFirstConsumer}}"
    )


def _network(advice: Advice) -> Iterator[str]:
    """The network for RDMA of the machines, if the pods no longer ask for that of another system."""
    parts = [part for part in advice.change.parts or (advice.change,) if part.kind is ChangeKind.DROP_RESOURCES]
    if any(network_card(str(name)) for part in parts for name in _texts(part, "resources")):
        yield from (_rdma_text(name, kind, count) for name, kind, count in advice.result.rdma)


def _of_parts(advice: Advice) -> Iterator[str]:
    """What the nodes of pods with claims of MIG parts run, if no pool says so."""
    kinds = {part.kind for part in advice.change.parts or (advice.change,)}
    if ChangeKind.CLAIM_PARTS in kinds and ChangeKind.SET_DRIVERS not in kinds and advice.result.drivers:
        yield f"its nodes run [{', '.join(advice.result.drivers)}], spec.drivers.profiles of a CapacityPool"


def _rdma_text(machine: str, kind: str, count: int) -> str:
    if kind == "efa":
        return f"for RDMA request {EFA} instead, of which {machine} has {count}"
    if kind:
        return f"for RDMA claim cards of {machine} through DRANET (driver dra.net): it has {count}"
    return f"{machine} has no RDMA: the pods have its plain network"


def _otherwise(advice: Advice) -> Iterator[str]:
    """The memory that the GPU lacks of what the pods asked for, and what the one with it costs."""
    renamed = [part for part in advice.change.parts or (advice.change,) if part.kind is ChangeKind.REWRITE_TYPE]
    yield from (f"the GPU has {part.detail['memory']}" for part in renamed if "memory" in part.detail)
    for one in advice.instead:
        for part in one.change.parts or (one.change,):
            if part.kind is ChangeKind.REWRITE_TYPE:
                yield f"with {part.detail['value']} instead: {result_text(one.result)}"
        yield from _unfit(one.result)


def _unfit(result: Result) -> Iterator[str]:
    """Why pods do not work on the machine, and the models that do not load there: kube-scheduler does not know."""
    yield from result.useless
    for each in result.models:
        yield f"{each.pod}: {small_text(each) if isinstance(each, TooSmall) else old_text(each)}"


def _any_gpu(advice: Advice) -> Iterator[str]:
    """That the pods take any GPU, unless the labels of the pool or the size of its model say so already."""
    said = bool(advice.result.models or list(_guessed(advice)))
    dropped = len(keys_dropped(advice.change))  # they may have meant one
    then = f"without {'it' if dropped == 1 else 'these labels'}, " if dropped else ""
    if advice.result.any_gpu and not said:
        yield f"{then}the pod {advice.result.any_gpu}"


def _guessed(advice: Advice) -> Iterator[str]:
    """The note that the machine is the cheapest one, if a pool gets labels whose meaning only their owner knows."""
    parts = advice.change.parts or (advice.change,)
    giving = [part for part in parts if part.kind in GIVING_LABELS]
    labels = dict.fromkeys(str(label) for part in giving for label in _texts(part, "labels"))
    clouds = tuple(cloud_facts().values())
    chosen = {key: who for facts in clouds for key, who in facts.chosen_labels.items()}
    domains = tuple(domain for facts in clouds for domain in facts.domains)
    keys = [label.partition("=")[0] for label in labels]
    own = [key for key in keys if key in chosen or not (key.startswith(domains) or key in SYSTEM_KEYS)]
    required = {part.detail["key"] for part in parts if part.kind is ChangeKind.ADD_REQUIREMENT}
    named = any(_texts(part, "machine") for part in giving)
    named |= any(part.kind in (ChangeKind.NEAREST_MODEL, ChangeKind.REWRITE_LABEL) for part in parts)
    if not own or not advice.result.launches or required - {CLOUD} or named:
        return
    if _node_pools(advice):
        yield "this is the cheapest that fits, because only Karpenter's NodePool says which machines it means"
        return
    who = next(
        (chosen[key] for key in own if chosen.get(key)), "labels of your own do not say which machines they mean"
    )
    yield f"this is the cheapest that fits, because {who}"


def _read(advice: Advice) -> Iterator[str]:
    """The note that only the name of a node pool shows which machine it has."""
    parts = advice.change.parts or (advice.change,)
    names = [str(name) for part in parts for name in _texts(part, "read")]
    if names and advice.result.launches:
        yield (
            f"the machine is read from the name {names[0]}; only that node pool says which one it has and how it is "
            "paid for, so check it"
        )


def _of_karpenter(advice: Advice) -> Iterator[str]:
    """The note that Karpenter launches for such pods, by an object that a plan does not read."""
    if names := _node_pools(advice):
        yield (
            f"Karpenter serves such pods by its NodePool {' or '.join(names)}: for Foreslice to launch for them "
            f"instead, copy its requirements (`kubectl get nodepool {shlex.quote(names[0])} -o yaml`) into "
            "spec.requirements"
        )


def _of_cloud(advice: Advice) -> Iterator[str]:
    """The note that a cloud launches for such pods, by an object that a plan does not read."""
    giving = [part for part in advice.change.parts or (advice.change,) if part.kind in GIVING_LABELS]
    labels = dict(str(label).split("=", 1) for part in giving for label in _texts(part, "labels"))
    served = {key: text for facts in cloud_facts().values() for key, text in facts.served_by.items() if key in labels}
    yield from (text.format(name=labels[key]) for key, text in served.items() if advice.result.launches)


def _of_kueue(result: Result) -> Iterator[str]:
    """The condition for pods that Kueue has not admitted, if machines are launched for them."""
    if not (result.queue and result.launches):
        return
    held = (
        f"Kueue holds the pods in queue {result.queue} until it admits them: its ClusterQueue needs quota for what "
        "they request, and its ResourceFlavor no nodeLabels that these nodes lack"
    )
    asking = (
        ", and an AdmissionCheck of it that has GKE provision the machines never passes for these: its "
        f"ProvisioningRequestConfig has to name the class {RequestClass.ATOMIC} (docs/kueue.md)"
    )
    yield f"{held}{asking if result.requested else ''}"


def _node_pools(advice: Advice) -> list[str]:
    """The NodePools of Karpenter that the pods select."""
    parts = advice.change.parts or (advice.change,)
    return list(dict.fromkeys(str(name) for part in parts for name in _texts(part, "node_pools")))


def _texts(change: Change, name: str) -> Sequence[object]:
    found = change.detail.get(name)
    return found if isinstance(found, tuple) else ()
