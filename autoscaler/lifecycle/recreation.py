"""Which machine a node has, where a cloud gives a provider id again: a group may make a machine anew under its name.

What ran on the old machine is gone then, and the devices of the new one may be others. Nobody here asked for the new
one: the node is drained, and it is ended with it. Only ids tell them apart, since no event may say what has happened.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from autoscaler.lifecycle.absence import launched_at
from autoscaler.lifecycle.provisioned_node import Why, edge_of, is_leaving, is_over, take
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason
from instance_catalog.dataclass import dataclass, replace

# How far the provider's clock and ours may be apart.
_SKEW: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """A machine that its provider lists and that has not ended: its id, and when it was created."""

    id: str
    created: datetime


def own_id(provider_id: str, machine: str) -> str:
    """The id that tells a machine from others with its provider id; "" where the provider id has it already."""
    return "" if provider_id.endswith(f"/{machine}") else machine


def compared(
    node: ProvisionedNode, seen: SeenMachine | None, window: timedelta | None, now: datetime
) -> ProvisionedNode:
    """The node with what its provider says of its machine. `window` is the provider's for lists that lag, which may
    still have an earlier machine of the name; None: it did not answer.

    A node that an older version has launched has no id yet: it gets that of the machine that is there, unless this one
    was created long after the launch. Of a node whose machine is gone the object may be left; with another machine it
    passes all phases once more, since its Node may be there again and have pods.
    """
    launched = launched_at(node)
    if seen is None or window is None or launched is None or not node.provider_id or now < launched + window:
        return node
    machine = own_id(node.provider_id, seen.id)
    if not machine or machine == node.instance_id:
        return node
    if not node.instance_id and seen.created <= launched + _SKEW:
        return node if is_over(node) else replace(node, instance_id=machine)
    found = replace(node, recreated_as=machine)
    if not is_over(node) and not is_leaving(node):
        return found  # planning decides that it goes
    why = why_recreated(found)
    # Whatever it goes for: the new machine may have started pods of the old one.
    found = replace(found, reasons=(*(reason for reason in node.reasons if reason.code is not why.code), why))
    return take(found, edge_of(node.phase, Why.MACHINE_RECREATED), now) if is_over(node) else found


def why_recreated(node: ProvisionedNode) -> Reason:
    """Why a node is removed whose machine is another one."""
    was = {"was": node.instance_id} if node.instance_id else {}
    return Reason.of(Code.MACHINE_RECREATED, f"node {node.name}", machine=node.recreated_as, **was)
