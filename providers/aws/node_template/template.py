"""What a pool's machines look like on AWS, as frozen values: what an AWSNodeTemplate says. Checked where it is read."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Final, Protocol

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY, FrozenMap
from providers.contract import TemplateRef


class UserData(Enum):
    """Which machine configuration the image reads."""

    AL2023 = "AL2023"  # nodeadm's NodeConfig
    BOTTLEROCKET = "Bottlerocket"  # TOML settings
    CUSTOM = "Custom"  # the given text and nothing else


class Interfaces(Enum):
    """Which network interfaces a machine gets."""

    EFA = "EFA"  # one on every network card, so that all EFA devices exist
    SINGLE = "Single"  # one, without EFA


@dataclass(frozen=True, slots=True)
class Selector:
    """Subnets or security groups: one by id, or all that carry the tags ("*" admits any value)."""

    id: str = ""
    tags: FrozenMap[str, str] = EMPTY


@dataclass(frozen=True, slots=True)
class Image:
    """An AMI by id, or the one an SSM parameter names. `follow` takes the parameter's new value at each new launch;
    otherwise the first value stays until the template changes."""

    id: str = ""
    parameter: str = ""
    follow: bool = False


ROOT: Final = ""


@dataclass(frozen=True, slots=True)
class Volume:
    """An EBS volume; always deleted with the machine. None leaves it to the snapshot, the image or EC2. The device ROOT
    stands for the root volume, whose name the image knows."""

    device: str
    gibibytes: int | None = None
    kind: str = "gp3"
    iops: int | None = None
    throughput: int | None = None
    snapshot: str = ""
    encrypted: bool = True
    key: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a machine finds its cluster. What is "" is asked of EKS by the name."""

    name: str = ""
    endpoint: str = ""
    certificate_authority: str = ""  # base64
    service_cidr: str = ""

    @property
    def ipv6(self) -> bool:
        """Whether pods and services have IPv6 addresses: EKS clusters have one family."""
        return ":" in self.service_cidr


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """Everything about a machine that neither the offering nor the pool says."""

    name: str
    cluster: Cluster
    subnets: tuple[Selector, ...]
    security_groups: tuple[Selector, ...]
    image: Image
    instance_profile: str  # name or ARN
    user_data: UserData = UserData.AL2023
    user_data_text: str = ""
    labels: FrozenMap[str, str] = EMPTY
    tags: FrozenMap[str, str] = EMPTY
    root: Volume | None = None
    volumes: tuple[Volume, ...] = ()
    interfaces: Interfaces = Interfaces.EFA
    placement_group: str = ""
    hop_limit: int = 1
    monitoring: bool = False
    use_open_reservations: bool = True
    boot_timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class GroupTemplate:
    """Groups that exist already: auto-scaling groups by name, and managed node groups of an EKS cluster.

    `by_instances`: LaunchInstances, which takes a token; otherwise by desired capacity.
    """

    name: str
    groups: tuple[str, ...] = ()
    cluster: str = ""
    node_groups: tuple[str, ...] = ()
    by_instances: bool = True
    boot_timeout: timedelta | None = None


class GroupTemplates(Protocol):
    def template(self, reference: TemplateRef) -> GroupTemplate:
        """The template of a pool. Raises TemplateError, with the next step, for one that cannot be used."""

    def references(self) -> tuple[TemplateRef, ...]:
        """All templates of this kind, by name."""


class Templates(Protocol):
    def template(self, reference: TemplateRef) -> NodeTemplate:
        """The template of a pool. Raises TemplateError, with the next step, for one that cannot be used."""

    def references(self) -> tuple[TemplateRef, ...]:
        """All templates of this kind, by name."""
