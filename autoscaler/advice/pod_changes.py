"""Changes of pods: tolerations, node selectors, node affinity, and what containers request."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

from autoscaler.advice.change import Change, ChangeKind, on_pods
from autoscaler.advice.named_models import MACHINE_KEYS, keys_of_models
from autoscaler.advice.situation import Situation
from autoscaler.lint.pods.accelerator_labels import MODEL_KEYS, nearest_value, unknown_accelerator
from autoscaler.lint.pods.card_names import whole_cards
from autoscaler.lint.pods.gpu_shares import memory_shared, shared_resource, whole_instead
from autoscaler.lint.pods.mig_parts import part_selected
from autoscaler.lint.pods.one_node import known_nodes, nodes_named
from autoscaler.lint.pods.other_cards import least_memory
from autoscaler.lint.pods.unknown_types import ec2_name, of_family, unknown_type
from autoscaler.lint.pods.unserved import foreign_resource, unserved_resources
from autoscaler.lint.tpu_advice import part_of_slice, topologies_of_size
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code, Fact
from autoscaler.model.requested_capacity import CONSUMES_REQUEST
from autoscaler.planning.demand.images import TYPE_KEYS, requiring, types_of_images
from autoscaler.planning.demand.mounted import clouds_of_volumes
from autoscaler.planning.demand.scope import requested_resources, served_resources
from autoscaler.scheduling.node_state import host_ports
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.taint import Taint, Toleration
from instance_catalog.prediction.system_labels import SYSTEM_KEYS
from instance_catalog.types.clouds import made_by_cloud, of_no_group, queue_labels, region_of_zone_id, zone_id_labels

_MEBI = 2**20


def tolerations(asked: Situation) -> Iterator[Change]:
    """For each taint that kept the pod off a node."""
    if Code.TAINT_NOT_TOLERATED not in asked.codes:
        return
    taints = [taint for pool in asked.pools for taint in pool.taints]
    taints += [block.taint for block in asked.snapshot.blocks if block.taint]
    taints += [taint for node in asked.snapshot.nodes for taint in node.taints]
    named = {(r.detail.get("key"), r.detail.get("effect")) for r in asked.reasons if r.code is Code.TAINT_NOT_TOLERATED}
    for taint in dict.fromkeys(taints):
        if (taint.key, taint.effect) in named:
            text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
            edit = on_pods(asked.keys, partial(_tolerating, taint=taint))
            yield Change.of(ChangeKind.TOLERATE, asked.subject, edit, taint=text)


def tolerating_cloud(taint: Taint, asked: Situation) -> Change:
    """A toleration for a taint that a cloud gives its nodes with the devices that the pods claim."""
    edit, shown = on_pods(asked.keys, partial(_tolerating, taint=taint)), f"{taint.key}={taint.value}:{taint.effect}"
    why = {"select": f"{taint.key}={taint.value}"} if taint.key == labels.ARCHITECTURE else {"resource": taint.key}
    return Change.of(ChangeKind.TOLERATE_CLOUD, asked.subject, edit, taint=shown, **why)


def _tolerating(pod: Pod, taint: Taint) -> Pod:
    added = Toleration(taint.key, "Equal" if taint.value else "Exists", taint.value, taint.effect)
    return replace(pod, tolerations=(*pod.tolerations, added))


def unconsumed_requests(asked: Situation) -> Iterator[Change]:
    """Without the annotation by which the pods wait for the nodes of a ProvisioningRequest, where there is none: one
    that another autoscaler serves may still bring them."""
    waiting = [reason.detail for reason in asked.reasons if reason.code is Code.PROVISIONING_REQUEST]
    if any("missing" in detail or "ended" in detail for detail in waiting):
        named = [key for key in CONSUMES_REQUEST if key in asked.pod.annotations]
        edit = on_pods(asked.keys, partial(_without_annotations, keys=named))
        yield Change.of(ChangeKind.DROP_ANNOTATION, asked.subject, edit, annotation=" and ".join(named))


def _without_annotations(pod: Pod, keys: Collection[str]) -> Pod:
    return replace(pod, annotations=FrozenMap({k: v for k, v in pod.annotations.items() if k not in keys}))


def labels_of_auto_mode(asked: Situation) -> Iterator[Change]:
    """Karpenter's labels of an instance in the place of those that only nodes of EKS Auto Mode have."""
    mine = {
        key: key.replace(labels.AUTO_MODE_INSTANCE_PREFIX, labels.KARPENTER_INSTANCE_PREFIX)
        for key in asked.pod.selected_labels
    }
    new = {key: name for key, name in sorted(mine.items()) if name != key and name in SYSTEM_KEYS}
    if new:
        edit = on_pods(asked.keys, partial(_renamed, new=new))
        facts = {"labels": tuple(new.values()), "was": tuple(new)}
        yield Change.of(ChangeKind.RENAME_LABELS, asked.subject, edit, **facts)


def _renamed(pod: Pod, new: Mapping[str, str]) -> Pod:
    selector = {new.get(key, key): value for key, value in pod.node_selector.items()}
    terms = pod.affinity.terms if pod.affinity else ()
    renamed = tuple(
        replace(t, match_expressions=tuple(replace(r, key=new.get(r.key, r.key)) for r in t.match_expressions))
        for t in terms
    )
    affinity = NodeSelector(renamed) if pod.affinity else None
    return replace(pod, node_selector=FrozenMap(selector), affinity=affinity)


def zone_names(asked: Situation) -> Iterator[Change]:
    """The name of a zone in the place of its id, a label that the cloud writes and no plan predicts: tried in any zone
    of its region."""
    for label, facts in zone_id_labels().items():
        for zones in asked.pod.required_values({label})[:1]:
            regions = tuple(sorted({region_of_zone_id(one) for one in zones}))
            regions = regions if all(regions) else ()
            edit = on_pods(asked.keys, partial(_in_regions, regions=regions, key=label))
            told: dict[str, Fact] = {"key": label, "zones": zones, "regions": regions, "command": facts.zone_names}
            yield Change.of(ChangeKind.NAME_ZONE, asked.subject, edit, **told)


def _in_regions(pod: Pod, regions: tuple[str, ...], key: str) -> Pod:
    free = _without_key(pod, key)
    free = _without_affinity(free, key) if pod.affinity else free
    return requiring(free, Requirement(labels.REGION, "In", regions)) if regions else free


def renamed_types(asked: Situation) -> Iterator[Change]:
    """The name of EC2 for an instance type that the pod selects under Amazon SageMaker's; for another that the catalog
    lacks, those of its family with the nearest sizes. And the catalog's value for an accelerator that is unknown."""
    unknown = unknown_type(asked.pod, asked.catalog)
    selected = {**asked.pod.node_selector}
    terms = asked.pod.affinity.terms if asked.pod.affinity else ()
    selected |= {r.key: r.values[0] for term in terms for r in term.match_expressions if len(r.values) == 1}
    for key in sorted(TYPE_KEYS & selected.keys()):
        own = ec2_name(selected[key], asked.catalog)
        near = of_family(unknown, asked.catalog, most=2) if selected[key] == unknown else []
        for value in [own] if own else near:
            edit = on_pods(asked.keys, partial(_selecting, key=key, was=selected[key], value=value))
            yield Change.of(ChangeKind.REWRITE_TYPE, asked.subject, edit, key=key, was=selected[key], value=value)
    key = labels.ACCELERATOR
    was = unknown_accelerator(asked.pod, key, asked.catalog, asked.snapshot)
    for value in nearest_value(was, key, asked.catalog) if was else ():
        edit = on_pods(asked.keys, partial(_selecting, key=key, was=was, value=value))
        yield Change.of(ChangeKind.REWRITE_TYPE, asked.subject, edit, key=key, was=was, value=value)


def other_topologies(asked: Situation) -> Iterator[Change]:
    """The topologies of as many chips that the TPU generation has, where it does not have the one that is selected."""
    key = labels.GKE_TPU_TOPOLOGY
    for value in topologies_of_size(asked.pod, asked.catalog):
        was = asked.pod.node_selector[key]
        edit = on_pods(asked.keys, partial(_selecting, key=key, was=was, value=value))
        yield Change.of(ChangeKind.REWRITE_TYPE, asked.subject, edit, key=key, was=was, value=value)


def _selecting(pod: Pod, key: str, was: str, value: str) -> Pod:
    """The pod with another value, wherever it selects nodes by the key and that one."""
    selector = {k: value if (k, v) == (key, was) else v for k, v in pod.node_selector.items()}
    affinity = pod.affinity
    if affinity is not None:
        affinity = NodeSelector(
            tuple(
                replace(
                    term,
                    match_expressions=tuple(
                        replace(r, values=(value,)) if (r.key, r.values) == (key, (was,)) else r
                        for r in term.match_expressions
                    ),
                )
                for term in affinity.terms
            )
        )
    return replace(pod, node_selector=FrozenMap(selector), affinity=affinity)


def whole_gpus(asked: Situation) -> Iterator[Change]:
    """Whole GPUs for pods that ask for parts of them, which no node of a plan hands out."""
    found, (changed, instead) = shared_resource(asked.pod), whole_instead(asked.pod)
    if found and changed != asked.pod:
        edit = on_pods(asked.keys, lambda pod: whole_instead(pod)[0])
        whole = Change.of(ChangeKind.WHOLE_GPUS, asked.subject, edit, resources=tuple(found.split()), instead=instead)
        yield Change.together(whole, *_with_their_memory(asked))


def _with_their_memory(asked: Situation) -> Iterator[Change]:
    """Only GPUs with the memory of one that the pods ask for, if not all have it. Where none has it, a whole one is no
    answer either: no accelerator is left to select."""
    memory = memory_shared(asked.pod)
    cards = [one for one in whole_cards(asked.catalog) if one.vendor == "NVIDIA"]
    smaller = {one.key for one in cards if memory is not None and least_memory(one) < memory.int64_value()}
    if memory is not None and smaller:
        keys = tuple(sorted({one.key for one in cards} - smaller))
        needed = Requirement(labels.ACCELERATOR, "In", keys)
        edit, shown = on_pods(asked.keys, partial(requiring, needed=needed)), f"{memory.int64_value() // _MEBI}Mi"
        yield Change.of(
            ChangeKind.REQUIRE_MEMORY, asked.subject, edit, label=needed.key, accelerators=keys, memory=shown
        )


def foreign_resources(asked: Situation) -> Iterator[Change]:
    """Without the resources that only nodes of other clouds or systems have, in one change, for pods that want devices
    besides."""
    given = {name for node in asked.snapshot.nodes for name in node.allocatable} | served_resources(asked.snapshot)
    found = tuple(filter(foreign_resource, unserved_resources(asked.pod, given, asked.catalog)))
    others = [name for name in requested_resources(asked.pod) if "/" in name and name not in found]
    if found and (others or asked.pod.claims):
        edit = on_pods(asked.keys, partial(_without_resources, names=found))
        yield Change.of(ChangeKind.DROP_RESOURCES, asked.subject, edit, resources=found)


def _without_resources(pod: Pod, names: Collection[str]) -> Pod:
    def left(container: Container) -> Container:
        kept = {name: amount for name, amount in container.requests.items() if name not in names}
        return replace(container, requests=FrozenMap(kept))

    containers, before = (tuple(map(left, every)) for every in (pod.containers, pod.init_containers))
    return replace(pod, containers=containers, init_containers=before)


def node_selectors(asked: Situation) -> Iterator[Change]:
    """Without one key of nodeSelector, or one requirement of node affinity."""
    if not asked.codes & {Code.NODE_SELECTOR_MISMATCH, Code.NODE_AFFINITY_MISMATCH, Code.NO_CANDIDATE}:
        return
    # Nobody wants to drop these; no type is near to an accelerator that the catalog lacks, and where a label of others
    # names one that it has, another is no answer.
    lacking = {key for key in MODEL_KEYS if unknown_accelerator(asked.pod, key, asked.catalog, asked.snapshot)}
    lacking |= TYPE_KEYS if unknown_type(asked.pod, asked.catalog) or types_of_images(asked.pod) else set()
    lacking |= keys_of_models(asked.pod, asked.catalog)
    # These name parts of GPUs, which claims can name as well.
    lacking |= {labels.NVIDIA_MIG_CONFIG, labels.NVIDIA_GPU_PRODUCT} if part_selected(asked.pod) else set()
    unseen = nodes_named(asked.pod, known_nodes(asked.snapshot))
    lacking |= {labels.HOSTNAME} if asked.pod.host_paths and not unseen else set()  # what it mounts is there alone
    lacking |= {labels.CLOUD} if clouds_of_volumes((asked.pod,), asked.snapshot) else set()  # no other mounts these
    lacking |= zone_id_labels().keys()  # a zone has a name as well
    lacking |= {labels.GKE_TPU_TOPOLOGY} if part_of_slice(asked.pod) else set()  # single hosts are not wired as one
    lacking |= {labels.GKE_TPU_ACCELERATOR} if topologies_of_size(asked.pod, asked.catalog) else set()
    keys = sorted(asked.pod.node_selector.keys() - lacking, key=lambda key: (key in MACHINE_KEYS, key))
    for key, value in ((key, asked.pod.node_selector[key]) for key in keys):
        edit = on_pods(asked.keys, partial(_without_key, key=key))
        facts: dict[str, Fact] = {"key": key, "value": value, **_of_nodes(asked, key, (value,))}
        yield Change.of(ChangeKind.DROP_NODE_SELECTOR, asked.subject, edit, **facts)
    terms = asked.pod.affinity.terms if asked.pod.affinity else ()
    named = dict.fromkeys(r.key for term in terms for r in term.match_expressions)
    for key in sorted(named.keys() - lacking, key=lambda key: (key in MACHINE_KEYS, key)):
        yield _no_affinity(asked, key)


def leaving_others(asked: Situation) -> Iterator[Change]:
    """Without the labels of nodes that no plan buys: those of groups that another autoscaler sizes for a queue, those
    that the cloud makes by itself or that no group has, where no pool has taken their name, and the name of one node
    that is not in sight. And with names of zones in the place of their ids."""
    yield from zone_names(asked)
    built_in = {
        key
        for key in asked.pod.selected_labels
        for names in asked.pod.required_values({key})
        if any(made_by_cloud(key, name) or of_no_group(key, name) for name in names)
        and not any(pool.labels.get(key) in names for pool in asked.pools)
    }
    one = {labels.HOSTNAME} if nodes_named(asked.pod, known_nodes(asked.snapshot)) else set()
    for key in sorted(queue_labels() & asked.pod.selected_labels | built_in | one):
        if value := asked.pod.node_selector.get(key):
            edit = on_pods(asked.keys, partial(_without_key, key=key))
            facts = {"key": key, "value": value, **_of_nodes(asked, key, (value,))}
            yield Change.of(ChangeKind.DROP_NODE_SELECTOR, asked.subject, edit, **facts)
        else:
            yield _no_affinity(asked, key)


def _no_affinity(asked: Situation, key: str) -> Change:
    """Without node affinity on the label; `values` are those that any of the pods would have taken."""
    affinities = (pod.affinity for pod in asked.pods if pod.affinity)
    found = (r for affinity in affinities for term in affinity.terms for r in term.match_expressions if r.key == key)
    values = tuple(dict.fromkeys(value for r in found if r.operator == "In" for value in r.values))
    edit = on_pods(asked.keys, partial(_without_affinity, key=key))
    facts: dict[str, Fact] = {"key": key, "values": values, **_of_nodes(asked, key, values)}
    return Change.of(ChangeKind.DROP_NODE_AFFINITY, asked.subject, edit, **facts)


def _of_nodes(asked: Situation, key: str, names: tuple[str, ...]) -> dict[str, Fact]:
    """If the pods no longer select nodes by name: the names, and the host ports that each pod has, because of which no
    two of them share a node."""
    if key != labels.HOSTNAME:
        return {}
    each = [dict.fromkeys(host_ports(pod)) for pod in asked.pods]
    common = [port for port in each[0] if all(port in others for others in each)]
    ports = tuple(f"{one.port} ({one.added})" if one.added else str(one.port) for one in common)
    return {"nodes": names, "ports": ports}


def gives_up_accelerator(change: Change) -> bool:
    return not keys_dropped(change).isdisjoint(MACHINE_KEYS)


def keys_dropped(change: Change) -> frozenset[object]:
    """The keys of the labels that the pod no longer selects after it."""
    dropped = (ChangeKind.DROP_NODE_SELECTOR, ChangeKind.DROP_NODE_AFFINITY)
    return frozenset(part.detail["key"] for part in change.steps if part.kind in dropped)


def _without_key(pod: Pod, key: str) -> Pod:
    return replace(pod, node_selector=FrozenMap({k: v for k, v in pod.node_selector.items() if k != key}))


def _without_affinity(pod: Pod, key: str) -> Pod:
    terms = tuple(_term_without(term, key) for term in pod.affinity.terms) if pod.affinity else ()
    # A term without any requirement matches nothing; dropping the last requirement means dropping the affinity.
    empty = any(not term.match_expressions and not term.match_fields for term in terms)
    return replace(pod, affinity=None if empty else NodeSelector(terms))


def _term_without(term: NodeSelectorTerm, key: str) -> NodeSelectorTerm:
    return replace(term, match_expressions=tuple(r for r in term.match_expressions if r.key != key))
