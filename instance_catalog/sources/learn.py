"""Catalog entries from running nodes: the devices that their drivers published and their allocatable resources.

For a type in the catalog, values that the nodes contradict or add are corrected; an unknown type gets an entry. Nodes
of one type must agree, else nothing is taken from their slices. The result is for review by a person. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drift.match import nearest
from instance_catalog.drift.repair import proposal
from instance_catalog.drivers.profile import DriverSet, assumed_profile
from instance_catalog.files.file_entry import accelerator_entry, type_entry
from instance_catalog.files.overlay import merge
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, ResourceSlice, Version
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import Accelerator, CapacityType, InstanceType
from instance_catalog.types.node_allocatable import CPU, MEMORY, node_allocatable

Content: TypeAlias = dict[str, Any]

# Below users' values, above shipped ones: a manual correction stays in force.
PRIORITY: Final = -10
_GPU_DRIVER: Final = "gpu.nvidia.com"
_PROFILES: Final[Mapping[str, str]] = {
    _GPU_DRIVER: "nvidia",
    "compute-domain.nvidia.com": "compute-domain",
    "dra.net": "dranet",
    "dra.networking.k8s.aws": "aws-net",
}
# The resources that depend on the type alone. Pods and disk are the node template's choice.
_MEASURED: Final = (CPU, MEMORY)
_GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class SeenNode:
    """The facts of a running node that describe its type. `slices` are those it published."""

    name: str
    type_name: str
    cloud: str
    architecture: str
    allocatable: Mapping[str, Quantity]
    slices: tuple[ResourceSlice, ...]


@dataclass(frozen=True, slots=True)
class Lesson:
    """The facts from the nodes of one type. `content` is a catalog file's; None: nothing new."""

    type_name: str
    nodes: tuple[str, ...]
    is_new: bool
    content: Content | None
    notes: tuple[str, ...] = ()


def learn(
    seen: Iterable[SeenNode], catalog: Catalog, kubernetes: KubernetesProfile, *, date: str
) -> tuple[Lesson, ...]:
    """One lesson per instance type, by name. `date` (ISO) becomes that of the provenance."""
    by_type: dict[str, list[SeenNode]] = {}
    for node in sorted(seen, key=lambda node: node.name):
        by_type.setdefault(node.type_name, []).append(node)
    return tuple(_lesson(name, nodes, catalog, kubernetes, date) for name, nodes in sorted(by_type.items()))


def _lesson(name: str, nodes: Sequence[SeenNode], catalog: Catalog, kubernetes: KubernetesProfile, date: str) -> Lesson:
    known = catalog.types.get(name)
    notes: list[str] = []
    new_models: list[Content] = []
    if known is None:
        machine, new_models = _provisional(nodes[0], catalog)
        notes += _left_to_say(machine)
    else:
        machine = known
    source = f"ResourceSlices published by {_named(nodes)}"
    proposals = [
        _proposed(machine, node, kubernetes, source, date, is_new=known is None) for node in nodes if node.slices
    ]
    if any(other != proposals[0] for other in proposals[1:]):
        notes.append(f"{_named(nodes)} do not publish the same, so nothing is taken over from their slices")
        proposals = []
    entry = proposals[0]["types"][0] if proposals and "types" in proposals[0] else {"name": name}
    models = [*new_models, *(proposals[0].get("accelerators", ()) if proposals else ())]
    measured = _measured(machine, nodes)
    if measured:
        facts = {"source": f"allocatable of {_named(nodes)}", "date": date, "guess": False}
        entry = merge(entry, {"allocatable": measured, "provenance": {"allocatable": facts}})
    if known is None:
        entry = merge(_new_entry(machine, source, date), entry)
    content = _content(machine.cloud, entry, models, nodes)
    return Lesson(name, tuple(node.name for node in nodes), known is None, content, tuple(notes))


def _content(
    cloud: str, entry: Mapping[str, Any], models: Sequence[Content], nodes: Sequence[SeenNode]
) -> Content | None:
    if len(entry) == 1 and not models:
        return None
    types = {"types": [dict(entry)]} if len(entry) > 1 else {}
    accelerators = {"accelerators": list(models)} if models else {}
    return {"priority": PRIORITY, "reason": f"learned from {_named(nodes)}", "cloud": cloud, **accelerators, **types}


def _proposed(
    machine: InstanceType, node: SeenNode, kubernetes: KubernetesProfile, source: str, date: str, *, is_new: bool
) -> Content:
    sets = (_all_of(node.slices),) if is_new else ()
    _, unified = nearest(machine, node.slices, kubernetes, sets)
    return proposal(machine, unified, source=source, date=date) or {}


def _all_of(slices: Iterable[ResourceSlice]) -> DriverSet:
    """Every driver that published and that the catalog can learn from, as it would be without options."""
    drivers = sorted({slice_.driver for slice_ in slices})
    return DriverSet(tuple(assumed_profile(_PROFILES[driver]) for driver in drivers if driver in _PROFILES))


def _measured(machine: InstanceType, nodes: Sequence[SeenNode]) -> dict[str, str]:
    """The least amounts that nodes of the type left to pods, if they differ from the prediction."""
    predicted = node_allocatable(machine)
    least = {
        resource: min(node.allocatable[resource] for node in nodes)
        for resource in _MEASURED
        if all(resource in node.allocatable for node in nodes)
    }
    return {resource: str(amount) for resource, amount in least.items() if predicted[resource] != amount}


def _provisional(node: SeenNode, catalog: Catalog) -> tuple[InstanceType, list[Content]]:
    """A type of which only the node's size and its GPUs' model are known yet; models that are new."""
    gpus = [device for slice_ in node.slices if slice_.driver == _GPU_DRIVER for device in _whole(slice_)]
    model = _model(gpus[0], catalog) if gpus else None
    new = [accelerator_entry(model)] if model is not None and model.key not in catalog.accelerators else []
    others = [t.reservation for t in catalog if t.cloud == node.cloud][:1]
    memory = node.allocatable.get(MEMORY, Quantity.of(0))
    machine = InstanceType(
        cloud=node.cloud,
        name=node.type_name,
        architecture=node.architecture,
        vcpu=-(-node.allocatable.get(CPU, Quantity.of(1)).milli() // 1000),
        memory=Quantity.parse(f"{-(-int(memory.value) // _GIB)}Gi"),
        accelerator=model,
        accelerator_count=Fraction(len(gpus)),
        capacity_types=(CapacityType.ON_DEMAND,),
    )
    return (replace(machine, reservation=others[0]) if others else machine), new


def _whole(slice_: ResourceSlice) -> Iterator[Device]:
    return (device for device in slice_.devices if device.attributes.get("type") == "gpu")


def _model(gpu: Device, catalog: Catalog) -> Accelerator | None:
    """The accelerator of that product name and, of several, memory; else a new one from the published attributes."""
    name = gpu.attributes.get("productName")
    if not isinstance(name, str):
        return None
    memory = gpu.capacity["memory"].value if "memory" in gpu.capacity else None
    named = [model for model in catalog.accelerators.values() if model.product_name == name]
    same = [model for model in named if model.memory == memory]
    if named:
        return (same or named)[0]
    capability = gpu.attributes.get("cudaComputeCapability")
    words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
    return Accelerator(
        key="-".join(words if words[:1] == ["nvidia"] else ["nvidia", *words]),
        vendor="NVIDIA",
        model=name.removeprefix("NVIDIA "),
        product_name=name,
        architecture=_text(gpu, "architecture"),
        cuda_compute_capability=capability.text if isinstance(capability, Version) else None,
        brand=_text(gpu, "brand"),
        memory=memory,
    )


def _text(device: Device, attribute: str) -> str | None:
    value = device.attributes.get(attribute)
    return value if isinstance(value, str) else None


def _new_entry(machine: InstanceType, source: str, date: str) -> Content:
    models = FrozenMap({machine.accelerator.key: machine.accelerator} if machine.accelerator else {})
    facts = {
        "shape": {"source": "what nodes leave to pods, rounded up", "date": date, "guess": True},
        "accelerator": {"source": source, "date": date, "guess": False},
    }
    return {**type_entry(machine, models), "provenance": facts}


def _left_to_say(machine: InstanceType) -> list[str]:
    notes = [
        "vcpu and memory are what nodes leave to pods, rounded up; give the nominal sizes",
        "how the type is sold is assumed to be on-demand, and no price is known: it is not bought until one is set",
    ]
    if machine.accelerator is None:
        notes.append("no GPU that the catalog could describe was published; add the accelerator by hand")
    return notes


def _named(nodes: Sequence[SeenNode]) -> str:
    if len(nodes) == 1:
        return f"node {nodes[0].name}"
    more = f" and {len(nodes) - 2} more" if len(nodes) > 2 else ""
    return f"nodes {nodes[0].name}, {nodes[1].name}{more}"
