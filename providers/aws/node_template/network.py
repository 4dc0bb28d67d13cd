"""The network of machines: the subnets and security groups that a template selects, and a machine's interfaces.

A request names one subnet in each zone, because EC2 refuses a fleet that names an instance type twice in one zone
("duplicate instance pools"). Private subnets are preferred, because a machine with several interfaces gets no public
address; then the one with the most free addresses by powers of two, then by the request's token, so that a repetition
almost always asks for the same one. A subnet without free addresses is not used for a while.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from instance_catalog.types.instance_type import ANY_ZONE, InstanceType
from providers.aws.errors import translated
from providers.aws.node_template.template import Interfaces, NodeTemplate, Selector
from providers.aws.session import Aws
from providers.contract import Clock
from providers.errors import NoSubnetError, TemplateError
from providers.ttl_cache import TtlCache

# Subnets and groups change by hand, rarely.
_LIFETIME: Final = timedelta(minutes=5)
# How long a subnet without a free address is skipped while its zone has another.
_FULL_FOR: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet and how many addresses it has left. `public`: it gives machines public addresses where EC2 can."""

    id: str
    zone: str
    free: int
    public: bool = False


class Network:
    """Resolves selectors."""

    def __init__(self, aws: Aws, clock: Clock) -> None:
        self._aws = aws
        self._clock = clock
        self._full_until: dict[str, float] = {}  # by id of a subnet, by the monotonic clock
        self._subnets: TtlCache[tuple[Subnet, ...]] = TtlCache(clock, _LIFETIME)
        self._groups: TtlCache[tuple[str, ...]] = TtlCache(clock, _LIFETIME)

    def subnets(self, template: NodeTemplate) -> tuple[Subnet, ...]:
        """All subnets that the template selects, by id. Raises TemplateError if a selector finds none."""
        return self._subnets.get(template.subnets, lambda: self._read_subnets(template))

    def subnets_in(self, template: NodeTemplate, zone: str) -> tuple[Subnet, ...]:
        """The subnets of one zone, or of all for ANY_ZONE. Raises NoSubnetError if there is none."""
        found = tuple(subnet for subnet in self.subnets(template) if zone in (subnet.zone, ANY_ZONE))
        if not found:
            zones = ", ".join(sorted({subnet.zone for subnet in self.subnets(template)}))
            raise NoSubnetError(
                f"AWSNodeTemplate {template.name} selects no subnet in {zone} (only in {zones})",
                next_step=f"create a subnet in {zone} that spec.subnets selects, or keep the pool out of that zone",
            )
        return found

    def subnets_for(self, template: NodeTemplate, zone: str, token: str) -> tuple[Subnet, ...]:
        """One subnet in each zone that `zone` admits, for the request with this token. Raises NoSubnetError."""
        now = self._clock.monotonic()
        best: dict[str, Subnet] = {}
        for subnet in self.subnets_in(template, zone):
            held = best.get(subnet.zone)
            if held is None or self._preference(subnet, token, now) > self._preference(held, token, now):
                best[subnet.zone] = subnet
        return tuple(best[name] for name in sorted(best))

    def subnet_for(self, template: NodeTemplate, zone: str, token: str) -> Subnet:
        """The one subnet of a request that takes no other; ANY_ZONE is spread over zones by token."""
        found = self.subnets_for(template, zone, token)
        return found[_number(token) % len(found)]

    def exhausted(self, template: NodeTemplate, subnets: Iterable[str]) -> None:
        """Records that EC2 found no free address in these subnets: others of their zones are preferred for a while."""
        full = dict.fromkeys(subnets, self._clock.monotonic() + _FULL_FOR.total_seconds())
        if full:
            self._full_until.update(full)
            self._subnets.forget(template.subnets)

    def _preference(self, subnet: Subnet, token: str, now: float) -> tuple[bool, bool, int, int]:
        rested = self._full_until.get(subnet.id, now) <= now
        return rested, not subnet.public, subnet.free.bit_length(), _number(f"{token} {subnet.id}")

    def security_groups(self, template: NodeTemplate) -> tuple[str, ...]:
        """The ids of all groups that the template selects, sorted. Raises TemplateError if a selector finds none."""
        return self._groups.get(template.security_groups, lambda: self._read_groups(template))

    def forget(self, template: NodeTemplate) -> None:
        """Makes the next call read subnets and groups again, after a selected one was deleted."""
        self._subnets.forget(template.subnets)
        self._groups.forget(template.security_groups)

    def _read_subnets(self, template: NodeTemplate) -> tuple[Subnet, ...]:
        def read(filters: list[dict[str, Any]]) -> dict[str, Subnet]:
            with translated("DescribeSubnets"):
                pages = list(self._aws.ec2.get_paginator("describe_subnets").paginate(Filters=filters))
            return {
                found["SubnetId"]: Subnet(
                    found["SubnetId"],
                    found["AvailabilityZone"],
                    found["AvailableIpAddressCount"],
                    public=bool(found.get("MapPublicIpOnLaunch")),
                )
                for page in pages
                for found in page["Subnets"]
            }

        found = _selected(template.subnets, "subnet", "spec.subnets", self._place(template), read)
        return tuple(found[key] for key in sorted(found))

    def _read_groups(self, template: NodeTemplate) -> tuple[str, ...]:
        def read(filters: list[dict[str, Any]]) -> dict[str, str]:
            with translated("DescribeSecurityGroups"):
                pages = list(self._aws.ec2.get_paginator("describe_security_groups").paginate(Filters=filters))
            return {found["GroupId"]: found["GroupId"] for page in pages for found in page["SecurityGroups"]}

        place = self._place(template)
        return tuple(sorted(_selected(template.security_groups, "group", "spec.securityGroups", place, read)))

    def _place(self, template: NodeTemplate) -> str:
        return f"AWSNodeTemplate {template.name} in region {self._aws.region}"


def _number(text: str) -> int:
    """A number that is the same for the same text in every process, and spread evenly."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def interfaces(
    instance_type: InstanceType | None,
    template: NodeTemplate,
    groups: Iterable[str],
    *,
    subnet: str = "",
    ipv6: bool = False,
) -> list[dict[str, Any]]:
    """The interfaces of a machine, as EC2 takes them in launches and launch templates.

    With EFA the first card has an EFA interface that also has an IP address, or a plain one if the card has no EFA, and
    every other card an EFA-only interface, which uses no address. A type that the catalog does not know gets one plain
    interface. In an IPv6 cluster the first interface has an IPv6 address. Raises TemplateError if the catalog does not
    know which cards of a type take EFA. Source: EC2 user guide, "Maximize network bandwidth on Amazon EC2 instances
    with multiple network cards".
    """
    place = {"SubnetId": subnet} if subnet else {}
    return [
        {
            "NetworkCardIndex": card,
            "DeviceIndex": device,
            "InterfaceType": kind,
            "Groups": list(groups),
            "DeleteOnTermination": True,
            **place,
            # The machine's own address: the VPC CNI takes those of pods from a prefix that it asks for itself.
            **({"Ipv6AddressCount": 1, "PrimaryIpv6": True} if ipv6 and (card, device) == (0, 0) else {}),
        }
        for card, device, kind in _layout(instance_type, template)
    ]


def _layout(instance_type: InstanceType | None, template: NodeTemplate) -> list[tuple[int, int, str]]:
    """Network card, device and kind of each interface."""
    plain = [(0, 0, "interface")]
    if instance_type is None or not instance_type.cards("efa") or template.interfaces is not Interfaces.EFA:
        return plain
    cards = instance_type.efa_cards
    if cards is None:
        raise TemplateError(
            f"which network cards of {instance_type.name} take EFA interfaces is not known",
            code="UnknownNetworkCards",
            next_step=(
                f"set efaCards of {instance_type.name} in a catalog file from `aws ec2 describe-instance-types"
                f" --instance-types {instance_type.name}`, or set spec.networkInterfaces: Single in"
                f" AWSNodeTemplate {template.name}"
            ),
        )
    if cards[0] != 0:  # the cards beside the primary one are free for EFA alone, so each takes it as its first device
        return plain + [(card, 0, "efa-only") for card in cards]
    return [(0, 0, "efa"), *((card, 1, "efa-only") for card in cards[1:])]


def _selected(
    selectors: Iterable[Selector],
    prefix: str,
    field: str,
    place: str,
    read: Callable[[list[dict[str, Any]]], dict[str, Any]],
) -> dict[str, Any]:
    """The resources that the selectors match together. Raises TemplateError if one matches nothing."""
    found: dict[str, Any] = {}
    for index, selector in enumerate(selectors):
        matched = read(_filters(selector, f"{prefix}-id"))
        if not matched:
            what = selector.id or ", ".join(f"{key}={value}" for key, value in selector.tags.items())
            raise TemplateError(
                f"{place}: {field}[{index}] ({what}) finds nothing",
                code="NothingSelected",
                next_step=f"correct {field} or the region, or tag what it should find",
            )
        found.update(matched)
    return found


def _filters(selector: Selector, id_filter: str) -> list[dict[str, Any]]:
    if selector.id:
        return [{"Name": id_filter, "Values": [selector.id]}]
    return [{"Name": f"tag:{key}", "Values": [value]} for key, value in sorted(selector.tags.items())]
