"""AWSNodeTemplate and AWSGroupNodeTemplate: the machines of a pool on AWS, and existing groups that start them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from autoscaler.kube.custom.node_template import NodeTemplateStatus
from autoscaler.kube.custom.objects import read_spec
from autoscaler.kube.custom.schema import NO_ENTRIES, ApiModel, BootTimeoutText, Items, Labels, LongText, Rule, Text
from autoscaler.kube.problem import Problems

Tags = Annotated[dict[str, Annotated[str, StringConstraints(max_length=256)]], Field(max_length=30)]


class AwsSelector(ApiModel):
    """One object by id, or all objects with the tags."""

    id: LongText = ""
    tags: Tags = NO_ENTRIES
    """Key and value; "*" matches any value."""

    RULES = (
        Rule(
            "(self.id != '') != (size(self.tags) > 0)",
            "select by id or by tags: exactly one of them",
            lambda self: bool(self.id) != bool(self.tags),
        ),
    )


class AwsCluster(ApiModel):
    """The cluster that machines join."""

    name: Text
    """The name of the EKS cluster, or the name in the tag kubernetes.io/cluster/<name>."""
    endpoint: LongText = ""
    """The API server's URL. If absent, these three fields are read from EKS."""
    certificate_authority: Annotated[str, StringConstraints(max_length=16384)] = ""
    """Base64, as in a kubeconfig."""
    service_cidr: LongText = ""


class AwsImage(ApiModel):
    """The AMI that machines start from."""

    id: Annotated[str, StringConstraints(max_length=64, pattern="^(ami-[0-9a-f]+)?$")] = ""
    ssm_parameter: LongText = ""
    """A parameter with an AMI id, such as those that EKS and Bottlerocket publish."""
    follow: bool = False
    """Use the parameter's new value at each launch. Otherwise its first value stays until spec.ami changes."""

    RULES = (
        Rule(
            "(self.id != '') != (self.ssmParameter != '')",
            "name the image by id or by ssmParameter: exactly one of them",
            lambda self: bool(self.id) != bool(self.ssm_parameter),
        ),
    )


class AwsUserData(ApiModel):
    """The user data that turns a new machine into a node."""

    kind: Literal["AL2023", "Bottlerocket", "Custom"] = "AL2023"
    """AL2023: a NodeConfig for nodeadm. Bottlerocket: TOML settings. Custom: the text unchanged, which must join the
    cluster by itself and register with the pool's labels and taints."""
    text: Annotated[str, StringConstraints(max_length=16384)] = ""
    """AL2023: a script, a NodeConfig or a MIME document of such parts, which come first. Bottlerocket: settings, into
    which Foreslice merges its own."""


class AwsVolume(ApiModel):
    """An EBS volume, deleted with the machine."""

    device_name: Text = "/dev/xvda"
    size_gi_b: Annotated[int, Field(ge=1, le=65536)] | None = None
    type: Literal["gp3", "gp2", "io1", "io2", "st1", "sc1", "standard"] = "gp3"
    iops: Annotated[int, Field(ge=100, le=256000)] | None = None
    throughput: Annotated[int, Field(ge=125, le=2000)] | None = None
    """MiB per second, gp3 only."""
    snapshot_id: Annotated[str, StringConstraints(max_length=64, pattern="^(snap-[0-9a-f]+)?$")] = ""
    """A snapshot with preloaded container images starts pods minutes earlier."""
    encrypted: bool = True
    kms_key_id: LongText = ""

    RULES = (
        Rule(
            "self.snapshotId != '' || has(self.sizeGiB)",
            "give sizeGiB, snapshotId or both",
            lambda self: bool(self.snapshot_id) or self.size_gi_b is not None,
        ),
    )


class AwsRootVolume(ApiModel):
    """The root volume, whose device name the image defines. Absent fields keep the image's values."""

    size_gi_b: Annotated[int, Field(ge=1, le=65536)] | None = None
    type: Literal["gp3", "gp2", "io1", "io2", "standard"] = "gp3"
    iops: Annotated[int, Field(ge=100, le=256000)] | None = None
    throughput: Annotated[int, Field(ge=125, le=2000)] | None = None
    """MiB per second, gp3 only."""
    encrypted: bool = True
    kms_key_id: LongText = ""


class AWSNodeTemplateSpec(ApiModel):
    """The properties of machines beside those of the offering and the pool."""

    cluster: AwsCluster
    subnets: Annotated[Items[AwsSelector], Field(min_length=1, max_length=20)]
    """Machines start in the subnets of the offering's zone."""
    security_groups: Annotated[Items[AwsSelector], Field(min_length=1, max_length=20)]
    ami: AwsImage
    instance_profile: LongText
    """Name or ARN; its role needs an access entry of the cluster."""
    user_data: AwsUserData = AwsUserData()
    labels: Labels = NO_ENTRIES
    """Labels of nodes in addition to the pool's, such as those that DaemonSets of drivers select."""
    tags: Tags = NO_ENTRIES
    """Tags of machines, volumes and interfaces, in addition to those of Foreslice."""
    root_volume: AwsRootVolume | None = None
    """Absent: the image's volume, mostly 20 GiB, and encrypted if this is the account's default."""
    block_devices: Annotated[Items[AwsVolume], Field(max_length=20)] = ()
    network_interfaces: Literal["EFA", "Single"] = "EFA"
    """EFA: one on every network card of types that have EFA. Single: one interface without EFA."""
    placement_group: LongText = ""
    """The name of an existing group."""
    metadata_hop_limit: Annotated[int, Field(ge=1, le=64)] = 1
    """The hop limit of IMDSv2; with 2, pods can access the instance metadata."""
    detailed_monitoring: bool = False
    open_reservations: Literal["Use", "Avoid"] = "Use"
    """Use: on-demand launches may consume open capacity reservations, as EC2 does by default. Avoid: they do not."""
    boot_timeout: BootTimeoutText | None = None
    """The longest time from a machine's launch to its Node, for pools without a bootTimeout; from 2m to 1d."""

    RULES = (
        Rule(
            "self.userData.kind != 'Custom' || self.userData.text != ''",
            "Custom user data needs a text",
            lambda self: self.user_data.kind != "Custom" or bool(self.user_data.text),
            field="userData",
        ),
    )


class AWSGroupNodeTemplateSpec(ApiModel):
    """Existing groups; Foreslice sets their sizes and ends their machines one by one."""

    auto_scaling_groups: Annotated[Items[Text], Field(max_length=50)] = ()
    """Names. Their scaling policies must be off, and AZRebalance suspended."""
    cluster_name: LongText = ""
    node_groups: Annotated[Items[Text], Field(max_length=50)] = ()
    """Managed node groups of the cluster `clusterName`."""
    launch: Literal["Instances", "DesiredCapacity"] = "Instances"
    """Instances: LaunchInstances, which accepts a token and returns errors. DesiredCapacity: for groups that do not
    support it; errors then appear in the group's activities."""
    boot_timeout: BootTimeoutText | None = None
    """The longest time from a machine's launch to its Node, for pools without a bootTimeout; from 2m to 1d."""

    RULES = (
        Rule(
            "size(self.autoScalingGroups) + size(self.nodeGroups) > 0",
            "name at least one group in autoScalingGroups or nodeGroups",
            lambda self: bool(self.auto_scaling_groups or self.node_groups),
        ),
        Rule(
            "size(self.nodeGroups) == 0 || self.clusterName != ''",
            "nodeGroups need clusterName",
            lambda self: not self.node_groups or bool(self.cluster_name),
            field="clusterName",
        ),
    )


class AwsSubnetStatus(ApiModel):
    """A selected subnet."""

    id: LongText
    zone: Text


class AwsImageStatus(ApiModel):
    """The image that launches use."""

    id: LongText
    name: LongText = ""
    architecture: LongText = ""


class AWSNodeTemplateStatus(NodeTemplateStatus):
    """The results of names and selectors. Condition Ready names the fields to correct; UpToDate is False if the SSM
    parameter now has another image than the one that launches use."""

    endpoint: LongText = ""
    subnets: Annotated[Items[AwsSubnetStatus], Field(max_length=1000)] = ()
    security_groups: Annotated[Items[LongText], Field(max_length=1000)] = ()
    image: AwsImageStatus | None = None
    node_role: LongText = ""
    """The role of the instance profile."""
    placement_strategy: LongText = ""


class AwsGroupStatus(ApiModel):
    """A group and the machines that it starts."""

    name: LongText
    zones: Annotated[Items[Text], Field(max_length=100)] = ()
    instance_types: Annotated[Items[Text], Field(max_length=1000)] = ()
    capacity_type: LongText = ""
    max_size: Annotated[int, Field(ge=0)] = 0


class AWSGroupNodeTemplateStatus(NodeTemplateStatus):
    """The results of the names. Condition Ready describes what to correct."""

    groups: Annotated[Items[AwsGroupStatus], Field(max_length=1000)] = ()


def parse_aws_node_template(raw: object, problems: Problems | None = None) -> AWSNodeTemplateSpec | None:
    """The spec of an AWSNodeTemplate; None if it cannot be used."""
    return read_spec(AWSNodeTemplateSpec, raw, problems)[1]


def parse_aws_group_node_template(raw: object, problems: Problems | None = None) -> AWSGroupNodeTemplateSpec | None:
    """The spec of an AWSGroupNodeTemplate; None if it cannot be used."""
    return read_spec(AWSGroupNodeTemplateSpec, raw, problems)[1]
