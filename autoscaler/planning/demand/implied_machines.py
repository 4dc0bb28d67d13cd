"""Finds machines that pods need although they do not select them: by their images, by the topology of Kueue, by
the other pods of their group, and the cloud that their volumes need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import (
    OF_MACHINES,
    accelerators_of_images,
    node_groups,
    requiring,
    selecting_what_images_need,
    types_of_images,
)
from autoscaler.planning.demand.mounted import clouds_of_volumes
from autoscaler.planning.demand.scope import requested_resources
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.types.clouds import cloud_facts

_GPU: Final = "nvidia.com/gpu"
_ONE_DOMAIN: Final = (labels.KUEUE_ONE_DOMAIN, labels.KUEUE_ONE_DOMAIN_EACH)


def with_implied_selectors(snapshot: Snapshot, admitted: Collection[str] = ()) -> Snapshot:
    """The snapshot in which pods select these machines, if there is no CapacityPool; with pools, only the cloud that
    their volumes need, if it is among the clouds that the pools `admitted`.

    A plan over the whole catalog must not buy nodes on which a pod does not work; kube-scheduler accepts any node.
    """
    if snapshot.nodes:
        return snapshot
    if snapshot.pools:
        kept = tuple(_where_mounted(pod, snapshot, admitted) for pod in snapshot.pods)
        return snapshot if kept == snapshot.pods else replace(snapshot, pods=kept)
    snapshot = selecting_what_images_need(snapshot)
    groups = implied_by_groups(snapshot.pods)
    near = (_of_group(_near_each_other(pod), groups) for pod in snapshot.pods)
    return replace(snapshot, pods=tuple(_where_mounted(pod, snapshot, cloud_facts()) for pod in near))


def _where_mounted(pod: Pod, snapshot: Snapshot, admitted: Collection[str]) -> Pod:
    """The pod in the one cloud whose machines mount its volumes: on any other it stays in ContainerCreating."""
    clouds = () if pod.bound else tuple(clouds_of_volumes((pod,), snapshot))
    if len(clouds) != 1 or clouds[0] not in admitted:
        return pod
    return requiring(pod, Requirement(labels.CLOUD, "In", clouds))


def required_domain(pod: Pod) -> str:
    """The pod's annotation that makes Kueue keep it in one domain with similar pods, and the label of the domain."""
    return next((f"{key}={pod.annotations[key]}" for key in _ONE_DOMAIN if key in pod.annotations), "")


def types_in_domains(pod: Pod) -> tuple[str, ...]:
    """The instance types whose nodes have the label of the domain that Kueue requires for the pod.

    Only for labels of a cloud, and for pods that request GPUs and select no machine.
    """
    label = required_domain(pod).rpartition("=")[2]
    if not label or types_of_images(pod) or not _selects_none(pod):
        return ()
    known = (entry for facts in cloud_facts().values() for entry in facts.topology_types.items())
    return next((types for prefix, types in known if label.startswith(prefix)), ())


def implied_by_groups(pods: Iterable[Pod]) -> dict[tuple[str, str], FrozenMap[str, str]]:
    """The labels of machines that some pods of a leader-worker group select, by group, if others request GPUs and
    select no machine. The group is one program, and GKE's samples name its GPU only in the leader's template."""
    found: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        if labels.LWS_GROUP_KEY in pod.labels:
            found.setdefault(_group(pod), []).append(pod)
    implied: dict[tuple[str, str], FrozenMap[str, str]] = {}
    for group, members in found.items():
        selected = {_machine(pod) for pod in members if _machine(pod)}
        if len(selected) == 1 and any(_selects_none(pod) for pod in members):
            implied[group] = selected.pop()
    return implied


def implied_reason(pod: Pod, given: Pod) -> str:
    """The machines that a plan assumes for the pod, and the reason. `given` is the pod without this assumption."""
    if types := types_of_images(given) or accelerators_of_images(given):
        return f"planned on {', '.join(types)}, as its image works nowhere else"
    if types := types_in_domains(given):
        return f"planned on {', '.join(types)}, whose nodes have the label of its topology"
    if pod.node_selector == given.node_selector:
        return f"planned in {', '.join(pod.required_values({labels.CLOUD})[-1])}, the only cloud that mounts its volume"
    return f"planned on {', '.join(sorted(_machine(pod).values()))}, as others of its group"


def like_group(pod: Pod, groups: Mapping[tuple[str, str], FrozenMap[str, str]]) -> FrozenMap[str, str]:
    """The labels of machines that the rest of its group selects and the pod does not; empty for other pods."""
    implied = groups.get(_group(pod)) if labels.LWS_GROUP_KEY in pod.labels else None
    return implied if implied and _selects_none(pod) else FrozenMap()


def _of_group(pod: Pod, groups: Mapping[tuple[str, str], FrozenMap[str, str]]) -> Pod:
    implied = like_group(pod, groups)
    return replace(pod, node_selector=pod.node_selector.with_items(implied)) if implied else pod


def _near_each_other(pod: Pod) -> Pod:
    types = types_in_domains(pod)
    return requiring(pod, Requirement(labels.INSTANCE_TYPE, "In", types)) if types else pod


def _selects_none(pod: Pod) -> bool:
    """True if it requests GPUs as a resource, and neither a label of machines nor a node pool selects their type."""
    return _GPU in requested_resources(pod) and not (pod.required_values(OF_MACHINES) or node_groups(pod))


def _machine(pod: Pod) -> FrozenMap[str, str]:
    return FrozenMap({key: value for key, value in sorted(pod.node_selector.items()) if key in OF_MACHINES})


def _group(pod: Pod) -> tuple[str, str]:
    return pod.namespace, pod.labels[labels.LWS_GROUP_KEY]
