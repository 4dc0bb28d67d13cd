"""Short ways to write nodes, pods and worlds for the filters."""

from __future__ import annotations

from typing import Any

from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import Fits
from autoscaler.scheduling.fit import fit_one
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import ZONE
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity

HOST = "kubernetes.io/hostname"


def node(name: str = "n1", *, zone: str = "a", cpu: str = "4", **labels: str) -> Node:
    return Node(
        name,
        labels=FrozenMap({HOST: name, ZONE: zone, **labels}),
        allocatable=FrozenMap({"cpu": Quantity.parse(cpu), "pods": Quantity.parse("10")}),
    )


def selector(**labels: str) -> LabelSelector:
    return LabelSelector(tuple(Requirement(key, "In", (value,)) for key, value in labels.items()))


def pod(name: str = "p", *, cpu: str = "1", **fields: Any) -> Pod:
    requests = FrozenMap({"cpu": Quantity.parse(cpu)})
    return replace(Pod("ns", name, containers=(Container("c", requests),)), **fields)


def bound(where: str, name: str, **fields: Any) -> Pod:
    return pod(name, node_name=where, phase="Running", **fields)


def world(*, nodes: tuple[Node, ...] = (node(),), **fields: Any) -> World:
    return World.of(replace(Snapshot(nodes=nodes), **fields))


def codes(subject: Pod, where: str, seen: World) -> list[Code]:
    verdict = fit_one(subject, where, seen)
    return [] if isinstance(verdict, Fits) else [reason.code for reason in verdict.reasons]


APP = FrozenMap({"app": "x"})
IN_ZONE_B = NodeSelector((NodeSelectorTerm((Requirement(ZONE, "In", ("b",)),)),))
