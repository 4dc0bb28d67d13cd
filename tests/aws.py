"""The AWS adapter on the fake EC2: real clients, one template, and a catalog. For every suite that needs both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

from autoscaler.clock import VirtualClock
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.aws.node_template.template import Cluster, GroupTemplate, Image, NodeTemplate, Selector
from providers.aws.provider import Account, AwsProvider
from providers.aws.session import Aws
from providers.contract import TAG_BATCH, TAG_CLUSTER, TAG_POOL, Clock, LaunchRequest, OfferingKey, TemplateRef
from providers.errors import TemplateError
from tests.fakes.ec2 import PROMPT, Behaviour, FakeEc2, Wire

CLUSTER = "11111111-2222-3333-4444-555555555555"
PARAMETER = "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
OWNED: FrozenMap[str, str] = FrozenMap({"kubernetes.io/cluster/test": "owned"})
TEMPLATE = NodeTemplate(
    name="gpu",
    cluster=Cluster("test", "https://example.eks.amazonaws.com", "Q0E=", "10.100.0.0/16"),
    subnets=(Selector(tags=OWNED),),
    security_groups=(Selector(tags=OWNED),),
    image=Image(parameter=PARAMETER),
    instance_profile="nodes",
)
TEMPLATE_REF = TemplateRef("AWSNodeTemplate", "gpu")
P5 = OfferingKey("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND)
P4 = OfferingKey("p4d.24xlarge", "us-east-1a", CapacityType.ON_DEMAND)


@cache
def catalog() -> Catalog:
    """The shipped catalog."""
    return load_catalog()


class FakeAws(Aws):
    """Clients as production makes them, whose requests end in the fake of the Rig that was made last.

    Making a client takes longer than most tests do, so there is one of each for the whole run.
    """

    def __init__(self) -> None:
        super().__init__("us-east-1", aws_access_key_id="AKIAFAKE", aws_secret_access_key="fake")

    def client(self, service: str, region: str = "") -> Any:
        if service not in _clients():
            _clients()[service] = wire().attach(super().client(service, region))
        return _clients()[service]


@cache
def wire() -> Wire:
    """Where all clients end."""
    return Wire(FakeEc2(VirtualClock()))


@cache
def _clients() -> dict[str, Any]:
    return {}


@dataclass
class Written:
    """Templates as a test writes them."""

    templates: dict[str, NodeTemplate] = field(default_factory=lambda: {"gpu": TEMPLATE})

    def template(self, reference: TemplateRef) -> NodeTemplate:
        if reference.name not in self.templates:
            raise TemplateError(f"there is no AWSNodeTemplate {reference.name}")
        return self.templates[reference.name]

    def references(self) -> tuple[TemplateRef, ...]:
        return tuple(TemplateRef("AWSNodeTemplate", name, 1) for name in self.templates)


@dataclass
class WrittenGroups:
    """The one group template there is, as a test writes it."""

    found: GroupTemplate

    def template(self, reference: TemplateRef) -> GroupTemplate:
        return self.found

    def references(self) -> tuple[TemplateRef, ...]:
        return (TemplateRef("AWSGroupNodeTemplate", self.found.name),)


@dataclass
class Rig:
    """A fake account and what the adapter is made of. `restart` makes the adapter anew, with nothing in memory."""

    behaviour: Behaviour = PROMPT
    clock: VirtualClock = field(default_factory=VirtualClock)
    ours: Clock | None = None  # the adapter's clock, where it differs from EC2's
    templates: Written = field(default_factory=Written)

    def __post_init__(self) -> None:
        self.fake = FakeEc2(self.clock, behaviour=self.behaviour)
        wire().fake = self.fake
        self.aws = FakeAws()
        self.restart()

    def restart(self) -> None:
        account = Account(self.aws, self.ours or self.clock, catalog(), CLUSTER)
        self.provider = AwsProvider(account, self.templates)

    def write(self, **changes: Any) -> None:
        """Change the template."""
        self.templates.templates["gpu"] = replace(self.templates.templates["gpu"], **changes)

    def settle(self) -> None:
        b = self.behaviour
        self.clock.advance(b.pending + b.shutting_down + b.visibility + b.release + b.counting + timedelta(minutes=6))


def request(
    *nodes: str,
    batch: str = "b1",
    offerings: tuple[OfferingKey, ...] = (P5,),
    minimum: int = 1,
    **more: Any,
) -> LaunchRequest:
    """A launch from the template gpu."""
    tags: Mapping[str, str] = {TAG_CLUSTER: CLUSTER, TAG_POOL: "gpu", TAG_BATCH: batch}
    return LaunchRequest(
        token=f"token-{batch}",
        nodes=nodes or (f"{batch}-0",),
        offerings=offerings,
        tags=FrozenMap(tags),
        minimum=minimum,
        template=TEMPLATE_REF,
        **more,
    )


def in_reservation(rig: Rig, *, interruptible: bool = False, count: int = 2) -> OfferingKey:
    """An offering of a reservation that has begun."""
    holding = rig.fake.account.reserve("p5.48xlarge", "us-east-1a", count, interruptible=interruptible)
    return replace(P5, capacity_type=CapacityType.RESERVED, reservation=holding.id)


def running(rig: Rig) -> list[Any]:
    """The machines that run and cost money, as the fake keeps them."""
    return rig.fake.account.alive()
