"""A device in the form for expressions (k8s.io/dynamic-resource-allocation v0.36.3 cel/compile.go, DeviceMatches).

Converted once per device and dialect. A view lives as long as one of its devices: the nodes of a cluster change for
months, and views of former nodes must not remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from autoscaler.cel.checker.environment import Dialect, View, dialect_of
from autoscaler.cel.common.outcome import Evaluation
from autoscaler.cel.common.values import DefaultMap, Failure, QuantityCell, StringMap, Unknown, Value
from autoscaler.cel.library.comparison import equal
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    Device,
    ListValue,
    RuntimeOnly,
    Unset,
    Version,
)
from instance_catalog.kubernetes.semver import SemanticVersion, SemverError


class DeviceView:
    """The variable `device`. Its values never change: evaluations that may change a quantity use a `fresh` copy.

    `answers` caches evaluations by program, so that equal devices are evaluated once.
    """

    __slots__ = ("__weakref__", "answers", "failure", "root")

    def __init__(self, root: StringMap, failure: str) -> None:
        self.root = root
        self.failure = failure  # the reason why no expression can be evaluated for this device, or ""
        self.answers: dict[object, Evaluation] = {}

    @staticmethod
    def of(driver: str, device: Device, profile: KubernetesProfile) -> DeviceView:
        """The view of a device that `driver` publishes; devices that no expression can distinguish share one."""
        return DeviceView.read(driver, device, dialect_of(profile, View.STORED))

    @staticmethod
    def read(driver: str, device: Device, dialect: Dialect) -> DeviceView:
        """The same for callers that read many devices and keep the dialect."""
        found = device.derived.get((driver, dialect))
        if type(found) is DeviceView:
            return found
        view = device.derived[driver, dialect] = DeviceView._shared(driver, device, dialect)
        return view

    @staticmethod
    def _shared(driver: str, device: Device, dialect: Dialect) -> DeviceView:
        amounts = device.capacity
        # The text that a quantity keeps identifies it, and most keep it.
        values = [amount.value for amount in amounts.values()]
        forms = tuple([value.text or value.form for value in values])
        key = driver, device.attributes, amounts, device.allow_multiple_allocations, dialect, forms
        view = _VIEWS.get(key)
        if view is None:
            view = _VIEWS[key] = _view(*key[:-1])
        return view

    def chosen(self, names: Iterable[str], most: int) -> tuple[DeviceView, ...]:
        """The device with every combination of possible values of the attributes with these names that have choices.

        () if there is none with choices, or more than `most` combinations.
        """
        domains = self.root.entries["attributes"].entries
        places: list[tuple[Value, Value, tuple[Value, ...]]] = []
        for name in sorted(names):
            domain, _, identifier = name.partition("/")
            value = domains[domain].entries.get(identifier) if domain in domains else None
            if type(value) is Unknown and value.choices:
                places.append((domain, identifier, value.choices))
        if not places or prod(len(choices) for _, _, choices in places) > most:
            return ()
        return tuple(self._with(places, values) for values in product(*(choices for _, _, choices in places)))

    def _with(self, places: Sequence[tuple[Value, Value, object]], values: Sequence[Value]) -> DeviceView:
        domains = {domain: dict(inner.entries) for domain, inner in self.root.entries["attributes"].entries.items()}
        for (domain, identifier, _), value in zip(places, values, strict=True):
            domains[domain][identifier] = value
        attributes = DefaultMap({domain: StringMap(inner) for domain, inner in domains.items()})
        return DeviceView(StringMap({**self.root.entries, "attributes": attributes}), self.failure)

    def fresh(self) -> StringMap:
        """The device with quantities of its own."""
        capacity = DefaultMap(
            {domain: StringMap(_fresh(inner)) for domain, inner in self.root.entries["capacity"].entries.items()}
        )
        return StringMap({**self.root.entries, "capacity": capacity})


def _fresh(amounts: StringMap) -> dict[Value, Value]:
    return {
        name: QuantityCell(cell.quantity) if type(cell) is QuantityCell else cell
        for name, cell in amounts.entries.items()
    }


_Key: TypeAlias = tuple[
    str, FrozenMap[str, AttributeValue], FrozenMap[str, Capacity], bool, Dialect, tuple[object, ...]
]
# The last part of a key is the forms of the quantities: they compare by value, but isInteger() distinguishes 1000m and
# 1.
_VIEWS: Final[WeakValueDictionary[_Key, DeviceView]] = WeakValueDictionary()


def _view(
    driver: str,
    published: FrozenMap[str, AttributeValue],
    amounts: FrozenMap[str, Capacity],
    multiple: bool,  # noqa: FBT001 - a part of the key
    dialect: Dialect,
) -> DeviceView:
    attributes: dict[Value, Value] = {}
    failure = ""
    for name, attribute in published.items():
        domain, identifier = split_name(name, driver)
        value: Value = attribute
        if type(attribute) not in _AS_PUBLISHED:
            value = _converted(attribute, f"{domain}/{identifier}", dialect)
        if type(value) is Failure:
            failure = failure or f"attribute {name}: {value.message}"
            continue
        _publish(attributes, domain, identifier, value)
    capacity: dict[Value, Value] = {}
    for name, amount in amounts.items():
        domain, identifier = split_name(name, driver)
        # A predicted amount without a source decides only by its bounds.
        known = _guessed(domain, identifier, amount) if amount.guess else QuantityCell(amount.value)
        _publish(capacity, domain, identifier, known)
    root = StringMap(
        {
            "driver": driver,
            "allowMultipleAllocations": multiple,
            "attributes": DefaultMap(attributes),
            "capacity": DefaultMap(capacity),
        }
    )
    return DeviceView(root, failure)


def _guessed(domain: str, identifier: str, amount: Capacity) -> Unknown:
    return Unknown(frozenset({f"{domain}/{identifier}"}), bounds=amount.bounds)


def _publish(groups: dict[Value, Value], domain: str, identifier: str, value: Value) -> None:
    """Store a value. A device may publish x and <driver>/x: Kubernetes reads one of them at random."""
    group = groups.get(domain)
    if group is None:
        group = groups[domain] = StringMap()
    entries = group.entries
    if identifier in entries and equal(entries[identifier], value) is not True:
        name = f"{domain}/{identifier}"
        value = Unknown(frozenset({name}), f"{name} is published twice with different values; Kubernetes reads either")
    entries[identifier] = value


@lru_cache(maxsize=4096)
def split_name(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier of a qualified name; a name without a slash belongs to the driver's domain."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


# Attributes of these types are values of expressions as they are.
_AS_PUBLISHED: Final = frozenset({str, int, bool})


def _converted(attribute: AttributeValue, name: str, dialect: Dialect) -> Value:
    if isinstance(attribute, RuntimeOnly):
        return Unknown(frozenset({name}), choices=tuple(_converted(one, name, dialect) for one in attribute.one_of))
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


@lru_cache(maxsize=4096)
def _version(text: str) -> Value:
    try:
        return SemanticVersion.parse(text)
    except SemverError as error:
        return Failure(f"parse semantic version: {error}")
