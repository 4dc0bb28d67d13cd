"""Helm and KWOK, built once from Go modules: the real tools that a user has beside the cluster."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Final

from tests.go_binary import GoProgram

_MODULE: Final = Path(__file__).parent / "tools"
_HELM: Final = GoProgram(
    "helm", _MODULE, requires="helm.sh/helm/v3", takes="about a minute", package="helm.sh/helm/v3/cmd/helm"
)
_KWOK: Final = GoProgram(
    "kwok", _MODULE, requires="sigs.k8s.io/kwok", takes="about two minutes", package="sigs.k8s.io/kwok/cmd/kwok"
)
# What a node and its pods go through when nothing takes time, as KWOK's installation guide has it.
_STAGES: Final = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat/node-heartbeat.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-delete.yaml",
)
# Pods of Jobs end as soon as they run.
_ENDING: Final = "pod/fast/pod-complete.yaml"


def helm(*arguments: str, kubeconfig: Path | None = None) -> str:
    """The output of a Helm command. Raises AssertionError with what it said when it fails."""
    where = [] if kubeconfig is None else ["--kubeconfig", str(kubeconfig)]
    done = subprocess.run([str(_HELM.binary()), *arguments, *where], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"helm {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout


class Kwok:
    """KWOK as a process, for nodes with its annotation. A context manager."""

    def __init__(self, kubeconfig: Path, log: Path, *, jobs_end: bool = True) -> None:
        self._kubeconfig = kubeconfig
        self._log = log
        self._stages = (*_STAGES, _ENDING) if jobs_end else _STAGES

    def __enter__(self) -> Kwok:
        source = downloaded(_MODULE, "sigs.k8s.io/kwok")
        stages = [f"--config={source}/kustomize/stage/{name}" for name in self._stages]
        flags = [
            f"--kubeconfig={self._kubeconfig}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            # With Leases KWOK 0.8.0 skips a pod that it reads before its own watch tells it that it holds the node's
            # Lease, and never looks at that pod again (pkg/kwok/controllers: NodeLeaseController.Held).
            "--node-lease-duration-seconds=0",
        ]
        # KWOK 0.8.0 registers types for CEL in a map of its library that its node and pod controllers write at the same
        # time (easycel v0.6.0, getTypeValue): Go then ends the program. On one processor they take turns.
        one = {**os.environ, "GOMAXPROCS": "1"}
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(_KWOK.binary()), *flags, *stages], stdout=output, stderr=output, env=one
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def log_end(self) -> str:
        """The last 2,000 characters that KWOK logged."""
        return self._log.read_text(errors="replace")[-2000:]


def downloaded(folder: Path, module: str) -> str:
    """Where Go keeps a module that the one in `folder` requires: stages, charts and definitions come with the code.

    Fetched anew where only the program is kept.
    """
    query = ["go", "mod", "download", "-json", module]
    done = subprocess.run(query, cwd=folder, capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout)["Dir"])
