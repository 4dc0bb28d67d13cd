"""gpu.nvidia.com: whole GPUs, static and dynamic MIG (kubernetes-sigs/dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin).

Read at v0.4.1 (deviceinfo.go, mig.go, partitions.go, driver.go); what other releases do differently is a feature in
data/drivers/gpu.nvidia.com.yaml:

    minor-and-index                    int attributes minor and index (up to v25.3)
    own-pci-bus-id                     pcieBusID in the driver's domain instead of resource.kubernetes.io/pciBusID
    profile-in-mig-name                MIG devices are named after their profile
    addressing-mode                    attribute addressingMode
    dynamic-mig                        gate DynamicMIG exists
    dynamic-mig-without-mig-hardware   … and GPUs without usable MIG are published whole under it, Ampere GPUs in MIG
                                       mode in parts only
    all-attributes-on-dynamic-mig      … and partitions carry pcieRoot and addressingMode
    numa-node                          resource.kubernetes.io/numaNode
    iommufd                            attribute iommuFDEnabled of VFIO devices

Where the driver's device order is random, GPUs come by ascending minor. Must not know nodes or pools.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.facts import MigTable, mig_tables
from instance_catalog.drivers.profile import DriverProfile, DynamicMig, NoMig, StaticMig, assumed_profile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    Version,
)
from instance_catalog.kubernetes.semver import SemanticVersion
from instance_catalog.prediction.driver import MOST_COUNTER_SETS, Prediction, SliceContents
from instance_catalog.prediction.drivers import nvidia_labels, nvidia_mig, nvidia_model, nvidia_sharing, nvidia_vfio
from instance_catalog.prediction.drivers.nvidia_mig import Placed
from instance_catalog.prediction.pci import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT, bus_id, numa_node, pcie_root
from instance_catalog.prediction.tokens import catalog_gap, on_node
from instance_catalog.types.clouds import facts_of
from instance_catalog.types.instance_type import Accelerator, InstanceType

NVIDIA: Final = "NVIDIA"
AMPERE: Final = "Ampere"
# Value of the clique label on a node whose NVLink domain is not known yet, followed by the capacity unit of the domain:
# enough for `Exists`, equal to no real one, and equal on the nodes of one unit alone.
_FUTURE_CLIQUE: Final = "future"
_PARTITION_SIZES: Final = (1, 2, 4, 8)  # of Fabric Manager
_OF_WHOLE_GPUS: Final = frozenset({"minor", "index", "gpuModuleID", *(f"partition{size}" for size in _PARTITION_SIZES)})


@dataclass(frozen=True, slots=True)
class _Node:
    """The hardware and options that the driver finds on a node; `table` is None for GPUs that cannot be partitioned."""

    type: InstanceType
    accelerator: Accelerator
    profile: DriverProfile
    table: MigTable | None
    features: frozenset[str]

    def has(self, feature: str) -> bool:
        return feature in self.features

    @property
    def most_memory(self) -> Quantity | None:
        """The most memory that a GPU, and so a part of it, can have."""
        bounds = self.accelerator.memory_bounds
        return self.accelerator.memory or (bounds[1] if bounds else None)

    @property
    def partitions(self) -> bool:
        """True if the driver announces partitions: on Ampere only with MIG mode on when it starts."""
        mig = self.profile.mig
        if self.table is None or not isinstance(mig, DynamicMig):
            return False
        return mig.mode_enabled or self.accelerator.architecture != AMPERE

    def fabric(self, minor: int) -> FrozenMap[str, AttributeValue]:
        """Gate FabricManagerPartitioning: the GPU's place in NVSwitch partitions, as Fabric Manager numbers them.

        Which GPUs are paired has no source; all of them share the partition of eight.
        """
        if not self.profile.gates.get("FabricManagerPartitioning") or self.type.fabric.shape != "switch":
            return FrozenMap()
        values: dict[str, AttributeValue] = {"gpuModuleID": on_node("int", f"gpu-{minor}", "gpuModuleID")}
        for size in _PARTITION_SIZES:
            whole = size == _PARTITION_SIZES[-1]
            values[f"partition{size}"] = (
                on_node("int", "fabric", "partition8")
                if whole
                else catalog_gap("int", self.type.name, f"gpu-{minor}", f"partition{size}")
            )
        return FrozenMap(values)


@dataclass(frozen=True, slots=True)
class _Gpu:
    """One physical GPU and the attributes it would have as a device."""

    minor: int
    attributes: FrozenMap[str, AttributeValue]

    @property
    def name(self) -> str:
        return f"gpu-{self.minor}"

    @property
    def counter_set(self) -> str:
        return f"gpu-{self.minor}-counter-set"


def runs_on(instance_type: InstanceType) -> bool:
    return instance_type.accelerator is not None and instance_type.accelerator.vendor == NVIDIA


def mig_table(instance_type: InstanceType) -> MigTable | None:
    """The possible partitions of the type's GPUs; None if there are none (no MIG, or a vGPU)."""
    accelerator = instance_type.accelerator
    if accelerator is None or accelerator.virtual or accelerator.mig_table is None:
        return None
    return mig_tables().get(accelerator.mig_table)


def why_unpredictable(instance_type: InstanceType, profile: DriverProfile) -> str | None:
    """The reason why the slices cannot be predicted, or None if they can."""
    node = _node(instance_type, profile)
    if node is None:
        return None
    image = profile.option("driver")
    if image and instance_type.min_driver and _branch(image) < _branch(instance_type.min_driver):
        return f"{instance_type.name} needs NVIDIA driver {instance_type.min_driver} or newer, the image has {image}"
    if isinstance(profile.mig, NoMig):
        return None
    if node.table is None and node.accelerator.mig and not node.accelerator.virtual:
        return f"how {node.accelerator.model} is partitioned has no source yet"
    match profile.mig:
        case StaticMig(layout):
            return _why_no_layout(node, layout)
        case DynamicMig():
            return _why_not_dynamic(node)


def node_labels(instance_type: InstanceType, profile: DriverProfile, unit: str) -> dict[str, str]:
    """The MIG layout, the NVLink domain, the cloud's labels for this driver, and those of GPU feature discovery."""
    found: dict[str, str] = {}
    if profile.option(nvidia_labels.OPTION):
        found = nvidia_labels.discovered(instance_type, partitioned=not isinstance(profile.mig, NoMig))
    if isinstance(profile.mig, StaticMig):
        found[labels.NVIDIA_MIG_CONFIG] = profile.mig.layout
    if instance_type.fabric.multi_node:
        found[labels.NVIDIA_GPU_CLIQUE] = f"{_FUTURE_CLIQUE}-{unit}" if unit else _FUTURE_CLIQUE
    return found | dict(facts_of(instance_type.cloud).driver_labels.get(profile.name, {}))


def is_future_clique(value: str) -> bool:
    """True if a value of the clique label represents an NVLink domain that is not known yet."""
    return value.partition("-")[0] == _FUTURE_CLIQUE


def variants(instance_type: InstanceType, kubernetes: KubernetesProfile) -> Iterator[DriverProfile]:
    """Without MIG, with every layout of static MIG, and with dynamic MIG where Kubernetes has partitionable devices."""
    yield assumed_profile("nvidia")
    accelerator, table = instance_type.accelerator, mig_table(instance_type)
    if accelerator is None or not accelerator.mig or accelerator.virtual:
        return
    for layout in nvidia_mig.layouts(table) if table else ():
        yield assumed_profile("nvidia", mig=StaticMig(layout))
    if kubernetes.gates.partitionable_devices:
        # Ampere with MIG mode off would publish the same as without dynamic MIG.
        yield assumed_profile("nvidia", mig=DynamicMig(mode_enabled=accelerator.architecture == AMPERE))


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """The contents of the driver's slices in order. Only for combinations that `why_unpredictable` admits."""
    node = _node(instance_type, profile)
    if node is None:
        return ()
    slices = _with_own_devices(node, kubernetes)
    # A GPU with MIG devices gets no entry for virtual machines (nvlib.go); dynamic MIG excludes the gate.
    if not profile.gates.get("PassthroughSupport") or isinstance(profile.mig, StaticMig):
        return slices
    vfio = nvidia_vfio.devices(instance_type, profile, tuple(map(node.fabric, range(instance_type.device_count))))
    return (*slices[:-1], replace(slices[-1], devices=slices[-1].devices + vfio))


def _with_own_devices(node: _Node, kubernetes: KubernetesProfile) -> tuple[SliceContents, ...]:
    """GPUs and MIG devices, shared among claims if the driver's options say so."""
    mode = node.profile.options.get("consumable-shares")
    slices = _exclusive(node, kubernetes)
    if mode is None:
        return slices
    return tuple(
        replace(slice_, devices=tuple(nvidia_sharing.shared(device, mode) for device in slice_.devices))
        for slice_ in slices
    )


def _exclusive(node: _Node, kubernetes: KubernetesProfile) -> tuple[SliceContents, ...]:
    gpus = tuple(_Gpu(minor, _gpu_attributes(node, minor)) for minor in range(node.type.device_count))
    match node.profile.mig:
        case NoMig():
            return (SliceContents(tuple(_whole_gpu(node, gpu) for gpu in gpus)),)
        case StaticMig(layout):
            return (SliceContents(tuple(d for gpu in gpus for d in _static_instances(node, gpu, layout))),)
        case DynamicMig():
            return _dynamic(node, gpus, split=kubernetes.slices.counters_apart)  # driver.go, v0.4.1


def _node(instance_type: InstanceType, profile: DriverProfile) -> _Node | None:
    accelerator = instance_type.accelerator
    if accelerator is None or not runs_on(instance_type):
        return None
    return _Node(instance_type, accelerator, profile, mig_table(instance_type), profile.features)


def _dynamic(node: _Node, gpus: tuple[_Gpu, ...], *, split: bool) -> tuple[SliceContents, ...]:
    """One slice per GPU; counter sets beside the devices, or all in a slice of their own in front of them."""
    if node.table is None or not node.partitions:
        whole = tuple(SliceContents((_whole_gpu(node, gpu),)) for gpu in gpus)
        # With MIG hardware that is switched off, the slice for counter sets is published all the same, empty.
        return (SliceContents(), *whole) if split and node.table is not None else whole
    devices = [_partitions_of(node, node.table, gpu) for gpu in gpus]
    sets = [CounterSet(gpu.counter_set, nvidia_mig.counters_of_gpu(node.table)) for gpu in gpus]
    if split:
        return (SliceContents((), tuple(sets)), *(SliceContents(of_gpu) for of_gpu in devices))
    return tuple(SliceContents(of_gpu, (counters,)) for of_gpu, counters in zip(devices, sets, strict=True))


def _partitions_of(node: _Node, table: MigTable, gpu: _Gpu) -> tuple[Device, ...]:
    """The abstract devices of one GPU, by name. An Ampere GPU in MIG mode cannot be given away whole.

    v25.12.0 announces it all the same.
    """
    devices = [_dynamic_instance(node, gpu, placed) for placed in nvidia_mig.every_placement(table)]
    if node.accelerator.architecture != AMPERE or not node.has("dynamic-mig-without-mig-hardware"):
        consumed = CounterConsumption(gpu.counter_set, nvidia_mig.counters_of_gpu(table))
        devices.append(
            Device(gpu.name, gpu.attributes, nvidia_mig.published_of_gpu(table, node.most_memory), (consumed,))
        )
    return tuple(sorted(devices, key=lambda device: device.name))


def _whole_gpu(node: _Node, gpu: _Gpu) -> Device:
    return Device(gpu.name, gpu.attributes, nvidia_model.memory(node.accelerator))


def _dynamic_instance(node: _Node, gpu: _Gpu, placed: Placed) -> Device:
    attributes = _mig_attributes(gpu, placed)
    if not node.has("all-attributes-on-dynamic-mig"):
        attributes.pop(PCIE_ROOT)
    return Device(
        _mig_name(node, gpu, placed),
        FrozenMap(attributes),
        nvidia_mig.published(placed, node.most_memory),
        (CounterConsumption(gpu.counter_set, nvidia_mig.counters_of(placed)),),
    )


def _static_instances(node: _Node, gpu: _Gpu, layout: str) -> tuple[Device, ...]:
    placed = nvidia_mig.placements_in(node.table, layout) if node.table else ()
    return tuple(sorted((_static_instance(node, gpu, p) for p in placed), key=lambda device: device.name))


def _static_instance(node: _Node, gpu: _Gpu, placed: Placed) -> Device:
    name = _mig_name(node, gpu, placed)
    attributes = {**_mig_attributes(gpu, placed), "uuid": on_node("string", name, "uuid")}
    if node.has("minor-and-index"):
        attributes.update(index=on_node("int", name, "index"), parentIndex=gpu.minor)
    occupied = {f"memorySlice{i}": Capacity(Quantity.of(1, "BinarySI")) for i in placed.slices}
    return Device(
        name, FrozenMap(attributes), FrozenMap({**nvidia_mig.published(placed, node.most_memory), **occupied})
    )


def _mig_attributes(gpu: _Gpu, placed: Placed) -> dict[str, AttributeValue]:
    """The parent's attributes, except that its uuid is called parentUUID (mig.go CommonAttributesMig)."""
    parent = {k: v for k, v in gpu.attributes.items() if k not in _OF_WHOLE_GPUS}
    uuid = parent.pop("uuid")
    return {**parent, "type": "mig", "parentUUID": uuid, "profile": placed.profile.name}


def _gpu_attributes(node: _Node, minor: int) -> FrozenMap[str, AttributeValue]:
    """deviceinfo.go Attributes, plus the PCI attributes that the callers there add."""
    name, placement, profile = f"gpu-{minor}", node.type.placement(minor), node.profile
    values: dict[str, AttributeValue] = {
        "type": "gpu",
        "uuid": on_node("string", name, "uuid"),
        **nvidia_model.attributes(node.accelerator),
        "driverVersion": _image_version(profile.option("driver"), "driverVersion"),
        "cudaDriverVersion": _image_version(profile.option("cuda"), "cudaDriverVersion"),
        PCIE_ROOT: pcie_root(node.type, placement.pcie_root, name),
        "pcieBusID" if node.has("own-pci-bus-id") else PCI_BUS_ID: bus_id(placement.bus_id, name),
        **node.fabric(minor),
    }
    if node.has("minor-and-index"):
        values.update(minor=minor, index=minor)
    dynamic = isinstance(node.profile.mig, DynamicMig)
    if node.has("addressing-mode") and (not dynamic or node.has("all-attributes-on-dynamic-mig")):
        values["addressingMode"] = _addressing_mode(node)
    if node.has("numa-node"):
        as_list = bool(node.profile.gates.get("DRAListTypeAttributes"))
        values[NUMA_NODE] = numa_node(node.type, placement.numa_node, name, as_list=as_list)
    return FrozenMap(values)


def _image_version(text: str | None, name: str) -> AttributeValue:
    """580.126.09 → 580.126.9, 13.0 → 13.0.0 (the driver parses leniently); without an image, a token of the node."""
    if text is None:
        return on_node("version", "image", name)
    version = SemanticVersion.parse(text, normalize=True)
    return Version(f"{version.major}.{version.minor}.{version.patch}")


def _addressing_mode(node: _Node) -> AttributeValue:
    branch = (node.profile.option("driver") or "").partition(".")[0]
    for row in node.profile.facts.addressing_modes:
        if (row.branch, row.node) == (branch, node.type.architecture) and node.accelerator.architecture in row.gpu:
            return row.mode
    return on_node("string", "image", "addressingMode")


def _branch(driver: str) -> int:
    """580.126.09 → 580."""
    return int(driver.partition(".")[0])


def _why_no_layout(node: _Node, layout: str) -> str | None:
    if node.table is None:
        return f"{node.accelerator.model} cannot be partitioned; drop mig={layout}"
    known = nvidia_mig.layouts(node.table)
    if layout not in known:
        return f"{node.accelerator.model} has no MIG layout {layout!r}; it has {', '.join(known)}"
    return None


def _why_not_dynamic(node: _Node) -> str | None:
    if not node.partitions:
        if node.has("dynamic-mig-without-mig-hardware"):
            return None
        return f"nvidia {node.profile.release} cannot publish GPUs without usable MIG under dynamic MIG; take v0.4.0"
    if node.type.device_count > MOST_COUNTER_SETS:
        return f"dynamic MIG publishes at most {MOST_COUNTER_SETS} GPUs; {node.type.name} has more"
    return None


def _mig_name(node: _Node, gpu: _Gpu, placed: Placed) -> str:
    return nvidia_mig.device_name(gpu.minor, placed, with_profile=node.has("profile-in-mig-name"))


PREDICTION: Final = Prediction(
    runs_on,
    contents,
    why_unpredictable=why_unpredictable,
    node_labels=node_labels,
    variants=variants,
    most=nvidia_model.most,
)
