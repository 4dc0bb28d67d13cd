"""Auto Scaling and EKS: groups of machines, and the managed node groups that stand on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.instances import remembered
from tests.fakes.ec2.calls.operation import Answer, Operation
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.groups import Activity, Group, Groups
from tests.fakes.ec2.machines import Machine
from tests.fakes.ec2.requests import Params
from tests.fakes.ec2.selection import paged

_LIFECYCLE: Final = {
    "pending": "Pending",
    "running": "InService",
    "shutting-down": "Terminating",
    "terminated": "Terminated",
}


class Scaling:
    """The operations of both services, over one table of groups."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    @property
    def autoscaling(self) -> Mapping[str, Operation]:
        """Auto Scaling."""
        return {
            "DescribeAutoScalingGroups": Operation(
                self.describe_groups, "AutoScalingGroupNames Filters MaxRecords NextToken"
            ),
            "DescribeScalingActivities": Operation(self.activities, "AutoScalingGroupName MaxRecords NextToken"),
            "SetDesiredCapacity": Operation(self.set_desired, "AutoScalingGroupName DesiredCapacity HonorCooldown"),
            "LaunchInstances": Operation(
                self.launch_instances,
                "AutoScalingGroupName RequestedCapacity ClientToken AvailabilityZones SubnetIds RetryStrategy",
            ),
            "TerminateInstanceInAutoScalingGroup": Operation(
                self.terminate, "InstanceId ShouldDecrementDesiredCapacity"
            ),
            "CreateOrUpdateTags": Operation(self.tag, "Tags"),
        }

    @property
    def eks(self) -> Mapping[str, Operation]:
        """EKS."""
        return {
            "DescribeCluster": Operation(describe_cluster, "name"),
            "DescribeNodegroup": Operation(self.describe_node_group, "clusterName nodegroupName"),
        }

    def describe_groups(self, account: Account, params: Params) -> Answer:
        """Groups by name; unknown names are left out, as AWS does."""
        asked = params.get("AutoScalingGroupNames", ())
        found = [group for name, group in sorted(self._groups.by_name.items()) if not asked or name in asked]
        for chosen in params.get("Filters", ()):
            found = [group for group in found if _passes(group, chosen)]
        page, token = paged(found, params, key=lambda group: group.name)
        return {"AutoScalingGroups": [self._group(account, group) for group in page], "NextToken": token}

    def activities(self, account: Account, params: Params) -> Answer:
        """What happened, newest first."""
        group = self._named(params["AutoScalingGroupName"])
        return {"Activities": [_activity(group, activity) for activity in group.activities[:100]]}

    def set_desired(self, account: Account, params: Params) -> Answer:
        """Another size; AWS gets there in its own time."""
        group, size = self._named(params["AutoScalingGroupName"]), params["DesiredCapacity"]
        if not group.minimum <= size <= group.maximum:
            text = f"New SetDesiredCapacity value {size} is not between {group.minimum} and {group.maximum}."
            raise ApiError("ValidationError", text)
        group.desired, group.failed_at = size, None
        self._groups.catch_up()
        return {}

    def launch_instances(self, account: Account, params: Params) -> Answer:
        """Launch at once in one subnet; the size of the group grows with it, errors are in the answer."""
        group, count = self._named(params["AutoScalingGroupName"]), params["RequestedCapacity"]
        if not 1 <= count <= 100 or group.desired + count > group.maximum:
            raise ApiError("ValidationError", "RequestedCapacity must be 1 to 100 and fit into the group's maximum.")
        zones = params.get("AvailabilityZones", ())
        subnets = params.get("SubnetIds") or [
            name for name in group.subnets if not zones or account.geography.subnets[name].zone in zones
        ]
        if len(subnets) < 1:
            raise ApiError("ValidationError", "The group has no subnet in the zones that were named.")

        def launch() -> tuple[Answer, bool]:
            place = {"SubnetId": subnets[0], "AvailabilityZone": account.geography.subnets[subnets[0]].zone}
            try:
                machines = self._groups.launch(group, subnets[0], count, token=params["ClientToken"])
            except ApiError as error:
                row = place | {"ErrorCode": error.code, "ErrorMessage": error.message, "MarketType": "OnDemand"}
                return self._launched(group, params, [], [row | {"InstanceType": group.instance_type}]), False
            group.desired += len(machines)
            ids = [machine.id for machine in machines]
            row = place | {
                "InstanceType": machines[0].order.instance_type,
                "InstanceIds": ids,
                "MarketType": "OnDemand",
            }
            lacking = place | {
                "InstanceType": group.instance_type,
                "ErrorCode": "InsufficientInstanceCapacity",
                "ErrorMessage": f"Of {count} instances {len(machines)} were launched.",
                "MarketType": "OnDemand",
            }
            return self._launched(group, params, [row], [lacking] if len(machines) < count else []), True

        answer: Answer = remembered(account, "LaunchInstances", "", params, launch)
        return answer

    def _launched(self, group: Group, params: Params, rows: list[Any], errors: list[Any]) -> Answer:
        return {
            "AutoScalingGroupName": group.name,
            "ClientToken": params["ClientToken"],
            "Instances": rows,
            "Errors": errors,
        }

    def terminate(self, account: Account, params: Params) -> Answer:
        """Terminate a member, and let the group shrink or replace it."""
        machine = account.machines.get(params.get("InstanceId", ""))
        group = None if machine is None else self._groups.by_name.get(machine.group)
        if machine is None or group is None or not machine.alive(account.now):
            raise ApiError("ValidationError", f"Instance Id not found - No managed instance found for {params}")
        if params["ShouldDecrementDesiredCapacity"]:
            if group.desired <= group.minimum:
                raise ApiError(
                    "ValidationError", "Currently, desiredSize equals minSize. Terminating instance is invalid."
                )
            group.desired -= 1
        return {"Activity": _activity(group, self._groups.end(group, machine))}

    def tag(self, account: Account, params: Params) -> Answer:
        """Tags of groups; PropagateAtLaunch concerns machines to come."""
        for tag in params["Tags"]:
            group = self._named(tag.get("ResourceId", ""))
            group.tags[tag["Key"]] = (tag.get("Value", ""), tag.get("PropagateAtLaunch", False))
        return {}

    def describe_node_group(self, account: Account, params: Params) -> Answer:
        """A managed node group and the group it stands on."""
        for group in self._groups.by_name.values():
            if (group.cluster, group.node_group) == (params["clusterName"], params["nodegroupName"]):
                return {"nodegroup": _node_group(group)}
        raise ApiError("ResourceNotFoundException", "No node group found for name.", status=404)

    def _named(self, name: str) -> Group:
        if name not in self._groups.by_name:
            raise ApiError("ValidationError", "AutoScalingGroup name not found - null")
        return self._groups.by_name[name]

    def _group(self, account: Account, group: Group) -> dict[str, Any]:
        zones = sorted({account.geography.subnets[subnet].zone for subnet in group.subnets})
        return {
            "AutoScalingGroupName": group.name,
            "LaunchTemplate": group.template,
            "MinSize": group.minimum,
            "MaxSize": group.maximum,
            "DesiredCapacity": group.desired,
            "DefaultCooldown": 300,
            "AvailabilityZones": zones,
            "HealthCheckType": "EC2",
            "CreatedTime": group.created_at,
            "VPCZoneIdentifier": ",".join(group.subnets),
            "Instances": [_member(account, machine, group) for machine in self._groups.members(group)],
            "SuspendedProcesses": [],
            "Tags": [
                {
                    "ResourceId": group.name,
                    "ResourceType": "auto-scaling-group",
                    "Key": key,
                    "Value": value,
                    "PropagateAtLaunch": spreads,
                }
                for key, (value, spreads) in sorted(group.tags.items())
            ],
        }


def describe_cluster(account: Account, params: Params) -> Answer:
    """One cluster, called "test"."""
    if params["name"] != "test":
        raise ApiError("ResourceNotFoundException", f"No cluster found for name: {params['name']}.", status=404)
    region = account.geography.region
    cluster = {
        "name": "test",
        "arn": f"arn:aws:eks:{region}:{account.geography.account}:cluster/test",
        "version": "1.35",
        "endpoint": f"https://0123456789ABCDEF.gr7.{region}.eks.amazonaws.com",
        "certificateAuthority": {"data": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16", "ipFamily": "ipv4"},
        "status": "ACTIVE",
    }
    return {"cluster": cluster}


def _passes(group: Group, chosen: Mapping[str, Any]) -> bool:
    name, values = chosen["Name"], set(chosen.get("Values", ()))
    found: Mapping[str, Callable[[], set[str]]] = {
        "tag-key": lambda: set(group.tags),
        "tag-value": lambda: {value for value, _ in group.tags.values()},
    }
    if name.startswith("tag:"):
        return group.tags.get(name.removeprefix("tag:"), ("", False))[0] in values
    if name not in found:
        raise ApiError("ValidationError", f"The filter {name} is invalid.")
    return bool(found[name]() & values)


def _member(account: Account, machine: Machine, group: Group) -> dict[str, Any]:
    return {
        "InstanceId": machine.id,
        "InstanceType": machine.order.instance_type,
        "AvailabilityZone": machine.order.zone,
        "LifecycleState": _LIFECYCLE[machine.state(account.now, account.behaviour)],
        "HealthStatus": "Healthy",
        "LaunchTemplate": group.template,
        "ProtectedFromScaleIn": False,
    }


def _activity(group: Group, activity: Activity) -> dict[str, Any]:
    return {
        "ActivityId": activity.id,
        "AutoScalingGroupName": group.name,
        "Description": activity.description,
        "Cause": "",
        "StartTime": activity.at,
        "EndTime": activity.at if activity.status in ("Successful", "Failed") else None,
        "StatusCode": activity.status,
        "StatusMessage": activity.message or None,
        "Progress": 100 if activity.status in ("Successful", "Failed") else 50,
    }


def _node_group(group: Group) -> dict[str, Any]:
    return {
        "nodegroupName": group.node_group,
        "clusterName": group.cluster,
        "status": "ACTIVE",
        "capacityType": group.capacity_type,
        "scalingConfig": {"minSize": group.minimum, "maxSize": group.maximum, "desiredSize": group.desired},
        "subnets": group.subnets,
        "instanceTypes": [group.instance_type] if group.instance_type else [],
        "resources": {"autoScalingGroups": [{"name": group.name}]},
        "health": {"issues": []},
    }
