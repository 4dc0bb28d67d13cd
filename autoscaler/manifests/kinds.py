"""The table of kinds: what is read, what is ignored and why, what Kubernetes has removed."""

from __future__ import annotations

from typing import Final

from autoscaler.kube.kinds import BY_NAME
from autoscaler.kube.workloads.controllers import expand_cron_job, expand_job, expand_replicas, expand_stateful_set
from autoscaler.kube.workloads.other_projects import (
    expand_dynamo_graph,
    expand_knative_service,
    expand_pod_clique_set,
    templates_at,
)
from autoscaler.kube.workloads.pod_sets import expand_job_set, expand_leader_worker_set
from autoscaler.kube.workloads.ray import (
    expand_ray_cluster,
    expand_ray_cluster_fleet,
    expand_ray_cron_job,
    expand_ray_job,
    expand_ray_service,
)
from autoscaler.kube.workloads.serving.aibrix import expand_pod_set, expand_role_set, expand_storm_service
from autoscaler.kube.workloads.serving.kserve import expand_inference_service, expand_llm_inference_service
from autoscaler.kube.workloads.serving.model_booster import expand_model_booster
from autoscaler.kube.workloads.serving.model_serving import expand_model_serving
from autoscaler.kube.workloads.serving.nim import expand_nim_cache, expand_nim_pipeline, expand_nim_service
from autoscaler.kube.workloads.slurm import expand_node_set
from autoscaler.kube.workloads.training import TRAINING_JOBS, expand_hyperpod_job, expand_training_job
from autoscaler.kube.workloads.volcano_job import expand_volcano_cron_job, expand_volcano_job
from autoscaler.manifests import readers
from autoscaler.manifests.groups.role_based import expand_role_based_group, expand_role_based_group_set
from autoscaler.manifests.manifest_set import Reader
from autoscaler.manifests.workflows.pods import expand_cron_workflow, expand_workflow
from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind that is read. `expands`: it stands for pods, unless the files hold what its controller made of it."""

    group: str
    name: str
    versions: tuple[str, ...]
    read: Reader
    namespaced: bool = True
    expands: bool = False


def _of_snapshot(group: str, name: str, versions: tuple[str, ...], *, namespaced: bool = True) -> Kind:
    return Kind(group, name, versions, readers.of_snapshot(BY_NAME[group, name]), namespaced)


# Volcano's and Run:ai's pod groups are read like those of Kubernetes, which are watched.
_POD_GROUP = readers.of_snapshot(BY_NAME["scheduling.k8s.io", "PodGroup"])
_RESOURCE = ("v1", "v1beta2", "v1beta1")
_OURS = "foreslice.dev"
_REQUESTED = "autoscaling.x-k8s.io"
_KUEUE = "kueue.x-k8s.io"
_QUEUED = ("v1beta2", "v1beta1")
# v1beta1 of MXJob is of kubeflow/mxnet-operator, which training-operator replaced.
_OF_TRAINING = {"MPIJob": ("v2beta1", "v1"), "MXJob": ("v1", "v1beta1")}

# The container that Agones adds asks for little: googleforgames/agones 00e5065, install/helm/agones/values.yaml.
_AGONES = {"agones-gameserver-sidecar": "30m"}
_OF_OTHERS = {
    ("agones.dev", "Fleet"): (("v1",), templates_at("template", "spec", "template", least=0, sidecar=_AGONES)),
    ("agones.dev", "GameServer"): (("v1",), templates_at("template", sidecar=_AGONES)),
    ("apps.nvidia.com", "NIMCache"): (("v1alpha1",), expand_nim_cache),
    ("apps.nvidia.com", "NIMPipeline"): (("v1alpha1",), expand_nim_pipeline),
    ("apps.nvidia.com", "NIMService"): (("v1alpha1",), expand_nim_service),
    ("orchestration.aibrix.ai", "PodSet"): (("v1alpha1",), expand_pod_set),
    **{
        ("orchestration.aibrix.ai", f"RayCluster{part}"): (("v1alpha1",), expand_ray_cluster_fleet)
        for part in ("Fleet", "ReplicaSet")
    },
    ("orchestration.aibrix.ai", "RoleSet"): (("v1alpha1",), expand_role_set),
    ("orchestration.aibrix.ai", "StormService"): (("v1alpha1",), expand_storm_service),
    ("apps.kruise.io", "CloneSet"): (("v1alpha1",), templates_at("template")),
    ("apps.kruise.io", "StatefulSet"): (("v1beta1", "v1alpha1"), expand_stateful_set),
    **{
        ("argoproj.io", kind): (("v1alpha1",), expand_workflow)
        for kind in ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate")
    },
    ("argoproj.io", "CronWorkflow"): (("v1alpha1",), expand_cron_workflow),
    ("argoproj.io", "Rollout"): (("v1alpha1",), templates_at("template")),
    ("grove.io", "PodCliqueSet"): (("v1alpha1",), expand_pod_clique_set),
    ("kubeflow.org", "Notebook"): (("v1", "v1beta1", "v1alpha1"), templates_at("template")),
    ("nvidia.com", "DynamoGraphDeployment"): (("v1beta1", "v1alpha1"), expand_dynamo_graph),
    ("sagemaker.amazonaws.com", "HyperPodPyTorchJob"): (("v1",), expand_hyperpod_job),
    ("workload.serving.volcano.sh", "ModelBooster"): (("v1alpha1",), expand_model_booster),
    ("workload.serving.volcano.sh", "ModelServing"): (("v1alpha1",), expand_model_serving),
    ("workloads.x-k8s.io", "RoleBasedGroup"): (("v1alpha2", "v1alpha1"), expand_role_based_group),
    ("workloads.x-k8s.io", "RoleBasedGroupSet"): (("v1alpha2", "v1alpha1"), expand_role_based_group_set),
    ("slinky.slurm.net", "NodeSet"): (("v1beta1",), expand_node_set),
    ("serving.knative.dev", "Service"): (("v1",), expand_knative_service),
}

# In the order in which they are read: contexts and priorities first, since pods are resolved against them.
KINDS = (
    Kind(_OURS, "PlanContext", ("v1alpha1",), readers.read_plan_context, namespaced=False),
    Kind("scheduling.k8s.io", "PriorityClass", ("v1",), readers.read_priority_class, namespaced=False),
    _of_snapshot("", "Namespace", ("v1",), namespaced=False),
    _of_snapshot("", "Node", ("v1",), namespaced=False),
    _of_snapshot("", "PersistentVolume", ("v1",), namespaced=False),
    _of_snapshot("", "PersistentVolumeClaim", ("v1",)),
    _of_snapshot("storage.k8s.io", "StorageClass", ("v1",), namespaced=False),
    _of_snapshot("storage.k8s.io", "CSINode", ("v1",), namespaced=False),
    _of_snapshot("storage.k8s.io", "CSIDriver", ("v1",), namespaced=False),
    _of_snapshot("storage.k8s.io", "CSIStorageCapacity", ("v1",)),
    _of_snapshot("storage.k8s.io", "VolumeAttachment", ("v1",), namespaced=False),
    _of_snapshot("resource.k8s.io", "DeviceClass", _RESOURCE, namespaced=False),
    _of_snapshot("resource.k8s.io", "ResourceClaim", _RESOURCE),
    Kind("resource.k8s.io", "ResourceClaimTemplate", _RESOURCE, readers.read_resource_claim_template),
    _of_snapshot("resource.k8s.io", "ResourceSlice", _RESOURCE, namespaced=False),
    _of_snapshot("resource.k8s.io", "DeviceTaintRule", ("v1", "v1beta2", "v1alpha3"), namespaced=False),
    Kind("resource.nvidia.com", "ComputeDomain", ("v1beta1",), readers.read_compute_domain),
    Kind("scheduling.k8s.io", "PodGroup", ("v1beta1", "v1alpha3", "v1alpha2"), _POD_GROUP),
    Kind("scheduling.k8s.io", "Workload", ("v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"), readers.read_workload),
    Kind("scheduling.x-k8s.io", "PodGroup", ("v1alpha1",), _POD_GROUP),
    Kind("scheduling.volcano.sh", "PodGroup", ("v1beta1",), _POD_GROUP),
    Kind("scheduling.run.ai", "PodGroup", ("v2alpha2",), _POD_GROUP),
    Kind(_KUEUE, "ResourceFlavor", _QUEUED, readers.read_resource_flavor, namespaced=False),
    Kind(_KUEUE, "ProvisioningRequestConfig", _QUEUED, readers.read_request_config, namespaced=False),
    Kind(_KUEUE, "AdmissionCheck", _QUEUED, readers.read_admission_check, namespaced=False),
    Kind(_KUEUE, "ClusterQueue", _QUEUED, readers.read_cluster_queue, namespaced=False),
    Kind(_KUEUE, "LocalQueue", _QUEUED, readers.read_local_queue),
    Kind("", "Pod", ("v1",), readers.read_pod),
    Kind("", "PodTemplate", ("v1",), readers.read_pod_template),
    Kind(_REQUESTED, "ProvisioningRequest", ("v1", "v1beta1"), readers.read_provisioning_request),
    Kind(_REQUESTED, "CapacityBuffer", ("v1beta1",), readers.read_capacity_buffer),
    Kind("", "Service", ("v1",), readers.read_service),
    Kind("", "ReplicationController", ("v1",), readers.workload(expand_replicas), expands=True),
    Kind("apps", "Deployment", ("v1",), readers.workload(expand_replicas), expands=True),
    Kind("apps", "ReplicaSet", ("v1",), readers.workload(expand_replicas), expands=True),
    Kind("apps", "StatefulSet", ("v1",), readers.workload(expand_stateful_set), expands=True),
    Kind("apps", "DaemonSet", ("v1",), readers.read_daemon_set),
    Kind("batch", "Job", ("v1",), readers.workload(expand_job), expands=True),
    Kind("batch", "CronJob", ("v1",), readers.workload(expand_cron_job), expands=True),
    Kind("batch.volcano.sh", "Job", ("v1alpha1",), readers.workload(expand_volcano_job), expands=True),
    Kind("batch.volcano.sh", "CronJob", ("v1alpha1",), readers.workload(expand_volcano_cron_job), expands=True),
    Kind("jobset.x-k8s.io", "JobSet", ("v1alpha2",), readers.workload(expand_job_set), expands=True),
    Kind(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        ("v1",),
        readers.workload(expand_leader_worker_set),
        expands=True,
    ),
    Kind("ray.io", "RayCluster", ("v1", "v1alpha1"), readers.workload(expand_ray_cluster), expands=True),
    Kind("ray.io", "RayJob", ("v1", "v1alpha1"), readers.workload(expand_ray_job), expands=True),
    Kind("ray.io", "RayCronJob", ("v1",), readers.workload(expand_ray_cron_job), expands=True),
    Kind("ray.io", "RayService", ("v1", "v1alpha1"), readers.workload(expand_ray_service), expands=True),
    *(
        Kind("kubeflow.org", name, versions, readers.workload(expand_training_job), expands=True)
        for name, versions in ((name, _OF_TRAINING.get(name, ("v1",))) for name in TRAINING_JOBS)
    ),
    *(  # KServe had the other group before v0.7
        Kind(group, "InferenceService", ("v1beta1",), readers.workload(expand_inference_service), expands=True)
        for group in ("serving.kserve.io", "serving.kubeflow.org")
    ),
    Kind(
        "serving.kserve.io",
        "LLMInferenceService",
        ("v1alpha2", "v1alpha1"),
        readers.workload(expand_llm_inference_service),
        expands=True,
    ),
    *(
        Kind(group, name, versions, readers.workload(expand), expands=True)
        for (group, name), (versions, expand) in _OF_OTHERS.items()
    ),
    _of_snapshot(_OURS, "CapacityPool", ("v1alpha1",), namespaced=False),
    Kind("karpenter.sh", "NodePool", ("v1", "v1beta1"), readers.read_node_pool, namespaced=False),
    _of_snapshot("cloud.google.com", "ComputeClass", ("v1",), namespaced=False),
    _of_snapshot(_OURS, "CapacityBlock", ("v1alpha1",), namespaced=False),
    _of_snapshot(_OURS, "ProvisionedNode", ("v1alpha1",), namespaced=False),
    Kind(_OURS, "InstanceTypeOverlay", ("v1alpha1",), readers.read_overlay, namespaced=False),
)
_BY_NAME = {(kind.group, kind.name): kind for kind in KINDS}
# Every provider has a kind of its own for platform fields.
_NODE_TEMPLATE = Kind(_OURS, "NodeTemplate", ("v1alpha1",), readers.read_node_template, namespaced=False)

NO_PLACEMENT: Final = "it has no influence on where pods fit"
# Envoy Gateway, page "Customize EnvoyProxy" (2026-11).
_ENVOY_PROXY = (
    "Envoy Gateway makes the pods of its proxies of it and of a Gateway: they need no accelerator, but room on "
    "ordinary nodes, by the requests and affinity in it"
)
# SlinkyProject/slurm-operator f2ed3fc, internal/builder (2026-11).
_DAEMON_OF_SLURM = (
    "Slinky makes the pods of a daemon of Slurm of it: they need no accelerator, but room on ordinary nodes"
)
# Node Feature Discovery, page "Customization guide" (2026-11).
_LABELS_OF_NODES = (
    "Node Feature Discovery labels nodes by it, which a plan does not follow: for pods that select such a label, give "
    "nodes that have it, or write it into spec.labels of a CapacityPool whose machines the rule matches"
)
_OF_RUNTIMES = (
    "it makes no pods by itself, and no InferenceService in these files is planned with it (it would name it in "
    "spec.predictor.model.runtime)"
)
# sgl-project/rbg f8be5f7, doc/features/engine-runtime.md (2026-11).
_ENGINE_RUNTIME = (
    "it adds containers with requests of their own to the pods of a RoleBasedGroup: give these pods (kubectl get pods "
    "-o yaml)"
)
_NO_ADMISSION = "admission is not simulated: give the objects as admitted"
_OTHER_AUTOSCALER = "it belongs to another autoscaler"
_OWN_REPLICAS = "replicas are taken from the workload itself"
_NO_QUOTA = "quota is not considered: the plan takes every pending pod as admitted"

_NEMO = ("Customizer", "Datastore", "Entitystore", "Evaluator", "Guardrail")
# (group, kind) of other programs, whose controllers make pods by rules that are not known here.
MAKES_PODS = frozenset(
    {
        ("agent.k8s.elastic.co", "Agent"),
        ("agents.x-k8s.io", "Sandbox"),
        *(("apps.kruise.io", kind) for kind in ("AdvancedCronJob", "BroadcastJob", "DaemonSet", "UnitedDeployment")),
        *(("apps.nvidia.com", f"Nemo{part}") for part in _NEMO),
        *(("argoproj.io", kind) for kind in ("Application", "ApplicationSet", "Experiment")),
        ("disaggregatedset.x-k8s.io", "DisaggregatedSet"),
        ("elastic.pytorch.org", "ElasticJob"),
        ("elasticsearch.k8s.elastic.co", "Elasticsearch"),
        ("extensions.agents.x-k8s.io", "SandboxClaim"),
        ("extensions.agents.x-k8s.io", "SandboxWarmPool"),
        ("flink.apache.org", "FlinkDeployment"),
        ("flow.volcano.sh", "JobFlow"),
        ("helm.toolkit.fluxcd.io", "HelmRelease"),
        ("inference.llmaz.io", "Playground"),
        ("inference.llmaz.io", "Service"),
        ("inference.sagemaker.aws.amazon.com", "InferenceEndpointConfig"),
        ("inference.sagemaker.aws.amazon.com", "JumpStartModel"),
        ("kaito.sh", "InferenceSet"),
        ("kaito.sh", "RAGEngine"),
        ("kaito.sh", "Workspace"),
        ("kibana.k8s.elastic.co", "Kibana"),
        ("kubeai.org", "Model"),
        *(("kubeflow.org", kind) for kind in ("Experiment", "Suggestion", "Trial")),
        ("machinelearning.seldon.io", "SeldonDeployment"),
        ("mlops.seldon.io", "Server"),
        ("nvidia.com", "DynamoComponentDeployment"),
        ("ome.io", "BenchmarkJob"),
        ("ome.io", "InferenceService"),
        ("orchestration.aibrix.ai", "KVCache"),
        ("production-stack.vllm.ai", "CacheServer"),
        ("production-stack.vllm.ai", "VLLMRouter"),
        ("production-stack.vllm.ai", "VLLMRuntime"),
        ("serving.kserve.io", "InferenceGraph"),
        ("sparkoperator.k8s.io", "ScheduledSparkApplication"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        ("tekton.dev", "PipelineRun"),
        ("tekton.dev", "TaskRun"),
        ("trainer.kubeflow.org", "TrainJob"),
        ("workload.codeflare.dev", "AppWrapper"),
        *(("workloads.x-k8s.io", kind) for kind in ("Instance", "InstanceSet", "RoleInstance", "RoleInstanceSet")),
    }
)

_PROGRAMS = (
    "kind.x-k8s.io kubeadm.k8s.io kubelet.config.k8s.io kubescheduler.config.k8s.io kubeproxy.config.k8s.io "
    "apiserver.config.k8s.io config.kueue.x-k8s.io config.jobset.x-k8s.io config.leaderworkerset.x-k8s.io eksctl.io "
    "skaffold ctlptl.dev audit.k8s.io config.karmada.io"
)
_NODE_SOFTWARE = (
    "nvidia.com mellanox.com amd.com sriovnetwork.openshift.io nfd.k8s-sigs.io nfd.openshift.io deviceplugin.intel.com "
    "sriovnetwork.k8snetworkplumbingwg.io k8snetworkplumbingwg.io "
    "machineconfiguration.openshift.io sriov.openshift.io"
)
_FORMS = "dashboard.opendatahub.io infrastructure.opendatahub.io"
_OLM = "operators.coreos.com"


def _groups(reason: str, names: str) -> dict[tuple[str, str], str]:
    """Every kind of these groups, unless the kind has a reason of its own."""
    return {(group, ""): reason for group in names.split()}


# (group, kind) to the reason; kind "" stands for every other kind of the group.
IGNORED = {
    **{("", kind): NO_PLACEMENT for kind in ("Endpoints", "ConfigMap", "Secret", "ServiceAccount", "Event")},
    ("", "LimitRange"): "its defaults are not applied: write requests into the pods",
    ("", "ResourceQuota"): _NO_QUOTA,
    ("apps", "ControllerRevision"): NO_PLACEMENT,
    **{("argoproj.io", kind): NO_PLACEMENT for kind in ("AnalysisRun", "AnalysisTemplate", "ClusterAnalysisTemplate")},
    (
        "argoproj.io",
        "WorkflowEventBinding",
    ): "an event starts Workflows of the WorkflowTemplate that it names: give that",
    ("autoscaling.agones.dev", "FleetAutoscaler"): _OWN_REPLICAS,
    ("bitnami.com", "SealedSecret"): NO_PLACEMENT,
    ("extensions.agents.x-k8s.io", "SandboxTemplate"): "pods are made of it only by sandboxes",
    (
        "flow.volcano.sh",
        "JobTemplate",
    ): "it is a template, of which a JobFlow makes Jobs: give those (kubectl get vcjob -o yaml)",
    (_KUEUE, "Topology"): "a plan does not keep pods to one domain of it: which new nodes share one is known only once "
    "they run",
    ("karpenter.k8s.aws", "EC2NodeClass"): "Karpenter's nodes have their image, disks and network of it, which a plan "
    "does not consider",
    **_groups("it is a form of a dashboard, of which notebooks and model servers are made: give those", _FORMS),
    ("kubeflow.org", "Profile"): f"it makes a namespace; {_NO_QUOTA}",
    ("llmd.ai", "VariantAutoscaling"): _OWN_REPLICAS,
    **_groups("it installs an operator: give its pods (kubectl get pods -o yaml) if they ask for devices", _OLM),
    ("keda.sh", "ScaledObject"): _OWN_REPLICAS,
    ("workloads.x-k8s.io", "ClusterEngineRuntimeProfile"): _ENGINE_RUNTIME,
    ("keda.sh", "TriggerAuthentication"): _OWN_REPLICAS,
    ("production-stack.vllm.ai", "LoraAdapter"): NO_PLACEMENT,
    # InftyAI/llmaz 127be3f, pkg/controller/inference/service_controller.go: of several models the main one counts.
    ("llmaz.io", "OpenModel"): "it makes no pods itself, but its flavors decide which devices and nodes those of a "
    "Playground or Service get: give these pods (kubectl get pods -o yaml)",
    ("gateway.envoyproxy.io", "EnvoyProxy"): _ENVOY_PROXY,
    **{(group, "NodeFeatureRule"): _LABELS_OF_NODES for group in ("nfd.k8s-sigs.io", "nfd.openshift.io")},
    ("node.k8s.io", "RuntimeClass"): "its node selector, tolerations and overhead are not added to pods",
    **{
        ("trainer.kubeflow.org", kind): "it is a template that makes no pods by itself, and no TrainJob in these "
        "files names it"
        for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
    },
    **{("serving.kserve.io", kind): _OF_RUNTIMES for kind in ("ServingRuntime", "ClusterServingRuntime")},
    (
        "serving.kserve.io",
        "LLMInferenceServiceConfig",
    ): "it makes no pods by itself, and no LLMInferenceService in these files names it in baseRefs",
    **_groups(
        "it names models and how they are served: pods come of an InferenceService of ome.io, whose controller follows "
        "rules of its own: give those (kubectl get pods -o yaml)",
        "ome.io",
    ),
    **{("slinky.slurm.net", kind): _DAEMON_OF_SLURM for kind in ("Accounting", "Controller", "LoginSet", "RestApi")},
    ("slinky.slurm.net", "Token"): NO_PLACEMENT,
    ("resource.k8s.io", "ResourcePoolStatusRequest"): "it is a question to a controller",
    (_OURS, "LaunchBatch"): "what it launched is in the ProvisionedNodes",
    **_groups(_OWN_REPLICAS, "autoscaling autoscaling.aibrix.ai"),
    **{("workload.serving.volcano.sh", f"AutoscalingPolicy{part}"): _OWN_REPLICAS for part in ("", "Binding")},
    **_groups("requests are taken from the pods themselves", "autoscaling.k8s.io"),
    **_groups(_OTHER_AUTOSCALER, "autoscaling.x-k8s.io karpenter.sh karpenter.k8s.aws eks.amazonaws.com"),
    ("karpenter.kwok.sh", "KWOKNodeClass"): "Karpenter's nodes without machines start as it says, and a plan launches "
    "none of them",
    **_groups(_NO_QUOTA, "kueue.x-k8s.io scheduling.volcano.sh scheduling.run.ai"),
    **_groups("it configures KAI Scheduler, whose topology and shards a plan does not follow", "kai.scheduler"),
    **_groups(
        _NO_ADMISSION,
        "admissionregistration.k8s.io kyverno.io constraints.gatekeeper.sh templates.gatekeeper.sh",
    ),
    **_groups("it configures a program and is not an object of a cluster", _PROGRAMS),
    **_groups("it configures drivers and networks of nodes; give the nodes and DaemonSets that follow", _NODE_SOFTWARE),
    **_groups(
        NO_PLACEMENT,
        "networking.serving.volcano.sh aigateway.envoyproxy.io "
        "inference.networking.k8s.io inference.networking.x-k8s.io gateway.envoyproxy.io networking.gke.io "
        "cloud.google.com route.openshift.io security.openshift.io cdi.kubevirt.io "
        "policy rbac.authorization.k8s.io networking.k8s.io gateway.networking.k8s.io discovery.k8s.io "
        "coordination.k8s.io events.k8s.io certificates.k8s.io apiextensions.k8s.io apiregistration.k8s.io "
        "flowcontrol.apiserver.k8s.io monitoring.coreos.com monitoring.googleapis.com "
        "crd.k8s.amazonaws.com elbv2.k8s.aws vpcresources.k8s.aws workloads.x-k8s.io "
        "model.aibrix.ai cert-manager.io external-secrets.io networking.istio.io "
        "security.istio.io traefik.io cilium.io k8s.cni.cncf.io snapshot.storage.k8s.io storage.k8s.io",
    ),
}


def kind_of(group: str, name: str) -> Kind | None:
    """The kind that is read under this name."""
    if group == _OURS and name.endswith(_NODE_TEMPLATE.name):
        return _NODE_TEMPLATE
    return _BY_NAME.get((group, name))


def reason_to_ignore(group: str, name: str) -> str | None:
    """The reason why objects of a kind are ignored; None for kinds that are not known to be harmless."""
    if (group, name) in MAKES_PODS:
        return None
    return IGNORED.get((group, name)) or IGNORED.get((group, ""))
