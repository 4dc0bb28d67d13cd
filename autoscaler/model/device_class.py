"""DeviceClass and DeviceTaintRule (resource.k8s.io)."""

from __future__ import annotations

from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.dataclass import dataclass, field
from instance_catalog.kubernetes.taint import Taint


@dataclass(frozen=True, slots=True)
class Selector:
    """One CEL selector. `expression` is None if the API object has no `cel` (an unsupported selector type)."""

    expression: str | None


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """`created` orders classes with the same extended resource name: the newest wins (KEP-5004)."""

    name: str
    selectors: tuple[Selector, ...] = ()
    extended_resource_name: str | None = None
    created: float = 0.0  # seconds since the epoch; 0 if unknown
    unsupported: tuple[str, ...] = ()
    origin: Origin = field(default=CLUSTER, compare=False)


@dataclass(frozen=True, slots=True)
class DeviceTaintRule:
    """Adds `taint` to matching devices; None selects all of that dimension.

    `has_selector` False means that there is no deviceSelector at all, which Kubernetes releases interpret differently.
    """

    name: str
    taint: Taint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    has_selector: bool = True
    unsupported: tuple[str, ...] = ()
    origin: Origin = field(default=CLUSTER, compare=False)
