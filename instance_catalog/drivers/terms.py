"""The other properties of a driver than devices: the DeviceClasses of its chart, and the claims it refuses.

The same for shipped drivers and those that a catalog file describes. Knows neither.
"""

from __future__ import annotations

from typing import Final

from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeviceClassFacts:
    """A DeviceClass that a driver's chart installs. `selectors` are CEL expressions.

    `profile`: the driver profile that publishes such devices, where those that are offered by default do not.
    """

    name: str
    selectors: tuple[str, ...]
    extended_resource_name: str | None
    source: str
    profile: str = ""


@dataclass(frozen=True, slots=True)
class PrepareRules:
    """The requests that a driver refuses after scheduling, when the kubelet prepares a claim."""

    all_devices_of_node: bool = False  # a claim must hold every device the driver published on the node
    one_compute_domain_per_node: bool = False  # channels of two ComputeDomains cannot share a node
    one_value_on_node: str = ""  # attribute in which all devices in use on a node agree
    configured_device: str = ""  # the device for which a claim needs opaque configuration, which kube-scheduler lacks


NOTHING_REFUSED: Final = PrepareRules()
