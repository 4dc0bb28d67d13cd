"""The facts about DRA drivers that ship with Foreslice: releases, gates, DeviceClasses, MIG tables.

They are constants of the package, kept as YAML (data/drivers, data/mig) because data is easier to check and correct
than code. Must not know instance types or what a prediction does with the facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.drivers.custom import CustomDriver
from instance_catalog.drivers.terms import NOTHING_REFUSED, DeviceClassFacts, PrepareRules
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.package_data import contents


@dataclass(frozen=True, slots=True)
class Release:
    """One release of a driver; `features` name its differences from others (see the driver's prediction module)."""

    name: str
    features: frozenset[str]


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate of a driver: its default and the first release that has it."""

    default: bool
    since: str


@dataclass(frozen=True, slots=True)
class OptionFacts:
    """An option of a driver: the pattern of its values, and the default (None: the option is off).

    A `switch` has no value, `hint` describes the values for users, and the driver reads the option only with `gate` on.
    `of_image`: a version that the node image decides.
    """

    pattern: str = ""
    default: str | None = None
    hint: str = ""
    switch: bool = False
    gate: str | None = None
    of_image: bool = False


@dataclass(frozen=True, slots=True)
class AddressingMode:
    """The NVML addressing mode on nodes of an architecture, with GPUs of one of `gpu` and an NVIDIA driver branch."""

    branch: str
    node: str
    gpu: tuple[str, ...]
    mode: str


@dataclass(frozen=True, slots=True)
class CardFacts:
    """The attributes that every network card of one kind publishes. None: differs or unknown.

    `rdma_device` is a pattern over the PCI bus and slot numbers. `pci_ids` are prefixes of "vendor:device".
    """

    vendor: str
    device: str | None
    subsystem: str | None
    netdev: bool
    sriov: bool | None
    mtu: int | None
    rdma_device: str | None
    source: str
    pci_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NeuronFacts:
    """The machines for which neuron.aws.com is predicted, and the EFA address that serves each of their devices."""

    described: frozenset[str]  # accelerator keys
    ultra_servers: frozenset[str]  # type names
    efa_addresses: FrozenMap[str, tuple[str, ...]]  # type name → address by device


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """A driver as data. `releases` are ordered oldest first; version numbers are not ordered (25.12 came before
    0.4)."""

    profile: str
    driver: str
    source: str
    releases: tuple[Release, ...]
    calendar: FrozenMap[str, str]  # "25.12" → "0.3": calendar lines and the minors they count as
    gates: FrozenMap[str, Gate]
    exclusive_gates: tuple[tuple[str, str], ...]
    prepare: PrepareRules
    node_labels: FrozenMap[str, str]
    device_classes: tuple[DeviceClassFacts, ...]
    options: FrozenMap[str, OptionFacts] = field(default_factory=FrozenMap)
    models: FrozenMap[str, FrozenMap[str, Any]] = field(default_factory=FrozenMap)  # Accelerator.model → driver's facts
    addressing_modes: tuple[AddressingMode, ...] = ()  # gpu.nvidia.com only
    cards: FrozenMap[str, CardFacts] = field(default_factory=FrozenMap)  # dra.net only, by NetworkCard.kind
    software_interfaces: tuple[str, ...] = ()  # dra.net only: prefixes of interfaces that belong to no card
    neuron: NeuronFacts | None = None  # neuron.aws.com only
    mig: bool = False  # it has the options of MIG
    sharing_profile: str = ""  # the profile under which claims for a part of a device share it
    sharing_gates: FrozenMap[str, str] = field(default_factory=FrozenMap)  # sharing.strategy of its configs → gate
    simulated: bool = False  # it simulates its devices, on any machine
    same_devices_as: frozenset[str] = frozenset()  # other drivers, by name, that publish the same devices of a node

    def release(self, name: str) -> Release | None:
        return next((r for r in self.releases if r.name == name), None)

    def knows_gate(self, gate: str, release: str) -> bool:
        names = [r.name for r in self.releases]
        return gate in self.gates and names.index(release) >= names.index(self.gates[gate].since)


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A GPU instance profile of one GPU model. `figures` maps capacity names to values.

    `guess`: the figures are plausible but were not read on hardware. `gi_id` is nvmlGpuInstanceProfileInfo.id; `starts`
    and `size` count memory slices.
    """

    kind: str  # the profile class shared by all models of a geometry, e.g. 1g+me
    name: str
    gi_id: int
    size: int
    starts: tuple[int, ...]
    figures: FrozenMap[str, Quantity]
    guess: bool = False
    takes: FrozenMap[str, int] = field(default_factory=FrozenMap)  # of the table's shared engines

    @property
    def plain_name(self) -> str:
        """As resources and the layouts of nvidia-mig-parted write it: 1g.5gb.me for 1g.5gb+me."""
        return self.name.replace("+", ".")


@dataclass(frozen=True, slots=True)
class MigTable:
    """The possible partitions of one GPU model. `balanced` counts profile kinds in nvidia-mig-parted's all-balanced.

    `shared` are engines of the GPU that cannot be divided further, with the number of each.
    """

    model: str
    memory_slices: int
    shared: FrozenMap[str, int]
    profiles: tuple[MigProfile, ...]
    balanced: FrozenMap[str, int]
    source: str


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The driver releases that Foreslice assumes if no release is configured (defaults.yaml)."""

    releases: FrozenMap[str, str]  # profile name → release
    assumed_on: str = ""
    source: str = field(default="", compare=False)


# Capacity name in the slice ← field in the data file (kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 deviceinfo.go).
_MIG_FIGURES = {
    "multiprocessors": "multiprocessors",
    "copyEngines": "copy_engines",
    "decoders": "decoders",
    "encoders": "encoders",
    "jpegEngines": "jpeg_engines",
    "ofaEngines": "ofa_engines",
    "memory": "memory",
}


@cache
def driver_facts() -> FrozenMap[str, DriverFacts]:
    """All drivers with a prediction, by profile name."""
    rows = (_driver(content) for content in contents("drivers").values() if "driver" in content)
    return FrozenMap({row.profile: row for row in rows})


@dataclass(frozen=True, slots=True)
class BrokenGpuDirect:
    """From this branch of NVIDIA's driver on, EFA does not reach the memory of GPUs on types whose names begin so."""

    types: tuple[str, ...]
    from_branch: int
    instead: int
    parameter: str
    source: str


@cache
def broken_gpudirect() -> tuple[BrokenGpuDirect, ...]:
    """Drivers that do not work with types (gpudirect.yaml)."""
    return tuple(
        BrokenGpuDirect(tuple(row["types"]), row["from_branch"], row["instead"], row["parameter"], row["source"])
        for row in contents("drivers")["gpudirect"]["broken"]
    )


@dataclass(frozen=True, slots=True)
class GpuDirectProtocol:
    """The network protocol of GPUs of these types of Google Cloud, and parts of the names of the images that use it."""

    name: str
    images: tuple[str, ...]
    types: tuple[str, ...]
    source: str


@cache
def gpudirect_protocols() -> tuple[GpuDirectProtocol, ...]:
    """The protocols of Google Cloud (gpudirect.yaml)."""
    return tuple(
        GpuDirectProtocol(row["name"], tuple(row["images"]), tuple(row["types"]), row["source"])
        for row in contents("drivers")["gpudirect"]["protocols"]
    )


@cache
def facts_of(custom: CustomDriver) -> DriverFacts:
    """A driver that the catalog describes, in the terms of the shipped ones: one release, no gates, no options."""
    return DriverFacts(
        profile=custom.name,
        driver=custom.driver,
        source=custom.source,
        releases=(Release(custom.release, frozenset({"index-first-slice-names"})),),
        calendar=FrozenMap(),
        gates=FrozenMap(),
        exclusive_gates=(),
        prepare=custom.prepare,
        node_labels=custom.node_labels,
        device_classes=custom.device_classes,
    )


def prepare_rules(driver: str, custom: Iterable[CustomDriver] = ()) -> PrepareRules:
    """The requests that a driver such as tpu.google.com refuses after scheduling. Refusals of other drivers are
    unknown.

    `custom` are the drivers that the catalog describes.
    """
    rules = [facts.prepare for facts in driver_facts().values() if facts.driver == driver]
    rules += [described.prepare for described in custom if described.driver == driver]
    return next(iter(rules), NOTHING_REFUSED)


@cache
def assumptions() -> Assumptions:
    """The content of data/drivers/defaults.yaml."""
    content = contents("drivers")["defaults"]
    return Assumptions(
        releases=FrozenMap({name: row["release"] for name, row in content["profiles"].items()}),
        assumed_on=str(content["assumed_on"]),
        source=content["source"],
    )


@cache
def mig_tables() -> FrozenMap[str, MigTable]:
    """All MIG tables by the name under which accelerators refer to them."""
    content = dict(contents("mig"))
    geometries = content.pop("geometries")
    return FrozenMap({name: _mig_table(row, geometries[row["geometry"]]) for name, row in content.items()})


@cache
def builtin_device_classes(
    kubernetes: KubernetesProfile, custom: tuple[CustomDriver, ...] = ()
) -> tuple[DeviceClassFacts, ...]:
    """The DeviceClasses that driver charts install, by name; `custom` are the drivers that the catalog describes.

    Without the gate DRAExtendedResource the API server drops extendedResourceName, so the classes have none.
    """
    rows = [row for facts in driver_facts().values() for row in facts.device_classes]
    others = contents("drivers")["other_classes"]
    rows += [_device_class(row, row["source"]) for row in others["device_classes"]]
    rows += [row for described in custom for row in described.device_classes]
    if not kubernetes.gates.extended_resource:
        rows = [replace(row, extended_resource_name=None) for row in rows]
    return tuple(sorted(rows, key=lambda row: row.name))


@cache
def profiles_of_classes() -> FrozenMap[str, str]:
    """The driver profile to ask for, by the name of a DeviceClass whose devices are not published by default."""
    rows = (row for facts in driver_facts().values() for row in facts.device_classes)
    return FrozenMap({row.name: row.profile for row in rows if row.profile})


@cache
def classes_without_prediction() -> frozenset[str]:
    """DeviceClasses that are accepted although the devices of their drivers cannot be predicted."""
    return frozenset(row["name"] for row in contents("drivers")["other_classes"]["device_classes"])


def _driver(content: Mapping[str, Any]) -> DriverFacts:
    return DriverFacts(
        profile=content["profile"],
        driver=content["driver"],
        source=content["source"],
        releases=tuple(Release(r["name"], frozenset(r["features"])) for r in content["releases"]),
        calendar=FrozenMap(content.get("calendar", {})),
        gates=FrozenMap({name: Gate(g["default"], g["since"]) for name, g in content.get("gates", {}).items()}),
        exclusive_gates=tuple((first, second) for first, second in content.get("exclusive_gates", ())),
        prepare=PrepareRules(**content.get("prepare", {})),
        node_labels=FrozenMap(content.get("node_labels", {})),
        device_classes=tuple(_device_class(row, content["source"]) for row in content["device_classes"]),
        options=FrozenMap({name: OptionFacts(**row) for name, row in content.get("options", {}).items()}),
        models=FrozenMap({name: FrozenMap(row) for name, row in content.get("models", {}).items()}),
        addressing_modes=tuple(
            AddressingMode(row["branch"], row["node"], tuple(row["gpu"]), row["mode"])
            for row in content.get("addressing_modes", ())
        ),
        cards=FrozenMap({kind: _card(row) for kind, row in content.get("cards", {}).items()}),
        software_interfaces=tuple(content.get("software_interfaces", {}).get("prefixes", ())),
        neuron=_neuron(content) if "efa_addresses" in content else None,
        mig=content.get("mig", False),
        sharing_profile=content.get("sharing_profile", ""),
        sharing_gates=FrozenMap(content.get("sharing_gates", {})),
        simulated=content.get("simulated", False),
        same_devices_as=frozenset(content.get("same_devices_as", ())),
    )


def _neuron(content: Mapping[str, Any]) -> NeuronFacts:
    return NeuronFacts(
        frozenset(content["described"]),
        frozenset(content["ultra_servers"]),
        FrozenMap({name: tuple(addresses) for name, addresses in content["efa_addresses"].items()}),
    )


def _card(row: Mapping[str, Any]) -> CardFacts:
    return CardFacts(
        vendor=row["vendor"],
        device=row.get("device"),
        subsystem=row.get("subsystem"),
        netdev=row["netdev"],
        sriov=row.get("sriov"),
        mtu=row.get("mtu"),
        rdma_device=row.get("rdma_device"),
        source=row["source"],
        pci_ids=tuple(row.get("pci_ids", ())),
    )


def _device_class(row: Mapping[str, Any], source: str) -> DeviceClassFacts:
    selectors, extended = tuple(row["selectors"]), row.get("extended_resource_name")
    return DeviceClassFacts(row["name"], selectors, extended, source, row.get("profile", ""))


def _mig_table(content: Mapping[str, Any], geometry: Mapping[str, Any]) -> MigTable:
    return MigTable(
        model=content["model"],
        memory_slices=geometry["memory_slices"],
        shared=FrozenMap(geometry["shared"]),
        profiles=tuple(
            _mig_profile(kind, row, geometry["profiles"][kind]) for kind, row in content["profiles"].items()
        ),
        balanced=FrozenMap(geometry["balanced"]),
        source=content["source"],
    )


def _mig_profile(kind: str, row: Mapping[str, Any], place: Mapping[str, Any]) -> MigProfile:
    # Data-centre GPUs have no encoders; the driver publishes the zero all the same.
    values = {"encoders": "0", **{key: str(value) for key, value in row.items()}}
    return MigProfile(
        kind=kind,
        name=row["name"],
        gi_id=place["id"],
        size=place["size"],
        starts=tuple(place["starts"]),
        figures=FrozenMap({name: _binary(values[key]) for name, key in _MIG_FIGURES.items()}),
        guess=row.get("guess", False),
        takes=FrozenMap(place.get("takes", {})),
    )


def _binary(text: str) -> Quantity:
    """The driver builds every capacity with resource.NewQuantity(n, BinarySI), which prints the largest suffix."""
    return Quantity.of(int(Quantity.parse(text).value), "BinarySI")
