"""An empty account, and its clock."""

from __future__ import annotations

import pytest

from autoscaler.clock import VirtualClock
from tests.fakes.ec2 import FakeEc2


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def aws(clock: VirtualClock) -> FakeEc2:
    return FakeEc2(clock)
