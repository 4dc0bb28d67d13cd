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

# The domains by which they name labels and resources of their nodes, as in the clouds' own pages on GPU nodes and RDMA
# (Volcengine VKE, Alibaba Cloud ACK, Oracle OKE, Azure AKS, Tencent TKE, CoreWeave, Nebius, DigitalOcean; Huawei's
# device plugin of Ascend NPUs; 2026-11).
_DOMAINS: Final = {
    "volcengine.com": "Volcengine",
    "aliyun.com": "Alibaba Cloud",
    "alibabacloud.com": "Alibaba Cloud",
    "oraclecloud.com": "Oracle Cloud",
    "azure.com": "Azure",
    "tencent.com": "Tencent Cloud",
    "huawei.com": "Huawei",
    "coreweave.com": "CoreWeave",
    "coreweave.cloud": "CoreWeave",
    "nebius.com": "Nebius",
    "digitalocean.com": "DigitalOcean",
}


def cloud_named(name: str) -> str:
    """The cloud whose nodes alone have a label or resource of this name, "" for all others."""
    domain = name.partition("/")[0] if "/" in name else ""
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
