"""Karpenter's NodePools as pools of a plan: the machines that Karpenter may launch, for pods that select its labels.

Fields, operators and the labels of its nodes: kubernetes-sigs/karpenter 2266468, pkg/apis/v1/nodepool.go, nodeclaim.go
and labels.go; keys of Karpenter for AWS: aws/karpenter-provider-aws 1d92708, pkg/apis/v1/labels.go. Keys of EKS Auto
Mode: Amazon EKS user guide, "Create a Node Pool for EKS Auto Mode" (docs.aws.amazon.com, 2026-11).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import Problems
from autoscaler.kube.selectors import NODE_OPERATORS, parse_requirement, parse_taint
from autoscaler.model.capacity import DEFAULT_CAPACITY_TYPES, CapacityPool, Limits
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement, requirement_matches
from instance_catalog.prediction.system_labels import SYSTEM_KEYS
from instance_catalog.types.instance_type import CapacityType

_CLOUDS: Final = {"karpenter.k8s.aws": "aws", "eks.amazonaws.com": "aws", "karpenter.k8s.gcp": "gcp"}
_KNOWN: Final = SYSTEM_KEYS | {
    *(labels.INSTANCE_TYPE, labels.ARCHITECTURE, labels.OPERATING_SYSTEM),
    *(labels.ZONE, labels.REGION),
}
# Domains of labels that follow from the machine: a requirement's value for them does not label nodes.
_OF_MACHINES: Final = (
    "karpenter.k8s.",
    "eks.amazonaws.com/",
    "topology.k8s.aws/",
    "node.kubernetes.io/",
    "karpenter.sh/",
)
_WHOLE_DEVICES: Final = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi")
_OPERATORS: Final = (*NODE_OPERATORS, "Gte", "Lte")
# Operators that Kubernetes lacks, with the equivalent one and the number to add to the bound.
_WITH_BOUND: Final = {"Gte": ("Gt", -1), "Lte": ("Lt", 1)}
# In Karpenter's order: reserved capacity first, then spot if it is allowed.
_KINDS: Final = (CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED, CapacityType.SPOT, CapacityType.ON_DEMAND)


def parse_node_pool(raw: object, problems: Problems, *, origin: Origin = CLUSTER) -> CapacityPool | None:
    """The NodePool as a pool that offers everything its requirements admit, in every variant of drivers.

    None, with a warning, if its machines are in a cloud that the catalog lacks. A warning also lists the parts of the
    object that are read and those that are not.
    """
    fields = Fields(raw, problems)
    name, spec = fields.child("metadata").required("name"), fields.child("spec")
    template = spec.child("template")
    nodes = template.child("spec")
    cloud = _cloud(nodes.child("nodeClassRef"))
    if cloud is None:
        problems.warn((), "ignored: Karpenter launches by it what no cloud of Foreslice's catalog has")
        return None
    if "replicas" in spec:
        problems.warn((), "ignored: it keeps a number of nodes (spec.replicas), and launches none for pods")
        return None
    asked = [_usual(parse_requirement(entry, _OPERATORS)) for entry in _entries(nodes)]
    used = [one for one in asked if one.key in _KNOWN and one.key != labels.KARPENTER_CAPACITY_TYPE]
    own = {one.key: one.values[0] for one in asked if _is_label(one)}
    left = sorted({one.key for one in asked if one.key not in _KNOWN and one.key not in own})
    without = f"; nor are its requirements on {', '.join(left)}" if left else ""
    problems.warn(
        (),
        "Karpenter launches by it, and Foreslice does not: pods with devices are planned on what its requirements, "
        "labels, taints and limits of accelerators and nodes admit; its node class, its disruption and its limits of "
        f"cpu and memory are not considered{without}",
    )
    return CapacityPool(
        name=name,
        requirements=(Requirement(labels.CLOUD, "In", (cloud,)), *used),
        capacity_types=_capacity_types(asked),
        labels=FrozenMap({**template.child("metadata").text_map("labels"), **own, labels.KARPENTER_NODE_POOL: name}),
        taints=tuple(map(parse_taint, nodes.children("taints"))),
        startup_taints=tuple(map(parse_taint, nodes.children("startupTaints"))),
        limits=_limits(spec.child("limits")),
        weight=spec.integer("weight"),
        implicit=True,
        origin=origin,
    )


def _cloud(node_class: Fields) -> str | None:
    """The cloud: v1 has the group of the node class, v1beta1 its apiVersion, or neither of them for EC2."""
    group = node_class.text("group") or node_class.text("apiVersion").partition("/")[0]
    if not group and node_class.text("kind", "EC2NodeClass") == "EC2NodeClass":
        return "aws"
    return _CLOUDS.get(group)


def _entries(nodes: Fields) -> Iterator[Fields]:
    """The requirements without minValues, which is the number of types that Karpenter must have to choose from."""
    for entry in nodes.children("requirements"):
        entry.ignore("minValues")
        yield entry


def _usual(requirement: Requirement) -> Requirement:
    """The requirement with Kubernetes' key and operator: EKS Auto Mode has keys of its own, Karpenter has operators."""
    key = requirement.key
    own, usual = labels.AUTO_MODE_INSTANCE_PREFIX, labels.KARPENTER_INSTANCE_PREFIX
    renamed = key.replace(own, usual, 1) if key.startswith(own) else key
    operator, more = _WITH_BOUND.get(requirement.operator, (requirement.operator, 0))
    values = tuple(str(int(value) + more) if more and value.isdecimal() else value for value in requirement.values)
    return Requirement(renamed, operator, values)


def _is_label(requirement: Requirement) -> bool:
    """True if nodes get a user-defined label from it: Karpenter labels nodes with the value of such a requirement."""
    known = requirement.key in _KNOWN or requirement.key.startswith(_OF_MACHINES)
    return not known and requirement.operator == "In" and len(requirement.values) == 1


def _capacity_types(asked: list[Requirement]) -> tuple[CapacityType, ...]:
    """The capacity types of the requirements; without any, those that a plan launches by default."""
    about = [one for one in asked if one.key == labels.KARPENTER_CAPACITY_TYPE]
    names = {CapacityType.CAPACITY_BLOCK: CapacityType.RESERVED.value}
    found = tuple(
        kind
        for kind in _KINDS
        if all(requirement_matches(one, {one.key: names.get(kind, kind.value)}) for one in about)
    )
    return found if about else DEFAULT_CAPACITY_TYPES


def _limits(limits: Fields) -> Limits:
    """The limits on nodes, and on accelerators if only one kind of them is limited."""
    amounts = {name: amount for name in _WHOLE_DEVICES if (amount := limits.quantity(name)) is not None}
    nodes = limits.quantity("nodes")
    most = nodes.int64_value() if nodes is not None else None
    if len(amounts) != 1:
        return Limits(nodes=most)
    ((name, amount),) = amounts.items()
    return Limits(amount.int64_value(), most, of_accelerators=name)
