"""Filters that need one node and one pod: name, taints, affinity, ports, resources.

Each returns the reasons for a refusal; without a reason the node passes. Upstream: pkg/scheduler/framework/plugins of
k8s.io/kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from autoscaler.model.pod import HostPort, Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.scheduling.node_state import NodeState, host_ports
from autoscaler.scheduling.resources import pod_requests
from autoscaler.scheduling.world import World
from instance_catalog.kubernetes.labels import UNSCHEDULABLE_TAINT
from instance_catalog.kubernetes.node_selector import BadSelectorError, NodeSelector, Requirement, matches
from instance_catalog.kubernetes.taint import Taint

UNSCHEDULABLE = Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule")
_ANY_ADDRESS = ("", "0.0.0.0")
_SHOWN: Final = 3  # of the requirements of an affinity, and of the values of each


def node_name(pod: Pod, state: NodeState, _: World) -> tuple[Reason, ...]:
    """NodeName."""
    if pod.node_name and pod.node_name != state.node.name:
        return (Reason.of(Code.NODE_NAME_MISMATCH, Subject("pod", pod.key), wanted=pod.node_name),)
    return ()


def node_unschedulable(pod: Pod, state: NodeState, _: World) -> tuple[Reason, ...]:
    """NodeUnschedulable: a cordoned node accepts only pods that tolerate the unschedulable taint."""
    if state.node.unschedulable and not any(t.tolerates(UNSCHEDULABLE) for t in pod.tolerations):
        return (Reason.of(Code.NODE_UNSCHEDULABLE, Subject("node", state.node.name)),)
    return ()


def taint_toleration(pod: Pod, state: NodeState, _: World) -> tuple[Reason, ...]:
    """TaintToleration: NoSchedule and NoExecute taints must be tolerated."""
    for taint in state.node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not any(t.tolerates(taint) for t in pod.tolerations):
            return (
                Reason.of(
                    Code.TAINT_NOT_TOLERATED,
                    Subject("pod", pod.key),
                    key=taint.key,
                    value=taint.value,
                    effect=taint.effect,
                ),
            )
    return ()


@lru_cache(maxsize=256)  # called for every node that does not match
def requirements_of(affinity: NodeSelector) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys of a node selector, and its first requirements as written in manifests."""
    found = [r for term in affinity.terms for r in term.match_expressions]
    keys = tuple(sorted({r.key for r in found}))
    return keys, tuple(dict.fromkeys(map(as_written, found)))[:_SHOWN]


def as_written(requirement: Requirement) -> str:
    """ "disk In [ssd, nvme]", with the first values."""
    values = requirement.values
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return f"{requirement.key} {requirement.operator}" + (f" [{', '.join(values[:_SHOWN])}{more}]" if values else "")


def selects_node(pod: Pod, state: NodeState) -> tuple[Reason, ...]:
    """spec.nodeSelector and required node affinity (also used by topology spread)."""
    labels = state.node.labels
    for key, value in pod.node_selector.items():
        if labels.get(key) != value:
            return (
                Reason.of(
                    Code.NODE_SELECTOR_MISMATCH,
                    Subject("pod", pod.key),
                    key=key,
                    wanted=value,
                    found=labels.get(key, ""),
                ),
            )
    if pod.affinity is not None:
        try:
            found = matches(pod.affinity, name=state.node.name, labels=labels)
        except BadSelectorError as error:
            return (Reason.of(Code.BAD_NODE_SELECTOR, Subject("pod", pod.key), error=str(error)),)
        if not found:
            keys, wanted = requirements_of(pod.affinity)
            return (Reason.of(Code.NODE_AFFINITY_MISMATCH, Subject("pod", pod.key), keys=keys, wanted=wanted),)
    return ()


def node_affinity(pod: Pod, state: NodeState, _: World) -> tuple[Reason, ...]:
    """NodeAffinity."""
    return selects_node(pod, state)


def node_ports(pod: Pod, state: NodeState, _: World) -> tuple[Reason, ...]:
    """NodePorts: host ports must be free for the protocol and address."""
    for wanted in host_ports(pod):
        if any(_clash(wanted, taken) for taken in state.ports):
            return (Reason.of(Code.PORT_CONFLICT, Subject("pod", pod.key), port=wanted.port, protocol=wanted.protocol),)
    return ()


def node_resources(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """NodeResourcesFit: every shortage is reported, as upstream does.

    An extended resource that a DeviceClass serves is skipped if the node itself has none of it: DynamicResources
    decides it (KEP-5004). If it is unknown whether the class serves the resource, this is reported; alone it decides
    nothing.
    """
    wanted = amounts_of(pod)
    short = tuple(
        Reason.of(
            Code.INSUFFICIENT_RESOURCE,
            Subject("pod", pod.key),
            resource=resource,
            wanted=wanted[resource],
            free=max(state.free(resource), 0),
        )
        for resource in shortages(wanted, state, world)
    )
    return short + tuple(
        Reason.of(Code.CONTESTED_RESOURCE, Subject("pod", pod.key), resource=resource)
        for resource in wanted
        if resource in world.contested and state.allocatable.get(resource, 0) <= 0
    )


def amounts_of(pod: Pod) -> dict[str, int]:
    """The amounts that the pod takes of a node, in scheduler units; "pods" counts the pod itself."""
    return {resource: amount for resource, amount in {**pod_requests(pod), "pods": 1}.items() if amount}


def shortages(wanted: Mapping[str, int], state: NodeState, world: World) -> Iterator[str]:
    """The resources of which the node has too little left. Fast, for calls with many nodes."""
    for resource, amount in wanted.items():
        there = state.allocatable.get(resource, 0)
        served = there <= 0 and world.served_by_dra(resource)
        if not served and amount > there - state.used.get(resource, 0):
            yield resource


def has_room(wanted: Mapping[str, int], state: NodeState, world: World) -> bool:
    """True if there are no shortages. Faster still, for calls with every node."""
    there, used = state.allocatable, state.used
    for resource, amount in wanted.items():
        if amount > there.get(resource, 0) - used.get(resource, 0):
            short = next(shortages({resource: amount}, state, world), None)
            if short is not None:
                return False
    return True


def node_declared_features(pod: Pod, state: NodeState, world: World) -> tuple[Reason, ...]:
    """NodeDeclaredFeatures (from v1.36): the node's kubelet must declare the features that the pod uses."""
    if not pod.node_features or not world.profile.gates.node_declared_features:
        return ()
    node = state.node
    missing = tuple(feature for feature in pod.node_features if feature not in (node.declared_features or ()))
    if missing and (node.features_assumed or node.declared_features is None):
        # Its kubelet's feature gates may be set, which is unknown before it runs.
        features = ", ".join(missing)
        return (
            Reason.of(
                Code.UNSUPPORTED, Subject("pod", pod.key), feature=f"{features} on a node that does not exist yet"
            ),
        )
    return (Reason.of(Code.NODE_FEATURE_MISSING, Subject("pod", pod.key), features=missing),) if missing else ()


def _clash(one: HostPort, other: HostPort) -> bool:
    if one.port != other.port or one.protocol != other.protocol:
        return False
    return one.host_ip == other.host_ip or one.host_ip in _ANY_ADDRESS or other.host_ip in _ANY_ADDRESS
