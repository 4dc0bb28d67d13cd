"""The input of a study: tasks that arrive, run for a time and end, and the initial objects of the cluster."""

from __future__ import annotations

from datetime import timedelta

from autoscaler.cluster.api import Object
from instance_catalog.dataclass import dataclass

GPU_CLASS = "gpu.nvidia.com"


@dataclass(frozen=True, slots=True)
class Shape:
    """The requests of one pod of a task. Tasks of equal shape are one kind of task for the planner.

    `models`: names of accelerators of the catalog, any of which fits; () is any device of the class. `cpu` is in
    thousandths of a CPU, `memory` in MiB.
    """

    gpus: int = 0
    models: tuple[str, ...] = ()
    cpu: int = 0
    memory: int = 0
    device_class: str = GPU_CLASS
    selectors: tuple[str, ...] = ()  # further CEL selectors of the claim's request

    @property
    def text(self) -> str:
        """ "2 × H100, 8 CPU, 32768 MiB"."""
        devices = f"{self.gpus} × {'|'.join(self.models) or self.device_class}, " if self.gpus else ""
        return f"{devices}{self.cpu / 1000:g} CPU, {self.memory} MiB"


@dataclass(frozen=True, slots=True)
class Task:
    """`replicas` equal pods that arrive together; as a `gang` they start together or not at all.

    `arrives` is counted from the start. `runs` is the run time of each pod, None: to the end of the simulation. `place`
    is the place in the user's file: "trace.csv:7". `checkpoint`: a pod that is evicted is created again, and loses at
    most this much of its work; None: it is lost. `says_duration`: pods say how long they run.
    """

    name: str
    arrives: timedelta
    runs: timedelta | None
    shape: Shape
    replicas: int = 1
    gang: bool = False
    place: str = ""
    checkpoint: timedelta | None = None
    says_duration: bool = False


@dataclass(frozen=True, slots=True)
class Study:
    """`length`: the duration of the simulation; None: until the last task has ended and its node is gone.

    `boot` is the time from a launch to the registration of the node, `objects` are those that exist before any task.
    `late`: a line for each workload with tasks that arrive after the end, which are not among the `tasks`.
    """

    name: str
    tasks: tuple[Task, ...]
    objects: tuple[Object, ...]
    length: timedelta | None = None
    boot: timedelta = timedelta(seconds=150)
    late: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a study.

    `policy` greedy: each pod (a gang: its pods) is planned for by itself, in the order of arrival, the largest first
    within a moment: it takes the first node with room, or the cheapest that can be bought for it alone. No node closes
    and no pod moves, whatever the pools say. foreslice: all that waits is planned together, as the controller does,
    with each pool's own `disruption.consolidate`. closing and cheaper: the same, with Close or Cheaper in every pool.
    `keep_alive` stands instead of `disruption.after` of every pool; None: as the pools
    say.
    """

    policy: str = "foreslice"
    keep_alive: timedelta | None = None


POLICIES = ("greedy", "foreslice", "closing", "cheaper")
