"""Finds machines in a plan whose accelerators do not work until users prepare them, or never work for the pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from autoscaler.model.capacity import NO_TEMPLATE, CapacityPool
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import accelerators_of_images, gpudirect_image, superseded_image
from autoscaler.planning.demand.mounted import clouds_of_volumes
from autoscaler.planning.supply.hami_types import other_types
from autoscaler.planning.supply.shared_volumes import shared_volumes
from instance_catalog.drivers.device_plugins import device_plugins
from instance_catalog.drivers.facts import driver_facts, gpudirect_protocols
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.device_plugins import plugin_of
from instance_catalog.prediction.runnable import NeedsMore, what_else_it_needs
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

_Placed: TypeAlias = tuple[Pod, str]  # and the instance type of its new node

# Project-HAMi/HAMi, issue 361 (2024-06): the annotation finds the very node with these cards, or no node at all.
PINNED_TO_CARDS: Final = (
    "names GPUs by their UUIDs for HAMi's scheduler: these are existing cards, and no new machine has them, so "
    "HAMi leaves the pod Pending beside it"
)
FREE_OF_CARDS: Final = "leave the pod to the nodes with these cards, or drop the annotation to get any GPU"


def unprepared(nodes: Iterable[PlannedNode], pools: Iterable[CapacityPool], catalog: Catalog) -> dict[str, NeedsMore]:
    """By instance type, the preparations that its nodes need and that are not configured. A pool that names a node
    template or drivers defines what its nodes have."""
    prepared = {pool.name for pool in pools if pool.drivers or pool.node_template != NO_TEMPLATE}
    found: dict[str, NeedsMore] = {}
    for node in nodes:
        machine = catalog.types.get(node.offering.instance_type)
        if machine is None or node.pool in prepared or not _gives_accelerators(node, machine):
            continue
        if needed := what_else_it_needs(machine):
            found[machine.name] = needed
    return found


def _gives_accelerators(node: PlannedNode, machine: InstanceType) -> bool:
    """True if a driver or a device plugin provides the accelerators of the node to pods. A driver with made-up
    devices, or one for network cards, does not count."""
    vendor = machine.accelerator.vendor if machine.accelerator else ""
    profiles = {text.partition(":")[0] for text in node.drivers}
    resources = {entry.resource for entry in node.handed_out}
    published = {facts.driver for name, facts in driver_facts().items() if name in profiles}
    return any(
        plugin.vendor == vendor and (plugin.driver in published or plugin in map(plugin_of, resources))
        for plugin in device_plugins()
    )


def not_working(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Reason]:
    """For each GPUDirect, the first pod on a machine without it, the first pod on superseded accelerators on which its
    image does not run, the first whose volume its machine does not mount, the first whose image no node pulls, the
    first that HAMi keeps from any new machine, the first that it keeps from its GPU, and volumes for one node that
    several share; `not_working` is the number of such pods."""
    pods = {pod.key: pod for pod in snapshot.pods}
    placed = [(pods[key], node.offering.instance_type) for node in plan.launches for key in node.pods if key in pods]
    yield from _without_gpudirect(placed, snapshot)
    yield from _superseded(placed)
    yield from _unmounted(placed, snapshot, catalog)
    yield from _never_pulled(placed)
    pinned = [pod for pod, _ in placed if labels.HAMI_USE_DEVICE in pod.annotations]
    if pinned:
        problem = f"metadata.annotations['{labels.HAMI_USE_DEVICE}']: {PINNED_TO_CARDS}"
        yield _useless([pod.key for pod in pinned], problem, FREE_OF_CARDS)
    yield from _of_other_types(snapshot, plan, catalog)
    yield from shared_volumes(snapshot, plan)


def _of_other_types(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Reason]:
    """The first pod on a GPU that it tells HAMi not to take."""
    found = list(other_types(snapshot, plan, catalog))
    if found:
        one = found[0]
        asked = " ".join(one.pod.annotations[one.annotation].split())
        says = "of type" if one.annotation == labels.HAMI_USE_TYPE else "not of type"
        problem = (
            f"metadata.annotations['{one.annotation}']: asks HAMi for a GPU {says} {asked}, which kube-scheduler does "
            f"not read, and gets {one.machine} with {one.model}"
        )
        known = f"select {labels.ACCELERATOR} In [{', '.join(one.agreeing)}] by node affinity, or drop the annotation"
        none = "no machine in the catalog has such a GPU: leave the pod to nodes that run HAMi, or drop the annotation"
        yield _useless([one.pod.key for one in found], problem, known if one.agreeing else none)


def _without_gpudirect(placed: Sequence[_Placed], snapshot: Snapshot) -> Iterator[Reason]:
    for protocol in gpudirect_protocols():
        found = [
            (pod, image, name)
            for pod, name in placed
            if name not in protocol.types and (image := gpudirect_image(pod, protocol, snapshot.pools))
        ]
        if found:
            _, image, name = found[0]
            problem = (
                f"spec.nodeSelector: uses {protocol.name} of Google Cloud (image {image}), which works only on "
                f"{', '.join(protocol.types)}, selects no machine, and gets {name}, where it does not work"
            )
            step = (
                f"add {labels.INSTANCE_TYPE} with one of these to its nodeSelector, or to spec.requirements of its pool"
            )
            yield _useless([pod.key for pod, *_ in found], problem, step)


def _superseded(placed: Sequence[_Placed]) -> Iterator[Reason]:
    old = [(pod, image, name) for pod, name in placed if (image := superseded_image(pod, name))]
    if old:
        pod, image, name = old[0]
        cards = ", ".join(accelerators_of_images(pod))
        problem = f"spec.containers.image: {image} does not run on {name}, which the pod gets: it needs one of {cards}"
        step = f"select them by {labels.ACCELERATOR}, or in spec.requirements of its pool"
        yield _useless([pod.key for pod, *_ in old], problem, step)


def _never_pulled(placed: Sequence[_Placed]) -> Iterator[Reason]:
    found = [(pod, one) for pod, _ in placed for one in (*pod.containers, *pod.init_containers) if one.never_pulls]
    if found:
        _, container = found[0]
        keys = list(dict.fromkeys(pod.key for pod, _ in found))
        image = container.image or container.name
        problem = (
            f"spec.containers.imagePullPolicy: is Never for {image}, and no new node has the image: the pod does not "
            "start there (ErrImageNeverPull)"
        )
        step = "bake the image into the node image, or use IfNotPresent with an image of a registry"
        yield _useless(keys, problem, step)


def _unmounted(placed: Sequence[_Placed], snapshot: Snapshot, catalog: Catalog) -> Iterator[Reason]:
    """Pods on machines of another cloud than the one whose machines alone mount their volumes."""
    found = [
        (pod, driver, name, cloud)
        for pod, name in placed
        for cloud, (_, driver) in clouds_of_volumes((pod,), snapshot).items()
        if name in catalog.types and catalog.types[name].cloud != cloud
    ]
    if not found:
        return
    _, driver, name, cloud = found[0]
    keys = dict.fromkeys(pod.key for pod, *_ in found)
    problem = (
        f"spec.volumes: mounts a volume of {driver}, which only machines of {cloud} mount, and gets {name} of "
        f"{catalog.types[name].cloud}, where it stays in ContainerCreating"
    )
    step = (
        f"require {labels.CLOUD} In [{cloud}] in spec.requirements of its pool, or use a volume that this cloud mounts"
    )
    yield _useless(list(keys), problem, step)


def _useless(keys: Sequence[str], problem: str, step: str) -> Reason:
    """The warning about the first of the pods, which do not work where they are placed."""
    subject = Subject("Pod", keys[0], others=len(keys) - 1)
    return Reason.of(Code.ADVICE, subject, problem=problem, next_step=step, not_working=len(keys))
