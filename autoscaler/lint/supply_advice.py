"""Warnings about assumptions on machines and drivers in a plan without CapacityPools, which a person can correct."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.lint.devices.assigned import assigned_by_others
from autoscaler.lint.devices.idle import mostly_idle
from autoscaler.lint.devices.mixed_groups import mixed_groups
from autoscaler.lint.pods.cloud_nodes import architecture_tainted, groups_in_labels, made_by_clouds, tainted_by_cloud
from autoscaler.lint.pods.disk_space import assumed_disk, directories_of_nodes, memory_volumes
from autoscaler.lint.pods.flavors import flavors_without_nodes
from autoscaler.lint.pods.gpu_shares import SHARED_PRODUCT, SHARING_CLAIM, labelled_as_shared
from autoscaler.lint.pods.multus import attached_networks
from autoscaler.lint.pods.rdma_cards import cards_advice
from autoscaler.lint.pods.required import field_of
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.drivers import FEATURE_DISCOVERY, handed_out
from autoscaler.planning.supply.unprepared import unprepared
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.device_plugins import plugin_of
from instance_catalog.prediction.system_labels import OF_ANY_MODEL
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_facts
from instance_catalog.types.instance_type import Accelerator

_GPU_CLASS: Final = "gpu.nvidia.com"
_GPU_RESOURCE: Final = "nvidia.com/gpu"
# Words by which people name pods, or their namespace, that share GPUs.
_SHARING: Final = re.compile(
    r"\b(gpus?\b.*\b(share|shared|sharing)|(share|shared|sharing)\b.*\bgpus?|time-?slic(e|ed|ing)|mps"
    r"|gpus?-(slices?|fractions?)|(fractional|sliced)-gpus?)\b"
)
# Labels of nodes that say nothing about which GPU they have.
_OF_ANY_MODEL: Final = frozenset(
    {
        *(labels.NVIDIA_GPU_PRESENT, labels.ARCHITECTURE, labels.OPERATING_SYSTEM, labels.CLOUD, labels.CAPACITY_TYPE),
        *(labels.NVIDIA_PCI_PRESENT, labels.KARPENTER_GPU_MANUFACTURER),
        *(labels.ZONE, labels.ZONE_BETA, labels.REGION, labels.REGION_BETA),
        *OF_ANY_MODEL,
    }
)


def supply_advice(
    snapshot: Snapshot, plan: Plan, catalog: Catalog, *, dear_disks: bool = False
) -> Iterator[Diagnostic]:
    """Of plans with pools only root disks, plugins, what nobody prepares, nodes of clouds themselves, and GPUs of which
    neither pod nor pool says the model: pools say what else the nodes are. `dear_disks`: cheaper GPUs are left out for
    the root disks that are assumed."""
    yield from assumed_disk(snapshot, plan, catalog)
    yield from memory_volumes(snapshot, plan)
    yield from directories_of_nodes(snapshot, plan)
    yield from cards_advice(snapshot, plan, catalog)
    yield from attached_networks(snapshot, plan)
    yield from _assumed_plugins(snapshot, plan, catalog)
    yield from _unprepared(snapshot, plan, catalog)
    yield from made_by_clouds(snapshot)
    yield from assigned_by_others(snapshot, plan)
    yield from flavors_without_nodes(snapshot, plan, catalog)
    yield from groups_in_labels(snapshot, catalog)
    yield from architecture_tainted(snapshot, plan, catalog)
    yield from _of_reservations(snapshot)
    yield from mixed_groups(snapshot, plan, catalog)
    if not any(_GPU_RESOURCE in machine.allocatable for machine in catalog):
        yield from _shared_by_pools(snapshot)
    yield from _of_shared_gpus(snapshot)
    if snapshot.pools:
        yield from _any_gpu(snapshot, plan, catalog, dear_disks=dear_disks)
        return
    used = {profile for node in plan.launches for profile in node.drivers}
    yield from tainted_by_cloud(snapshot, plan, catalog)
    yield from _any_gpu(snapshot, plan, catalog, dear_disks=dear_disks)
    if not any(_GPU_RESOURCE in machine.allocatable for machine in catalog):
        yield from _named_for_sharing(snapshot)
    yield from _discovered(plan)
    yield from _workload_identity(snapshot, plan)
    yield from _made_up(used)


def _assumed_plugins(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """The device plugins on which pods rely and that no DaemonSet in sight is, once for each resource. What the cloud
    installs, and what the catalog says that nodes have, is not assumed."""
    there = handed_out(snapshot)
    found: dict[str, dict[str, None]] = {}
    for node in plan.launches:
        machine = catalog.types[node.offering.instance_type]
        for resource in (entry.resource for entry in node.handed_out):
            plugin = plugin_of(resource)
            known = resource in {*machine.allocatable, *machine.extended_resources}
            if plugin is not None and not plugin.managed and plugin.driver not in there and not known:
                found.setdefault(resource, {})[machine.name] = None
    for resource, types in sorted(found.items()):
        yield surprise(
            f"resource {resource}",
            (),
            f"no DeviceClass serves it, so its device plugin is assumed to run on {', '.join(types)}, and no DRA "
            "driver for the same devices beside it",
            "run the plugin there; a plan knows of it by its DaemonSet, given with -f or read with --live",
        )


def _any_gpu(snapshot: Snapshot, plan: Plan, catalog: Catalog, *, dear_disks: bool) -> Iterator[Diagnostic]:
    """The GPU that pods get which say nothing about it, once: of the model that most of them get."""
    card, asking = _of_any_model(snapshot, plan, catalog)
    if card is not None:
        kind = "cheapest kind with the root disks that are assumed" if dear_disks else "cheapest kind"
        yield surprise(
            f"Pod {asking[0].key}",
            (),
            f"names no GPU model or memory, so it gets whole GPUs of the {kind}: {_card(card)}{_weights(asking[0])}",
            _how_to_name(asking[0]),
            asking[0].origin,
            others=len(asking) - 1,
        )


def advised_gpu(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> str:
    """The same in a plan with a change that somebody has yet to make; "" if its pods say which GPUs they need."""
    card, asking = _of_any_model(snapshot, plan, catalog)
    if card is None:
        return ""
    card_text = f"{_card(card)}{_weights(asking[0])}"
    return f"names no GPU model or memory, so it gets the cheapest whole GPUs: {card_text}; {_how_to_name(asking[0])}"


def advised_assumptions(snapshot: Snapshot, plan: Plan, catalog: Catalog, *, idle: bool) -> tuple[str, ...]:
    """What such a plan assumes of the machines, and, if asked, which of their devices it leaves `idle`."""
    assumed = [*_assumed_plugins(snapshot, plan, catalog), *attached_networks(snapshot, plan)]
    assumed += () if snapshot.pools else _discovered(plan)
    texts = (f"{one.subject}: {one.message}; {one.next_step}" for one in assumed)
    return (*texts, *(mostly_idle(plan, catalog) if idle else ()))


def _of_any_model(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> tuple[Accelerator | None, list[Pod]]:
    """The model of GPU that most of the pods get that do not say it, and these pods."""
    pods, pools = {pod.key: pod for pod in snapshot.pods if not pod.bound}, {one.name: one for one in snapshot.pools}
    found: dict[str, list[Pod]] = {}
    for node in plan.launches:
        pool = pools.get(node.pool)
        if pools and (pool is None or not _admits_any(pool)):
            continue
        own = frozenset(pool.labels) if pool else frozenset[str]()
        machine = catalog.types.get(node.offering.instance_type)
        if machine is not None and machine.accelerator is not None and machine.accelerator.vendor == "NVIDIA":
            found.setdefault(machine.accelerator.key, []).extend(
                pods[key] for key in node.pods if key in pods and _takes_any(pods[key], snapshot, own)
            )
    key, asking = max(found.items(), key=lambda entry: len(entry[1]), default=("", []))
    cards = (one.accelerator for one in catalog if one.accelerator and one.accelerator.key == key)
    return (next(cards, None) if asking else None), asking


def _card(card: Accelerator) -> str:
    """The model with its memory, by which people see whether their program fits."""
    return f"{card.model} with {card.memory}" if card.memory else card.model


def _how_to_name(pod: Pod) -> str:
    """The field in which a pod says which GPU it needs: a pod without a claim has no CEL selector."""
    if pod.claims:
        return "if it needs another one, say so in a CEL selector on productName, architecture or memory"
    return (
        f"if it needs another one, select its nodes by {labels.INSTANCE_TYPE} or {labels.ACCELERATOR}, or "
        "write a resource claim with a CEL selector"
    )


def _weights(pod: Pod) -> str:
    """The memory for the weights of the pod's largest model, if its name has their number."""
    named = (one for one in pod.containers if one.model_billions is not None)
    largest = max(named, key=lambda one: (one.model_billions or 0) * one.model_bits, default=None)
    if largest is None:
        return ""
    found, bits = largest.model_billions or 0, largest.model_bits
    weights = f"{found * 1e9 * bits / 8 / 2**30:.0f}Gi in {bits} bits"
    return f"; the weights of its model with {found:g} billion parameters alone take about {weights}"


def _admits_any(pool: CapacityPool) -> bool:
    """True if nothing of the pool says which GPUs its nodes have."""
    return pool.groups is None and all(one.key in _OF_ANY_MODEL for one in pool.requirements)


def _takes_any(pod: Pod, snapshot: Snapshot, own: Set[str] = frozenset()) -> bool:
    """True if the pod asks for NVIDIA GPUs and nothing that it says depends on the model; `own`: the keys of labels of
    the pool, which a person chose."""
    said = pod.selected_labels
    if pod.annotations.keys() & {labels.HAMI_USE_TYPE, labels.HAMI_AVOID_TYPE}:
        return False
    if any(key not in _OF_ANY_MODEL | own and not key.startswith(labels.NVIDIA_DEPLOY_PREFIX) for key in said):
        return False
    return _asks_for_gpus(pod, snapshot)


def _asks_for_gpus(pod: Pod, snapshot: Snapshot) -> bool:
    """True if it asks for NVIDIA GPUs as such, by claims or as a resource."""
    named = (snapshot.claims.get(f"{pod.namespace}/{entry.claim}") for entry in pod.claims if entry.claim)
    claims = [claim for claim in named if claim is not None]
    requests = [request for claim in claims for request in claim.requests]
    plain = all(
        isinstance(r, DeviceRequest) and r.device_class == _GPU_CLASS and not r.selectors and not r.capacity
        for r in requests
    )
    served = {one.extended_resource_name for one in snapshot.classes if one.name == _GPU_CLASS} - {None}
    asked = {name for container in (*pod.containers, *pod.init_containers) for name in container.requests}
    return plain and not any(claim.config for claim in claims) and bool(requests or served & asked)


def _named_for_sharing(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Pods of one workload that get a GPU each, where the name of the workload or its namespace says that they share
    one, once. How a cluster shares GPUs is a setting of its driver or device plugin, which manifests do not show."""
    groups: dict[tuple[str, str], list[Pod]] = {}
    for pod in snapshot.pods:
        if not pod.bound and any(_SHARING.search(name.lower()) for name in (pod.namespace, pod.owner or pod.name)):
            groups.setdefault((pod.namespace, pod.owner), []).append(pod)
    for pods in groups.values():
        own = {entry.claim for pod in pods for entry in pod.claims}
        if len(pods) < 2 or not all(_asks_for_gpus(pod, snapshot) for pod in pods) or 0 < len(own) < len(pods):
            continue
        yield surprise(
            f"Pod {pods[0].key}",
            (),
            f"it and {len(pods) - 1} more are named as pods that share a GPU, and each gets a whole one",
            _how_to_share(claimed=bool(own)),
            pods[0].origin,
        )
        return


def _how_to_share(*, claimed: bool) -> str:
    """The way to state in a plan that the driver or the device plugin shares GPUs."""
    if not claimed:
        return (
            "if your device plugin shares GPUs, say how many a node hands out: `foreslice catalog set TYPE "
            f"allocatable.{_GPU_RESOURCE}=… --into DIR --reason WHY`, and plan with --catalog DIR"
        )
    profile = next(facts.sharing_profile for facts in driver_facts().values() if facts.driver == _GPU_CLASS)
    unlimited = f"{profile.rpartition('=')[0]}=unlimited"
    return (
        "let them use one ResourceClaim; or, if your driver shares GPUs between claims, name it in a CapacityPool: "
        f"spec.drivers.profiles: ['{unlimited}']"
    )


def _discovered(plan: Plan) -> Iterator[Diagnostic]:
    """Labels of somebody else's software on which the first node relies that has them."""
    profile, option = FEATURE_DISCOVERY
    for node in plan.launches:
        if any(text.split(":")[0] == profile and option in text.split(":") for text in node.drivers):
            yield surprise(
                f"instance type {node.offering.instance_type}",
                (),
                "pods select it by labels of NVIDIA GPU feature discovery, which is assumed to run on the node",
                "install it (the GPU Operator does), and list all that its nodes run in a CapacityPool: "
                f"spec.drivers.profiles: [{', '.join(node.drivers)}]",
            )
            return


def _workload_identity(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """The label of GKE's Workload Identity, for the first pod that gets a node by it."""
    placed = {key for node in plan.launches for key in node.pods}
    key = labels.GKE_METADATA_SERVER
    selecting = [pod for pod in snapshot.pods if pod.key in placed and key in pod.node_selector]
    if selecting:
        yield surprise(
            f"Pod {selecting[0].key}",
            ("spec", "nodeSelector"),
            f"selects {key}, which nodes of GKE have where Workload Identity is on: that is assumed of the nodes",
            "create the node pools with --workload-metadata=GKE_METADATA, and name the label in spec.labels of a "
            "CapacityPool",
            selecting[0].origin,
        )


def _of_reservations(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Labels of nodes in a reservation that no CapacityBlock describes: what is bought instead is paid for again."""
    keys = frozenset[str]().union(*(facts.reservation_labels for facts in cloud_facts().values()))
    for pod, label, others in () if snapshot.blocks or snapshot.nodes else _first_selecting(snapshot, keys):
        yield surprise(
            f"Pod {pod.key}",
            field_of(pod, label.partition("=")[0]),
            f"selects {label}, machines of a reservation: a plan knows of one by a CapacityBlock, and without it "
            "buys others at their own price",
            "describe the reservation by a CapacityBlock, and name the label in spec.labels of its CapacityPool",
            pod.origin,
            others=others,
        )


def _of_shared_gpus(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """The product's name that only nodes with shared GPUs have, for the first pod that selects one."""
    key = labels.NVIDIA_GPU_PRODUCT
    given = (*(node.labels for node in snapshot.nodes), *(pool.labels for pool in snapshot.pools))
    there = {labels_of.get(key) for labels_of in given}
    asked = ((pod, name) for pod in snapshot.pods for names in pod.required_values({key}) for name in names)
    shared = ((pod, name) for pod, name in asked if name.endswith(SHARED_PRODUCT))
    found = [(pod, name) for pod, name in shared if not pod.bound and name not in there]
    for pod, name in found[:1]:
        yield surprise(
            f"Pod {pod.key}",
            field_of(pod, key),
            f"selects {name}: GPU feature discovery writes {SHARED_PRODUCT} where NVIDIA's device plugin shares "
            "each GPU among pods (time slicing or MPS); nodes of a plan hand out whole GPUs and have no such label",
            f"{SHARING_CLAIM}, select {name.removesuffix(SHARED_PRODUCT)} for a whole GPU each, or, "
            f"{labelled_as_shared(f'{key}={name}')}",
            pod.origin,
            others=len(found) - 1,
        )


def _shared_by_pools(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Labels of node pools whose device plugin hands out parts of GPUs."""
    keys = frozenset[str]().union(*(facts.sharing_labels for facts in cloud_facts().values()))
    for pod, label, others in _first_selecting(snapshot, keys):
        yield surprise(
            f"Pod {pod.key}",
            field_of(pod, label.partition("=")[0]),
            f"selects {label}, by which a node pool hands out parts of its GPUs: a plan counts a whole GPU for "
            "each of these pods",
            f"say how many a node hands out: `foreslice catalog set TYPE allocatable.{_GPU_RESOURCE}=… --into DIR "
            "--reason WHY`, and plan with --catalog DIR; or claim a part of a GPU through DRA (docs/plan.md)",
            pod.origin,
            others=others,
        )


def _first_selecting(snapshot: Snapshot, keys: frozenset[str]) -> list[tuple[Pod, str, int]]:
    """The first pod that selects one of the labels, the label, and how many more do; nothing if none does."""
    pods = [pod for pod in snapshot.pods if not pod.bound]
    found = [(p, f"{key}={names[0]}") for p in pods for key in sorted(keys) for names in p.required_values({key})]
    others = len({pod.key for pod, _ in found}) - 1
    return [(*one, others) for one in found[:1]]


def _made_up(used: set[str]) -> Iterator[Diagnostic]:
    """Devices of a driver that makes them up: the cheapest machine of all is as good as any."""
    for name in sorted(used & driver_facts().keys()):
        facts = driver_facts()[name]
        if facts.simulated:
            options = ":".join(f"{option}=4" for option, found in facts.options.items() if not found.switch)
            yield surprise(
                f"driver {facts.driver}",
                (),
                "makes up its devices on any machine, so the cheapest of the catalog serves",
                "name your machines in a CapacityPool (spec.requirements), and how the driver is installed in "
                f"spec.drivers.profiles, such as ['{name}:{options}']",
            )


def _unprepared(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Nodes whose accelerators do not work by themselves, once for each thing that they need."""
    seen: set[str] = set()
    for name, needed in unprepared(plan.launches, snapshot.pools, catalog).items():
        if needed.problem not in seen:
            seen.add(needed.problem)
            message = f"{needed.problem} (source: {needed.source})"
            yield surprise(f"instance type {name}", (), message, needed.next_step)
