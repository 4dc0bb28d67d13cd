"""What exists before anything is launched: region, zones, subnets, security groups, images, roles, what is sold where.

`standard()` is an account that an adapter can work in at once; tests change its tables at will.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final

from instance_catalog.files.loader import load_catalog
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

REGION: Final = "us-east-1"
ACCOUNT: Final = "123456789012"
VPC: Final = "vpc-0a1b2c3d4e5f60718"


# Types whose network card 0 takes ENA alone. Source: DescribeInstanceTypes as moto 5.2.5 ships it; for p6e-gb200 launch
# templates that others publish.
FIRST_CARD_WITHOUT_EFA: Final = frozenset({"p6-b300.48xlarge", "p6e-gb200.36xlarge"})


@dataclass
class Subnet:
    """A subnet; `addresses` is how many machines it still has room for when it is empty."""

    id: str
    zone: str
    vpc: str = VPC
    cidr: str = "10.0.0.0/20"
    addresses: int = 4091
    tags: dict[str, str] = field(default_factory=dict)
    public: bool = False


@dataclass
class SecurityGroup:
    """A security group."""

    id: str
    name: str
    vpc: str = VPC
    tags: dict[str, str] = field(default_factory=dict)


@dataclass
class Image:
    """A machine image. `architecture` is x86_64 or arm64."""

    id: str
    name: str
    architecture: str = "x86_64"
    owner: str = "602401143452"
    created: str = "2025-12-01T00:00:00.000Z"
    snapshot: str = "snap-0a1b2c3d4e5f60718"
    tags: dict[str, str] = field(default_factory=dict)


@dataclass
class Geography:
    """The tables. `zones` maps names to zone ids; `parameters` are those of Systems Manager."""

    region: str
    account: str
    zones: dict[str, str]
    catalog: Catalog
    subnets: dict[str, Subnet] = field(default_factory=dict)
    security_groups: dict[str, SecurityGroup] = field(default_factory=dict)
    images: dict[str, Image] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    profiles: set[str] = field(default_factory=set)
    placement_groups: dict[str, dict[str, str]] = field(default_factory=dict)
    snapshots: set[str] = field(default_factory=set)

    @cached_property
    def types(self) -> dict[str, InstanceType]:
        """What EC2 sells."""
        return {name: found for name, found in self.catalog.types.items() if found.cloud == "aws"}

    def architecture(self, instance_type: str) -> str | None:
        """x86_64 or arm64; None for a type that nobody sells."""
        found = self.types.get(instance_type)
        return None if found is None else {"amd64": "x86_64", "arm64": "arm64"}[found.architecture]

    def network_cards(self, instance_type: str) -> int:
        """How many network cards a type has: one for each EFA, and the first where it takes none."""
        efa = len(self.types[instance_type].cards("efa"))
        return max(efa + (instance_type in FIRST_CARD_WITHOUT_EFA), 1)

    def vcpus(self, instance_type: str) -> int:
        """For quotas, which AWS counts in vCPUs."""
        return self.types[instance_type].vcpu


@cache
def shipped_catalog() -> Catalog:
    """The types of AWS that the project's catalog has."""
    return load_catalog()


def standard(*, zones: Iterable[str] = ("a", "b", "c", "d"), catalog: Catalog | None = None) -> Geography:
    """An account in us-east-1 with a subnet in each zone, one security group, and the images that EKS publishes.

    Subnets and security group carry the tag kubernetes.io/cluster/test=owned. The SSM parameters of the EKS images for
    AL2023 (standard, nvidia, neuron) and Bottlerocket (plain, nvidia) of Kubernetes 1.34 and 1.35 exist.
    """
    names = tuple(zones)
    tags = {"kubernetes.io/cluster/test": "owned"}
    geography = Geography(
        REGION, ACCOUNT, {f"{REGION}{z}": f"use1-az{i}" for i, z in enumerate(names, 1)}, catalog or shipped_catalog()
    )
    for number, zone in enumerate(geography.zones):
        subnet = Subnet(f"subnet-{number:017x}", zone, cidr=f"10.0.{16 * number}.0/20", tags=dict(tags))
        geography.subnets[subnet.id] = subnet
    group = SecurityGroup("sg-0123456789abcdef0", "nodes", tags=dict(tags))
    geography.security_groups[group.id] = group
    for number, (parameter, name, architecture) in enumerate(_published()):
        image = Image(f"ami-{number:017x}", name, architecture)
        geography.images[image.id] = image
        geography.parameters[parameter] = image.id
    geography.profiles.add("nodes")
    geography.snapshots.add("snap-0a1b2c3d4e5f60718")
    return geography


def _published() -> Iterator[tuple[str, str, str]]:
    """The images that EKS publishes: SSM parameter, name and architecture of each."""
    for version in ("1.34", "1.35"):
        for architecture in ("x86_64", "arm64"):
            for variant in ("standard", "nvidia", *(["neuron"] if architecture == "x86_64" else [])):
                name = f"amazon-eks-node-al2023-{architecture}-{variant}-{version}-v20251201"
                path = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{architecture}/{variant}"
                yield f"{path}/recommended/image_id", name, architecture
            for suffix in ("", "-nvidia"):
                flavour = f"aws-k8s-{version}{suffix}"
                path = f"/aws/service/bottlerocket/{flavour}/{architecture}/latest/image_id"
                yield path, f"bottlerocket-{flavour}-{architecture}-v1.50.0", architecture
