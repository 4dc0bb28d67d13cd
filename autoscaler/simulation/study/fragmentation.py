"""The share of idle GPUs that an average task of the workload cannot use.

The measure is F of FGD ("Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC 2023): for each node, the sum over the shapes of tasks of the shape's share of all tasks, times the
idle GPUs of the node if a task of that shape cannot run there, else 0. Tasks without GPUs use none: for them all idle
GPUs are fragments. Devices are whole here; the part of F that concerns shares of a GPU is 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from autoscaler.simulation.study.task import Shape, Task
from instance_catalog.dataclass import dataclass

# Rarer shapes change F by less than it is shown with; FGD's own tool leaves out the rarest as well.
_SHAPES: Final = 64


@dataclass(frozen=True, slots=True)
class Room:
    """The free resources of a node: devices, thousandths of a CPU, MiB; `model` is the accelerator's name."""

    gpus: int
    cpu: int
    memory: int
    model: str


def usual_shapes(tasks: Iterable[Task]) -> tuple[tuple[Shape, float], ...]:
    """The most frequent shapes, each with its share of the pods that have one of these."""
    counts = Counter[Shape]()
    for task in tasks:
        counts[task.shape] += task.replicas
    usual = sorted(counts.items(), key=lambda item: (-item[1], item[0].text))[:_SHAPES]
    total = sum(number for _, number in usual)
    return tuple((shape, number / total) for shape, number in usual)


def fragmented(room: Room, shapes: Sequence[tuple[Shape, float]]) -> float:
    """The expected idle GPUs of a node that a task drawn from the workload cannot use."""
    if room.gpus <= 0:
        return 0.0
    return room.gpus * sum(share for shape, share in shapes if not fits(shape, room))


def fits(shape: Shape, room: Room) -> bool:
    """True if a task of the shape uses idle GPUs of the node. Selectors are not evaluated, only the model's name."""
    enough = 0 < shape.gpus <= room.gpus and shape.cpu <= room.cpu and shape.memory <= room.memory
    return enough and (not shape.models or room.model in shape.models)
