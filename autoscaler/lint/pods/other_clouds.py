"""Pods of clouds in which Foreslice launches nothing: what they select and ask for that only nodes there have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.lint.pods.unserved import unserved_resources
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import TYPE_KEYS
from autoscaler.planning.demand.scope import requested_resources, served_resources
from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Diagnostic, and_more
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.device_plugins import EFA
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
# CoreWeave's regions of one word, and its labels of GPUs: coreweave/kubernetes-cloud 67ae991.
_REGION_KEYS: Final = frozenset({labels.REGION, "failure-domain.beta.kubernetes.io/region"})
_REGIONS: Final = {"ORD1": "CoreWeave", "LAS1": "CoreWeave", "LGA1": "CoreWeave"}
_OF_GPUS: Final = {"CoreWeave": "gpu.nvidia.com/"}
_MODEL: Final = "gpu.nvidia.com/model"


def cloud_of_machine(name: str) -> str:
    """The cloud that calls its machines so, "" for all others."""
    return next((cloud for cloud, form in _MACHINES.items() if form.match(name)), "")


def cloud_named(name: str) -> str:
    """The cloud whose nodes alone have a label or resource of this name, "" for all others."""
    domain = name.partition("/")[0] if "/" in name and name not in _OF_ANY_CLUSTER else ""
    return next((cloud for end, cloud in _DOMAINS.items() if domain == end or domain.endswith(f".{end}")), "")


@dataclass(frozen=True, slots=True)
class OtherCloud:
    """What keeps a pod on nodes of another cloud: labels, those of places and machines with their value, and resources
    of its devices. `lacking` are further resources that nothing here has."""

    name: str
    selected: dict[str, str]
    asked: list[str]
    lacking: list[str]


def other_cloud_advice(snapshot: Snapshot, found: Mapping[str, OtherCloud], catalog: Catalog) -> Iterator[Diagnostic]:
    """The first pod that only nodes of another cloud run, with everything of it that says so."""
    for pod in (pod for pod in snapshot.pods if pod.key in found):
        of = found[pod.key]
        parts = [f"selects {' and '.join(of.selected.values())}"] if of.selected else []
        parts += [f"asks for {' and '.join(of.asked)}"] if of.asked else []
        drop = [f"the node selector or affinity on {key}" for key in of.selected]
        drop += [f"the request of {name}" for name in (*of.asked, *of.lacking)]
        yield surprise(
            f"Pod {pod.key}",
            (),
            f"{' and '.join(parts)}{and_more(list(found))}, which only nodes of {of.name} have: Foreslice launches in "
            f"{' and '.join(sorted({one.cloud for one in catalog}))} alone",
            f"there, leave the pod to that cloud's own autoscaler; to plan it here, drop {' and '.join(drop)}"
            f"{_instead(pod, of, catalog)}",
            pod.origin,
        )
        return


def other_clouds(snapshot: Snapshot, catalog: Catalog) -> dict[str, OtherCloud]:
    """The pods without a node that only nodes of another cloud run, by key. What nodes or pools that are given have,
    and types that people added to the catalog, counts as here."""
    labelled = (*(node.labels for node in snapshot.nodes), *(pool.labels for pool in snapshot.pools))
    had = [pair for given in labelled for pair in given.items()]
    there = {text for pair in had for text in pair} | {name for one in snapshot.nodes for name in one.allocatable}
    there |= {name for one in catalog for name in (*one.allocatable, *one.extended_resources)}
    there |= {name for one in catalog for name in (one.name, one.machine_type)} | served_resources(snapshot)
    waiting = (pod for pod in snapshot.pods if not pod.bound)
    return {pod.key: of for pod in waiting if (of := _of_other_cloud(pod, there, catalog))}


def _of_other_cloud(pod: Pod, there: set[str], catalog: Catalog) -> OtherCloud | None:
    asked = [name for name in dict.fromkeys(requested_resources(pod)) if cloud_named(name) and name not in there]
    named = {key: cloud for key in sorted(pod.selected_labels - there) if (cloud := cloud_named(key))}
    valued = _by_value(pod, there)
    clouds = [*named.values(), *(cloud for _, cloud in valued.values()), *map(cloud_named, asked)]
    if not clouds:
        return None
    gpus = _OF_GPUS.get(clouds[0])
    keys = [*named, *(key for key in sorted(pod.selected_labels - there) if gpus and key.startswith(gpus))]
    selected = {key: key for key in keys} | {key: f"{key}={value}" for key, (value, _) in valued.items()}
    lacking = [name for name in unserved_resources(pod, there, catalog) if name not in asked]
    return OtherCloud(clouds[0], selected, asked, lacking)


def _by_value(pod: Pod, there: set[str]) -> dict[str, tuple[str, str]]:
    """The labels that all nodes have and by whose value the pod selects another cloud: the first value, the cloud."""
    found = {}
    for keys, cloud_of in ((TYPE_KEYS, cloud_of_machine), (_REGION_KEYS, lambda name: _REGIONS.get(name, ""))):
        for key in sorted(keys):
            for first, *rest in pod.required_values({key}):
                if cloud_of(first) and there.isdisjoint((first, *rest)):
                    found[key] = first, cloud_of(first)
    return found


def _instead(pod: Pod, of: OtherCloud, catalog: Catalog) -> str:
    """What to write for what is dropped."""
    models = {word for one in catalog if one.accelerator for word in one.accelerator.model.split()}
    wanted = [names[0] for names in pod.required_values({_MODEL}) if models.isdisjoint(re.split(r"\W|_", names[0]))]
    absent = f"; no type in the catalog has {wanted[0]}, so choose another" if wanted else ""
    key = "such as nvidia-l4; `foreslice catalog show TYPE` prints the one of a type"
    select = f", and select its GPU by {labels.ACCELERATOR} ({key}{absent})" if of.selected else ""
    network = f"; for RDMA, machines of AWS have {EFA}" if any("rdma" in name for name in of.lacking) else ""
    return f"{select}{network}; then plan again, as a machine here may have fewer CPUs or less memory"
