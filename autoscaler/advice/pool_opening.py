"""Everything that lets a pool serve a pod, as one change: scheduler, scope, labels, drivers, volume claims.

Each obstacle alone hides the next, and nobody wants to meet them one after another.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, on_pool, pool_subject, unchanged
from autoscaler.advice.named_models import (
    MACHINE_KEYS,
    OWN_DOMAINS,
    class_given,
    has_nearest,
    is_read,
    lacking_label,
    machine_meant,
    models_of_parts,
)
from autoscaler.advice.pod_changes import leaving_others, tolerating_cloud
from autoscaler.advice.pool_changes import (
    add_scheduler,
    in_cloud_meant,
    on_cards_of_images,
    one_host_each,
    require,
    set_drivers,
    widen_scope,
)
from autoscaler.advice.situation import NAMES_OF_POOLS, Situation, group_of_gang, worth_serving
from autoscaler.advice.volumes import missing_volumes
from autoscaler.lint.pods.card_names import names_groups
from autoscaler.lint.pods.cloud_terms import cloud_named
from autoscaler.lint.pods.compute_classes import capacity_of_class, machines_of_class
from autoscaler.lint.pods.mig_parts import WHOLE, claiming_parts, mig_resources, naming_parts
from autoscaler.model.capacity import CapacityPool, PodScope
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code, Fact
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.planning.demand.scope import IMPLICIT, network_card_alone, requested_resources, served_resources
from autoscaler.planning.supply.candidates import admits_type
from autoscaler.planning.supply.drivers import beside_plugins, handed_out, readable
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels as known
from instance_catalog.kubernetes.label_syntax import is_label_value
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.prediction.device_plugins import (
    MIG_CLASS,
    is_plugin_resource,
    mig_condition,
    mig_layout,
    plugin_of,
)
from instance_catalog.types.clouds import cloud_facts, clouds_of_labels, made_by_cloud, of_no_group
from instance_catalog.types.instance_type import CapacityType

_ABOUT_LABELS = frozenset(
    {Code.NODE_SELECTOR_MISMATCH, Code.NODE_AFFINITY_MISMATCH, Code.GANG_TOPOLOGY, Code.POD_AFFINITY}
)
# Domains of labels that follow from the machine, its drivers or its cloud, and exceptions: names of groups of nodes.
_LABELLED_BY_TYPE = (
    *("kubernetes.io", "k8s.io", "nvidia.com", "amd.com", "intel.com", "foreslice.dev", "karpenter.sh"),
    *(domain.rstrip("/") for domain in OWN_DOMAINS),
)
_GROUPS_PER_TYPE = {facts.group_per_type: facts.group_field for facts in cloud_facts().values() if facts.group_per_type}
_ANYTHING = "true"  # of a label that only has to be there
_DESCRIBED: Final = "NAME"  # of a driver that people describe
ANY_GROUP: Final = "NAME"  # of a group of nodes that people name; NAME-2 is another
_MOST_LABELS = 16  # more are no small change, and a pod may name 100,000
_NOWHERE: Final = Pod("", "device-plugin", uid="", node_selector=FrozenMap({"foreslice.dev/nowhere": ""}))


def any_group(name: Fact) -> bool:
    """True if people choose the name; no cloud has upper case in one."""
    return str(name).startswith(ANY_GROUP)


def openings(asked: Situation) -> Iterator[Change]:
    """By pool: what it takes to serve the pod; then also with the labels that the pod selects, which the pool's node
    template may give as well. What the cloud installs on its nodes is expected there, but not where all is known."""
    devices = any("/" in name for pod in asked.pods for name in requested_resources(pod))
    if not worth_serving(asked.left_out) and not (devices and not network_card_alone(asked.pod)):
        return
    volumes = tuple(missing_volumes(asked))
    plugins = tuple(_plugins(asked, managed=False))
    for pool in asked.pools:
        serving, labelling = tuple(_serving(asked, pool)), tuple(add_labels(asked, pool))
        if not serving:
            continue
        serving = (*serving, *on_cards_of_images(asked, pool))
        labelling = labelling or tuple(leaving_others(asked))
        if hosts := tuple(one_host_each(asked, pool)):
            yield Change.together(*serving, *hosts, *labelling, *volumes, *plugins)
        if labelling and not pool.implicit:
            yield Change.together(*serving, *volumes, *plugins)
        yield Change.together(*serving, *labelling, *volumes, *plugins)
        if asked.snapshot.daemon_sets and (every := tuple(_plugins(asked, managed=True))) != plugins:
            yield Change.together(*serving, *labelling, *volumes, *every)


def node_labels(asked: Situation) -> Iterator[Change]:
    """The labels that the pod selects and that people give to nodes, in spec.labels of each pool."""
    for pool in asked.pools if asked.codes & _ABOUT_LABELS else ():
        yield from add_labels(asked, pool)


def add_labels(asked: Situation, pool: CapacityPool) -> Iterator[Change]:
    """Those of the labels that the pool does not have yet."""
    wanted = {**_of_affinity(asked.pod, pool), **asked.pod.node_selector}
    wanted = {k: value for k, value in wanted.items() if given_by_people(k, value) and not made_by_cloud(k, value)}
    if not all(map(is_label_value, wanted.values())):
        return  # no node can have it; a value of a node affinity may be as long as an object
    # What a gang shares, where it names groups of nodes: one pool is one group, and any name does.
    groups = {group_of_gang(asked.pod, asked.snapshot)} - {""} | _shared_by_copies(asked)
    shared = dict.fromkeys(sorted(groups - pool.labels.keys()), ANY_GROUP)
    wanted = {**shared, **wanted}
    labels = {key: value for key, value in wanted.items() if pool.labels.get(key) != value}
    # Another change has the pod select the nearest model: no node has the one that the label names.
    labels = {key: value for key, value in labels.items() if not has_nearest(key, value, asked.catalog)}
    named = {key: value for key, value in labels.items() if shared.get(key) != value}
    labels = {key: value for key, value in labels.items() if key not in named or not of_no_group(key, value)}
    if any(cloud_named(key) or lacking_label(key, value, asked.catalog) for key, value in labels.items()):
        return  # no node has the GPU that it names, or only one of another cloud has it
    if not _in_their_cloud(labels, pool, asked):
        return
    if 0 < len(labels) <= _MOST_LABELS:
        requirements = tuple(machine_meant(labels, pool, asked))
        machine_changes = (require(pool, r) for r in requirements)
        buying = _bought_as_named(labels, pool, asked)
        yield Change.together(*machine_changes, *buying, *_given(labels, pool, asked), *leaving_others(asked))


def _shared_by_copies(asked: Situation) -> set[str]:
    """The labels of groups of nodes by which the pod requires to be beside its copies, if no existing node has them."""
    terms = [term for term in asked.pod.pod_affinity if term.selector and term.selector.matches(asked.pod.labels)]
    given = {key for node in asked.snapshot.nodes for key in node.labels}
    return {term.topology_key for term in terms} & NAMES_OF_POOLS - given


def _bought_as_named(labels: Mapping[str, str], pool: CapacityPool, asked: Situation) -> Iterator[Change]:
    """The capacity types of a given ComputeClass, or spot if the name of a group of nodes says so, in a pool that
    somebody creates for these pods."""
    given = class_given(labels, asked.snapshot)
    kinds = capacity_of_class(given, asked.catalog) if given is not None and pool.implicit else ()
    if pool.implicit and not asked.where.capacity_types and any(map(_of_spot, labels, labels.values())):
        kinds = (CapacityType.SPOT,)
    if kinds and kinds != (CapacityType.ON_DEMAND,):
        edit = on_pool(pool.name, lambda found: replace(found, capacity_types=kinds))
        facts = {"capacity_type": kinds[0], "allow": ", ".join(kinds)}
        yield Change.of(ChangeKind.ALLOW_CAPACITY_TYPE, pool_subject(pool), edit, **facts)


def _of_spot(key: str, value: str) -> bool:
    """True if the name of a group of nodes has the word in it."""
    return names_groups(key) and CapacityType.SPOT.value in re.split(r"[^a-z]+", value.lower())


def _in_their_cloud(labels: Mapping[str, str], pool: CapacityPool, asked: Situation) -> bool:
    """True if the pool admits machines of the cloud whose nodes alone have one of the labels."""
    clouds = clouds_of_labels(labels)
    return not clouds or any(one.cloud in clouds and admits_type(pool, one) for one in asked.catalog)


def _given(labels: dict[str, str], pool: CapacityPool, asked: Situation) -> Iterator[Change]:
    """The labels in spec.labels; those that a cloud gives the nodes of a group by its name, by the node template."""
    # That a label is there, whatever its value, names no machine.
    machine = tuple(sorted(key for key in MACHINE_KEYS if asked.pod.required_values({key})))
    named = asked.pod.required_values({known.KARPENTER_NODE_POOL} & labels.keys())[:1]
    if own := {key: value for key, value in labels.items() if key not in _GROUPS_PER_TYPE}:
        facts: dict[str, Fact] = {"machine": machine, "node_pools": named[0] if named else ()}
        of_class = class_given(own, asked.snapshot)
        if of_class is not None and machines_of_class(of_class, asked.catalog):
            facts["compute_class"] = of_class.name
        edit = on_pool(pool.name, partial(_labelled, labels=own))
        yield Change.of(ChangeKind.ADD_LABELS, pool_subject(pool), edit, labels=_shown(own), **facts)
    for key, value in labels.items():
        if key in _GROUPS_PER_TYPE:
            facts = {"machine": machine, "group": value, "field": _GROUPS_PER_TYPE[key]}
            facts |= {"read": (value,)} if is_read(key, value, asked) else {}
            group = {key: value}
            edit = on_pool(pool.name, partial(_labelled, labels=group))
            yield Change.of(ChangeKind.LIST_GROUP, pool_subject(pool), edit, labels=_shown(group), **facts)


def _shown(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in labels.items())


def _of_affinity(pod: Pod, pool: CapacityPool) -> dict[str, str]:
    """A label for each requirement of the first term of node affinity, any of which would do: the first value, or none
    where the pool has one of the others already."""
    terms = pod.affinity.terms[:1] if pod.affinity else ()
    found = [r for term in terms for r in term.match_expressions if pool.labels.get(r.key) not in r.values]
    values = {r.key: r.values[0] for r in found if r.operator == "In" and r.values}
    anything = {r.key: _ANYTHING for r in found if r.operator == "Exists" and r.key not in pool.labels}
    return {**anything, **values}


def given_by_people(key: str, value: str) -> bool:
    """True if a node has the label only because its pool says so; no driver writes a label with a resource's name. A
    MIG layout is written by people as well, but one that divides GPUs is a driver's option: nodes have other devices
    then."""
    domain = key.rpartition("/")[0]
    return (
        key in NAMES_OF_POOLS
        or is_plugin_resource(key)
        or (key, value) == (known.NVIDIA_MIG_CONFIG, known.NVIDIA_MIG_DISABLED)
        or not any(domain == one or domain.endswith(f".{one}") for one in _LABELLED_BY_TYPE)
    )


def _labelled(pool: CapacityPool, labels: dict[str, str]) -> CapacityPool:
    return replace(pool, labels=pool.labels.with_items(labels))


def claimed_parts(asked: Situation) -> Iterator[Change]:
    """Claims of MIG parts for pods that ask the device plugin for them, which divides no GPU itself; by pool with the
    labels, volumes and drivers that they then need."""
    served = served_resources(asked.snapshot)
    named = naming_parts(asked.pod)
    wanted = mig_resources(named, served)
    if not wanted or all(one.name != MIG_CLASS for one in asked.snapshot.classes):
        return
    devices = tuple(f"{count} with {mig_condition(name)}" for name, count in wanted.items())
    edit = partial(_with_claims, keys=asked.keys, served=served)
    there = mig_resources(asked.pod, served)
    resources = tuple(dict.fromkeys(name if name in there else WHOLE for name in wanted))
    facts: dict[str, Fact] = {"devices": devices, "device_class": MIG_CLASS, "resources": resources}
    claimed = Change.of(ChangeKind.CLAIM_PARTS, asked.subject, edit, **facts)
    volumes = tuple(missing_volumes(asked))
    for pool in asked.pools:
        scheduled = asked.pod.scheduler_name in pool.scope.schedulers
        serving = () if scheduled else (add_scheduler(asked, pool),)
        labelling = tuple(add_labels(asked, pool)) or tuple(leaving_others(asked))
        whole = Change.together(claimed, *serving, *models_of_parts(asked), *labelling, *volumes)
        if pool.implicit or any("mig" in text for text in pool.drivers):
            yield whole
        for drivers in () if pool.implicit else _dividing(pool, wanted):  # a plan without pools tries all anyway
            if drivers != pool.drivers:
                yield Change.together(whole, set_drivers(pool, drivers))


def _with_claims(snapshot: Snapshot, keys: frozenset[str], served: frozenset[str]) -> Snapshot:
    named = (naming_parts(pod) for pod in snapshot.pods if pod.key in keys)
    changed = {pod.key: claiming_parts(pod, served) for pod in named if mig_resources(pod, served)}
    claims = {claim.key: claim for _, claim in changed.values()}
    pods = tuple(changed[pod.key][0] if pod.key in changed else pod for pod in snapshot.pods)
    return replace(snapshot, pods=pods, claims=snapshot.claims.with_items(claims))


def _dividing(pool: CapacityPool, resources: Collection[str]) -> Iterator[tuple[str, ...]]:
    """The pool's drivers, with GPUs that the node image divides by a layout of nvidia-mig-parted: all of each for parts
    of one kind, and for several the layout that mixes them or a driver that divides GPUs itself."""
    others = tuple(text for text in pool.drivers if text.partition(":")[0].partition("@")[0] != "nvidia")
    for layout in (f"mig={mig_layout(*resources)}",) if len(resources) == 1 else ("mig=all-balanced", "dynamic-mig"):
        yield (f"nvidia:{layout}", *(others if pool.drivers else ("compute-domain",)))


def in_one_layout(change: Change, asked: Situation) -> Change | None:
    """A change to claims of one kind of MIG parts, in a pool whose GPUs are divided into these alone: of all layouts it
    has the most of them for the next pods. None for other changes, and where a pool says what divides its GPUs."""
    parts = change.steps
    named = [part for part in parts if part.kind is ChangeKind.CLAIM_PARTS]
    wanted = mig_resources(naming_parts(asked.pod), served_resources(asked.snapshot)) if named else {}
    pool = asked.pools[0]
    if len(wanted) != 1 or not pool.implicit or any(part.kind is ChangeKind.SET_DRIVERS for part in parts):
        return None
    return Change.together(change, *(set_drivers(pool, drivers) for drivers in _dividing(pool, wanted)))


def plugins(asked: Situation) -> Iterator[Change]:
    """The device plugins of resources that no node of a pool that serves the pod has; none for a network card alone,
    as the pod has lost its accelerators, and whichever machine has such a card says nothing about them."""
    if Code.INSUFFICIENT_RESOURCE not in asked.codes or network_card_alone(asked.pod):
        return
    for managed in (False, True):
        if missing := tuple(_plugins(asked, managed=managed)):
            yield Change.together(*missing)
            yield from _without_their_drivers(asked, missing)


def _without_their_drivers(asked: Situation, missing: tuple[Change, ...]) -> Iterator[Change]:
    """The plugins in pools that list DRA drivers for the same devices, without these."""
    found = (plugin_of(str(change.detail["resource"])) for change in missing)
    by_plugin = frozenset(plugin.driver for plugin in found if plugin)
    for pool in asked.pools:
        listed = readable(pool.drivers, custom=asked.catalog.drivers) if pool.drivers else None
        kept = beside_plugins(listed, by_plugin) if listed else None
        if kept and kept != listed:
            yield Change.together(set_drivers(pool, tuple(p.text for p in kept.profiles)), *missing)


def _plugins(asked: Situation, *, managed: bool) -> Iterator[Change]:
    """The device plugins that the pods rely on and that no DaemonSet in sight is; `managed`: also those that the cloud
    installs."""
    handed = handed_out(asked.snapshot)
    requested = {resource for pod in asked.pods for resource in requested_resources(pod)}
    requested -= served_resources(asked.snapshot)
    wanted = {resource: plugin_of(resource) for resource in sorted(requested)}
    missing = {
        resource: plugin.driver
        for resource, plugin in wanted.items()
        if plugin and plugin.driver not in handed and (managed or not plugin.managed)
    }
    for resource, driver in missing.items():
        yield Change.of(ChangeKind.RUN_PLUGIN, "", partial(_running, driver=driver), resource=resource)


def _running(snapshot: Snapshot, driver: str) -> Snapshot:
    """With a DaemonSet of the plugin; what it takes of a node is not known."""
    plugin = DaemonSet("", f"{driver}-device-plugin", _NOWHERE, device_plugin=driver)
    return replace(snapshot, daemon_sets=(*snapshot.daemon_sets, plugin))


def _serving(asked: Situation, pool: CapacityPool) -> Iterator[Change]:
    if asked.pod.scheduler_name not in pool.scope.schedulers:
        yield add_scheduler(asked, pool)
    if pool.scope.pods is PodScope.DEVICE_CLAIMS and any(r.code is Code.OUT_OF_SCOPE for r in asked.left_out.reasons):
        yield widen_scope(asked, pool)


def where_tried(
    change: Change, taints: Iterable[Taint], launches: Iterable[tuple[OfferingRef, int]], asked: Situation
) -> Change:
    """The change with what it needs where it was tried: those of the machines of `with_nvlink` that it got, the region
    and the cloud of a pool that somebody creates, and tolerations for taints that the cloud itself gives nodes."""
    types = tuple(dict.fromkeys(ref.instance_type for ref, _ in launches)) if asked.linked else ()
    zones = [part for part in change.steps if part.kind is ChangeKind.NAME_ZONE]
    regions = next((tuple(map(str, found)) for part in zones if isinstance(found := part.detail["regions"], tuple)), ())
    for pool in _created(change.edit(asked.snapshot)):
        named = {requirement.key for requirement in pool.requirements}
        wanted = [(key, values) for key, values in ((known.INSTANCE_TYPE, types), (known.REGION, regions)) if values]
        more = (require(pool, Requirement(key, "In", values)) for key, values in wanted if key not in named)
        change = Change.together(*more, change)
    return Change.together(in_cloud_meant(change, asked), *(tolerating_cloud(taint, asked) for taint in taints))


def with_nvlink(snapshot: Snapshot, asked: Situation) -> Snapshot:
    """The snapshot in which the pool that a change has somebody create admits only machines with multi-node NVLink, if
    the pods use IMEX channels: a plan without pools gives such pods no others (`driver_sets`)."""
    created = _created(snapshot) if asked.linked else []
    if not created:
        return snapshot
    types = tuple(one.name for one in asked.catalog if one.fabric.multi_node)
    requirement = Requirement(known.INSTANCE_TYPE, "In", types)
    requiring = [replace(pool, requirements=(*pool.requirements, requirement)) for pool in created]
    return replace(snapshot, pools=(*(pool for pool in snapshot.pools if pool not in created), *requiring))


def _created(snapshot: Snapshot) -> list[CapacityPool]:
    return [pool for pool in snapshot.pools if pool.name == IMPLICIT.name]


def pools_of_block(change: Change, drivers: tuple[str, ...], asked: Situation) -> Iterator[Change]:
    """A change that adds a block, with the pool that the block needs where there is none: with the drivers that are
    assumed anyway, else with those of its nodes in the plan."""
    bought = [part for part in change.steps if part.kind is ChangeKind.ADD_BLOCK]
    if not bought or change.edit(asked.snapshot).pools:
        return
    pool = asked.pools[0]
    names = tuple(dict.fromkeys(str(part.detail["instance_type"]) for part in bought))
    creating = require(pool, Requirement(known.INSTANCE_TYPE, "In", names))
    yield Change.together(creating, change)
    if drivers:
        yield Change.together(creating, set_drivers(pool, drivers), change)


def listing_described(change: Change, assumed: tuple[str, ...], asked: Situation) -> Change:
    """The change with the drivers in the pool that it has somebody create or edit, the one that is yet to describe
    among them: a pool that lists none has no driver of one's own. `assumed`: those with which it was tried."""
    pool = asked.pools[0]
    drivers = pool.drivers or assumed
    edited = any(part.subject == pool_subject(pool) for part in change.steps)
    if len(asked.pools) > 1 or not drivers or not edited:
        return change
    shown = Change.of(ChangeKind.SET_DRIVERS, pool_subject(pool), unchanged, drivers=(*drivers, _DESCRIBED))
    return Change.together(change, shown)


def with_drivers(asked: Situation, change: Change, found: Plan) -> Change | None:
    """The change with the drivers that a plan without drivers of its own chose for the pods; None where it chose
    several sets of them."""
    nodes = {place.node for place in found.placements if place.pod in asked.keys}
    chosen = {node.drivers for node in found.launches if node.name in nodes}
    pool, drivers = asked.pools[0], min(chosen, default=())
    if len(chosen) != 1 or not pool.implicit:
        return None
    return Change.together(change, set_drivers(pool, drivers)) if drivers else None
