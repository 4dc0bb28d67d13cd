"""The options of `gcloud container node-pools create` that copy an existing node pool.

Options with gcloud's default value are left out. Metadata, and settings that gcloud reads from files (Linux, kubelet,
containerd, sole-tenant nodes), are not copied. Sources: GKE API reference v1 (NodeConfig, NodeNetworkConfig,
NodeManagement), and gcloud's options and their defaults, read 2026-11-27.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

_AUTH: Final = "https://www.googleapis.com/auth/"
_DEFAULT_SCOPES: Final = frozenset(
    f"{_AUTH}{name}"
    for name in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
)
# The scopes of a node pool that names a service account.
_ACCOUNT_SCOPES: Final = frozenset((f"{_AUTH}cloud-platform", f"{_AUTH}userinfo.email"))


def kept(found: Mapping[str, Any]) -> tuple[str, ...]:
    """The options, from a node pool as GKE describes it."""
    config, network = found.get("config") or {}, found.get("networkConfig") or {}
    values = (*_of_disks(config), *_of_identity(config), *_of_networks(network), *_of_machines(config))
    switches = (
        ("--enable-gvnic", _within(config, "gvnic", "enabled")),
        ("--enable-fast-socket", _within(config, "fastSocket", "enabled")),
        ("--enable-image-streaming", _within(config, "gcfsConfig", "enabled")),
        ("--shielded-secure-boot", _within(config, "shieldedInstanceConfig", "enableSecureBoot")),
        ("--enable-private-nodes", network.get("enablePrivateNodes")),
        ("--no-enable-autoupgrade", _within(found, "management", "autoUpgrade") is False),
    )
    options = [f"{option} {shlex.quote(str(value))}" for option, value in values if value]
    return (*options, *(option for option, on in switches if on))


def sold_as(config: Mapping[str, Any]) -> Iterator[str]:
    """The option for the capacity of its machines."""
    yield from (option for key, option in (("spot", "--spot"), ("flexStart", "--flex-start")) if config.get(key))
    if config.get("maxRunDuration"):
        yield f"--max-run-duration {config['maxRunDuration']}"
    if _within(config, "reservationAffinity", "consumeReservationType") == "NO_RESERVATION":
        yield "--reservation-affinity none"


def _of_disks(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    size = config.get("diskSizeGb") or _within(config, "bootDisk", "sizeGb")
    yield "--disk-type", config.get("diskType") or _within(config, "bootDisk", "diskType")
    yield "--disk-size", f"{size}GB" if size else ""
    yield "--boot-disk-provisioned-iops", _within(config, "bootDisk", "provisionedIops")
    yield "--boot-disk-provisioned-throughput", _within(config, "bootDisk", "provisionedThroughput")
    yield "--boot-disk-kms-key", config.get("bootDiskKmsKey")
    for option, field in (
        ("--ephemeral-storage-local-ssd", "ephemeralStorageLocalSsdConfig"),
        ("--local-nvme-ssd-block", "localNvmeSsdBlockConfig"),
    ):
        count = _within(config, field, "localSsdCount")
        yield option, f"count={count}" if count else ""


def _of_identity(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    account = str(config.get("serviceAccount", ""))
    own = account if account != "default" else ""
    scopes = frozenset(config.get("oauthScopes") or ())
    yield "--service-account", own
    yield "--scopes", ",".join(sorted(scopes)) if scopes != (_ACCOUNT_SCOPES if own else _DEFAULT_SCOPES) else ""
    yield "--workload-metadata", _within(config, "workloadMetadataConfig", "mode")


def _of_networks(network: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The options for networks. If GKE creates the networks for accelerators, they are not named one by one."""
    profile = network.get("acceleratorNetworkProfile")
    yield "--accelerator-network-profile", profile
    yield "--subnetwork", network.get("subnetwork")
    yield "--pod-ipv4-range", network.get("podRange")
    for one in () if profile else network.get("additionalNodeNetworkConfigs") or ():
        yield "--additional-node-network", f"network={one.get('network')},subnetwork={one.get('subnetwork')}"
    for one in () if profile else network.get("additionalPodNetworkConfigs") or ():
        most = _within(one, "maxPodsPerNode", "maxPodsPerNode")
        more = f",max-pods-per-node={most}" if most else ""
        text = f"subnetwork={one.get('subnetwork')},pod-ipv4-range={one.get('secondaryPodRange')}{more}"
        yield "--additional-pod-network", text


def _of_machines(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The options for machines. Resource labels that begin with goog- belong to GKE and are left out."""
    labels = sorted((config.get("resourceLabels") or {}).items())
    yield "--image-type", config.get("imageType")
    yield "--min-cpu-platform", config.get("minCpuPlatform")
    yield "--tags", ",".join(config.get("tags") or ())
    yield "--labels", ",".join(f"{key}={value}" for key, value in labels if not key.startswith("goog-"))


def _within(found: Mapping[str, Any], name: str, field: str) -> Any:
    return (found.get(name) or {}).get(field)
