"""Every label, annotation, taint and requirement key that the project reads or writes, in one table.

A test refuses a constant that nothing reads.
"""

from __future__ import annotations

from typing import Final

# --- well-known node labels (k8s.io/api core/v1 well_known_labels.go) --------------------------------------------
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
ZONE_BETA: Final = "failure-domain.beta.kubernetes.io/zone"
REGION_BETA: Final = "failure-domain.beta.kubernetes.io/region"
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"  # wins over the field
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
ARCHITECTURE: Final = "kubernetes.io/arch"
OPERATING_SYSTEM: Final = "kubernetes.io/os"
HOSTNAME: Final = "kubernetes.io/hostname"
# Set by kubeadm and the like; where the cloud runs the control plane no node has it (documentation of EKS and
# GKE on the architecture of clusters, November 2026).
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
# Set by cloud providers until the node is initialised; a pod that pends because of it needs no new node.
UNINITIALIZED_TAINT: Final = "node.cloudprovider.kubernetes.io/uninitialized"
NOT_READY_TAINT: Final = "node.kubernetes.io/not-ready"
UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"

# --- Foreslice ---------------------------------------------------------------------------------------------------
GROUP: Final = "foreslice.dev"
POOL: Final = "foreslice.dev/pool"  # label of every launched node: its CapacityPool
PROVISIONED_NODE: Final = "foreslice.dev/provisioned-node"  # label: the ProvisionedNode that asked for the node
CAPACITY_TYPE: Final = "foreslice.dev/capacity-type"  # label and requirement key: capacity-block, reserved, ...
CAPACITY_BLOCK: Final = "foreslice.dev/capacity-block"  # label and default taint of a block's nodes: its name
CAPACITY_ENDS_AT: Final = "foreslice.dev/capacity-ends-at"  # annotation: when the provider takes the machine back
RESIZE_TRIED: Final = "foreslice.dev/resize-requests-tried"  # annotation of a GCPNodeTemplate: its groups in a trial
ACCELERATOR: Final = "foreslice.dev/accelerator"  # label and requirement key: the catalog's accelerator key
CLOUD: Final = "foreslice.dev/cloud"  # requirement key: aws, gcp
PLACEHOLDERS: Final = "foreslice.dev/placeholders"  # annotation of printed slices: values that only exist at run time
DO_NOT_DISRUPT: Final = "foreslice.dev/do-not-disrupt"  # annotation "true" of a pod or node: leave it alone
CHECKPOINT_INTERVAL: Final = (
    "foreslice.dev/checkpoint-interval"  # annotation of a pod: what of its work is lost at most
)
EXPECTED_DURATION: Final = "foreslice.dev/expected-duration"  # annotation of a pod: how long it will run, such as 6h
MAX_WAIT: Final = "foreslice.dev/max-wait"  # annotation of a pod: how long it may wait for a CapacityBlock to begin
HELD: Final = "foreslice.dev/held"  # annotation of a held node: Foreslice set its marks for other autoscalers
EXEMPLAR: Final = "foreslice.dev/exemplar"  # label of a Node of no machine, and of its slices: the Node's name
DRAINING_TAINT: Final = "foreslice.dev/draining"  # taint: no new pods, the node is being removed
CLUSTER_TAG: Final = "foreslice.dev/cluster"  # cloud tag: which cluster owns the machine
LAUNCH_BATCH_TAG: Final = "foreslice.dev/launch-batch"  # cloud tag: the LaunchBatch that made the machine
PROVISIONING_REQUEST: Final = "foreslice.dev/provisioning-request"  # label of a request's nodes, and key of its details
REQUEST_NODES: Final = "foreslice.dev/nodes"  # key of a request's details: the names of its nodes
SPARE_PODS: Final = "foreslice.dev/spare-pods"  # key of a request's details: pods of which it needs room for more
ACTIVE_CAPACITY: Final = "foreslice.dev/active-capacity"  # provisioningStrategy of the CapacityBuffers that are served
PURCHASE_TAG: Final = "foreslice.dev/purchase"  # cloud tag of bought capacity: its purchase
LAUNCH_TOKEN: Final = "foreslice.dev/launch-token"  # label of KWOK nodes: hash of the idempotency token of their launch
RESIZING: Final = "foreslice.dev/resizing"  # tag of an auto-scaling group: the launch that it serves now, and how
LAUNCH_PARAMETERS: Final = "foreslice.dev/launch-parameters"  # annotation of KWOK nodes: hash of the parameters
OFFERING: Final = "foreslice.dev/offering"  # annotation of KWOK nodes: type, zone, capacity type (a JSON list)

# --- NVIDIA ------------------------------------------------------------------------------------------------------
# One of the labels the NVIDIA DRA kubelet plugin's chart requires; without it a node publishes no slices.
NVIDIA_GPU_PRESENT: Final = "nvidia.com/gpu.present"
NVIDIA_DEPLOY_PREFIX: Final = "nvidia.com/gpu.deploy."  # set to "true" by the GPU Operator unless the node has it
GKE_NODE_POOL: Final = "cloud.google.com/gke-nodepool"  # on every node of GKE
NVIDIA_GPU_PRODUCT: Final = "nvidia.com/gpu.product"  # this and the next are GPU feature discovery's
NVIDIA_GPU_COUNT: Final = "nvidia.com/gpu.count"
NVIDIA_GPU_REPLICAS: Final = "nvidia.com/gpu.replicas"
NVIDIA_GPU_MEMORY: Final = "nvidia.com/gpu.memory"  # MiB
NVIDIA_GPU_FAMILY: Final = "nvidia.com/gpu.family"
NVIDIA_COMPUTE_MAJOR: Final = "nvidia.com/gpu.compute.major"
NVIDIA_COMPUTE_MINOR: Final = "nvidia.com/gpu.compute.minor"
NVIDIA_MIG_CAPABLE: Final = "nvidia.com/mig.capable"
NVIDIA_GPU_SHARING: Final = "nvidia.com/gpu.sharing-strategy"
NVIDIA_MPS_CAPABLE: Final = "nvidia.com/mps.capable"
# Node feature discovery's, as the charts of GPU feature discovery and of the GPU Operator set it up.
NVIDIA_PCI_PRESENT: Final = "feature.node.kubernetes.io/pci-10de.present"
DISCOVERED_LABELS: Final = frozenset(
    {
        NVIDIA_GPU_SHARING,
        NVIDIA_MPS_CAPABLE,
        NVIDIA_GPU_PRODUCT,
        NVIDIA_GPU_COUNT,
        NVIDIA_GPU_REPLICAS,
        NVIDIA_GPU_MEMORY,
        NVIDIA_GPU_FAMILY,
        NVIDIA_COMPUTE_MAJOR,
        NVIDIA_COMPUTE_MINOR,
        NVIDIA_MIG_CAPABLE,
        NVIDIA_PCI_PRESENT,
    }
)
NVIDIA_MIG_CONFIG: Final = "nvidia.com/mig.config"  # static MIG layout (nvidia-mig-parted), set at launch
# Its value for nodes whose GPUs stay whole (NVIDIA GPU Operator documentation, "GPU Operator with MIG", 2026-11).
NVIDIA_MIG_DISABLED: Final = "all-disabled"
NVIDIA_GPU_CLIQUE: Final = "nvidia.com/gpu.clique"  # <ClusterUUID>.<CliqueID>: one NVLink domain across nodes
NVIDIA_COMPUTE_DOMAIN: Final = "resource.nvidia.com/computeDomain"  # set while the first channel claim is prepared

# --- GKE ---------------------------------------------------------------------------------------------------------
GKE_ACCELERATOR: Final = "cloud.google.com/gke-accelerator"  # GPU model of the node pool
GKE_ACCELERATOR_COUNT: Final = "cloud.google.com/gke-accelerator-count"
GKE_GPU: Final = "cloud.google.com/gke-gpu"  # "true" on nodes with GPUs (docs, "About GPUs in GKE", 2026-04)
GKE_TPU_ACCELERATOR: Final = "cloud.google.com/gke-tpu-accelerator"  # TPU kind; the TPU driver reads its facts from it
GKE_TPU_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"  # "2x4"; the same
GCE_TOPOLOGY_BLOCK: Final = "cloud.google.com/gce-topology-block"
GCE_TOPOLOGY_SUBBLOCK: Final = "cloud.google.com/gce-topology-subblock"
GKE_NVIDIA_GPU_DRA_DRIVER: Final = "cloud.google.com/gke-nvidia-gpu-dra-driver"  # GPUs by claims; users set it
GKE_TPU_DRA_DRIVER: Final = "cloud.google.com/gke-tpu-dra-driver"  # keeps GKE's plugin off TPUs; users set it
GKE_NETWORKING_DRA_DRIVER: Final = "cloud.google.com/gke-networking-dra-driver"  # GKE's managed DRANET; users set it
GKE_COMPUTE_CLASS: Final = "cloud.google.com/compute-class"  # of a ComputeClass; users set it on pools they create
GKE_MACHINE_FAMILY: Final = "cloud.google.com/machine-family"  # g2, a3
GKE_METADATA_SERVER: Final = "iam.gke.io/gke-metadata-server-enabled"  # "true" where Workload Identity is on
GKE_SPOT: Final = "cloud.google.com/gke-spot"  # "true" on Spot nodes
GKE_FLEX_START: Final = "cloud.google.com/gke-flex-start"  # "true" on nodes of flex-start node pools
GKE_PROVISIONING: Final = "cloud.google.com/gke-provisioning"  # spot, standard
GKE_NO_DEVICE_PLUGIN: Final = "gke-no-default-nvidia-gpu-device-plugin"


# --- KWOK --------------------------------------------------------------------------------------------------------
KWOK_NODE: Final = "kwok.x-k8s.io/node"  # annotation (value "fake") of nodes that KWOK acts for; also its usual taint
# Label of nodes without GPUs for which fake-gpu-operator simulates them (run-ai/fake-gpu-operator 0b1a103, README)
SIMULATED_GPUS: Final = "run.ai/simulated-gpu-node-pool"

# --- what an exemplar has for others ---
# Cluster Autoscaler takes taints of this prefix off templates, and does not hold a node with one for unready.
CA_STATUS_TAINT: Final = "status-taint.cluster-autoscaler.kubernetes.io/foreslice-exemplar"
NO_LOAD_BALANCER: Final = "node.kubernetes.io/exclude-from-external-load-balancers"

# --- marks of other autoscalers and of users ---------------------------------------------------------------------
KARPENTER_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"  # pod: "true" or a Go duration; node: "true"
KARPENTER_NODE_POOL: Final = "karpenter.sh/nodepool"  # label of nodes that belong to Karpenter
KARPENTER_CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"  # label and requirement key: CAPACITY_TYPE to Karpenter
KARPENTER_FAMILY: Final = "karpenter.k8s.aws/instance-family"  # p5, p6-b200
KARPENTER_SIZE: Final = "karpenter.k8s.aws/instance-size"  # 48xlarge
KARPENTER_CATEGORY: Final = "karpenter.k8s.aws/instance-category"  # p, trn
KARPENTER_GENERATION: Final = "karpenter.k8s.aws/instance-generation"  # 5
KARPENTER_CPU: Final = "karpenter.k8s.aws/instance-cpu"  # vCPUs
KARPENTER_MEMORY: Final = "karpenter.k8s.aws/instance-memory"  # MiB
KARPENTER_LOCAL_NVME: Final = "karpenter.k8s.aws/instance-local-nvme"  # GB
KARPENTER_GPU_NAME: Final = "karpenter.k8s.aws/instance-gpu-name"  # h100
KARPENTER_GPU_MANUFACTURER: Final = "karpenter.k8s.aws/instance-gpu-manufacturer"  # nvidia
KARPENTER_GPU_COUNT: Final = "karpenter.k8s.aws/instance-gpu-count"
KARPENTER_GPU_MEMORY: Final = "karpenter.k8s.aws/instance-gpu-memory"  # MiB, as in the EC2 API
# EKS Auto Mode has Karpenter's labels of instances under a prefix of its own:
# https://docs.aws.amazon.com/eks/latest/userguide/create-node-pool.html (2026-11).
KARPENTER_INSTANCE_PREFIX: Final = "karpenter.k8s.aws/instance-"
AUTO_MODE_INSTANCE_PREFIX: Final = "eks.amazonaws.com/instance-"
EKS_CAPACITY_TYPE: Final = "eks.amazonaws.com/capacityType"  # ON_DEMAND, SPOT, CAPACITY_BLOCK
KARPENTER_DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
CA_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"  # pod: "false", "true", "on-completion"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"  # pod: a whole number, lower ones go first
CA_DAEMON_SET_POD: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"  # pod: treat as a DaemonSet's
CA_POD_SCALE_UP_DELAY: Final = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"  # pod: not before this age
CA_SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"  # node: never remove
CA_TO_BE_DELETED_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
LEAVING_TAINTS: Final = frozenset({KARPENTER_DISRUPTED_TAINT, CA_TO_BE_DELETED_TAINT})  # another autoscaler removes it
CONSUME_PROVISIONING_REQUEST: Final = "autoscaling.x-k8s.io/consume-provisioning-request"  # pod: no scale-up of its own
PROVISIONING_CLASS_NAME: Final = "autoscaling.x-k8s.io/provisioning-class-name"  # pod: the class of that request
CA_PROVISIONING_CLASS_NAME: Final = "cluster-autoscaler.kubernetes.io/provisioning-class-name"  # the old key
CA_CONSUME_PROVISIONING_REQUEST: Final = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"  # the old key
KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"  # label of workloads that Kueue admits
KUEUE_MANAGED: Final = "kueue.x-k8s.io/managed"  # label, "true": Kueue admits the pod itself, not its owner
KUEUE_ONE_DOMAIN: Final = "kueue.x-k8s.io/podset-required-topology"  # annotation: a label that all of its nodes share
KUEUE_ONE_DOMAIN_EACH: Final = "kueue.x-k8s.io/podset-slice-required-topology"  # annotation: the same of parts of it
# Annotations of workloads with this prefix are parameters of the ProvisioningRequest that Kueue creates for them.
PROVREQ_PREFIX: Final = "provreq.kueue.x-k8s.io/"
KUEUE_MAX_EXEC_TIME: Final = "kueue.x-k8s.io/max-exec-time-seconds"  # label: after that Kueue ends the workload
ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"  # of namespaces whose claims may have it
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"  # annotation of the implicit claim

# --- gangs: which group a pod belongs to -------------------------------------------------------------------------
COSCHEDULING_POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"  # label (scheduler-plugins coscheduling)
VOLCANO_POD_GROUP: Final = "scheduling.k8s.io/group-name"  # annotation
VOLCANO_POD_GROUP_NEW: Final = "scheduling.volcano.sh/group-name"  # annotation, the newer spelling
KAI_POD_GROUP: Final = "pod-group-name"  # annotation set by KAI's pod-grouper
KAI_GPU_FRACTION: Final = "gpu-fraction"  # pod annotation: the part of a GPU that KAI Scheduler gives it
KAI_GPU_MEMORY: Final = "gpu-memory"  # pod annotation: the same in MiB (KAI-Scheduler docs/gpu-sharing)
MULTUS_NETWORKS: Final = "k8s.v1.cni.cncf.io/networks"  # pod annotation (Network CRD De-facto Standard, version 1)
# Pod annotations by which HAMi chooses GPUs (Project-HAMi/HAMi 4707fb0, pkg/device/nvidia; the mode 28eab19,
# docs/dynamic-mig-support.md; the policies docs/config.md).
HAMI_USE_TYPE: Final = "nvidia.com/use-gputype"
HAMI_AVOID_TYPE: Final = "nvidia.com/nouse-gputype"
HAMI_USE_DEVICE: Final = "nvidia.com/use-gpuuuid"
HAMI_AVOID_DEVICE: Final = "nvidia.com/nouse-gpuuuid"
HAMI_MODE: Final = "nvidia.com/vgpu-mode"  # mig, hami-core or mps
HAMI_NODE_POLICY: Final = "hami.io/node-scheduler-policy"
HAMI_GPU_POLICY: Final = "hami.io/gpu-scheduler-policy"
# Pod annotation: the slice that GKE's dynamic slicing forms for the workload (GKE docs, use-gke-dynamic-slicing)
FORMED_SLICE_TOPOLOGY: Final = "cloud.google.com/gke-tpu-slice-topology"
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"  # label
LWS_GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"  # label
LWS_GROUP_KEY: Final = "leaderworkerset.sigs.k8s.io/group-key"  # label, the same for the pods of one group
LWS_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"  # annotation: the number of pods of a group
LWS_WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"  # label
LWS_SUBGROUP_KEY: Final = "leaderworkerset.sigs.k8s.io/subgroup-key"  # label, the same for the pods of one subgroup
LWS_EXCLUSIVE_TOPOLOGY: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"  # annotation: one group per domain
LWS_SUBGROUP_EXCLUSIVE_TOPOLOGY: Final = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"  # annotation
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"  # label
JOBSET_REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"  # label
JOBSET_JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"  # label
JOBSET_JOB_KEY: Final = "jobset.sigs.k8s.io/job-key"  # label, the same for the pods of one child Job
JOBSET_EXCLUSIVE_TOPOLOGY: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"  # annotation: one Job per domain

# --- labels that workload controllers give their pods ------------------------------------------------------------
POD_TEMPLATE_HASH: Final = "pod-template-hash"
STATEFUL_SET_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
JOB_NAME: Final = "batch.kubernetes.io/job-name"
JOB_NAME_LEGACY: Final = "job-name"
JOB_COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
KSERVE_SERVICE: Final = "serving.kserve.io/inferenceservice"
KSERVE_CLAIM_PREFIX: Final = "serving.kserve.io/exp-dra-"  # beginning of annotations that make a claim
HARDWARE_PROFILE: Final = "opendatahub.io/hardware-profile-name"  # annotation
HARDWARE_PROFILE_NAMESPACE: Final = "opendatahub.io/hardware-profile-namespace"  # annotation
RAY_NODE: Final = "ray.io/is-ray-node"
RAY_CLUSTER: Final = "ray.io/cluster"
RAY_NODE_TYPE: Final = "ray.io/node-type"
RAY_GROUP: Final = "ray.io/group"
RAY_SCHEDULER: Final = "ray.io/scheduler-name"  # of a RayCluster: the batch scheduler of its pods
RAY_GANG_SCHEDULING: Final = "ray.io/gang-scheduling-enabled"
RAY_IDENTIFIER: Final = "ray.io/identifier"
TRAINING_JOB: Final = "training.kubeflow.org/job-name"
TRAINING_REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
TRAINING_REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
TRAINING_ROLE: Final = "training.kubeflow.org/job-role"
# Of the HyperPod training operator (aws/sagemaker-hyperpod-cli 011ca92, hyperpod_pytorch_job.py, list_pods).
HYPERPOD_JOB: Final = "HPJob"
DEFAULT_STORAGE_CLASS: Final = "storageclass.kubernetes.io/is-default-class"  # annotation "true"

# Annotations of pods that are read after parsing. The controller drops all others from the pods it keeps in memory.
POD_ANNOTATIONS: Final = frozenset(
    {
        MULTUS_NETWORKS,
        KAI_GPU_FRACTION,
        KAI_GPU_MEMORY,
        HAMI_USE_TYPE,
        HAMI_AVOID_TYPE,
        HAMI_USE_DEVICE,
        HAMI_AVOID_DEVICE,
        HAMI_MODE,
        HAMI_NODE_POLICY,
        HAMI_GPU_POLICY,
        FORMED_SLICE_TOPOLOGY,
        KUEUE_ONE_DOMAIN,
        KUEUE_ONE_DOMAIN_EACH,
        LWS_SIZE,
        CAPACITY_ENDS_AT,
        DO_NOT_DISRUPT,
        KARPENTER_DO_NOT_DISRUPT,
        CA_SAFE_TO_EVICT,
        CA_DAEMON_SET_POD,
        POD_DELETION_COST,
        CONSUME_PROVISIONING_REQUEST,
        CA_CONSUME_PROVISIONING_REQUEST,
        PROVISIONING_CLASS_NAME,
        CA_PROVISIONING_CLASS_NAME,
    }
)
