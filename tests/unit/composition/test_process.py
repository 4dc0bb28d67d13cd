"""What the process is put together from."""

from __future__ import annotations

import pytest

from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import NODES
from autoscaler.composition.build import leaders_only
from tests.desk import new_desk

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def test_a_replica_that_does_not_lead_any_more_reads_and_writes_nothing() -> None:
    leading = True
    desk = new_desk()
    api = leaders_only(desk.api, lambda: leading)
    api.create(NODES, NODE)
    leading = False
    for write in (
        lambda: api.patch(NODES, "n1", {"metadata": {"labels": {"a": "b"}}}),
        lambda: api.delete(NODES, "n1"),
        lambda: api.update(NODES, NODE),
        lambda: api.evict("p", namespace="default"),
    ):
        with pytest.raises(LeadershipLostError):
            write()
    assert "labels" not in api.get(NODES, "n1")["metadata"]
