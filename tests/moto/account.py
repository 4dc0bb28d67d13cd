"""An account in moto that is ready for launches, and the adapter as production makes it."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from autoscaler.clock import SystemClock
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.aws.node_groups.provider import AwsNodeGroups
from providers.aws.node_template.template import GroupTemplate, Image, Selector
from providers.aws.provider import Account, AwsProvider
from providers.aws.session import Aws
from providers.contract import TAG_BATCH, TAG_CLUSTER, TAG_POOL, LaunchRequest, OfferingKey
from tests.aws import CLUSTER, TEMPLATE, TEMPLATE_REF, Written, WrittenGroups, catalog
from tests.model_rules import CENSUS

ZONE = "us-east-1a"
GPU = OfferingKey("g5.xlarge", ZONE, CapacityType.ON_DEMAND)
SPOT = replace(GPU, capacity_type=CapacityType.SPOT)
QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/foreslice"


class MotoAws(Aws):
    """Clients as production makes them, with moto for AWS. One of each for the whole run: making them takes longest."""

    def __init__(self, url: str) -> None:
        super().__init__("us-east-1", endpoint=url, aws_access_key_id="AKIAFAKE", aws_secret_access_key="fake")
        self._made: dict[str, Any] = {}

    def client(self, service: str, region: str = "") -> Any:
        if service not in self._made:
            self._made[service] = CENSUS.attach(super().client(service, region))
        return self._made[service]


@cache
def aws_at(url: str) -> MotoAws:
    """The clients of a server."""
    return MotoAws(url)


@cache
def admin_at(url: str) -> Any:
    """A session for what a person sets up: the adapter's clients refuse calls that the adapter does not make."""
    import boto3

    keys = {"aws_access_key_id": "AKIAFAKE", "aws_secret_access_key": "fake", "region_name": "us-east-1"}
    return cache(lambda service: boto3.client(service, endpoint_url=url, **keys))


@dataclass
class MotoAccount:
    """A fresh account: moto's default VPC with a subnet in each zone, a role for nodes, a queue."""

    url: str

    def __post_init__(self) -> None:
        reset = urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")  # loopback
        urllib.request.urlopen(reset).close()  # loopback
        self.aws = aws_at(self.url)
        self.admin = admin_at(self.url)
        ec2, iam = self.admin("ec2"), self.admin("iam")
        self.vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
        group = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [self.vpc]}])["SecurityGroups"][0]
        self.image = str(ec2.register_image(Name="node", Architecture="x86_64", RootDeviceName="/dev/xvda")["ImageId"])
        iam.create_role(RoleName="nodes", AssumeRolePolicyDocument="{}")
        iam.create_instance_profile(InstanceProfileName="nodes")
        iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="nodes")
        self.admin("sqs").create_queue(QueueName="foreslice")
        self.templates = Written(
            {
                "gpu": replace(
                    TEMPLATE,
                    subnets=(Selector(tags=FrozenMap({"cluster": "test"})),),
                    security_groups=(Selector(id=group["GroupId"]),),
                    image=Image(id=self.image),
                )
            }
        )
        subnets = ec2.describe_subnets()["Subnets"]
        self.subnets = {subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in subnets}
        ec2.create_tags(Resources=list(self.subnets), Tags=[{"Key": "cluster", "Value": "test"}])
        self.restart()

    def restart(self) -> None:
        """The adapter anew, with nothing in memory."""
        self.account = Account(self.aws, SystemClock(), catalog(), CLUSTER)
        self.provider = AwsProvider(self.account, self.templates, queue=QUEUE)

    def write(self, **changes: Any) -> None:
        """Change the node template."""
        self.templates.templates["gpu"] = replace(self.templates.templates["gpu"], **changes)
        self.restart()

    def groups(self, *, size: int = 0, tags: Mapping[str, str] | None = None, propagate: bool = False) -> AwsNodeGroups:
        """The adapter of groups with an auto-scaling group "gpus" of the account, sized by desired capacity."""
        data = {"ImageId": self.image, "InstanceType": GPU.instance_type}
        self.admin("ec2").create_launch_template(LaunchTemplateName="gpus", LaunchTemplateData=data)
        self.admin("autoscaling").create_auto_scaling_group(
            AutoScalingGroupName="gpus",
            LaunchTemplate={"LaunchTemplateName": "gpus", "Version": "1"},
            MinSize=0,
            MaxSize=10,
            DesiredCapacity=size,
            VPCZoneIdentifier=next(subnet for subnet, zone in self.subnets.items() if zone == ZONE),
            Tags=[
                {"Key": key, "Value": value, "PropagateAtLaunch": propagate, "ResourceId": "gpus",
                 "ResourceType": "auto-scaling-group"}
                for key, value in (tags if tags is not None else {TAG_CLUSTER: CLUSTER}).items()
            ],
        )  # fmt: skip
        template = GroupTemplate(name="gpus", groups=("gpus",), by_instances=False)
        return AwsNodeGroups(self.account, WrittenGroups(template))


def request(*nodes: str, batch: str = "b1", offering: OfferingKey = GPU, minimum: int = 1) -> LaunchRequest:
    """A launch from the template gpu. Tokens have 64 hexadecimal digits, as the controller's have."""
    return LaunchRequest(
        token=batch.encode().hex().ljust(64, "0"),
        nodes=nodes or (f"{batch}-0",),
        offerings=(offering,),
        tags=FrozenMap({TAG_CLUSTER: CLUSTER, TAG_POOL: "gpu", TAG_BATCH: batch}),
        minimum=minimum,
        template=TEMPLATE_REF,
    )
