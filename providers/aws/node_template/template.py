"""The content of an AWSNodeTemplate as frozen values. The reader checks it."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Final, Protocol

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY, FrozenMap
from providers.contract import TemplateRef


class UserData(Enum):
    """The machine configuration that the image reads."""

    AL2023 = "AL2023"  # nodeadm's NodeConfig
    BOTTLEROCKET = "Bottlerocket"  # TOML settings
    CUSTOM = "Custom"  # the given text and nothing else


class Interfaces(Enum):
    """The network interfaces that a machine gets."""

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
    """An EBS volume; always deleted with the machine. None: the snapshot, the image or EC2 decides. The device ROOT is
    the root volume, whose name the image defines."""

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
    """The cluster that a machine joins. EKS is asked by the name for fields that are ""."""

    name: str = ""
    endpoint: str = ""
    certificate_authority: str = ""  # base64
    service_cidr: str = ""

    @property
    def ipv6(self) -> bool:
        """True if pods and services have IPv6 addresses: EKS clusters have one family."""
        return ":" in self.service_cidr


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """The properties of a machine that neither the offering nor the pool defines."""

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
