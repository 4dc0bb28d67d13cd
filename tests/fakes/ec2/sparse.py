"""Answers without the members that AWS's models call optional, as older partitions and other fakes give them.

What an answer is about stays: ids, states, zones and tags. Everything else is left out or not, by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from botocore.model import OperationModel, Shape

# What answers of these operations always have, beside the members that the model requires. Others are not thinned out.
_KEPT: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(kept.split())
    for name, kept in {
        "CreateFleet": "Instances Errors InstanceIds ErrorCode",
        "RunInstances": "Instances InstanceId",
        "DescribeInstances": "Reservations Instances InstanceId InstanceType LaunchTime State Name Placement"
        " AvailabilityZone Tags Key Value NextToken",
        "TerminateInstances": "",
        "DescribeCapacityReservations": "CapacityReservations CapacityReservationId CapacityBlockId ReservationType"
        " InstanceType AvailabilityZone State StartDate CreateDate EndDate TotalInstanceCount AvailableInstanceCount"
        " Interruptible Tags Key Value NextToken",
        "CreateLaunchTemplate": "LaunchTemplate LaunchTemplateId LaunchTemplateName",
        "CreateLaunchTemplateVersion": "LaunchTemplateVersion VersionNumber",
        "LaunchInstances": "Instances Errors InstanceIds ErrorCode",
        "DescribeAutoScalingGroups": "LaunchTemplate LaunchTemplateName LaunchTemplateId Version Instances InstanceId"
        " Tags Key Value PropagateAtLaunch NextToken",
        "DescribeScalingActivities": "StatusMessage",
        "TerminateInstanceInAutoScalingGroup": "",
    }.items()
}


def thinned(model: OperationModel, answer: Mapping[str, Any], chance: Random) -> Mapping[str, Any]:
    """Half of the answers without half of their optional members."""
    kept = _KEPT.get(model.name)
    if kept is None or model.output_shape is None or chance.random() < 0.5:
        return answer
    return _structure(model.output_shape, answer, kept, chance)


def _structure(shape: Shape, value: Mapping[str, Any], kept: frozenset[str], chance: Random) -> dict[str, Any]:
    always = kept | frozenset(getattr(shape, "required_members", ()))
    return {
        name: _value(shape.members[name], item, kept, chance) if name in shape.members else item
        for name, item in value.items()
        if name in always or chance.random() < 0.5
    }


def _value(shape: Shape, value: Any, kept: frozenset[str], chance: Random) -> Any:
    if isinstance(value, Mapping) and shape.type_name == "structure":
        return _structure(shape, value, kept, chance)
    if isinstance(value, (list, tuple)) and shape.type_name == "list":
        return [_value(shape.member, item, kept, chance) for item in value]
    return value
