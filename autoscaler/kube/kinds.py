"""The table of kinds in a Snapshot: those that the cluster store watches, and those that manifests may contain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import Any, Final

from autoscaler.errors import BadInputError
from autoscaler.kube.autoscalers.other_autoscalers import parse_compute_class, parse_quota
from autoscaler.kube.device_class import parse_device_class, parse_device_taint_rule
from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata, unless_exemplar
from autoscaler.kube.node import parse_node
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.priority import parse_priority_class
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim, parse_resource_claim_template
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.kube.storage import (
    parse_capacity_tracker,
    parse_persistent_volume,
    parse_persistent_volume_claim,
    parse_storage_capacity,
    parse_storage_class,
    parse_volume_attachment,
    parse_volume_limits,
)
from autoscaler.kube.workloads.daemon_set import parse_daemon_set
from autoscaler.kube.workloads.disruption_budget import parse_disruption_budget
from autoscaler.kube.workloads.gang import parse_pod_group
from autoscaler.kube.workloads.requested_capacity import (
    parse_capacity_buffer,
    parse_deployment,
    parse_pod_template_object,
    parse_provisioning_request,
    parse_stateful_set,
)
from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap


class Form(Enum):
    """The form in which a Snapshot has the values of a kind."""

    TUPLE = "tuple"
    SET = "set"
    BY_NAME = "by name"
    BY_KEY = "by namespace/name"
    PAIRS = "by name, parsed as a pair"

    def of(self, values: Iterable[Any]) -> Any:
        """The field of these values; BY_KEY: of pairs of key and value."""
        match self:
            case Form.TUPLE:
                return tuple(values)
            case Form.SET:
                return frozenset(values)
            case Form.BY_NAME:
                return FrozenMap({value.name: value for value in values})
            case Form.BY_KEY | Form.PAIRS:
                return FrozenMap(values)


@dataclass(frozen=True, slots=True)
class SnapshotKind:
    """A kind of object and the field of Snapshot for its values.

    `parse` takes an object and its Problems, and if `origin` is set, an Origin. `optional`: without the right to read
    the objects, only their effects are unknown; without any other kind, nothing can be decided. `doubtful`: an object
    with a part that cannot be read counts, and the verdict about its users is unknown.
    """

    group: str
    plural: str
    name: str
    field: str
    parse: Callable[..., Any]
    form: Form = Form.TUPLE
    optional: bool = False
    doubtful: bool = False
    origin: bool = True


# Foreslice's own kinds are pydantic models. They are imported on first use: most manifests have none, and a plan starts
# a tenth of a second sooner without them.


def _capacity_pool(raw: object, problems: Problems, **origin: Any) -> Any:
    from autoscaler.kube.custom.capacity_pool import parse_capacity_pool

    return parse_capacity_pool(raw, problems, **origin)


def _capacity_block(raw: object, problems: Problems, **origin: Any) -> Any:
    from autoscaler.kube.custom.capacity_block import parse_capacity_block

    return parse_capacity_block(raw, problems, **origin)


def _provisioned_node(raw: object, problems: Problems) -> Any:
    from autoscaler.kube.custom.provisioned_node import parse_provisioned_node

    return or_problem(parse_provisioned_node, raw, problems)


def or_problem(parse: Callable[[Any], Any], raw: object, problems: Problems) -> Any:
    """An object that only Foreslice writes. Any other one is left out, with its problem reported."""
    try:
        return parse(raw)
    except BadInputError as error:
        problems.error((), error.message, error.next_step)
        return None


def _namespace(raw: object, problems: Problems) -> tuple[str, FrozenMap[str, str]]:
    metadata = parse_metadata(Fields(raw, problems))
    return metadata.name, metadata.labels


_STORAGE, _RESOURCE, _OURS = "storage.k8s.io", "resource.k8s.io", "foreslice.dev"
_CLAIMS, _CAPACITIES = "persistentvolumeclaims", "csistoragecapacities"
_REQUESTED, _REQUESTS = "autoscaling.x-k8s.io", "provisioningrequests"
_TEMPLATES: Final = "resourceclaimtemplates"
_bare = partial(SnapshotKind, origin=False)
_doubtful = partial(SnapshotKind, doubtful=True)
_optional = partial(SnapshotKind, optional=True)
_optional_bare = partial(_optional, origin=False)
PODS: Final = _doubtful("", "pods", "Pod", "pods", parse_pod)
POD_TEMPLATES: Final = _optional(
    "", "podtemplates", "PodTemplate", "pod_templates", parse_pod_template_object, Form.BY_KEY
)
PRIORITIES: Final = _bare("scheduling.k8s.io", "priorityclasses", "PriorityClass", "", parse_priority_class)
POOLS: Final = SnapshotKind(_OURS, "capacitypools", "CapacityPool", "pools", _capacity_pool)
# One line for each kind; a new kind also needs a field in Snapshot and a rule in the chart's ClusterRole.
KINDS: Final = (
    PODS,
    PRIORITIES,
    SnapshotKind("", "nodes", "Node", "nodes", unless_exemplar(parse_node)),
    _bare("", "namespaces", "Namespace", "namespaces", _namespace, Form.PAIRS),
    _optional("", "persistentvolumes", "PersistentVolume", "volumes", parse_persistent_volume, Form.BY_NAME),
    _optional("", _CLAIMS, "PersistentVolumeClaim", "volume_claims", parse_persistent_volume_claim, Form.BY_KEY),
    _optional_bare("", "resourcequotas", "ResourceQuota", "quotas", parse_quota),
    _optional(_STORAGE, "storageclasses", "StorageClass", "storage_classes", parse_storage_class, Form.BY_NAME),
    _optional_bare(_STORAGE, "csinodes", "CSINode", "volume_limits", parse_volume_limits, Form.PAIRS),
    _optional_bare(_STORAGE, "csidrivers", "CSIDriver", "capacity_trackers", parse_capacity_tracker, Form.SET),
    _optional_bare(_STORAGE, _CAPACITIES, "CSIStorageCapacity", "storage_capacities", parse_storage_capacity),
    _optional_bare(_STORAGE, "volumeattachments", "VolumeAttachment", "attachments", parse_volume_attachment),
    _doubtful(_RESOURCE, "deviceclasses", "DeviceClass", "classes", parse_device_class),
    _doubtful(_RESOURCE, "resourceclaims", "ResourceClaim", "claims", parse_resource_claim, Form.BY_KEY),
    _doubtful(
        _RESOURCE, "resourceslices", "ResourceSlice", "slices", unless_exemplar(parse_resource_slice), origin=False
    ),
    _doubtful(_RESOURCE, "devicetaintrules", "DeviceTaintRule", "taint_rules", parse_device_taint_rule),
    _optional("scheduling.x-k8s.io", "podgroups", "PodGroup", "gangs", parse_pod_group, Form.BY_KEY),
    _optional("scheduling.k8s.io", "podgroups", "PodGroup", "gangs", parse_pod_group, Form.BY_KEY),
    SnapshotKind("apps", "daemonsets", "DaemonSet", "daemon_sets", parse_daemon_set),
    _optional_bare(
        "policy", "poddisruptionbudgets", "PodDisruptionBudget", "disruption_budgets", parse_disruption_budget
    ),
    _optional_bare("apps", "deployments", "Deployment", "autoscalers", parse_deployment),
    _optional_bare("apps", "statefulsets", "StatefulSet", "scalables", parse_stateful_set),
    POD_TEMPLATES,
    _optional(
        _RESOURCE, _TEMPLATES, "ResourceClaimTemplate", "claim_templates", parse_resource_claim_template, Form.BY_KEY
    ),
    _optional(_REQUESTED, _REQUESTS, "ProvisioningRequest", "provisioning_requests", parse_provisioning_request),
    _optional(_REQUESTED, "capacitybuffers", "CapacityBuffer", "capacity_buffers", parse_capacity_buffer),
    _optional_bare(
        "cloud.google.com", "computeclasses", "ComputeClass", "compute_classes", parse_compute_class, Form.BY_NAME
    ),
    POOLS,
    SnapshotKind(_OURS, "capacityblocks", "CapacityBlock", "blocks", _capacity_block),
    _bare(_OURS, "provisionednodes", "ProvisionedNode", "provisioned", _provisioned_node),
)
BY_NAME: Final = {(kind.group, kind.name): kind for kind in KINDS}
