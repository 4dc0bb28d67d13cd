"""A fake of EC2, and of what else of AWS a node autoscaler asks, for the real boto3 to talk to.

    aws = FakeEc2(VirtualClock())
    ec2 = aws.client("ec2")                                   # the real SDK; requests end here, not at a socket
    aws.account.stock.limit("p5.48xlarge", "us-east-1a", 2)
    aws.account.block("p5.48xlarge", "us-east-1a", 4, starts_in=timedelta(hours=1), lasts=timedelta(days=1))
    aws.faults.inject("RunInstances", TIMEOUT_AFTER)
    aws.wire.attach(client)                                   # a client that the code under test made
    with Server(aws) as server: ...                           # the same over HTTP on loopback, endpoint_url=server.url

The account is `geography.standard()`: us-east-1 with a subnet in each of four zones, a security group, EKS's images.
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
