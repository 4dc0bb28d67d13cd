"""The same cluster when its machines come from Auto Scaling groups: one for each thing that a pool may ask for."""

from __future__ import annotations

import base64
import json
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Final

from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog
from providers.aws.node_groups.provider import AwsNodeGroups
from providers.aws.node_template.template import GroupTemplate
from providers.aws.provider import Account
from providers.contract import Provider
from tests.aws import FakeAws, WrittenGroups
from tests.fakes.ec2 import FakeEc2
from tests.fakes.ec2.groups import Group
from tests.fakes.ec2.templates import LaunchTemplate
from tests.faults.world import AwsSimulation

TYPES: Final = ("g6.xlarge", "g6e.xlarge")
ZONES: Final = ("us-east-1a", "us-east-1b")
MARKETS: Final = ("on-demand", "spot")
ACCELERATORS: Final = {"g6.xlarge": "nvidia-l4", "g6e.xlarge": "nvidia-l40s", "p5.48xlarge": "nvidia-h100"}


class GroupSimulation(AwsSimulation):
    """Machines by LaunchInstances."""

    kind: ClassVar[str] = "AWSGroupNodeTemplate"
    by_instances: ClassVar[bool] = True

    def adapter(self, catalog: Catalog) -> Provider:
        """The adapter, with empty memory."""
        return AwsNodeGroups(Account(FakeAws(), self.ours, catalog, self._uid), self.templates)

    @cached_property
    def templates(self) -> WrittenGroups:
        """The node template, which people may edit."""
        return WrittenGroups(GroupTemplate("gpu", tuple(self.groups), by_instances=self.by_instances))

    def edit(self, number: int) -> None:
        """One of the groups leaves the template, or comes back to it; every other time it launches in another way."""
        found, name = self.templates.found, self.groups[number % len(self.groups)]
        left = tuple(one for one in self.groups if (one in found.groups) is not (one == name))
        self.templates.found = replace(found, groups=left, by_instances=found.by_instances is not bool(number % 2))

    def mend(self) -> None:
        self.templates.found = replace(self.templates.found, groups=tuple(self.groups), by_instances=self.by_instances)

    @cached_property
    def groups(self) -> list[str]:
        """Their names."""
        return [self._group(*kind) for kind in product(TYPES, ZONES, MARKETS)]

    def add_block_group(self, reservation: str) -> None:
        """A group for the machines of a CapacityBlock named block."""
        target = {"CapacityReservationTarget": {"CapacityReservationId": reservation}}
        more = {"CapacityReservationSpecification": target}
        self.groups.append(self._group("p5.48xlarge", ZONES[0], "capacity-block", **more))
        self.mend()

    def _group(self, instance_type: str, zone: str, market: str, **more: Any) -> str:
        """A group as somebody made it for a pool named gpu."""
        name = f"{instance_type}-{zone}-{market}"
        add_group(self.fake, name, instance_type, zone, market, **more)
        return name


class SizedGroupSimulation(GroupSimulation):
    """Machines by desired capacity."""

    by_instances: ClassVar[bool] = False


def add_group(fake: FakeEc2, name: str, instance_type: str, zone: str, market: str, **more: Any) -> Group:
    """A group in all subnets of a zone, whose members register with what the pool gpu expects. `more`: of its launch
    template."""
    geography = fake.account.geography
    image = next(image.id for image in geography.images.values() if image.architecture == "x86_64")
    data = {"ImageId": image, "InstanceType": instance_type, "UserData": _user_data(instance_type, market), **more}
    if market != "on-demand":
        data["InstanceMarketOptions"] = {"MarketType": market}
    template = LaunchTemplate(fake.account.new_id("lt"), name, fake.account.now)
    template.versions[1] = (data, "", fake.account.now)
    fake.account.templates[template.id] = template
    subnets = [subnet.id for subnet in geography.subnets.values() if subnet.zone == zone]
    return fake.groups.add(name, {"LaunchTemplateName": name, "Version": "1"}, subnets)


def _user_data(instance_type: str, market: str) -> str:
    """What nodeadm reads, as far as it says with which labels a member registers."""
    own = {
        labels.POOL: "gpu",
        labels.CAPACITY_TYPE: market,
        labels.ACCELERATOR: ACCELERATORS[instance_type],
        labels.CLOUD: "aws",
        "nvidia.com/gpu.present": "true",
    }
    kubelet: dict[str, Any] = {}
    if market == "capacity-block":
        own[labels.CAPACITY_BLOCK] = "block"
        taint = {"key": labels.CAPACITY_BLOCK, "value": "block", "effect": "NoSchedule"}
        kubelet["config"] = {"registerWithTaints": [taint]}
    kubelet["flags"] = ["--node-labels=" + ",".join(f"{key}={value}" for key, value in own.items())]
    config = json.dumps({"spec": {"kubelet": kubelet}}, indent=1)
    return base64.b64encode(f"Content-Type: application/node.eks.aws\n\n{config}\n".encode()).decode()
