"""A device as expressions see it (k8s.io/dynamic-resource-allocation v0.36.3 cel/compile.go, DeviceMatches).

Converted once per device and dialect; `signature` tells devices apart that no expression can tell apart.
"""

from __future__ import annotations

from functools import lru_cache

from autoscaler.cel.environment import Dialect, View, dialect_of
from autoscaler.cel.values import DefaultMap, Failure, QuantityCell, StringMap, Unknown, Value
from instance_catalog.kubernetes_profile import KubernetesProfile
from instance_catalog.resource_slice import AttributeValue, Device, ListValue, RuntimeOnly, Unset, Version
from instance_catalog.semver import SemanticVersion, SemverError


class DeviceView:
    """The variable `device`. Immutable: evaluations that may change a quantity work on a `fresh` copy."""

    __slots__ = ("_capacity", "failure", "root")

    def __init__(self, root: StringMap, capacity: StringMap, failure: str) -> None:
        self.root = root
        self.failure = failure  # why no expression can be evaluated for this device, or ""
        self._capacity = capacity

    @staticmethod
    def of(driver: str, device: Device, profile: KubernetesProfile) -> DeviceView:
        """The view of a device that `driver` publishes; cached."""
        return _view(driver, device, dialect_of(profile, View.STORED))

    def fresh(self) -> StringMap:
        """The device with quantities of its own."""
        capacity = DefaultMap(
            {
                domain: StringMap({name: QuantityCell(cell.quantity) for name, cell in inner.entries.items()})
                for domain, inner in self._capacity.entries.items()
            }
        )
        return StringMap({**self.root.entries, "capacity": capacity})


@lru_cache(maxsize=65536)
def _view(driver: str, device: Device, dialect: Dialect) -> DeviceView:
    attributes: dict[Value, Value] = {}
    failure = ""
    for name, attribute in device.attributes.items():
        domain, identifier = split_name(name, driver)
        value = _converted(attribute, f"{domain}/{identifier}", dialect)
        if type(value) is Failure:
            failure = failure or f"attribute {name}: {value.message}"
            continue
        attributes.setdefault(domain, StringMap()).entries[identifier] = value
    capacity: dict[Value, Value] = {}
    for name, amount in device.capacity.items():
        domain, identifier = split_name(name, driver)
        capacity.setdefault(domain, StringMap()).entries[identifier] = QuantityCell(amount.value)
    root = StringMap(
        {
            "driver": driver,
            "allowMultipleAllocations": device.allow_multiple_allocations,
            "attributes": DefaultMap(attributes),
            "capacity": DefaultMap(capacity),
        }
    )
    return DeviceView(root, root.entries["capacity"], failure)


def split_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier of a qualified name; without a slash it belongs to the driver's domain."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _converted(attribute: AttributeValue, name: str, dialect: Dialect) -> Value:
    if isinstance(attribute, RuntimeOnly):
        return Unknown(frozenset({name}))
    if isinstance(attribute, Version):
        return _version(attribute.text)
    if isinstance(attribute, Unset):
        return Failure("unsupported attribute value")
    if not isinstance(attribute, ListValue):
        return attribute
    if not dialect.list_values:
        return Failure("unsupported attribute value")
    items = [_version(item.text) if isinstance(item, Version) else item for item in attribute.items]
    return next((item for item in items if type(item) is Failure), items)


def _version(text: str) -> Value:
    try:
        return SemanticVersion.parse(text)
    except SemverError as error:
        return Failure(f"parse semantic version: {error}")
