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
from instance_catalog.drivers.efa import reads_remotely
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.prediction.device_plugins import EFA
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

_KINDS: Final = ("efa", "rdma")  # of network cards


def rdma_of(machine: InstanceType, catalog: Catalog) -> str:
    """The network cards for RDMA of a machine, and how pods ask for them; if its own have none, of another one."""
    kind, count = next(((kind, len(cards)) for kind in _KINDS if (cards := machine.cards(kind))), ("", 0))
    if kind == "efa" and not reads_remotely(machine.name):
        return f"the EFA of {machine.name} has no RDMA read{_elsewhere(machine, catalog)}"
    if kind == "efa":
        pods = "one such pod" if count == 1 else f"at most {count} such pods"
        return f"for RDMA request {EFA} instead, of which {machine.name} has {count}: {pods} a node"
    if kind:
        return f"for RDMA claim cards of {machine.name} through DRANET (driver dra.net): it has {count}"
    return f"{machine.name} has no RDMA: the pods have its plain network"


def _elsewhere(machine: InstanceType, catalog: Catalog) -> str:
    """The cheapest machine of the cloud that has RDMA and no less of anything else, to select in its place."""
    enough = [one for one in catalog if reads_remotely(one.name) and one.cards("efa") and _no_less(one, machine)]
    priced = [(one.price.usd_per_hour, one.name, one) for one in enough if one.sold_on_demand and one.price]
    if not priced:
        return ""
    usd, name, best = min(priced)
    return (
        f": for RDMA select {labels.INSTANCE_TYPE} {name} ({usd:.2f} $/h each, the cheapest with RDMA and no less "
        f"of anything), and request {EFA}, of which it has {len(best.cards('efa'))}"
    )


def _no_less(one: InstanceType, than: InstanceType) -> bool:
    """True if what fits the second machine fits the first, whose accelerators may be of another model."""
    had, given = than.accelerator, one.accelerator
    if had is None or given is None or (had.vendor, than.cloud) != (given.vendor, one.cloud):
        return False
    zero = Quantity.of(0)
    return (
        one.architecture == than.architecture
        and one.vcpu >= than.vcpu
        and one.memory >= than.memory
        and one.accelerator_count >= than.accelerator_count
        and (given.memory or zero) >= (had.memory or zero)
    )


def cards_unasked(snapshot: Snapshot, plan: Plan) -> Iterator[tuple[Pod, PlannedNode]]:
    """The pods on new nodes that use RDMA cards and ask for none, with their nodes."""
    cards = {facts.driver for facts in driver_facts().values() if facts.cards}
    pods = {pod.key: pod for pod in snapshot.pods if pod.rdma and EFA not in {*requested_resources(pod)}}
    for node in plan.launches if pods else ():
        if cards.isdisjoint(device.driver for device in node.devices_used):
            yield from ((pods[key], node) for key in node.pods if key in pods)


def cards_advice(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """The first such pod, and the first that asks for EFA and gets one without RDMA read."""
    yield from _without_read(snapshot, plan, catalog)
    found = list(cards_unasked(snapshot, plan))
    for pod, node in found[:1]:
        yield surprise(
            f"Pod {pod.key}",
            ("spec", "volumes"),
            f"uses RDMA cards of its node by hostPath {pod.rdma} and asks for none: no plan and no "
            "scheduler sees to it that the node has some",
            rdma_of(catalog.get(node.offering.instance_type), catalog),
            pod.origin,
            others=len(found) - 1,
        )


def _without_read(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    pods = {pod.key: pod for pod in snapshot.pods if EFA in {*requested_resources(pod)}}
    plain = [node for node in plan.launches if pods and not reads_remotely(node.offering.instance_type)]
    found = [(pods[key], node) for node in plain for key in node.pods if key in pods]
    for pod, node in found[:1]:
        name = node.offering.instance_type
        elsewhere = _elsewhere(catalog.get(name), catalog).removeprefix(": ")
        yield surprise(
            f"Pod {pod.key}",
            ("spec", "containers"),
            f"asks for {EFA} and gets {name}, whose EFA has no RDMA read",
            elsewhere or "if it needs RDMA, select a machine whose EFA has it, such as p4d.24xlarge",
            pod.origin,
            others=len(found) - 1,
        )
