"""Pods and pod templates: everything that decides where a pod may run.

A field of a pod spec that is neither read nor known to be irrelevant for placement makes the pod unsupported: it may be
a misspelled constraint or one of a newer Kubernetes, and without it a plan could launch the wrong node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID, uuid5

from autoscaler.kube.affinity import Affinity, parse_affinity, parse_topology_spread
from autoscaler.kube.containers import parse_container, pod_level_resources, resource_list
from autoscaler.kube.equal_parts import read_once
from autoscaler.kube.fields import Fields
from autoscaler.kube.host_paths import paths_read, paths_there_before, rdma_devices
from autoscaler.kube.metadata import Metadata, parse_metadata
from autoscaler.kube.pod_delay import checkpoint_interval, expected_duration, max_wait, no_node_before
from autoscaler.kube.priority import PriorityClass, resolve_priority
from autoscaler.kube.problem import RENDER_OVERLAY, Problems
from autoscaler.kube.resizing import resized, resized_pod
from autoscaler.kube.selectors import parse_pod_toleration
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.pod import Container, GangRef, Pod, PodClaim
from autoscaler.model.requests import NOTHING, add
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels as keys
from instance_catalog.kubernetes.quantity import Quantity, QuantityError

_IGNORED = (
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostPID",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "os",
    "readinessGates",
    "restartPolicy",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
)
# Fields of a container. In the spec of a pod the API server refuses or drops them: they exclude no node.
_OF_CONTAINERS = (
    *("args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "ports"),
    *("readinessProbe", "startupProbe", "stdin", "terminationMessagePath", "terminationMessagePolicy", "tty"),
    *("volumeDevices", "volumeMounts", "workingDir"),
)
_UNREAD = ("affinity", *_IGNORED, *_OF_CONTAINERS)
_INLINE_DISKS = ("awsElasticBlockStore", "azureDisk", "cinder", "gcePersistentDisk", "iscsi", "rbd")
_DEFAULT_GRACE = 30  # seconds, as the API server sets it
_LONGEST_GRACE = 10 * 365 * 24 * 3600  # the time before the end of a machine must be a date
_LONGEST_MESSAGE = 1024  # characters kept of the scheduler's message
MOST_REQUIREMENTS = 1000  # of a node selector and affinity; pods in practice have a few
_UIDS = UUID("6a2cf7b4-6f0e-5d9b-9a38-0b7e6c0f2f51")
_NO_AFFINITY = Affinity()
NO_PRIORITIES: Mapping[str, PriorityClass] = {}


def parse_pod(
    raw: object,
    problems: Problems | None = None,
    *,
    origin: Origin = CLUSTER,
    priorities: Mapping[str, PriorityClass] = NO_PRIORITIES,
) -> Pod:
    """A pod. One that no API server has stored gets a uid derived from its name, so that it can own claims."""
    fields = Fields(raw, problems)
    fields.ignore("apiVersion", "kind")
    metadata = parse_metadata(fields)
    status = fields.child("status")
    pod = _parse(fields, metadata, status, origin=origin, priorities=priorities)
    fields.unread()
    return replace(
        pod,
        no_node_before=no_node_before(fields, metadata),
        checkpoint_interval=checkpoint_interval(fields, metadata),
        expected_duration=expected_duration(fields, metadata),
        max_wait=max_wait(fields, metadata),
        created=metadata.created,
    )


def parse_pod_template(
    template: Fields,
    *,
    namespace: str,
    name: str,
    labels: Mapping[str, str],
    origin: Origin,
    priorities: Mapping[str, PriorityClass],
) -> Pod:
    """The pod that a controller makes from `template`, named `name`, with the controller's `labels` added."""
    own = template.child("metadata")
    own.ignore("name", "namespace", "creationTimestamp", "finalizers", "generateName")
    merged = own.text_map("labels").with_items(labels)
    metadata = Metadata(name=name, namespace=namespace, labels=merged, annotations=own.text_map("annotations"))
    own.unread()
    pod = _parse(template, metadata, Fields(None), origin=origin, priorities=priorities)
    template.unread()
    return replace(pod, expected_duration=expected_duration(template, metadata), max_wait=max_wait(template, metadata))


def uid_of(kind: str, namespace: str, name: str) -> str:
    """The uid of an object that no API server has stored: a function of its name."""
    return str(uuid5(_UIDS, f"{kind}/{namespace}/{name}"))


def _parse(
    fields: Fields, metadata: Metadata, status: Fields, *, origin: Origin, priorities: Mapping[str, PriorityClass]
) -> Pod:
    spec = fields.child("spec")
    spec.ignore(*_UNREAD)
    for name in spec.among(_OF_CONTAINERS):
        spec.warn(name, "is a field of containers, not of a pod: it has no effect here", "move it into a container")
    host_network = spec.flag("hostNetwork")
    containers, unknown = _containers(spec, "containers", host_network=host_network)
    init_containers, unknown_of_init = _containers(spec, "initContainers", host_network=host_network)
    if not containers:
        step = (
            "add `containers:` to the pod's spec; of a patch, give what Kustomize makes of it: "
            f"{RENDER_OVERLAY}; of a pod template of Spark, give the pods that Spark makes "
            "(kubectl get pods -o yaml)"
        )
        spec.error("containers", "a pod needs at least one container", step)
    affinity = (
        parse_affinity(spec.child("affinity"), namespace=metadata.namespace, labels=metadata.labels)
        if "affinity" in spec
        else _NO_AFFINITY
    )
    pod_requests, pod_limits = pod_level_resources(spec.optional_child("resources"), containers, init_containers)
    priority = resolve_priority(spec, priorities)
    owner, pod_group = metadata.controller, _pod_group(spec.child("schedulingGroup"))
    unscheduled = _unscheduled(status)
    tolerations = [parse_pod_toleration(entry) for entry in spec.children("tolerations")]
    doubted = tuple(field for _, unknown in tolerations for field in unknown)
    spread = tuple(
        parse_topology_spread(entry, metadata.labels) for entry in spec.children("topologySpreadConstraints")
    )
    return Pod(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid or uid_of("Pod", metadata.namespace, metadata.name),
        labels=metadata.labels,
        annotations=metadata.annotations,
        containers=resized(containers, "containerStatuses", status),
        init_containers=resized(init_containers, "initContainerStatuses", status),
        overhead=resource_list(spec, "overhead"),
        pod_requests=resized_pod(pod_requests, status),
        pod_limits=pod_limits,
        claim_amounts=_claim_amounts(spec, status),
        claims=_claims(spec, status),
        node_name=spec.optional_text("nodeName") or None,
        nominated_node=status.optional_text("nominatedNodeName") or None,
        unscheduled=unscheduled.reason,
        unscheduled_why=unscheduled.message,
        node_selector=spec.text_map("nodeSelector"),
        affinity=affinity.nodes,
        preferred_affinity=affinity.preferred_nodes,
        pod_affinity=affinity.pods,
        pod_anti_affinity=affinity.anti_pods,
        preferred_pod_affinity=affinity.preferred_pods,
        preferred_pod_anti_affinity=affinity.preferred_anti_pods,
        topology_spread=spread,
        tolerations=tuple(toleration for toleration, _ in tolerations),
        volumes=_volumes(spec, metadata.name),
        image_volumes=tuple(
            reference for volume in spec.children("volumes") if (reference := volume.child("image").text("reference"))
        ),
        host_paths=paths_there_before(spec),
        paths_read=paths_read(spec),
        rdma=rdma_devices(spec),
        memory_volume=_memory_volume(spec),
        csi_drivers=_csi_drivers(spec),
        node_features=_node_features(spec, (*containers, *init_containers), host_network=host_network),
        host_network=host_network,
        scheduler_name=spec.text("schedulerName") or "default-scheduler",
        # It may add a node selector and overhead; manifests/ warns if one of the files does.
        runtime_class=spec.text("runtimeClassName"),
        scheduling_gates=tuple(entry.required("name") for entry in spec.children("schedulingGates")),
        priority=priority,
        gang=_gang(spec, metadata, pod_group),
        pod_group=pod_group,
        phase=status.text("phase") or "Pending",
        deleting=metadata.deleting,
        owner=f"{owner.kind}/{owner.name}" if owner else "",
        active_deadline_seconds=_deadline(spec),
        termination_grace_seconds=_grace(spec),
        unsupported=(
            *(*unknown, *unknown_of_init, *affinity.unknown, *doubted),
            *(*_disks(spec), *_too_many(spec.text_map("nodeSelector"), affinity)),
            *(*_too_large((*containers, *init_containers), len(tolerations) + len(spread)), *spec.unread()),
        ),
        origin=origin,
    )


def _too_many(node_selector: Mapping[str, str], affinity: Affinity) -> tuple[str, ...]:
    """The reason if the pod takes too long to compare with every instance type: a pod may have 100,000 requirements."""
    required = affinity.nodes.terms if affinity.nodes else ()
    terms = (*required, *(preferred.term for preferred in affinity.preferred_nodes))
    count = len(node_selector) + sum(max(1, len(term.match_expressions) + len(term.match_fields)) for term in terms)
    count += sum(map(len, (affinity.pods, affinity.anti_pods, affinity.preferred_pods, affinity.preferred_anti_pods)))
    if count <= MOST_REQUIREMENTS:
        return ()
    return (f"a node selector and affinity of {count} requirements, more than {MOST_REQUIREMENTS},",)


def _too_large(containers: Sequence[Container], others: int) -> tuple[str, ...]:
    """The reason if the pod takes too long to compare with a node: a pod may have 10,000 host ports or containers."""
    count = others + sum(1 + len(found.requests) + len(found.host_ports) for found in containers)
    if count <= MOST_REQUIREMENTS:
        return ()
    return (f"{count} containers, resources, ports and tolerations, more than {MOST_REQUIREMENTS},",)


def _deadline(spec: Fields) -> int | None:
    """The deadline. A file may have any number of 64 bits, and the end must be a date."""
    seconds = spec.optional_integer("activeDeadlineSeconds")
    return None if seconds is None else min(seconds, _LONGEST_GRACE)


def _grace(spec: Fields) -> int:
    """The grace period, by default that of the API server, which accepts any number of 64 bits."""
    seconds = spec.optional_integer("terminationGracePeriodSeconds")
    return _DEFAULT_GRACE if seconds is None else max(0, min(seconds, _LONGEST_GRACE))


class _Unscheduled(NamedTuple):
    """The condition PodScheduled=False; empty until the scheduler has set it."""

    reason: str = ""
    message: str = ""


def _unscheduled(status: Fields) -> _Unscheduled:
    for entry in status.children("conditions"):
        if entry.text("type") == "PodScheduled" and entry.text("status") == "False":
            return _Unscheduled(entry.text("reason") or "Unschedulable", entry.text("message")[:_LONGEST_MESSAGE])
    return _Unscheduled()


_parse_container = read_once(parse_container)


def _containers(spec: Fields, name: str, *, host_network: bool) -> tuple[tuple[Container, ...], tuple[str, ...]]:
    init = name == "initContainers"
    # The mount of a service account's token has another name in each pod.
    entries = (entry.without("volumeMounts") for entry in spec.children(name))
    found = [_parse_container(entry, init=init, host_network=host_network) for entry in entries]
    return tuple(container for container, _ in found), tuple(field for _, unknown in found for field in unknown)


def _node_features(spec: Fields, containers: Iterable[Container], *, host_network: bool) -> tuple[str, ...]:
    """The features that the pod's node must declare (component-helpers nodedeclaredfeatures/features, v0.36.3)."""
    found = []
    if any(container.restarts_all for container in containers):
        found.append("RestartAllContainersOnContainerExits")
    if spec.optional_flag("hostUsers") is False and host_network:
        found.append("UserNamespacesHostNetworkSupport")
    return tuple(found)


def _claims(spec: Fields, status: Fields) -> tuple[PodClaim, ...]:
    """Entries of spec.resourceClaims; generated claims have their names in status (dynamic-resource-allocation/api)."""
    generated = {
        entry.text("name"): entry.optional_text("resourceClaimName") or ""
        for entry in status.children("resourceClaimStatuses")
    }
    found: list[PodClaim] = []
    for entry in spec.children("resourceClaims"):
        name = entry.required("name")
        claim, template = entry.optional_text("resourceClaimName"), entry.optional_text("resourceClaimTemplateName")
        old = entry.optional_child("source")
        if old is not None:
            step = "move resourceClaimName or resourceClaimTemplateName out of `source`"
            entry.error("source", "`source` was removed with Kubernetes 1.31", step)
            claim, template = old.optional_text("resourceClaimName"), old.optional_text("resourceClaimTemplateName")
        if (claim is None) == (template is None):
            step = "write either resourceClaimName or resourceClaimTemplateName"
            entry.error("resourceClaimName", "a claim of a pod needs one source", step)
        if any(name == earlier.name for earlier in found):
            entry.error("name", f"duplicate claim name {name!r}", "give each entry its own name")
        entry.unread()
        found.append(PodClaim(name, generated.get(name) if template is not None else claim or "", template))
    return tuple(found)


def _claim_amounts(spec: Fields, status: Fields) -> FrozenMap[str, Quantity]:
    """The amounts that kube-scheduler wrote when it bound the pod (addDRANodeAllocatableClaimResources in
    component-helpers resource/helpers.go, v0.37.2; `resources` is the form of v0.36.3).

    kube-scheduler computes them again for a pending pod, so those of an earlier attempt do not count.
    """
    entries = tuple(status.children("nodeAllocatableResourceClaimStatuses")) if "nodeName" in spec else ()
    if not entries:
        return NOTHING
    found: dict[str, Quantity] = {}
    for entry in entries:
        add(found, entry.quantities("resources"))
        for mapping in entry.children("mapping"):
            add(found, _amount(mapping, "quantity"))
        references = Quantity.of(len(entry.texts("containers")))
        for overhead in entry.children("overhead"):
            add(found, _amount(overhead, "perPod"))
            add(found, {name: each.times(references) for name, each in _amount(overhead, "perContainer").items()})
    return FrozenMap(found)


def _amount(fields: Fields, name: str) -> Mapping[str, Quantity]:
    """The amount in the field, by the name of its resource."""
    amount = fields.quantity(name)
    return {} if amount is None else {fields.text("name"): amount}


def _volumes(spec: Fields, pod_name: str) -> tuple[str, ...]:
    """Names of the PersistentVolumeClaims; those of ephemeral volumes are named <pod>-<volume>."""
    found = []
    for volume in spec.children("volumes"):
        name = volume.required("name")
        claim = volume.optional_child("persistentVolumeClaim")
        if claim is not None:
            found.append(claim.required("claimName"))
        elif "ephemeral" in volume:
            found.append(f"{pod_name}-{name}")
    return tuple(found)


def _memory_volume(spec: Fields) -> Quantity | None:
    """The largest sizeLimit of an emptyDir of medium Memory; one that cannot be read decides nothing about places."""
    found: list[Quantity] = []
    for volume in (entry.child("emptyDir") for entry in spec.children("volumes")):
        limit = volume.raw("sizeLimit")
        if volume.raw("medium") == "Memory" and limit is not None:
            with suppress(QuantityError):
                found.append(Quantity.parse(str(limit)))
    return max(found, default=None)


def _csi_drivers(spec: Fields) -> tuple[str, ...]:
    found = (volume.child("csi").text("driver") for volume in spec.children("volumes") if "csi" in volume)
    return tuple(dict.fromkeys(name for name in found if name))


def _disks(spec: Fields) -> tuple[str, ...]:
    """Disks in the pod spec: scheduled by rules of their own (volumerestrictions), which are not modelled."""
    return tuple(name for volume in spec.children("volumes") for name in volume.unsupported(*_INLINE_DISKS))


def _pod_group(scheduling_group: Fields) -> str:
    name = scheduling_group.text("podGroupName")
    scheduling_group.unread()
    return name


def _gang(spec: Fields, metadata: Metadata, pod_group: str) -> GangRef | None:
    """The gang that a pod names in any of the APIs; kube/workloads/gang.py has the objects."""
    reference = spec.child("workloadRef")
    parts = (reference.text("name"), reference.text("podGroup"), reference.text("podGroupReplicaKey"))
    reference.unread()
    group = (
        pod_group
        or "/".join(part for part in parts if part)
        or metadata.labels.get(keys.COSCHEDULING_POD_GROUP, "")
        or metadata.annotations.get(keys.VOLCANO_POD_GROUP_NEW, "")
        or metadata.annotations.get(keys.VOLCANO_POD_GROUP, "")
        or metadata.annotations.get(keys.KAI_POD_GROUP, "")
    )
    return GangRef(metadata.namespace, group) if group else None
