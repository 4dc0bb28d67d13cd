"""The machines of a group as Cluster Autoscaler's instances: their ids, states, and launch errors. Pure.

An instance with an error makes Cluster Autoscaler take back the scale-up, leave the group alone for a while, try
another one, and delete the instance (clusterstate/clusterstate.go, core/static_autoscaler.go, 2026-08-22).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from autoscaler.externalgrpc.messages import ErrorClass, InstanceState
from autoscaler.externalgrpc.node_groups import is_counted, is_running
from autoscaler.externalgrpc.wire import Json
from autoscaler.lifecycle.provisioned_node import has_failed, has_machine, last_edge
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.model.snapshot import Backoff
from autoscaler.report.printable import one_line

# The prefix of ids for machines that never started; no provider's ids have it.
PLACEHOLDER: Final = "foreslice://"
# The kinds of a provider's errors (providers/errors.py) after which another group may have what this one has not.
_OUT_OF_RESOURCES: Final = {
    "": "OUT_OF_RESOURCES",
    "Capacity": "OUT_OF_RESOURCES",
    "Shortage": "OUT_OF_RESOURCES",
    "ReservationExhausted": "OUT_OF_RESOURCES",
    "NotOffered": "OUT_OF_RESOURCES",
    "NotInGroups": "OUT_OF_RESOURCES",
    "AddressesExhausted": "IP_SPACE_EXHAUSTED",
    "Quota": "QUOTA_EXCEEDED",
}


def id_of(node: ProvisionedNode) -> str:
    """As in the Node's spec.providerID; of a node without a machine a placeholder."""
    return node.provider_id or f"{PLACEHOLDER}{node.name}"


def names_of(node: ProvisionedNode) -> frozenset[str]:
    """The names of a node in requests: its Node, its machine, or the placeholder from before it had one."""
    return frozenset({node.node_name, id_of(node), f"{PLACEHOLDER}{node.name}"})


def instance_of(node: ProvisionedNode, backoffs: Iterable[Backoff]) -> Json:
    """One instance. One that failed is shown as being created: only then Cluster Autoscaler looks at its error."""
    if not is_counted(node):
        return {"id": id_of(node), "status": {"instanceState": int(InstanceState.DELETING)}}
    if has_failed(node):
        return {
            "id": id_of(node),
            "status": {"instanceState": int(InstanceState.CREATING), "errorInfo": _error(node, backoffs)},
        }
    state = InstanceState.RUNNING if is_running(node) else InstanceState.CREATING
    return {"id": id_of(node), "status": {"instanceState": int(state)}}


def _error(node: ProvisionedNode, backoffs: Iterable[Backoff]) -> Json:
    """The reason why a node failed: its provider's last error about the offering, or the last edge of its life."""
    about = [backoff for backoff in backoffs if backoff.pool == node.pool and backoff.covers(node.offering)]
    if has_machine(node) or not about:
        why = last_edge(node) or "LaunchFailed"
        message = f"ProvisionedNode {node.name}: {why}"
        return {"errorCode": why, "errorMessage": message, "instanceErrorClass": int(ErrorClass.OTHER)}
    last = max(about, key=lambda backoff: backoff.until)
    code = _OUT_OF_RESOURCES.get(last.reason)
    kind = ErrorClass.OTHER if code is None else ErrorClass.OUT_OF_RESOURCES
    return {
        "errorCode": code or last.reason,
        "errorMessage": one_line(last.message or last.reason),
        "instanceErrorClass": int(kind),
    }
