"""Capacity reservations: describe, create, change, cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.operation import Answer, Operation
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.holdings import Holding
from tests.fakes.ec2.requests import Params
from tests.fakes.ec2.selection import filtered, paged, tag_set, tags_for


def describe_capacity_reservations(account: Account, params: Params) -> Answer:
    """On-demand capacity reservations and those of Capacity Blocks."""
    ids = params.get("CapacityReservationIds", ())
    known = [holding_of(account, name) for name in ids] if ids else list(account.holdings.values())
    found = filtered(known, params.get("Filters", ()), _fields(account), lambda holding: holding.tags)
    page, token = paged(sorted(found, key=lambda h: h.id), params, key=lambda holding: holding.id)
    return {"CapacityReservations": [reservation(account, holding) for holding in page], "NextToken": token}


def create_capacity_reservation(account: Account, params: Params) -> Answer:
    """An on-demand capacity reservation: at once, or future-dated, which AWS first assesses."""
    zone = params.get("AvailabilityZone", "")
    if zone not in account.geography.zones:
        raise ApiError("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
    holding = account.reserve(params["InstanceType"], zone, params["InstanceCount"])
    holding.match = params.get("InstanceMatchCriteria", "open")
    holding.platform = params["InstancePlatform"]
    holding.starts_at = params.get("StartDate", account.now)
    holding.ends_at = params.get("EndDate")
    holding.override = "assessing" if holding.starts_at > account.now else ""
    holding.tags.update(tags_for("capacity-reservation", params.get("TagSpecifications", ())))
    return {"CapacityReservation": reservation(account, holding)}


def modify_capacity_reservation(account: Account, params: Params) -> Answer:
    """Another size or end; blocks cannot be changed."""
    holding = holding_of(account, params["CapacityReservationId"])
    if holding.block:
        raise ApiError("OperationNotPermitted", "A Capacity Block cannot be modified.")
    holding.count = params.get("InstanceCount", holding.count)
    if params.get("EndDateType") == "unlimited":
        holding.ends_at = None
    holding.ends_at = params.get("EndDate", holding.ends_at)
    return {"Return": True}


def cancel_capacity_reservation(account: Account, params: Params) -> Answer:
    """Running instances stay; blocks cannot be cancelled."""
    holding = holding_of(account, params["CapacityReservationId"])
    if holding.block:
        raise ApiError("OperationNotPermitted", "A Capacity Block cannot be cancelled.")
    holding.cancelled_at = account.now
    return {"Return": True}


def holding_of(account: Account, name: str) -> Holding:
    """The reservation of that id."""
    if name not in account.holdings:
        text = f"The capacity reservation ID '{name}' does not exist"
        raise ApiError("InvalidCapacityReservationId.NotFound", text)
    return account.holdings[name]


def reservation(account: Account, holding: Holding) -> dict[str, Any]:
    """A reservation as Describe shows it. Before its start a block has no instances; a tag says how many come."""
    geography, now = account.geography, account.now
    state = holding.state(now)
    delivered = state in ("active", "unavailable")
    end = holding.end(now)
    future = {} if delivered else {"aws:ec2capacityreservation:incrementalRequestedQuantity": str(holding.count)}
    arn = f"arn:aws:ec2:{geography.region}:{geography.account}:capacity-reservation/{holding.id}"
    return {
        "CapacityReservationId": holding.id,
        "CapacityReservationArn": arn,
        "OwnerId": geography.account,
        "InstanceType": holding.instance_type,
        "InstancePlatform": holding.platform,
        "AvailabilityZone": holding.zone,
        "AvailabilityZoneId": geography.zones.get(holding.zone),
        "Tenancy": "default",
        "TotalInstanceCount": holding.count if delivered or not holding.block else 0,
        "AvailableInstanceCount": account.counted_in(holding),
        "EbsOptimized": False,
        "EphemeralStorage": False,
        "State": state,
        "StartDate": holding.starts_at,
        "EndDate": end,
        "EndDateType": "unlimited" if end is None else "limited",
        "InstanceMatchCriteria": holding.match,
        "CreateDate": holding.created_at,
        "ReservationType": "capacity-block" if holding.block else "default",
        "CapacityBlockId": holding.block or None,
        "Interruptible": holding.interruptible,
        "LaunchStatus": _launch_status(holding, state),
        "Tags": tag_set(holding.tags | future),
    }


def _launch_status(holding: Holding, state: str) -> str | None:
    if not holding.ultraserver:
        return None
    return "launchable" if state == "active" and not holding.impaired else "unlaunchable"


def _fields(account: Account) -> Mapping[str, Callable[[Holding], list[str]]]:
    return {
        "instance-type": lambda holding: [holding.instance_type],
        "availability-zone": lambda holding: [holding.zone],
        "state": lambda holding: [holding.state(account.now)],
        "instance-match-criteria": lambda holding: [holding.match],
        "reservation-type": lambda holding: ["capacity-block" if holding.block else "default"],
        "owner-id": lambda holding: [account.geography.account],
    }


OPERATIONS: Final[Mapping[str, Operation]] = {
    "DescribeCapacityReservations": Operation(
        describe_capacity_reservations, "CapacityReservationIds Filters MaxResults NextToken"
    ),
    "CreateCapacityReservation": Operation(
        create_capacity_reservation,
        "InstanceType InstancePlatform AvailabilityZone InstanceCount InstanceMatchCriteria StartDate EndDate"
        " EndDateType TagSpecifications ClientToken Tenancy",
    ),
    "ModifyCapacityReservation": Operation(
        modify_capacity_reservation, "CapacityReservationId InstanceCount EndDate EndDateType"
    ),
    "CancelCapacityReservation": Operation(cancel_capacity_reservation, "CapacityReservationId"),
}
