"""What a launch refers to: zones, subnets, security groups, images, placement groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.operation import Answer, Operation
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.geography import Image, SecurityGroup, Subnet
from tests.fakes.ec2.requests import Params
from tests.fakes.ec2.selection import filtered, paged, tag_set

Thing = TypeVar("Thing")


def describe_availability_zones(account: Account, params: Params) -> Answer:
    """The zones of the region."""
    region = account.geography.region
    asked = params.get("ZoneNames", ())
    zones = [
        {
            "ZoneName": name,
            "ZoneId": zone_id,
            "RegionName": region,
            "State": "available",
            "ZoneType": "availability-zone",
        }
        for name, zone_id in account.geography.zones.items()
        if not asked or name in asked
    ]
    return {"AvailabilityZones": zones}


def describe_subnets(account: Account, params: Params) -> Answer:
    """Subnets, with the addresses that are left."""
    known = _named(account.geography.subnets, params.get("SubnetIds", ()), "InvalidSubnetID.NotFound", "subnet ID")
    found = filtered(known, params.get("Filters", ()), _SUBNET_FIELDS, lambda subnet: subnet.tags)
    page, token = paged(sorted(found, key=lambda s: s.id), params, key=lambda subnet: subnet.id)
    return {"Subnets": [_subnet(account, subnet) for subnet in page], "NextToken": token}


def describe_security_groups(account: Account, params: Params) -> Answer:
    """Security groups."""
    groups = account.geography.security_groups
    known = _named(groups, params.get("GroupIds", ()), "InvalidGroup.NotFound", "security group")
    found = filtered(known, params.get("Filters", ()), _GROUP_FIELDS, lambda group: group.tags)
    page, token = paged(sorted(found, key=lambda g: g.id), params, key=lambda group: group.id)
    shown = [
        {
            "GroupId": group.id,
            "GroupName": group.name,
            "Description": group.name,
            "VpcId": group.vpc,
            "OwnerId": account.geography.account,
            "Tags": tag_set(group.tags),
        }
        for group in page
    ]
    return {"SecurityGroups": shown, "NextToken": token}


def describe_images(account: Account, params: Params) -> Answer:
    """Images."""
    known = _named(account.geography.images, params.get("ImageIds", ()), "InvalidAMIID.NotFound", "image id")
    owners = set(params.get("Owners", ()))
    own = {"amazon": "602401143452", "self": account.geography.account}
    known = [i for i in known if not owners or i.owner in {own.get(owner, owner) for owner in owners}]
    found = filtered(known, params.get("Filters", ()), _IMAGE_FIELDS, lambda image: image.tags)
    page, token = paged(sorted(found, key=lambda i: i.id), params, key=lambda image: image.id)
    return {"Images": [_image(image) for image in page], "NextToken": token}


def create_placement_group(account: Account, params: Params) -> Answer:
    """A placement group, of strategy cluster unless another is named."""
    name, strategy = params["GroupName"], params.get("Strategy", "cluster")
    if name in account.geography.placement_groups:
        raise ApiError("InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists.")
    group = {"GroupId": account.new_id("pg"), "GroupName": name, "Strategy": strategy, "State": "available"}
    account.geography.placement_groups[name] = group
    return {"PlacementGroup": group}


def describe_placement_groups(account: Account, params: Params) -> Answer:
    """Placement groups by name, or all."""
    groups = account.geography.placement_groups
    names = params.get("GroupNames", ())
    return {"PlacementGroups": _named(groups, names, "InvalidPlacementGroup.Unknown", "Placement Group")}


def _named(table: Mapping[str, Thing], names: Iterable[str], code: str, what: str) -> list[Thing]:
    """The things that were asked for by name, or all of them. Raises ApiError for one that does not exist."""
    for name in names:
        if name not in table:
            raise ApiError(code, f"The {what} '{name}' does not exist")
    return [table[name] for name in names] or list(table.values())


def _subnet(account: Account, subnet: Subnet) -> dict[str, Any]:
    used = sum(m.order.subnet == subnet.id for m in account.machines.values() if m.alive(account.now))
    return {
        "SubnetId": subnet.id,
        "VpcId": subnet.vpc,
        "AvailabilityZone": subnet.zone,
        "AvailabilityZoneId": account.geography.zones.get(subnet.zone),
        "CidrBlock": subnet.cidr,
        "AvailableIpAddressCount": max(subnet.addresses - used, 0),
        "MapPublicIpOnLaunch": subnet.public,
        "State": "available",
        "OwnerId": account.geography.account,
        "Tags": tag_set(subnet.tags),
    }


def _image(image: Image) -> dict[str, Any]:
    return {
        "ImageId": image.id,
        "Name": image.name,
        "Architecture": image.architecture,
        "OwnerId": image.owner,
        "State": "available",
        "CreationDate": image.created,
        "RootDeviceName": "/dev/xvda",
        "RootDeviceType": "ebs",
        "VirtualizationType": "hvm",
        "PlatformDetails": "Linux/UNIX",
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": image.snapshot, "VolumeSize": 20, "VolumeType": "gp3"}}
        ],
        "Tags": tag_set(image.tags),
    }


_SUBNET_FIELDS: Final[Mapping[str, Callable[[Subnet], list[str]]]] = {
    "subnet-id": lambda subnet: [subnet.id],
    "vpc-id": lambda subnet: [subnet.vpc],
    "availability-zone": lambda subnet: [subnet.zone],
    "state": lambda subnet: ["available"],
}
_GROUP_FIELDS: Final[Mapping[str, Callable[[SecurityGroup], list[str]]]] = {
    "group-id": lambda group: [group.id],
    "group-name": lambda group: [group.name],
    "vpc-id": lambda group: [group.vpc],
}
_IMAGE_FIELDS: Final[Mapping[str, Callable[[Image], list[str]]]] = {
    "image-id": lambda image: [image.id],
    "name": lambda image: [image.name],
    "architecture": lambda image: [image.architecture],
    "owner-id": lambda image: [image.owner],
    "state": lambda image: ["available"],
}
OPERATIONS: Final[Mapping[str, Operation]] = {
    "DescribeAvailabilityZones": Operation(describe_availability_zones, "ZoneNames"),
    "DescribeSubnets": Operation(describe_subnets, "SubnetIds Filters MaxResults NextToken"),
    "DescribeSecurityGroups": Operation(describe_security_groups, "GroupIds Filters MaxResults NextToken"),
    "DescribeImages": Operation(describe_images, "ImageIds Owners Filters MaxResults NextToken"),
    "CreatePlacementGroup": Operation(create_placement_group, "GroupName Strategy TagSpecifications"),
    "DescribePlacementGroups": Operation(describe_placement_groups, "GroupNames"),
}
