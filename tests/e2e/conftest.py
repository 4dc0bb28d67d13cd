"""One control plane for all tests that only ask it questions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.control_plane import ControlPlane


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Kubernetes with default gates."""
    with ControlPlane() as running:
        yield running
