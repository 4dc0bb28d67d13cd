"""Every call of Google Cloud that the adapter makes for machines, with its permissions and its callers.

session.py refuses a method that this table does not list, so the table cannot become incomplete. A test compares it
with the role of deploy/gcp. This module imports no client.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """One method, spelled as in the REST reference, with the permissions that it needs.

    `changes`: it starts or ends machines. `by_person`: only commands call it, with the permissions of their user.
    """

    method: str
    permissions: tuple[str, ...]
    changes: bool = False
    by_person: bool = False


_UPDATE: Final = ("compute.instanceGroupManagers.update",)
CALLS: Final = (
    Call("instanceGroupManagers.get", ("compute.instanceGroupManagers.get",)),
    Call("instanceGroupManagers.list", ("compute.instanceGroupManagers.list",)),
    Call("instanceGroupManagers.aggregatedList", ("compute.instanceGroupManagers.list",)),
    Call("instanceGroupManagers.listManagedInstances", ("compute.instanceGroupManagers.get",)),
    Call("instanceGroupManagers.listErrors", ("compute.instanceGroupManagers.get",)),
    Call("instanceGroupManagers.createInstances", _UPDATE, changes=True),
    Call("instanceGroupManagers.deleteInstances", _UPDATE, changes=True),
    Call("instanceGroupManagers.resize", _UPDATE, changes=True),  # to 0 only: session.py refuses every other size
    Call("instanceGroupManagerResizeRequests.get", ("compute.instanceGroupManagers.get",)),
    Call("instanceGroupManagerResizeRequests.list", ("compute.instanceGroupManagers.get",)),
    Call("instanceGroupManagerResizeRequests.insert", _UPDATE, changes=True),
    Call("instanceGroupManagerResizeRequests.cancel", _UPDATE, changes=True),
    Call("instanceGroupManagerResizeRequests.delete", _UPDATE, changes=True),
    Call("reservations.aggregatedList", ("compute.reservations.list",)),
    Call("reservations.get", ("compute.reservations.get",)),
    Call("reservationBlocks.get", ("compute.reservationBlocks.get",)),
    Call("reservationSubBlocks.get", ("compute.reservationSubBlocks.get",)),
    Call("futureReservations.aggregatedList", ("compute.futureReservations.list",)),
    Call("resourcePolicies.get", ("compute.resourcePolicies.get",)),
    Call("instanceTemplates.get", ("compute.instanceTemplates.get",)),
    Call("regionInstanceTemplates.get", ("compute.instanceTemplates.get",)),
    Call("instances.get", ("compute.instances.get",)),
    Call("instances.aggregatedList", ("compute.instances.list",)),
    Call("globalOperations.aggregatedList", ("compute.globalOperations.list",)),
    Call("zoneOperations.get", ("compute.zoneOperations.get",)),
    Call("machineTypes.aggregatedList", ("compute.machineTypes.list",), by_person=True),
    Call("acceleratorTypes.aggregatedList", ("compute.acceleratorTypes.list",), by_person=True),
    Call("advice.calendarMode", ("compute.advice.calendarMode",), by_person=True),
    Call("projects.testIamPermissions", (), by_person=True),
    Call("container.clusters.get", ("container.clusters.get",)),
    Call("container.nodePools.get", ("container.clusters.get",)),
)
BY_NAME: Final = {call.method: call for call in CALLS}
