"""A fake of EC2, and of what else of AWS a node autoscaler asks, for the real boto3 to talk to.

    aws = FakeEc2(VirtualClock())
    ec2 = aws.client("ec2")                                   # the real SDK; requests end here, not at a socket
    aws.account.stock.limit("p5.48xlarge", "us-east-1a", 2)
    aws.account.block("p5.48xlarge", "us-east-1a", 4, starts_in=timedelta(hours=1), lasts=timedelta(days=1))
    aws.faults.inject("RunInstances", TIMEOUT_AFTER)
    aws.wire.attach(client)                                   # a client that the code under test made
    with Server(aws) as server: ...                           # the same over HTTP on loopback, endpoint_url=server.url

The account is `geography.standard()`: us-east-1 with a subnet in each of four zones, a security group, EKS's images.

Every request is parsed and every answer written by botocore's service models, so neither can have a member or a type
that AWS does not have. Parameters that an operation here does not heed are refused (error NotInTheFake, status 501).

Where AWS's documentation is silent, the fake assumes: a launch that failed does not use its token up; an instant fleet
that launched nothing neither; launching into a reservation that is full, not active, or about to be reclaimed is
ReservationCapacityExceeded; request rates are shared by all operations of a category.

What it does not do:
- other services' rates than EC2's; IAM beyond `denied` (a list of actions); signatures are read, never verified
- stopping, hibernating and rebooting; volumes, addresses and interfaces as things of their own; several VPCs' routing
- fleets that are not instant, that span two markets, or that choose types by attributes; weighted capacities
- spot prices that move; bids; a spot fleet's allocation strategies beyond the order of price or priority
- capacity reservations in resource groups, in fleets of their own, shared by us, or moved; adjusting interruptible ones
- future-dated reservations assess nobody: a test sets `Holding.override`, also for `delayed`, `unavailable` and others
- when blocks may begin and end (11:30 UTC): a test sells what it likes
- Auto Scaling: warm pools, policies, mixed instances, lifecycle hooks, rebalancing between zones; EKS: anything but
  describing the cluster "test" and node groups, and the scale-down 40 minutes before a block's end
- EventBridge rules: every queue gets every event; SQS's long polling returns at once
"""

from __future__ import annotations

from tests.fakes.ec2.fake import FakeEc2
from tests.fakes.ec2.faults import (
    CUT_AFTER,
    CUT_BEFORE,
    INTERNAL_ERROR,
    INTERNAL_ERROR_AFTER,
    THROTTLED,
    TIMEOUT_AFTER,
    TIMEOUT_BEFORE,
    UNAVAILABLE,
    Fault,
    refused,
)
from tests.fakes.ec2.machines import PROMPT, SLUGGISH, Behaviour
from tests.fakes.ec2.transport import Server, Wire

__all__ = [
    "CUT_AFTER",
    "CUT_BEFORE",
    "INTERNAL_ERROR",
    "INTERNAL_ERROR_AFTER",
    "PROMPT",
    "SLUGGISH",
    "THROTTLED",
    "TIMEOUT_AFTER",
    "TIMEOUT_BEFORE",
    "UNAVAILABLE",
    "Behaviour",
    "FakeEc2",
    "Fault",
    "Server",
    "Wire",
    "refused",
]
