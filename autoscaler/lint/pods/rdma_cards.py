"""Pods that use the RDMA cards of their node and do not ask for them: no plan and no scheduler counts these."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.model.plan import Plan, PlannedNode
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.scope import requested_resources
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.prediction.device_plugins import EFA
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

_KINDS: Final = ("efa", "rdma")  # of network cards


def rdma_of(machine: InstanceType) -> str:
    """The network cards for RDMA of a machine, and how pods ask for them."""
    kind, count = next(((kind, len(cards)) for kind in _KINDS if (cards := machine.cards(kind))), ("", 0))
    if kind == "efa":
        return f"for RDMA request {EFA} instead, of which {machine.name} has {count}"
    if kind:
        return f"for RDMA claim cards of {machine.name} through DRANET (driver dra.net): it has {count}"
    return f"{machine.name} has no RDMA: the pods have its plain network"


def cards_unasked(snapshot: Snapshot, plan: Plan) -> Iterator[tuple[Pod, PlannedNode]]:
    """The pods on new nodes that use RDMA cards and ask for none, with their nodes."""
    cards = {facts.driver for facts in driver_facts().values() if facts.cards}
    pods = {pod.key: pod for pod in snapshot.pods if pod.rdma and EFA not in {*requested_resources(pod)}}
    for node in plan.launches if pods else ():
        if cards.isdisjoint(device.driver for device in node.devices_used):
            yield from ((pods[key], node) for key in node.pods if key in pods)


def cards_advice(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """The first such pod."""
    found = list(cards_unasked(snapshot, plan))
    for pod, node in found[:1]:
        yield surprise(
            f"Pod {pod.key}",
            ("spec", "volumes"),
            f"uses RDMA cards of its node by hostPath {pod.rdma} and asks for none: no plan and no "
            "scheduler sees to it that the node has some",
            rdma_of(catalog.get(node.offering.instance_type)),
            pod.origin,
            others=len(found) - 1,
        )
