"""A gateway that spoils watches in every way keeps no pod waiting: the controller notices, lists, and goes on."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Final

import yaml

from autoscaler.cluster.api import Object
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.resources import CAPACITY_POOLS, LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES
from tests.e2e.controller.test_controller import KINDS, SETTINGS, WORKLOAD, Kubelets, api, names, running
from tests.e2e.harness.control_plane import ControlPlane
from tests.e2e.harness.installation import ACCOUNT, ROOT, Controller
from tests.e2e.harness.proxy import Proxy, Spoil

__all__ = ["api", "running"]  # fixtures: a control plane of this module's own, with Foreslice installed
# Watches that hang are found out by their age; production waits for minutes.
BRISK: Final = {**SETTINGS, "FORESLICE_LOOP_STALE": "6s"}
MODES: Final = (Spoil.PAGE, Spoil.CUT, Spoil.BARE, Spoil.HANG)


def alone(pod: Object, name: str) -> Object:
    """The pod under another name, and not beside its like: each needs a node of its own."""
    apart = {"labelSelector": {"matchLabels": {"app": "work"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    metadata = {**pod["metadata"], "name": name, "labels": {"app": "work"}}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "affinity": affinity}}


def test_spoiled_watches_keep_nobody_waiting(running: ControlPlane, api: KubernetesClient, tmp_path: Path) -> None:
    kubelets = Kubelets(api)
    template, pod = yaml.safe_load_all(WORKLOAD)
    api.create(KINDS["ResourceClaimTemplate"], template)
    api.patch(CAPACITY_POOLS, "gpu", {"spec": {"mode": "Act", "limits": {"nodes": len(MODES)}}})
    with Proxy(running.identity(ACCOUNT), tmp_path / "through").serving() as proxy:
        command = ["autoscaler.cli", "run", "--kubeconfig", str(proxy.kubeconfig)]
        acting = Controller(command, tmp_path / "log", BRISK, root=ROOT)
        try:
            running.wait_until(lambda: _ready(acting), f"a first round\n{acting.log}")
            for mode in MODES:
                proxy.spoil(mode)
                name = f"work-{mode.name.lower()}"
                api.create(PODS, alone(pod, name))
                running.wait_until(
                    lambda mode=mode: proxy.met[mode] > 0, f"{mode.value} is met", found=lambda: acting.log
                )
                proxy.heal()

                def runs(name: str = name) -> bool:
                    kubelets.step()
                    return bool(api.get(PODS, name, namespace="default")["status"]["phase"] == "Running")

                running.wait_until(runs, f"a running pod after {mode.value}", found=lambda: acting.log[-3000:])
            assert len(names(api, NODES)) == len(MODES)
            assert acting.answer("probes", "/healthz").text == "ok"
            ages = re.findall(
                r'^foreslice_informer_age_seconds\{resource="(.+)"\} (\S+)$', _metrics(acting), re.MULTILINE
            )
            assert {"pods", "nodes", "provisionednodes.foreslice.dev"} <= {resource for resource, _ in ages}
            assert max(float(age) for _, age in ages) < 30
            for mode in MODES:
                api.delete(PODS, f"work-{mode.name.lower()}", namespace="default")

            def empty() -> bool:
                kubelets.step()
                return names(api, NODES, PODS, PROVISIONED_NODES, LAUNCH_BATCHES) == []

            running.wait_until(empty, "an empty cluster", found=lambda: acting.log[-3000:])
            assert acting.stop() == 0
            assert '"event": "watch_failed"' in acting.log
            assert "Traceback" not in acting.log
        finally:
            acting.stop(signal.SIGKILL)


def _ready(acting: Controller) -> bool:
    return '"serves": "probes"' in acting.log and acting.answer("probes", "/readyz").status_code == 200


def _metrics(acting: Controller) -> str:
    return acting.answer("metrics", "/metrics").text
