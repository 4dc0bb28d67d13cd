"""The interfaces of every type with EFA against what EC2 says of its network cards."""

from __future__ import annotations

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import InstanceType
from providers.aws.node_template.network import interfaces
from providers.aws.node_template.template import Interfaces
from providers.errors import TemplateError
from tests.aws import TEMPLATE, catalog

# NetworkInfo of DescribeInstanceTypes as moto 5.2.5 ships it (instance_types.json): EfaInfo.MaximumEfaInterfaces,
# MaximumNetworkCards, and the cards whose InterfaceTypes lack efa. moto lacks dl1.24xlarge: its cards are those of
# zz_generated.vpclimits.go of karpenter-provider-aws, its interfaces the vpc.amazonaws.com/efa of Karpenter's pages.
EC2_SAYS = {
    **dict.fromkeys(
        [
            "dl2q.24xlarge",
            *(f"g4dn.{size}" for size in ("8xlarge", "12xlarge", "16xlarge", "metal")),
            *(f"g5.{size}" for size in ("8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge")),
            *(f"g6.{size}" for size in ("8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge")),
            *(f"g6e.{size}" for size in ("8xlarge", "12xlarge", "16xlarge")),
            *(f"g7.{size}" for size in ("8xlarge", "12xlarge", "24xlarge")),
            *(f"g7e.{size}" for size in ("8xlarge", "12xlarge")),
            "gr6.8xlarge",
            "inf1.24xlarge",
            "p3dn.24xlarge",
            "p5.4xlarge",
            "trn2.3xlarge",
        ],
        (1, 1, frozenset()),
    ),
    **dict.fromkeys(["g6e.24xlarge", "g7.48xlarge", "g7e.24xlarge"], (2, 2, frozenset())),
    **dict.fromkeys(
        ["dl1.24xlarge", "g6e.48xlarge", "g7e.48xlarge", "p4d.24xlarge", "p4de.24xlarge"], (4, 4, frozenset())
    ),
    **dict.fromkeys(["p6-b200.48xlarge", "trn1.32xlarge"], (8, 8, frozenset())),
    **dict.fromkeys(["p5en.48xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge"], (16, 16, frozenset())),
    **dict.fromkeys(["p5.48xlarge", "p5e.48xlarge"], (32, 32, frozenset())),
    "p6-b300.48xlarge": (16, 17, frozenset({0})),
}
WITH_EFA = sorted(name for name, found in catalog().types.items() if found.cloud == "aws" and found.cards("efa"))


def of(name: str) -> InstanceType:
    return catalog().types[name]


@pytest.mark.parametrize("name", [name for name in WITH_EFA if of(name).efa_cards is not None])
def test_ec2_takes_the_interfaces_of_every_type(name: str) -> None:
    most, cards, without_efa = EC2_SAYS[name]
    found = interfaces(of(name), TEMPLATE, ["sg-1"])
    by_card = {one["NetworkCardIndex"]: one for one in found}
    assert len(by_card) == len(found)
    assert max(by_card) < cards
    assert (by_card[0]["DeviceIndex"], by_card[0]["InterfaceType"] != "efa-only") == (0, True)
    efa = {card for card, one in by_card.items() if one["InterfaceType"] != "interface"}
    assert len(efa) == most
    assert not efa & without_efa


def test_a_type_whose_cards_are_not_known_is_refused_with_a_way_out() -> None:
    unknown = [name for name in WITH_EFA if of(name).efa_cards is None]
    assert unknown == ["p6e-gb200.36xlarge"]
    with pytest.raises(TemplateError, match=r"which network cards of p6e-gb200\.36xlarge") as caught:
        interfaces(of(unknown[0]), TEMPLATE, ["sg-1"])
    assert "networkInterfaces: Single" in caught.value.next_step
    assert len(interfaces(of(unknown[0]), replace(TEMPLATE, interfaces=Interfaces.SINGLE), ["sg-1"])) == 1
