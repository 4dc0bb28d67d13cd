"""Warnings about nodes that a cloud manages itself: it creates them, installs its own driver, and adds taints for their
devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autoscaler.lint.advice import surprise
from autoscaler.lint.pods.required import field_of
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import requested_resources
from autoscaler.planning.supply.candidates import admits_type
from autoscaler.planning.supply.drivers import PUBLISHING_TEMPLATES
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_facts, facts_of, of_no_group


def made_by_clouds(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Labels of nodes that a cloud makes or prepares itself, for the first pod that selects one that no pool and no
    node has; and names that no cloud gives a group of nodes."""
    yield from _unfilled(snapshot)
    facts = cloud_facts().values()
    for of in facts:
        message, step = of.built_in_text
        for pod, key, name in _selecting(snapshot, [of.built_in_values]):
            text = f"selects {key}={name}, {message}"
            yield surprise(f"Pod {pod.key}", field_of(pod, key), text, step, pod.origin)
    for pod, key, name in _selecting(snapshot, [one.own_driver_values for one in facts]):
        yield surprise(
            f"Pod {pod.key}",
            field_of(pod, key),
            f"selects {key}={name}, the label of node pools on which GKE installs the GPU driver itself: node pools "
            "of Foreslice are made with gpu-driver-version=disabled, which DRA needs",
            "on Autopilot, or on node pools with GKE's own driver, leave the pod to GKE; for Foreslice drop the label",
            pod.origin,
        )


def _unfilled(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """The name of a group of nodes that an example left for users to replace, for the first pod that selects one."""
    keys = sorted({facts.group_per_type for facts in cloud_facts().values()})
    pods = [pod for pod in snapshot.pods if not pod.bound]
    asked = [(pod, key, name) for pod in pods for key in keys for names in pod.required_values({key}) for name in names]
    found = [one for one in asked if of_no_group(*one[1:])]
    for pod, key, name in found[:1]:
        yield surprise(
            f"Pod {pod.key}",
            field_of(pod, key),
            f"selects {key}={name}, and no node pool has such a name: it looks like a placeholder",
            "write the name of one of your node pools (gcloud container node-pools list), or drop the label",
            pod.origin,
            others=len({one.key for one, _, _ in found}) - 1,
        )


def _selecting(snapshot: Snapshot, values: list[FrozenMap[str, frozenset[str]]]) -> list[tuple[Pod, str, str]]:
    """The first pod that waits and requires one of the values, by key, which neither pools nor nodes have."""
    had = (*(pool.labels for pool in snapshot.pools), *(node.labels for node in snapshot.nodes))
    given = {entry for labels_of in had for entry in labels_of.items()}
    entries = [entry for by_key in values for entry in by_key.items()]
    for pod in snapshot.pods:
        asked = ((key, names[0], known) for key, known in entries for names in pod.required_values({key}))
        found = next(((key, name) for key, name, known in asked if name in known and (key, name) not in given), None)
        if found is not None and not pod.bound:
            return [(pod, *found)]
    return []


def groups_in_labels(snapshot: Snapshot, catalog: Catalog) -> Iterator[Diagnostic]:
    """Labels in spec.labels that a cloud gives the nodes of a group by its name, unless the pool's node template lists
    that group: no label puts a machine into one."""
    by_key = {facts.group_per_type: cloud for cloud, facts in cloud_facts().items() if facts.group_per_type}
    for pool in snapshot.pools:
        for key, cloud in ((key, by_key[key]) for key in sorted(by_key.keys() & pool.labels.keys())):
            name, field = pool.labels[key], facts_of(cloud).group_field
            listed = {nodes.labels[key] for nodes in pool.registers if key in nodes.labels}
            if name in listed:
                continue
            message = "spec.labels puts no machine there: the plan takes any that the pool admits for one of it"
            step = f"drop the label, list {name} alone in {field}, which spec.nodeTemplateRef names, and put the "
            step += f"instance type of {name} ({labels.INSTANCE_TYPE}) into spec.requirements"
            if not any(one.cloud == cloud and admits_type(pool, one) for one in catalog):
                message, step = f"the pool admits no machine of {cloud}, so none of its nodes has it", "drop the label"
            elif listed:
                message = f"the node template of the pool lists {', '.join(sorted(listed))}"
                step = f"write {name} there, or drop the label here"
            yield surprise(
                f"CapacityPool {pool.name}",
                ("spec", "labels", key),
                f"{cloud} itself gives nodes this label, with the name of their group, and {message}",
                step,
                pool.origin,
            )


def tainted_by_cloud(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Pods with claims on nodes to which their cloud adds a taint that they do not tolerate, once for each taint. An
    admission plugin gives the toleration to pods that request the resource; a claim gives none. A CapacityPool says
    which taints its nodes have, so this is of plans without one."""
    for taint, refused in untolerated(snapshot, plan, catalog).items():
        first, *_ = refused.values()
        yield surprise(
            f"Pod {first.key}",
            ("spec", "tolerations"),
            f"does not tolerate {taint.key}={taint.value}:{taint.effect}, the taint that "
            "GKE gives node pools with these devices where the cluster has other nodes: GKE adds the toleration to "
            f"pods that request {taint.key}, and not to pods with claims",
            f"add the toleration {{key: {taint.key}, operator: Exists, effect: {taint.effect}}}, and name the "
            "taint in spec.taints of a CapacityPool",
            first.origin,
            others=len(refused) - 1,
        )


def architecture_tainted(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Pods on nodes to which their cloud adds a taint of the architecture that they do not tolerate. It adds the taint
    whatever a CapacityPool says."""
    for taint, refused in untolerated_architecture(snapshot, plan, catalog).items():
        first, *_ = refused.values()
        yield surprise(
            f"Pod {first.key}",
            ("spec", "tolerations"),
            f"does not tolerate {taint.key}={taint.value}:{taint.effect}, the taint that GKE gives all nodes of this "
            f"architecture: GKE adds the toleration to pods that select {taint.key}, and to no others",
            f"add nodeSelector {taint.key}: {taint.value}, so that GKE adds the toleration",
            first.origin,
            others=len(refused) - 1,
        )


def untolerated_architecture(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> dict[Taint, dict[str, Pod]]:
    """By taint of a cloud: the pods on its nodes that neither tolerate it nor select the architecture, by key. Nobody
    taints simulated nodes."""
    pods = {pod.key: pod for pod in snapshot.pods if not pod.bound}
    simulated = {pool.name for pool in snapshot.pools if pool.node_template.kind in PUBLISHING_TEMPLATES}
    found: dict[Taint, dict[str, Pod]] = {}
    for node in (node for node in plan.launches if node.pool not in simulated):
        machine = catalog.types.get(node.offering.instance_type)
        taint = facts_of(machine.cloud).architecture_taints.get(machine.architecture) if machine else None
        if taint is not None:
            there = {key: pods[key] for key in node.pods if key in pods}
            refused = {key: pod for key, pod in there.items() if not _accepts(pod, taint)}
            found.setdefault(taint, {}).update(refused)
    return {taint: refused for taint, refused in found.items() if refused}


def _accepts(pod: Pod, taint: Taint) -> bool:
    """True if the pod tolerates the taint, or selects nodes by its key and value, also beside other values."""
    terms = pod.affinity.terms if pod.affinity else ()
    selected = {value for t in terms for r in t.match_expressions if r.key == taint.key for value in r.values}
    selected.add(pod.node_selector.get(taint.key, ""))
    return taint.value in selected or any(one.tolerates(taint) for one in pod.tolerations)


def untolerated(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> dict[Taint, dict[str, Pod]]:
    """By taint of a cloud: the pods with claims on its nodes that do not tolerate it, by key."""
    pods = {pod.key: pod for pod in snapshot.pods if pod.claims and not pod.bound}
    found: dict[Taint, dict[str, Pod]] = {}
    for node in plan.launches:
        machine = catalog.types.get(node.offering.instance_type)
        taint = _taint_of(machine.cloud, machine.accelerator.vendor) if machine and machine.accelerator else None
        if taint is not None:
            found.setdefault(taint, {}).update(_refused(pods, node.pods, taint))
    return {taint: refused for taint, refused in found.items() if refused}


def _taint_of(cloud: str, vendor: str) -> Taint | None:
    return facts_of(cloud).accelerator_taints.get(vendor)


def _refused(pods: Mapping[str, Pod], placed: tuple[str, ...], taint: Taint) -> dict[str, Pod]:
    """Those of the placed pods that tolerate the taint neither by themselves nor for the resource that they request."""
    there = {key: pods[key] for key in placed if key in pods}
    return {
        key: pod
        for key, pod in there.items()
        if taint.key not in requested_resources(pod) and not any(one.tolerates(taint) for one in pod.tolerations)
    }
