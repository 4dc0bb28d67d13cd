"""From launch parameters and launch templates to an Order, refusing what EC2 refuses; and from an Order to machines."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.geography import FIRST_CARD_WITHOUT_EFA, Subnet
from tests.fakes.ec2.holdings import Holding
from tests.fakes.ec2.machines import Machine, Order
from tests.fakes.ec2.selection import tags_for
from tests.fakes.ec2.templates import LaunchTemplate

_USER_DATA_BYTES: Final = 16384
# A place for machines: the reservation they run in ("" for none) and how many fit.
Places = list[tuple[str, int]]


def template_of(account: Account, specification: Mapping[str, Any]) -> LaunchTemplate:
    """The launch template that an id or a name means."""
    asked, name = specification.get("LaunchTemplateId"), specification.get("LaunchTemplateName")
    if bool(asked) == bool(name):
        raise ApiError("InvalidParameterCombination", "Specify either the ID or the name of a launch template.")
    for template in account.templates.values():
        if asked == template.id or name == template.name:
            return template
    if asked:
        text = f"The specified launch template, with template ID {asked}, does not exist."
        raise ApiError("InvalidLaunchTemplateId.NotFound", text)
    text = f"The specified launch template, with template name {name}, does not exist."
    raise ApiError("InvalidLaunchTemplateName.NotFoundException", text)


def merged(account: Account, params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Launch parameters on top of those of their launch template, with the tags of both; and the tags AWS adds."""
    given = dict(params)
    specification = given.pop("LaunchTemplate", None)
    if specification is None:
        return given, {}
    template = template_of(account, specification)
    _check_trouble(account)
    data = dict(template.data(specification.get("Version", "")))
    tags = [*data.get("TagSpecifications", ()), *given.get("TagSpecifications", ())]
    number = str(template.version(specification.get("Version", "")))
    own = {"aws:ec2launchtemplate:id": template.id, "aws:ec2launchtemplate:version": number}
    return data | given | {"TagSpecifications": tags}, own


def _check_trouble(account: Account) -> None:
    if account.template_trouble is not None and account.now < account.template_trouble[1]:
        raise ApiError(account.template_trouble[0], "what the launch template names cannot be used")


def order_of(account: Account, launch: Mapping[str, Any], own_tags: Mapping[str, str]) -> Order:
    """What is asked for; `own_tags` are AWS's. Raises the configuration errors that EC2 finds before it seeks room."""
    geography = account.geography
    if "ImageId" not in launch:
        raise ApiError("MissingParameter", "The request must contain the parameter ImageId")
    image = str(launch["ImageId"])
    if image not in geography.images:
        raise ApiError("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
    subnet = _subnet(account, launch)
    _check_groups(account, launch, subnet)
    _check_details(account, launch)
    target = launch.get("CapacityReservationSpecification", {})
    order = Order(
        instance_type=str(launch.get("InstanceType", "m1.small")),
        subnet=subnet.id,
        zone=subnet.zone,
        image=image,
        market=str(launch.get("InstanceMarketOptions", {}).get("MarketType", "on-demand")),
        reservation=str(target.get("CapacityReservationTarget", {}).get("CapacityReservationId", "")),
        preference=str(target.get("CapacityReservationPreference", "open")),
        tags=tags_for("instance", launch.get("TagSpecifications", ())) | dict(own_tags),
        launch=dict(launch),
    )
    account.stock.check(order)
    _check_cards(account, order)
    return order


def _subnet(account: Account, launch: Mapping[str, Any]) -> Subnet:
    interfaces = launch.get("NetworkInterfaces", ())
    if interfaces and ("SubnetId" in launch or "SecurityGroupIds" in launch):
        text = "Network interfaces and an instance-level subnet ID may not be specified on the same request"
        raise ApiError("InvalidParameterCombination", text)
    asked = launch.get("SubnetId") or next((i["SubnetId"] for i in interfaces if "SubnetId" in i), None)
    subnets = account.geography.subnets
    zone = launch.get("Placement", {}).get("AvailabilityZone")
    if asked is None:
        found = [s for s in subnets.values() if zone in (None, s.zone)]
        if not found:
            raise ApiError("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
        return found[0]
    if asked not in subnets:
        raise ApiError("InvalidSubnetID.NotFound", f"The subnet ID '{asked}' does not exist")
    if zone not in (None, subnets[asked].zone):
        raise ApiError("InvalidParameterValue", f"The subnet {asked} is not in the Availability Zone {zone}")
    return subnets[asked]


def _check_groups(account: Account, launch: Mapping[str, Any], subnet: Subnet) -> None:
    interfaces = launch.get("NetworkInterfaces", ())
    asked = [*launch.get("SecurityGroupIds", ()), *(g for i in interfaces for g in i.get("Groups", ()))]
    groups = account.geography.security_groups
    for group in asked:
        if group not in groups:
            raise ApiError("InvalidGroup.NotFound", f"The security group '{group}' does not exist")
        if groups[group].vpc != subnet.vpc:
            text = f"Security group {group} and subnet {subnet.id} belong to different networks."
            raise ApiError("InvalidParameter", text)


def _check_details(account: Account, launch: Mapping[str, Any]) -> None:
    geography = account.geography
    profile = launch.get("IamInstanceProfile", {})
    name = profile.get("Name") or profile.get("Arn", "").rpartition("/")[2]
    if profile and name not in geography.profiles:
        text = f"Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
        raise ApiError("InvalidParameterValue", text)
    group = launch.get("Placement", {}).get("GroupName")
    if group and group not in geography.placement_groups:
        raise ApiError("InvalidPlacementGroup.Unknown", f"The Placement Group '{group}' is unknown.")
    for device in launch.get("BlockDeviceMappings", ()):
        snapshot = device.get("Ebs", {}).get("SnapshotId")
        if snapshot and snapshot not in geography.snapshots:
            raise ApiError("InvalidSnapshot.NotFound", f"The snapshot '{snapshot}' does not exist.")
    _check_user_data(launch.get("UserData", ""))


def _check_user_data(text: str) -> None:
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ApiError("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from error
    if len(data) > _USER_DATA_BYTES:
        raise ApiError("InvalidParameterValue", f"User data is limited to {_USER_DATA_BYTES} bytes")


def _check_cards(account: Account, order: Order) -> None:
    """Interfaces go to network cards the type has, one device 0 on card 0, EFAs only where the type has them."""
    interfaces = order.launch.get("NetworkInterfaces", ())
    if not interfaces:
        return
    seats = [(i.get("NetworkCardIndex", 0), i.get("DeviceIndex", 0)) for i in interfaces]
    cards = account.geography.network_cards(order.instance_type)
    if len(set(seats)) != len(seats) or (0, 0) not in seats:
        raise ApiError(
            "InvalidParameterValue", "Each network interface requires its own device index and network card."
        )
    if max(card for card, _ in seats) >= cards:
        text = f"Network card index {max(seats)[0]} exceeds the limit for {order.instance_type}, which has {cards}."
        raise ApiError("InvalidParameterValue", text)
    efa = [i.get("NetworkCardIndex", 0) for i in interfaces if str(i.get("InterfaceType", "")).startswith("efa")]
    if len(set(efa)) != len(efa) or (0 in efa and order.instance_type in FIRST_CARD_WITHOUT_EFA):
        text = f"A network card of {order.instance_type} takes no EFA interface, or no second one."
        raise ApiError("InvalidParameterCombination", text)
    primary = next(i for i, seat in zip(interfaces, seats, strict=True) if seat == (0, 0))
    if primary.get("InterfaceType") == "efa-only":
        raise ApiError("InvalidParameterCombination", "An EFA-only interface cannot be the primary one.")
    if efa and not account.geography.types[order.instance_type].cards("efa"):
        text = f"EFA interfaces are not supported on {order.instance_type}"
        raise ApiError("InvalidParameterCombination", text)
    if len(interfaces) > 1 and any(i.get("AssociatePublicIpAddress") for i in interfaces):
        text = "The associatePublicIPAddress parameter cannot be specified when launching with multiple interfaces."
        raise ApiError("InvalidParameterCombination", text)


# --- capacity ------------------------------------------------------------------------------------------------------


def places_for(account: Account, order: Order) -> Places:
    """Where machines of an order can run now. Raises why there is no room at all."""
    places = _reserved(account, order)
    if places is None:
        places = [] if order.market != "on-demand" or order.preference == "none" else _open(account, order)
        if order.preference != "capacity-reservations-only":
            machines = account.machines.values()
            places.append(("", account.stock.free(order, machines, account.now, account.behaviour)))
        if not any(room for _, room in places):
            raise account.stock.shortage_of(order)
    return [(reservation, room) for reservation, room in _within_subnet(account, order, places) if room]


def _open(account: Account, order: Order) -> Places:
    return [(h.id, account.free_in(h)) for h in account.open_holdings(order.instance_type, order.zone)]


def _reserved(account: Account, order: Order) -> Places | None:
    """The reservation that an order names; None when it names none."""
    if not order.reservation:
        if order.market in ("capacity-block", "interruptible-capacity-reservation"):
            text = f"The market type {order.market} requires a target Capacity Reservation."
            raise ApiError("InvalidParameterCombination", text)
        return None
    holding = account.holdings.get(order.reservation)
    if holding is None:
        text = f"The capacity reservation ID '{order.reservation}' does not exist"
        raise ApiError("InvalidCapacityReservationId.NotFound", text)
    if order.market != market_of(holding):
        text = f"The market type {order.market} does not fit the Capacity Reservation {holding.id}."
        raise ApiError("InvalidParameterCombination", text)
    if (holding.instance_type, holding.zone) != (order.instance_type, order.zone):
        text = f"The instance type or Availability Zone does not match those of Capacity Reservation {holding.id}."
        raise ApiError("InvalidParameterCombination", text)
    room = account.free_in(holding)
    if not room:
        text = f"The requested reservation {holding.id} does not have sufficient compatible and available capacity."
        raise ApiError("ReservationCapacityExceeded", text)
    return [(holding.id, room)]


def market_of(holding: Holding) -> str:
    """The market type that a launch into a reservation must name."""
    if holding.block:
        return "capacity-block"
    return "interruptible-capacity-reservation" if holding.interruptible else "on-demand"


def _within_subnet(account: Account, order: Order, places: Places) -> Places:
    subnet = account.geography.subnets[order.subnet]
    left = subnet.addresses - sum(
        m.order.subnet == subnet.id for m in account.machines.values() if m.alive(account.now)
    )
    if left <= 0:
        text = (
            f"There are not enough free addresses in subnet '{subnet.id}' to satisfy the requested number of instances."
        )
        raise ApiError("InsufficientFreeAddressesInSubnet", text)
    found: Places = []
    for reservation, room in places:
        found.append((reservation, min(room, left)))
        left -= found[-1][1]
    return found


def start(
    account: Account, order: Order, places: Iterable[tuple[str, int]], count: int, *, token: str
) -> list[Machine]:
    """Start `count` machines in the places, first come first served."""
    launch = account.new_id("r")
    machines: list[Machine] = []
    for reservation, room in places:
        for _ in range(min(room, count - len(machines))):
            index = account.number("machine")
            machine = Machine(
                id=account.new_id("i"),
                index=index,
                launch_index=len(machines),
                launch_id=launch,
                order=order,
                reservation=reservation,
                token=token,
                launched_at=account.now,
                address=f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}",
                tags=dict(order.tags),
            )
            account.machines[machine.id] = machine
            machines.append(machine)
    return machines
