"""From the version before the last change of the charts to this one and back, while nodes are in use."""

from __future__ import annotations

import subprocess
from pathlib import Path

from autoscaler.cluster.resources import NODES, PODS
from tests.e2e.installation import CHARTS, ROOT, Installation
from tests.e2e.test_installation import POOL, TEMPLATE, pod


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
