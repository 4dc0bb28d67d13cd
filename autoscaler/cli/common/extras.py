"""Packages that only some commands need, and the extra of foreslice that installs each of them."""

from __future__ import annotations

from typing import Final

from autoscaler.errors import ConfigurationError

_EXTRAS: Final = {
    "grpc": "grpc",
    "kubernetes": "cluster",
    "opentelemetry": "tracing",
    "pynvml": "probe",
    "urllib3": "cluster",
}


def missing_extra(error: ModuleNotFoundError) -> ConfigurationError | None:
    """The error that names the extra of a missing module; None for a module of no extra."""
    from instance_catalog.types.clouds import cloud_facts  # reads files, and is needed only here

    package = (error.name or "").partition(".")[0]
    clouds = {name: cloud for cloud, facts in cloud_facts().items() for name in facts.sdk}
    extra = _EXTRAS.get(package) or clouds.get(package)
    if extra is None:
        return None
    return ConfigurationError(
        f"this command needs the package {package}, which is not installed",
        next_step=f"pip install 'foreslice[{extra}]'",
    )
