"""What the tests of the fake share: an account on a virtual clock, and how they ask."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.fakes.ec2 import FakeEc2

ZONE = "us-east-1a"


def subnet(aws: FakeEc2, zone: str = ZONE) -> str:
    """The subnet of a zone."""
    return next(found.id for found in aws.account.geography.subnets.values() if found.zone == zone)


def image(aws: FakeEc2, architecture: str = "x86_64") -> str:
    """An image of an architecture."""
    return next(found.id for found in aws.account.geography.images.values() if found.architecture == architecture)


def template(aws: FakeEc2, **data: Any) -> str:
    """A launch template; `data` on top of an image and a type."""
    given = {"ImageId": image(aws), "InstanceType": "p5.48xlarge"} | data
    name = f"template-{len(aws.account.templates)}"
    answer = aws.client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData=given)
    return str(answer["LaunchTemplate"]["LaunchTemplateId"])


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    """AWS's code of an error."""
    return str(error.value.response["Error"]["Code"])
