"""The Catalog: all instance types that can be bought, as one value with lookups, filters and orders.

Pure. loader.py reads and checks files; outside tests, it alone makes catalogs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final

from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.spelling import completed, question
from instance_catalog.types.instance_type import ANY_ZONE, Accelerator, InstanceType, Offering

_NO_PRICE: Final = Decimal("Infinity")
_NO_MEMORY: Final = Quantity.of(0)


class UnknownInstanceTypeError(LookupError):
    """A name that is not in the catalog; the message has the nearest ones and what to do."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """Instance types by name, and the accelerators they refer to by key. `digest` identifies the content.

    `drivers` are those that the files describe beside the shipped ones, by profile name; every type carries them too.
    """

    types: FrozenMap[str, InstanceType]
    accelerators: FrozenMap[str, Accelerator]
    digest: str
    drivers: FrozenMap[str, CustomDriver] = field(default_factory=FrozenMap)

    @staticmethod
    def of(
        types: Iterable[InstanceType],
        accelerators: Iterable[Accelerator] = (),
        drivers: Iterable[CustomDriver] = (),
    ) -> Catalog:
        """A catalog of these types, in the order of their names. Accelerators that types carry need not be repeated."""
        described = FrozenMap({d.name: d for d in sorted(drivers, key=lambda d: d.name)})
        given = (replace(t, custom_drivers=described) for t in types) if described else types
        ordered = sorted(given, key=lambda t: t.name)
        known = {a.key: a for a in accelerators}
        for instance_type in ordered:
            if instance_type.accelerator is not None:
                known.setdefault(instance_type.accelerator.key, instance_type.accelerator)
        models = sorted(known.items())
        reserved = sorted({repr(t.reservation) for t in ordered})
        digest = hashlib.sha256(repr((ordered, models, reserved, described)).encode()).hexdigest()[:16]
        return Catalog(FrozenMap({t.name: t for t in ordered}), FrozenMap(models), digest, described)

    def __len__(self) -> int:
        return len(self.types)

    def __iter__(self) -> Iterator[InstanceType]:
        return iter(self.types.values())

    def get(self, name: str) -> InstanceType:
        """The type of this name. Raises UnknownInstanceTypeError."""
        found = self.types.get(name)
        if found is None:
            wrong, near = f"instance type {name!r} is not in the catalog", question(completed(name, self.types))
            step = "`foreslice catalog list` shows all, docs/catalog.md says how to add one"
            raise UnknownInstanceTypeError("; ".join(filter(None, (wrong, near, step))))
        return found

    def offerings(self, zones: Iterable[str] = (ANY_ZONE,)) -> tuple[Offering, ...]:
        """Every offering of every type, cheapest first, those without a price last (then by name)."""
        places = tuple(zones)
        return tuple(sorted((o for t in self for o in t.offerings(places)), key=_offering_order))

    def query(
        self,
        *,
        accelerator: str | None = None,
        cloud: str | None = None,
        min_memory: Quantity | None = None,
        sort: str = "name",
    ) -> tuple[InstanceType, ...]:
        """The types that meet all conditions, ordered by `sort` (a key of SORT_ORDERS).

        `accelerator` matches a part of the model's key, short name, API name or product name, in any case; `min_memory`
        is the memory of one device, as the driver reports it if known.
        """
        found = [
            t
            for t in self
            if (accelerator is None or (t.accelerator is not None and _is_called(t.accelerator, accelerator)))
            and (cloud is None or t.cloud == cloud)
            and (min_memory is None or device_memory(t) >= min_memory)
        ]
        return tuple(sorted(found, key=SORT_ORDERS[sort]))


def device_memory(instance_type: InstanceType) -> Quantity:
    """Memory of one device: the driver's figure, else the cloud API's, else 0."""
    accelerator = instance_type.accelerator
    if accelerator is None:
        return _NO_MEMORY
    return accelerator.memory or accelerator.api_memory or _NO_MEMORY


def list_price(instance_type: InstanceType) -> Decimal:
    """On-demand list price, infinite if unknown: for ordering."""
    return instance_type.price.usd_per_hour if instance_type.price is not None else _NO_PRICE


# Amounts come largest first, prices cheapest first; the name settles ties.
SORT_ORDERS: Final[Mapping[str, Callable[[InstanceType], tuple[object, ...]]]] = {
    "name": lambda t: (t.name,),
    "price": lambda t: (list_price(t), t.name),
    "memory": lambda t: (-device_memory(t), t.name),
    "count": lambda t: (-t.accelerator_count, t.name),
    "vcpu": lambda t: (-t.vcpu, t.name),
    "accelerator": lambda t: (t.accelerator.key if t.accelerator else "", t.accelerator_count, t.name),
}


def _is_called(accelerator: Accelerator, text: str) -> bool:
    names = (accelerator.key, accelerator.model, accelerator.product_name or "", *accelerator.api_names.values())
    return any(text.lower() in name.lower() for name in names)


def _offering_order(offering: Offering) -> tuple[object, ...]:
    price = offering.usd_per_hour if offering.usd_per_hour is not None else _NO_PRICE
    return (price, offering.instance_type, offering.zone, offering.capacity_type.value)
