"""Requests of pods to systems outside Kubernetes, which a plan cannot fulfil: shares of GPUs, foreign nodes.

The names are those of the systems' own pages: KAI Scheduler's gpu-sharing, HAMi's NVIDIA device plugin (Project-HAMi,
README), and Volcano's vGPU device plugin.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import cache, partial
from typing import Final, TypeVar

from autoscaler.lint.advice import surprise
from autoscaler.lint.pods.accelerator_labels import MODEL_KEYS, accelerator_told, unknown_accelerator
from autoscaler.lint.pods.disk_space import empty_path, files_of_node, missing_path, path_of_node
from autoscaler.lint.pods.gpu_shares import (
    shared_resource,
    shared_told,
    sharing_label,
    sharing_told,
    whole_by_share,
    whole_told,
)
from autoscaler.lint.pods.hami import asked_of_hami, hami_told
from autoscaler.lint.pods.mig_parts import mig_resources
from autoscaler.lint.pods.one_node import known_nodes, nodes_named, nodes_told
from autoscaler.lint.pods.other_clouds import daemons_of_other_clouds, other_cloud_advice, other_clouds
from autoscaler.lint.pods.required import as_required
from autoscaler.lint.pods.unknown_types import told_type, unknown_type
from autoscaler.lint.pods.unserved import (
    RDMA_HERE,
    absent_devices,
    absent_told,
    foreign_resource,
    machines_having,
    preparations,
    unserved_resources,
)
from autoscaler.model.capacity import NO_TEMPLATE, CapacityPool
from autoscaler.model.plan import LeftOut, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.requested_capacity import QUEUED_CLASS, RequestClass
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import TYPE_KEYS, gpudirect_image, node_groups
from autoscaler.planning.demand.scope import requested_resources, served_resources
from autoscaler.planning.supply.hami_types import other_types
from autoscaler.planning.supply.unprepared import FREE_OF_CARDS, PINNED_TO_CARDS
from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic, Path, all_of
from instance_catalog.drivers.device_plugins import other_device, retired
from instance_catalog.drivers.facts import GpuDirectProtocol, gpudirect_protocols
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.runnable import NeedsMore
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import queue_labels

Seen = TypeVar("Seen")  # what a warning is about: false of a pod that it is not about
_KAI_PARTS: Final = (labels.KAI_GPU_FRACTION, labels.KAI_GPU_MEMORY)


def foreign_advice(snapshot: Snapshot, catalog: Catalog, plan: Plan | None = None) -> Iterator[Diagnostic]:
    """One warning of each kind, about the first pod that it concerns. Of machines that a `plan` has chosen where pools
    or nodes say which there are, planning's `not_working` warns."""
    yield from _of_first(snapshot, _kai_part, _kai)
    bought = {key for node in plan.launches for key in node.pods} if plan is not None else frozenset()
    unbought = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.key not in bought))
    yield from _of_first(
        unbought, lambda pod: labels.HAMI_USE_DEVICE if labels.HAMI_USE_DEVICE in pod.annotations else "", _pinned
    )
    told = {one.pod.key: one.annotation for one in other_types(snapshot, plan, catalog)} if plan is not None else {}
    yield from _of_first(snapshot, lambda pod: asked_of_hami(pod, but=told.get(pod.key, "")), hami_told)
    yield from _of_first(snapshot, _formed_slice, partial(_dynamic_slice, catalog=catalog))
    yield from device_advice(snapshot, catalog, plan)
    there = known_nodes(snapshot)
    named = tuple(dict.fromkeys(name for _, pod in _waiting(snapshot) for name in nodes_named(pod, there)))
    yield from _of_first(snapshot, lambda pod: nodes_named(pod, there) and named, nodes_told)
    yield from _of_first(snapshot, path_of_node, missing_path)
    yield from _of_first(snapshot, files_of_node, empty_path)
    yield from _gpudirect_advice(snapshot, unbought)
    yield from _of_first(snapshot, _in_queue, _queued)
    yield from _of_first(snapshot, _requested_by_kueue, _awaits_request)
    yield from daemons_of_other_clouds(snapshot, catalog)
    elsewhere = other_clouds(snapshot, catalog)
    here = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.key not in elsewhere))
    yield from _of_first(
        here, lambda pod: unknown_type(pod, catalog), lambda name: told_type(name, catalog), *TYPE_KEYS
    )
    served = served_resources(snapshot)
    dividing = {pod.key for pod in snapshot.pods if mig_resources(pod, served)}
    for key in MODEL_KEYS:
        unknown = partial(unknown_accelerator, key=key, catalog=catalog, snapshot=snapshot)
        for parts in (False, True):
            those = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if (pod.key in dividing) is parts))
            yield from _of_first(those, unknown, partial(accelerator_told, key=key, catalog=catalog, parts=parts))


def device_advice(snapshot: Snapshot, catalog: Catalog, plan: Plan | None = None) -> Iterator[Diagnostic]:
    """Devices that pods request and that no machine has, or none has so many, or, in a `plan`, that work on no new
    machine, and parts of GPUs: nothing else about the pods changes that."""
    yield from _parts_of_gpus(snapshot)
    every = [*_waiting(snapshot), *((f"DaemonSet {one.key}", one.pod) for one in snapshot.daemon_sets)]
    yield from _about_first(every, _ended, _retired)
    having = cache(partial(machines_having, catalog=catalog))
    yield from _about_first(every, lambda pod: _beyond_machines(pod, having), lambda found: _beyond(found, catalog))
    yield from _without_driver(snapshot, catalog, plan)
    given = {name for node in snapshot.nodes for name in node.allocatable} | served_resources(snapshot)
    own = given | {name for one in catalog for name in (*one.allocatable, *one.extended_resources)}
    vendors = {one.accelerator.vendor for one in catalog if one.accelerator is not None}
    # The reason why these are ignored says the same.
    ignored = {entry.pod for entry in plan.outside if _of_no_machine(entry)} if plan is not None else frozenset()
    others = [(subject, pod) for subject, pod in _waiting(snapshot) if pod.key not in ignored]
    for what in dict.fromkeys(other_device(n) for _, pod in others for n in requested_resources(pod)):
        absent = partial(_absent_hardware, what=what, given=own, vendors=vendors, having=having)
        yield from _about_first(others, absent, partial(absent_told, catalog=catalog)) if what else ()
    elsewhere = other_clouds(snapshot, catalog)
    here = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.key not in elsewhere))
    yield from _of_first(here, lambda pod: _of_nobody(pod, given, catalog), _unknown)
    yield from other_cloud_advice(snapshot, elsewhere, catalog)


def _of_no_machine(entry: LeftOut) -> bool:
    return any(not {"device", "but"}.isdisjoint(reason.detail) for reason in entry.reasons)


def _gpudirect_advice(snapshot: Snapshot, unbought: Snapshot) -> Iterator[Diagnostic]:
    assumed = not (snapshot.pools or snapshot.nodes)
    for protocol in gpudirect_protocols():
        direct = partial(_uses_gpudirect, protocol=protocol, pools=snapshot.pools)
        yield from _of_first(
            snapshot if assumed else unbought, direct, partial(_gpudirect, protocol=protocol, assumed=assumed)
        )


def _parts_of_gpus(snapshot: Snapshot) -> Iterator[Diagnostic]:
    yield from _of_first(snapshot, whole_by_share, whole_told)
    yield from _of_first(snapshot, lambda pod: "" if whole_by_share(pod) else shared_resource(pod), shared_told)
    given = (*(node.labels for node in snapshot.nodes), *(pool.labels for pool in snapshot.pools))
    had = {f"{key}={value}" for labels_of in given for key, value in labels_of.items()}
    yield from _of_first(snapshot, partial(sharing_label, had=had), sharing_told)


def _of_first(
    snapshot: Snapshot, found: Callable[[Pod], Seen], text_of: Callable[[Seen], tuple[Path, str, str]], *keys: str
) -> Iterator[Diagnostic]:
    """The warning about the first pod in which `found` sees something; `text_of` has field, message and next step."""
    yield from _about_first(_waiting(snapshot), found, text_of, keys)


def _waiting(snapshot: Snapshot) -> list[tuple[str, Pod]]:
    return [(f"Pod {pod.key}", pod) for pod in snapshot.pods if not pod.bound]


def _about_first(
    pods: Iterable[tuple[str, Pod]],
    found: Callable[[Pod], Seen],
    text_of: Callable[[Seen], tuple[Path, str, str]],
    keys: Collection[str] = (),
) -> Iterator[Diagnostic]:
    """The same of pods under the names of what makes them. `keys`: the labels, where the field does not name one."""
    concerned = [(subject, pod, name) for subject, pod in pods if (name := found(pod))]
    if concerned:
        subject, pod, name = concerned[0]
        path, message, step = text_of(name)
        others = len(concerned) - 1
        yield surprise(subject, as_required(path, pod, keys), message, step, pod.origin, others=others)


def _kai_part(pod: Pod) -> str:
    """The annotation of the pod that asks for a part of a GPU, or nothing."""
    return next((name for name in _KAI_PARTS if name in pod.annotations), "")


def _kai(name: str) -> tuple[tuple[str, ...], str, str]:
    return (
        ("metadata", "annotations", name),
        "asks KAI Scheduler for a part of a GPU: that is not a resource, and a plan counts no GPU for it",
        "claim a GPU instead, or keep GPU nodes for such pods with spec.baseline of a CapacityPool that requires their "
        f"GPU ({labels.ACCELERATOR})",
    )


def _pinned(name: str) -> tuple[tuple[str, ...], str, str]:
    return ("metadata", "annotations", name), f"{PINNED_TO_CARDS}", FREE_OF_CARDS


def _formed_slice(pod: Pod) -> str:
    return pod.annotations.get(labels.FORMED_SLICE_TOPOLOGY, "")


def _dynamic_slice(topology: str, catalog: Catalog) -> tuple[tuple[str, ...], str, str]:
    single = any(topology in (machine.topology, *machine.slice_topologies) for machine in catalog)
    step = (
        "; or, for a slice that one node pool holds, drop the annotation, and select nothing of dynamic slices but "
        + labels.GKE_TPU_TOPOLOGY
    )
    return (
        ("metadata", "annotations", labels.FORMED_SLICE_TOPOLOGY),
        f"asks for one TPU slice of {topology}: GKE's slice controller forms it from existing node pools, "
        "each a 4x4x4 part of a reservation; Foreslice does not, and the hosts of a plan are single machines",
        f"make these node pools as GKE's page on dynamic slicing says{step if single else ''}",
    )


def _ended(pod: Pod) -> str:
    """A resource that the pod asks for, or else its annotation, which only a system that has ended understood."""
    requested = [name for container in (*pod.containers, *pod.init_containers) for name in container.requests]
    return next((name for name in (*requested, *pod.annotations) if retired(name)), "")


def _retired(name: str) -> tuple[tuple[str, ...], str, str]:
    found = retired(name)
    assert found is not None
    annotation = name.startswith(found.annotations)
    path = ("metadata", "annotations", name) if annotation else ("spec", "containers", "resources")
    asks, ends = ("has", "nothing reads it") if annotation else ("asks for", "no node has it")
    ended = f"which ended on {found.ended}: {ends} any more"
    return path, f"{asks} {name} of {found.system}, {ended}", found.instead


def _beyond_machines(pod: Pod, having: Callable[[str], Mapping[str, Quantity]]) -> str:
    """The device plugin's resource of which the pod requests more than any machine that it selects has, and the machine
    with the most: "16 aws.amazon.com/neuron inf2.48xlarge"; or nothing."""
    for container in (*pod.containers, *pod.init_containers):
        for name, amount in container.requests.items():
            ended = retired(name)
            now = ended.now if ended else name
            machines = [(number, type_) for type_, number in having(now).items() if _admitted(pod, type_)]
            if machines and amount > max(machines)[0]:
                return f"{amount} {now} {max(machines)[1]}"
    return ""


def _beyond(found: str, catalog: Catalog) -> tuple[tuple[str, ...], str, str]:
    asked, resource, name = found.split()
    card = catalog.types[name].accelerator
    clouds = all_of(sorted({one.cloud for one in catalog}))
    return (
        ("spec", "containers", "resources"),
        f"asks for {asked} {resource}, and of the instance types that it admits {name} has most: "
        f"{machines_having(resource, catalog)[name]}{f' ({card.model})' if card else ''}",
        "ask for what one machine has, or add the machine that you mean with `foreslice catalog add`: the catalog "
        f"knows {clouds} (docs/examples/catalog shows one of another cloud)",
    )


def _without_driver(snapshot: Snapshot, catalog: Catalog, plan: Plan | None) -> Iterator[Diagnostic]:
    """The first pod without a place whose devices work on no new node, unless pools or nodes say what nodes have."""
    stated = any(pool.drivers or pool.node_template != NO_TEMPLATE for pool in snapshot.pools)
    if plan is None or stated:
        return
    without = {entry.pod for entry in (*plan.left_out, *plan.outside)}
    left = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if pod.key in without))
    there = {name for node in snapshot.nodes for name in node.allocatable}
    preparing = cache(lambda name: {} if name in there else preparations(name, catalog))
    yield from _of_first(left, partial(_unprepared, preparing=preparing), partial(_preparing, catalog=catalog))


def _unprepared(pod: Pod, preparing: Callable[[str], Mapping[str, NeedsMore]]) -> str:
    """The resource that the pod requests and that no instance type has without preparation; or nothing."""
    return next((name for name in requested_resources(pod) if preparing(name)), "")


def _preparing(resource: str, catalog: Catalog) -> tuple[tuple[str, ...], str, str]:
    """The condition under which the types have the resource."""
    (name, needs), *_ = preparations(resource, catalog).items()
    model = card.model if (card := catalog.types[name].accelerator) else ""
    return (
        ("spec", "containers", "resources"),
        f"asks for {resource}, and only {name} has it ({model}): {needs.problem}",
        needs.next_step,
    )


def _admitted(pod: Pod, name: str) -> bool:
    return all(name in names for names in pod.required_values(TYPE_KEYS))


def _absent_hardware(
    pod: Pod, what: str, given: Set[str], vendors: Set[str], having: Callable[[str], Mapping[str, Quantity]]
) -> str:
    """Of the resources by which the pod asks for devices that the catalog lacks, those of such ("GPU of Intel")."""
    return " ".join(name for name in absent_devices(pod, given, vendors, having) if other_device(name) == what)


def _of_nobody(pod: Pod, given: Set[str], catalog: Catalog) -> str:
    """The resources that nothing on offer has, of a pod that selects nodes as well: its labels come first, and would
    hide that."""
    if not (pod.node_selector or pod.affinity):
        return ""
    return " ".join(name for name in unserved_resources(pod, given, catalog) if not other_device(name))


def _unknown(found: str) -> tuple[tuple[str, ...], str, str]:
    names = found.split()
    own = [name for name in names if not foreign_resource(name)]
    amounts = " ".join(f"allocatable.{shlex.quote(name)}=…" for name in own)
    it = "them" if len(own) > 1 else "it"
    add = f"if your nodes have {it}, add {it}: `foreslice catalog set TYPE {amounts} --into DIR --reason WHY`"
    drop = f"drop the request of {' and '.join(name for name in names if name not in own)}; {RDMA_HERE}"
    return (
        ("spec", "containers", "resources"),
        f"asks for {' and '.join(names)}, which no instance type in the catalog has and no DeviceClass or "
        "known device plugin provides",
        "; ".join([add] * bool(own) + [drop] * (len(own) < len(names))),
    )


def type_named(text: str, catalog: Catalog) -> str:
    """The instance type that a text such as "trn1-32xl" names in another spelling, or else has in it as words
    ("a3-ultragpu-8g-pool"); nothing if none or several are."""
    spelled, dashed = _spelled(text), f"-{_dashed(text)}-"
    found = [name for name in catalog.types if _spelled(name) == spelled]
    within = found or [name for name in catalog.types if f"-{_dashed(name)}-" in dashed]
    return within[0] if len(within) == 1 else ""


def _dashed(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())


def _spelled(text: str) -> str:
    """Letters and digits alone, and xlarge for xl."""
    return re.sub(r"(?<=\d)xl$", "xlarge", re.sub(r"[^a-z0-9]", "", text.lower()))


def _uses_gpudirect(pod: Pod, protocol: GpuDirectProtocol, pools: tuple[CapacityPool, ...]) -> str:
    """The image by which the pod shows it, and the node pool that it selects, if any; or nothing."""
    image = gpudirect_image(pod, protocol, pools)
    return " ".join((image, *node_groups(pod)[:1])) if image else ""


def _gpudirect(found: str, protocol: GpuDirectProtocol, *, assumed: bool) -> tuple[tuple[str, ...], str, str]:
    """`assumed`: a plan takes it as if the pod selected the machines that it needs."""
    image, _, group = found.partition(" ")
    types = ", ".join(protocol.types)
    uses = f"uses {protocol.name} of Google Cloud (image {image}), which works only on {types}"
    step = f"add {labels.INSTANCE_TYPE} with one of these to its nodeSelector, or to spec.requirements of its pool"
    if group:
        which = f"selects {group}: no CapacityPool has this label, so a plan buys nothing for it"
        step = (
            "check that the machines of that node pool are of these types, and list it alone in the node template of a "
            "CapacityPool"
        )
    elif assumed:
        which = "selects no machine: it is planned on these alone, but kube-scheduler takes any node"
    else:
        which = "selects no machine: on any other that a plan chooses it does not work"
    return ("spec", "nodeSelector"), f"{uses}, and {which}", step


def _in_queue(pod: Pod) -> str:
    """The label, and its value, by which the pod selects nodes that another autoscaler sizes, and a word more where
    Kueue asks for them; or nothing."""
    found = ((key, names) for key in sorted(queue_labels()) for names in pod.required_values({key}))
    by_kueue = any(name.startswith(labels.PROVREQ_PREFIX) for name in pod.annotations)
    return next((f"{key}={names[0]}{' Kueue' if by_kueue else ''}" for key, names in found), "")


def _requested_by_kueue(pod: Pod) -> str:
    """The queue of Kueue in which the pod waits for machines that Kueue requests of another autoscaler; or nothing."""
    given = pod.annotations  # only pods of files have the queue among them (`Queues.requested`)
    requested = any(name.startswith(labels.PROVREQ_PREFIX) for name in given)
    return given.get(labels.KUEUE_QUEUE, "") if requested and not _in_queue(pod) else ""


def _awaits_request(queue: str) -> tuple[tuple[str, ...], str, str]:
    return (
        ("metadata", "annotations"),
        f"waits in Kueue's queue {queue}, whose AdmissionCheck requests machines by a ProvisioningRequest: "
        f"GKE's autoscaler starts those of class {QUEUED_CLASS} before there is a pod, so Foreslice "
        "launches none of the nodes here",
        "for nodes of Foreslice, the check's ProvisioningRequestConfig has to name the class "
        f"{RequestClass.ATOMIC} (docs/kueue.md); for nodes of GKE, `foreslice gcp provisioning-request` shows the "
        "request, which Kueue writes by itself",
    )


def _queued(found: str) -> tuple[tuple[str, ...], str, str]:
    label, _, by_kueue = found.partition(" ")
    step = "`foreslice gcp provisioning-request` writes the request; for machines that a plan chooses, drop the label"
    if by_kueue:
        step = (
            "write no request: Kueue does by itself before it admits the workload, by an AdmissionCheck of its "
            "ClusterQueue with controllerName kueue.x-k8s.io/provisioning-request (`kubectl get provisioningrequests` "
            "shows it)"
        )
    return (
        ("spec", "nodeSelector", label.partition("=")[0]),
        f"selects {label}, which only node pools with queued provisioning have: GKE's autoscaler sizes these, "
        "for ProvisioningRequests, and no plan launches anything there",
        step,
    )
