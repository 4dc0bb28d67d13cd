"""Auto Scaling groups and managed node groups: a size that AWS keeps, at moments of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from tests.fakes.ec2.account import Account
from tests.fakes.ec2.calls.orders import merged, order_of, places_for, start
from tests.fakes.ec2.errors import ApiError
from tests.fakes.ec2.machines import Machine, Order

# EKS puts a scheduled action on node groups of Capacity Blocks that scales them to zero so long before the end.
SCALE_DOWN_BEFORE_END: Final = timedelta(minutes=40)
# How often a group tries again what failed.
RETRY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Activity:
    """A scaling activity."""

    id: str
    at: datetime
    description: str
    status: str
    message: str = ""


@dataclass
class Group:
    """A group with one launch template. `cluster` and `node_group` are set for managed node groups.

    `reservation`: the block whose end scales the group to zero.
    """

    name: str
    template: dict[str, Any]
    subnets: list[str]
    created_at: datetime
    minimum: int = 0
    maximum: int = 100
    desired: int = 0
    instance_type: str = ""
    cluster: str = ""
    node_group: str = ""
    capacity_type: str = "ON_DEMAND"
    reservation: str = ""
    tags: dict[str, tuple[str, bool]] = field(default_factory=dict)  # value, and whether instances get it
    activities: list[Activity] = field(default_factory=list)
    failed_at: datetime | None = None

    def order(self, account: Account, subnet: str) -> Order:
        """What the group launches in a subnet. Raises the template's configuration errors."""
        launch, tags = merged(account, {"LaunchTemplate": self.template})
        launch |= {"InstanceType": self.instance_type} if self.instance_type else {}
        if "NetworkInterfaces" in launch:
            launch["NetworkInterfaces"] = [dict(i, SubnetId=subnet) for i in launch["NetworkInterfaces"]]
        else:
            launch["SubnetId"] = subnet
        return order_of(account, launch, tags)


class Groups:
    """All groups of the account, by name."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.by_name: dict[str, Group] = {}

    def add(self, name: str, template: dict[str, Any], subnets: list[str], **details: Any) -> Group:
        """A group, as if somebody had made it before the test; `details` are fields of Group."""
        group = Group(name, template, subnets, self._account.now, **details)
        self.by_name[name] = group
        return group

    def members(self, group: Group) -> list[Machine]:
        """Its machines that have not begun to shut down."""
        now = self._account.now
        return [m for m in self._account.machines.values() if m.group == group.name and m.alive(now)]

    def catch_up(self) -> None:
        """Let every group come to its size."""
        for group in self.by_name.values():
            self._end_of_block(group)
            missing = group.desired - len(self.members(group))
            waiting = group.failed_at is not None and self._account.now < group.failed_at + RETRY
            if missing > 0 and not waiting:
                self._grow(group, missing)
            elif missing < 0:
                self._shrink(group, -missing)

    def _end_of_block(self, group: Group) -> None:
        holding = self._account.holdings.get(group.reservation)
        end = None if holding is None else holding.end(self._account.now)
        if end is not None and self._account.now >= end - SCALE_DOWN_BEFORE_END:
            group.minimum = group.desired = 0

    def _grow(self, group: Group, missing: int) -> None:
        error: ApiError | None = None
        for subnet in group.subnets:
            try:
                started = self.launch(group, subnet, missing)
            except ApiError as found:
                error = found
                continue
            missing -= len(started)
            if missing == 0:
                break
        group.failed_at = self._account.now if missing else None
        if missing and error is not None:
            text = (
                f"Could not launch On-Demand Instances. {error.code} - {error.message} Launching EC2 instance failed."
            )
            self.note(group, "Launching a new EC2 instance.", "Failed", text)

    def launch(self, group: Group, subnet: str, count: int, *, token: str = "") -> list[Machine]:
        """Machines of the group in one of its subnets, as many as there are; raises why there are none."""
        account = self._account
        order = group.order(account, subnet)
        places = places_for(account, order)
        machines = start(account, order, places, min(count, sum(room for _, room in places)), token=token)
        for machine in machines:
            machine.group = group.name
            machine.tags |= {key: value for key, (value, spreads) in group.tags.items() if spreads}
            machine.tags["aws:autoscaling:groupName"] = group.name
            self.note(group, f"Launching a new EC2 instance: {machine.id}", "Successful")
        return machines

    def _shrink(self, group: Group, surplus: int) -> None:
        """AWS chooses which; the oldest here. An adapter that minds says which itself."""
        for machine in self.members(group)[:surplus]:
            self.end(group, machine)

    def end(self, group: Group, machine: Machine) -> Activity:
        """Terminate a member."""
        machine.end(
            self._account.now, "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: terminated by group"
        )
        return self.note(group, f"Terminating EC2 instance: {machine.id}", "InProgress")

    def note(self, group: Group, description: str, status: str, message: str = "") -> Activity:
        """Write an activity down."""
        activity = Activity(self._account.new_id("activity"), self._account.now, description, status, message)
        group.activities.insert(0, activity)
        return activity
