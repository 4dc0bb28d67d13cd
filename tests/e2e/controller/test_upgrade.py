"""From the version before the last change of the charts to this one and back, in the middle of launches and drains."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES
from tests.e2e.harness.deaths import ALONE, Kwoks, live_through
from tests.e2e.harness.gpu_pods import POOL, TEMPLATE, pod
from tests.e2e.harness.installation import CHARTS, ROOT, Controller, Installation


def before_the_last_change(folder: Path) -> Path:
    """The repository as it was before charts changed the last time."""
    log = ["git", "log", "-n2", "--format=%H", "--", "deploy/charts"]
    commits = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    archive = folder / "before.tar"
    subprocess.run(["git", "archive", "-o", str(archive), commits[-1]], cwd=ROOT, check=True)
    root = folder / "before"
    root.mkdir()
    subprocess.run(["tar", "xf", str(archive), "-C", str(root)], check=True)
    return root


def test_an_upgrade_and_a_rollback_leave_the_nodes_alone(tmp_path: Path) -> None:
    before = before_the_last_change(tmp_path)
    with Installation(tmp_path, charts=before / "deploy/charts") as cluster:
        cluster.apply(POOL + "---" + TEMPLATE)
        cluster.mode("gpu", "Act")
        cluster.apply(pod("work"))
        with cluster.controller("before.log", root=before):
            cluster.wait_until(lambda: cluster.running("work"), "a running pod")
        (node,) = (found["metadata"]["uid"] for found in cluster.api.list(NODES).items)
        cluster.install(CHARTS)
        with cluster.controller("after.log") as controller:
            cluster.apply(pod("next"))
            cluster.wait_until(lambda: cluster.running("work", "next"), "a second pod")
            assert controller.stop() == 0
        there = {found["metadata"]["uid"] for found in cluster.api.list(NODES).items}
        assert node in there
        cluster.roll_back()
        with cluster.controller("back.log", root=before) as controller:
            cluster.apply(pod("last"))
            cluster.wait_until(lambda: cluster.running("work", "next", "last"), "a third pod")
            assert there < {found["metadata"]["uid"] for found in cluster.api.list(NODES).items}
            for name in ("work", "next", "last"):
                cluster.api.delete(PODS, name, namespace="default")
            cluster.wait_until(cluster.is_empty, "no node")
            assert controller.stop() == 0


@pytest.mark.parametrize("killed", [("launch.log",), ("launch.log", "drain.log")], ids=["launch", "drain"])
def test_this_version_takes_over_what_the_one_before_left_half_done(tmp_path: Path, killed: tuple[str, ...]) -> None:
    """The earlier version writes the logs in `killed`, and dies at the end of each; this version writes the others."""
    before = before_the_last_change(tmp_path)
    intended: set[str] = set()
    upgraded = False
    with Installation(tmp_path, charts=before / "deploy/charts") as cluster:

        @contextmanager
        def controller(log: str) -> Iterator[Controller]:
            nonlocal upgraded
            nodes = {found["metadata"]["name"] for found in cluster.api.list(PROVISIONED_NODES).items}
            if log in killed:
                root = before
            else:
                root = ROOT
                if not upgraded:
                    # What the earlier version left is all that there will ever be for these pods.
                    batches = cluster.api.list(LAUNCH_BATCHES).items
                    intended.update(nodes, *(batch["spec"]["nodes"] for batch in batches))
                    cluster.install(CHARTS)
                    upgraded = True
                assert nodes <= intended
            with cluster.controller(log, root=root, **ALONE) as running:
                yield running

        cluster.apply(POOL + "---" + TEMPLATE)
        cluster.mode("gpu", "Act")
        cluster.apply(pod("one") + "---" + pod("two"))
        live_through(cluster, controller, Kwoks(cluster))
        assert intended
