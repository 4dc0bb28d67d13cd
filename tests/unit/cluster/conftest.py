"""An empty journal with its cloud, and a clock."""

from __future__ import annotations

import pytest

from autoscaler.clock import VirtualClock
from tests.desk import Desk, new_desk


@pytest.fixture
def desk() -> Desk:
    return new_desk()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()
