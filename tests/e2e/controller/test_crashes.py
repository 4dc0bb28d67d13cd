"""The controller killed with SIGKILL in the middle of each operation, with machines of KWOK; test_aws.py has EC2's."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from autoscaler.cluster.resources import NODES
from tests.e2e.controller.test_installation import POOL, TEMPLATE, pod
from tests.e2e.harness.deaths import ALONE, live_through
from tests.e2e.harness.installation import Installation


class Kwoks:
    """KWOK's machines are Nodes from the beginning."""

    def __init__(self, cluster: Installation) -> None:
        self._cluster = cluster

    def join(self) -> None:
        """They have."""

    def ids(self) -> list[str]:
        """All Nodes."""
        return sorted(found["spec"]["providerID"] for found in self._cluster.api.list(NODES).items)


def test_killed_in_a_launch_a_drain_and_a_termination(tmp_path: Path) -> None:
    with Installation(tmp_path) as cluster:
        cluster.apply(POOL + "---" + TEMPLATE)
        cluster.mode("gpu", "Act")
        cluster.apply(pod("one") + "---" + pod("two"))
        live_through(cluster, partial(cluster.controller, **ALONE), Kwoks(cluster))
