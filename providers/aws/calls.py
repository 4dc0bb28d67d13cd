"""Every AWS call of this adapter, in one table: the roles that may need it and the IAM actions that it takes.

A client of session.py refuses an operation that is not listed here, so the table cannot fall behind the code, and a
test compares it with the policies of deploy/aws. It does not depend on boto3.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from instance_catalog.dataclass import dataclass


class Role(Enum):
    """The role whose permission a call needs."""

    CONTROLLER = "controller"
    BUYER = "buyer"  # `foreslice blocks find` and `blocks buy`, run by a person
    PERSON = "person"  # `foreslice aws check`, `aws trial` and `catalog sync`, run by a person


@dataclass(frozen=True, slots=True)
class Call:
    """`operation` as the service model spells it. `actions` are the IAM actions it needs; `owned` ones are refused by
    the policy for things without the cluster's tag. `launches` marks calls that may start machines."""

    service: str
    operation: str
    roles: frozenset[Role]
    actions: tuple[str, ...]
    launches: bool = False


_ALL: Final = frozenset(Role)
_CONTROLLER: Final = frozenset({Role.CONTROLLER})
_CHECKED: Final = frozenset({Role.CONTROLLER, Role.PERSON})
_BUYER: Final = frozenset({Role.BUYER})
_PERSON: Final = frozenset({Role.PERSON})
# Starting machines from a launch template tags them, and hands them the role of their instance profile.
_LAUNCHING: Final = ("ec2:CreateTags", "iam:PassRole")


def _call(service: str, operation: str, roles: frozenset[Role], *more: str, launches: bool = False) -> Call:
    prefix = {"service-quotas": "servicequotas"}.get(service, service)
    return Call(service, operation, roles, (f"{prefix}:{operation}", *more), launches)


CALLS: Final = tuple(
    sorted(
        (
            _call("ec2", "RunInstances", _CHECKED, *_LAUNCHING, launches=True),
            _call("ec2", "CreateFleet", _CHECKED, "ec2:RunInstances", *_LAUNCHING, launches=True),
            _call("ec2", "TerminateInstances", _CHECKED),
            _call("ec2", "DescribeInstances", _CHECKED),
            _call("ec2", "CreateLaunchTemplate", _CHECKED, "ec2:CreateTags"),
            _call("ec2", "CreateLaunchTemplateVersion", _CHECKED),
            _call("ec2", "DescribeLaunchTemplates", _CONTROLLER),
            _call("ec2", "DescribeLaunchTemplateVersions", _CHECKED),
            _call("ec2", "DeleteLaunchTemplate", _CHECKED),
            _call("ec2", "DeleteLaunchTemplateVersions", _CONTROLLER),
            _call("ec2", "DescribeSubnets", _CHECKED),
            _call("ec2", "DescribeSecurityGroups", _CHECKED),
            _call("ec2", "DescribeImages", _CHECKED),
            _call("ec2", "DescribePlacementGroups", _CHECKED),
            _call("ec2", "DescribeInstanceTypes", _CHECKED),
            _call("ec2", "DescribeInstanceTypeOfferings", _CHECKED),
            _call("ec2", "DescribeCapacityReservations", _ALL),
            _call("ec2", "DescribeCapacityBlockStatus", _ALL),
            _call("ec2", "DescribeCapacityBlocks", _ALL),
            _call("ec2", "DescribeSpotPriceHistory", _CHECKED),
            _call("ec2", "CreateTags", _CONTROLLER),
            _call("ec2", "DescribeCapacityBlockOfferings", _BUYER),
            _call("ec2", "PurchaseCapacityBlock", _BUYER, "ec2:CreateTags"),
            _call("autoscaling", "DescribeAutoScalingGroups", _CHECKED),
            _call("autoscaling", "DescribeScalingActivities", _CONTROLLER),
            _call("autoscaling", "LaunchInstances", _CONTROLLER, launches=True),
            _call("autoscaling", "SetDesiredCapacity", _CONTROLLER, launches=True),
            _call("autoscaling", "CreateOrUpdateTags", _CONTROLLER),
            _call("autoscaling", "TerminateInstanceInAutoScalingGroup", _CONTROLLER),
            _call("eks", "DescribeCluster", _CHECKED),
            _call("eks", "DescribeNodegroup", _CHECKED),
            _call("ssm", "GetParameter", _CHECKED),
            _call("sqs", "ReceiveMessage", _CHECKED),
            _call("sqs", "GetQueueAttributes", _PERSON),
            _call("events", "ListRuleNamesByTarget", _PERSON),
            _call("events", "DescribeRule", _PERSON),
            Call("sqs", "DeleteMessageBatch", _CONTROLLER, ("sqs:DeleteMessage",)),
            _call("pricing", "GetProducts", _CHECKED),
            _call("sts", "GetCallerIdentity", _PERSON),
            _call("iam", "GetInstanceProfile", _CHECKED),
            _call("service-quotas", "ListServiceQuotas", _PERSON),
        ),
        key=lambda call: (call.service, call.operation),
    )
)
# The SSM parameters that may be read: those AWS publishes, and those an account keeps for this. A parameter's value may
# be a secret, and GetParameter on all of them would read every one.
PARAMETERS: Final = ("/aws/service/", "/foreslice/")
BY_NAME: Final = {(call.service, call.operation): call for call in CALLS}
