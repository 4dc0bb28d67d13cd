"""RunInstances, TerminateInstances, DescribeInstances, DescribeInstanceStatus and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.operation import Answer, Operation, dry_run
from tests.fakes.ec2.calls.orders import merged, order_of, places_for, start
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.machines import STATE_CODES, Machine
from tests.fakes.ec2.requests import Params
from tests.fakes.ec2.selection import filtered, paged, tag_set


def remembered(account: Account, operation: str, zone: str, params: Params, run: Callable[[], tuple[Any, bool]]) -> Any:
    """What `run` produces, or what the client token of the call produced before. `run` says whether it is used up."""
    token = params.get("ClientToken", "")
    if len(token) > 64 or not token.isascii():
        raise ApiError("InvalidParameterValue", "Value for parameter clientToken must have at most 64 ASCII characters")
    key = (operation, zone, token)
    given = {name: value for name, value in params.items() if name not in ("ClientToken", "DryRun")}
    if token and key in account.tokens:
        earlier, result = account.tokens[key]
        if earlier != given:
            text = "The client token you have provided is associated with another request with different parameters."
            raise ApiError("IdempotentParameterMismatch", text)
        return result
    result, used_up = run()
    if token and used_up:
        account.tokens[key] = (given, result)
    return result


def run_instances(account: Account, params: Params) -> Answer:
    """All or at least MinCount machines of one kind in one zone. Tokens are zonal: another zone is another launch."""
    counts = {"MinCount", "MaxCount", "ClientToken", "DryRun"}
    order = order_of(account, *merged(account, {k: v for k, v in params.items() if k not in counts}))
    minimum, maximum = params["MinCount"], params["MaxCount"]
    if not 1 <= minimum <= maximum:
        raise ApiError("InvalidParameterValue", "The minimum number of instances must be 1 to the maximum number.")
    if params.get("DryRun"):
        raise dry_run()

    def launch() -> tuple[list[Machine], bool]:
        places = places_for(account, order)
        room = sum(free for _, free in places)
        if room < minimum:
            if places and places[0][0] and order.reservation:
                text = "The requested reservation does not have sufficient compatible and available capacity."
                raise ApiError("ReservationCapacityExceeded", text)
            raise account.stock.shortage_of(order)
        return start(account, order, places, min(room, maximum), token=params.get("ClientToken", "")), True

    machines: list[Machine] = remembered(account, "RunInstances", order.zone, params, launch)
    if not any(machine.alive(account.now) for machine in machines):
        text = "The client token was used for a launch whose instances have been terminated."
        raise ApiError("IdempotentInstanceTerminated", text)
    owner = account.geography.account
    shown = [instance(account, machine) for machine in machines]
    return {"ReservationId": machines[0].launch_id, "OwnerId": owner, "Groups": [], "Instances": shown}


def terminate_instances(account: Account, params: Params) -> Answer:
    """All of the ids or, when one of them is unknown, none. One that is protected keeps those of its zone.

    Source: EC2 API reference, TerminateInstances.
    """
    asked = [_visible(account, name) for name in dict.fromkeys(params["InstanceIds"])]
    changes = []
    protected = [machine for machine in asked if machine.protected and machine.alive(account.now)]
    kept = {machine.order.zone for machine in protected}
    for machine in (machine for machine in asked if machine.order.zone not in kept):
        before = _state(account, machine)
        machine.end(
            account.now, "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"
        )
        changes.append(
            {"InstanceId": machine.id, "PreviousState": before, "CurrentState": _state(account, machine)},
        )
    if protected:
        text = f"The instance '{protected[0].id}' may not be terminated. Modify its 'disableApiTermination' instance"
        raise ApiError("OperationNotPermitted", f"{text} attribute and try again.")
    return {"TerminatingInstances": changes}


def describe_instances(account: Account, params: Params) -> Answer:
    """Grouped by launch, in the order of launching. Ids that are unknown or not visible yet are an error."""
    ids = params.get("InstanceIds", ())
    if ids and "MaxResults" in params:
        text = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise ApiError("InvalidParameterCombination", text)
    known = [_visible(account, name) for name in ids] if ids else _all_visible(account)
    found = filtered(known, params.get("Filters", ()), _fields(account), lambda machine: machine.tags)
    found = [machine for machine in found if ids or not machine.hidden]
    found.sort(key=lambda machine: machine.key)
    page, token = paged(found, params, key=lambda machine: machine.key, limit=account.behaviour.page)
    launches: dict[str, list[Machine]] = {}
    for machine in page:
        launches.setdefault(machine.launch_id, []).append(machine)
    owner = account.geography.account
    groups = [
        {"ReservationId": launch, "OwnerId": owner, "Groups": [], "Instances": [instance(account, m) for m in machines]}
        for launch, machines in launches.items()
    ]
    return {"Reservations": groups, "NextToken": token}


def create_tags(account: Account, params: Params) -> Answer:
    """On instances, templates and reservations; all of the resources or none."""
    for tags in _tags_of(account, params["Resources"]):
        tags.update({tag["Key"]: tag.get("Value", "") for tag in params["Tags"]})
    return {}


def delete_tags(account: Account, params: Params) -> Answer:
    """Remove tags by key; without a value in the request whatever their value."""
    for tags in _tags_of(account, params["Resources"]):
        for tag in params.get("Tags", ()):
            if tag.get("Value", tags.get(tag["Key"])) == tags.get(tag["Key"]):
                tags.pop(tag["Key"], None)
    return {}


def describe_instance_status(account: Account, params: Params) -> Answer:
    """Only running instances, unless IncludeAllInstances; the checks pass ten minutes after the launch or at once."""
    ids = params.get("InstanceIds", ())
    known = [_visible(account, name) for name in ids] if ids else _all_visible(account)
    running = [m for m in known if params.get("IncludeAllInstances") or _state(account, m)["Name"] == "running"]
    running.sort(key=lambda machine: machine.key)
    page, token = paged(running, params, key=lambda machine: machine.key, limit=account.behaviour.page)
    passed = {"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]}
    statuses = [
        {
            "InstanceId": machine.id,
            "AvailabilityZone": machine.order.zone,
            "InstanceState": _state(account, machine),
            "InstanceStatus": passed,
            "SystemStatus": passed,
            "Events": [],
        }
        for machine in page
    ]
    return {"InstanceStatuses": statuses, "NextToken": token}


def _tags_of(account: Account, resources: Iterable[str]) -> list[dict[str, str]]:
    tables = (account.machines, account.templates, account.holdings)
    found = [table[name].tags for name in resources for table in tables if name in table]
    if len(found) != len(list(resources)):
        raise ApiError("InvalidID", f"One of the IDs {list(resources)} is not valid")
    return found


def _all_visible(account: Account) -> list[Machine]:
    return [m for m in account.machines.values() if m.visible(account.now, account.behaviour)]


def _visible(account: Account, name: str) -> Machine:
    if not name.startswith("i-") or len(name) != 19:
        raise ApiError("InvalidInstanceID.Malformed", f'Invalid id: "{name}"')
    machine = account.machines.get(name)
    if machine is None or not machine.visible(account.now, account.behaviour):
        raise ApiError("InvalidInstanceID.NotFound", f"The instance ID '{name}' does not exist")
    return machine


def _state(account: Account, machine: Machine) -> dict[str, Any]:
    name = machine.state(account.now, account.behaviour)
    return {"Code": STATE_CODES[name], "Name": name}


def instance(account: Account, machine: Machine) -> dict[str, Any]:
    """An instance as Describe and Run show it."""
    order, geography = machine.order, account.geography
    holding = account.holdings.get(machine.reservation)
    ended = machine.ends_at is not None and machine.ends_at <= account.now
    placement = order.launch.get("Placement", {})
    shown: dict[str, Any] = {
        "InstanceId": machine.id,
        "ImageId": order.image,
        "State": _state(account, machine),
        "InstanceType": order.instance_type,
        "Architecture": geography.architecture(order.instance_type),
        "LaunchTime": machine.launched_at,
        "AmiLaunchIndex": machine.launch_index,
        "ClientToken": machine.token,
        "Placement": {
            "AvailabilityZone": order.zone,
            "AvailabilityZoneId": geography.zones[order.zone],
            "Tenancy": "default",
            "GroupName": placement.get("GroupName", ""),
        },
        "SubnetId": order.subnet,
        "VpcId": geography.subnets[order.subnet].vpc if order.subnet in geography.subnets else None,
        "PrivateIpAddress": None if ended else machine.address,
        "PrivateDnsName": "" if ended else f"ip-{machine.address.replace('.', '-')}.ec2.internal",
        "InstanceLifecycle": None if order.market == "on-demand" else order.market,
        "CapacityReservationId": machine.reservation or None,
        "CapacityBlockId": holding.block if holding is not None and holding.block else None,
        "Tags": tag_set(machine.tags),
        "StateTransitionReason": "",
        "Monitoring": {"State": "disabled"},
    }
    if account.behaviour.shows_interfaces and not ended:
        asked = order.launch.get("NetworkInterfaces") or [{"NetworkCardIndex": 0, "DeviceIndex": 0}]
        shown["NetworkInterfaces"] = [
            {
                "InterfaceType": one.get("InterfaceType", "interface"),
                "SubnetId": order.subnet,
                "Attachment": {name: one.get(name, 0) for name in ("NetworkCardIndex", "DeviceIndex")},
            }
            for one in asked
        ]
    if ended:
        code, message = machine.reason
        at = machine.ends_at.strftime("%Y-%m-%d %H:%M:%S GMT") if machine.ends_at else ""
        shown["StateReason"] = {"Code": code, "Message": message}
        shown["StateTransitionReason"] = f"{message.partition(': ')[2] or message} ({at})"
    return shown


def _fields(account: Account) -> Mapping[str, Callable[[Machine], list[str]]]:
    """The filters of DescribeInstances that the fake knows."""
    return {
        "instance-id": lambda m: [m.id],
        "instance-state-name": lambda m: [m.state(account.now, account.behaviour)],
        "instance-type": lambda m: [m.order.instance_type],
        "instance-lifecycle": lambda m: [] if m.order.market == "on-demand" else [m.order.market],
        "availability-zone": lambda m: [m.order.zone],
        "subnet-id": lambda m: [m.order.subnet],
        "vpc-id": lambda m: [account.geography.subnets[m.order.subnet].vpc],
        "image-id": lambda m: [m.order.image],
        "client-token": lambda m: [m.token],
        "reservation-id": lambda m: [m.launch_id],
        "capacity-reservation-id": lambda m: [m.reservation],
        "private-dns-name": lambda m: [f"ip-{m.address.replace('.', '-')}.ec2.internal"],
    }


OPERATIONS: Final[Mapping[str, Operation]] = {
    "RunInstances": Operation(
        run_instances,
        "BlockDeviceMappings CapacityReservationSpecification ClientToken DryRun EbsOptimized IamInstanceProfile"
        " ImageId InstanceInitiatedShutdownBehavior InstanceMarketOptions InstanceType KeyName LaunchTemplate MaxCount"
        " MetadataOptions MinCount Monitoring NetworkInterfaces Placement SecurityGroupIds SubnetId TagSpecifications"
        " UserData PrivateDnsNameOptions",
    ),
    "TerminateInstances": Operation(terminate_instances, "InstanceIds"),
    "DescribeInstances": Operation(describe_instances, "InstanceIds Filters MaxResults NextToken"),
    "DescribeInstanceStatus": Operation(
        describe_instance_status, "InstanceIds IncludeAllInstances MaxResults NextToken"
    ),
    "CreateTags": Operation(create_tags, "Resources Tags"),
    "DeleteTags": Operation(delete_tags, "Resources Tags"),
}
