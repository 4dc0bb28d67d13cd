"""Labels, resources and machines by the names of other clouds, in which Foreslice launches nothing."""

from __future__ import annotations

import re
from typing import Final

from instance_catalog.kubernetes import labels

OF_EVERY_NODE: Final = frozenset({labels.ARCHITECTURE, labels.OPERATING_SYSTEM})  # whichever cloud has it
# The domains by which they name labels and resources of their nodes, each seen with the name beside it (2026-11).
_DOMAINS: Final = {
    "volcengine.com": "Volcengine",  # vke.volcengine.com/rdma: vllm-project/aibrix, brixbench/…/models/model.yaml
    "aliyun.com": "Alibaba Cloud",  # aliyun.com/gpu-core.percentage of ACK, in public code of users alone
    # alibabacloud.com/gpu-model-series: alibabacloud.com, "Schedule applications to GPU-HPN virtual nodes …"
    "alibabacloud.com": "Alibaba Cloud",
    # oci.oraclecloud.com/rdma.local_block_id: OguzPastirmaci/misc, oke-topology-aware/README.md
    "oraclecloud.com": "Oracle Cloud",
    "azure.com": "Azure",  # kubernetes.azure.com/accelerator, in public code of users alone
    # tke.cloud.tencent.com/eni-ip: tencentcloud.com/document/product/457/74082
    "tencent.com": "Tencent Cloud",
    "coreweave.com": "CoreWeave",  # ds.coreweave.com/nvlink.domain, in public code of users alone
    # backend.coreweave.cloud/fabric: docs.coreweave.com, "InfiniBand and RoCE labels"
    "coreweave.cloud": "CoreWeave",
    # topology.nebius.com/tier-1: docs.nebius.com, kubernetes/gpu/topology-aware-scheduling
    "nebius.com": "Nebius",
    "digitalocean.com": "DigitalOcean",  # doks.digitalocean.com/gpu-brand, in public code of users alone
    # node.k8s.ovh/type of nodes with GPUs: ovh/docs, managed_kubernetes/deploying-gpu-application
    "k8s.ovh": "OVHcloud",
    "linode.com": "Akamai (Linode)",  # lke.linode.com/pool-id, in public code of users alone
    "scaleway.com": "Scaleway",  # k8s.scaleway.com/pool-name, in public code of users alone
    "vultr.com": "Vultr",  # vke.vultr.com/node-pool, in public code of users alone
    # kubernetes.civo.com/civo-node-pool: kubernetes/autoscaler, cluster-autoscaler/cloudprovider/civo
    "civo.com": "Civo",
    "exoscale.net": "Exoscale",  # node.exoscale.net/nodepool-id: kubernetes/autoscaler, …/cloudprovider/exoscale
    # ibm-cloud.kubernetes.io/worker-pool-name: cloud.ibm.com/docs/containers, labels of worker nodes
    "ibm-cloud.kubernetes.io": "IBM Cloud",
}
# CoreWeave's labels of GPUs, in a domain where NVIDIA publishes none: docs.coreweave.com, "Advanced Label
# Selectors", and skypilot-org/skypilot, issue 5628, for the model (2026-11).
_LABELS: Final = {f"gpu.nvidia.com/{name}": "CoreWeave" for name in ("class", "count", "model", "nvlink", "vram")}
# Of a device plugin for any cluster: AliyunContainerService/gpushare-device-plugin, README.md; both names: issue 190 of
# AliyunContainerService/gpushare-scheduler-extender.
_OF_ANY_CLUSTER: Final = frozenset({"aliyun.com/gpu-mem", "aliyun.com/gpu-count"})

# What their machines are called, and so the value of the label of instance types: oracle-quickstart/oci-hpc-oke
# 61d210a; Azure's page on sizes of ND MI300X v5; Alibaba Cloud's page on instance types for ACK nodes, and of
# Volcengine's vllm-project/aibrix e3e10f9 (samples/deepseek-r1), which both begin with ecs.; CoreWeave's page on GB200
# and coreweave/nccl-tests cb86553 (2026-11).
_MACHINES: Final = {
    "Oracle Cloud": re.compile(r"(BM|VM)\.[A-Z]"),
    "Azure": re.compile(r"(?i:standard)_[A-Z]+\d"),
    "Alibaba Cloud or Volcengine": re.compile(r"ecs\.[a-z]"),
    "CoreWeave": re.compile(r"gd-\d+x|[a-z]{1,2}\d{3}-\d+x$"),
}


def cloud_of_machine(name: str) -> str:
    """The cloud that calls its machines so, "" for all others."""
    return next((cloud for cloud, form in _MACHINES.items() if form.match(name)), "")


def cloud_named(name: str) -> str:
    """The cloud whose nodes alone have a label or resource of this name, "" for all others."""
    if name in _LABELS:
        return _LABELS[name]
    domain = name.partition("/")[0] if "/" in name and name not in _OF_ANY_CLUSTER else ""
    return next((cloud for end, cloud in _DOMAINS.items() if domain == end or domain.endswith(f".{end}")), "")
