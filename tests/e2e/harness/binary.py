"""The control plane's binary."""

from __future__ import annotations

from pathlib import Path

from instance_catalog.dataclass import replace
from tests.go_binary import GoProgram

_MODULE = GoProgram(
    "controlplane",
    Path(__file__).parent / "controlplane",
    requires="k8s.io/kubernetes",
    takes="4 to 10 minutes on two cores",
)


def control_plane_binary() -> Path:
    """Path of the binary, built if need be."""
    return control_plane().binary()


def control_plane() -> GoProgram:
    """The program of all components, and of the oracle's scheduler."""
    major, minor, _ = version().removeprefix("v").split(".")
    # Unstamped, /version would answer v0.0.0-master.
    stamp = {"gitVersion": version(), "gitMajor": major, "gitMinor": minor}
    link = tuple(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())
    return replace(_MODULE, link=link)


def version() -> str:
    """The Kubernetes version that go.mod requires, such as v1.36.3."""
    return _MODULE.version
