"""Every distinct device that a node may have: what the catalog's types will publish, and what is published already.

Thousands of predicted devices look alike to selectors. Each kind is kept once, with the places that have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.dra.inventory.taints import rules_in_force, with_rules
from autoscaler.model.device_class import DeviceTaintRule
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass, field
from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import Device, ResourceSlice
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.prediction.predict import predict, unpredictable
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

PUBLISHED = "published in the manifests"


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A kind of node: an instance type with a driver set, or the slices that exist already (no `drivers` then)."""

    type: str
    drivers: str
    slices: tuple[ResourceSlice, ...] = field(repr=False)

    def __str__(self) -> str:
        return f"{self.type} ({self.drivers})" if self.drivers else self.type


@dataclass(frozen=True, slots=True, eq=False)
class Specimen:
    """Devices that no selector and no toleration can distinguish.

    `device` is one of them, `counts` says how many each offer has and `names` what they are called in the first.
    """

    driver: str
    device: Device
    view: DeviceView
    counts: dict[Offer, int]
    names: list[str]

    @property
    def example(self) -> str:
        """One device and where it is: "gpu-0 of p5.48xlarge"."""
        return f"{self.device.name} of {next(iter(self.counts)).type}"

    @property
    def total(self) -> int:
        """Devices in all offers."""
        return sum(self.counts.values())


def catalog_offers(catalog: Catalog, profile: KubernetesProfile, more: Iterable[DriverSet] = ()) -> tuple[Offer, ...]:
    """Every type of the catalog with every driver set it may run, those of `more` included."""
    extra = tuple(more)
    return tuple(offer for found in catalog for offer in type_offers(found, profile, extra))


def pool_driver_sets(snapshot: Snapshot, catalog: Catalog) -> tuple[DriverSet, ...]:
    """The driver sets that CapacityPools and CapacityBlocks name."""
    named = [*(pool.drivers for pool in snapshot.pools), *(block.drivers for block in snapshot.blocks)]
    given = [",".join(profiles) for profiles in dict.fromkeys(named) if profiles]
    return tuple(parse_driver_set(text, custom=catalog.drivers) for text in given)


def type_offers(
    instance_type: InstanceType, profile: KubernetesProfile, more: Iterable[DriverSet] = ()
) -> Iterator[Offer]:
    """One instance type with every driver set."""
    implicit = implicit_driver_sets(instance_type, profile)
    extra = [one for one in more if one not in implicit and unpredictable(instance_type, one) is None]
    for driver_set in (*implicit, *extra):
        slices = predict(instance_type, driver_set, kubernetes=profile)
        yield Offer(instance_type.name, driver_set.text, slices)


def offers_of(catalog: Catalog, driver_set: DriverSet, profile: KubernetesProfile) -> tuple[Offer, ...]:
    """Every type of the catalog with this driver set, as far as that can be predicted."""
    return tuple(
        Offer(found.name, driver_set.text, predict(found, driver_set, kubernetes=profile))
        for found in catalog
        if unpredictable(found, driver_set) is None
    )


def published_offer(slices: Iterable[ResourceSlice]) -> tuple[Offer, ...]:
    """The existing devices as one offer; none if there are no devices."""
    found = tuple(slices)
    return (Offer(PUBLISHED, "", found),) if found else ()


def specimens(
    offers: Sequence[Offer], profile: KubernetesProfile, rules: Sequence[DeviceTaintRule] = ()
) -> tuple[Specimen, ...]:
    """The distinct devices of the offers, in their order, with the taints that rules in force add."""
    rules = rules_in_force(rules, profile)
    found: dict[tuple[int, tuple[Taint, ...]], Specimen] = {}
    for offer in offers:
        for slice_ in offer.slices:
            for device in with_rules(slice_, rules).devices:
                view = DeviceView.of(slice_.driver, device, profile)
                specimen = found.setdefault((id(view), device.taints), Specimen(slice_.driver, device, view, {}, []))
                specimen.counts[offer] = specimen.counts.get(offer, 0) + 1
                if len(specimen.counts) == 1:
                    specimen.names.append(device.name)
    return tuple(found.values())
