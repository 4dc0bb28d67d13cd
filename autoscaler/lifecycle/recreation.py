"""The machine of a node, if a cloud uses a provider id again: a group may recreate a machine with the same name.

The pods of the old machine are gone then, and the devices of the new one may differ. Foreslice did not request the new
one: the node is drained, and the machine ends with it. Only ids distinguish them, because there may be no event.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from autoscaler.lifecycle.absence import launched_at
from autoscaler.lifecycle.provisioned_node import Why, edge_of, is_leaving, is_over, take
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.reason import Code, Reason, Subject
from instance_catalog.dataclass import dataclass, replace

# The greatest difference between the provider's clock and the controller's.
_SKEW: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """A machine that its provider lists and that has not ended: its id, and the time of its creation."""

    id: str
    created: datetime


def own_id(provider_id: str, machine: str) -> str:
    """The id that distinguishes a machine from others with its provider id; "" if the provider id has it already."""
    return "" if provider_id.endswith(f"/{machine}") else machine


def compared(
    node: ProvisionedNode, seen: SeenMachine | None, window: timedelta | None, now: datetime
) -> ProvisionedNode:
    """The node with the provider's data on its machine. `window` is the provider's for lists that lag, which may still
    have an earlier machine of the name; None: it did not answer.

    A node that an older version has launched has no id yet: it gets that of the current machine, unless that was
    created long after the launch. If a node's machine is gone, its object may be left; with another machine it passes
    all phases once more, because its Node may exist again and have pods.
    """
    if seen is None or window is None or not node.provider_id:
        return node
    machine = own_id(node.provider_id, seen.id)
    if not machine or machine == node.instance_id:
        return node
    launched = launched_at(node)
    if launched is None or now < launched + window:
        return node
    if not node.instance_id and seen.created <= launched + _SKEW:
        return node if is_over(node) else replace(node, instance_id=machine)
    found = replace(node, recreated_as=machine)
    if not is_over(node) and not is_leaving(node):
        return found  # planning decides to remove it
    why = why_recreated(found)
    # For any reason of removal: the new machine may have started pods of the old one.
    found = replace(found, reasons=(*(reason for reason in node.reasons if reason.code is not why.code), why))
    return take(found, edge_of(node.phase, Why.MACHINE_RECREATED), now) if is_over(node) else found


def why_recreated(node: ProvisionedNode) -> Reason:
    """The reason for removing a node with another machine."""
    was = {"was": node.instance_id} if node.instance_id else {}
    return Reason.of(Code.MACHINE_RECREATED, Subject("node", node.name), machine=node.recreated_as, **was)
