"""From what was read to a Snapshot: what a cluster would have added is added, and everything gets its order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from autoscaler.kube.workloads.generated_claims import generate_claims
from autoscaler.kube.workloads.requested_capacity import parse_scalable
from autoscaler.manifests.manifest_set import ManifestSet
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.node import with_volume_limits
from autoscaler.model.pod import Container, Pod
from autoscaler.model.requested_capacity import RequestClass
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import CLUSTER_DEFAULT, StorageClass, VolumeBindingMode
from autoscaler.planning.demand.virtual_pods import with_virtual_pods
from autoscaler.scheduling.pv_controller import with_bound_claims, with_made_volumes
from autoscaler.scheduling.volumes import KnownVolumes, Volumes
from instance_catalog.dataclass import replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.types.clouds import Sidecar, cloud_facts

V = TypeVar("V")
_BEFORE_ANY_GIVEN: Final = -1.0  # a class of a file without creationTimestamp has 0
_NAMESPACE_NAME = "kubernetes.io/metadata.name"  # a label that every namespace has
# Amazon EKS: amazon-eks user guide, storage (gp2 is what clusters are made with; gp3 is made by people).
# GKE: Google Cloud documentation, persistent volumes (standard-rwo and premium-rwo of the PD CSI driver). Its class
# "standard" binds at once, and that of the same name in kind waits, so the name alone says nothing.
_INSTALLED: Final[Mapping[str, str]] = {
    "gp2": "kubernetes.io/aws-ebs",
    "standard-rwo": "pd.csi.storage.gke.io",
    "premium-rwo": "pd.csi.storage.gke.io",
}


def complete(manifests: ManifestSet, profile: KubernetesProfile, drivers: tuple[CustomDriver, ...] = ()) -> None:
    """Add the driver charts' DeviceClasses, generated claims, sidecars, replicas of gangs, default storage classes, and
    the volumes of claims that need no pod for them.

    `drivers` are those that the catalog describes, whose classes count like those of a chart.
    """
    manifests.classes = _installed_classes(profile, drivers) | manifests.classes
    shared = profile.gates.workload_resource_claims
    for key, pod in list(manifests.pods.items()):
        group = manifests.gangs.get(f"{pod.namespace}/{pod.pod_group}") if shared and pod.pod_group else None
        named, claims = generate_claims(pod, manifests.templates, manifests.claims, group)
        manifests.pods[key] = with_sidecars(named)
        manifests.claims.update((claim.key, claim) for claim in claims)
        _add_gang_replica(manifests, named.gang.key if named.gang else "")
    add_storage_classes(manifests)
    given = Volumes(KnownVolumes(manifests.volumes), manifests.volume_claims, manifests.storage_classes)
    bound = with_made_volumes(with_bound_claims(given))
    manifests.volumes |= bound.bound_volumes
    manifests.volume_claims |= bound.bound_claims


def _installed_classes(profile: KubernetesProfile, drivers: tuple[CustomDriver, ...]) -> dict[str, DeviceClass]:
    """The driver charts' classes. They are older than any class given: of one extended resource, the given one wins."""
    return {
        row.name: DeviceClass(
            row.name,
            tuple(Selector(text) for text in row.selectors),
            row.extended_resource_name,
            created=_BEFORE_ANY_GIVEN,
        )
        for row in builtin_device_classes(profile, drivers)
    }


def _add_gang_replica(manifests: ManifestSet, key: str) -> None:
    """A pod group of a v1alpha1 Workload is one gang for each podGroupReplicaKey."""
    group, _, replica = key.rpartition("/")
    if replica and key not in manifests.gangs and group in manifests.gangs:
        gang = manifests.gangs[group]
        manifests.gangs[key] = replace(gang, name=f"{gang.name}/{replica}")


def assemble(manifests: ManifestSet, profile: KubernetesProfile) -> Snapshot:
    """The Snapshot, with the pods that ProvisioningRequests and CapacityBuffers stand for."""
    spaces = {key.partition("/")[0] for key in (*manifests.pods, *manifests.claims)}
    labels = {space: FrozenMap[str, str]() for space in spaces} | manifests.namespaces
    namespaces = {name: found.with_items({_NAMESPACE_NAME: name}) for name, found in labels.items()}
    buffers = tuple(sorted(manifests.capacity_buffers, key=lambda found: (found.namespace, found.name)))
    requests = tuple(sorted(manifests.provisioning_requests, key=lambda found: (found.namespace, found.name)))
    snapshot = Snapshot(
        profile=profile,
        pods=tuple(_ordered(manifests.pods).values()),
        nodes=with_volume_limits(_ordered(manifests.nodes).values(), manifests.volume_limits),
        claims=_ordered(manifests.claims),
        classes=tuple(_ordered(manifests.classes).values()),
        slices=tuple(manifests.slices),
        taint_rules=tuple(_ordered(manifests.taint_rules).values()),
        gangs=_ordered(manifests.gangs),
        daemon_sets=tuple(sorted(manifests.daemon_sets, key=lambda found: (found.namespace, found.name))),
        namespaces=_ordered(namespaces),
        selections=tuple(manifests.selections),
        volumes=_ordered(manifests.volumes),
        volume_claims=_ordered(manifests.volume_claims),
        storage_classes=_ordered(manifests.storage_classes),
        attachments=tuple(manifests.attachments),
        storage_capacities=tuple(manifests.storage_capacities),
        capacity_trackers=frozenset(manifests.capacity_trackers),
        pools=tuple(
            replace(pool, registers=manifests.registers.get(pool.node_template, ()))
            for pool in _ordered(manifests.pools or manifests.node_pools).values()
        ),
        compute_classes=_ordered(manifests.compute_classes),
        blocks=tuple(_ordered(manifests.blocks).values()),
        provisioned=tuple(sorted(manifests.provisioned, key=lambda found: found.name)),
        claim_templates=_ordered(manifests.templates),
        pod_templates=_ordered(manifests.pod_templates),
        scalables=tuple(parse_scalable(raw, kind) for kind, raw in manifests.scalables) if buffers else (),
        provisioning_requests=requests,
        capacity_buffers=buffers,
        from_files=True,
    )
    return with_virtual_pods(snapshot, [request for request in requests if request.served is RequestClass.CHECK])


def _ordered(found: Mapping[str, V]) -> FrozenMap[str, V]:
    """By namespace and name: the slash of a key must not sort among the characters of names."""
    return FrozenMap({key: found[key] for key in sorted(found, key=lambda key: key.split("/"))})


def with_sidecars(pod: Pod) -> Pod:
    """The pod with the containers that webhooks of clouds add when it is created: files lack them, clusters do not."""
    annotations = pod.annotations
    known = {container.name for container in (*pod.containers, *pod.init_containers)}
    added = tuple(
        _container(sidecar, annotations)
        for facts in cloud_facts().values()
        for sidecar in facts.sidecars
        if annotations.get(sidecar.annotation) == "true" and sidecar.name not in known
    )
    return replace(pod, init_containers=(*added, *pod.init_containers)) if added else pod


def _container(sidecar: Sidecar, annotations: Mapping[str, str]) -> Container:
    requests = {name: _amount(f"{sidecar.prefix}{name}", annotations) for name in sidecar.requests}
    asked = sidecar.requests.with_items({name: amount for name, amount in requests.items() if amount is not None})
    return Container(sidecar.name, asked, sidecar=True)


def _amount(prefix: str, annotations: Mapping[str, str]) -> Quantity | None:
    """The amount that its annotations request; without a request, the limit counts as one. Unreadable values are
    skipped."""
    for form in ("request", "limit"):
        text = annotations.get(f"{prefix}-{form}")
        try:
            found = Quantity.parse(text) if text else None
        except QuantityError:
            return None
        if found is not None and (form == "request" or found.sign > 0):
            return found
    return None


def add_storage_classes(manifests: ManifestSet) -> None:
    """The classes that unbound claims name and the files lack; a claim without a name has the cluster's default.

    Files that people give rarely contain the cluster's classes. To take a missing one for one that binds at once would
    refuse pods that the scheduler places, so it binds when its cloud says so, or the answer is *unknown*.
    """
    default = next((found.name for found in manifests.storage_classes.values() if found.default), CLUSTER_DEFAULT)
    for key, claim in list(manifests.volume_claims.items()):
        if claim.volume is not None or claim.storage_class == "":
            continue
        name = default if claim.storage_class is None else claim.storage_class
        manifests.volume_claims[key] = replace(claim, storage_class=name)
        if name not in manifests.storage_classes:
            provisioner = _INSTALLED.get(name, "")
            mode = VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER if provisioner else VolumeBindingMode.UNKNOWN
            manifests.storage_classes[name] = StorageClass(name, mode, provisioner=provisioner)
