"""Where machines are attached: the subnets and security groups a template selects, and a machine's interfaces.

The subnets of a zone are all offered in a fleet request; a request that takes one subnet gets it by its token, so that
a repetition asks for the same one whatever has become of the free addresses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from instance_catalog.instance_type import ANY_ZONE, InstanceType
from providers.aws.errors import translated
from providers.aws.remembered import Remembered
from providers.aws.session import Aws
from providers.aws.template import Interfaces, NodeTemplate, Selector
from providers.contract import Clock
from providers.errors import NoSubnetError, TemplateError

# Subnets and groups change by hand, rarely.
_LIFETIME: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet and how many addresses it has left."""

    id: str
    zone: str
    free: int


class Network:
    """Resolves selectors."""

    def __init__(self, aws: Aws, clock: Clock) -> None:
        self._aws = aws
        self._subnets: Remembered[tuple[Subnet, ...]] = Remembered(clock, _LIFETIME)
        self._groups: Remembered[tuple[str, ...]] = Remembered(clock, _LIFETIME)

    def subnets(self, template: NodeTemplate) -> tuple[Subnet, ...]:
        """All subnets the template selects, by id. Raises TemplateError when a selector finds none."""
        return self._subnets.get(template.subnets, lambda: self._read_subnets(template))

    def subnets_in(self, template: NodeTemplate, zone: str) -> tuple[Subnet, ...]:
        """Those of one zone, or of all for ANY_ZONE. Raises NoSubnetError when there is none."""
        found = tuple(subnet for subnet in self.subnets(template) if zone in (subnet.zone, ANY_ZONE))
        if not found:
            zones = ", ".join(sorted({subnet.zone for subnet in self.subnets(template)}))
            raise NoSubnetError(
                f"AWSNodeTemplate {template.name} selects no subnet in {zone} (only in {zones})",
                next_step=f"create a subnet in {zone} that spec.subnets selects, or keep the pool out of that zone",
            )
        return found

    def security_groups(self, template: NodeTemplate) -> tuple[str, ...]:
        """The ids of all groups the template selects, sorted. Raises TemplateError when a selector finds none."""
        return self._groups.get(template.security_groups, lambda: self._read_groups(template))

    def forget(self, template: NodeTemplate) -> None:
        """Read again: something that was selected is gone."""
        self._subnets.forget(template.subnets)
        self._groups.forget(template.security_groups)

    def _read_subnets(self, template: NodeTemplate) -> tuple[Subnet, ...]:
        def read(filters: list[dict[str, Any]]) -> dict[str, Subnet]:
            with translated("DescribeSubnets"):
                pages = list(self._aws.ec2.get_paginator("describe_subnets").paginate(Filters=filters))
            return {
                found["SubnetId"]: Subnet(
                    found["SubnetId"], found["AvailabilityZone"], found["AvailableIpAddressCount"]
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


def subnet_of(subnets: tuple[Subnet, ...], token: str) -> Subnet:
    """The one subnet of a request, by its token: the same for every repetition, spread over requests."""
    digest = hashlib.sha256(token.encode()).digest()
    return subnets[int.from_bytes(digest[:4], "big") % len(subnets)]


def interfaces(
    instance_type: InstanceType | None, template: NodeTemplate, groups: Iterable[str], *, subnet: str = ""
) -> list[dict[str, Any]]:
    """The interfaces of a machine, as EC2 takes them in launches and launch templates.

    With EFA the first card carries an EFA interface that also has an IP address, and every other card one that speaks
    only EFA and so uses up no address. A type that the catalog does not know gets one plain interface.
    """
    efa = len(instance_type.cards("efa")) if instance_type else 0
    kinds = ["efa", *["efa-only"] * (efa - 1)] if efa and template.interfaces is Interfaces.EFA else ["interface"]
    place = {"SubnetId": subnet} if subnet else {}
    return [
        {
            "NetworkCardIndex": card,
            "DeviceIndex": 0 if card == 0 else 1,
            "InterfaceType": kind,
            "Groups": list(groups),
            "DeleteOnTermination": True,
            **place,
        }
        for card, kind in enumerate(kinds)
    ]


def _selected(
    selectors: Iterable[Selector],
    prefix: str,
    field: str,
    place: str,
    read: Callable[[list[dict[str, Any]]], dict[str, Any]],
) -> dict[str, Any]:
    """What the selectors find together; each must find something."""
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
