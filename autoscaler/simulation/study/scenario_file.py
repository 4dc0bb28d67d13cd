"""A study from YAML: an object `kind: Simulation` with workloads; pools and classes of the cluster stand beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final, TypeVar

from autoscaler.errors import BadInputError
from autoscaler.kube.fields import Fields
from autoscaler.kube.problem import Problems
from autoscaler.manifests.document import Document
from autoscaler.report.words import counted
from autoscaler.simulation.study.numbers import MOST_PODS, amount, span
from autoscaler.simulation.study.pattern import Arrivals, Durations
from autoscaler.simulation.study.task import GPU_CLASS, Shape, Study, Task
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.diagnostic import Severity
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.spelling import did_you_mean

V = TypeVar("V")

KIND: Final = "Simulation"
_MIB: Final = 1 << 20
_MOST_REPLICAS: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Workload:
    name: str
    arrivals: Arrivals
    durations: Durations
    shape: Shape
    replicas: int
    gang: bool
    place: str
    checkpoint: timedelta | None


def is_simulation(document: Document) -> bool:
    """True if an object is a scenario."""
    return isinstance(document.value, dict) and document.value.get("kind") == KIND


def read_scenario(document: Document, known: Collection[str]) -> Study:
    """The study without the other objects. `known` are the accelerators that workloads may name.

    Raises BadInputError with the file, line and field of everything that is wrong.
    """
    problems = Problems()
    fields = Fields(document.value, problems)
    fields.ignore("apiVersion", "kind")
    name = fields.child("metadata").text("name") or "simulation"
    spec = fields.child("spec")
    length = _read(spec, "length", span, None)
    if "length" not in spec or (length is not None and length <= timedelta(0)):
        spec.error("length", "is required, and longer than nothing", "write how long to simulate, such as 2d")
    boot = _read(spec, "boot", span, None)
    seed = spec.integer("seed", 1)
    workloads = [_workload(found, document, known) for found in spec.children("workloads")]
    if not workloads:
        spec.error("workloads", "there are none", "add what arrives: name, arrivals, duration, gpus")
    _refuse_twice(workloads, spec)
    spec.unread()
    fields.unread()
    wrong = [problem for problem in problems if problem.severity is not Severity.WARNING]
    if wrong or length is None:
        found = "\n".join(document.located(problem, strict=True).block for problem in wrong)
        raise BadInputError(f"the scenario cannot be used\n{found}", next_step="docs/simulate.md shows every field")
    tasks = tuple(sorted(_tasks(workloads, length, seed), key=lambda task: (task.arrives, task.name)))
    study = Study(name, tasks, (), length, late=tuple(_late(workloads, tasks)))
    return study if boot is None else replace(study, boot=boot)


def _refuse_twice(workloads: list[_Workload], spec: Fields) -> None:
    counts = Counter(workload.name for workload in workloads)
    for name in [name for name, count in counts.items() if count > 1]:
        spec.error("workloads", f"{name!r} is there twice", "give each workload a name of its own")


def _tasks(workloads: list[_Workload], length: timedelta, seed: int) -> Iterator[Task]:
    """Each workload has a generator of its own, so that a change of one leaves the others as they are."""
    expected = 0.0
    for workload in workloads:
        random = Random(f"{seed}/{workload.name}")
        expected += workload.arrivals.expected(length) * workload.replicas
        if expected > MOST_PODS:
            step = "lower arrivals.perHour, replicas or the length"
            raise BadInputError(f"{workload.place}: {workload.name}: more than {MOST_PODS:,} pods", next_step=step)
        for index, moment in enumerate(workload.arrivals.times(length, random)):
            yield Task(
                name=f"{workload.name}-{index + 1}",
                arrives=moment,
                runs=workload.durations.draw(random),
                shape=workload.shape,
                replicas=workload.replicas,
                gang=workload.gang,
                place=workload.place,
                checkpoint=workload.checkpoint,
            )


def _late(workloads: list[_Workload], tasks: Sequence[Task]) -> Iterator[str]:
    """The workloads of which tasks are missing because they arrive after the end."""
    made = Counter(task.name.rpartition("-")[0] for task in tasks)  # several workloads may stand on one line
    for workload in workloads:
        arrived = made[workload.name]
        missing = len(workload.arrivals.at) - arrived if workload.arrivals.at else int(not arrived)
        if missing:
            what = counted(missing, "task") if arrived else "every task"
            arrive = "arrives" if what in ("1 task", "every task") else "arrive"
            step = "raise spec.length, or let tasks arrive earlier"
            yield f"{workload.place}: {workload.name}: {what} {arrive} after the end: {step}"


def _workload(fields: Fields, document: Document, known: Collection[str]) -> _Workload:
    name = fields.required("name")
    if name and not all(part.isalnum() and part.isascii() and part == part.lower() for part in name.split("-")):
        fields.error("name", f"{name!r} is not a name", "use lower-case letters, digits and dashes")
    replicas = fields.integer("replicas", 1)
    if not 1 <= replicas <= _MOST_REPLICAS:
        fields.error("replicas", f"{replicas} is not between 1 and {_MOST_REPLICAS}")
    found = _Workload(
        name=name,
        arrivals=_arrivals(fields),
        durations=_durations(fields),
        shape=_shape(fields, known),
        replicas=replicas,
        gang=fields.flag("gang"),
        place=f"{document.file}:{document.locate(fields.path)}",
        checkpoint=_read(fields, "checkpoint", span, None),
    )
    fields.unread()
    return found


def _arrivals(fields: Fields) -> Arrivals:
    found = fields.child("arrivals")
    at = found.raw("at")
    every, per_hour = _read(found, "every", span, None), _read(found, "perHour", amount, None)
    # What cannot be read is there, and told already.
    if sum((at is not None, "every" in found, "perHour" in found and per_hour != 0)) != 1:
        fields.error(
            "arrivals", "exactly one of at, every and perHour is needed", "write `arrivals: {perHour: 2}`, for example"
        )
        found.ignore("between")
        return Arrivals(at=(timedelta(0),))
    if every is not None and every <= timedelta(0):
        found.error("every", "is 0", "write how long it is from one arrival to the next")
        every = timedelta(hours=1)
    moments = _moments(found, at) if at is not None else ()
    since, until = _window(found)
    found.unread()
    return Arrivals(moments, every, per_hour or 0.0, since, until)


def _moments(found: Fields, raw: object) -> tuple[timedelta, ...]:
    if not isinstance(raw, list) or not raw:
        found.error("at", "expected a list of times, counted from the start", "write [0s, 90m, 1d]")
        return (timedelta(0),)
    moments = []
    for value in raw:
        try:
            moments.append(span(str(value)))
        except ValueError as error:
            found.error("at", str(error))
    return tuple(moments) or (timedelta(0),)


def _window(found: Fields) -> tuple[timedelta, timedelta]:
    """ "08:00-18:00"; the whole day without it."""
    text = found.text("between")
    whole = timedelta(0), timedelta(days=1)
    if not text:
        return whole
    try:
        since, until = (_clock(part) for part in text.split("-"))
        if since < until:
            return since, until
    except ValueError:
        pass
    found.error("between", f"{text!r} is not a part of the day", "write 08:00-18:00, the earlier time first")
    return whole


def _clock(text: str) -> timedelta:
    hours, minutes = (int(part) for part in text.split(":"))
    if not (0 <= hours <= 24 and 0 <= minutes < 60):
        raise ValueError(text)
    return timedelta(hours=hours, minutes=minutes)


def _durations(fields: Fields) -> Durations:
    if not isinstance(fields.raw("duration"), dict):
        return Durations(_read(fields, "duration", span, None))
    found = fields.child("duration")
    median, p95 = _read(found, "median", span, None), _read(found, "p95", span, None)
    found.unread()
    there = "median" in found and "p95" in found
    readable = median is not None and p95 is not None
    if not there or (readable and not timedelta(0) < median <= p95):
        fields.error("duration", "a median and a p95 are needed, the median first", "write {median: 30m, p95: 4h}")
        return Durations(None)
    return Durations(median, p95)


def _shape(fields: Fields, known: Collection[str]) -> Shape:
    gpus = fields.integer("gpus")
    if not 0 <= gpus <= _MOST_REPLICAS:
        fields.error("gpus", f"{gpus} is not between 0 and {_MOST_REPLICAS}")
    models = tuple(part.strip() for part in fields.text("gpuModel").split("|") if part.strip())
    for model in models:
        if model not in known:
            step = did_you_mean(model, sorted(known), f"choose from {', '.join(sorted(known))}")
            fields.error("gpuModel", f"the catalog has no NVIDIA accelerator {model!r}", step)
    selectors = fields.raw("selectors")
    if selectors is not None and not (isinstance(selectors, list) and all(isinstance(one, str) for one in selectors)):
        fields.error("selectors", "expected a list of CEL expressions")
        selectors = None
    return Shape(
        gpus=gpus,
        models=models,
        cpu=round((fields.quantity("cpu") or Quantity(0)).value * 1000),
        memory=-(-int((fields.quantity("memory") or Quantity(0)).value) // _MIB),
        device_class=fields.text("deviceClass") or GPU_CLASS,
        selectors=tuple(selectors) if isinstance(selectors, list) else (),
    )


def _read(fields: Fields, name: str, convert: Callable[[str], V], default: Any) -> Any:
    """A value that is written as a number or as text; `default` if it is absent or cannot be used."""
    value = fields.raw(name)
    if value is None:
        return default
    if isinstance(value, bool | list | dict):
        fields.error(name, f"expected a number or a text, found {type(value).__name__}")
        return default
    try:
        return convert(str(value))
    except ValueError as error:
        fields.error(name, str(error), "write a number that is not negative, or a duration such as 1h30m")
        return default
