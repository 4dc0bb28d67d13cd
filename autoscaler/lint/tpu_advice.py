"""Warnings about pods that ask for TPU chips and do not say all that matters: the generation, and whether they are
hosts of a slice or share one host.

On GKE the label of the topology says which slice a node belongs to, and some topologies are sold in two ways: 2x4 of
v6e is one machine with 8 chips, or two with 4. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from math import prod
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.images import TYPE_KEYS
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.device_plugins import TPU
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

_CLASS: Final = "tpu.google.com"
_VENDOR: Final = "Google"
_GENERATION: Final = re.compile(r"(?<![a-z0-9])(?:v([3-9][a-z]?)|(?:tpu-?)?([3-9]x))(?![a-z0-9])")
_NAME_GENERATION: Final = TYPE_KEYS | {labels.GKE_TPU_ACCELERATOR, labels.ACCELERATOR}


def tpu_advice(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Warnings about TPU pods. If there is a CapacityPool, it decides the generation."""
    if not snapshot.pools:
        yield from _any_generation(snapshot, catalog)
    yield from _on_one_host(snapshot, plan, catalog)


def _any_generation(snapshot: Snapshot, catalog: Catalog) -> Iterator[Diagnostic]:
    """Once, of the first pod that says nothing about its TPU."""
    words = {word for one in _machines(catalog) if one.accelerator for word in _words(one.accelerator.model)}
    pods = [pod for pod in snapshot.pods if not pod.bound and _takes_any(pod, snapshot, words)]
    if pods:
        found = {one.accelerator.node_label for one in _machines(catalog) if one.accelerator}
        named = sorted(label for label in found if label)
        yield surprise(
            f"Pod {pods[0].key}",
            (),
            "names no TPU generation: a plan takes the cheapest that fits, and a program may need another one",
            f"select its nodes by {labels.GKE_TPU_ACCELERATOR}, which is one of {', '.join(named)}",
            pods[0].origin,
            others=len(pods) - 1,
        )


def _takes_any(pod: Pod, snapshot: Snapshot, words: Collection[str]) -> bool:
    """True if it asks for TPUs, in chips or by claims without a selector, and selects none of a generation, be it by
    the name of a node pool."""
    terms = pod.affinity.terms if pod.affinity else ()
    of_affinity = (value for term in terms for r in term.match_expressions for value in r.values)
    named_so = any(not _words(value).isdisjoint(words) for value in (*pod.node_selector.values(), *of_affinity))
    if named_so or pod.selected_labels & _NAME_GENERATION:
        return False
    named = (snapshot.claims.get(f"{pod.namespace}/{entry.claim}") for entry in pod.claims if entry.claim)
    requests = [request for claim in named if claim is not None for request in claim.requests]
    claimed = [r for r in requests if isinstance(r, DeviceRequest) and r.device_class == _CLASS]
    return bool(chips(pod) or claimed) and not any(r.selectors for r in claimed)


def _words(text: str) -> frozenset[str]:
    """The words that name a generation: 6e of "TPU v6e" and "tpu-v6e-pool", 7x of TPU7x and "tpu-7x"."""
    return frozenset("".join(found) for found in _GENERATION.findall(text.lower()))


def _on_one_host(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Once, for the first pods that look like hosts of a slice and that a plan puts onto one machine."""
    pods = {pod.key: pod for pod in snapshot.pods}
    for node in plan.launches:
        there = [pods[key] for key in node.pods if key in pods]
        types = hosts_meant(there[0], snapshot.pods, catalog) if len(there) > 1 else ()
        if types:
            yield surprise(
                f"Pod {there[0].key}",
                (),
                f"it and {len(there) - 1} more ask together for the chips of one {_topology(there[0])} slice: planned "
                f"as one host with all of them, 1 × {node.offering.instance_type}, which costs no more",
                f"for a slice with a host for each pod, select {labels.INSTANCE_TYPE}, which is {' or '.join(types)}",
                there[0].origin,
            )
            return


def hosts_meant(pod: Pod, pods: Iterable[Pod], catalog: Catalog) -> tuple[str, ...]:
    """The instance types of the slice with one host for each pod of the pod's Job, by name: where these ask for the
    chips of the topology together, and a single machine with all the chips is sold as well. () otherwise."""
    topology, wanted = _topology(pod), chips(pod)
    if not topology or not wanted or pod.selected_labels & TYPE_KEYS:
        return ()
    mates = [p for p in pods if _job(p) == _job(pod) and chips(p) == wanted]
    total = _total(topology)
    machines = [one for one in _machines(catalog) if _selected(one, pod)]
    whole = {one.accelerator for one in machines if one.device_count == total}
    if len(mates) < 2 or wanted * len(mates) != total:
        return ()
    return tuple(sorted(one.name for one in machines if one.device_count == wanted and one.accelerator in whole))


def topologies_of_size(pod: Pod, catalog: Catalog) -> tuple[str, ...]:
    """Where the TPU generation that the pod selects has no such topology: those that it has with as many chips, 2x2x4
    of v5p for 4x4."""
    topology = _topology(pod)
    if not topology or labels.GKE_TPU_ACCELERATOR not in pod.node_selector:
        return ()
    machines = [one for one in _machines(catalog) if _selected(one, pod)]
    known = dict.fromkeys(text for one in machines for text in (one.topology or "", *one.slice_topologies) if text)
    return () if topology in known else tuple(text for text in known if _total(text) == _total(topology))


def _total(topology: str) -> int:
    return prod(int(side) for side in topology.split("x"))


def part_of_slice(pod: Pod) -> bool:
    """True if the topology that it selects has more chips than it requests: other pods have the rest of the slice."""
    topology = _topology(pod)
    return 0 < chips(pod) < _total(topology) if topology else False


def chips(pod: Pod) -> int:
    """The number of chips that its containers request."""
    return int(sum(c.requests[TPU].value for c in pod.containers if TPU in c.requests))


def _job(pod: Pod) -> tuple[object, ...]:
    """The same for the pods of one Job: a slice belongs to one."""
    owner = pod.labels.get(labels.JOBSET_JOB_KEY) or pod.owner or pod.name
    return (pod.namespace, owner, pod.node_selector, pod.affinity)


def _topology(pod: Pod) -> str:
    """The topology that the pod's nodeSelector names, as numbers; "" for none."""
    text = pod.node_selector.get(labels.GKE_TPU_TOPOLOGY, "")
    sides = text.split("x")
    return text if all(side.isascii() and side.isdigit() and len(side) < 4 for side in sides) else ""


def _machines(catalog: Catalog) -> list[InstanceType]:
    return [one for one in catalog if one.accelerator is not None and one.accelerator.vendor == _VENDOR]


def _selected(machine: InstanceType, pod: Pod) -> bool:
    """True if it has the TPU that the pod selects, if it selects one."""
    kind = pod.node_selector.get(labels.GKE_TPU_ACCELERATOR)
    return machine.accelerator is not None and kind in (None, machine.accelerator.node_label)
