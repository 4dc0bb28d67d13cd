"""Volumes in memory: the largest sizeLimit counts."""

from __future__ import annotations

import pytest

from autoscaler.kube.pod import parse_pod
from instance_catalog.kubernetes.quantity import Quantity


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        ([{"medium": "Memory", "sizeLimit": "8Gi"}, {"medium": "Memory", "sizeLimit": "64Gi"}], "64Gi"),
        ([{"medium": "Memory"}, {"sizeLimit": "64Gi"}, {"medium": "Memory", "sizeLimit": "?"}, {}], None),
    ],
)
def test_the_largest_volume_in_memory(volumes: list[dict[str, str]], expected: str | None) -> None:
    named = [{"name": f"v{index}", "emptyDir": one} for index, one in enumerate(volumes)]
    spec = {"containers": [{"name": "c"}], "volumes": named}
    found = parse_pod({"metadata": {"name": "p"}, "spec": spec})
    assert found.memory_volume == (Quantity.parse(expected) if expected else None)
