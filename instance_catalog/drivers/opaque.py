"""The checks of gpu.nvidia.com on the opaque configuration of a claim that hold in every release and for all gates.

Rules of kubernetes-sigs/dra-driver-nvidia-gpu at 9593204: api/nvidia.com/resource/v1beta1 (validate.go, sharing.go, the
strict decoder) and cmd/gpu-kubelet-plugin/device_state.go. They are applied when the kubelet prepares the claim. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from instance_catalog.kubernetes.quantity import Quantity, QuantityError

DRIVER: Final = "gpu.nvidia.com"
# The driver of IMEX channels and ComputeDomains; its devices are no hardware.
CHANNEL_DRIVER: Final = "compute-domain.nvidia.com"
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
API_VERSION: Final = "resource.nvidia.com/v1beta1"
# kubernetes-sigs/dra-example-driver, api/example.com/resource/gpu/v1alpha1, and its class gpu.example.com.
_EXAMPLE_GROUP: Final = "gpu.resource.example.com/"
_INTERVALS: Final = ("Default", "Short", "Medium", "Long")
_MPS_FIELDS: Final = (
    "defaultActiveThreadPercentage",
    "defaultPinnedDeviceMemoryLimit",
    "defaultPerDevicePinnedMemoryLimit",
    "multiUser",
)
# Kind of a configuration → the fields of its `sharing`, by strategy; None: it has no `sharing`.
_SETTINGS: Final = {"TimeSlicing": "timeSlicingConfig", "MPS": "mpsConfig"}
_SHARING: Final = {
    "GpuConfig": ("strategy", "timeSlicingConfig", "mpsConfig"),
    "MigDeviceConfig": ("strategy", "mpsConfig"),
}
_OTHER_FIELDS: Final = {"VfioDeviceConfig": ("iommu",)}
_LEAST_LIMIT: Final = 2**20
_UUID: Final = ("GPU-", "MIG-")


def refused(parameters: str) -> str:
    """The errors in the JSON text for which the driver refuses it, all at once, or "" if none is certain. The driver
    itself stops at the first.

    >>> refused('{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {"strategy": "Mps"}}')
    'sharing.strategy is Mps; the driver knows TimeSlicing, MPS'
    """
    try:
        found = json.loads(parameters)
    except ValueError:
        return "it is no JSON, and the driver reads an object"
    if not isinstance(found, dict):
        return "it is not an object, and the driver reads one"
    return "; ".join(_problems(found))


def with_version(parameters: str) -> tuple[str, str]:
    """The JSON text with the version that the driver reads, and the version that it has; two empty texts where that is
    not all that is wrong. What the example driver shares is not what this one does.

    >>> with_version('{"apiVersion": "gpu.nvidia.com/v1alpha1", "kind": "GpuConfig"}')
    ('{"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}', 'gpu.nvidia.com/v1alpha1')
    """
    try:
        found = json.loads(parameters)
    except ValueError:
        return "", ""
    version = found.get("apiVersion") if isinstance(found, dict) else None
    if not isinstance(version, str) or version.startswith(_EXAMPLE_GROUP) or version == API_VERSION:
        return "", ""
    written = json.dumps({**found, "apiVersion": API_VERSION})
    return ("", "") if refused(written) else (written, version)


def strategy(parameters: str) -> str:
    """The strategy of `sharing` in a configuration, or nothing."""
    try:
        found = json.loads(parameters)
    except ValueError:
        return ""
    sharing = found.get("sharing") if isinstance(found, dict) else None
    name = sharing.get("strategy") if isinstance(sharing, dict) else None
    return name if isinstance(name, str) else ""


def _problems(config: Mapping[str, Any]) -> Iterator[str]:
    version, kind = config.get("apiVersion"), config.get("kind")
    kinds = (*_SHARING, *_OTHER_FIELDS)
    if isinstance(version, str) and version.startswith(_EXAMPLE_GROUP):
        yield (
            f"apiVersion is {version}, which is for the example driver of Kubernetes: for its devices, claim class "
            "gpu.example.com; for NVIDIA's GPUs, drop spec.devices.config"
        )
        return
    if version != API_VERSION:
        yield f"apiVersion is {version or 'missing'}; the driver reads {API_VERSION}"
    if not isinstance(kind, str) or kind not in kinds:
        yield f"kind is {kind or 'missing'}; the driver reads {', '.join(kinds)}"
        return
    yield from _unknown(config, ("apiVersion", "kind", *_OTHER_FIELDS.get(kind, ("sharing",))), "")
    sharing = config.get("sharing")
    if sharing is not None and kind in _SHARING:
        yield from _of_sharing(sharing, _SHARING[kind])


def _of_sharing(sharing: object, fields: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(sharing, dict):
        yield "sharing is not an object"
        return
    yield from _unknown(sharing, fields, "sharing.")
    chosen = sharing.get("strategy")
    if not isinstance(chosen, str) or chosen not in _SETTINGS:
        yield f"sharing.strategy is {chosen or 'missing'}; the driver knows {', '.join(_SETTINGS)}"
        return
    for other, field in _SETTINGS.items():
        if other != chosen and sharing.get(field) is not None and "timeSlicingConfig" in fields:
            yield f"sharing.{field} cannot be used with strategy {chosen}"
    settings = sharing.get(_SETTINGS[chosen])
    if settings is not None and not isinstance(settings, dict):
        yield f"sharing.{_SETTINGS[chosen]} is not an object"
    elif settings:
        yield from (_of_intervals if chosen == "TimeSlicing" else _of_mps)(settings)


def _of_intervals(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown(settings, ("interval",), "sharing.timeSlicingConfig.")
    interval = settings.get("interval")
    if interval is not None and interval not in _INTERVALS:
        yield f"sharing.timeSlicingConfig.interval is {interval}; the driver knows {', '.join(_INTERVALS)}"


def _of_mps(settings: Mapping[str, Any]) -> Iterator[str]:
    place = "sharing.mpsConfig."
    yield from _unknown(settings, _MPS_FIELDS, place)
    share = settings.get("defaultActiveThreadPercentage")
    if share is not None and (isinstance(share, bool) or not isinstance(share, int) or not 0 <= share <= 100):
        yield f"{place}defaultActiveThreadPercentage is {share}; it must be a whole number from 0 to 100"
    limit = settings.get("defaultPinnedDeviceMemoryLimit")
    if limit is not None:
        yield from _of_limit(f"{place}defaultPinnedDeviceMemoryLimit", limit)
    limits = settings.get("defaultPerDevicePinnedMemoryLimit")
    for device, one in limits.items() if isinstance(limits, dict) else ():
        name = f"{place}defaultPerDevicePinnedMemoryLimit"
        if not device.isdecimal() and not device.startswith(_UUID):
            yield f"{name} names device {device}; it must be a number from 0 or the UUID of a device"
        yield from _of_limit(f"{name}[{device}]", one)


def _of_limit(name: str, value: object) -> Iterator[str]:
    try:
        amount = Quantity.parse(str(value))
    except QuantityError:
        yield f"{name} is {value}, which is not a quantity"
        return
    if amount.value < _LEAST_LIMIT:
        yield f"{name} is {value}; the least is 1Mi"


def _unknown(found: Mapping[str, Any], known: tuple[str, ...], place: str) -> Iterator[str]:
    extra = sorted(set(found) - set(known))
    if extra:
        fields = " or ".join(f"{place}{name}" for name in extra)
        yield f"the driver knows no field {fields}, but {', '.join(known)}"
