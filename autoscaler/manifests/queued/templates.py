"""Pod templates as a ProvisioningRequest names them, and which of them are one pod set.

Pods read back from an API server have in their specs what it and webhooks gave to each of them: the volume with the
token of the service account, host names, environment variables. No scheduler reads these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.pod_templates import pods_in
from autoscaler.manifests.document import Document
from instance_catalog.kubernetes import labels

# plugin/pkg/admission/serviceaccount, Kubernetes 1.36: DefaultAPITokenMountPath and the name of its volume.
_TOKEN_VOLUME: Final = "kube-api-access-"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"  # it has the name of the pod
_INDICES: Final = frozenset({labels.POD_INDEX, labels.JOB_COMPLETION_INDEX, "statefulset.kubernetes.io/pod-name"})
# Of a container, kube-scheduler filters nodes by these (pkg/scheduler/framework/plugins, Kubernetes 1.36).
_PLACED_BY: Final = ("resources", "ports", "restartPolicy")
_CONTAINERS: Final = ("containers", "initContainers")
_OF_ONE_POD: Final = ("hostname", *_CONTAINERS, "volumes")
# Volumes that every node can mount.
_ANYWHERE: Final = frozenset({"configMap", "downwardAPI", "emptyDir", "projected", "secret"})


def templates_of(document: Document) -> list[dict[str, Any]]:
    """The parts of each pod template of an object that a PodTemplate has: labels, annotations and the spec, without
    what the API server adds to pods."""
    found = []
    for pod in pods_in(Fields(document.value)):
        if pod:
            metadata = pod.child("metadata")
            kept = {key: _without_applied(metadata.raw(key)) for key in ("labels", "annotations") if key in metadata}
            kept = {key: value for key, value in kept.items() if value}
            found.append({**({"metadata": kept} if kept else {}), "spec": _without_token(pod.raw("spec"))})
    return found


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if pods of both ask the same of a node, as far as a scheduler reads them. What is unknown must be equal."""
    return _placement(one) == _placement(other)


def _placement(template: Mapping[str, Any]) -> dict[str, Any]:
    spec = template["spec"]
    metadata = template.get("metadata", {})
    return {
        "labels": {key: value for key, value in (metadata.get("labels") or {}).items() if key not in _INDICES},
        "annotations": metadata.get("annotations") or {},
        "spec": {key: value for key, value in spec.items() if key not in _OF_ONE_POD},
        "volumes": [volume for volume in _objects(spec, "volumes") if not _ANYWHERE & volume.keys()],
        **{key: [_asked(container) for container in _objects(spec, key)] for key in _CONTAINERS},
    }


def _asked(container: Mapping[str, Any]) -> dict[str, Any]:
    return {key: container[key] for key in _PLACED_BY if container.get(key)}


def _objects(spec: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    yield from (one for one in spec.get(name) or () if isinstance(one, dict))


def _without_applied(value: object) -> object:
    return {key: text for key, text in value.items() if key != _APPLIED} if isinstance(value, dict) else value


def _without_token(spec: Any) -> Any:
    """A pod of the template gets a volume of its own."""
    tokens = {str(volume.get("name")) for volume in _objects(spec, "volumes") if _is_token(volume)}
    if not tokens:
        return spec
    kept = {**spec, "volumes": [volume for volume in spec["volumes"] if volume.get("name") not in tokens]}
    for key in _CONTAINERS:
        if key in spec:
            kept[key] = [_unmounted(container, tokens) for container in spec[key]]
    return {key: value for key, value in kept.items() if value or key != "volumes"}


def _is_token(volume: Mapping[str, Any]) -> bool:
    projected = volume.get("projected")
    sources = _objects(projected, "sources") if isinstance(projected, dict) else ()
    return str(volume.get("name", "")).startswith(_TOKEN_VOLUME) and any(
        "serviceAccountToken" in one for one in sources
    )


def _unmounted(container: Mapping[str, Any], volumes: set[str]) -> dict[str, Any]:
    mounts = [mount for mount in _objects(container, "volumeMounts") if mount.get("name") not in volumes]
    rest = {key: value for key, value in container.items() if key != "volumeMounts"}
    return {**rest, "volumeMounts": mounts} if mounts else rest
