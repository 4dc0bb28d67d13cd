"""Capacity Blocks: offerings, purchase, extension, status. A purchase takes no token and cannot be undone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.operation import Answer, Operation
from tests.fakes.ec2.calls.reservations import holding_of, reservation
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.holdings import Extension, Holding
from tests.fakes.ec2.market import BlockOffering, ExtensionOffering, Segment
from tests.fakes.ec2.requests import Params
from tests.fakes.ec2.selection import filtered, paged, tag_set, tags_for

_HOUR: Final = timedelta(hours=1)
_LONGEST: Final = timedelta(days=182)


def describe_capacity_block_offerings(account: Account, params: Params) -> Answer:
    """What is on sale for this type, count and duration, and begins and ends within the range."""
    duration = params["CapacityDurationHours"] * _HOUR
    if duration % timedelta(days=1) or not duration or duration > _LONGEST:
        raise ApiError("InvalidParameterValue", "The duration must be 24 hours or a multiple of it, up to 182 days.")
    found = [o for o in account.market.offerings.values() if o.lasts == duration and _wanted(account, o, params)]
    page, token = paged(sorted(found, key=lambda o: o.id), params, key=lambda offering: offering.id)
    return {"CapacityBlockOfferings": [_offering(offering) for offering in page], "NextToken": token}


def _wanted(account: Account, offering: BlockOffering, params: Params) -> bool:
    segment = offering.segments[0]
    count = sum(s.count for s in offering.segments if s.starts_at == offering.starts_at)
    if params.get("UltraserverType", "") != offering.ultraserver:
        return False
    if not offering.ultraserver:
        types = params.get("InstanceTypePreferences") or [params.get("InstanceType", segment.instance_type)]
        if segment.instance_type not in types or params.get("InstanceCount", 1) != count:
            return False
    begins = params.get("StartDateRange", account.now) <= offering.starts_at
    return begins and offering.ends_at <= params.get("EndDateRange", offering.ends_at)


def purchase_capacity_block(account: Account, params: Params) -> Answer:
    """Buy an offering: one reservation for each of its segments, to be paid."""
    offering = account.market.offerings.pop(params["CapacityBlockOfferingId"], None)
    if offering is None:
        text = f"The Capacity Block offering {params['CapacityBlockOfferingId']} is not available (any more)."
        raise ApiError("InvalidCapacityBlockOfferingId.NotFound", text)
    tags = tags_for("capacity-reservation", params.get("TagSpecifications", ()))
    payment = account.market.payment
    bought = [
        account.reserve(
            segment.instance_type,
            segment.zone,
            segment.count,
            starts_in=segment.starts_at - account.now,
            lasts=segment.ends_at - segment.starts_at,
            block=account.new_id("cb"),
            ultraserver=offering.ultraserver,
            platform=params["InstancePlatform"],
            paid_at=None if payment is None else account.now + payment,
            tags=dict(tags),
        )
        for segment in offering.segments
    ]
    shown = [reservation(account, holding) for holding in bought]
    return {
        "CapacityReservation": shown[0],
        "CapacityReservations": shown,
        "CapacityBlocks": [_block(account, holding) for holding in bought],
    }


def describe_capacity_blocks(account: Account, params: Params) -> Answer:
    """Blocks that were bought."""
    found = filtered(_blocks(account, params), params.get("Filters", ()), {}, lambda holding: holding.tags)
    page, token = paged(found, params, key=lambda holding: holding.block)
    return {"CapacityBlocks": [_block(account, holding) for holding in page], "NextToken": token}


def describe_capacity_block_status(account: Account, params: Params) -> Answer:
    """How the UltraServer of a block is. An impaired one keeps its machines and starts no more."""
    page, token = paged(_blocks(account, params), params, key=lambda holding: holding.block)
    return {"CapacityBlockStatuses": [_status(account, holding) for holding in page], "NextToken": token}


def describe_capacity_block_extension_offerings(account: Account, params: Params) -> Answer:
    """One offering, if the reservation may be extended by so much."""
    holding = _extendable(account, params["CapacityReservationId"])
    end, hours = holding.end(account.now), params["CapacityBlockExtensionDurationHours"]
    if end is None or hours % 24 or hours < 24:
        raise ApiError("InvalidParameterValue", "A block is extended by 24 hours or a multiple of it.")
    fee = account.market.extension_fee_per_hour * hours * holding.count
    name = f"cbe-{account.number('extension offering'):017x}"
    offering = ExtensionOffering(name, holding.id, end, end + hours * _HOUR, fee)
    account.market.extensions[name] = offering
    row = {"CapacityBlockExtensionOfferingId": name, "StartDate": holding.starts_at, "Tenancy": "default"}
    return {"CapacityBlockExtensionOfferings": [row | _extension(holding, offering)]}


def purchase_capacity_block_extension(account: Account, params: Params) -> Answer:
    """Buy an extension. The end moves once it is paid."""
    holding = _extendable(account, params["CapacityReservationId"])
    offering = account.market.extensions.pop(params["CapacityBlockExtensionOfferingId"], None)
    if offering is None or offering.reservation != holding.id or offering.starts_at != holding.end(account.now):
        text = "The extension offering is not available (any more)."
        raise ApiError("InvalidCapacityBlockExtensionOfferingId.NotFound", text)
    payment = account.market.payment
    paid_at = None if payment is None else account.now + payment
    bought = Extension(offering.id, account.now, offering.starts_at, offering.ends_at, str(offering.fee), paid_at)
    holding.extensions.append(bought)
    return {"CapacityBlockExtensions": [_history(account, holding, bought)]}


def describe_capacity_block_extension_history(account: Account, params: Params) -> Answer:
    """The extensions that were bought."""
    asked = params.get("CapacityReservationIds") or sorted(account.holdings)
    holdings = [holding_of(account, name) for name in asked]
    return {
        "CapacityBlockExtensions": [_history(account, h, extension) for h in holdings for extension in h.extensions]
    }


def _extendable(account: Account, name: str) -> Holding:
    holding, now = holding_of(account, name), account.now
    end = holding.end(now)
    pending = any(extension.status(now) == "payment-pending" for extension in holding.extensions)
    if not holding.block or pending or end is None or holding.state(now) not in ("active", "scheduled"):
        raise ApiError("InvalidState", f"The Capacity Block {name} cannot be extended now.")
    if not _HOUR <= end - now <= timedelta(days=56):
        raise ApiError("InvalidState", "A block can be extended between 56 days and one hour before its end.")
    return holding


def _blocks(account: Account, params: Params) -> list[Holding]:
    asked = params.get("CapacityBlockIds", ())
    known = {holding.block: holding for holding in account.holdings.values() if holding.block and not holding.shared}
    for name in asked:
        if name not in known:
            raise ApiError("InvalidCapacityBlockId.NotFound", f"The Capacity Block '{name}' does not exist")
    return [known[name] for name in sorted(asked or known)]


def _block(account: Account, holding: Holding) -> dict[str, Any]:
    return {
        "CapacityBlockId": holding.block,
        "UltraserverType": holding.ultraserver or None,
        "AvailabilityZone": holding.zone,
        "AvailabilityZoneId": account.geography.zones.get(holding.zone),
        "CapacityReservationIds": [holding.id],
        "StartDate": holding.starts_at,
        "EndDate": holding.end(account.now),
        "CreateDate": holding.created_at,
        "State": holding.state(account.now),
        "Tags": tag_set(holding.tags),
    }


def _status(account: Account, holding: Holding) -> dict[str, Any]:
    free = 0 if holding.impaired else account.counted_in(holding)
    capacity = {
        "TotalCapacity": holding.count,
        "TotalAvailableCapacity": free,
        "TotalUnavailableCapacity": holding.count if holding.impaired else 0,
    }
    return {
        "CapacityBlockId": holding.block,
        "InterconnectStatus": "impaired" if holding.impaired else "ok",
        **capacity,
        "CapacityReservationStatuses": [{"CapacityReservationId": holding.id, **capacity}],
    }


def _duration(offering: BlockOffering | Segment) -> dict[str, Any]:
    lasts = offering.ends_at - offering.starts_at
    return {
        "StartDate": offering.starts_at,
        "EndDate": offering.ends_at,
        "CapacityBlockDurationHours": lasts // _HOUR,
        "CapacityBlockDurationMinutes": lasts // timedelta(minutes=1),
        "CurrencyCode": "USD",
        "ZoneType": "availability-zone",
    }


def _offering(offering: BlockOffering) -> dict[str, Any]:
    first = offering.segments[0]
    kind = {"InstanceType": first.instance_type, "InstanceCount": first.count}
    if offering.ultraserver:
        kind = {"UltraserverType": offering.ultraserver, "UltraserverCount": 1}
    return {
        "CapacityBlockOfferingId": offering.id,
        "AvailabilityZone": first.zone,
        "UpfrontFee": str(offering.fee),
        "Tenancy": "default",
        "CapacityBlockOfferingSegments": list(_segments(offering)),
        **kind,
        **_duration(offering),
    }


def _segments(offering: BlockOffering) -> Iterator[dict[str, Any]]:
    """The fee is split by instance and time, so that the parts add up."""
    weights = [segment.count * ((segment.ends_at - segment.starts_at) / _HOUR) for segment in offering.segments]
    for segment, weight in zip(offering.segments, weights, strict=True):
        fee = offering.fee * int(weight) / int(sum(weights))
        yield {
            "InstanceType": segment.instance_type,
            "AvailabilityZone": segment.zone,
            "InstanceCount": segment.count,
            "UpfrontFee": str(round(fee, 2)),
            **_duration(segment),
        }


def _extension(holding: Holding, offering: ExtensionOffering | Extension) -> dict[str, Any]:
    return {
        "InstanceType": holding.instance_type,
        "InstanceCount": holding.count,
        "AvailabilityZone": holding.zone,
        "CapacityBlockExtensionStartDate": offering.starts_at,
        "CapacityBlockExtensionEndDate": offering.ends_at,
        "CapacityBlockExtensionDurationHours": (offering.ends_at - offering.starts_at) // _HOUR,
        "UpfrontFee": str(offering.fee),
        "CurrencyCode": "USD",
        "ZoneType": "availability-zone",
    }


def _history(account: Account, holding: Holding, extension: Extension) -> dict[str, Any]:
    return {
        "CapacityReservationId": holding.id,
        "CapacityBlockExtensionOfferingId": extension.offering,
        "CapacityBlockExtensionStatus": extension.status(account.now),
        "CapacityBlockExtensionPurchaseDate": extension.bought_at,
        **_extension(holding, extension),
    }


_PAGED: Final = "Filters MaxResults NextToken"
OPERATIONS: Final[Mapping[str, Operation]] = {
    "DescribeCapacityBlockOfferings": Operation(
        describe_capacity_block_offerings,
        "InstanceType InstanceTypePreferences InstanceCount UltraserverType UltraserverCount CapacityDurationHours"
        " StartDateRange EndDateRange AllAvailabilityZones MaxResults NextToken",
    ),
    "PurchaseCapacityBlock": Operation(
        purchase_capacity_block, "CapacityBlockOfferingId InstancePlatform TagSpecifications"
    ),
    "DescribeCapacityBlocks": Operation(describe_capacity_blocks, f"CapacityBlockIds {_PAGED}"),
    "DescribeCapacityBlockStatus": Operation(describe_capacity_block_status, "CapacityBlockIds MaxResults NextToken"),
    "DescribeCapacityBlockExtensionOfferings": Operation(
        describe_capacity_block_extension_offerings, "CapacityReservationId CapacityBlockExtensionDurationHours"
    ),
    "PurchaseCapacityBlockExtension": Operation(
        purchase_capacity_block_extension, "CapacityReservationId CapacityBlockExtensionOfferingId"
    ),
    "DescribeCapacityBlockExtensionHistory": Operation(
        describe_capacity_block_extension_history, "CapacityReservationIds"
    ),
}
