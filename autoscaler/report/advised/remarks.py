"""The result of a change in a sentence, and what people need to know of both."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.pod_changes import keys_dropped
from autoscaler.advice.pool_changes import GIVING_LABELS
from autoscaler.advice.pool_opening import any_group, given_by_people
from autoscaler.advice.trial import Advice, Result
from autoscaler.lint.pods.cloud_terms import cloud_named
from autoscaler.model.requested_capacity import RequestClass
from autoscaler.model.storage import CLUSTER_DEFAULT
from autoscaler.report.advised.model_texts import model_text
from autoscaler.report.advised.oversized_text import oversized_text
from autoscaler.report.words import advised, counted, few, money
from instance_catalog.drivers.device_plugins import network_card
from instance_catalog.kubernetes.labels import CLOUD, DEFAULT_STORAGE_CLASS, HOSTNAME
from instance_catalog.prediction.system_labels import SYSTEM_KEYS
from instance_catalog.types.clouds import cloud_facts, facts_of

# Labels of Node Feature Discovery by PCI class and vendor, as it writes them by default, for NVIDIA (10de): the page
# "Worker configuration", sources.pci.deviceLabelFields. The names of the classes: the PCI ID Repository.
_PCI_LABEL = re.compile(r"feature\.node\.kubernetes\.io/pci-(0300|0302)_10de\.present")
_PCI_CLASSES = {
    "0300": (
        "where an NVIDIA GPU is a display controller (PCI class 0300), as in workstations; most data center GPUs are "
        "3D controllers (0302), so their nodes do not have it"
    ),
    "0302": (
        "where an NVIDIA GPU is a 3D controller (PCI class 0302), as most data center GPUs are, and only with its own "
        "defaults (the GPU Operator has it write pci-10de.present): no plan predicts it"
    ),
}


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
    yield from _no_longer_together(advice)
    yield from _of_pci_classes(advice)
    yield from _own_labels(advice)
    yield from _example_of_class(advice)
    yield from _of_parts(advice)
    yield from (f"{name} needs more: {each.problem}; {each.next_step}" for name, each in advice.result.needs)
    yield from _beside_scheduler(advice.result)
    yield from _of_kueue(advice.result)
    yield from _unfit(advice.result)
    if advice.result.oversized is not None:
        yield f"the pod {oversized_text(advice.result.oversized)}"
    yield from _otherwise(advice)
    yield from _any_gpu(advice)
    yield from advice.result.assumed


def _example_of_class(advice: Advice) -> Iterator[str]:
    """A StorageClass of the cloud of the machines, for who has no cluster to read one from."""
    parts = [part for part in advice.change.steps if part.kind is ChangeKind.ADD_STORAGE_CLASSES]
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
    """The network for RDMA of the machines, if the pods no longer ask for that of another system, or never did."""
    parts = [part for part in advice.change.steps if part.kind is ChangeKind.DROP_RESOURCES]
    dropped = any(network_card(str(name)) for part in parts for name in _texts(part, "resources"))
    if dropped or advice.result.cards_unasked:
        yield from advice.result.rdma


def _no_longer_together(advice: Advice) -> Iterator[str]:
    """That pods get more nodes than they named, if they do: what they shared there is no longer shared."""
    parts = [part for part in advice.change.steps if HOSTNAME in keys_dropped(part)]
    names = {name for part in parts for name in _texts(part, "nodes")}
    nodes = sum(count for _, count in advice.result.launches)
    ports = list(dict.fromkeys(str(port) for part in parts for port in _texts(part, "ports")))
    if not names or nodes <= len(names):
        return
    told = f"the pods named {counted(len(names), 'node')} and get {nodes} here"
    if ports:
        yield f"{told}: each has host port {' and '.join(ports)}, so no two of them share a node"
        return
    yield (
        f"{told}; those that have to share one need a required podAffinity to each other with topologyKey {HOSTNAME}"
    )


def _of_pci_classes(advice: Advice) -> Iterator[str]:
    """The meaning of the labels of Node Feature Discovery that are dropped: no plan predicts them."""
    for key in sorted(map(str, keys_dropped(advice.change))):
        if (found := _PCI_LABEL.fullmatch(key)) is not None:
            yield f"Node Feature Discovery writes {key} {_PCI_CLASSES[found[1]]}"


def _own_labels(advice: Advice) -> Iterator[str]:
    """The other way to serve pods that name a model in a label of their own: nodes of the nearest that have it."""
    for part in (part for part in advice.change.steps if part.kind is ChangeKind.NEAREST_MODEL):
        key, values = str(part.detail["key"]), _texts(part, "was")
        if values and given_by_people(key, str(values[0])) and not cloud_named(key):
            yield (
                f"only people give nodes the label {key}: a CapacityPool with {key}={values[0]} in spec.labels and "
                f"{part.detail['label']} In [{', '.join(map(str, _texts(part, 'accelerators')))}] in "
                "spec.requirements serves pods that select it"
            )


def _of_parts(advice: Advice) -> Iterator[str]:
    """The drivers of nodes for claims of MIG parts, if no pool lists any."""
    kinds = {part.kind for part in advice.change.steps}
    if ChangeKind.CLAIM_PARTS in kinds and ChangeKind.SET_DRIVERS not in kinds and advice.result.drivers:
        yield f"its nodes run [{', '.join(advice.result.drivers)}], spec.drivers.profiles of a CapacityPool"


def _otherwise(advice: Advice) -> Iterator[str]:
    """The memory that the GPU lacks of what the pods asked for, and what the one with it costs."""
    renamed = [part for part in advice.change.steps if part.kind is ChangeKind.REWRITE_TYPE]
    yield from (f"the GPU has {part.detail['memory']}" for part in renamed if "memory" in part.detail)
    for one in advice.instead:
        for part in one.change.steps:
            if part.kind is ChangeKind.REWRITE_TYPE:
                yield f"with {part.detail['value']} instead: {result_text(one.result)}"
        yield from _unfit(one.result)


def _unfit(result: Result) -> Iterator[str]:
    """The reasons why pods do not work on the machine, and models that do not load: kube-scheduler knows neither."""
    yield from result.useless
    for each in result.models:
        yield f"{each.pod}: {advised(*model_text(each))}"


def _beside_scheduler(result: Result) -> Iterator[str]:
    """What may keep images and their data from the machine, of which kube-scheduler knows nothing."""
    yield from (text for text in (result.architecture, result.paths) if text)


def _any_gpu(advice: Advice) -> Iterator[str]:
    """That the pods take any GPU, unless the size of its model says so already."""
    said = bool(advice.result.models)
    dropped = len(keys_dropped(advice.change))  # they may have meant one
    then = f"without {'it' if dropped == 1 else 'these labels'}, " if dropped else ""
    if advice.result.any_gpu and not said:
        yield f"{then}the pod {advice.result.any_gpu}"


def _guessed(advice: Advice) -> Iterator[str]:
    """The note that the machine is the cheapest one, if a pool gets labels whose meaning only their owner knows."""
    parts = advice.change.steps
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
    """The note that only a node pool itself shows which machine it has, and how it is paid for."""
    parts = advice.change.steps
    names = [str(name) for part in parts for name in _texts(part, "read")]
    groups = [str(part.detail["group"]) for part in parts if part.kind is ChangeKind.LIST_GROUP]
    yours = list(filter(any_group, groups))
    groups = [name for name in groups if name not in yours]
    if yours and advice.result.launches:
        yield f"{yours[0]} is a node pool of such machines that no other pool lists"
    if names and advice.result.launches:
        yield (
            f"the machine is read from the name {names[0]}; only that node pool says which one it has and how it is "
            "paid for, so check it"
        )
    elif groups and advice.result.launches and not list(_guessed(advice)):
        yield f"only node pool {groups[0]} says which machine it has and how it is paid for, so check it"


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
    giving = [part for part in advice.change.steps if part.kind in GIVING_LABELS]
    classes = [str(part.detail["compute_class"]) for part in giving if "compute_class" in part.detail]
    if classes and advice.result.launches:
        yield (
            f"the cheapest of the machines in spec.priorities of ComputeClass {classes[0]}, of which GKE takes the "
            "first that it gets; GKE launches for such pods as well, as long as it has the class"
        )
        return
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
    parts = advice.change.steps
    return list(dict.fromkeys(str(name) for part in parts for name in _texts(part, "node_pools")))


def _texts(change: Change, name: str) -> Sequence[object]:
    found = change.detail.get(name)
    return found if isinstance(found, tuple) else ()
