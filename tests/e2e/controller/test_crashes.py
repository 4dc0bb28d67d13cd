"""The controller killed with SIGKILL in the middle of each operation, with machines of KWOK; test_aws.py has EC2's."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.e2e.harness.deaths import ALONE, Kwoks, live_through
from tests.e2e.harness.gpu_pods import POOL, TEMPLATE, pod
from tests.e2e.harness.installation import Installation


def test_killed_in_a_launch_a_drain_and_a_termination(tmp_path: Path) -> None:
    with Installation(tmp_path) as cluster:
        cluster.apply(POOL + "---" + TEMPLATE)
        cluster.mode("gpu", "Act")
        cluster.apply(pod("one") + "---" + pod("two"))
        live_through(cluster, partial(cluster.controller, **ALONE), Kwoks(cluster))
