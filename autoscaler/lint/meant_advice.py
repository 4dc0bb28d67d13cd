"""Warnings about pods that do not say which machines they need, so a plan takes this from their topology or from the
rest of their group; and about nodes that they select and no plan buys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autoscaler.lint.advice import surprise
from autoscaler.lint.pods.no_cpu import no_cpu
from autoscaler.lint.pods.required import field_of
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.implied_machines import implied_by_groups, like_group, required_domain, types_in_domains
from autoscaler.planning.demand.scope import asks_for_no_device
from autoscaler.planning.supply.simulated_nodes import is_simulated, wants_simulated_node
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog


def meant_advice(snapshot: Snapshot, catalog: Catalog) -> Iterator[Diagnostic]:
    """One warning of each kind, about the first pod that it concerns; of the snapshot as it was given."""
    yield from no_cpu(snapshot, catalog)
    waiting = [pod for pod in snapshot.pods if not pod.bound]
    kept = [pod for pod in waiting if required_domain(pod) and not asks_for_no_device(pod)]
    assumed = not (snapshot.pools or snapshot.nodes)
    if kept:
        yield _one_domain(kept, assumed=assumed)
    groups = implied_by_groups(waiting) if assumed else {}
    alike = [pod for pod in waiting if like_group(pod, groups)]
    if alike:
        selected = ", ".join(f"{key}={value}" for key, value in like_group(alike[0], groups).items())
        yield surprise(
            f"Pod {alike[0].key}",
            ("spec", "nodeSelector"),
            f"asks for GPUs and selects no machine, while others of its group select {selected}: it "
            "is planned on the same, but kube-scheduler takes any node with GPUs",
            "select the same in leaderTemplate and in workerTemplate",
            alike[0].origin,
            others=len(alike) - 1,
        )
    simulated = [pod for pod in waiting if wants_simulated_node(pod, snapshot) and not asks_for_no_device(pod)]
    if simulated and not any(is_simulated(node.labels) for node in snapshot.nodes):
        yield _simulated(simulated, snapshot)
    beside = [pod for pod in waiting if pod.requires_label(labels.CONTROL_PLANE) and asks_for_no_device(pod)]
    there = (*(node.labels for node in snapshot.nodes), *(pool.labels for pool in snapshot.pools))
    if beside and not any(labels.CONTROL_PLANE in one for one in there):
        yield _beside_control_plane(beside)


def _simulated(pods: Sequence[Pod], snapshot: Snapshot) -> Diagnostic:
    label, claimed = wants_simulated_node(pods[0], snapshot), bool(pods[0].claims)
    what = "whose GPUs fake-gpu-operator simulates" if label == labels.SIMULATED_GPUS else "that KWOK simulates"
    slices = ", with the ResourceSlices of its devices (kubectl get nodes,resourceslices -o yaml)," if claimed else ""
    return surprise(
        f"Pod {pods[0].key}",
        ("spec",),
        f"selects {label}, the label of nodes {what}: no accelerator needs to be bought for it, and no "
        "change is proposed that buys one",
        f"give the simulated Node{slices} with -f to plan for it; to run it on a real device, do not select {label}",
        pods[0].origin,
        others=len(pods) - 1,
    )


def _beside_control_plane(pods: Sequence[Pod]) -> Diagnostic:
    return surprise(
        f"Pod {pods[0].key}",
        field_of(pods[0], labels.CONTROL_PLANE),
        f"requires the label {labels.CONTROL_PLANE}, and no Node that is given has it: no node of EKS "
        "or GKE does, since the cloud runs the control plane, so the pod never starts there",
        "drop the requirement, or keep it only for a cluster with control-plane nodes of its own: give one with -f",
        pods[0].origin,
        others=len(pods) - 1,
    )


def _one_domain(pods: Sequence[Pod], *, assumed: bool) -> Diagnostic:
    """Kueue documentation, "Topology Aware Scheduling" (0.19)."""
    key, _, label = required_domain(pods[0]).partition("=")
    types = types_in_domains(pods[0]) if assumed else ()
    having = f"; nodes of {', '.join(types)} have this label, and it is planned on these alone" if types else ""
    step = f"select {labels.INSTANCE_TYPE} to choose among these; " if types else ""
    return surprise(
        f"Pod {pods[0].key}",
        ("metadata", "annotations", key),
        f"has Kueue admit its pods only where existing nodes that share one {label} have room for all of "
        f"them: nodes of a plan are new, wherever these turn out to be{having}",
        f"{step}for machines that the cloud places near each other, give the node pool a compact placement policy, or "
        "buy a block of them",
        pods[0].origin,
        others=len(pods) - 1,
    )
