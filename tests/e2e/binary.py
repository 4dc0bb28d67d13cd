"""The control plane's binary: built once per content of the Go module, kept in a cache outside the repository."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

MODULE = Path(__file__).parent / "controlplane"
SOURCES = ("main.go", "go.mod", "go.sum")


def control_plane_binary() -> Path:
    """Path of the binary. The first build takes 4 to 10 minutes on two cores; processes that ask at once build once."""
    digest = hashlib.sha256(b"".join((MODULE / name).read_bytes() for name in SOURCES)).hexdigest()[:16]
    folder = Path(os.environ.get("FORESLICE_CACHE", Path.home() / ".cache" / "foreslice"))
    binary = folder / f"controlplane-{version()}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            _build(binary)
    return binary


def version() -> str:
    """The Kubernetes version that go.mod requires, such as v1.36.3."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (MODULE / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, "go.mod requires k8s.io/kubernetes"
    return found[1]


def _build(binary: Path) -> None:
    major, minor, _ = version().removeprefix("v").split(".")
    # Unstamped, /version would answer v0.0.0-master.
    stamp = {"gitVersion": version(), "gitMajor": major, "gitMinor": minor}
    flags = " ".join(["-s", "-w", *(f"-X k8s.io/component-base/version.{k}={v}" for k, v in stamp.items())])
    sys.stderr.write(f"building the control plane of Kubernetes {version()}: minutes, once\n")
    partial = binary.with_suffix(".partial")
    subprocess.run(
        ["go", "build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-ldflags", flags, "-o", str(partial), "."],
        cwd=MODULE,
        env={**os.environ, "GOWORK": "off", "CGO_ENABLED": "0"},
        check=True,
    )
    partial.rename(binary)
