"""From what was read to a Snapshot: what a cluster would have added is added, and everything gets its order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from autoscaler.kube.workloads.generated_claims import generate_claims
from autoscaler.manifests.manifest_set import ManifestSet
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import with_volume_limits
from autoscaler.model.snapshot import Snapshot
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile

V = TypeVar("V")
_NAMESPACE_NAME = "kubernetes.io/metadata.name"  # a label that every namespace has


def complete(gathered: ManifestSet, profile: KubernetesProfile, drivers: tuple[CustomDriver, ...] = ()) -> None:
    """Add the driver charts' DeviceClasses, generated claims, replicas of gangs, and default storage classes.

    `drivers` are those that the catalog describes, whose classes count like those of a chart.
    """
    installed = {
        row.name: DeviceClass(row.name, tuple(Selector(text) for text in row.selectors), row.extended_resource_name)
        for row in builtin_device_classes(profile, drivers)
    }
    gathered.classes = installed | gathered.classes
    shared = profile.gates.workload_resource_claims
    for key, pod in list(gathered.pods.items()):
        group = gathered.gangs.get(f"{pod.namespace}/{pod.pod_group}") if shared and pod.pod_group else None
        named, claims = generate_claims(pod, gathered.templates, gathered.claims, group)
        gathered.pods[key] = named
        gathered.claims.update((claim.key, claim) for claim in claims)
        _add_gang_replica(gathered, named.gang.key if named.gang else "")
    default = next((found.name for found in gathered.storage_classes.values() if found.default), None)
    for key, claim in gathered.volume_claims.items():
        if claim.storage_class is None and claim.volume is None:
            gathered.volume_claims[key] = replace(claim, storage_class=default)


def _add_gang_replica(gathered: ManifestSet, key: str) -> None:
    """A pod group of a v1alpha1 Workload is one gang for each podGroupReplicaKey."""
    group, _, replica = key.rpartition("/")
    if replica and key not in gathered.gangs and group in gathered.gangs:
        gang = gathered.gangs[group]
        gathered.gangs[key] = replace(gang, name=f"{gang.name}/{replica}")


def assemble(gathered: ManifestSet, profile: KubernetesProfile) -> Snapshot:
    """The Snapshot."""
    spaces = {pod.namespace for pod in gathered.pods.values()} | {claim.namespace for claim in gathered.claims.values()}
    labels = {space: FrozenMap[str, str]() for space in spaces} | gathered.namespaces
    namespaces = {name: found.with_items({_NAMESPACE_NAME: name}) for name, found in labels.items()}
    return Snapshot(
        profile=profile,
        pods=tuple(_ordered(gathered.pods).values()),
        nodes=with_volume_limits(_ordered(gathered.nodes).values(), gathered.volume_limits),
        claims=_ordered(gathered.claims),
        classes=tuple(_ordered(gathered.classes).values()),
        slices=tuple(gathered.slices),
        taint_rules=tuple(_ordered(gathered.taint_rules).values()),
        gangs=_ordered(gathered.gangs),
        daemon_sets=tuple(sorted(gathered.daemon_sets, key=lambda found: (found.namespace, found.name))),
        namespaces=_ordered(namespaces),
        selections=tuple(gathered.selections),
        volumes=_ordered(gathered.volumes),
        volume_claims=_ordered(gathered.volume_claims),
        storage_classes=_ordered(gathered.storage_classes),
        attachments=tuple(gathered.attachments),
        storage_capacities=tuple(gathered.storage_capacities),
        capacity_trackers=frozenset(gathered.capacity_trackers),
        pools=tuple(_ordered(gathered.pools).values()),
        blocks=tuple(_ordered(gathered.blocks).values()),
        provisioned=tuple(sorted(gathered.provisioned, key=lambda found: found.name)),
    )


def _ordered(found: Mapping[str, V]) -> FrozenMap[str, V]:
    """By namespace and name: the slash of a key must not sort among the characters of names."""
    return FrozenMap({key: found[key] for key in sorted(found, key=lambda key: key.split("/"))})
