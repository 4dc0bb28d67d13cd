"""A cluster in which a pod waits for a GPU."""

from __future__ import annotations

import pytest

from tests.unit.externalgrpc.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """A pod waits for a GPU, and the service has seen it."""
    made = Cluster()
    made.run(seconds=30)
    return made
