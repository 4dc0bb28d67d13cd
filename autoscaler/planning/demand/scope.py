"""Applies the scopes of pools to pending pods: a pool launches nodes only for pods that it serves.

Without any CapacityPool one implicit pool offers the whole catalog with every driver variant, so that a plan can show
which pool to create. A pod that no pool serves is ignored, with a reason. This module does not know nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from autoscaler.dra.claims.extended_resources import EXTENDED_RESOURCE_GATE, extended_resource_classes
from autoscaler.model.capacity import CapacityPool, Launcher, PodScope
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Fact, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.handed_out import handed_out
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.device_plugins import network_card, retired, shared_gpu_resources
from instance_catalog.frozen_map import EMPTY
from instance_catalog.kubernetes import labels
from instance_catalog.prediction.device_plugins import EFA, is_plugin_resource

# Labels that select no special machine.
_OF_ANY_NODE: Final = frozenset(
    {labels.ARCHITECTURE, labels.OPERATING_SYSTEM, labels.ZONE, labels.REGION, labels.CLOUD}  # CLOUD: where volumes are
)
_KAI_PARTS: Final = (labels.KAI_GPU_FRACTION, labels.KAI_GPU_MEMORY)
_NVIDIA: Final = "nvidia.com/"
IMPLICIT = CapacityPool(name="implicit", implicit=True)


def pools_of(snapshot: Snapshot) -> tuple[CapacityPool, ...]:
    """The pools for which plans may launch, by weight; the implicit pool if there is none at all.

    If another autoscaler decides about a pool (`launcher`), plans launch nothing for it.
    """
    if not snapshot.pools:
        return (IMPLICIT,)
    staying = (pool for pool in snapshot.pools if not pool.deleting and not pool.ordered)
    return tuple(sorted(staying, key=lambda pool: (-pool.weight, pool.name)))


def as_if_ours(snapshot: Snapshot) -> Snapshot:
    """The snapshot in which plans decide about every pool, to find launches in pools of other autoscalers."""
    own = Launcher.FORESLICE
    return replace(snapshot, pools=tuple(replace(pool, launcher=own) for pool in snapshot.pools))


@dataclass(frozen=True, slots=True)
class Scopes:
    """The scopes of pools. `gangs` are, by pool, the gangs of which it serves a pod: it then serves all of their
    pods."""

    snapshot: Snapshot
    extended_resources: Mapping[str, DeviceClass]
    gangs: Mapping[str, frozenset[str]]

    @staticmethod
    def of(snapshot: Snapshot, pods: Iterable[Pod], extended_resources: Mapping[str, DeviceClass]) -> Scopes:
        """The scopes of the snapshot's pools, for these pending pods."""
        members = [pod for pod in pods if pod.gang]
        gangs = {
            pool.name: frozenset(
                pod.gang.key
                for pod in members
                if pod.gang and _refusal(pool, pod, snapshot, extended_resources) is None
            )
            for pool in pools_of(snapshot)
        }
        return Scopes(snapshot, extended_resources, gangs)

    def refusal(self, pool: CapacityPool, pod: Pod) -> Reason | None:
        if pod.gang and pod.gang.key in self.gangs.get(pool.name, ()):
            return None
        return _refusal(pool, pod, self.snapshot, self.extended_resources)

    def refusals(self, pod: Pod) -> tuple[Reason, ...]:
        """The reasons why no pool serves the pod; () if some pool does, or if what it asks for is not known."""
        if pod.unread:
            return ()
        pools = pools_of(self.snapshot)
        found = [self.refusal(pool, pod) for pool in pools]
        if None in found:
            return ()
        refused = tuple(dict.fromkeys(reason for reason in found if reason))
        also = self._also(pools, pod) if all(r.code is Code.OTHER_SCHEDULER for r in refused) else ()
        # A pool that includes the scheduler still buys nothing for a pod without devices, or with a part of one.
        if also and asks_for_no_device(pod):
            refused = also
        elif any("part" in reason.detail for reason in also):
            refused = (*also, *(replace(r, detail=r.detail.with_items({"then": "whole GPUs"})) for r in refused))
        else:
            refused = (*refused, *also)
        others = [pool for pool in self.snapshot.pools if pool.ordered and not pool.deleting]
        serving = (p for p in others if _refusal(p, pod, self.snapshot, self.extended_resources) is None)
        theirs = tuple(Reason.of(Code.OTHER_LAUNCHER, Subject("pod", pod.key), pool=pool.name) for pool in serving)
        told = theirs or refused or tuple(_refusals(others, pod, self.snapshot, self.extended_resources))
        return told if asks_for_no_device(pod) else tuple(map(_of_asking, told))

    def _also(self, pools: Iterable[CapacityPool], pod: Pod) -> tuple[Reason, ...]:
        """The further reasons why no pool would serve the pod under its scheduler: one obstacle must not hide the
        next."""
        members = [p for p in self.snapshot.pods if pod.gang is not None and p.gang == pod.gang] or [pod]
        ours = (
            (pool, [_scope_refusal(pool, p, self.snapshot, self.extended_resources) for p in members]) for pool in pools
        )
        # A pool that serves one pod of a gang serves all of its pods.
        found = [
            None if None in refused else _scope_refusal(pool, pod, self.snapshot, self.extended_resources)
            for pool, refused in ours
        ]
        return () if None in found else tuple(dict.fromkeys(reason for reason in found if reason))


def _of_asking(reason: Reason) -> Reason:
    """The reason with the fact that the pod asks for devices, which its resources say already."""
    detail = reason.detail
    return reason if "resources" in detail else replace(reason, detail=detail.with_items({"asking": True}))


def _refusals(
    pools: Iterable[CapacityPool], pod: Pod, snapshot: Snapshot, extended_resources: Mapping[str, DeviceClass]
) -> Iterator[Reason]:
    found = (_refusal(pool, pod, snapshot, extended_resources) for pool in pools)
    yield from dict.fromkeys(reason for reason in found if reason)


def _refusal(
    pool: CapacityPool, pod: Pod, snapshot: Snapshot, extended_resources: Mapping[str, DeviceClass]
) -> Reason | None:
    scope = pool.scope
    if pod.scheduler_name not in scope.schedulers:
        return Reason.of(Code.OTHER_SCHEDULER, Subject("pod", pod.key), scheduler=pod.scheduler_name)
    return _scope_refusal(pool, pod, snapshot, extended_resources)


def _scope_refusal(
    pool: CapacityPool, pod: Pod, snapshot: Snapshot, extended_resources: Mapping[str, DeviceClass]
) -> Reason | None:
    scope, subject = pool.scope, Subject("pod", pod.key)
    if formed := pod.annotations.get(labels.FORMED_SLICE_TOPOLOGY, ""):
        # GKE's controller forms the slice; single hosts that a plan launches are not connected as one.
        return Reason.of(Code.OUT_OF_SCOPE, subject, formed=formed)
    if scope.pods is PodScope.DEVICE_CLAIMS and not _claims_devices(pod, extended_resources):
        plugins = tuple(sorted({r for r in requested_resources(pod) if "/" in r}))
        if plugins and pool.of_karpenter:
            return None
        named: dict[str, Fact] = {"resources": plugins} if plugins else {}
        if network_card_alone(pod):
            named = {"resources": plugins, "alone": "accelerator"}
        elif plugins and all(map(is_plugin_resource, plugins)):
            named["by"] = "device plugins"
        elif plugins and all(map(network_card, plugins)):
            named["card"] = "network cards of another system"
        elif any(one.startswith(_NVIDIA) for one in plugins):
            named["whole"] = f"{_NVIDIA}gpu"
        if shared := next(filter(None, map(shared_gpu_resources().get, plugins)), ""):
            named = {"resources": plugins, "shares": shared}
        if ended := next((found for found in map(retired, plugins) if found), None):
            named |= {"ended": ended.ended, "now": ended.now, "resources": tuple(filter(retired, plugins))}
        handed = {} if plugins else handed_out(pod)
        if not plugins and not handed and _on_any_node(pod):
            named["node"] = "an ordinary node"
        named |= handed
        if part := next((name for name in _KAI_PARTS if name in pod.annotations), ""):
            named = {"part": part}
        return Reason.of(Code.OUT_OF_SCOPE, subject, **named, **_gated(plugins, snapshot))
    if scope.pods is PodScope.SELECTED and not _selected(pool, pod, snapshot):
        return Reason.of(Code.NOT_SELECTED, subject, pool=pool.name)
    return None


def _on_any_node(pod: Pod) -> bool:
    """True if the pod requires no special machine: only labels of place, architecture and operating system, and no
    part of a GPU by annotation."""
    named = any(term.match_fields for term in (pod.affinity.terms if pod.affinity else ()))
    return asks_for_no_device(pod) and not (named or pod.selected_labels - _OF_ANY_NODE)


def _gated(resources: Iterable[str], snapshot: Snapshot) -> dict[str, str]:
    """The feature gates of Kubernetes that prevent DeviceClasses from serving the resources."""
    if snapshot.profile.gates.extended_resource:
        return {}
    serving = extended_resource_classes(snapshot.classes)
    classes = sorted({serving[resource].name for resource in resources if resource in serving})
    return (
        {"device_class": classes[0], "gate": EXTENDED_RESOURCE_GATE, "version": snapshot.profile.name}
        if classes
        else {}
    )


def _claims_devices(pod: Pod, extended_resources: Mapping[str, DeviceClass]) -> bool:
    return any(entry.claim != "" for entry in pod.claims) or any(
        r in extended_resources for r in requested_resources(pod)
    )


def asks_for_no_device(pod: Pod) -> bool:
    """True if it neither claims nor requests a device: it needs no machine of a pool."""
    return not (
        pod.claims
        or pod.annotations.keys() & set(_KAI_PARTS)
        or any("/" in resource for resource in requested_resources(pod))
    )


def served_resources(snapshot: Snapshot) -> frozenset[str]:
    """The extended resources that DeviceClasses serve in this version of Kubernetes."""
    return frozenset(extended_resource_classes(snapshot.classes) if snapshot.profile.gates.extended_resource else ())


def requested_resources(pod: Pod) -> Iterator[str]:
    """The resources of which its containers request more than 0."""
    for container in (*pod.containers, *pod.init_containers):
        yield from (resource for resource, amount in container.requests.items() if amount.sign > 0)


def network_card_alone(pod: Pod) -> bool:
    """True if EFA is the only device that the pod requests.

    No application needs that, so the pod has lost its accelerators, and a machine with such a card is no useful advice.
    """
    return not pod.claims and {name for name in requested_resources(pod) if "/" in name} == {EFA}


def _selected(pool: CapacityPool, pod: Pod, snapshot: Snapshot) -> bool:
    pods, namespaces = pool.scope.pod_selector, pool.scope.namespace_selector
    own_name = EMPTY.with_items({"kubernetes.io/metadata.name": pod.namespace})
    return (pods is None or pods.matches(pod.labels)) and (
        namespaces is None or namespaces.matches(snapshot.namespaces.get(pod.namespace, own_name))
    )
