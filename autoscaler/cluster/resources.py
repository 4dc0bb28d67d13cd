"""The kinds of API objects that Foreslice reads or writes, in one table: their paths, and whether status is a
subresource.

It has names only; autoscaler/kube reads the content of the objects.
"""

from __future__ import annotations

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the Kubernetes API. `group` is "" for the core group; `status`: it is a subresource."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False
    status: bool = True

    @property
    def api_version(self) -> str:
        """ "v1" or "resource.k8s.io/v1"."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


PODS = Resource("", "v1", "pods", "Pod", namespaced=True)
NODES = Resource("", "v1", "nodes", "Node")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace")
EVENTS = Resource("", "v1", "events", "Event", namespaced=True, status=False)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", status=False)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", status=False)
STORAGE_CAPACITIES = Resource(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", namespaced=True, status=False
)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment")
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", status=False)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", status=False)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", namespaced=True)
POD_TEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate", namespaced=True, status=False)
PROVISIONING_REQUESTS = Resource(
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", namespaced=True
)
CAPACITY_BUFFERS = Resource("autoscaling.x-k8s.io", "v1beta1", "capacitybuffers", "CapacityBuffer", namespaced=True)
COMPUTE_CLASSES = Resource("cloud.google.com", "v1", "computeclasses", "ComputeClass")  # of GKE
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)
DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)
POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", namespaced=True)
# Kubernetes' own gangs, behind the gate GenericWorkload.
NATIVE_POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", namespaced=True)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced=True)
CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True, status=False
)
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", status=False)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", status=False)
# Upstream serves DeviceTaintRule as v1beta2 from Kubernetes 1.36 on, behind its own gate.
DEVICE_TAINT_RULES = Resource("resource.k8s.io", "v1beta2", "devicetaintrules", "DeviceTaintRule")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True, status=False)
# Questions: they are answered at once and not kept.
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", status=False)
OWN_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", status=False
)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", status=False)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"
)
CAPACITY_POOLS = Resource("foreslice.dev", "v1alpha1", "capacitypools", "CapacityPool")
CAPACITY_BLOCKS = Resource("foreslice.dev", "v1alpha1", "capacityblocks", "CapacityBlock")
INSTANCE_TYPE_OVERLAYS = Resource("foreslice.dev", "v1alpha1", "instancetypeoverlays", "InstanceTypeOverlay")
PROVISIONED_NODES = Resource("foreslice.dev", "v1alpha1", "provisionednodes", "ProvisionedNode")
LAUNCH_BATCHES = Resource("foreslice.dev", "v1alpha1", "launchbatches", "LaunchBatch")
SPENDINGS = Resource("foreslice.dev", "v1alpha1", "spendings", "Spending")
KWOK_NODE_TEMPLATES = Resource("foreslice.dev", "v1alpha1", "kwoknodetemplates", "KwokNodeTemplate")
AWS_NODE_TEMPLATES = Resource("foreslice.dev", "v1alpha1", "awsnodetemplates", "AWSNodeTemplate")
AWS_GROUP_NODE_TEMPLATES = Resource("foreslice.dev", "v1alpha1", "awsgroupnodetemplates", "AWSGroupNodeTemplate")
GCP_NODE_TEMPLATES = Resource("foreslice.dev", "v1alpha1", "gcpnodetemplates", "GCPNodeTemplate")

# Only read or asked, never written; and the native PodGroup, whose kind another resource has.
_NOT_WRITTEN = (DEPLOYMENTS, NATIVE_POD_GROUPS, TOKEN_REVIEWS, OWN_ACCESS_REVIEWS, ACCESS_REVIEWS)
ALL = tuple(found for found in vars().copy().values() if isinstance(found, Resource) and found not in _NOT_WRITTEN)
BY_KIND = {resource.kind: resource for resource in ALL}
