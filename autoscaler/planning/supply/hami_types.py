"""Pods that ask HAMi for a type of GPU by annotation, on machines with another: only HAMi's scheduler sees that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import Accelerator

_VENDOR: Final = "NVIDIA"
_WORD: Final = re.compile("[A-Z0-9]+")
# Annotations with types, and whether the GPU has to be one of them.
_TYPES: Final = {labels.HAMI_USE_TYPE: True, labels.HAMI_AVOID_TYPE: False}


@dataclass(frozen=True, slots=True)
class OtherType:
    """A pod whose annotation its new machine contradicts, with the accelerators of the catalog that agree with it."""

    pod: Pod
    annotation: str
    machine: str
    model: str
    agreeing: tuple[str, ...]


def other_types(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[OtherType]:
    """The pods on new machines with a GPU that their annotations exclude."""
    pods = {pod.key: pod for pod in snapshot.pods if pod.annotations.keys() & _TYPES.keys()}
    cards = {one.accelerator for one in catalog if one.accelerator and one.accelerator.vendor == _VENDOR}
    for node in plan.launches if pods else ():
        machine = catalog.types.get(node.offering.instance_type)
        card = machine.accelerator if machine else None
        for pod in (pods[key] for key in node.pods if key in pods):
            key = _contradicted(pod, card) if card is not None and card.vendor == _VENDOR else ""
            if card is not None and key:
                agreeing = sorted({one.key for one in cards if not _contradicted(pod, one)})
                yield OtherType(pod, key, node.offering.instance_type, card.model, tuple(agreeing))


def _contradicted(pod: Pod, card: Accelerator) -> str:
    """The annotation of the pod that excludes the GPU; or nothing."""
    found = ((key, pod.annotations[key].split(",")) for key in _TYPES if key in pod.annotations)
    return next((key for key, types in found if _named(types, card) is not _TYPES[key]), "")


def _named(types: Iterable[str], card: Accelerator) -> bool:
    """True if one of the types means the GPU: HAMi looks for it in the name of the device, in any case of letters
    (Project-HAMi/HAMi 4707fb0, pkg/device/nvidia); a whole name of a device has the model as a word."""
    model = card.model.upper()
    named = [one.strip().upper() for one in types]
    first = model.partition(" ")[0]
    return any(one and (one in f"{_VENDOR} {model}" or first in _WORD.findall(one)) for one in named)
