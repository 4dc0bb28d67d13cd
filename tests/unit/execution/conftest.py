"""What the tests of the executor start with."""

from __future__ import annotations

import pytest

from tests.desk import Desk, new_desk
from tests.unit.execution.node_site import Site


@pytest.fixture
def desk() -> Desk:
    """An empty journal and cloud."""
    return new_desk()


@pytest.fixture
def site() -> Site:
    """One launched and registered node."""
    return Site()
