"""Pods of clouds in which Foreslice launches nothing: what they select and ask for that only nodes there have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import requested_resources
from instance_catalog.diagnostic import Diagnostic, and_more
from instance_catalog.kubernetes.labels import ACCELERATOR
from instance_catalog.types.catalog import Catalog

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
    # huawei.com/Ascend910A, of the device plugin wherever such NPUs are: volcano-sh/volcano, how_to_use_vnpu.md
    "huawei.com": "a cloud with Huawei's NPUs",
    "coreweave.com": "CoreWeave",  # ds.coreweave.com/nvlink.domain, in public code of users alone
    # backend.coreweave.cloud/fabric: docs.coreweave.com, "InfiniBand and RoCE labels"
    "coreweave.cloud": "CoreWeave",
    # topology.nebius.com/tier-1: docs.nebius.com, kubernetes/gpu/topology-aware-scheduling
    "nebius.com": "Nebius",
    "digitalocean.com": "DigitalOcean",  # doks.digitalocean.com/gpu-brand, in public code of users alone
}
# Of a device plugin for any cluster: AliyunContainerService/gpushare-device-plugin, README.md; both names: issue 190 of
# AliyunContainerService/gpushare-scheduler-extender.
_OF_ANY_CLUSTER: Final = frozenset({"aliyun.com/gpu-mem", "aliyun.com/gpu-count"})


def cloud_named(name: str) -> str:
    """The cloud whose nodes alone have a label or resource of this name, "" for all others."""
    domain = name.partition("/")[0] if "/" in name and name not in _OF_ANY_CLUSTER else ""
    return next((cloud for end, cloud in _DOMAINS.items() if domain == end or domain.endswith(f".{end}")), "")


def other_cloud_advice(snapshot: Snapshot, catalog: Catalog) -> Iterator[Diagnostic]:
    """The first pod that only nodes of another cloud run, with everything of it that says so. What nodes or pools that
    are given have, and types that people added to the catalog, is not said."""
    had = (*(node.labels for node in snapshot.nodes), *(pool.labels for pool in snapshot.pools))
    there = {key for given in had for key in given} | {key for node in snapshot.nodes for key in node.allocatable}
    there |= {name for one in catalog for name in (*one.allocatable, *one.extended_resources)}
    found = [(pod, *of) for pod in snapshot.pods if not pod.bound and (of := _of_other_cloud(pod, there))[0]]
    for pod, cloud, selected, asked in found[:1]:
        parts = [f"selects {' and '.join(selected)}"] if selected else []
        parts += [f"asks for {' and '.join(asked)}"] if asked else []
        drop = [f"the node selector or affinity on {key}" for key in selected] + [f"the request of {r}" for r in asked]
        instead = f", and select its GPU by {ACCELERATOR} (`foreslice catalog list`)" if selected else ""
        yield surprise(
            f"Pod {pod.key}",
            (),
            f"{' and '.join(parts)}{and_more(found)}, which only nodes of {cloud} have: Foreslice launches in "
            f"{' and '.join(sorted({one.cloud for one in catalog}))} alone",
            f"there, leave the pod to that cloud's own autoscaler; to plan it here, drop {' and '.join(drop)}{instead}",
            pod.origin,
        )


def _of_other_cloud(pod: Pod, there: set[str]) -> tuple[str, list[str], list[str]]:
    """The cloud, and the labels and the resources of its nodes on which the pod relies."""
    selected = [key for key in sorted(pod.selected_labels) if cloud_named(key) and key not in there]
    asked = [name for name in dict.fromkeys(requested_resources(pod)) if cloud_named(name) and name not in there]
    return next(map(cloud_named, (*selected, *asked)), ""), selected, asked
