"""CreateFleet of type instant: one answer with what was launched and what was not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from instance_catalog.dataclass import replace
from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.instances import remembered
from tests.fakes.ec2.calls.operation import Answer, Operation, dry_run
from tests.fakes.ec2.calls.orders import Places, market_of, merged, order_of, places_for, start
from tests.fakes.ec2.errors import ApiError, shortage, unknown_to_the_fake
from tests.fakes.ec2.holdings import Holding
from tests.fakes.ec2.machines import Machine, Order
from tests.fakes.ec2.requests import Params
from tests.fakes.ec2.selection import tags_for

_RESERVATION_TYPES: Final = {
    "on-demand-capacity-reservation": "on-demand",
    "capacity-block": "capacity-block",
    "interruptible-capacity-reservation": "interruptible-capacity-reservation",
}
# Where an override says the same thing as a launch parameter.
_OVERRIDES: Final = ("InstanceType", "SubnetId", "ImageId", "BlockDeviceMappings")


@dataclass(frozen=True, slots=True)
class Pool:
    """One override of one launch template: a way to serve the fleet, and how the answer names both."""

    template: Mapping[str, Any]
    override: Mapping[str, Any]
    order: Order | ApiError
    priority: float
    price: float

    @property
    def lifecycle(self) -> str:
        """How the answer calls the market."""
        return "on-demand" if isinstance(self.order, ApiError) else self.order.market


@dataclass(frozen=True, slots=True)
class Share:
    """What a pool gives."""

    pool: Pool
    places: Places
    count: int


def create_fleet(account: Account, params: Params) -> Answer:
    """Launch up to the target from the pools in order. A failure of a pool is a row of Errors in a 200 answer."""
    if params.get("Type", "maintain") != "instant":
        raise unknown_to_the_fake("fleets of other types than instant")
    target = params["TargetCapacitySpecification"]
    kind = target.get("DefaultTargetCapacityType", "on-demand")
    if {"OnDemandTargetCapacity", "SpotTargetCapacity"} & target.keys():
        raise unknown_to_the_fake("fleets of two markets")
    options = params.get({"spot": "SpotOptions", "on-demand": "OnDemandOptions"}.get(kind, ""), {})
    minimum = options.get("MinTargetCapacity", 0)
    if minimum and not (options.get("SingleInstanceType") or options.get("SingleAvailabilityZone")):
        text = "MinTargetCapacity requires SingleInstanceType or SingleAvailabilityZone"
        raise ApiError("InvalidParameterCombination", text)
    _refuse_duplicates(account, params)
    pools = list(_in_order(_pools(account, params, kind), options))
    if account.behaviour.refuses_templates:
        _refuse_templates(pools)
    if params.get("DryRun"):
        raise dry_run()

    def launch() -> tuple[Answer, bool]:
        groups = _alternatives(pools, options)
        shares, errors = [], []
        for group in groups:
            shares, errors = _shares(account, group, target["TotalTargetCapacity"])
            if sum(share.count for share in shares) >= max(minimum, 1):
                break
        if sum(share.count for share in shares) < minimum:
            errors += [_error(s.pool, shortage(str(s.pool.override["InstanceType"]), "all")) for s in shares]
            shares = []
        rows = [_row(account, share, _tagged(account, share, params)) for share in shares]
        return {"FleetId": account.new_id("fleet"), "Instances": rows, "Errors": errors}, bool(rows)

    answer: Answer = remembered(account, "CreateFleet", "", params, launch)
    return answer


def _tagged(account: Account, share: Share, params: Params) -> list[Machine]:
    if isinstance(share.pool.order, ApiError):
        return []
    extra = tags_for("instance", params.get("TagSpecifications", ()))
    order = replace(share.pool.order, tags=dict(share.pool.order.tags) | extra)
    return start(account, order, share.places, share.count, token=params.get("ClientToken", ""))


# --- pools ---------------------------------------------------------------------------------------------------------


def _pools(account: Account, params: Params, kind: str) -> Iterator[Pool]:
    for config in params["LaunchTemplateConfigs"]:
        specification = {
            key: value for key, value in config["LaunchTemplateSpecification"].items() if key.startswith("LaunchTempl")
        } | {"Version": config["LaunchTemplateSpecification"].get("Version", "")}
        for override in config.get("Overrides") or [{}]:
            if "," in override.get("SubnetId", ""):
                raise ApiError("InvalidParameterValue", "An instant fleet takes one subnet in each override.")
            yield from _of_override(account, params, kind, specification, override)


def _refuse_duplicates(account: Account, params: Params) -> None:
    """EC2 takes an instance type once in each zone, whatever the subnets.

    Source: github.com/github-aws-runners/terraform-aws-github-runner issues 5297 and 2904 (the message is EC2's).
    """
    seen: set[tuple[str, str]] = set()
    for config in params["LaunchTemplateConfigs"]:
        for override in config.get("Overrides") or ():
            subnet = account.geography.subnets.get(override.get("SubnetId", ""))
            zone = subnet.zone if subnet else override.get("AvailabilityZone", "")
            pool = (override.get("InstanceType", ""), zone)
            if zone and pool in seen:
                raise ApiError(
                    "InvalidFleetConfig", "The fleet configuration contains duplicate instance pools.", status=400
                )
            seen.add(pool)


def _refuse_templates(pools: Iterable[Pool]) -> None:
    for pool in pools:
        if isinstance(pool.order, ApiError) and pool.order.code.startswith("Invalid"):
            raise pool.order


def _of_override(
    account: Account, params: Params, kind: str, specification: Mapping[str, Any], override: Mapping[str, Any]
) -> Iterator[Pool]:
    try:
        launch, tags = merged(account, {"LaunchTemplate": specification})
        order = order_of(account, _overridden(launch, override), tags)
    except ApiError as error:
        if error.status == 501:
            raise
        yield Pool(specification, override, error, override.get("Priority", 0.0), 0.0)
        return
    named = override | {"InstanceType": order.instance_type, "SubnetId": order.subnet, "AvailabilityZone": order.zone}
    for found in _markets(account, params, kind, order):
        price = _price(account, order.instance_type)
        yield Pool(specification, named, found, override.get("Priority", float("inf")), price)


def _overridden(launch: dict[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """An override's subnet wins over the template's, also where that is part of the template's interfaces."""
    changes = {key: override[key] for key in _OVERRIDES if key in override}
    interfaces = launch.get("NetworkInterfaces", ())
    if interfaces and "SubnetId" in changes:
        subnet = changes.pop("SubnetId")
        changes["NetworkInterfaces"] = [{**interface, "SubnetId": subnet} for interface in interfaces]
    placement = launch.get("Placement", {}) | override.get("Placement", {})
    if "AvailabilityZone" in override:
        placement["AvailabilityZone"] = override["AvailabilityZone"]
    return launch | changes | ({"Placement": placement} if placement else {})


def _markets(account: Account, params: Params, kind: str, order: Order) -> Iterator[Order | ApiError]:
    """The order in the market of the fleet; for reserved capacity once for each reservation that fits."""
    if kind != "reserved-capacity":
        if kind != order.market and order.market != "on-demand":
            text = f"The launch template's market type {order.market} does not fit the fleet's {kind}."
            yield ApiError("InvalidParameterCombination", text)
        elif kind == "capacity-block" and order.market != kind:
            yield ApiError("InvalidParameterCombination", "The launch template names no Capacity Block.")
        else:
            yield replace(order, market=kind)
        return
    options = params.get("ReservedCapacityOptions", {})
    holdings = list(_eligible(account, options, order))
    if not holdings:
        text = f"No Capacity Reservation of the target fits {order.instance_type} in {order.zone}."
        yield ApiError("ReservationCapacityExceeded", text)
    for holding in holdings:
        yield replace(order, market=market_of(holding), reservation=holding.id)
    if "on-demand" in options.get("ReservedCapacityFallbackOptions", {}).get("MarketTypes", ()):
        yield replace(order, market="on-demand", reservation="")


def _eligible(account: Account, options: Mapping[str, Any], order: Order) -> Iterator[Holding]:
    target = options.get("CapacityReservationTarget", {})
    if target.get("CapacityReservationResourceGroupArns"):
        raise unknown_to_the_fake("resource groups of capacity reservations")
    named = target.get("CapacityReservationIds") or sorted(account.holdings)
    for kind in options.get("ReservationTypes", _RESERVATION_TYPES):
        for name in named:
            holding = account.holdings.get(name)
            if holding is None:
                text = f"The capacity reservation ID '{name}' does not exist"
                raise ApiError("InvalidCapacityReservationId.NotFound", text)
            fits = (holding.instance_type, holding.zone) == (order.instance_type, order.zone)
            if fits and market_of(holding) == _RESERVATION_TYPES[kind]:
                yield holding


def _price(account: Account, instance_type: str) -> float:
    found = account.geography.types[instance_type].prices
    return min((float(price.usd_per_hour) for price in found.values()), default=float("inf"))


def _in_order(pools: Iterable[Pool], options: Mapping[str, Any]) -> list[Pool]:
    """By priority where the strategy says so, by price where it is about price; else as given."""
    strategy = options.get("AllocationStrategy", "lowest-price" if options else "")
    if strategy in ("prioritized", "capacity-optimized-prioritized"):
        return sorted(pools, key=lambda pool: pool.priority)
    if strategy in ("lowest-price", "price-capacity-optimized"):
        return sorted(pools, key=lambda pool: pool.price)
    return list(pools)


def _alternatives(pools: list[Pool], options: Mapping[str, Any]) -> list[list[Pool]]:
    """Pools that may serve the fleet together; one type or one zone where the options say so."""
    key = {
        (True, False): ("InstanceType",),
        (False, True): ("AvailabilityZone",),
        (True, True): ("InstanceType", "AvailabilityZone"),
    }.get((bool(options.get("SingleInstanceType")), bool(options.get("SingleAvailabilityZone"))))
    if key is None:
        return [pools]
    groups: dict[tuple[Any, ...], list[Pool]] = {}
    for pool in pools:
        groups.setdefault(tuple(pool.override.get(name) for name in key), []).append(pool)
    return list(groups.values())


# --- answers -------------------------------------------------------------------------------------------------------


def _shares(account: Account, pools: Iterable[Pool], target: int) -> tuple[list[Share], list[dict[str, Any]]]:
    shares: list[Share] = []
    errors: list[dict[str, Any]] = []
    left = target
    for pool in pools:
        if left == 0:
            break
        try:
            if isinstance(pool.order, ApiError):
                raise pool.order
            places = places_for(account, pool.order)
        except ApiError as error:
            errors.append(_error(pool, error))
            continue
        count = min(sum(room for _, room in places), left)
        left -= count
        shares.append(Share(pool, places, count))
        if left:
            errors.append(_error(pool, _exhausted(pool)))
    return shares, errors


def _exhausted(pool: Pool) -> ApiError:
    """Why a pool that gave something gave no more."""
    if isinstance(pool.order, Order) and pool.order.reservation:
        return ApiError("ReservationCapacityExceeded", "The requested reservation does not have sufficient capacity.")
    return shortage(str(pool.override["InstanceType"]), str(pool.override["AvailabilityZone"]))


def _details(pool: Pool) -> dict[str, Any]:
    return {"LaunchTemplateSpecification": pool.template, "Overrides": pool.override}


def _error(pool: Pool, error: ApiError) -> dict[str, Any]:
    return {
        "LaunchTemplateAndOverrides": _details(pool),
        "Lifecycle": pool.lifecycle,
        "ErrorCode": error.code,
        "ErrorMessage": error.message,
    }


def _row(account: Account, share: Share, machines: list[Machine]) -> dict[str, Any]:
    order = machines[0].order
    return {
        "LaunchTemplateAndOverrides": _details(share.pool),
        "Lifecycle": share.pool.lifecycle,
        "InstanceIds": [machine.id for machine in machines],
        "InstanceType": order.instance_type,
        "AvailabilityZone": order.zone,
        "AvailabilityZoneId": account.geography.zones[order.zone],
        "SubnetId": order.subnet,
    }


OPERATIONS: Final[Mapping[str, Operation]] = {
    "CreateFleet": Operation(
        create_fleet,
        "ClientToken DryRun SpotOptions OnDemandOptions ReservedCapacityOptions LaunchTemplateConfigs"
        " TargetCapacitySpecification TagSpecifications Type",
    ),
}
